//! e_h(x) = E[h(T) | x] in a step: exact, from a sample, of the expected mixture, or the running mean (Sec. 2.2 of the
//! paper; line 12 of Algorithm 1, line 8 of Algorithm 2).

use rand::RngExt;

use super::own_centring::OwnRows;
use super::own_mixtures::OwnMixtures;
use super::params::{Centring, ModelParams};
use super::space::Mixtures;
use super::treatment_net::TreatmentNet;
use super::uplift_net::RunningMean;
use crate::data::Design;
use crate::net::{RowSource, Tape, Var};
use crate::nuisance::Propensity;
use crate::{Error, Result, Seed};

/// Beyond this many policies `auto` does not compute h of each in every step: as many as a batch has rows.
const MANY_POLICIES: usize = 256;
/// The same where π depends on the row, and every row would draw for itself.
const MANY_POLICIES_BY_ROW: usize = 1024;
/// The same where rows have exposures of their own, and h is computed for every row and policy.
pub(super) const MANY_OWN_POLICIES: usize = 32;
/// Where π depends on the row, a row draws one in so many of the draws that all rows would share.
pub(super) const DRAWS_PER_OWN: usize = 8;

/// What is known of the assignment.
#[derive(Clone, Copy)]
pub(super) enum Assigned<'a> {
    /// π(t | x).
    Policies(&'a Propensity),
    /// E[α_T | x] / κ over the atoms of the mixtures, a row-major table, and each data row's row of it.
    Mixtures { mass: &'a [f32], of_row: &'a [u32] },
}

/// Rows that meet contexts each in its own way, and policies as they mix them.
#[derive(Clone, Copy)]
pub(super) struct OwnExposure<'a> {
    pub(super) x: &'a dyn RowSource,
    pub(super) mixtures: &'a OwnMixtures,
}

/// How e_h is found; [`Centring::Auto`] is settled.
#[derive(Clone)]
pub(super) struct Centre<'a> {
    pub(super) assigned: Assigned<'a>,
    method: Centring,
    pub(super) n_policies: usize,
    pub(super) n_draws: usize,
    /// Where rows have exposures of their own; h is then of a row and a policy.
    pub(super) own: Option<OwnExposure<'a>>,
    /// Σ_{t' ≤ t} π(t'), of all rows or stratum after stratum, to draw by.
    cumulative: Vec<f64>,
}

/// h less its centre, one row each.
pub(super) struct Centred {
    pub(super) h: Var,
    /// Half the difference of the centres that two halves of a sample give, one row each or one for all.
    pub(super) scatter: Option<Var>,
}

impl Centring {
    /// What `auto` comes to.
    pub(super) fn settle(
        self,
        n_policies: usize,
        design: Design,
        is_estimated: bool,
        has_own_exposure: bool,
    ) -> Self {
        let many = match has_own_exposure {
            true => MANY_OWN_POLICIES,
            false => many_policies(design == Design::Randomized),
        };
        match self {
            Self::Auto if n_policies <= many => Self::Exact,
            Self::Auto if is_estimated => Self::Mixture,
            Self::Auto => Self::Sampled,
            chosen => chosen,
        }
    }

    /// Whether the design has what the method needs.
    pub(super) fn check(self, design: Design, has_own_exposure: bool) -> Result<()> {
        if self == Self::RunningMean && has_own_exposure {
            let what = "`model.centring` is `running-mean`, which is one for all rows, but rows have exposures of their own";
            return Err(Error::usage(what).hint("use `auto`, or leave the exposure out"));
        }
        if self == Self::RunningMean && design != Design::Randomized {
            let what = "`model.centring` is `running-mean`, which needs a randomized design";
            let hint = "elsewhere policies differ between rows, and so must their mean: use `auto`";
            return Err(Error::usage(what).hint(hint));
        }
        Ok(())
    }
}

impl<'a> Centre<'a> {
    pub(super) fn new(
        assigned: Assigned<'a>,
        method: Centring,
        n_policies: usize,
        params: &ModelParams,
        own: Option<OwnExposure<'a>>,
    ) -> Self {
        let table: &[f32] = match assigned {
            Assigned::Policies(Propensity::Shares(shares)) => shares,
            Assigned::Policies(Propensity::Strata { table, .. }) => table,
            _ => &[],
        };
        let mut cumulative = Vec::new();
        if method == Centring::Sampled {
            for shares in table.chunks(n_policies) {
                let sums = shares.iter().scan(0.0, |sum, share| {
                    *sum += f64::from(*share);
                    Some(*sum)
                });
                cumulative.extend(sums);
            }
        }
        Self { assigned, method, n_policies, n_draws: params.centring_draws, own, cumulative }
    }

