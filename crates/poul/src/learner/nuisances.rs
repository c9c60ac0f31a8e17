//! Stage 1: outcomes in standard units, m and π out of fold (Sec. 2.2 of the paper).

use super::params::{OutcomeTraining, Params};
use crate::effect::ValidTrainingData;
use crate::net::Schedule;
use crate::nuisance::{
    Assignment, ExtraRows, Folds, KnownDesign, OutcomeFit, OutcomeKind, OutcomeLoss, OutcomeParams,
    OutcomeProblem, PropensityColumn, PropensityFit, PropensityKind, PropensityParams, StackedRows,
    ValidOutcomeParams, ValidPropensityParams, fit_outcome, fit_propensity,
};
use crate::{Progress, Result, Seed, counted};

/// Folds where nothing is said, and where rows are few: there an outcome model that has seen 5 rows of 6 is much better than one
/// that has seen 4, and costs little.
const FOLDS: usize = 3;
const FOLDS_OF_FEW: usize = 6;
const FEW_ROWS: usize = 5_000;

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
    let params = OutcomeParams::default().check()?;
    out_of_fold(data, weight.as_deref(), &folds, &params, OutcomeLoss::Squared, seed, progress)
}

/// The folds of [`residuals`].
pub(crate) fn shared_folds(data: &ValidTrainingData<'_>, n_folds: usize, seed: Seed) -> Folds {
    folds(data, n_folds, seed.child("poul"))
}

/// The propensity that this learner works with, for rivals: the same folds, the same streams; and what to say of it.
pub(crate) fn propensity(
    data: &ValidTrainingData<'_>,
    n_folds: usize,
    clip: f32,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<(PropensityFit, Option<String>)> {
    let weight: Option<Vec<f32>> =
        data.weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect());
    let folds = shared_folds(data, n_folds, seed);
    let params = PropensityParams { clip, ..PropensityParams::default() }.check()?;
    let fit = fit_pi(data, weight.as_deref(), &folds, &params, seed.child("poul"), progress)?;
    let note = clipping_note(data, &fit, clip);
    Ok((fit, note))
}

/// The settings of m for so many rows, in range.
pub(super) fn outcome_params(params: &Params, n_rows: usize) -> Result<ValidOutcomeParams> {
    outcome_settings(params, n_rows).check()
}

/// The settings of m.
pub(super) fn outcome_settings(params: &Params, n_rows: usize) -> OutcomeParams {
    let (kind, hidden) = (params.model.outcome_model, params.model.outcome_hidden.clone());
    let own = OutcomeParams { kind, hidden, ..OutcomeParams::default() };
    let (model, training) = (&params.model, &params.training);
    match training.outcome_training {
        OutcomeTraining::Own => own,
        OutcomeTraining::AsEffects => OutcomeParams {
            dropout: model.dropout,
            learning_rate: training.learning_rate,
            weight_decay: training.decay_g,
            average: training.average,
            members: model.members,
            schedule: Schedule { epochs: training.all_epochs(), ..training.schedule(n_rows) },
            ..own
        },
    }
}

/// The settings of π where it is learned: by the same kind of model as m.
pub(super) fn propensity_params(params: &Params) -> Result<ValidPropensityParams> {
    let kind = match params.model.outcome_model {
        OutcomeKind::Mlp | OutcomeKind::Dragonnet => PropensityKind::Network,
        OutcomeKind::Boosted => PropensityKind::Boosted,
        OutcomeKind::Auto => PropensityKind::Auto,
    };
    PropensityParams { kind, clip: params.training.clip, ..PropensityParams::default() }.check()
}

/// The folds of m and π; 0: as many as the rows call for.
pub(super) fn folds(data: &ValidTrainingData<'_>, n_folds: usize, seed: Seed) -> Folds {
    let n_folds = match n_folds {
        0 if data.n_rows() <= FEW_ROWS => FOLDS_OF_FEW,
        0 => FOLDS,
        given => given,
    };
    Folds::deal(data.n_rows(), data.cluster, n_folds, seed.child("folds"))
}

