//! Whether predicted effects have the size that is observed, within policies.

use super::super::metric::Metric;
use super::super::result::{Interval, PolicyResult};
use super::words::{ends, listed, number, within};
use super::{Grade, Judgement, Outcome, PolicyJudgement, is_constant, is_thin};
use crate::evaluate::sidak_quantile;

pub(super) fn judge(outcome: &Outcome<'_>) -> Judgement {
    let n = outcome.results.len();
    let quantile = sidak_quantile(n, outcome.evaluation.level);
    let marks: Vec<Mark> = outcome.results.iter().map(|result| mark(outcome, result, quantile)).collect();
    let count = |finding: Finding| marks.iter().filter(|mark| mark.finding == finding).count();
    let grade = match (count(Finding::Agrees), count(Finding::Off)) {
        (agree, _) if agree == n && n > 0 => Grade::Good,
        (0, off) if off > 0 => Grade::Poor,
        (0, _) => Grade::Undecided,
        _ => Grade::Mixed,
    };
    let policies: Vec<PolicyJudgement> = outcome
        .results
        .iter()
        .zip(&marks)
        .map(|(result, mark)| PolicyJudgement {
            policy: result.policy.clone(),
            passes: mark.finding == Finding::Agrees,
            why: mark.why.clone(),
            value: result.metrics[Metric::CalibrationSlope].value.filter(|_| !is_thin(result)),
            interval: result.metrics[Metric::CalibrationSlope].interval.filter(|_| !is_thin(result)),
        })
        .collect();
    let slopes: Vec<f64> = policies.iter().filter_map(|own| own.value).collect();
    let mean = (!slopes.is_empty()).then(|| slopes.iter().sum::<f64>() / slopes.len() as f64);
    Judgement { grade, text: text(outcome.name, grade, &policies, &slopes), mean, mean_se: None, policies }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Agrees,
    Off,
    Unclear,
}

/// How one policy's sizes fare.
struct Mark {
    finding: Finding,
    why: String,
}

fn mark(outcome: &Outcome<'_>, result: &PolicyResult, quantile: f64) -> Mark {
    let of = |finding: Finding, why: String| Mark { finding, why };
    if is_thin(result) {
        return of(Finding::Unclear, "too few rows to judge".to_owned());
    }
    if let Some((predicted, band)) = average(outcome, result, quantile)
        && !(band[0]..=band[1]).contains(&predicted)
    {
        let why =
            format!("predicted average {} is outside the observed band {}", number(predicted), ends(band));
        return of(Finding::Off, why);
    }
    if is_constant(result) {
        return of(Finding::Unclear, "every user gets the same predicted effect".to_owned());
    }
    let metrics = &result.metrics;
    let (Some(slope), Some([low, high])) =
        (metrics[Metric::CalibrationSlope].value, metrics[Metric::CalibrationSlope].interval)
    else {
        return of(Finding::Unclear, "the slope has no interval".to_owned());
    };
    // Wider where many policies are judged, never narrower than the interval that is shown.
    let half = metrics[Metric::CalibrationSlope].se.map_or(0.0, |se| quantile * se);
    let (least, most) = (low.min(slope - half), high.max(slope + half));
    let said = format!("slope {} ({})", number(slope), ends([low, high]));
    match (most < 1.0, least > 1.0) {
        (true, _) => of(Finding::Off, format!("predicted differences between users are too large: {said}")),
        (_, true) => of(Finding::Off, format!("predicted differences between users are too small: {said}")),
        _ if low > 0.0 && high < 2.0 => of(Finding::Agrees, said),
        _ => of(Finding::Unclear, format!("{said} is too uncertain")),
    }
}

/// The mean predicted effect and the band of the observed one: of the doubly robust averages, else of differences in means.
fn average(outcome: &Outcome<'_>, result: &PolicyResult, quantile: f64) -> Option<(f64, Interval)> {
    let robust = outcome.average(&result.policy);
    if let Some((predicted, band)) = robust.and_then(|own| Some((own.predicted?, own.band?))) {
        return Some((predicted, band));
    }
    let metrics = &result.metrics;
    let (predicted, effect, half) = (
        metrics[Metric::AtePredicted].value?,
        metrics[Metric::Ate].value?,
        quantile * metrics[Metric::Ate].se?,
    );
    Some((predicted, [effect - half, effect + half]))
}

fn text(outcome: &str, grade: Grade, policies: &[PolicyJudgement], slopes: &[f64]) -> String {
    let n = policies.len();
    let failing: Vec<String> = policies
        .iter()
        .filter(|own| !own.passes)
        .map(|own| if n == 1 { own.why.clone() } else { format!("{} ({})", own.policy, own.why) })
        .collect();
    let slope = match (policies, slopes) {
        ([own], [_]) => own.why.clone(),
        _ => {
            let low = slopes.iter().copied().fold(f64::INFINITY, f64::min);
            let high = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            format!("slopes {} to {}", number(low), number(high))
        }
    };
    let agree = "the sizes of effects agree with what was observed";
    match grade {
        Grade::Good => format!("On {outcome} {agree} within {}: {slope}.", within(n, n)),
        Grade::Mixed => format!(
            "On {outcome} {agree} within {}, but not within {}.",
            within(n - failing.len(), n),
            listed(&failing)
        ),
        Grade::Poor => {
            format!("On {outcome} the sizes of effects are not those observed: {}.", listed(&failing))
        }
        Grade::Undecided => {
            format!("On {outcome} the sizes of effects cannot be judged: {}.", listed(&failing))
        }
    }
}
