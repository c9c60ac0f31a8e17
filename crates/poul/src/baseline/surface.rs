//! Rivals that are networks of outcomes under treatments, μ(x, t): what they are, and how they are trained.
//!
//! A rival says which weights it has and what μ is; the rest, τ(x; t1, t0) = μ(x, t1) − μ(x, t0), is the same for all.
//! Each outcome has networks of its own, in standard units.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fitted::{Fitted, Manifest};
use super::params::{TrainingParams, read_table};
use super::treatments::{Chosen, Tier, Treatments};
use crate::effect::{Phase, Settings, Trained, ValidTrainingData};
use crate::net::{
    Batch, Layout, LayoutBuilder, Network, RowSource, Tape, Trainer, TrainerParams, Var, predict,
    train as run_epochs,
};
use crate::nuisance::{Folds, SomeRows};
use crate::{Error, Progress, Result, Seed};

/// A network of outcomes under treatments.
pub(super) trait Surface: Sized + Send + Sync {
    /// The learner's name.
    const NAME: &'static str;
    /// `[model]` of its settings.
    type Model: Serialize + DeserializeOwned + Default + Clone + Send + Sync;

    /// Checks `[model]`.
    fn check(model: &Self::Model) -> Result<()>;

    /// What it sees of a policy.
    fn tier(model: &Self::Model) -> Tier;

    /// Networks trained side by side and averaged.
    fn members(model: &Self::Model) -> usize;

    /// Declares the weights.
    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &Self::Model) -> Self;

    /// What all rows share; `treatments` are the arms in training, and those asked for in scoring.
    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        let _ = (tape, treatments);
    }

    /// μ of each row under its own treatment, an index into the treatments of [`shared`](Self::shared).
    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var;

    /// μ of each row under every treatment, one column each.
    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var;

    /// The loss of a shard: by default the squared error of [`factual`](Self::factual).
    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let prediction = self.factual(tape, rows.treatments, &own);
        rows.squared_loss(tape, prediction, batch)
    }
}

/// Everything that decides which weights a network has.
pub(super) struct Shape<'a> {
    pub(super) n_features: usize,
    pub(super) treatments: &'a Treatments,
}

/// The rows that one outcome is learned from.
pub(super) struct Rows<'a> {
    /// The arms.
    pub(super) treatments: &'a Chosen,
    /// The arm of each row.
    pub(super) arm: &'a [u32],
    /// The outcome in standard units.
    pub(super) outcome: &'a [f32],
    pub(super) weight: Option<&'a [f32]>,
    /// Of each arm, what makes all arms weigh the same: 1 / (arms · its share).
    pub(super) balance: &'a [f32],
}

impl Rows<'_> {
    /// The weighted mean squared error of predictions, one each row.
    pub(super) fn squared_loss(&self, tape: &mut Tape<'_>, prediction: Var, batch: &Batch<'_>) -> Var {
        let target = tape.column(batch.pick(self.outcome));
        match self.weight {
            None => tape.squared_loss(prediction, target, None, batch.scale()),
            Some(weight) => {
                let weights = tape.column(batch.pick(weight));
                tape.squared_loss(prediction, target, Some(weights), batch.weighted_scale(weight))
            }
        }
    }

    /// The same where every arm counts as much as any other: w = t/(2u) + (1 − t)/(2(1 − u)) for two arms.
    pub(super) fn balanced_loss(&self, tape: &mut Tape<'_>, prediction: Var, batch: &Batch<'_>) -> Var {
        let target = tape.column(batch.pick(self.outcome));
        let weights = self.balanced_weights(tape, batch);
        tape.squared_loss(prediction, target, Some(weights), self.scale(batch))
    }

    /// Weight times balance of each row, as a column.
    pub(super) fn balanced_weights(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let weight = |row: u32| self.weight.map_or(1.0, |weight| weight[row as usize]);
        let balance = |row: u32| self.balance[self.arm[row as usize] as usize];
        tape.column(batch.rows.iter().map(|row| weight(*row) * balance(*row)))
    }

    /// Sample weights as a column; 1 where there are none.
    pub(super) fn weights(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        tape.column(batch.rows.iter().map(|row| self.weight.map_or(1.0, |weight| weight[*row as usize])))
    }

    /// What makes weighted sums over the shards of a batch a mean.
    pub(super) fn scale(&self, batch: &Batch<'_>) -> f32 {
        self.weight.map_or_else(|| batch.scale(), |weight| batch.weighted_scale(weight))
    }

    /// The weighted mean squared error of predictions for some rows.
    fn held_loss(&self, rows: &[u32], predicted: &[f32]) -> f64 {
        let (mut total, mut mass) = (0.0, 0.0);
        for (row, predicted) in rows.iter().zip(predicted) {
            let row = *row as usize;
            let weight = self.weight.map_or(1.0, |weight| f64::from(weight[row]));
            mass += weight;
            total += weight * (f64::from(self.outcome[row]) - f64::from(*predicted)).powi(2);
        }
        total / mass.max(f64::MIN_POSITIVE)
    }
}