/// Outcomes are taken in the order of their names, so that the order in which they are given changes nothing; what comes out
/// is in the order given, but for the models.
pub(super) fn out_of_fold(
    data: &ValidTrainingData<'_>,
    weight: Option<&[f32]>,
    folds: &Folds,
    params: &ValidOutcomeParams,
    loss: OutcomeLoss,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Residuals> {
    let mut order: Vec<usize> = (0..data.outcomes.len()).collect();
    order.sort_by_key(|idx| data.outcomes[*idx].name);
    let data = &data.with_outcomes(&order);
    let scaled = Scaled::new(data, loss);
    let mut outcome = fit_m(data, &scaled, weight, folds, params, loss, seed, progress)?;
    let mut values: Vec<f32> = scaled.values.iter().zip(&outcome.predicted).map(|(y, m)| y - m).collect();
    let mut scales = scaled.scales;
    if !order.is_sorted() {
        let place = |idx: usize| order.iter().position(|own| *own == idx).unwrap_or(idx);
        let places: Vec<usize> = (0..order.len()).map(place).collect();
        for values in [&mut values, &mut outcome.predicted] {
            for row in values.chunks_exact_mut(places.len()) {
                let own: Vec<f32> = places.iter().map(|place| row[*place]).collect();
                row.copy_from_slice(&own);
            }
        }
        scales = places.iter().map(|place| scales[*place]).collect();
        outcome.r2 = places.iter().map(|place| outcome.r2[*place]).collect();
        if !outcome.choices.is_empty() {
            outcome.choices = places.iter().map(|place| outcome.choices[*place].clone()).collect();
        }
    }
    Ok(Residuals { values, scales, outcome })
}

/// Outcomes in standard units, row-major: the experiment's units, for baseline rows too.
struct Scaled {
    values: Vec<f32>,
    /// The outcomes of all baseline rows.
    baseline: Vec<f32>,
    /// The user's own predictions in the same units, by outcome.
    given: Vec<(usize, Vec<f32>)>,
    scales: Vec<f64>,
}

impl Scaled {
    /// A 0/1 outcome keeps its units under the logistic loss.
    fn new(data: &ValidTrainingData<'_>, loss: OutcomeLoss) -> Self {
        let (n_rows, n_outcomes) = (data.n_rows(), data.outcomes.len());
        let n_baseline: usize = data.baseline.iter().map(|part| part.x.n_rows()).sum();
        let mut scaled = Self {
            values: vec![0.0; n_rows * n_outcomes],
            baseline: vec![0.0; n_baseline * n_outcomes],
            given: Vec::new(),
            scales: Vec::new(),
        };
        for (idx, outcome) in data.outcomes.iter().enumerate() {
            let (mean, sd) = match loss {
                OutcomeLoss::Squared => moments(outcome.values, data.weight),
                OutcomeLoss::Logistic => (0.0, 1.0),
            };
            let units = |value: f64| ((value - mean) / sd) as f32;
            let column = scaled.values.iter_mut().skip(idx).step_by(n_outcomes);
            column.zip(outcome.values).for_each(|(scaled, value)| *scaled = units(*value));
            let column = scaled.baseline.iter_mut().skip(idx).step_by(n_outcomes);
            let values = data.baseline.iter().flat_map(|part| part.outcomes[idx]);
            column.zip(values).for_each(|(scaled, value)| *scaled = units(*value));
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

#[expect(clippy::too_many_arguments, reason = "each is a different thing that only the caller has")]
fn fit_m(
    data: &ValidTrainingData<'_>,
    scaled: &Scaled,
    weight: Option<&[f32]>,
    folds: &Folds,
    params: &ValidOutcomeParams,
    loss: OutcomeLoss,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<OutcomeFit> {
    let losses = vec![loss; data.outcomes.len()];
    let given: Vec<(usize, &[f32])> =
        scaled.given.iter().map(|(outcome, values)| (*outcome, values.as_slice())).collect();
    let baseline = Baseline::new(data);
    let problem = OutcomeProblem {
        weight,
        cluster: data.cluster,
        given: &given,
        policy: Some(data.policy),
        extra: baseline.as_ref().map(|baseline| baseline.rows(&scaled.baseline)),
        ..OutcomeProblem::new(data.x, &scaled.values, &losses)
    };
    fit_outcome(&problem, folds, params, seed.child("outcome model"), progress)
}

/// All tables of baseline rows as one.
struct Baseline<'a> {
    x: StackedRows<'a>,
    weight: Option<Vec<f32>>,
    cluster: Option<Vec<u32>>,
}

impl<'a> Baseline<'a> {
    /// `None` without baseline rows.
    fn new(data: &ValidTrainingData<'a>) -> Option<Self> {
        let parts = &data.baseline;
        if parts.is_empty() {
            return None;
        }
        let weight = parts.iter().any(|part| part.weight.is_some()).then(|| {
            let weights = parts.iter().flat_map(|part| match part.weight {
                Some(weight) => weight.iter().map(|weight| *weight as f32).collect(),
                None => vec![1.0; part.x.n_rows()],
            });
            weights.collect()
        });
        let clusters: Option<Vec<&[u32]>> = parts.iter().map(|part| part.cluster).collect();
        Some(Self {
            x: StackedRows::new(parts.iter().map(|part| part.x).collect()),
            weight,
            cluster: clusters.map(|clusters| clusters.concat()),
        })
    }

    fn rows<'b>(&'b self, outcomes: &'b [f32]) -> ExtraRows<'b> {
        let (weight, cluster) = (self.weight.as_deref(), self.cluster.as_deref());
        ExtraRows { x: &self.x, outcomes, weight, cluster }
    }
}

pub(super) fn fit_pi(
    data: &ValidTrainingData<'_>,
    weight: Option<&[f32]>,
    folds: &Folds,
    params: &ValidPropensityParams,
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
        .map(|given| {
            let policy = data.policies.name(given.policy);
            PropensityColumn { column: given.column, policy, values: given.values }
        })
        .collect();
    let known = KnownDesign {
        design: data.design,
        columns: &columns,
        stratum: data.stratum.map(|stratum| (stratum, data.stratum_labels)),
        table: data.stratum_table,
        features: Some((data.x, folds)),
    };
    let design = known.require()?;
    fit_propensity(&assignment, &design, params, seed.child("propensity"), progress)
}

pub(super) fn notes(
    data: &ValidTrainingData<'_>,
    outcome: &OutcomeFit,
    propensity: Option<&PropensityFit>,
    clip: f32,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (column, _) in data.outcomes.iter().zip(&outcome.r2).filter(|(_, r2)| **r2 <= 0.0) {
        notes.push(format!("the outcome model does not predict `{}`", column.name));
    }
    notes.extend(propensity.and_then(|fit| clipping_note(data, fit, clip)));
    notes
}

fn clipping_note(data: &ValidTrainingData<'_>, fit: &PropensityFit, clip: f32) -> Option<String> {
    let report = Some(&fit.report).filter(|report| report.clipped_rows > 0)?;
    let own_share = report.clipped_own_rows as f64 / data.n_rows() as f64;
    Some(format!(
        "{} ({:.1} %) received a policy whose estimated probability was below the floor (`clip` = {clip}), and {} ({:.1} %) \
         had some policy below it: there is little overlap there",
        counted(report.clipped_own_rows, "row", "rows"),
        100.0 * own_share,
        counted(report.clipped_rows, "row", "rows"),
        100.0 * report.clipped_share,
    ))
}
