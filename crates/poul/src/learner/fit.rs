//! Stage 2 of Algorithm 1: fits g and h on residuals, and keeps what scoring needs.

use super::params::{Centring, Params};
use super::treatment_net::Mixtures;
use super::uplift_net::{Training, UpliftNet};
use crate::net::{
    AdamParams, Epoch, GroupRule, Layout, RowSource, Trainer, TrainerParams, Workspace, predict, train,
};
use crate::nuisance::{Folds, Propensity};
use crate::policy::PolicySet;
use crate::{Progress, Result, Seed};

/// What is learned from. Outcomes are in standard units, and residual: y − m̂(x).
pub struct Problem<'a> {
    /// Encoded features.
    pub x: &'a dyn RowSource,
    /// The policies; all of them, run or not.
    pub policies: &'a PolicySet,
    /// Policy of each row.
    pub policy: &'a [u32],
    /// Residual outcomes, row-major, one column per outcome.
    pub residual: &'a [f32],
    /// Sample weights.
    pub weight: Option<&'a [f32]>,
    /// Clusters.
    pub cluster: Option<&'a [u32]>,
    /// π(t | x).
    pub propensity: &'a Propensity,
}

/// A fitted ensemble.
pub struct Fitted {
    network: UpliftNet,
    layout: Layout,
    weights: Vec<Vec<f32>>,
    shares: Vec<f32>,
    n_outcomes: usize,
    /// How training went.
    pub history: Vec<Epoch>,
    /// The epoch that was kept.
    pub best: usize,
}

/// Fits the ensemble.
pub fn fit(problem: &Problem<'_>, params: &Params, seed: Seed, progress: &dyn Progress) -> Result<Fitted> {
    let n_rows = problem.x.n_rows();
    let n_outcomes = problem.residual.len() / n_rows.max(1);
    let n_policies = problem.policies.len();
    let Propensity::Shares(shares) = Propensity::shares(problem.policy, problem.weight, n_policies) else {
        unreachable!("`shares` gives shares")
    };
    let mixtures = Mixtures::new(problem.policies, &shares)?;
    let (network, layout, groups) = UpliftNet::new(problem.x.n_cols(), n_outcomes, &mixtures, params)?;
    let decay = |weight_decay| GroupRule { rate_factor: 1.0, weight_decay };
    let adam = AdamParams {
        learning_rate: params.learning_rate,
        clip_norm: params.clip_norm,
        average: Some(params.average),
        ..AdamParams::default()
    };
    let adam = adam
        .check()?
        .group(groups.g, decay(params.decay_g))
        .group(groups.rho, decay(params.decay_rho))
        .group(groups.phi, decay(params.decay_phi))
        .group(groups.delta, decay(params.decay_delta));
    let trainer = TrainerParams { n_members: params.members, ..TrainerParams::default() };
    let mut trainer = Trainer::new(layout.clone(), adam, trainer, seed.child("start"))?;
    let held = Folds::deal(n_rows, problem.cluster, 8, seed.child("validation"));
    let (validation, rows) = (held.rows(0), held.rest(0));
    let training = Training {
        network: &network,
        mixtures: &mixtures,
        propensity: problem.propensity,
        n_policies,
        policy: problem.policy,
        residual: problem.residual,
        weight: problem.weight,
        centring: params.centring,
    };
    let mut validate = |trainer: &Trainer| {
        let weights: Vec<&[f32]> = (0..trainer.n_members()).map(|m| trainer.averaged_weights(m)).collect();
        r_loss(problem, &network, &layout, &mixtures, &weights, &validation, params.centring).map(Some)
    };
    let trained = train(
        &mut trainer,
        problem.x,
        &rows,
        &training,
        &params.schedule,
        &mut validate,
        seed.child("order"),
        progress,
    )?;
    let (weights, history, best) = (trained.weights, trained.history, trained.best);
    Ok(Fitted { network, layout, weights, shares, n_outcomes, history, best })
}

