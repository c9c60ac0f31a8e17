//! The outcome model m(x) ≈ E[Y | X = x], a network for each outcome, cross-fitted.

use crate::net::{
    Activation, AdamParams, Batch, Epoch, Init, Layout, Mlp, Network, RowSource, Schedule, Tape, Trainer,
    TrainerParams, Var, predict, train,
};
use crate::{Progress, Result, Seed};

use super::Folds;

/// Settings of the outcome model.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeParams {
    /// Widths of the hidden layers. Default 128, 64.
    pub hidden: Vec<usize>,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub dropout: f32,
    /// Learning rate. Default 1e-3; above 0.
    pub learning_rate: f32,
    /// Decoupled weight decay. Default 0.05; at least 0.
    pub weight_decay: f32,
    /// Decay of the running average of weights. Default 0.995.
    pub average: f32,
    /// Networks trained side by side and averaged. Default 2.
    pub members: usize,
    /// How long to train.
    pub schedule: Schedule,
}

impl Default for OutcomeParams {
    fn default() -> Self {
        Self {
            hidden: vec![128, 64],
            dropout: 0.1,
            learning_rate: 1e-3,
            weight_decay: 0.05,
            average: 0.995,
            members: 2,
            schedule: Schedule { epochs: 40, patience: 4, ..Schedule::default() },
        }
    }
}

/// A fitted outcome model: the networks of one fold.
#[derive(Clone, Debug)]
pub struct OutcomeModel {
    network: OutcomeNet,
    layout: Layout,
    weights: Vec<Vec<f32>>,
    /// How training went.
    pub history: Vec<Epoch>,
}

#[derive(Clone, Debug)]
struct OutcomeNet {
    heads: Vec<Mlp>,
}

impl OutcomeNet {
    fn forward(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        let outputs: Vec<Var> = self.heads.iter().map(|head| head.forward(tape, x)).collect();
        tape.concat(&outputs)
    }
}

struct Training<'a> {
    network: &'a OutcomeNet,
    /// Row-major, one column per outcome.
    outcomes: &'a [f32],
    weight: Option<&'a [f32]>,
}

impl Network for Training<'_> {
    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let prediction = self.network.forward(tape);
        let target = tape.table_rows(self.outcomes, self.network.heads.len(), batch.rows);
        match self.weight {
            None => tape.squared_loss(prediction, target, None, batch.scale()),
            Some(weight) => {
                let weights = tape.column(batch.pick(weight));
                tape.squared_loss(prediction, target, Some(weights), batch.weighted_scale(weight))
            }
        }
    }
}

impl OutcomeModel {
    /// Fits on `rows`, of which every tenth unit is kept for early stopping (`held` says which).
    pub fn fit(
        x: &dyn RowSource,
        outcomes: &[f32],
        weight: Option<&[f32]>,
        rows: &[u32],
        held: &[u32],
        params: &OutcomeParams,
        seed: Seed,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let n_outcomes = outcomes.len() / x.n_rows().max(1);
        let mut builder = Layout::builder();
        let group = builder.group("m");
        let mut widths = vec![x.n_cols()];
        widths.extend(&params.hidden);
        widths.push(1);
        let head = |outcome: usize| {
            let name = format!("m.{outcome}");
            Mlp::new(&mut builder, &name, &widths, Activation::Relu, Init::Uniform, group).dropout(params.dropout)
        };
        let network = OutcomeNet { heads: (0..n_outcomes).map(head).collect() };
        let layout = builder.finish()?;
        let adam = AdamParams {
            learning_rate: params.learning_rate,
            weight_decay: params.weight_decay,
            average: Some(params.average),
            ..AdamParams::default()
        };
        let trainer = TrainerParams { n_members: params.members, ..TrainerParams::default() };
        let mut trainer = Trainer::new(layout.clone(), adam.check()?, trainer, seed.child("start"))?;
        let training = Training { network: &network, outcomes, weight };
        let mut validate = |trainer: &Trainer| {
            if held.is_empty() {
                return Ok(None);
            }
            let weights: Vec<Vec<f32>> =
                (0..trainer.n_members()).map(|member| trainer.averaged_weights(member).to_vec()).collect();
            let predicted = mean_prediction(&network, &layout, &weights, &SomeRows { x, rows: held })?;
            Ok(Some(squared_error(&predicted, outcomes, weight, held, n_outcomes)))
        };
        let trained =
            train(&mut trainer, x, rows, &training, &params.schedule, &mut validate, seed.child("order"), progress)?;
        Ok(Self { network, layout, weights: trained.weights, history: trained.history })
    }

