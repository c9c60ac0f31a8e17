//! Looking up the column of a role.

use arrow_schema::Schema;

use super::{ExposureColumn, ExposureRole, Propensity};
use crate::data::ColumnKind;
use crate::data::wildcard::captured;
use crate::{Error, Result};

/// The table in which roles are looked up.
pub(super) struct Table<'a> {
    pub(super) schema: &'a Schema,
}

impl<'a> Table<'a> {
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.schema.fields().iter().map(|field| field.name().as_str())
    }

    pub(super) fn require(&self, role: &str, name: &str) -> Result<()> {
        let Ok(field) = self.schema.field_with_name(name) else {
            return Err(Error::missing_column(name, self.names()).at(role));
        };
        if role != "id" && ColumnKind::of(field.data_type()).is_none() {
            let what = format!("has type {}, which cannot be used as {role}", field.data_type());
            return Err(Error::input(what).at(format!("column `{name}`")));
        }
        Ok(())
    }

    pub(super) fn require_numeric(&self, role: &str, name: &str) -> Result<()> {
        self.require(role, name)?;
        let kind = self.schema.field_with_name(name).ok().and_then(|field| ColumnKind::of(field.data_type()));
        match kind {
            Some(ColumnKind::Number | ColumnKind::Boolean) => Ok(()),
            kind => {
                let words = kind.map_or("something else", ColumnKind::words);
                let what = format!("is {words}, but {role} must be numeric or boolean");
                let error = Error::input(what).at(format!("column `{name}`"));
                Err(error
                    .hint("write yes and no as 1 and 0; a cell that is no number makes a CSV column text"))
            }
        }
    }

    /// The columns of contexts, by context where they are named, in the order of the table where they are matched.
    pub(super) fn exposures(&self, role: &ExposureRole) -> Result<Vec<ExposureColumn>> {
        let found: Vec<ExposureColumn> = match role {
            ExposureRole::Columns(columns) => columns
                .iter()
                .map(|(context, column)| ExposureColumn { context: context.clone(), column: column.clone() })
                .collect(),
            ExposureRole::Pattern(pattern) => {
                if pattern.matches('*').count() != 1 {
                    let what = format!("`{pattern}` has not one `*`, which would stand for the context");
                    return Err(Error::usage(what).at("exposure").hint(ExposureRole::HINT));
                }
                let found =
                    self.names().filter_map(|name| captured(pattern, name).map(|context| (name, context)));
                let found: Vec<ExposureColumn> = found
                    .map(|(name, context)| ExposureColumn {
                        context: context.to_owned(),
                        column: name.to_owned(),
                    })
                    .collect();
                if found.is_empty() {
                    return Err(Error::input(format!("no column matches `{pattern}`")).at("exposure"));
                }
                found
            }
        };
        found.iter().try_for_each(|exposure| self.require_numeric("exposure", &exposure.column))?;
        Ok(found)
    }

    pub(super) fn propensities(&self, pattern: &str) -> Result<Vec<Propensity>> {
        let found = self.names().filter_map(|name| captured(pattern, name).map(|policy| (name, policy)));
        let found: Vec<Propensity> = found
            .map(|(name, policy)| Propensity { column: name.to_owned(), policy: policy.to_owned() })
            .collect();
        if found.is_empty() {
            return Err(Error::input(format!("no column matches `{pattern}`")).at("propensity"));
        }
        for propensity in &found {
            self.require_numeric("propensity", &propensity.column)?;
        }
        Ok(found)
    }
}
