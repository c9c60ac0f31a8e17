//! The roles that a model was fitted with, as far as another table has their columns.

use crate::Progress;
use crate::data::{Design, Roles, Source};
use crate::model::Model;

/// The roles of an evaluation where a user names no others. What the table does not have is told and left out.
pub fn fitted_roles(model: &Model, source: &Source, progress: &dyn Progress) -> Roles {
    let fitted = &model.manifest().roles;
    let known = source.column_names();
    let has = |name: &String| known.contains(&name.as_str());
    let kept = |role: &str, name: &Option<String>| {
        let kept = name.clone().filter(has);
        if let (Some(name), None) = (name, &kept) {
            progress.warn(&format!("the data have no column `{name}`: evaluated without a {role}"));
        }
        kept
    };
    let stratum = kept("stratum", &fitted.stratum);
    // The pattern has one `*`, which stands for the policy.
    let matches = |pattern: &String| {
        let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
        known.iter().any(|name| name.starts_with(before) && name.ends_with(after))
    };
    let propensity = fitted.propensity.clone().filter(matches);
    if let (Some(pattern), None) = (&fitted.propensity, &propensity) {
        progress
            .warn(&format!("the data have no column like `{pattern}`: evaluated without given propensities"));
    }
    let design = match fitted.design {
        Design::Stratified if stratum.is_none() && propensity.is_none() => {
            progress.warn("without strata, average effects take assignment as random");
            Design::Randomized
        }
        design => design,
    };
    Roles {
        treatment: fitted.treatment.clone(),
        treatment_columns: fitted.treatment_columns.clone(),
        outcome: fitted.outcome.clone(),
        control: model.manifest().control.clone(),
        weight: kept("weight", &fitted.weight),
        cluster: kept("cluster", &fitted.cluster),
        prediction: fitted.prediction.clone().into_iter().filter(|(_, column)| has(column)).collect(),
        stratum,
        propensity,
        design,
        ..Roles::default()
    }
}
