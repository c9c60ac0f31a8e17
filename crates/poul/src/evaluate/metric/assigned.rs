//! How good effects are where most policies have a row or two: each row is measured by its own policy, against what was
//! assigned on average.
//!
//! A row has the residual Ỹ = Y − m̂(x) and the contrast τ̃ = τ(x; T) − Σ_t π(t|x) τ(x; t), whose true value is the mean of
//! Ỹ given x and T. All three metrics take both around their means, so that an m̂ that is off by a constant changes nothing:
//!
//! - `r_score`: 1 − Σ(Ỹ − τ̃)²/ΣỸ², the share of what m̂ leaves that the contrasts explain; below 0 they do harm;
//! - `slope`: of Ỹ on τ̃, 1 where sizes are right and 0 where they are noise;
//! - `rank_gain`: mean of (Ỹᵢ − Ỹⱼ)·sign(τ̃ᵢ − τ̃ⱼ) over all pairs of rows, which is 4·Cov(Ỹ, rank of τ̃). A random ranking has
//!   the mean 0, a constant one is 0: a pair that is tied counts as nothing.
//!
//! Units of draws and of the slope's standard error are clusters where there are any. Draws depend on units alone, never on
//! contrasts: two models of the same rows get the same draws.

use rayon::prelude::*;

use super::bootstrap::{Bootstrap, Draws};
use super::definition::{About, Better, Definition};
use super::order::descending;
use super::resample;
use super::table::FEWEST_ARM_ROWS;
use crate::evaluate::result::{AssignedPolicies, AssignedResult};
use crate::{Error, Progress, Result};

/// Not of two arms: see [`assigned`].
pub(super) const SLOPE: Definition =
    Definition { better: Better::Neither, ..Definition::new("slope", "slope", About::Sizes, |_| None) };

/// Not of two arms: see [`assigned`].
pub(super) const RANK_GAIN: Definition = Definition::new("rank_gain", "rank gain", About::Ranking, |_| None);

/// Fewer clusters than this, and intervals are too narrow.
const FEW_UNITS: usize = 10;
/// With fewer policies of few rows each, rows are few, and comparing policies one by one says as much as can be said.
const MANY_POLICIES: usize = 10;

/// Rows with what is left of their outcome and what their own policy is predicted to do.
#[derive(Clone, Copy, Debug)]
pub struct AssignedRows<'a> {
    /// Y − m̂(x).
    pub residual: &'a [f64],
    /// τ(x; T) − Σ_t π(t|x) τ(x; t); NaN where the row's policy could not be scored.
    pub contrast: &'a [f64],
    /// The policy of each row.
    pub policy: &'a [u32],
    /// Whether training had rows of each policy; without it rows are not told apart.
    pub is_seen: Option<&'a [bool]>,
    /// Row weights.
    pub weight: Option<&'a [f64]>,
    /// Cluster of each row; equal codes are one cluster.
    pub cluster: Option<&'a [u32]>,
}

/// The metrics of some rows, with those of every draw.
#[derive(Clone, Debug)]
pub struct AssignedReading {
    /// The numbers; the name of the outcome is left to the caller.
    pub result: AssignedResult,
    /// `r_score`, `slope` and `rank_gain` by draw, NaN where undefined.
    pub draws: Vec<Vec<f64>>,
}