    /// The method of this tape: held-out rows are judged by the exact centre where training samples or remembers.
    pub(super) fn method(&self, tape: &Tape<'_>) -> Centring {
        match (self.method, self.assigned) {
            (Centring::None, _) => Centring::None,
            (_, Assigned::Mixtures { .. }) => Centring::Mixture,
            // With h of every row and policy, the exact centre of held-out rows would cost more than training.
            (Centring::Sampled, _) if self.own.is_some() && self.n_policies > MANY_OWN_POLICIES => {
                Centring::Sampled
            }
            (Centring::Sampled | Centring::RunningMean, _) if !tape.is_training() => Centring::Exact,
            (method, _) => method,
        }
    }

    /// Whether h is computed row by row from φ, so that its cost does not depend on how many policies there are.
    fn is_per_row(&self, method: Centring) -> bool {
        let is_same_for_all = matches!(self.assigned, Assigned::Policies(Propensity::Shares(_)));
        method == Centring::Mixture
            || (method != Centring::Exact && self.n_policies > many_policies(is_same_for_all))
    }

    /// Computes what the rows share of one treatment net, and hands it over.
    pub(super) fn share(&self, tape: &mut Tape<'_>, net: &TreatmentNet, mixtures: &Mixtures) {
        if let Some(own) = self.own {
            let phi = net.atoms(tape, &own.mixtures.mixtures);
            tape.share(phi);
            return;
        }
        let method = self.method(tape);
        let table =
            if self.is_per_row(method) { net.atoms(tape, mixtures) } else { net.forward(tape, mixtures) };
        match (method, self.assigned) {
            (Centring::Exact, Assigned::Policies(Propensity::Shares(shares))) => {
                let shares = tape.constant(1, self.n_policies, shares);
                let mean = tape.matmul(shares, table);
                let centred = tape.sub(table, mean);
                tape.share(centred);
            }
            (Centring::Exact, Assigned::Policies(Propensity::Strata { table: strata, .. })) => {
                let strata = tape.constant(strata.len() / self.n_policies, self.n_policies, strata);
                let means = tape.matmul(strata, table);
                tape.share(table);
                tape.share(means);
            }
            (Centring::Sampled, Assigned::Policies(Propensity::Shares(_))) => {
                let mut rng = tape.stream().child("centring").rng();
                let draws: Vec<u32> = (0..self.n_draws).map(|_| self.draw(0, rng.random())).collect();
                let h = self.embed(tape, net, mixtures, table, draws);
                let halves = halves(self.n_draws);
                let halves = tape.constant(2, self.n_draws, &halves);
                let mean_and_scatter = tape.matmul(halves, h);
                tape.share(table);
                tape.share(mean_and_scatter);
            }
            _ => tape.share(table),
        }
    }

    /// How many matrices [`share`](Self::share) hands over.
    pub(super) fn n_shared(&self, tape: &Tape<'_>) -> usize {
        match (self.method(tape), self.assigned) {
            _ if self.own.is_some() => 1,
            (Centring::Exact, Assigned::Policies(Propensity::Strata { .. })) => 2,
            (Centring::Sampled, Assigned::Policies(Propensity::Shares(_))) => 2,
            _ => 1,
        }
    }

