//! One policy's averages over the groups of a grouping: the mean, and what every row adds to its error.
//!
//! By design: Σ w·Γ / Σ w over the rows of the group.
//!
//! Where nobody randomised, over the rows P that had a real chance of both policies ([`CommonSupport`]; Crump, Hotz, Imbens and
//! Mitnik 2009), with each arm's weights 1/π̂ scaled to sum to one within the group (Hájek):
//!
//! mean_P(μ̂_t − μ̂_0) + Σ_t ŵ·r / Σ_t ŵ − Σ_0 ŵ·r / Σ_0 ŵ, with r = y − μ̂ and ŵ = 1/π̂.
//!
//! Without the scaling the error of an arm counts Σ ŵ/n of what it is: next to nothing where π̂ is near 1 on the arm's own rows and
//! near 0 elsewhere. The variance is that of the influence function, but at least Σ_arms var(r)/n_eff, n_eff = (Σŵ)²/Σŵ²; and
//! what an estimated π̂ adds: ĜᵀĤ⁻¹Ĝ for level and slope of the arm's logit, Ĝ being the derivative of the average and Ĥ the
//! information of all rows of P. It is 0 to first order where μ̂ is right, and counts where it is not.

use super::groups::Groups;
use super::score::AverageScore;
use super::units::{SumVariance, Units};
use crate::evaluate::metric::{Effects, Scored};
use crate::nuisance::CommonSupport;

/// π is kept this far from 0 and 1 before its logit is taken.
const LEAST: f64 = 1e-6;

/// What averages of one outcome are made of.
#[derive(Clone, Copy)]
pub(super) struct Ingredients<'a> {
    pub(super) table: &'a Scored<'a>,
    pub(super) score: &'a AverageScore<'a>,
    /// Rows with overlap, where nobody randomised.
    pub(super) support: Option<&'a CommonSupport<'a>>,
    pub(super) units: &'a Units,
}

/// The averages of one policy in the groups of a grouping.
pub(super) struct Estimates<'a> {
    of: Ingredients<'a>,
    effects: &'a Effects<'a>,
    groups: &'a Groups,
    pub(super) sums: Vec<Sums>,
}

/// Sums over the rows of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Weight of all its rows, with overlap or without.
    pub(super) mass_of_all: f64,
    pub(super) n_rows: usize,
    pub(super) mass: f64,
    pub(super) predicted: f64,
    score: f64,
    /// Control, then the policy.
    pub(super) arms: [ArmSums; 2],
}

/// Sums over the rows of an arm in a group; w is the row's weight over π.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArmSums {
    pub(super) n_rows: usize,
    mass: f64,
    weight: f64,
    squares: f64,
    weighted: f64,
    residual: f64,
    residual_squares: f64,
}

/// The variance of an average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variance {
    pub(super) variance: f64,
    /// Clusters, or rows, that the average has.
    pub(super) n_units: usize,
    /// Degrees of freedom that the values of these allow.
    pub(super) degrees: f64,
    /// Clusters with rows of each arm, where there are clusters.
    pub(super) arm_clusters: Option<[usize; 2]>,
}

impl<'a> Estimates<'a> {
    /// Goes through the rows once.
    pub(super) fn new(of: Ingredients<'a>, effects: &'a Effects<'a>, groups: &'a Groups) -> Self {
        let mut sums = vec![Sums::default(); groups.len()];
        for (row, group) in groups.of_row.iter().enumerate() {
            let weight = of.weight(row);
            let own = &mut sums[usize::from(*group)];
            own.mass_of_all += weight;
            if weight <= 0.0 || !of.overlaps(effects, row) {
                continue;
            }
            own.n_rows += 1;
            own.mass += weight;
            own.predicted += weight * effects.values[row];
            own.score += weight
                * match of.support {
                    None => of.score.of(effects, row),
                    Some(_) => of.score.predicted(effects, row),
                };
            if let Some(arm) = of.arm(effects, row) {
                own.arms[arm].add(weight, of.score.residual(row));
            }
        }
        Self { of, effects, groups, sums }
    }

    /// The average over the rows of a group.
    pub(super) fn mean(&self, group: usize) -> f64 {
        let own = &self.sums[group];
        let arms = if self.of.support.is_some() { own.arms[1].centre() - own.arms[0].centre() } else { 0.0 };
        own.score / own.mass + arms
    }

    /// What a row adds to the error of its group's average; none where it does not count.
    #[inline]
    pub(super) fn influence(&self, row: usize) -> Option<f64> {
        let (of, effects) = (&self.of, self.effects);
        let group = usize::from(self.groups.of_row[row]);
        let (own, weight) = (&self.sums[group], of.weight(row));
        if weight <= 0.0 || !of.overlaps(effects, row) {
            return None;
        }
        if of.support.is_none() {
            return Some(weight * (of.score.of(effects, row) - self.mean(group)) / own.mass);
        }
        let plain = weight * (of.score.predicted(effects, row) - own.score / own.mass) / own.mass;
        let Some(arm) = of.arm(effects, row) else { return Some(plain) };
        let (residual, inverse) = of.score.residual(row);
        let sums = &own.arms[arm];
        let error = weight * inverse * (residual - sums.centre()) / sums.weight;
        Some(if arm == 1 { plain + error } else { plain - error })
    }

