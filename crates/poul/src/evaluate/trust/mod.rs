//! Whether effects can be trusted: checks of the design and of the orthogonal score ψ = (Y − m − gᵀ(h − e_h))(h − e_h)
//! (Sec. 3 of the paper), and what stands behind every policy and atom.
//!
//! Takes a [`Model`] and rows, and fills the parts of an [`Evaluation`](crate::evaluate::Evaluation) that are about trust.
//!
//! | file | subject |
//! |---|---|
//! | `rows` | an evenly spaced sample of a table, with everything that has a role |
//! | `axes` | policies along a few axes: of h, or of the mixtures |
//! | `balance` | h(T) − e_h(X) against x |
//! | `outcome_model` | calibration of the m of the averages |
//! | `overlap` | π(t\|x) by policy, clipping, rows without overlap |
//! | `placebo` | the learner on permuted treatment |
//! | `sensitivity` | how strong an unobserved confounder would have to be |
//! | `places` | policies beside each other: map, support, bound |
//! | `components` | what each action does in each context |
//! | `component_table` | the same as a table |
//!
//! | check | doubt | fail |
//! |---|---|---|
//! | balance | a feature goes with h(T) − e_h(X): p < 0.01 after Bonferroni over features and axes | also \|correlation\| ≥ 0.1 |
//! | outcome model | worse than the mean by 2 % of the variance, or a decile off by 4 standard errors and 0.1 sd | worse than the mean by 20 % |
//! | overlap | weights 1/π keep less than half of the rows, or, where nobody randomised, 2 % of the rows had next to no chance of a policy | less than a tenth, or 10 % |
//! | placebo | a permutation gives effects at least half as large | on average 90 % as large |
//! | sensitivity | 5 % of what is left of treatment and outcome would do, or odds that differ 1.2 times; a policy without overlap | never |

mod axes;
mod balance;
mod component_table;
mod components;
mod outcome_model;
mod overlap;
mod placebo;
mod places;
mod rows;
mod sensitivity;

pub use components::{Components, components};
pub(crate) use places::places;
pub(crate) use rows::SampleRows;

use crate::effect::ExposedRows;
use crate::evaluate::{AverageEffect, CheckResult, Validation, Verdict};
use crate::model::Model;
use crate::nuisance::{FirstStage, PropensityOrigin};
use crate::policy::PolicySet;
use crate::{Error, Progress, Result, Run, Seed};

/// Settings of the checks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrustParams {
    /// Fits on permuted treatment, each as long as the model's own with one member on the sample. Default 0.
    pub placebo: usize,
    /// Folds in which π is cross-fitted on the sample, where it is learned. Default 2; at least 2.
    pub folds: usize,
    /// Level of the interval that sensitivity is about. Default 0.9; between 0 and 1.
    pub level: f64,
    /// The root of the random streams.
    pub seed: Seed,
}

impl Default for TrustParams {
    fn default() -> Self {
        Self { placebo: 0, folds: 2, level: 0.9, seed: Seed::new(3407) }
    }
}

/// [`TrustParams`] whose settings are in range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValidTrustParams(TrustParams);

impl TrustParams {
    /// Checks that every setting is in range.
    pub(crate) fn check(self) -> Result<ValidTrustParams> {
        if self.folds < 2 {
            return Err(Error::usage(format!("`folds` is {}", self.folds)).hint("it must be at least 2"));
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            let error = Error::usage(format!("`level` is {}", self.level));
            return Err(error.hint("a level lies between 0 and 1, such as 0.9"));
        }
        Ok(ValidTrustParams(self))
    }
}

/// What is to be checked.
pub(crate) struct Trial<'a> {
    /// The model.
    pub model: &'a Model,
    /// The rows.
    pub rows: &'a SampleRows,
    /// The policies: the model's own, and those of the rows.
    pub policies: &'a PolicySet,
    /// The policies whose effects are of interest.
    pub targets: &'a [usize],
    /// The policy they are compared with.
    pub against: usize,
    /// Average effects of the evaluation, where there are any: overlap and sensitivity are about what they claim.
    pub averages: &'a [AverageEffect],
    /// By outcome, m̂ of the rows that those averages were taken with, out of fold or the user's own; none where there were too
    /// few rows for one.
    pub expected: &'a [Option<Vec<f64>>],
}

/// Checks the design and the orthogonal score on the rows, which the model need not have seen.
///
/// m is the one that averages were taken with; π, where it is learned, is cross-fitted on these rows.
pub(crate) fn examine(
    trial: &Trial<'_>,
    params: &ValidTrustParams,
    progress: &dyn Progress,
) -> Result<Validation> {
    let TrustParams { placebo, folds: n_folds, level, seed } = params.0;
    let (rows, policies) = (trial.rows, trial.policies);
    let features = rows.features()?;
    let x = ExposedRows { x: &features, exposure: rows.exposure() };
    let data = rows.training_data(&x, policies, Some(trial.against))?.check()?;
    let seed = seed.child("validate");
    let mut validation = Validation::default();
    let mut checks = Vec::new();

    let (observed, clip) = (data.observed(), Some(overlap::CLIP));
    let mut first = FirstStage::shared(&observed, n_folds, false, clip, Run::new(seed, progress))?;
    let propensity = first.take_propensity()?;
    let axes = axes::TreatmentAxes::of_policies(trial.model, policies)?;
    let names = trial.model.manifest().encoder.names();
    let balance = balance::balance(&data, &features, &names, &axes, &propensity.propensity);
    checks.push(balance.check);
    validation.balance = balance.features;

    for (calibration, check) in outcome_model::calibrations(trial, &data) {
        validation.outcome_model.extend(calibration);
        checks.push(check);
    }

    let (overlaps, check) = overlap::overlap(trial, &data, &propensity);
    validation.overlap = overlaps;
    checks.push(check);

    if placebo > 0 {
        let found = placebo::placebo(trial, &data, placebo, Run::new(seed, progress))?;
        checks.extend(found.iter().map(placebo::check));
        validation.placebo = found;
    }
    if data.propensity_origin() == PropensityOrigin::Learned {
        let found = sensitivity::sensitivity(trial, &data, &propensity.propensity, level);
        checks.extend(sensitivity::checks(trial, &data, &found));
        validation.sensitivity = found;
    }
    checks.sort_by_key(|check| check.verdict);
    validation.checks = checks;
    Ok(validation)
}

fn check_result(name: &str, verdict: Verdict, text: String) -> CheckResult {
    CheckResult { name: name.to_owned(), verdict, text }
}

/// The number with three significant digits.
fn short(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if !(-4..7).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    format!("{value:.*}", (2 - magnitude).max(0) as usize)
}
