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

/// Rows under their own policies, each by its own exposure.
#[derive(Clone, Copy)]
pub(super) struct OwnRows<'a> {
    pub(super) net: &'a TreatmentNet,
    pub(super) own: OwnExposure<'a>,
    pub(super) phi: Var,
    /// The policy of every row there is.
    pub(super) policy: &'a [u32],
    pub(super) rows: &'a [u32],
}

impl OwnRows<'_> {
    /// h of each row's own policy, less nothing.
    pub(super) fn h(&self, tape: &mut Tape<'_>) -> Var {
        let pairs = self.rows.iter().map(|row| (self.own.of(*row), self.policy[*row as usize] as usize));
        let z = self.own.mixtures.z(tape, self.phi, pairs);
        self.net.rho.forward(tape, z)
    }

    /// h less ρ of what a mixture gives; `mass` of a row, by its place.
    fn less_mixture<'m>(&self, tape: &mut Tape<'_>, mass: &dyn Fn(usize) -> &'m [f32]) -> Centred {
        let h = self.h(tape);
        let pairs = self.rows.iter().enumerate().map(|(place, row)| (self.own.of(*row), mass(place)));
        let z = self.own.mixtures.z_of_mass(tape, self.phi, pairs);
        let centre = self.net.rho.forward(tape, z);
        Centred { h: tape.sub(h, centre), scatter: None }
    }
}

