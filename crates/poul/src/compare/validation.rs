//! The validation R-loss, the only number that settings are chosen by: mean (Y − m̂(X) − τ̂(X; T) + Σ_t π̂(t|X) τ̂(X; t))²
//! over rows that no learner was trained on, with one m̂ and π̂ for all (Sec. 2.2 of the paper).

use super::part::{Part, Setting, Table};
use crate::data::Design;
use crate::effect::EffectModel;
use crate::net::RowSource;
use crate::nuisance::{
    Assignment, Folds, KnownDesign, OutcomeLoss, OutcomeParams, OutcomeProblem, Propensity, PropensityColumn,
    PropensityParams, SomeRows, fit_outcome, fit_propensity,
};
use crate::{Error, Progress, Result, Seed};

/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;

/// Held-out rows and what is expected of them without effects.
pub(crate) struct Validation {
    pub(crate) part: Part,
    /// For each outcome, Y − m̂(X) in standard deviations of the training rows.
    residual: Vec<Vec<f64>>,
    /// The standard deviation of each outcome over the training rows.
    scales: Vec<f64>,
    propensity: Propensity,
    /// The policies with a propensity, without the control.
    targets: Vec<usize>,
}

impl Validation {
    /// Fits m and π once, on the training rows.
    pub(crate) fn new(
        table: &Table,
        train: &Part,
        part: Part,
        setting: &Setting<'_>,
        seed: Seed,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let all = table.x();
        let (moments, given) = (moments(train), Given::new(train, &part));
        let predicted = outcome_model(all, train, &part, &moments, &given, seed, progress)?;
        let n_outcomes = moments.len();
        let residual = (0..n_outcomes).map(|outcome| {
            let (mean, sd) = moments[outcome];
            let expected = predicted.iter().skip(outcome).step_by(n_outcomes);
            let values = part.outcomes[outcome].iter().zip(expected);
            values.map(|(y, m)| (y - mean) / sd - f64::from(*m)).collect()
        });
        let residual = residual.collect();
        let propensity = propensity(table, all, train, &part, setting, seed, progress)?;
        let mut is_run = vec![false; setting.policies.len()];
        train.policy.iter().chain(&part.policy).for_each(|policy| is_run[*policy as usize] = true);
        let targets =
            (0..is_run.len()).filter(|policy| is_run[*policy] && *policy != setting.control).collect();
        let scales = moments.iter().map(|(_, sd)| *sd).collect();
        Ok(Self { part, residual, scales, propensity, targets })
    }

    /// The R-loss of each outcome, in units of its variance over the training rows.
    pub(crate) fn r_loss(
        &self,
        table: &Table,
        setting: &Setting<'_>,
        effects: &dyn EffectModel,
    ) -> Result<Vec<f64>> {
        let (n_outcomes, n_targets) = (self.residual.len(), self.targets.len());
        let scorer = effects.prepare(setting.policies, &self.targets, setting.control)?;
        let mut place = vec![None; setting.policies.len()];
        self.targets.iter().enumerate().for_each(|(index, policy)| place[*policy] = Some(index));
        let all = table.x();
        let (mut losses, mut mass) = (vec![0.0; n_outcomes], 0.0);
        let block_rows = (BLOCK_PAIRS / n_targets.max(1)).max(64);
        for (block, rows) in self.part.rows.chunks(block_rows).enumerate() {
            let scores = scorer.score(&SomeRows { x: all, rows }, false)?;
            for index in 0..rows.len() {
                let row = block * block_rows + index;
                let weight = self.part.weight_of(row);
                mass += weight;
                let shares = self.propensity.of_row(row, setting.policies.len());
                let own = place[self.part.policy[row] as usize];
                for (outcome, loss) in losses.iter_mut().enumerate() {
                    let effects = &scores.mean[outcome][index * n_targets..][..n_targets];
                    let expected: f64 = self
                        .targets
                        .iter()
                        .zip(effects)
                        .map(|(policy, effect)| f64::from(shares[*policy]) * f64::from(*effect))
                        .sum();
                    let own = own.map_or(0.0, |own| f64::from(effects[own]));
                    let error = self.residual[outcome][row] - (own - expected) / self.scales[outcome];
                    *loss += weight * error * error;
                }
            }
        }
        let losses: Vec<f64> = losses.into_iter().map(|loss| loss / mass).collect();
        match losses.iter().all(|loss| loss.is_finite()) {
            true => Ok(losses),
            false => Err(Error::other("the validation R-loss is not finite")
                .hint("the effects overflow: lower the learning rate, or look at the outcomes")),
        }
    }
}