    /// The variance of every group's average.
    pub(super) fn variances(&self) -> Vec<Variance> {
        let (units, of_row, n) = (self.of.units, &self.groups.of_row, self.groups.len());
        let found = units.variances(of_row, n, |row| self.influence(row));
        let added = self.of.support.map_or_else(|| vec![0.0; n], |support| self.of_propensity(support));
        // Clusters of each arm: a value of 0 counts them and nothing else.
        let clusters = [0, 1].map(|arm| {
            let is_own = |row: usize| self.counts(row) && self.of.arm(self.effects, row) == Some(arm);
            let counted = || units.variances(of_row, n, |row| is_own(row).then_some(0.0));
            units.has_clusters().then(counted)
        });
        let of_group = |(group, own): (usize, SumVariance)| {
            let floor: f64 = match self.of.support {
                None => 0.0,
                Some(_) => self.sums[group].arms.iter().map(ArmSums::least_variance).sum(),
            };
            let arm_clusters = match &clusters {
                [Some(control), Some(treated)] => Some([control[group].n_units, treated[group].n_units]),
                _ => None,
            };
            let SumVariance { variance, n_units, degrees } = own;
            Variance { variance: variance.max(floor) + added[group], n_units, degrees, arm_clusters }
        };
        found.into_iter().enumerate().map(of_group).collect()
    }

    /// By group, what it adds that the level and slope of each arm's logit are estimated.
    fn of_propensity(&self, support: &CommonSupport<'_>) -> Vec<f64> {
        let policies = [self.of.table.against, self.effects.policy];
        let mut terms = vec![[Logit::default(); 2]; self.groups.len()];
        for (row, group) in self.groups.of_row.iter().enumerate() {
            if !self.counts(row) {
                continue;
            }
            let (group, weight) = (usize::from(*group), self.of.weight(row));
            let own_arm = self.of.arm(self.effects, row);
            for (arm, policy) in policies.into_iter().enumerate() {
                let chance = support.chance(row, policy).clamp(LEAST, 1.0 - LEAST);
                let (odds, term) = ((1.0 - chance) / chance, &mut terms[group][arm]);
                term.inform(weight * chance * (1.0 - chance), -odds.ln());
                if own_arm == Some(arm) {
                    let sums = &self.sums[group].arms[arm];
                    let error = (self.of.score.residual(row).0 - sums.centre()) / sums.weight;
                    // d(1/π) along the logit is −(1 − π)/π.
                    term.slope(-weight * odds * error, -odds.ln());
                }
            }
        }
        terms.iter().map(|arms| arms.iter().map(Logit::variance).sum()).collect()
    }

    fn counts(&self, row: usize) -> bool {
        self.of.weight(row) > 0.0 && self.of.overlaps(self.effects, row)
    }
}

impl Ingredients<'_> {
    pub(super) fn weight(&self, row: usize) -> f64 {
        self.table.weight.map_or(1.0, |weight| weight[row])
    }

    /// Whether the row had a real chance of both policies.
    #[inline]
    pub(super) fn overlaps(&self, effects: &Effects<'_>, row: usize) -> bool {
        self.support.is_none_or(|own| own.holds(row, effects.policy) && own.holds(row, self.table.against))
    }

    /// 0 for control, 1 for the policy, none for a row of another.
    #[inline]
    pub(super) fn arm(&self, effects: &Effects<'_>, row: usize) -> Option<usize> {
        let arm = self.table.arm[row] as usize;
        if arm == effects.policy { Some(1) } else { (arm == self.table.against).then_some(0) }
    }
}

impl ArmSums {
    fn add(&mut self, weight: f64, (residual, inverse): (f64, f64)) {
        let over = weight * inverse;
        self.n_rows += 1;
        self.mass += weight;
        self.weight += over;
        self.squares += over * over;
        self.weighted += over * residual;
        self.residual += weight * residual;
        self.residual_squares += weight * residual * residual;
    }

    /// Mean residual under weights 1/π.
    fn centre(&self) -> f64 {
        if self.weight > 0.0 { self.weighted / self.weight } else { 0.0 }
    }

    /// (Σw)²/Σw².
    pub(super) fn effective_rows(&self) -> f64 {
        if self.squares > 0.0 { self.weight * self.weight / self.squares } else { 0.0 }
    }

    /// What the arm's own rows allow: the variance of their residuals over their effective number.
    fn least_variance(&self) -> f64 {
        let effective = self.effective_rows();
        if effective <= 0.0 {
            return 0.0;
        }
        let mean = self.residual / self.mass;
        let variance = (self.residual_squares / self.mass - mean * mean).max(0.0);
        variance * self.n_rows as f64 / (self.n_rows as f64 - 1.0).max(1.0) / effective
    }
}

/// Level and slope of a logit: the information of rows about them, and how the average follows them.
#[derive(Clone, Copy, Default)]
struct Logit {
    information: [f64; 3],
    slope: [f64; 2],
}

impl Logit {
    fn inform(&mut self, weight: f64, logit: f64) {
        let terms = [1.0, logit, logit * logit];
        self.information.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
    }

    fn slope(&mut self, size: f64, logit: f64) {
        self.slope[0] += size;
        self.slope[1] += size * logit;
    }

    /// GᵀH⁻¹G; by the level alone where logits do not differ.
    fn variance(&self) -> f64 {
        let ([a, b, c], [g, h]) = (self.information, self.slope);
        if a <= 0.0 {
            return 0.0;
        }
        let (rest, along) = (c - b * b / a, h - b / a * g);
        let of_slope = if rest > 1e-9 * c.max(1e-9) { along * along / rest } else { 0.0 };
        g * g / a + of_slope
    }
}
