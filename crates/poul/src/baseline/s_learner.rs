//! S-learner on the specification: one network μ(x, α_t); the effect is the difference of two predictions.

use crate::net::{
    Activation, AdamParams, Batch, DenseRows, Init, Layout, Mlp, RowSource, Schedule, Tape, Trainer, TrainerParams, predict,
    train,
};
use crate::nuisance::Folds;
use crate::policy::PolicySet;
use crate::{Progress, Result, Seed};

/// A fitted S-learner.
pub struct SLearner {
    mlp: Mlp,
    layout: Layout,
    weights: Vec<Vec<f32>>,
    n_cols: usize,
}

fn dense(policies: &PolicySet, policy: usize) -> Vec<f32> {
    let mut row = vec![0.0; policies.atoms().len()];
    let mixture = policies.mixture(policy);
    for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
        row[*atom as usize] = (*mass / policies.weights()[policies.atoms()[*atom as usize].context as usize]) as f32;
    }
    row
}

/// Fits μ on (x, Π_t).
pub fn fit_s_learner(
    x: &[f32],
    n_cols: usize,
    policies: &PolicySet,
    policy: &[u32],
    outcome: &[f32],
    members: usize,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<SLearner> {
    let specs: Vec<Vec<f32>> = (0..policies.len()).map(|policy| dense(policies, policy)).collect();
    let width = n_cols + policies.atoms().len();
    let mut table = Vec::with_capacity(policy.len() * width);
    for (x, policy) in x.chunks(n_cols).zip(policy) {
        table.extend_from_slice(x);
        table.extend_from_slice(&specs[*policy as usize]);
    }
    let source = DenseRows::new(&table, width)?;
    let mut builder = Layout::builder();
    let group = builder.group("mu");
    let mlp = Mlp::new(&mut builder, "mu", &[width, 128, 64, 1], Activation::Relu, Init::Uniform, group).dropout(0.1);
    let layout = builder.finish()?;
    let adam = AdamParams { learning_rate: 1e-3, weight_decay: 0.05, average: Some(0.999), ..AdamParams::default() };
    let trainer = TrainerParams { n_members: members, ..TrainerParams::default() };
    let mut trainer = Trainer::new(layout.clone(), adam.check()?, trainer, seed.child("start"))?;
    let held = Folds::deal(policy.len(), None, 8, seed.child("validation"));
    let (validation, rows) = (held.rows(0), held.rest(0));
    let loss = |tape: &mut Tape<'_>, batch: &Batch<'_>| {
        let x = tape.features();
        let prediction = mlp.forward(tape, x);
        let target = tape.column(batch.pick(outcome));
        tape.squared_loss(prediction, target, None, batch.scale())
    };
    let outputs = |tape: &mut Tape<'_>, _: &Batch<'_>| {
        let x = tape.features();
        mlp.forward(tape, x)
    };
    let mut validate = |trainer: &Trainer| {
        let x = crate::nuisance::SomeRows { x: &source, rows: &validation };
        let mut mean = vec![0.0; validation.len()];
        for member in 0..members {
            let p = predict(&layout, trainer.averaged_weights(member), &outputs, &x, 1, member)?;
            mean.iter_mut().zip(p).for_each(|(mean, p)| *mean += p / members as f32);
        }
        let total: f64 = mean.iter().zip(&validation).map(|(p, row)| f64::from(p - outcome[*row as usize]).powi(2)).sum();
        Ok(Some(total / validation.len() as f64))
    };
    let schedule = Schedule { epochs: 60, patience: 8, ..Schedule::default() };
    let trained =
        train(&mut trainer, &source, &rows, &loss, &schedule, &mut validate, seed.child("order"), progress)?;
    Ok(SLearner { mlp: mlp.clone(), layout: layout.clone(), weights: trained.weights, n_cols })
}

impl SLearner {
    /// Effects of every row and policy against `control`.
    pub fn effects(&self, x: &[f32], policies: &PolicySet, control: usize) -> Result<Vec<f32>> {
        let n_rows = x.len() / self.n_cols;
        let n_policies = policies.len();
        let outputs = |tape: &mut Tape<'_>, _: &Batch<'_>| {
            let x = tape.features();
            self.mlp.forward(tape, x)
        };
        let mut effects = vec![0.0; n_rows * n_policies];
        for policy in 0..n_policies {
            let source = WithSpec { x, n_cols: self.n_cols, spec: dense(policies, policy) };
            for weights in &self.weights {
                let p = predict(&self.layout, weights, &outputs, &source, 1, 0)?;
                for (row, p) in p.iter().enumerate() {
                    effects[row * n_policies + policy] += p / self.weights.len() as f32;
                }
            }
        }
        for row in effects.chunks_mut(n_policies) {
            let base = row[control];
            row.iter_mut().for_each(|effect| *effect -= base);
        }
        Ok(effects)
    }
}

struct WithSpec<'a> {
    x: &'a [f32],
    n_cols: usize,
    spec: Vec<f32>,
}

impl RowSource for WithSpec<'_> {
    fn n_rows(&self) -> usize {
        self.x.len() / self.n_cols
    }
    fn n_cols(&self) -> usize {
        self.n_cols + self.spec.len()
    }
    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        for (row, out) in rows.iter().zip(out.chunks_mut(self.n_cols())) {
            out[..self.n_cols].copy_from_slice(&self.x[*row as usize * self.n_cols..][..self.n_cols]);
            out[self.n_cols..].copy_from_slice(&self.spec);
        }
    }
}