/// Weighted mean and standard deviation of each outcome.
fn moments(part: &Part) -> Vec<(f64, f64)> {
    let mass: f64 = (0..part.n_rows()).map(|row| part.weight_of(row)).sum();
    let of = |values: &Vec<f64>| {
        let mean_of = |value: &dyn Fn(f64) -> f64| {
            let terms = values.iter().enumerate().map(|(row, y)| part.weight_of(row) * value(*y));
            terms.sum::<f64>() / mass
        };
        let mean = mean_of(&|y| y);
        let sd = mean_of(&|y| (y - mean).powi(2)).sqrt();
        (mean, if sd > 0.0 { sd } else { 1.0 })
    };
    part.outcomes.iter().map(of).collect()
}

/// The user's own predictions in standard units, of training and of validation rows.
struct Given {
    outcomes: Vec<usize>,
    train: Vec<Vec<f32>>,
    held: Vec<Vec<f32>>,
}

impl Given {
    fn new(train: &Part, held: &Part) -> Self {
        let moments = moments(train);
        let units = |part: &Part| {
            let of = |(outcome, values): &(usize, Vec<f64>)| {
                let (mean, sd) = moments[*outcome];
                values.iter().map(|value| ((value - mean) / sd) as f32).collect()
            };
            part.predictions.iter().map(of).collect()
        };
        let outcomes = train.predictions.iter().map(|(outcome, _)| *outcome).collect();
        Self { outcomes, train: units(train), held: units(held) }
    }

    fn pairs<'a>(&self, values: &'a [Vec<f32>]) -> Vec<(usize, &'a [f32])> {
        self.outcomes.iter().copied().zip(values.iter().map(Vec::as_slice)).collect()
    }
}

/// m̂ of the held-out rows, by a model of the training rows; row-major, in standard units.
fn outcome_model(
    all: &dyn RowSource,
    train: &Part,
    held: &Part,
    moments: &[(f64, f64)],
    given: &Given,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Vec<f32>> {
    let n_outcomes = moments.len();
    let mut outcomes = vec![0.0; train.n_rows() * n_outcomes];
    for (outcome, ((mean, sd), values)) in moments.iter().zip(&train.outcomes).enumerate() {
        let column = outcomes.iter_mut().skip(outcome).step_by(n_outcomes);
        column.zip(values).for_each(|(out, value)| *out = ((value - mean) / sd) as f32);
    }
    let weight = single(train.weight.as_deref());
    let x = train.x(all);
    let pairs = given.pairs(&given.train);
    let losses = vec![OutcomeLoss::Squared; n_outcomes];
    let problem = OutcomeProblem {
        weight: weight.as_deref(),
        cluster: train.cluster.as_deref(),
        given: &pairs,
        ..OutcomeProblem::new(&x, &outcomes, &losses)
    };
    let folds = Folds::deal(train.n_rows(), train.cluster.as_deref(), 1, seed);
    let params = OutcomeParams::default().check()?;
    let fit = fit_outcome(&problem, &folds, &params, seed.child("outcome model"), progress)?;
    fit.models.predict(&held.x(all), &given.pairs(&given.held))
}

/// π̂ of the held-out rows: as designed where it was, learned on the training rows otherwise.
fn propensity(
    table: &Table,
    all: &dyn RowSource,
    train: &Part,
    held: &Part,
    setting: &Setting<'_>,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Propensity> {
    let params = PropensityParams::default().check()?;
    let is_learned = setting.design == Design::Observational && train.propensity.is_empty();
    let mut rows = train.rows.clone();
    if !is_learned {
        rows.extend(&held.rows);
    }
    let part = table.part(rows);
    let weight = single(part.weight.as_deref());
    let assignment = Assignment {
        policy_names: setting.policies.names(),
        policy: &part.policy,
        weight: weight.as_deref(),
        cluster: part.cluster.as_deref(),
        rows: Some(&part.numbers),
    };
    let dataset = &table.dataset;
    let columns: Vec<PropensityColumn<'_>> = dataset
        .propensity_columns
        .iter()
        .zip(&part.propensity)
        .map(|(own, values)| PropensityColumn { column: &own.column, policy: &own.policy, values })
        .collect();
    let x = part.x(all);
    let folds = Folds::deal(part.n_rows(), part.cluster.as_deref(), 1, seed);
    let known = KnownDesign {
        design: setting.design,
        columns: &columns,
        stratum: part.stratum.as_deref().map(|stratum| (stratum, dataset.stratum_labels.names())),
        table: setting.strata_table.as_ref(),
        features: Some((&x, &folds)),
    };
    let design = known.require()?;
    let fit = fit_propensity(&assignment, &design, &params, seed.child("propensity"), progress)?;
    match fit.models {
        Some(models) => models.predict(&held.x(all)),
        None => {
            let places: Vec<u32> = (train.n_rows() as u32..part.n_rows() as u32).collect();
            Ok(fit.propensity.subset(&places, setting.policies.len()))
        }
    }
}

fn single(weight: Option<&[f64]>) -> Option<Vec<f32>> {
    weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect())
}