    /// h(T) − e_h(x) of some rows of the data; `shared` is the number of the net's first shared matrix.
    pub(super) fn rows(
        &self,
        tape: &mut Tape<'_>,
        (net, running): (&TreatmentNet, Option<&RunningMean>),
        mixtures: &Mixtures,
        shared: usize,
        policy: &[u32],
        rows: &[u32],
    ) -> Centred {
        if let Some(own) = self.own {
            let phi = tape.shared(shared);
            return self.own_rows(tape, &OwnRows { net, own, phi, policy, rows });
        }
        let method = self.method(tape);
        let table = tape.shared(shared);
        let own = rows.iter().map(|row| policy[*row as usize]);
        let h = self.embed(tape, net, mixtures, table, own);
        let (centre, scatter) = match (method, self.assigned) {
            (Centring::Exact, Assigned::Policies(Propensity::Strata { of_row, .. })) => {
                let means = tape.shared(shared + 1);
                (tape.gather(means, rows.iter().map(|row| of_row[*row as usize])), None)
            }
            (Centring::Exact, Assigned::Policies(Propensity::Rows(propensity))) => {
                let propensity = tape.table_rows(propensity, self.n_policies, rows);
                (tape.matmul(propensity, table), None)
            }
            (Centring::Sampled, Assigned::Policies(Propensity::Shares(_))) => {
                let both = tape.shared(shared + 1);
                (tape.gather(both, [0]), Some(tape.gather(both, [1])))
            }
            (Centring::Sampled, Assigned::Policies(propensity)) => {
                let (mean, scatter) = self.own_draws(tape, net, mixtures, table, propensity, rows);
                (mean, Some(scatter))
            }
            (Centring::Mixture, Assigned::Mixtures { mass, of_row }) => {
                let of_row: Vec<u32> = rows.iter().map(|row| of_row[*row as usize]).collect();
                let mass = tape.table_rows(mass, mixtures.atoms.len(), &of_row);
                let z = tape.matmul(mass, table);
                (net.of_mixtures(tape, mixtures, table, z), None)
            }
            (Centring::RunningMean, _) => match running {
                Some(running) => {
                    let mean = tape.weight(running.mean);
                    (tape.stop_gradient(mean), None)
                }
                None => {
                    tape.fail("a running mean without a place to keep it");
                    return Centred { h, scatter: None };
                }
            },
            // Without a centre, or centred for all rows at once.
            _ => return Centred { h, scatter: None },
        };
        Centred { h: tape.sub(h, centre), scatter }
    }

    /// h of some policies, from h of all of them or from φ.
    pub(super) fn embed(
        &self,
        tape: &mut Tape<'_>,
        net: &TreatmentNet,
        mixtures: &Mixtures,
        table: Var,
        policies: impl IntoIterator<Item = u32>,
    ) -> Var {
        if self.is_per_row(self.method(tape)) {
            net.of_policies(tape, mixtures, table, policies)
        } else {
            tape.gather(table, policies)
        }
    }

    /// The mean of h over draws of each row's own, and half the difference of their halves' means.
    fn own_draws(
        &self,
        tape: &mut Tape<'_>,
        net: &TreatmentNet,
        mixtures: &Mixtures,
        table: Var,
        propensity: &Propensity,
        rows: &[u32],
    ) -> (Var, Var) {
        let n_half = (self.n_draws / DRAWS_PER_OWN).max(2) / 2;
        let stream = tape.stream().child("centring");
        let mut draws: Vec<Vec<u32>> = vec![Vec::with_capacity(rows.len()); 2 * n_half];
        for row in rows {
            let mut rng = Seed::index(stream, u64::from(*row)).rng();
            for draws in &mut draws {
                draws.push(self.draw_of_row(propensity, *row as usize, rng.random()));
            }
        }
        let mut sum = |draws: &[Vec<u32>]| {
            let mut parts =
                draws.iter().map(|draws| self.embed(tape, net, mixtures, table, draws.iter().copied()));
            let parts: Vec<Var> = parts.by_ref().collect();
            let (first, rest) = (parts[0], &parts[1..]);
            let sum = rest.iter().fold(first, |sum, part| tape.add(sum, *part));
            tape.scale(sum, 0.5 / n_half as f32)
        };
        let (first, second) = (sum(&draws[..n_half]), sum(&draws[n_half..]));
        (tape.add(first, second), tape.sub(first, second))
    }

    pub(super) fn draw_of_row(&self, propensity: &Propensity, row: usize, at: f64) -> u32 {
        match propensity {
            Propensity::Shares(_) => self.draw(0, at),
            Propensity::Strata { of_row, .. } => self.draw(of_row[row] as usize, at),
            Propensity::Rows(_) => {
                let shares = propensity.of_row(row, self.n_policies);
                let mut left = at * shares.iter().map(|share| f64::from(*share)).sum::<f64>();
                let place = shares.iter().position(|share| {
                    left -= f64::from(*share);
                    left < 0.0
                });
                // Rounding may leave a crumb: the last policy with a share takes it.
                let last = || shares.iter().rposition(|share| *share > 0.0).unwrap_or(0);
                place.unwrap_or_else(last) as u32
            }
        }
    }