/// Completes settings with defaults; refuses unknown names and values out of range.
pub(super) fn settle<S: Surface>(settings: &Settings) -> Result<Settings> {
    let (model, training) = read::<S>(settings)?;
    Settings::of(None, &model, &training)
}

fn read<S: Surface>(settings: &Settings) -> Result<(S::Model, TrainingParams)> {
    if let Some(preset) = &settings.preset {
        return Err(Error::usage(format!("the learner `{}` has no preset `{preset}`", S::NAME)));
    }
    let model: S::Model = read_table("model", &settings.model)?;
    let training: TrainingParams = read_table("training", &settings.training)?;
    S::check(&model)?;
    if !(1..=256).contains(&S::members(&model)) {
        return Err(Error::usage("`model.members` is out of range").hint("it must be 1 to 256"));
    }
    training.check()?;
    Ok((model, training))
}

/// Fits the networks of every outcome.
pub(super) fn train<S: Surface + 'static>(
    data: &ValidTrainingData<'_>,
    settings: &Settings,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Trained> {
    let (model, training) = read::<S>(settings)?;
    let seed = seed.child(S::NAME);
    let treatments = Treatments::new(data, S::tier(&model));
    let arms = treatments.arms.iter().map(|name| data.policies.require(name)).collect::<Result<Vec<_>>>()?;
    let chosen = treatments.choose(data.policies, &arms)?;
    let mut arm_of = vec![0; data.policies.len()];
    arms.iter().enumerate().for_each(|(arm, policy)| arm_of[*policy] = arm as u32);
    let arm: Vec<u32> = data.policy.iter().map(|policy| arm_of[*policy as usize]).collect();
    let weight: Option<Vec<f32>> =
        data.weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect());
    let mass: Vec<f64> = arms.iter().map(|policy| data.policy_mass()[*policy]).collect();
    let total: f64 = mass.iter().sum();
    let balance: Vec<f32> = mass.iter().map(|own| (total / (own * mass.len() as f64)) as f32).collect();
    let (fitted, held) = split(data, training.validation_share, seed);
    let (surface, layout) = build::<S>(data.x.n_cols(), &treatments, &model)?;
    let mut fit = Fitted {
        manifest: Manifest {
            outcomes: Vec::new(),
            scales: Vec::new(),
            n_features: data.x.n_cols(),
            treatments,
            model,
        },
        surface,
        layout,
        weights: Vec::new(),
    };
    let mut history = Vec::new();
    for (index, outcome) in data.outcomes.iter().enumerate() {
        let (values, sd) = standard(outcome.values, data.weight);
        let rows = Rows {
            treatments: &chosen,
            arm: &arm,
            outcome: &values,
            weight: weight.as_deref(),
            balance: &balance,
        };
        let stage = format!("{}: {}", S::NAME, outcome.name);
        let problem = Problem { rows, x: data.x, fitted: &fitted, held: &held, stage };
        let trained = problem.fit(&fit, &training, seed.child("outcome").index(index as u64), progress)?;
        history.push(Phase {
            name: outcome.name.to_owned(),
            epochs: trained.history,
            best: Some(trained.best),
        });
        fit.manifest.outcomes.push(outcome.name.to_owned());
        fit.manifest.scales.push(sd);
        fit.weights.push(trained.weights);
    }
    Ok(Trained { effects: Box::new(fit), history, notes: Vec::new() })
}