/// Measures all rows, those whose policies training had, and those whose policies are new to it; none of no rows.
pub fn assigned(
    rows: &AssignedRows<'_>,
    bootstrap: &Bootstrap,
    progress: &dyn Progress,
) -> Result<Vec<AssignedReading>> {
    bootstrap.check()?;
    check(rows)?;
    let weight_of = |row: u32| rows.weight.map_or(1.0, |weight| weight[row as usize]);
    let counted: Vec<u32> = (0..rows.residual.len() as u32).filter(|row| weight_of(*row) > 0.0).collect();
    let units = Units::new(&counted, rows.cluster, rows.residual.len());
    let (scored, unscored): (Vec<u32>, Vec<u32>) =
        counted.iter().partition(|row| rows.contrast[**row as usize].is_finite());
    let is_seen = |row: &u32| rows.is_seen.is_some_and(|seen| seen[rows.policy[*row as usize] as usize]);
    let mut groups = vec![(AssignedPolicies::All, scored.clone())];
    if rows.is_seen.is_some() {
        let (seen, new) = scored.into_iter().partition(is_seen);
        groups.extend([(AssignedPolicies::Seen, seen), (AssignedPolicies::New, new)]);
    }
    groups.retain(|(_, rows)| !rows.is_empty());
    progress.start("Measuring what was assigned", "draws", Some((groups.len() * bootstrap.draws) as u64));
    let mut readings: Vec<AssignedReading> = Vec::with_capacity(groups.len());
    for (policies, group) in groups {
        let mut reading = match readings.first().filter(|all| all.result.rows == group.len()) {
            // All rows again: every policy is seen, or none.
            Some(all) => {
                AssignedReading { result: AssignedResult { policies, ..all.result.clone() }, ..all.clone() }
            }
            None => {
                Ordered::new(rows, &group, &units).reading(policies, rows, &units, bootstrap, progress)?
            }
        };
        if policies == AssignedPolicies::All && !unscored.is_empty() {
            let n = unscored.len();
            let note = format!(
                "left out: {} whose policy has parts that no training row had",
                crate::counted(n, "row", "rows")
            );
            reading.result.notes.push(note);
        }
        readings.push(reading);
    }
    progress.finish();
    Ok(readings)
}

/// Whether there are many policies with few rows each: ten or more with fewer rows than an average needs, which together
/// have more than half of the rows, those compared with left aside.
pub fn arms_are_thin(rows: &[u64], against: Option<usize>) -> bool {
    let others = rows.iter().enumerate().filter(|(policy, rows)| Some(*policy) != against && **rows > 0);
    let (mut all, mut thin, mut n_thin) = (0, 0, 0);
    for (_, rows) in others {
        all += rows;
        if *rows < FEWEST_ARM_ROWS as u64 {
            thin += rows;
            n_thin += 1;
        }
    }
    n_thin >= MANY_POLICIES && 2 * thin > all
}

fn check(rows: &AssignedRows<'_>) -> Result<()> {
    let n_rows = rows.residual.len();
    let fits = rows.contrast.len() == n_rows
        && rows.policy.len() == n_rows
        && rows.weight.is_none_or(|weight| weight.len() == n_rows)
        && rows.cluster.is_none_or(|cluster| cluster.len() == n_rows)
        && rows.is_seen.is_none_or(|seen| rows.policy.iter().all(|policy| (*policy as usize) < seen.len()));
    if !fits || n_rows > u32::MAX as usize {
        return Err(Error::input("columns of different lengths, or too many rows")
            .at("what was assigned")
            .hint("give one value for each row, and a policy that is known"));
    }
    let wrong = |row: &usize| {
        let weight = rows.weight.map_or(1.0, |weight| weight[*row]);
        !(weight.is_finite() && weight >= 0.0) || (weight > 0.0 && !rows.residual[*row].is_finite())
    };
    match (0..n_rows).find(wrong) {
        None => Ok(()),
        Some(row) => {
            Err(Error::input("the outcome, its prediction or the weight is not a number that counts")
                .at_row(row)
                .hint("outcomes and predictions are finite; weights are finite and not negative"))
        }
    }
}

/// The units that are drawn: clusters, or rows. Rows that weigh nothing belong to none.
struct Units {
    of_row: Vec<u32>,
    n_units: usize,
    are_clusters: bool,
}

impl Units {
    fn new(counted: &[u32], cluster: Option<&[u32]>, n_rows: usize) -> Self {
        let code = |row: &u32| cluster.map_or(*row, |cluster| cluster[*row as usize]);
        let mut codes: Vec<u32> = counted.iter().map(code).collect();
        codes.sort_unstable();
        codes.dedup();
        let mut of_row = vec![0; n_rows];
        for row in counted {
            of_row[*row as usize] = codes.partition_point(|other| *other < code(row)) as u32;
        }
        Self { of_row, n_units: codes.len(), are_clusters: cluster.is_some() }
    }
}