impl Fitted {
    /// τ(x; t, control) of every row and policy for one outcome: row-major rows × policies.
    pub fn effects(&self, x: &dyn RowSource, policies: &PolicySet, control: usize, outcome: usize) -> Result<Vec<f32>> {
        let mixtures = Mixtures::new(policies, &self.shares)?;
        let d = self.network.treatment.n_out;
        let n_policies = policies.len();
        let mut effects = vec![0.0; x.n_rows() * n_policies];
        for weights in &self.weights {
            let h = embeddings(&self.network, &self.layout, weights, &mixtures)?;
            let g = gains(&self.network, &self.layout, weights, x)?;
            for (row, effects) in effects.chunks_mut(n_policies).enumerate() {
                let g = &g[row * d * self.n_outcomes + outcome * d..][..d];
                for (policy, effect) in effects.iter_mut().enumerate() {
                    let difference = h[policy * d..].iter().zip(&h[control * d..]).take(d).zip(g);
                    *effect += difference.map(|((h, h0), g)| g * (h - h0)).sum::<f32>() / self.weights.len() as f32;
                }
            }
        }
        Ok(effects)
    }
}

fn embeddings(network: &UpliftNet, layout: &Layout, weights: &[f32], mixtures: &Mixtures) -> Result<Vec<f32>> {
    Workspace::default().value(layout, weights, |tape| network.treatment.forward(tape, mixtures))
}

fn gains(network: &UpliftNet, layout: &Layout, weights: &[f32], x: &dyn RowSource) -> Result<Vec<f32>> {
    predict(layout, weights, network, x, network.treatment.n_out * network.g.len(), 0)
}

/// Mean squared residual after the centred effect, by the mean of the members.
fn r_loss(
    problem: &Problem<'_>,
    network: &UpliftNet,
    layout: &Layout,
    mixtures: &Mixtures,
    weights: &[&[f32]],
    rows: &[u32],
    centring: Centring,
) -> Result<f64> {
    let d = network.treatment.n_out;
    let n_outcomes = network.g.len();
    let n_policies = problem.policies.len();
    let x = crate::nuisance::SomeRows { x: problem.x, rows };
    let mut predicted = vec![0.0_f64; rows.len() * n_outcomes];
    for weights in weights {
        let h = embeddings(network, layout, weights, mixtures)?;
        let g = gains(network, layout, weights, &x)?;
        let mean_of = |propensity: &[f32]| {
            let mut mean = vec![0.0_f32; d];
            for (h, p) in h.chunks(d).zip(propensity) {
                mean.iter_mut().zip(h).for_each(|(mean, h)| *mean += p * h);
            }
            mean
        };
        let constant = match problem.propensity {
            Propensity::Shares(shares) => mean_of(shares),
            _ => Vec::new(),
        };
        let strata: Vec<Vec<f32>> = match problem.propensity {
            Propensity::Strata { table, .. } => table.chunks(n_policies).map(mean_of).collect(),
            _ => Vec::new(),
        };
        let zero = vec![0.0; d];
        for (i, row) in rows.iter().enumerate() {
            let row = *row as usize;
            let own;
            let mean = match (centring, problem.propensity) {
                (Centring::None, _) => &zero,
                (_, Propensity::Shares(_)) => &constant,
                (_, Propensity::Strata { of_row, .. }) => &strata[of_row[row] as usize],
                (_, Propensity::Rows(table)) => {
                    own = mean_of(&table[row * n_policies..][..n_policies]);
                    &own
                }
            };
            let h = &h[problem.policy[row] as usize * d..][..d];
            for outcome in 0..n_outcomes {
                let g = &g[(i * n_outcomes + outcome) * d..][..d];
                let dot: f32 = g.iter().zip(h.iter().zip(mean)).map(|(g, (h, mean))| g * (h - mean)).sum();
                predicted[i * n_outcomes + outcome] += f64::from(dot);
            }
        }
    }
    let n_members = weights.len() as f64;
    let (mut total, mut mass) = (0.0, 0.0);
    for (predicted, row) in predicted.chunks(n_outcomes).zip(rows) {
        let row = *row as usize;
        let w = problem.weight.map_or(1.0, |weight| f64::from(weight[row]));
        mass += w;
        for (predicted, residual) in predicted.iter().zip(&problem.residual[row * n_outcomes..]) {
            total += w * (predicted / n_members - f64::from(*residual)).powi(2);
        }
    }
    Ok(total / mass.max(f64::MIN_POSITIVE))
}
