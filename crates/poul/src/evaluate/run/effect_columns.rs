//! Which column holds the effect, or the true effect, of which policy on which outcome.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::{ColumnKind, Columns, Roles, Source};
use crate::policy::PolicySet;
use crate::{Error, Kind, Result};

/// A column of effects, for one policy or all, one outcome or all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectColumn {
    /// The column.
    pub column: String,
    /// The policy whose effect it is. Default: every policy that is compared.
    #[serde(default)]
    pub policy: Option<String>,
    /// The outcome it is an effect on. Default: every outcome.
    #[serde(default)]
    pub outcome: Option<String>,
}

/// The columns are there, are numbers, and are not the outcomes themselves. `flag` is how they were named.
pub(super) fn check(specs: &[EffectColumn], flag: &str, source: &Source, roles: &Roles) -> Result<()> {
    for EffectColumn { column, .. } in specs {
        let Ok(field) = source.schema().field_with_name(column) else {
            return Err(Error::missing_column(column, source.column_names()).at(flag));
        };
        if ColumnKind::of(field.data_type()) == Some(ColumnKind::Text) {
            return Err(Error::input("is text, but effects are numbers")
                .at(format!("column `{column}`"))
                .hint(format!("name a numeric column with {flag}; one word makes a CSV column text")));
        }
        if roles.outcome.contains(column) {
            return Err(Error::usage(format!("{flag}: `{column}` is an outcome, not a column of effects"))
                .hint("name the column that holds each row's effect"));
        }
    }
    Ok(())
}

/// The column for each (policy, outcome). A more exact spec wins over a general one.
pub(super) fn assign<'s>(
    specs: &'s [EffectColumn],
    flag: &str,
    columns: &Columns,
    policies: &PolicySet,
    against: usize,
    chosen: &[usize],
) -> Result<BTreeMap<(usize, usize), &'s str>> {
    let mut assigned = BTreeMap::new();
    let mut ordered: Vec<&EffectColumn> = specs.iter().collect();
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

/// A comparison that says nothing.
pub(super) fn itself(name: &str) -> Error {
    Error::usage(format!("`{name}` is compared with itself"))
        .hint("choose another policy, or another ‹against›")
}
