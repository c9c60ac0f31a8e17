//! `--effects` and `--truth`: which column holds the effect of which policy on which outcome.

use std::collections::BTreeMap;

use poul::data::{ColumnKind, Columns, Roles, Source};
use poul::policy::PolicySet;
use poul::{Error, Kind, Result};

use crate::settings::split;

/// The entries of one flag, as typed.
pub(crate) struct Specs {
    flag: &'static str,
    specs: Vec<Spec>,
}

/// A column, for one policy or all, one outcome or all.
struct Spec {
    outcome: Option<String>,
    policy: Option<String>,
    column: String,
}

impl Specs {
    /// Reads `COL`, `POLICY=COL` and `OUTCOME:POLICY=COL`.
    pub(crate) fn parse(entries: &[String], flag: &'static str) -> Result<Self> {
        let parse = |entry: &String| {
            if !entry.contains('=') {
                return Ok(Spec { outcome: None, policy: None, column: entry.clone() });
            }
            let (target, column) = split(entry, flag, "COL, POLICY=COL or OUTCOME:POLICY=COL")?;
            let (outcome, policy) = match target.split_once(':') {
                Some((outcome, policy)) => (Some(outcome.to_string()), policy),
                None => (None, target),
            };
            Ok(Spec { outcome, policy: Some(policy.to_string()), column: column.to_string() })
        };
        Ok(Self { flag, specs: entries.iter().map(parse).collect::<Result<_>>()? })
    }

    /// The columns named, as often as they are.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|spec| spec.column.as_str())
    }

    /// The columns are there, are numbers, and are not the outcomes themselves.
    pub(crate) fn check(&self, source: &Source, roles: &Roles) -> Result<()> {
        let flag = self.flag;
        for column in self.columns() {
            let Ok(field) = source.schema().field_with_name(column) else {
                return Err(Error::missing_column(column, source.column_names()).at(flag));
            };
            if ColumnKind::of(field.data_type()) == Some(ColumnKind::Text) {
                return Err(Error::input("is text, but effects are numbers")
                    .at(format!("column `{column}`"))
                    .hint(format!("name a numeric column with {flag}; one word makes a CSV column text")));
            }
            if roles.outcome.iter().any(|outcome| outcome == column) {
                return Err(Error::usage(format!(
                    "{flag}: `{column}` is an outcome, not a column of effects"
                ))
                .hint("name the column that holds each row's effect"));
            }
        }
        Ok(())
    }

    /// The column for each (policy, outcome). A more exact spec wins over a general one.
    pub(crate) fn assign(
        &self,
        columns: &Columns,
        policies: &PolicySet,
        against: usize,
        chosen: &[usize],
    ) -> Result<BTreeMap<(usize, usize), &str>> {
        let flag = self.flag;
        let mut assigned = BTreeMap::new();
        let mut ordered: Vec<&Spec> = self.specs.iter().collect();
        ordered.sort_by_key(|spec| usize::from(spec.policy.is_some()) + usize::from(spec.outcome.is_some()));
        for spec in ordered {
            let of_policies = match &spec.policy {
                Some(name) => vec![policies.require(name).map_err(|error| error.at(flag))?],
                None => chosen.to_vec(),
            };
            if of_policies.contains(&against) {
                return Err(itself(policies.name(against)).at(flag));
            }
            let of_outcomes: Vec<usize> = match &spec.outcome {
                Some(name) => {
                    let known = columns.outcomes.iter().map(String::as_str);
                    let unknown = || Error::unknown(Kind::Usage, "outcome", name, "outcomes", known).at(flag);
                    vec![columns.outcomes.iter().position(|outcome| outcome == name).ok_or_else(unknown)?]
                }
                None => (0..columns.outcomes.len()).collect(),
            };
            for policy in of_policies.iter().filter(|policy| chosen.contains(policy)) {
                for outcome in &of_outcomes {
                    assigned.insert((*policy, *outcome), spec.column.as_str());
                }
            }
        }
        Ok(assigned)
    }
}

/// A comparison that says nothing.
pub(crate) fn itself(name: &str) -> Error {
    Error::usage(format!("`{name}` is compared with itself"))
        .hint("choose another policy, or another --against")
}