/// Rows in the order of their contrasts.
struct Ordered {
    residual: Vec<f64>,
    contrast: Vec<f64>,
    weight: Vec<f64>,
    unit: Vec<u32>,
    rows: Vec<u32>,
    /// Spread of contrasts below which they are constant but for rounding.
    rounding: f64,
}

impl Ordered {
    fn new(rows: &AssignedRows<'_>, group: &[u32], units: &Units) -> Self {
        let contrast: Vec<f64> = group.iter().map(|row| rows.contrast[*row as usize]).collect();
        let (order, contrast) = descending(&contrast);
        let sorted: Vec<u32> = order.iter().map(|place| group[*place as usize]).collect();
        let taken = |values: &[f64]| sorted.iter().map(|row| values[*row as usize]).collect::<Vec<f64>>();
        let weight = rows.weight.map_or_else(|| vec![1.0; sorted.len()], taken);
        let (residual, mass) = (taken(rows.residual), weight.iter().sum::<f64>());
        let squares: f64 =
            contrast.iter().zip(&weight).map(|(contrast, weight)| weight * contrast * contrast).sum();
        // Squares stay small around the means, and draws keep their digits.
        let centred = |values: Vec<f64>| {
            let mean = values.iter().zip(&weight).map(|(value, weight)| weight * value).sum::<f64>() / mass;
            values.into_iter().map(|value| value - mean).collect::<Vec<f64>>()
        };
        let (residual, contrast) = (centred(residual), centred(contrast));
        let unit = sorted.iter().map(|row| units.of_row[*row as usize]).collect();
        Self { residual, contrast, weight, unit, rows: sorted, rounding: 1e-13 * squares }
    }

    fn reading(
        &self,
        policies: AssignedPolicies,
        rows: &AssignedRows<'_>,
        units: &Units,
        bootstrap: &Bootstrap,
        progress: &dyn Progress,
    ) -> Result<AssignedReading> {
        let whole = self.sums(&self.residual, None);
        let (r_score, slope, rank_gain) = (whole.r_score(), whole.slope(self.rounding), whole.rank_gain());
        let seed = bootstrap.seed.child("assigned");
        let draws: Result<Vec<Vec<f64>>> = (0..bootstrap.draws)
            .into_par_iter()
            .map_init(
                || vec![0_u8; units.n_units],
                |counts, draw| {
                    if progress.cancelled() {
                        return Err(Error::cancelled());
                    }
                    resample::with_replacement(&mut seed.index(draw as u64).rng(), counts);
                    let sums = self.sums(&self.residual, Some(counts));
                    progress.advance(1);
                    let values = [sums.r_score(), sums.slope(self.rounding), sums.rank_gain()];
                    Ok(values.map(|value| value.unwrap_or(f64::NAN)).to_vec())
                },
            )
            .collect();
        let draws = Draws::of(draws?);
        let interval =
            |place: usize, value: Option<f64>| value.and_then(|_| draws.interval(place, bootstrap.level));
        let n_units = distinct(self.unit.iter().copied());
        let mut result = AssignedResult {
            outcome: String::new(),
            policies,
            rows: self.rows.len(),
            n_policies: distinct(self.rows.iter().map(|row| rows.policy[*row as usize])),
            n_clusters: units.are_clusters.then_some(n_units),
            residual_variance: whole.residual_variance(),
            contrast_variance: whole.contrast_variance(),
            r_score,
            r_score_interval: interval(0, r_score),
            slope,
            slope_se: slope.and_then(|slope| self.slope_se(slope, &whole, units, n_units)),
            slope_interval: interval(1, slope),
            rank_gain,
            rank_gain_interval: interval(2, rank_gain),
            rank_gain_predicted: self.sums(&self.contrast, None).rank_gain(),
            notes: Vec::new(),
        };
        result.notes = notes(&result, n_units, units, bootstrap);
        Ok(AssignedReading { result, draws: draws.values().to_vec() })
    }

