//! The validation R-loss: mean (residual − g(x)ᵀ(h(T) − e_h(x)))², by the mean of the members.

use super::params::Centring;
use super::uplift_net::Training;
use crate::Result;
use crate::net::{Layout, RowSource, Workspace, predict};
use crate::nuisance::{Propensity, SomeRows};

/// The R-loss of an ensemble on some rows, summed over outcomes.
pub(super) fn r_loss(
    training: &Training<'_>,
    layout: &Layout,
    members: &[&[f32]],
    x: &dyn RowSource,
    rows: &[u32],
) -> Result<f64> {
    let network = training.network;
    let (d, n_outcomes) = (network.treatment.n_out, network.g.len());
    let some = SomeRows { x, rows };
    let mut predicted = vec![0.0_f64; rows.len() * n_outcomes];
    for weights in members {
        let mixtures = training.mixtures;
        let h =
            Workspace::default().value(layout, weights, |tape| network.treatment.forward(tape, mixtures))?;
        let g = predict(layout, weights, network, &some, d * n_outcomes, 0)?;
        let mut centre = Centre::new(training, &h, d);
        for (i, row) in rows.iter().enumerate() {
            let row = *row as usize;
            let mean = centre.of_row(row);
            let h = &h[training.policy[row] as usize * d..][..d];
            for outcome in 0..n_outcomes {
                let g = &g[(i * n_outcomes + outcome) * d..][..d];
                let dot: f32 = g.iter().zip(h.iter().zip(mean)).map(|(g, (h, mean))| g * (h - mean)).sum();
                predicted[i * n_outcomes + outcome] += f64::from(dot) / members.len() as f64;
            }
        }
    }
    let (mut total, mut mass) = (0.0, 0.0);
    for (predicted, row) in predicted.chunks(n_outcomes).zip(rows) {
        let row = *row as usize;
        let weight = training.weight.map_or(1.0, |weight| f64::from(weight[row]));
        mass += weight;
        for (predicted, residual) in predicted.iter().zip(&training.residual[row * n_outcomes..]) {
            total += weight * (predicted - f64::from(*residual)).powi(2);
        }
    }
    Ok(total / mass.max(f64::MIN_POSITIVE))
}

/// e_h of rows for one member.
struct Centre<'a> {
    training: &'a Training<'a>,
    h: &'a [f32],
    d: usize,
    /// e_h by stratum, or of all rows.
    means: Vec<f32>,
    own: Vec<f32>,
}

impl<'a> Centre<'a> {
    fn new(training: &'a Training<'a>, h: &'a [f32], d: usize) -> Self {
        let n_policies = training.n_policies;
        let mut centre = Self { training, h, d, means: Vec::new(), own: vec![0.0; d] };
        let tables: &[f32] = match training.propensity {
            Propensity::Shares(shares) => shares,
            Propensity::Strata { table, .. } => table,
            Propensity::Rows(_) => &[],
        };
        for propensity in tables.chunks(n_policies) {
            centre.mix(propensity);
            centre.means.extend_from_slice(&centre.own);
        }
        centre
    }

    fn of_row(&mut self, row: usize) -> &[f32] {
        let (training, d) = (self.training, self.d);
        match (training.centring, training.propensity) {
            (Centring::None, _) => self.own.fill(0.0),
            (Centring::Exact, Propensity::Shares(_)) => return &self.means,
            (Centring::Exact, Propensity::Strata { of_row, .. }) => {
                return &self.means[of_row[row] as usize * d..][..d];
            }
            (Centring::Exact, Propensity::Rows(table)) => {
                self.mix(&table[row * training.n_policies..][..training.n_policies]);
            }
        }
        &self.own
    }

    /// Σ π(t) h(t), into `own`.
    fn mix(&mut self, propensity: &[f32]) {
        self.own.fill(0.0);
        for (h, p) in self.h.chunks(self.d).zip(propensity) {
            self.own.iter_mut().zip(h).for_each(|(own, h)| *own += p * h);
        }
    }
}
