//! Which rows are tested on: those of another table, later ones, or a share.

use crate::data::{ColumnKind, Columns, Design, Filter, Need, Roles, Source};
use crate::experiment::Policies;
use crate::{Error, Result};

/// Which rows are tested on.
#[derive(Clone, Debug)]
pub enum Split {
    /// Those of another table.
    #[doc(hidden)]
    Table(Box<TestTable>),
    /// Those for which the second expression holds; those for which the first does are trained on.
    #[doc(hidden)]
    Filters {
        /// The rows to train on.
        train: Filter,
        /// The rows to test on.
        test: Filter,
    },
    /// A share of the units, at random; above 0, below 1.
    Share(f64),
}

/// Another table whose rows are tested on, and what its columns are.
#[derive(Clone, Debug)]
pub struct TestTable {
    pub(crate) source: Source,
    pub(crate) columns: Columns,
}

impl Split {
    /// A share of the data that is tested on where nothing is said.
    pub const DEFAULT: Self = Self::Share(0.3);

    /// All rows of another table are tested on. Features are found in it by the encoder of the training table; strata say
    /// what was assigned on average, and where it has none, all rows do.
    pub fn table(source: &Source, roles: &Roles) -> Result<Self> {
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
        let columns = roles.check(source.schema(), Need::EVALUATE).map_err(|error| source.locate(error))?;
        Ok(Self::Table(Box::new(TestTable { source: source.clone(), columns })))
    }

    /// Rows from a time on are tested on, and those before it trained on; each within the population. `from` is plain text;
    /// where the time column holds texts or times it is compared as such.
    pub fn later(from: &str, roles: &Roles, source: &Source) -> Result<Self> {
        let Some(time) = &roles.time else {
            return Err(Error::usage("‹test_from› needs a time column").hint("name it: ‹time=COL›"));
        };
        let schema = source.schema();
        let field = schema.field_with_name(time);
        let field = field.map_err(|_| Error::missing_column(time, source.column_names()).at("time"))?;
        let literal = match ColumnKind::of(field.data_type()) {
            Some(ColumnKind::Text | ColumnKind::Time) => format!("\"{from}\""),
            _ => from.to_owned(),
        };
        let filter = |relation: &str| {
            let part = format!("`{time}` {relation} {literal}");
            let text = match &roles.population {
                Some(population) => format!("({population}) and {part}"),
                None => part,
            };
            Filter::parse(&text, schema).map_err(|error| error.within("‹test_from›"))
        };
        Ok(Self::Filters { train: filter("<")?, test: filter(">=")? })
    }

    /// Policies that the rows define, those of another table to test on too.
    pub fn policies<'a>(&'a self, policies: Policies<'a>) -> Policies<'a> {
        match self {
            Self::Table(table) => policies.and_of(&table.source, &table.columns),
            _ => policies,
        }
    }
}
