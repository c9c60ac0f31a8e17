//! Stage 2 of Algorithm 1: g and h on residuals, by the orthogonalised loss; the best state by validation R-loss.

use super::params::ValidParams;
use super::r_loss::r_loss;
use super::space::TreatmentSpace;
use super::uplift_net::{Training, UpliftNet};
use crate::net::{AdamParams, GroupRule, RowSource, Trained, Trainer, TrainerParams, train};
use crate::nuisance::{Folds, Propensity};
use crate::policy::PolicySet;
use crate::{Progress, Result, Seed};

/// What is learned from. Outcomes are in standard units, and residual: y − m̂(x).
pub(super) struct Problem<'a> {
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

impl Problem<'_> {
    pub(super) fn n_outcomes(&self) -> usize {
        self.residual.len() / self.x.n_rows().max(1)
    }

    /// The weighted share of each policy among the rows.
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.policies.len()];
        for (row, policy) in self.policy.iter().enumerate() {
            shares[*policy as usize] += self.weight.map_or(1.0, |weight| f64::from(weight[row]));
        }
        let total: f64 = shares.iter().sum();
        shares.iter().map(|share| share / total).collect()
    }
}

/// Fits the ensemble: the space of atoms, and the weights of every member.
pub(super) fn fit(
    problem: &Problem<'_>,
    params: &ValidParams,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<(TreatmentSpace, Trained)> {
    let space = TreatmentSpace::new(problem.policies, &problem.shares());
    let space = space.with_attributes(problem.policies.attributes())?;
    let all: Vec<usize> = (0..problem.policies.len()).collect();
    let mixtures = space.mixtures(problem.policies, &all)?;
    let (network, layout, groups) = UpliftNet::new(problem.x.n_cols(), problem.n_outcomes(), &space, params)?;
    let settings = &params.training;
    let decay = |weight_decay| GroupRule { rate_factor: 1.0, weight_decay };
    let adam = AdamParams {
        learning_rate: settings.learning_rate,
        clip_norm: Some(settings.clip_norm),
        average: Some(settings.average),
        ..AdamParams::default()
    };
    let adam = adam
        .check()?
        .group(groups.g, decay(settings.decay_g))
        .group(groups.rho, decay(settings.decay_rho))
        .group(groups.phi, decay(settings.decay_phi))
        .group(groups.delta, decay(settings.decay_delta));
    let members = TrainerParams { n_members: params.model.members, ..TrainerParams::default() };
    let mut trainer = Trainer::new(layout.clone(), adam, members, seed.child("start"))?;
    let (rows, validation) = split(problem, settings.validation_share, seed);
    let training = Training {
        network: &network,
        mixtures: &mixtures,
        propensity: problem.propensity,
        n_policies: problem.policies.len(),
        policy: problem.policy,
        residual: problem.residual,
        weight: problem.weight,
        centring: params.model.centring,
    };
    let mut validate = |trainer: &Trainer| {
        if validation.is_empty() {
            return Ok(None);
        }
        let weights: Vec<&[f32]> = (0..trainer.n_members()).map(|m| trainer.averaged_weights(m)).collect();
        r_loss(&training, &layout, &weights, problem.x, &validation).map(Some)
    };
    let schedule = settings.schedule();
    progress.start("Learning effects", "rows", Some((rows.len() * settings.epochs) as u64));
    let seed = seed.child("order");
    let trained = train(&mut trainer, problem.x, &rows, &training, &schedule, &mut validate, seed, progress)?;
    progress.finish();
    Ok((space, trained))
}

/// Rows to learn from and rows to validate on, by cluster.
fn split(problem: &Problem<'_>, share: f64, seed: Seed) -> (Vec<u32>, Vec<u32>) {
    let n_rows = problem.x.n_rows();
    if share <= 0.0 {
        return ((0..n_rows as u32).collect(), Vec::new());
    }
    let n_parts = (1.0 / share).round().max(2.0) as usize;
    let parts = Folds::deal(n_rows, problem.cluster, n_parts, seed.child("validation"));
    (parts.rest(0), parts.rows(0))
}
