//! Incremental value against incremental cost as the targeted share grows, and the area under that curve (AUCC).

use serde::{Deserialize, Serialize};

use super::ranked::{Rows, Totals};

/// A cost curve and its area.
#[derive(Clone, Debug, PartialEq)]
pub struct CostCurve {
    /// Area under the curve over |total value · total cost|; 0.5 (or −0.5, by the sign of their product) at random.
    pub aucc: Option<f64>,
    /// What a random ranking gives: 0.5 or −0.5.
    pub random_aucc: Option<f64>,
    /// Evenly spaced shares from 0 to 1.
    pub points: Vec<CostPoint>,
}

/// What targeting a share of the rows brings and costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostPoint {
    /// Share of the rows targeted.
    pub share: f64,
    /// Incremental cost, k·Lift(k) of the cost.
    pub cost: f64,
    /// Incremental value, k·Lift(k) of the value.
    pub value: f64,
}

/// The cost curve of a ranking whose outcome is the value; `cost` is the other outcome, in the sample's row order.
///
/// Both gains follow the conventions of [`auuc`](super::auuc). `None` where an arm is empty or `cost` is too short.
pub fn cost_curve<'a>(rows: impl Into<Rows<'a>>, cost: &[f64], n_points: usize) -> Option<CostCurve> {
    let rows = rows.into();
    if rows.ranked.order().iter().any(|row| *row as usize >= cost.len()) {
        return None;
    }
    cost_curve_ranked(rows, &rows.ranked.ranked_column(cost), n_points)
}

/// As [`cost_curve`], with the cost in rank order.
pub(super) fn cost_curve_ranked(rows: Rows<'_>, cost: &[f64], n_points: usize) -> Option<CostCurve> {
    let n = rows.totals().k();
    let n_points = n_points.max(2);
    let step = n / (n_points - 1) as f64;
    let mut points: Vec<CostPoint> = Vec::with_capacity(n_points);
    let mut top = Totals::default();
    let (mut cost_treated, mut cost_control) = (0.0, 0.0);
    let (mut k_before, mut value_before, mut cost_before) = (0.0_f64, 0.0, 0.0);
    let mut twice_area = 0.0;
    let mut known = false;
    rows.for_each(|row| {
        top.add(row);
        let treated = row.mass * row.treated;
        cost_treated += treated * cost[row.index];
        cost_control += (row.mass - treated) * cost[row.index];
        if !row.last_of_tie {
            return;
        }
        let k = top.k();
        let (value, cost) = match top.lift() {
            None => (k * k, k * k),
            Some(lift) => {
                let cost_lift = cost_treated / top.n_treated - cost_control / top.n_control;
                if !known {
                    // While an arm was empty both gains were k² up to these slopes.
                    let (value_slope, cost_slope) = (lift / k, cost_lift / k);
                    value_before *= value_slope;
                    cost_before *= cost_slope;
                    twice_area *= value_slope * cost_slope;
                    for point in &mut points {
                        point.value *= value_slope;
                        point.cost *= cost_slope;
                    }
                    known = true;
                }
                (k * lift, k * cost_lift)
            }
        };
        twice_area += (cost - cost_before) * (value + value_before);
        while points.len() < n_points && step * points.len() as f64 <= k {
            let target = step * points.len() as f64;
            let share = if k > k_before { (target - k_before) / (k - k_before) } else { 1.0 };
            points.push(CostPoint {
                share: points.len() as f64 / (n_points - 1) as f64,
                cost: cost_before + (cost - cost_before) * share,
                value: value_before + (value - value_before) * share,
            });
        }
        (k_before, value_before, cost_before) = (k, value, cost);
    });
    if !known {
        return None;
    }
    if points.len() < n_points {
        points.push(CostPoint { share: 1.0, cost: cost_before, value: value_before });
    }
    let product = value_before * cost_before;
    let defined = product != 0.0;
    Some(CostCurve {
        aucc: defined.then(|| twice_area / (2.0 * product.abs())),
        random_aucc: defined.then(|| 0.5_f64.copysign(product)),
        points,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Ranked, Sample};
    use super::*;

    fn world() -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<bool>) {
        let treated: Vec<bool> = (0..400).map(|i| i % 2 == 0).collect();
        // The first half gains 2 for a cost of 1, the second gains nothing for the same cost.
        let value = (0..400).map(|i| if i % 2 == 0 && i < 200 { 2.0 } else { 0.0 }).collect();
        let cost = treated.iter().map(|treated| f64::from(u8::from(*treated))).collect();
        let score = (0..400).map(|i| if i < 200 { 1.0 } else { 0.0 }).collect();
        (score, value, cost, treated)
    }

    #[test]
    fn all_value_in_the_first_half_of_the_cost() {
        let (score, value, cost, treated) = world();
        let ranked = Ranked::new(&Sample::new(&score, &value, &treated).unwrap());
        let curve = cost_curve(&ranked, &cost, 3).unwrap();
        assert!((curve.aucc.unwrap() - 0.75).abs() < 1e-12);
        assert_eq!(curve.random_aucc, Some(0.5));
        let points: Vec<(f64, f64)> = curve.points.iter().map(|point| (point.cost, point.value)).collect();
        assert_eq!(points, [(0.0, 0.0), (200.0, 400.0), (400.0, 400.0)]);
    }

    #[test]
    fn units_of_value_and_cost_do_not_matter_and_constant_scores_are_random() {
        let (score, value, cost, treated) = world();
        let scaled: Vec<f64> = value.iter().map(|value| value * -7.0).collect();
        let dear: Vec<f64> = cost.iter().map(|cost| cost * 0.01).collect();
        let ranked = Ranked::new(&Sample::new(&score, &scaled, &treated).unwrap());
        assert!((cost_curve(&ranked, &dear, 2).unwrap().aucc.unwrap() + 0.75).abs() < 1e-12);
        let ranked = Ranked::new(&Sample::new(&[1.0; 400], &value, &treated).unwrap());
        assert!((cost_curve(&ranked, &cost, 2).unwrap().aucc.unwrap() - 0.5).abs() < 1e-12);
        assert!(cost_curve(&ranked, &cost[..10], 2).is_none());
    }
}
