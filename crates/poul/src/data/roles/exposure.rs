//! How a user says where the exposure of rows to contexts stands, and what it is divided by.

use std::collections::BTreeMap;
use std::str::FromStr;

use arrow_schema::Schema;
use serde::{Deserialize, Serialize};

use super::ExposureColumn;
use super::table::Table;
use crate::{Error, Kind};

/// The columns with how much each row meets each context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a glob such as \"trips_*\", or a table of contexts and their columns"
)]
pub enum ExposureRole {
    /// A glob whose one `*` stands for the context.
    Pattern(String),
    /// The column of each context.
    Columns(BTreeMap<String, String>),
}

/// What the exposures of a row are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExposureScale {
    /// Their sum: contexts differ between rows, and every row is treated as much.
    #[default]
    Share,
    /// The mean sum over the rows of training: who meets contexts twice as often is treated twice.
    Total,
}

impl ExposureRole {
    pub(crate) const HINT: &'static str =
        "write ‹exposure=CONTEXT=COLUMN› for each context, or ‹exposure=PREFIX_*›";

    /// From the flags: a glob alone, or any number of `CONTEXT=COLUMN`.
    pub fn from_entries<S: AsRef<str>>(entries: &[S]) -> Result<Option<Self>, Error> {
        let wrong = |what: String| Error::usage(what).at("exposure").hint(Self::HINT);
        let mut columns = BTreeMap::new();
        for entry in entries.iter().map(AsRef::as_ref) {
            let Some((context, column)) = entry.split_once('=') else {
                if entries.len() > 1 {
                    return Err(wrong(format!("the glob `{entry}` stands beside other columns")));
                }
                return Ok(Some(Self::Pattern(entry.to_owned())));
            };
            if context.is_empty() || column.is_empty() {
                return Err(wrong(format!("`{entry}` is not of the form CONTEXT=COLUMN")));
            }
            if columns.insert(context.to_owned(), column.to_owned()).is_some() {
                return Err(wrong(format!("the context `{context}` has two columns")));
            }
        }
        Ok((!columns.is_empty()).then_some(Self::Columns(columns)))
    }
}

impl ExposureRole {
    /// The columns in a table.
    pub(crate) fn find(&self, schema: &Schema) -> Result<Vec<ExposureColumn>, Error> {
        Table { schema }.exposures(self)
    }
}

impl ExposureScale {
    /// All scales, by name.
    pub const NAMES: [&'static str; 2] = ["share", "total"];

    /// The scale's name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub(super) fn is_share(&self) -> bool {
        *self == Self::Share
    }
}

impl FromStr for ExposureScale {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "share" => Ok(Self::Share),
            "total" => Ok(Self::Total),
            _ => Err(Error::unknown(Kind::Usage, "exposure scale", name, "scales", Self::NAMES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_a_glob_or_pairs() {
        let read = |entries: &[&str]| ExposureRole::from_entries(entries);
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["trips_*"]).unwrap(), Some(ExposureRole::Pattern("trips_*".into())));
        let pairs = [("peak".to_owned(), "a".to_owned()), ("night".to_owned(), "b=c".to_owned())];
        let pairs = ExposureRole::Columns(pairs.into_iter().collect());
        assert_eq!(read(&["peak=a", "night=b=c"]).unwrap(), Some(pairs));
        for wrong in [&["a=b", "a=c"][..], &["a_*", "b=c"], &["=c"], &["a="]] {
            assert!(read(wrong).unwrap_err().hint_text().unwrap().contains("`exposure = "), "{wrong:?}");
        }
    }

    #[test]
    fn scales_have_names() {
        for name in ExposureScale::NAMES {
            assert_eq!(name.parse::<ExposureScale>().unwrap().name(), name);
        }
        assert!("totals".parse::<ExposureScale>().unwrap_err().hint_text().unwrap().contains("total"));
    }
}
