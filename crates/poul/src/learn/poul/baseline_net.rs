//! b(x) = logit m̂(x) − g(x)ᵀ(e_h(x) − h̄), the logit under the mean policy, as one small stored network.
//!
//! With it P(y = 1 | x, t) = σ(b(x) + g(x)ᵀ(h(t) − h̄)) needs x alone: neither strata, nor π, nor the user's own
//! predictions. h̄ is h of the mean training mixture, which the stored weights give.

use super::centring::Centred;
use super::objective::Training;
use super::own_centring::OwnRows;
use super::space::Mixtures;
use super::stage::Stage;
use super::treatment_net::TreatmentNet;
use crate::net::{Batch, Layout, Network, RowSource, Tape, Var, predict};
use crate::nuisance::{Folds, OutcomeLoss, OutcomeModels, OutcomeParams, OutcomeProblem, fit_outcome};
use crate::{Result, Run};

/// h of the mean training mixture, one row.
pub(super) fn mean_policy(tape: &mut Tape<'_>, net: &TreatmentNet, mixtures: &Mixtures, phi: Var) -> Var {
    let z = tape.mix(&mixtures.mean, phi);
    net.of_mixtures(tape, mixtures, phi, z)
}

/// Fits b to all rows: the mean over members, by squared error.
pub(super) fn distil(
    training: &Training<'_>,
    layout: &Layout,
    members: &[Vec<f32>],
    logit: &[f32],
    x: &dyn RowSource,
    cluster: Option<&[u32]>,
    run: Run<'_>,
) -> Result<OutcomeModels> {
    let n_outcomes = training.network.g.len();
    let mut values: Vec<f64> = logit.iter().map(|logit| f64::from(*logit)).collect();
    for weights in members {
        let shifts = predict(layout, weights, &Shift(training), x, n_outcomes, 0)?;
        let share = 1.0 / members.len() as f64;
        values.iter_mut().zip(shifts).for_each(|(value, shift)| *value -= share * f64::from(shift));
    }
    let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let losses = vec![OutcomeLoss::Squared; n_outcomes];
    let problem =
        OutcomeProblem { weight: training.weight, cluster, ..OutcomeProblem::new(x, &values, &losses) };
    let folds = Folds::deal(x.n_rows(), cluster, 1, run.seed);
    let stage = Stage { name: "Baseline", progress: run.progress };
    Ok(fit_outcome(&problem, &folds, &OutcomeParams::default().check()?, run.told(&stage))?.models)
}

/// g(x)ᵀ(e_h(x) − h̄) of every row, one column per outcome.
struct Shift<'a>(&'a Training<'a>);

impl Network for Shift<'_> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.0.share(tape);
        let mixtures = self.0.own_or_shared();
        for net in &self.0.network.treatments {
            let phi = net.atoms(tape, mixtures);
            tape.share(phi);
        }
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let Training { network, policy, centre, .. } = self.0;
        let mixtures = self.0.own_or_shared();
        let (centred, first) = self.0.centred(tape, batch.rows);
        let mut shifts = Vec::with_capacity(network.treatments.len());
        for (idx, (net, Centred { h, .. })) in network.treatments.iter().zip(&centred).enumerate() {
            let phi = tape.shared(first + idx);
            let own = match centre.own {
                Some(own) => OwnRows { net, own, phi, policy, rows: batch.rows }.h(tape),
                None => net.of_policies(tape, mixtures, phi, batch.pick(policy)),
            };
            let mean = mean_policy(tape, net, mixtures, phi);
            let from_mean = tape.sub(own, mean);
            shifts.push(tape.sub(from_mean, *h));
        }
        let gains = network.gains(tape);
        let columns: Vec<Var> = gains
            .iter()
            .enumerate()
            .map(|(outcome, g)| tape.row_dot(*g, shifts[network.treatment_of(outcome)]))
            .collect();
        tape.concat(&columns)
    }
}
