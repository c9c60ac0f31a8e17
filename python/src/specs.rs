//! Which column holds the effect, or the true effect, of which policy on which outcome.

use std::collections::BTreeMap;

use poul::data::{ColumnKind, Columns, Roles, Source};
use poul::policy::PolicySet;
use poul::{Error, Kind, Result};
use serde::Deserialize;

/// A column, for one policy or all, one outcome or all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    outcome: Option<String>,
    policy: Option<String>,
    pub(crate) column: String,
}

/// The columns are there, are numbers, and are not the outcomes themselves.
pub(crate) fn check(specs: &[Spec], argument: &str, source: &Source, roles: &Roles) -> Result<()> {
    for Spec { column, .. } in specs {
        let Ok(field) = source.schema().field_with_name(column) else {
            return Err(Error::missing_column(column, source.column_names()).at(argument));
        };
        if ColumnKind::of(field.data_type()) == Some(ColumnKind::Text) {
            return Err(Error::input("is text, but effects are numbers").at(format!("column `{column}`")));
        }
        if roles.outcome.contains(column) {
            let what = format!("{argument}: `{column}` is an outcome, not a column of effects");
            return Err(Error::usage(what).hint("name the column that holds each row's effect"));
        }
    }
    Ok(())
}

/// The column for each (policy, outcome). A more exact spec wins over a general one.
pub(crate) fn assign<'s>(
    specs: &'s [Spec],
    argument: &str,
    columns: &Columns,
    policies: &PolicySet,
    against: usize,
    chosen: &[usize],
) -> Result<BTreeMap<(usize, usize), &'s str>> {
    let mut assigned = BTreeMap::new();
    let mut ordered: Vec<&Spec> = specs.iter().collect();
    ordered.sort_by_key(|spec| usize::from(spec.policy.is_some()) + usize::from(spec.outcome.is_some()));
    for spec in ordered {
        let of_policies = match &spec.policy {
            Some(name) => vec![policies.require(name).map_err(|error| error.at(argument))?],
            None => chosen.to_vec(),
        };
        if of_policies.contains(&against) {
            let what = format!("`{}` is compared with itself", policies.name(against));
            return Err(Error::usage(what).at(argument).hint("choose another policy, or another against"));
        }
        let of_outcomes: Vec<usize> = match &spec.outcome {
            Some(name) => {
                let known = columns.outcomes.iter().map(String::as_str);
                let unknown = || Error::unknown(Kind::Usage, "outcome", name, "outcomes", known).at(argument);
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
