//! h_i(T) − e_{h,i}(x) where rows have exposures of their own: exact over few policies; over many exact in the linear part
//! of ρ, which the expected mixture gives, and sampled in the rest, each row by draws of its own.

use std::sync::Arc;

use rand::RngExt;

use super::centring::{Assigned, Centre, Centred, DRAWS_PER_OWN, OwnExposure};
use super::params::Centring;
use super::treatment_net::TreatmentNet;
use crate::Seed;
use crate::net::{SparseRows, Tape, Var};
use crate::nuisance::Propensity;

impl Centre<'_> {
    /// h of each row's own policy, less nothing; from φ.
    pub(super) fn own_policy_h(
        &self,
        tape: &mut Tape<'_>,
        net: &TreatmentNet,
        own: OwnExposure<'_>,
        phi: Var,
        policy: &[u32],
        rows: &[u32],
    ) -> Var {
        let pairs = rows.iter().map(|row| (own.of(*row), policy[*row as usize] as usize));
        let z = own.mixtures.z(tape, phi, pairs);
        net.rho.forward(tape, z)
    }

    /// h less its centre.
    pub(super) fn own_rows(
        &self,
        tape: &mut Tape<'_>,
        net: &TreatmentNet,
        own: OwnExposure<'_>,
        phi: Var,
        policy: &[u32],
        rows: &[u32],
    ) -> Centred {
        match (self.method(tape), self.assigned) {
            (Centring::Exact, Assigned::Policies(propensity)) if !net.rho.is_linear() => {
                self.own_exact(tape, net, own, phi, policy, (rows, propensity))
            }
            (Centring::Sampled, Assigned::Policies(propensity)) if !net.rho.is_linear() => {
                self.own_sampled(tape, net, own, phi, policy, (rows, propensity))
            }
            (Centring::None | Centring::RunningMean | Centring::Auto, _) => {
                let h = self.own_policy_h(tape, net, own, phi, policy, rows);
                Centred { h, scatter: None }
            }
            // ρ(E[z]): what `mixture` asks for, and what a linear ρ comes to.
            (_, Assigned::Policies(propensity)) => {
                let mass: Vec<Vec<f32>> = self.expected(own, propensity, rows);
                self.own_mixture(tape, net, own, phi, policy, (rows, &|place| &mass[place]))
            }
            (_, Assigned::Mixtures { mass, of_row }) => {
                let n_atoms = own.mixtures.mixtures.atoms.len();
                let of = |place: usize| {
                    let row = of_row[rows[place] as usize] as usize;
                    &mass[row * n_atoms..][..n_atoms]
                };
                self.own_mixture(tape, net, own, phi, policy, (rows, &of))
            }
        }
    }

    fn own_mixture<'m>(
        &self,
        tape: &mut Tape<'_>,
        net: &TreatmentNet,
        own: OwnExposure<'m>,
        phi: Var,
        policy: &[u32],
        (rows, mass): (&[u32], &dyn Fn(usize) -> &'m [f32]),
    ) -> Centred {
        let h = self.own_policy_h(tape, net, own, phi, policy, rows);
        let pairs = rows.iter().enumerate().map(|(place, row)| (own.of(*row), mass(place)));
        let z = own.mixtures.z_of_mass(tape, phi, pairs);
        let centre = net.rho.forward(tape, z);
        Centred { h: tape.sub(h, centre), scatter: None }
    }

    /// Σ_t (1{t = T} − π(t|x))·h_i(t).
    fn own_exact(
        &self,
        tape: &mut Tape<'_>,
        net: &TreatmentNet,
        own: OwnExposure<'_>,
        phi: Var,
        policy: &[u32],
        (rows, propensity): (&[u32], &Propensity),
    ) -> Centred {
        let n = self.n_policies;
        let pairs = rows.iter().flat_map(|row| (0..n).map(move |policy| (own.of(*row), policy)));
        let z = own.mixtures.z(tape, phi, pairs);
        let h = net.rho.forward(tape, z);
        let contrast = |(place, row): (usize, &u32)| {
            let (shares, assigned) = (propensity.of_row(*row as usize, n), policy[*row as usize] as usize);
            let weight = move |(policy, share): (usize, &f32)| {
                let own = if policy == assigned { 1.0 } else { 0.0 };
                ((place * n + policy) as u32, own - share)
            };
            shares.iter().enumerate().map(weight)
        };
        let contrasts = SparseRows::new(rows.len() * n, rows.iter().enumerate().map(contrast));
        Centred { h: mixed(tape, contrasts, h), scatter: None }
    }

    /// The centre by two halves of a sample, corrected by what the linear part of ρ is known to be.
    fn own_sampled(
        &self,
        tape: &mut Tape<'_>,
        net: &TreatmentNet,
        own: OwnExposure<'_>,
        phi: Var,
        policy: &[u32],
        (rows, propensity): (&[u32], &Propensity),
    ) -> Centred {
        // Held-out rows are judged by the same draws in every epoch, and by as many as rows share elsewhere.
        let (stream, n_draws) = match tape.is_training() {
            true => (tape.stream().child("centring"), self.n_draws / DRAWS_PER_OWN),
            false => (Seed::new(0).child("centring"), self.n_draws),
        };
        let n_half = n_draws.max(2) / 2;
        let n = 2 * n_half;
        let mut draws = Vec::with_capacity(rows.len() * n);
        for row in rows {
            let mut rng = Seed::index(stream, u64::from(*row)).rng();
            draws.extend((0..n).map(|_| self.draw_of_row(propensity, *row as usize, rng.random())));
        }
        let h = self.own_policy_h(tape, net, own, phi, policy, rows);
        let pairs = draws.iter().enumerate().map(|(i, policy)| (own.of(rows[i / n]), *policy as usize));
        let z = own.mixtures.z(tape, phi, pairs);
        let mut drawn = net.rho.forward(tape, z);
        let mut h = h;
        if let Some(linear) = net.rho.linear(tape, z) {
            drawn = tape.sub(drawn, linear);
            let mass = self.expected(own, propensity, rows);
            let pairs = rows.iter().zip(&mass).map(|(row, mass)| (own.of(*row), mass.as_slice()));
            let z = own.mixtures.z_of_mass(tape, phi, pairs);
            let expected = net.rho.linear(tape, z);
            h = expected.map_or(h, |expected| tape.sub(h, expected));
        }
        let share = 0.5 / n_half as f32;
        let mut half = |weight: &dyn Fn(usize) -> f32| {
            let of_row = |place: usize| (0..n).map(move |draw| ((place * n + draw) as u32, weight(draw)));
            mixed(tape, SparseRows::new(rows.len() * n, (0..rows.len()).map(of_row)), drawn)
        };
        let mean = half(&|_| share);
        let scatter = half(&|draw| if draw < n_half { share } else { -share });
        Centred { h: tape.sub(h, mean), scatter: Some(scatter) }
    }

    /// E[Π_T(a|s) | x] / κ of rows.
    fn expected(&self, own: OwnExposure<'_>, propensity: &Propensity, rows: &[u32]) -> Vec<Vec<f32>> {
        let of = |row: &u32| own.mixtures.expected(propensity.of_row(*row as usize, self.n_policies));
        match (propensity, rows.first()) {
            (Propensity::Shares(_), Some(first)) => vec![of(first); rows.len()],
            _ => rows.iter().map(of).collect(),
        }
    }
}

impl<'a> OwnExposure<'a> {
    fn of(&self, row: u32) -> &'a [f32] {
        self.x.exposure(row as usize).unwrap_or(&[])
    }
}

fn mixed(tape: &mut Tape<'_>, rows: crate::Result<SparseRows>, table: Var) -> Var {
    match rows {
        Ok(rows) => tape.mix(&Arc::new(rows), table),
        Err(error) => {
            tape.fail(error.to_string());
            table
        }
    }
}