    /// Sums of `y`, which is the residual, or the contrast itself where every contrast were true.
    fn sums(&self, y: &[f64], counts: Option<&[u8]>) -> Sums {
        let mut sums = Sums::default();
        let mut tie = Tie::default();
        for place in 0..self.rows.len() {
            let count = counts.map_or(1.0, |counts| f64::from(counts[self.unit[place] as usize]));
            let (y, t) = (y[place], self.contrast[place]);
            if place > 0 && t != self.contrast[place - 1] {
                sums.rank(&mut tie);
            }
            let mass = count * self.weight[place];
            tie.mass += mass;
            tie.y += mass * y;
            sums.mass += mass;
            sums.y += mass * y;
            sums.t += mass * t;
            sums.yy += mass * y * y;
            sums.tt += mass * t * t;
            sums.yt += mass * y * t;
        }
        sums.rank(&mut tie);
        sums
    }

    /// Sums of the slope's influence by unit, squared, times C/(C − 1).
    fn slope_se(&self, slope: f64, whole: &Sums, units: &Units, n_units: usize) -> Option<f64> {
        if n_units < 2 {
            return None;
        }
        let (mean_y, mean_t) = (whole.y / whole.mass, whole.t / whole.mass);
        let spread = whole.spread();
        let mut by_unit = vec![0.0; units.n_units];
        for place in 0..self.rows.len() {
            let t = self.contrast[place] - mean_t;
            let error = self.residual[place] - mean_y - slope * t;
            by_unit[self.unit[place] as usize] += self.weight[place] * t * error / spread;
        }
        let squares: f64 = by_unit.iter().map(|sum| sum * sum).sum();
        Some((squares * n_units as f64 / (n_units as f64 - 1.0)).sqrt())
    }
}

/// Rows of one contrast.
#[derive(Clone, Copy, Debug, Default)]
struct Tie {
    mass: f64,
    y: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    mass: f64,
    y: f64,
    t: f64,
    yy: f64,
    tt: f64,
    yt: f64,
    /// Mass of the rows ranked above the current tie.
    above: f64,
    /// Σ y · (mass above + half of the mass tied).
    y_by_rank: f64,
}

impl Sums {
    fn rank(&mut self, tie: &mut Tie) {
        self.y_by_rank += tie.y * (self.above + 0.5 * tie.mass);
        self.above += tie.mass;
        *tie = Tie::default();
    }

    fn spread(&self) -> f64 {
        self.tt - self.t * self.t / self.mass
    }

    fn residual_variance(&self) -> Option<f64> {
        finite((self.yy - self.y * self.y / self.mass) / self.mass)
    }

    fn contrast_variance(&self) -> Option<f64> {
        finite(self.spread() / self.mass)
    }

    fn r_score(&self) -> Option<f64> {
        let total = self.yy - self.y * self.y / self.mass;
        let shared = self.yt - self.y * self.t / self.mass;
        if total > 0.0 { finite((2.0 * shared - self.spread()) / total) } else { None }
    }

    fn slope(&self, rounding: f64) -> Option<f64> {
        let (spread, shared) = (self.spread(), self.yt - self.y * self.t / self.mass);
        if spread > rounding { finite(shared / spread) } else { None }
    }

    /// The rank counts from the top, hence the sign.
    fn rank_gain(&self) -> Option<f64> {
        finite(4.0 * (0.5 * self.y / self.mass - self.y_by_rank / (self.mass * self.mass)))
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn distinct(codes: impl Iterator<Item = u32>) -> usize {
    let mut codes: Vec<u32> = codes.collect();
    codes.sort_unstable();
    codes.dedup();
    codes.len()
}

fn notes(result: &AssignedResult, n_units: usize, units: &Units, bootstrap: &Bootstrap) -> Vec<String> {
    let mut notes = Vec::new();
    if n_units < FEW_UNITS {
        let of = if units.are_clusters { "clusters" } else { "rows" };
        notes.push(format!("only {n_units} {of}: intervals and standard errors are too narrow"));
    }
    if result.r_score.is_none() {
        notes.push("r_score: the outcome does not vary beyond what is expected of each row".to_owned());
    }
    if result.slope.is_none() {
        notes.push("slope: the predicted effects do not differ between policies".to_owned());
    }
    if bootstrap.draws == 0 {
        notes.push("intervals: no bootstrap draws were asked for".to_owned());
    }
    notes
}
