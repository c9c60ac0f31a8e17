//! The numbers of a comparison: from sums over all rows where these are exact, from buckets in the order of their effects where
//! they are about a ranking.

use super::bounds::bounds;
use super::part::Shape;
use super::plan::{ComparisonPlan, Plan};
use super::powers::Linear;
use super::result::{RankingBounds, SummedResult};
use super::sums::{ArmSums, ComparisonSums, Sums};
use crate::evaluate::metric::{
    Metric, Metrics, Ranked, ResidualSums, auuc, gain_curve, qini, random_auuc, rate_sums,
};
use crate::evaluate::result::PolicyResult;

/// Points of the curve, as everywhere.
const CURVE_POINTS: usize = 101;
const CENTRED: Linear = Linear { constant: 0.0, x: 0.0, y: 1.0 };

/// Every comparison. `has_clusters`: rows are related within clusters, which sums of rows know nothing of.
pub(super) fn metrics(sums: &Sums, shape: &Shape<'_>, plan: &Plan, has_clusters: bool) -> Vec<SummedResult> {
    let all = shape.comparisons().zip(sums.comparisons.iter().zip(&plan.comparisons));
    all.map(|((outcome, target), (sums, own))| {
        let (metrics, bounds) = measure(sums, own, plan.outcomes[outcome].centre, has_clusters);
        SummedResult {
            result: PolicyResult {
                outcome: shape.outcomes[outcome].clone(),
                policy: shape.policies[target].clone(),
                against: shape.policies[shape.against].clone(),
                metrics,
            },
            bounds,
        }
    })
    .collect()
}

fn measure(
    sums: &ComparisonSums,
    own: &ComparisonPlan,
    [centre, residual_centre]: [f64; 2],
    has_clusters: bool,
) -> (Metrics, RankingBounds) {
    let [control, treated] = &own.arms;
    let mut metrics = Metrics {
        n_treated: treated.n_rows as usize,
        n_control: control.n_rows as usize,
        ..Metrics::default()
    };
    if control.n_counted < 2 || treated.n_counted < 2 {
        let what = format!("{} treated and {} control rows", treated.n_counted, control.n_counted);
        metrics.notes.push(format!("{what}: at least 2 of each are needed for any metric"));
        return (metrics, RankingBounds::default());
    }
    let mut set = |metric: Metric, value: Option<f64>| {
        metrics[metric].value = value.filter(|value| value.is_finite());
    };
    let effect = treated.mean - control.mean;
    set(Metric::Ate, Some(effect));
    let mass: f64 = sums.arms.iter().map(|arm| arm.outcome.mass()).sum();
    let predicted: f64 = sums.arms.iter().map(|arm| arm.outcome.of(1, 0)).sum();
    set(Metric::AtePredicted, Some(own.middle + predicted / mass));
    let lines = [0, 1].map(|arm| Line::of(&sums.arms[arm]));
    if let [Some(control), Some(treated)] = &lines {
        set(Metric::CalibrationSlope, Some(treated.slope - control.slope));
    }
    let residual = residual_sums(sums, own, residual_centre);
    set(Metric::RLoss, residual.r_loss());
    set(Metric::RScore, residual.r_score());

    let ranking = Ranking::of(sums, own);
    set(Metric::Auuc, auuc(&ranking.ranked));
    set(Metric::RandomAuuc, random_auuc(&ranking.ranked));
    set(Metric::Qini, qini(&ranking.ranked));
    let rate = rate_sums(ranking.ranked.rows(), &ranking.scores);
    set(Metric::RateAutoc, rate.map(|(autoc, _)| autoc));
    set(Metric::RateQini, rate.map(|(_, qini)| qini));
    metrics.curve = gain_curve(&ranking.ranked, CURVE_POINTS);
    let found = bounds(sums.buckets.iter().rev(), effect, own.scale());
    let n = mass * own.scale();
    let of_arms = treated.mass * own.scale() * effect;
    let known =
        |bound: f64, metric: Metric| metrics[metric].value.and(Some(bound)).filter(|bound| bound.is_finite());
    let bounds = RankingBounds {
        auuc: known(found.gain / (n * effect.abs()), Metric::Auuc),
        qini: known(found.qini / ((n + 1.0) * of_arms.abs()), Metric::Qini),
        rate_autoc: known(found.autoc, Metric::RateAutoc),
        rate_qini: known(found.rate_qini, Metric::RateQini),
    };
    if has_clusters {
        metrics.notes.push(
            "no standard errors: rows are related within clusters, which sums of rows do not know".to_owned(),
        );
    } else {
        let rows = [control.n_counted, treated.n_counted];
        let errors = |arm: usize| {
            let (sums, plan) = (&sums.arms[arm].outcome_squared, &own.arms[arm]);
            let form = Linear { constant: centre - plan.mean, ..CENTRED };
            (rows[arm] > 1)
                .then(|| sums.product(&[form, form]) / (plan.mass * plan.mass) * over(rows[arm], 1))
        };
        metrics[Metric::Ate].se = root(errors(0), errors(1));
        let slope = |arm: usize| {
            let (sums, line) = (&sums.arms[arm].outcome_squared, lines[arm].as_ref()?);
            let x = Linear { constant: -line.mean_x, x: 1.0, y: 0.0 };
            let rest = Linear { constant: line.slope * line.mean_x - line.mean_y, x: -line.slope, y: 1.0 };
            let squares = sums.product(&[x, x, rest, rest]).max(0.0) / (line.spread * line.spread);
            (rows[arm] > 2).then(|| squares * over(rows[arm], 2))
        };
        metrics[Metric::CalibrationSlope].se = root(slope(0), slope(1));
    }
    (metrics, bounds)
}