    /// Predictions, row-major with one column per outcome.
    pub fn predict(&self, x: &dyn RowSource) -> Result<Vec<f32>> {
        mean_prediction(&self.network, &self.layout, &self.weights, x)
    }
}

/// Some rows of a source, by number.
pub(crate) struct SomeRows<'a> {
    pub(crate) x: &'a dyn RowSource,
    pub(crate) rows: &'a [u32],
}

impl RowSource for SomeRows<'_> {
    fn n_rows(&self) -> usize {
        self.rows.len()
    }

    fn n_cols(&self) -> usize {
        self.x.n_cols()
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        let rows: Vec<u32> = rows.iter().map(|row| self.rows[*row as usize]).collect();
        self.x.copy_rows(&rows, out);
    }
}

fn mean_prediction(
    network: &OutcomeNet,
    layout: &Layout,
    weights: &[Vec<f32>],
    x: &dyn RowSource,
) -> Result<Vec<f32>> {
    let n_out = network.heads.len();
    let outputs = |tape: &mut Tape<'_>, _: &Batch<'_>| network.forward(tape);
    let mut mean = vec![0.0; x.n_rows() * n_out];
    for (member, weights) in weights.iter().enumerate() {
        let predicted = predict(layout, weights, &outputs, x, n_out, member)?;
        mean.iter_mut().zip(predicted).for_each(|(mean, value)| *mean += value);
    }
    mean.iter_mut().for_each(|mean| *mean /= weights.len() as f32);
    Ok(mean)
}

fn squared_error(predicted: &[f32], outcomes: &[f32], weight: Option<&[f32]>, rows: &[u32], n_out: usize) -> f64 {
    let (mut total, mut mass) = (0.0, 0.0);
    for (predicted, row) in predicted.chunks(n_out).zip(rows) {
        let row = *row as usize;
        let w = weight.map_or(1.0, |weight| f64::from(weight[row]));
        mass += w;
        for (predicted, outcome) in predicted.iter().zip(&outcomes[row * n_out..]) {
            total += w * f64::from(predicted - outcome).powi(2);
        }
    }
    total / mass.max(f64::MIN_POSITIVE)
}

/// m fitted on the other folds, for every row; and the models.
pub fn cross_fit(
    x: &dyn RowSource,
    outcomes: &[f32],
    weight: Option<&[f32]>,
    cluster: Option<&[u32]>,
    folds: &Folds,
    params: &OutcomeParams,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<(Vec<f32>, Vec<OutcomeModel>)> {
    let n_outcomes = outcomes.len() / x.n_rows().max(1);
    let mut predicted = vec![0.0; outcomes.len()];
    let mut models = Vec::new();
    let held = Folds::deal(x.n_rows(), cluster, 10, seed.child("validation"));
    for fold in 0..folds.n_folds {
        let (inside, outside) = if folds.n_folds == 1 {
            (folds.rows(0), folds.rows(0))
        } else {
            (folds.rows(fold), folds.rest(fold))
        };
        let (held, rows): (Vec<u32>, Vec<u32>) =
            outside.iter().partition(|row| held.of_row[**row as usize] == 0);
        let seed = seed.child("fold").index(fold as u64);
        let model = OutcomeModel::fit(x, outcomes, weight, &rows, &held, params, seed, progress)?;
        let values = model.predict(&SomeRows { x, rows: &inside })?;
        for (values, row) in values.chunks(n_outcomes).zip(&inside) {
            predicted[*row as usize * n_outcomes..][..n_outcomes].copy_from_slice(values);
        }
        models.push(model);
    }
    Ok((predicted, models))
}
