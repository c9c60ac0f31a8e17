//! Stage 1: outcomes in standard units, m and π out of fold (Sec. 2.2 of the paper).

use crate::data::Design;
use crate::effect::ValidTrainingData;
use crate::nuisance::{
    Assignment, AssignmentDesign, Folds, OutcomeFit, OutcomeLoss, OutcomeParams, OutcomeProblem,
    PropensityColumn, PropensityFit, PropensityParams, fit_outcome, fit_propensity,
};
use crate::{Error, Progress, Result, Seed};

/// Outcomes less what the outcome model expects, in standard units.
pub(crate) struct Residuals {
    /// Row-major, one column per outcome.
    pub(crate) values: Vec<f32>,
    /// The standard deviation of each outcome.
    pub(crate) scales: Vec<f64>,
    pub(super) outcome: OutcomeFit,
}

/// The residuals that this learner works on, for rivals that share its first stage: the same streams, the same bits.
pub(crate) fn residuals(
    data: &ValidTrainingData<'_>,
    n_folds: usize,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Residuals> {
    let seed = seed.child("poul");
    let weight: Option<Vec<f32>> =
        data.weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect());
    let folds = folds(data, n_folds, seed);
    out_of_fold(data, weight.as_deref(), &folds, OutcomeLoss::Squared, seed, progress)
}

pub(super) fn folds(data: &ValidTrainingData<'_>, n_folds: usize, seed: Seed) -> Folds {
    Folds::deal(data.n_rows(), data.cluster, n_folds, seed.child("folds"))
}

pub(super) fn out_of_fold(
    data: &ValidTrainingData<'_>,
    weight: Option<&[f32]>,
    folds: &Folds,
    loss: OutcomeLoss,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Residuals> {
    let scaled = Scaled::new(data, loss);
    let outcome = fit_m(data, &scaled, weight, folds, loss, seed, progress)?;
    let values = scaled.values.iter().zip(&outcome.predicted).map(|(y, m)| y - m).collect();
    Ok(Residuals { values, scales: scaled.scales, outcome })
}

/// Outcomes in standard units, row-major.
struct Scaled {
    values: Vec<f32>,
    /// The user's own predictions in the same units, by outcome.
    given: Vec<(usize, Vec<f32>)>,
    scales: Vec<f64>,
}

impl Scaled {
    /// A 0/1 outcome keeps its units under the logistic loss.
    fn new(data: &ValidTrainingData<'_>, loss: OutcomeLoss) -> Self {
        let (n_rows, n_outcomes) = (data.n_rows(), data.outcomes.len());
        let mut scaled =
            Self { values: vec![0.0; n_rows * n_outcomes], given: Vec::new(), scales: Vec::new() };
        for (idx, outcome) in data.outcomes.iter().enumerate() {
            let (mean, sd) = match loss {
                OutcomeLoss::Squared => moments(outcome.values, data.weight),
                OutcomeLoss::Logistic => (0.0, 1.0),
            };
            let units = |value: f64| ((value - mean) / sd) as f32;
            let column = scaled.values.iter_mut().skip(idx).step_by(n_outcomes);
            column.zip(outcome.values).for_each(|(scaled, value)| *scaled = units(*value));
            if let Some(prediction) = outcome.prediction {
                scaled.given.push((idx, prediction.iter().map(|value| units(*value)).collect()));
            }
            scaled.scales.push(sd);
        }
        scaled
    }
}

/// Weighted mean and standard deviation.
fn moments(values: &[f64], weight: Option<&[f64]>) -> (f64, f64) {
    let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
    let total: f64 = (0..values.len()).map(weight_of).sum();
    let mean = values.iter().enumerate().map(|(row, value)| weight_of(row) * value).sum::<f64>() / total;
    let squares: f64 =
        values.iter().enumerate().map(|(row, value)| weight_of(row) * (value - mean).powi(2)).sum();
    (mean, (squares / total).sqrt())
}

fn fit_m(
    data: &ValidTrainingData<'_>,
    scaled: &Scaled,
    weight: Option<&[f32]>,
    folds: &Folds,
    loss: OutcomeLoss,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<OutcomeFit> {
    let losses = vec![loss; data.outcomes.len()];
    let given: Vec<(usize, &[f32])> =
        scaled.given.iter().map(|(outcome, values)| (*outcome, values.as_slice())).collect();
    let problem = OutcomeProblem {
        weight,
        cluster: data.cluster,
        given: &given,
        ..OutcomeProblem::new(data.x, &scaled.values, &losses)
    };
    fit_outcome(&problem, folds, &OutcomeParams::default().check()?, seed.child("outcome model"), progress)
}

pub(super) fn fit_pi(
    data: &ValidTrainingData<'_>,
    weight: Option<&[f32]>,
    folds: &Folds,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<PropensityFit> {
    let assignment = Assignment {
        policy_names: data.policies.names(),
        policy: data.policy,
        weight,
        cluster: data.cluster,
        rows: data.rows,
    };
    let columns: Vec<PropensityColumn<'_>> = data
        .propensity
        .iter()
        .map(|(policy, values)| {
            let policy = data.policies.name(*policy);
            PropensityColumn { column: policy, policy, values }
        })
        .collect();
    let labels: Vec<std::sync::Arc<str>> = match data.stratum {
        Some(stratum) => {
            (0..=stratum.iter().copied().max().unwrap_or(0)).map(|code| code.to_string().into()).collect()
        }
        None => Vec::new(),
    };
    let design = match (data.design, data.stratum) {
        _ if !columns.is_empty() => AssignmentDesign::Columns(&columns),
        (Design::Randomized, _) => AssignmentDesign::Randomized,
        (Design::Stratified, Some(stratum)) => {
            AssignmentDesign::Stratified { stratum, labels: &labels, table: None }
        }
        (Design::Stratified, None) => {
            return Err(
                Error::usage("a stratified design needs strata").hint("name the column: --stratum COL")
            );
        }
        (Design::Observational, _) => AssignmentDesign::Observational { x: data.x, folds },
    };
    fit_propensity(
        &assignment,
        &design,
        &PropensityParams::default().check()?,
        seed.child("propensity"),
        progress,
    )
}

pub(super) fn notes(
    data: &ValidTrainingData<'_>,
    outcome: &OutcomeFit,
    propensity: Option<&PropensityFit>,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (column, _) in data.outcomes.iter().zip(&outcome.r2).filter(|(_, r2)| **r2 <= 0.0) {
        notes.push(format!("the outcome model explains nothing of `{}`", column.name));
    }
    if let Some(report) = propensity.map(|fit| &fit.report).filter(|report| report.clipped_rows > 0) {
        notes.push(format!(
            "propensities were clipped in {} rows ({:.1} %)",
            report.clipped_rows,
            100.0 * report.clipped_share
        ));
    }
    notes
}