/// n/(n − lost).
fn over(n_rows: u64, lost: u64) -> f64 {
    n_rows as f64 / (n_rows - lost) as f64
}

fn root(control: Option<f64>, treated: Option<f64>) -> Option<f64> {
    Some((control? + treated?).max(0.0).sqrt())
}

/// The regression of an arm's outcomes on predicted effects.
struct Line {
    mean_x: f64,
    mean_y: f64,
    spread: f64,
    slope: f64,
}

impl Line {
    /// None where the effects do not vary.
    fn of(sums: &ArmSums) -> Option<Self> {
        let sums = &sums.outcome;
        let mass = sums.mass();
        let (mean_x, mean_y) = (sums.of(1, 0) / mass, sums.of(0, 1) / mass);
        let spread = sums.of(2, 0) - sums.of(1, 0) * mean_x;
        // Below rounding the effects of the arm are constant.
        (mass > 0.0 && spread > 1e-13 * sums.of(2, 0)).then(|| Self {
            mean_x,
            mean_y,
            spread,
            slope: (sums.of(1, 1) - sums.of(1, 0) * mean_y) / spread,
        })
    }
}

/// What R-loss and R-score are made of: y − m̂ less its mean, and the centred effect.
fn residual_sums(sums: &ComparisonSums, own: &ComparisonPlan, centre: f64) -> ResidualSums {
    let [control, treated] = &own.arms;
    let mean =
        (control.mass * control.residual + treated.mass * treated.residual) / (control.mass + treated.mass);
    let mut total = ResidualSums::default();
    for (arm, treated) in [0.0, 1.0].into_iter().enumerate() {
        let sums = &sums.arms[arm].residual;
        let of_arm = treated - own.share();
        let residual = Linear { constant: centre - mean, ..CENTRED };
        let error = Linear { constant: residual.constant - of_arm * own.middle, x: -of_arm, y: 1.0 };
        let one = Linear { constant: 1.0, x: 0.0, y: 0.0 };
        total.add_sums(
            sums.mass(),
            sums.product(&[error, error]),
            sums.product(&[residual, residual]),
            of_arm * sums.product(&[residual, one]),
            of_arm * of_arm * sums.mass(),
        );
    }
    total
}

/// Buckets as rows of a ranking, the treated of each and its control rows.
struct Ranking {
    ranked: Ranked,
    /// Mean doubly robust scores, in the order of the rows.
    scores: Vec<f64>,
}

impl Ranking {
    fn of(sums: &ComparisonSums, own: &ComparisonPlan) -> Self {
        let scale = own.scale();
        let (mut effect, mut outcome, mut mass, mut scores) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mean = |sum: f64, mass: f64| if mass > 0.0 { sum / mass } else { 0.0 };
        let centre = own.arms[1].residual - own.arms[0].residual;
        for (place, bucket) in sums.buckets.iter().rev().enumerate() {
            let of_both: f64 = bucket.arms.iter().map(|arm| arm.mass.value()).sum();
            for arm in [1, 0] {
                let cell = &bucket.arms[arm];
                effect.push(-(place as f64));
                outcome.push(own.arms[arm].mean + mean(cell.outcome.sum.value(), cell.mass.value()));
                mass.push(scale * cell.mass.value());
                scores.push(centre + mean(bucket.score.sum.value(), of_both));
            }
        }
        Self { ranked: Ranked::from_cells(effect, outcome, mass), scores }
    }
}
