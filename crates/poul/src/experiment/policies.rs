//! Where the policies of an experiment are defined: given, from a file or a model, or in its rows.

use std::collections::BTreeMap;

use crate::data::{Columns, Source};
use crate::policy::PolicySet;
use crate::{Error, Progress, Result};

/// Where policies are defined.
#[derive(Clone, Debug, Default)]
pub struct Policies<'a> {
    given: Option<PolicySet>,
    weights: Option<BTreeMap<String, f64>>,
    other: Option<(&'a Source, &'a Columns)>,
}

impl<'a> Policies<'a> {
    /// In the rows: every label of the treatment column, every combination of factorial columns. Contexts weigh as told, or
    /// all the same.
    pub fn of_rows(weights: Option<BTreeMap<String, f64>>) -> Self {
        Self { weights, ..Self::default() }
    }

    /// Where they are defined in the rows, in those of another table too, such as one to test on.
    #[must_use]
    pub(crate) fn and_of(mut self, source: &'a Source, columns: &'a Columns) -> Self {
        self.other = Some((source, columns));
        self
    }

    /// These, or others where none are given.
    pub(crate) fn or(mut self, others: &PolicySet) -> Self {
        self.given.get_or_insert_with(|| others.clone());
        self
    }

    pub(super) fn find(
        self,
        source: &Source,
        columns: &Columns,
        progress: &dyn Progress,
    ) -> Result<PolicySet> {
        match (self.given, self.other) {
            (Some(_), _) if columns.factorial => {
                Err(Error::usage("‹policies› and ‹treatment_columns› exclude each other")
                    .hint("factorial columns define their own policies"))
            }
            (Some(given), _) => Ok(given),
            (None, other) => {
                let own = PolicySet::from_data(source, columns, self.weights.as_ref(), progress)?;
                match other {
                    None => Ok(own),
                    Some((other, columns)) => {
                        own.union(&PolicySet::from_data(other, columns, None, progress)?)
                    }
                }
            }
        }
    }
}

/// These policies, or without any those of the rows.
impl From<Option<PolicySet>> for Policies<'_> {
    fn from(given: Option<PolicySet>) -> Self {
        Self { given, ..Self::default() }
    }
}

/// These policies.
impl From<PolicySet> for Policies<'_> {
    fn from(given: PolicySet) -> Self {
        Some(given).into()
    }
}