    /// The policy at `at` in [0, 1) of a table's row of cumulated shares.
    fn draw(&self, table_row: usize, at: f64) -> u32 {
        let sums = &self.cumulative[table_row * self.n_policies..][..self.n_policies];
        let total = sums.last().copied().unwrap_or(0.0);
        let last = sums.partition_point(|sum| *sum < total);
        sums.partition_point(|sum| *sum <= at * total).min(last) as u32
    }
}

/// How many policies are many, whether π is the same for all rows or not.
fn many_policies(is_same_for_all: bool) -> usize {
    if is_same_for_all { MANY_POLICIES } else { MANY_POLICIES_BY_ROW }
}

/// Two rows of weights over draws: the mean of both halves' means, and half their difference.
fn halves(n_draws: usize) -> Vec<f32> {
    let n_first = n_draws / 2;
    let share = |draw: usize| 0.5 / if draw < n_first { n_first } else { n_draws - n_first } as f32;
    let mean = (0..n_draws).map(share);
    let scatter = (0..n_draws).map(|draw| if draw < n_first { share(draw) } else { -share(draw) });
    mean.chain(scatter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_drawn_by_their_shares_and_never_where_there_is_none() {
        let table: Vec<f32> = vec![0.0, 0.25, 0.75, 0.0, 0.5, 0.0, 0.0, 0.5];
        let strata = Propensity::Strata { table: table.clone().into(), of_row: vec![1, 0] };
        let rows = Propensity::Rows(vec![0.5, 0.0, 0.0, 0.5, 0.0, 0.25, 0.75, 0.0].into());
        for propensity in [&strata, &rows] {
            let assigned = Assigned::Policies(propensity);
            let centre = Centre::new(assigned, Centring::Sampled, 4, &ModelParams::default(), None);
            for (row, shares) in [(0, &table[4..]), (1, &table[..4])] {
                let mut counts = [0.0_f32; 4];
                for i in 0..1000 {
                    counts[centre.draw_of_row(propensity, row, f64::from(i) / 1000.0) as usize] += 1e-3;
                }
                for (count, share) in counts.iter().zip(shares) {
                    assert!((count - share).abs() < 2e-3, "{counts:?} for {shares:?}");
                }
            }
            let almost_one = 1.0 - f64::EPSILON / 2.0;
            assert_eq!(centre.draw_of_row(propensity, 1, almost_one), 2);
        }
    }

    #[test]
    fn halves_weigh_the_same() {
        for n_draws in [2, 5, 64] {
            let halves = halves(n_draws);
            let (mean, scatter) = halves.split_at(n_draws);
            assert!((mean.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            assert!(scatter.iter().sum::<f32>().abs() < 1e-6);
        }
    }

    #[test]
    fn auto_is_exact_until_there_are_many_policies() {
        let auto =
            |n_policies, design, is_estimated| Centring::Auto.settle(n_policies, design, is_estimated, false);
        assert_eq!(auto(MANY_POLICIES, Design::Randomized, false), Centring::Exact);
        assert_eq!(auto(MANY_POLICIES + 1, Design::Randomized, false), Centring::Sampled);
        assert_eq!(auto(MANY_POLICIES_BY_ROW, Design::Observational, true), Centring::Exact);
        assert_eq!(auto(MANY_POLICIES_BY_ROW + 1, Design::Observational, true), Centring::Mixture);
        assert_eq!(auto(MANY_POLICIES_BY_ROW + 1, Design::Stratified, false), Centring::Sampled);
        assert_eq!(Centring::Exact.settle(1 << 20, Design::Observational, true, true), Centring::Exact);
        let error = Centring::RunningMean.check(Design::Stratified, false).unwrap_err();
        assert!(error.to_string().contains("running-mean") && error.hint_text().is_some());
        assert!(Centring::RunningMean.check(Design::Randomized, false).is_ok());
        assert!(Centring::RunningMean.check(Design::Randomized, true).is_err());
        let own = |n_policies| Centring::Auto.settle(n_policies, Design::Randomized, false, true);
        assert_eq!(own(MANY_OWN_POLICIES), Centring::Exact);
        assert_eq!(own(MANY_OWN_POLICIES + 1), Centring::Sampled);
    }
}
