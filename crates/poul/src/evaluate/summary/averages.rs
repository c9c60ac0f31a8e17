//! Average effects over all rows by the doubly robust score (see `average::score`), where assignment was random: the residuals of
//! each arm and the predicted effects of everyone are all it takes.

use super::part::Shape;
use super::plan::Plan;
use super::powers::Linear;
use super::sums::{AveragedSums, Sums};
use crate::evaluate::metric::FEWEST_ARM_ROWS;
use crate::evaluate::reasons::AverageEffect;
use crate::stats::normal_quantile;

/// The averages of every comparison.
pub(super) fn averages(
    sums: &Sums,
    shape: &Shape<'_>,
    plan: &Plan,
    level: f64,
    has_clusters: bool,
) -> Vec<AverageEffect> {
    let all = shape.comparisons().zip(sums.comparisons.iter().zip(&plan.comparisons));
    all.map(|((outcome, target), (sums, own))| {
        let shares = [plan.shares[shape.against], plan.shares[target]];
        let mut average = average(&sums.averaged, own.middle, shares, level, has_clusters);
        average.outcome.clone_from(&shape.outcomes[outcome]);
        average.policy.clone_from(&shape.policies[target]);
        average.against.clone_from(&shape.policies[shape.against]);
        average
    })
    .collect()
}

fn average(
    sums: &[AveragedSums; 3],
    middle: f64,
    shares: [f64; 2],
    level: f64,
    has_clusters: bool,
) -> AverageEffect {
    let [n_control, n_treated] = [0, 1].map(|arm| sums[arm].n_rows as usize);
    let n_rows = sums.iter().map(|own| own.n_rows).sum::<u64>();
    let mass: f64 = sums.iter().map(|own| own.plain.mass()).sum();
    let mean_x = sums.iter().map(|own| own.plain.of(1, 0)).sum::<f64>() / mass;
    let mut average = AverageEffect {
        rows: n_rows as usize,
        n_treated,
        n_control,
        predicted: (mass > 0.0).then_some(middle + mean_x),
        ..AverageEffect::default()
    };
    if n_treated == 0 || n_control == 0 {
        average.notes.push(format!("{n_treated} treated and {n_control} control rows: no effect is seen"));
        return average;
    }
    // Every arm's μ̂ is moved by the mean of its residuals; corrections then add up to nothing.
    let centres = [0, 1].map(|arm| sums[arm].plain.of(0, 1) / sums[arm].plain.mass());
    let effect = middle + mean_x + centres[1] - centres[0];
    average.effect = Some(effect);
    if n_treated.min(n_control) < FEWEST_ARM_ROWS {
        average.notes.push(format!(
            "{n_treated} treated and {n_control} control rows: fewer than {FEWEST_ARM_ROWS} give no interval"
        ));
        return average;
    }
    if has_clusters {
        average.notes.push(
            "no standard error: rows are related within clusters, which sums of rows do not know".to_owned(),
        );
        return average;
    }
    let squares: f64 = sums
        .iter()
        .enumerate()
        .map(|(place, own)| {
            let form = match place {
                2 => Linear { constant: -mean_x, x: 1.0, y: 0.0 },
                arm => {
                    let over = if arm == 1 { 1.0 / shares[1] } else { -1.0 / shares[0] };
                    Linear { constant: -mean_x - over * centres[arm], x: 1.0, y: over }
                }
            };
            own.squared.product(&[form, form])
        })
        .sum();
    let se = (squares.max(0.0) / (mass * mass) * (n_rows as f64 / (n_rows as f64 - 1.0))).sqrt();
    let half = normal_quantile(0.5 + level / 2.0) * se;
    average.se = Some(se);
    average.interval = Some([effect - half, effect + half]);
    average.p_value = crate::evaluate::average::p_value(effect, se);
    average
}
