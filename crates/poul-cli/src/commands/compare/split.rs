//! Which rows are tested on: another table, later rows, or a share.

use std::path::Path;

use poul::compare::Split;
use poul::data::{ColumnKind, Columns, Design, Filter, Need, Roles, Source};
use poul::{Error, Result};
use serde_json::Value;

use super::settings::CompareSettings;
use crate::commands::about_data;

/// Share of the data that is tested on where nothing is said.
const TEST_SHARE: f64 = 0.3;

/// A table to test on.
pub(super) struct TestTable {
    pub(super) source: Source,
    pub(super) columns: Columns,
}

impl TestTable {
    pub(super) fn open(location: &Path, roles: &Roles) -> Result<Self> {
        let source = Source::open_path(location)?;
        // Features are the encoder's. Strata say what was assigned on average; where the table has none, all rows do.
        let known = source.column_names();
        let stratum = roles.stratum.clone().filter(|name| known.contains(&name.as_str()));
        let roles = Roles {
            features: Vec::new(),
            exclude: Vec::new(),
            stratum,
            propensity: None,
            prediction: Default::default(),
            time: None,
            id: Vec::new(),
            design: Design::Randomized,
            ..roles.clone()
        };
        let columns = roles.check(source.schema(), Need::EVALUATE);
        let columns = columns.map_err(|error| about_data(error, location))?;
        Ok(Self { source, columns })
    }
}

/// The rows to test on.
pub(super) enum TestPart<'a> {
    Table(&'a TestTable),
    Later { before: Filter, from: Filter },
    Share(f64),
}

impl<'a> TestPart<'a> {
    pub(super) fn new(
        settings: &CompareSettings,
        table: Option<&'a TestTable>,
        roles: &Roles,
        source: &Source,
    ) -> Result<Self> {
        match (table, &settings.test_from) {
            (Some(table), _) => Ok(Self::Table(table)),
            (None, Some(value)) => later(value, roles, source),
            (None, None) => Ok(Self::Share(settings.test_share.unwrap_or(TEST_SHARE))),
        }
    }

    pub(super) fn split(&self) -> Split<'_> {
        match self {
            Self::Table(table) => Split::Table(&table.source, &table.columns),
            Self::Later { before, from } => Split::Filters(before, from),
            Self::Share(share) => Split::Share(*share),
        }
    }
}

/// Rows before a time, and rows from it on; each within the population.
fn later<'a>(value: &Value, roles: &Roles, source: &Source) -> Result<TestPart<'a>> {
    let Some(time) = &roles.time else {
        return Err(Error::usage("--test-from needs a time column").hint("name it: --time COL"));
    };
    let schema = source.schema();
    let field = schema.field_with_name(time);
    let field = field.map_err(|_| Error::missing_column(time, source.column_names()).at("time"))?;
    let plain = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let literal = match ColumnKind::of(field.data_type()) {
        Some(ColumnKind::Text | ColumnKind::Time) => format!("\"{plain}\""),
        _ => plain,
    };
    let filter = |relation: &str| {
        let part = format!("`{time}` {relation} {literal}");
        let text = match &roles.population {
            Some(population) => format!("({population}) and {part}"),
            None => part,
        };
        Filter::parse(&text, schema).map_err(|error| error.at("--test-from"))
    };
    Ok(TestPart::Later { before: filter("<")?, from: filter(">=")? })
}
