//! Bounds of an average effect under hidden confounding: the marginal sensitivity model (Tan 2006).
//!
//! Something unobserved may change the odds of getting a policy by a factor within [1/Λ, Λ]. The weight of a row of the arm is then
//! 1 + z·(1 − π)/π with any z in that range, and the mean of the arm's residuals lies between the extremes of
//! Σ w·r / Σ w over all such weights (Zhao, Small and Bhattacharya 2019, their augmented estimator). The extreme gives every
//! residual above a cut the largest weight and every other the smallest; the cut is the extreme itself, which is found in a few
//! steps (Dinkelbach 1967) on sums that do not depend on Λ. The bounds hold for any confounder within Λ; those of Dorn and Guo (2023),
//! which also keep the unobserved odds in line with π(x), would be narrower.
//!
//! Intervals are the bounds widened by the quantile times the standard error of the average: at Λ = 1 they are its own interval.

use super::estimate::Ingredients;
use crate::evaluate::metric::Effects;
use crate::evaluate::reasons::{HiddenBound, HiddenConfounding};

/// The factors for which bounds are listed.
const LAMBDAS: [f64; 3] = [1.5, 2.0, 3.0];
/// No factor above this is looked for.
const MOST_LAMBDA: f64 = 20.0;
/// Of an arm with more rows, so many evenly spaced ones.
const MOST_ROWS: usize = 20_000;

/// Bounds of the average `mean` over all rows with overlap, whose interval is `half` wide to either side.
pub(super) fn hidden_confounding(
    of: &Ingredients<'_>,
    effects: &Effects<'_>,
    mean: f64,
    half: f64,
) -> Option<HiddenConfounding> {
    let mut rows: [Vec<(f64, f64, f64)>; 2] = [Vec::new(), Vec::new()];
    for row in 0..of.table.arm.len() {
        let weight = of.weight(row);
        if let Some(arm) = of.arm(effects, row).filter(|_| weight > 0.0 && of.overlaps(effects, row)) {
            let (residual, inverse) = of.score.residual(row);
            rows[arm].push((residual, weight, weight * (inverse - 1.0).max(0.0)));
        }
    }
    let [control, treated] = rows.map(Arm::new);
    let (control, treated) = (control?, treated?);
    let bounds = |lambda: f64| {
        let low = treated.lowest(lambda) - control.highest(lambda);
        let high = treated.highest(lambda) - control.lowest(lambda);
        let centre = treated.highest(1.0) - control.highest(1.0);
        [mean + low - centre, mean + high - centre]
    };
    let interval = |lambda: f64| {
        let [low, high] = bounds(lambda);
        [low - half, high + half]
    };
    let holds_zero = |lambda: f64| {
        let [low, high] = interval(lambda);
        low <= 0.0 && 0.0 <= high
    };
    let of_lambda = |lambda: f64| HiddenBound { lambda, effect: bounds(lambda), interval: interval(lambda) };
    Some(HiddenConfounding { bounds: LAMBDAS.map(of_lambda).to_vec(), vanishes_at: first(holds_zero) })
}

/// The least factor at which `holds`, which never ends to hold once it does.
fn first(holds: impl Fn(f64) -> bool) -> f64 {
    if holds(1.0) {
        return 1.0;
    }
    if !holds(MOST_LAMBDA) {
        return MOST_LAMBDA;
    }
    let (mut low, mut high) = (0.0, MOST_LAMBDA.ln());
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if holds(middle.exp()) { high = middle } else { low = middle }
    }
    high.exp()
}

/// The rows of an arm by residual, the largest first, and running sums.
struct Arm {
    residual: Vec<f64>,
    /// Up to each row: Σω, Σω·r, Σω·odds, Σω·odds·r, where odds are (1 − π)/π.
    sums: Vec<[f64; 4]>,
}

impl Arm {
    fn new(rows: Vec<(f64, f64, f64)>) -> Option<Self> {
        let step = rows.len().div_ceil(MOST_ROWS).max(1);
        let mut rows: Vec<(f64, f64, f64)> = rows.into_iter().step_by(step).collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sums = vec![[0.0; 4]];
        let mut total = [0.0; 4];
        for (residual, weight, odds) in &rows {
            let terms = [*weight, weight * residual, *odds, odds * residual];
            total.iter_mut().zip(terms).for_each(|(total, term)| *total += term);
            sums.push(total);
        }
        let residual: Vec<f64> = rows.iter().map(|row| row.0).collect();
        (!residual.is_empty()).then_some(Self { residual, sums })
    }

    fn highest(&self, lambda: f64) -> f64 {
        self.extreme(lambda, 1.0 / lambda, true)
    }

    fn lowest(&self, lambda: f64) -> f64 {
        self.extreme(1.0 / lambda, lambda, false)
    }

    /// Rows above the cut have odds times `above`, the others times `below`.
    fn extreme(&self, above: f64, below: f64, is_highest: bool) -> f64 {
        let last = self.sums[self.sums.len() - 1];
        let ratio = |cut: usize| {
            let top = self.sums[cut];
            let weight = last[0] + above * top[2] + below * (last[2] - top[2]);
            (last[1] + above * top[3] + below * (last[3] - top[3])) / weight
        };
        let mut value = ratio(0);
        for _ in 0..100 {
            let next = ratio(self.residual.partition_point(|residual| *residual > value));
            let is_better = if is_highest { next > value } else { next < value };
            if !is_better {
                break;
            }
            value = next;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The extreme over all ways to give rows the largest or the smallest weight.
    fn by_trying(rows: &[(f64, f64, f64)], lambda: f64) -> [f64; 2] {
        let of = |choice: u32| {
            let z = |k: usize| if choice >> k & 1 == 1 { lambda } else { 1.0 / lambda };
            let weight = |(k, row): (usize, &(f64, f64, f64))| row.1 + z(k) * row.2;
            let total: f64 = rows.iter().enumerate().map(weight).sum();
            rows.iter().enumerate().map(|own| weight(own) * own.1.0).sum::<f64>() / total
        };
        let all = (0..1_u32 << rows.len()).map(of);
        all.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], own| [low.min(own), high.max(own)])
    }

    #[test]
    fn the_extremes_are_those_of_all_weights() {
        let rows: Vec<(f64, f64, f64)> = (0..11_u32)
            .map(|k| (f64::from(k * 7 % 11) - 4.5, 1.0 + f64::from(k % 3), 0.2 + f64::from(k * 5 % 7)))
            .collect();
        for lambda in [1.0, 1.3, 2.0, 8.0] {
            let arm = Arm::new(rows.clone()).unwrap();
            let [low, high] = by_trying(&rows, lambda);
            assert!((arm.highest(lambda) - high).abs() < 1e-12, "{lambda}");
            assert!((arm.lowest(lambda) - low).abs() < 1e-12, "{lambda}");
        }
        assert!(Arm::new(Vec::new()).is_none());
    }

    #[test]
    fn the_first_factor_is_found() {
        assert_eq!(first(|_| true), 1.0);
        assert_eq!(first(|_| false), MOST_LAMBDA);
        assert!((first(|lambda| lambda >= 2.5) - 2.5).abs() < 1e-6);
    }
}