pub(super) fn build<S: Surface>(
    n_features: usize,
    treatments: &Treatments,
    model: &S::Model,
) -> Result<(S, Layout)> {
    let mut layout = Layout::builder();
    let surface = S::build(&mut layout, &Shape { n_features, treatments }, model);
    Ok((surface, layout.finish()?))
}

/// Rows to learn from and rows to validate on, by cluster.
pub(super) fn split(data: &ValidTrainingData<'_>, share: f64, seed: Seed) -> (Vec<u32>, Vec<u32>) {
    if share <= 0.0 {
        return ((0..data.n_rows() as u32).collect(), Vec::new());
    }
    let n_parts = (1.0 / share).round().max(2.0) as usize;
    let parts = Folds::deal(data.n_rows(), data.cluster, n_parts, seed.child("validation"));
    (parts.rest(0), parts.rows(0))
}

/// An outcome in standard units, and its weighted standard deviation.
pub(super) fn standard(values: &[f64], weight: Option<&[f64]>) -> (Vec<f32>, f64) {
    let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
    let mass: f64 = (0..values.len()).map(weight_of).sum();
    let mean = values.iter().enumerate().map(|(row, value)| weight_of(row) * value).sum::<f64>() / mass;
    let squares = values.iter().enumerate().map(|(row, value)| weight_of(row) * (value - mean).powi(2));
    let sd = (squares.sum::<f64>() / mass).sqrt();
    (values.iter().map(|value| ((value - mean) / sd) as f32).collect(), sd)
}

/// One outcome to fit.
struct Problem<'a> {
    rows: Rows<'a>,
    x: &'a dyn RowSource,
    fitted: &'a [u32],
    held: &'a [u32],
    stage: String,
}

impl Problem<'_> {
    fn fit<S: Surface>(
        &self,
        fit: &Fitted<S>,
        training: &TrainingParams,
        seed: Seed,
        progress: &dyn Progress,
    ) -> Result<crate::net::Trained> {
        let Fitted { surface, layout, manifest, .. } = fit;
        let members = TrainerParams { n_members: S::members(&manifest.model), ..TrainerParams::default() };
        let mut trainer =
            Trainer::new(layout.clone(), training.adam().check()?, members, seed.child("start"))?;
        let held = SomeRows { x: self.x, rows: self.held };
        let own: Vec<u32> = self.held.iter().map(|row| self.rows.arm[*row as usize]).collect();
        let factual = Factual { surface, treatments: self.rows.treatments, own: &own };
        let mut validate = |trainer: &Trainer| {
            if self.held.is_empty() {
                return Ok(None);
            }
            let mut mean = vec![0.0; self.held.len()];
            for member in 0..trainer.n_members() {
                let predicted =
                    predict(layout, trainer.averaged_weights(member), &factual, &held, 1, member)?;
                mean.iter_mut().zip(predicted).for_each(|(mean, value)| *mean += value);
            }
            mean.iter_mut().for_each(|mean| *mean /= trainer.n_members() as f32);
            Ok(Some(self.rows.held_loss(self.held, &mean)))
        };
        let schedule = training.schedule();
        progress.start(&self.stage, "rows", Some(schedule.most_rows(self.fitted.len())));
        let loss = Loss { surface, rows: &self.rows };
        let order = seed.child("order");
        let trained =
            run_epochs(&mut trainer, self.x, self.fitted, &loss, &schedule, &mut validate, order, progress)?;
        progress.finish();
        Ok(trained)
    }
}

/// The loss on rows, as a network.
struct Loss<'a, S> {
    surface: &'a S,
    rows: &'a Rows<'a>,
}

impl<S: Surface> Network for Loss<'_, S> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.surface.shared(tape, self.rows.treatments);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        self.surface.loss(tape, self.rows, batch)
    }
}

/// μ of rows under their own treatments, as a network.
struct Factual<'a, S> {
    surface: &'a S,
    treatments: &'a Chosen,
    own: &'a [u32],
}

impl<S: Surface> Network for Factual<'_, S> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.surface.shared(tape, self.treatments);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(self.own).collect();
        self.surface.factual(tape, self.treatments, &own)
    }
}