impl Centre<'_> {
    /// h less its centre.
    pub(super) fn own_rows(&self, tape: &mut Tape<'_>, of: &OwnRows<'_>) -> Centred {
        match (self.method(tape), self.assigned) {
            (Centring::Exact, Assigned::Policies(propensity)) if !of.net.rho.is_linear() => {
                self.own_exact(tape, of, propensity)
            }
            (Centring::Sampled, Assigned::Policies(propensity)) if !of.net.rho.is_linear() => {
                self.own_sampled(tape, of, propensity)
            }
            (Centring::None | Centring::RunningMean | Centring::Auto, _) => {
                Centred { h: of.h(tape), scatter: None }
            }
            // ρ(E[z]): what `mixture` asks for, and what a linear ρ comes to.
            (_, Assigned::Policies(propensity)) => {
                let mass: Vec<Vec<f32>> = self.expected(of, propensity);
                of.less_mixture(tape, &|place| &mass[place])
            }
            (_, Assigned::Mixtures { mass, of_row }) => {
                let n_atoms = of.own.mixtures.mixtures.atoms.len();
                of.less_mixture(tape, &|place: usize| {
                    let row = of_row[of.rows[place] as usize] as usize;
                    &mass[row * n_atoms..][..n_atoms]
                })
            }
        }
    }

    /// Σ_t (1{t = T} − π(t|x))·h_i(t).
    fn own_exact(&self, tape: &mut Tape<'_>, of: &OwnRows<'_>, propensity: &Propensity) -> Centred {
        let OwnRows { net, own, phi, policy, rows } = *of;
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
    fn own_sampled(&self, tape: &mut Tape<'_>, of: &OwnRows<'_>, propensity: &Propensity) -> Centred {
        let OwnRows { net, own, phi, rows, .. } = *of;
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
        let mut h = of.h(tape);
        let pairs = draws.iter().enumerate().map(|(i, policy)| (own.of(rows[i / n]), *policy as usize));
        let z = own.mixtures.z(tape, phi, pairs);
        let mut drawn = net.rho.forward(tape, z);
        if let Some(linear) = net.rho.linear(tape, z) {
            drawn = tape.sub(drawn, linear);
            let mass = self.expected(of, propensity);
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
    fn expected(&self, of: &OwnRows<'_>, propensity: &Propensity) -> Vec<Vec<f32>> {
        let OwnRows { own, rows, .. } = *of;
        let mass = |row: &u32| own.mixtures.expected(propensity.of_row(*row as usize, self.n_policies));
        match (propensity, rows.first()) {
            (Propensity::Shares(_), Some(first)) => vec![mass(first); rows.len()],
            _ => rows.iter().map(mass).collect(),
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

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::super::own_mixtures::{MeanExposure, OwnMixtures};
    use super::super::params::{ModelParams, Params, ValidParams};
    use super::super::space::{Mixtures, TreatmentSpace};
    use super::super::uplift_net::UpliftNet;
    use super::*;
    use crate::effect::ExposedRows;
    use crate::net::{DenseRows, Layout, Workspace};
    use crate::policy::PolicySet;

    const N_POLICIES: usize = 5;
    const CONTEXTS: [&str; 3] = ["a", "b", "c"];

    struct Case {
        policies: PolicySet,
        space: TreatmentSpace,
        mixtures: Mixtures,
        own: OwnMixtures,
        params: ValidParams,
        network: UpliftNet,
        layout: Layout,
        weights: Vec<f32>,
        policy: Vec<u32>,
        shares: Vec<f32>,
    }

    impl Case {
        fn new(weights_of_contexts: [f64; 3], change: impl FnOnce(&mut ModelParams)) -> Self {
            let mut rng = Seed::new(5).rng();
            let mut builder = PolicySet::builder();
            CONTEXTS.iter().zip(weights_of_contexts).for_each(|(context, weight)| {
                builder.weight(context, weight);
            });
            for policy in 0..N_POLICIES {
                for context in CONTEXTS {
                    let p = f64::from(rng.random_range(0..=4_u32)) / 4.0;
                    builder.add(&format!("t{policy}"), context, "none", 1.0 - p);
                    builder.add(&format!("t{policy}"), context, ["up", "down"][policy % 2], p);
                }
            }
            let policies = builder.build().unwrap();
            let shares = vec![0.1_f32, 0.2, 0.3, 0.15, 0.25];
            let by_policy: Vec<f64> = shares.iter().map(|share| f64::from(*share)).collect();
            let space = TreatmentSpace::new(&policies, &by_policy);
            let all: Vec<usize> = (0..N_POLICIES).collect();
            let mixtures = space.mixtures(&policies, &all).unwrap();
            let own = OwnMixtures::new(&space, &policies, &all).unwrap();
            let mut params = Params::default();
            (params.model.effect_dim, params.model.embedding_dim) = (3, 4);
            change(&mut params.model);
            let params = params.check().unwrap();
            let (network, layout, _) = UpliftNet::new(2, 1, &space, &params).unwrap();
            let weights: Vec<f32> = (0..layout.n_values()).map(|_| rng.random_range(-0.8..0.8)).collect();
            let policy = (0..40).map(|row| row % N_POLICIES as u32).collect();
            Self { policies, space, mixtures, own, params, network, layout, weights, policy, shares }
        }

        /// h less its centre of some rows by a method; gradient free.
        fn centred(&self, exposure: &[f32], method: Centring, rows: &[u32], is_own: bool) -> Vec<f32> {
            let propensity = Propensity::Shares(self.shares.clone());
            let source = Source(exposure);
            let own = is_own.then_some(OwnExposure { x: &source, mixtures: &self.own });
            let assigned = Assigned::Policies(&propensity);
            let centre = Centre::new(assigned, method, N_POLICIES, &self.params.model, own);
            let net = &self.network.treatments[0];
            Workspace::default()
                .value(&self.layout, &self.weights, |tape| match own {
                    Some(own) => {
                        let phi = net.atoms(tape, &own.mixtures.mixtures);
                        centre.own_rows(tape, &OwnRows { net, own, phi, policy: &self.policy, rows }).h
                    }
                    None => {
                        let table = net.forward(tape, &self.mixtures);
                        let shares = tape.constant(1, N_POLICIES, &self.shares);
                        let mean = tape.matmul(shares, table);
                        let centred = tape.sub(table, mean);
                        tape.gather(centred, rows.iter().map(|row| self.policy[*row as usize]))
                    }
                })
                .unwrap()
        }
    }

    /// Rows without features.
    struct Source<'a>(&'a [f32]);

    impl crate::net::RowSource for Source<'_> {
        fn n_rows(&self) -> usize {
            self.0.len() / CONTEXTS.len()
        }

        fn n_cols(&self) -> usize {
            0
        }

        fn copy_rows(&self, _rows: &[u32], _out: &mut [f32]) {}

        fn exposure(&self, row: usize) -> Option<&[f32]> {
            Some(&self.0[row * CONTEXTS.len()..][..CONTEXTS.len()])
        }
    }

    fn close(a: &[f32], b: &[f32], tolerance: f32) {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < tolerance, "{a} {b}"));
    }

    #[test]
    fn with_one_exposure_for_all_h_is_that_of_the_weights() {
        let case = Case::new([2.0, 1.0, 1.0], |_| ());
        let exposure = [0.5, 0.25, 0.25].repeat(40);
        let rows: Vec<u32> = (0..40).collect();
        let shared = case.centred(&exposure, Centring::Exact, &rows, false);
        close(&case.centred(&exposure, Centring::Exact, &rows, true), &shared, 1e-5);
        assert!(shared.iter().any(|value| value.abs() > 0.05), "{shared:?}");
        // The mean exposure of such rows is theirs, and κ that of the weights.
        let source = Source(&exposure);
        let mean = MeanExposure::of(&source, None, &case.policies).unwrap().unwrap();
        let shares: Vec<f64> = case.shares.iter().map(|share| f64::from(*share)).collect();
        assert!((mean.spread(&case.policies, &shares) / case.space.spread - 1.0).abs() < 1e-6);
        assert_eq!(mean.mean, [0.5, 0.25, 0.25]);
    }

    #[test]
    fn who_meets_nothing_is_not_moved_and_a_linear_rho_moves_by_exposure() {
        let case = Case::new([1.0, 1.0, 1.0], |model| model.rho_hidden = 0);
        let mut exposure = vec![0.0; 120];
        exposure[3..6].copy_from_slice(&[0.2, 0.3, 0.1]);
        exposure[18..21].copy_from_slice(&[0.4, 0.6, 0.2]);
        // Rows 1 and 6 have the same policy.
        let h = case.centred(&exposure, Centring::Exact, &[0, 1, 6], true);
        assert!(h[..3].iter().all(|value| *value == 0.0), "{h:?}");
        let twice: Vec<f32> = h[3..6].iter().map(|value| 2.0 * value).collect();
        close(&twice, &h[6..9], 1e-5);
        assert!(h[3..6].iter().any(|value| value.abs() > 1e-3));
    }

    #[test]
    fn samples_and_mixtures_agree_with_the_exact_centre() {
        let mut rng = Seed::new(8).rng();
        let exposure: Vec<f32> = (0..120).map(|_| rng.random_range(0.0..1.0)).collect();
        let rows: Vec<u32> = (0..40).collect();
        let case = Case::new([1.0, 2.0, 1.0], |model| model.centring_draws = 4096);
        let exact = case.centred(&exposure, Centring::Exact, &rows, true);
        // Few policies: held-out rows have the exact centre.
        close(&case.centred(&exposure, Centring::Sampled, &rows, true), &exact, 1e-6);
        let propensity = Propensity::Shares(case.shares.clone());
        let source = Source(&exposure);
        let own = OwnExposure { x: &source, mixtures: &case.own };
        let assigned = Assigned::Policies(&propensity);
        let centre = Centre::new(assigned, Centring::Sampled, N_POLICIES, &case.params.model, Some(own));
        let net = &case.network.treatments[0];
        let sampled = Workspace::default().value(&case.layout, &case.weights, |tape| {
            let phi = net.atoms(tape, &case.own.mixtures);
            let of = OwnRows { net, own, phi, policy: &case.policy, rows: &rows };
            centre.own_sampled(tape, &of, &propensity).h
        });
        // Each row has draws of its own: far less is left on average over rows than in one of them.
        let sampled = sampled.unwrap();
        close(&sampled, &exact, 0.1);
        for axis in 0..3 {
            let of_axis = sampled.iter().zip(&exact).skip(axis).step_by(3).map(|(a, b)| a - b);
            let mean = of_axis.sum::<f32>() / rows.len() as f32;
            assert!(mean.abs() < 0.015, "axis {axis}: {mean}");
        }
        let linear = Case::new([1.0, 2.0, 1.0], |model| model.rho_hidden = 0);
        let exact = linear.centred(&exposure, Centring::Exact, &rows, true);
        close(&linear.centred(&exposure, Centring::Mixture, &rows, true), &exact, 1e-5);
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let case = Case::new([1.0, 2.0, 1.0], |_| ());
        let mut rng = Seed::new(9).rng();
        let exposure: Vec<f32> = (0..120).map(|_| rng.random_range(0.0..1.0)).collect();
        let rows: Vec<u32> = (0..40).collect();
        let propensity = Propensity::Shares(case.shares.clone());
        let source = Source(&exposure);
        let own = OwnExposure { x: &source, mixtures: &case.own };
        for method in [Centring::Exact, Centring::Sampled, Centring::Mixture] {
            let assigned = Assigned::Policies(&propensity);
            let centre = Centre::new(assigned, method, N_POLICIES, &case.params.model, Some(own));
            let net = &case.network.treatments[0];
            let loss = |tape: &mut Tape<'_>| {
                let phi = net.atoms(tape, &case.own.mixtures);
                let of = OwnRows { net, own, phi, policy: &case.policy, rows: &rows };
                let Centred { h, scatter } = centre.own_rows(tape, &of);
                let zeros = tape.constant(40, 3, &[0.0; 120]);
                let loss = tape.squared_loss(h, zeros, None, 1.0);
                let Some(scatter) = scatter else { return loss };
                let excess = tape.squared_loss(scatter, zeros, None, -1.0);
                tape.add(loss, excess)
            };
            let mut workspace = Workspace::default();
            workspace.loss_and_gradient(&case.layout, &case.weights, loss).unwrap();
            let gradient = workspace.gradient().to_vec();
            let largest = gradient.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            assert!(largest > 0.1, "{method:?}: {largest}");
            for i in (0..case.weights.len()).filter(|i| gradient[*i].abs() > 0.05 * largest).step_by(3) {
                let at = |change: f32| {
                    let mut weights = case.weights.clone();
                    weights[i] += change;
                    Workspace::default().loss_and_gradient(&case.layout, &weights, loss).unwrap()
                };
                let step = 3e-3;
                let slope = (at(step) - at(-step)) / f64::from(2.0 * step);
                let error = (slope - f64::from(gradient[i])).abs();
                assert!(error < 1e-2 * f64::from(largest), "{method:?}, {i}: {slope} {}", gradient[i]);
            }
        }
    }

    #[test]
    fn exposures_travel_with_views_of_rows() {
        let exposure: Vec<f32> = (0..9).map(|i| i as f32).collect();
        let (source, values) = (Source(&exposure), [1.0; 3]);
        let some = crate::nuisance::SomeRows { x: &source, rows: &[2, 0] };
        assert_eq!(crate::net::RowSource::exposure(&some, 0), Some(&exposure[6..]));
        let plain = DenseRows::new(&values, 1).unwrap();
        let exposed = ExposedRows { x: &plain, exposure: None };
        assert_eq!(crate::net::RowSource::exposure(&exposed, 1), None);
    }
}
