//! The columns that average effects are grouped by.

use crate::data::{ColumnKind, Columns, Feature, Source};
use crate::{Error, Result};

/// The columns as they are read: each is there, has a kind, and was known before anything happened.
pub(super) fn features(names: &[String], source: &Source, columns: &Columns) -> Result<Vec<Feature>> {
    let feature = |(index, name): (usize, &String)| {
        let Ok(field) = source.schema().field_with_name(name) else {
            return Err(Error::missing_column(name, source.column_names()).at("‹by›"));
        };
        if names[..index].contains(name) {
            return Err(Error::usage(format!("‹by›: `{name}` is named twice")));
        }
        let role = match () {
            () if columns.outcomes.contains(name) => Some("an outcome"),
            () if columns.treatment.contains(name) => Some("the treatment"),
            () => None,
        };
        if let Some(role) = role {
            return Err(Error::usage(format!("‹by›: `{name}` is {role}"))
                .hint("effects are averaged by what was known before: name another column"));
        }
        let kind = ColumnKind::of(field.data_type()).ok_or_else(|| {
            Error::input(format!("has type {}, which has no groups", field.data_type()))
                .at(format!("column `{name}`"))
                .hint("name a column of numbers, text or booleans: ‹by=COL›")
        })?;
        Ok(Feature { name: name.clone(), kind })
    };
    names.iter().enumerate().map(feature).collect()
}
