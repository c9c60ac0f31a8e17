//! Whether users are ranked better than at random, within policies.

use super::super::metric::Metric;
use super::super::result::PolicyResult;
use super::words::{ends, listed, number, within};
use super::{Grade, Judgement, Outcome, PolicyJudgement, is_constant, is_thin};
use crate::stats::normal_quantile;

/// Chance that a policy with a random ranking passes.
const EACH: f64 = 0.05;
/// Chance that a random learner passes on any outcome.
const TOGETHER: f64 = 0.001;

pub(super) fn judge(outcome: &Outcome<'_>, n_outcomes: usize) -> Judgement {
    let marks: Vec<Mark> = outcome.results.iter().map(|result| mark(result)).collect();
    let mean = mean(outcome, &marks);
    let grade = grade(&marks, mean, n_outcomes);
    let level = outcome.evaluation.level;
    let policies: Vec<PolicyJudgement> = outcome
        .results
        .iter()
        .zip(&marks)
        .map(|(result, mark)| PolicyJudgement {
            policy: result.policy.clone(),
            passes: mark.finding == Finding::Better,
            why: mark.finding.words().to_owned(),
            value: mark.gain,
            interval: mark.interval(level),
        })
        .collect();
    let text = text(outcome, grade, &policies, &marks, mean);
    Judgement { grade, text, mean: mean.map(|mean| mean.gain), mean_se: mean.map(|mean| mean.se), policies }
}

/// How one policy's ranking fares.
struct Mark {
    finding: Finding,
    gain: Option<f64>,
    se: Option<f64>,
    z: f64,
}

impl Mark {
    fn interval(&self, level: f64) -> Option<[f64; 2]> {
        let (gain, half) = (self.gain?, normal_quantile(0.5 + level / 2.0) * self.se?);
        Some([gain - half, gain + half])
    }

    fn is_judged(&self) -> bool {
        matches!(self.finding, Finding::Better | Finding::Unclear | Finding::Worse)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Better,
    Unclear,
    Worse,
    Constant,
    Thin,
    Unknown,
}

impl Finding {
    fn words(self) -> &'static str {
        match self {
            Self::Better => "better than random",
            Self::Unclear => "cannot be told from random",
            Self::Worse => "worse than random",
            Self::Constant => "every user gets the same predicted effect",
            Self::Thin => "too few rows to judge",
            Self::Unknown => "no standard error",
        }
    }
}

fn mark(result: &PolicyResult) -> Mark {
    let metrics = &result.metrics;
    let silent = |finding: Finding| Mark { finding, gain: None, se: None, z: 0.0 };
    if is_thin(result) {
        return silent(Finding::Thin);
    }
    if is_constant(result) {
        return silent(Finding::Constant);
    }
    match (metrics[Metric::RateQini].value, metrics[Metric::RateQini].se) {
        (Some(gain), Some(se)) if se > 0.0 => {
            let (z, bar) = (gain / se, normal_quantile(1.0 - EACH));
            let finding = match z {
                z if z > bar => Finding::Better,
                z if z < -bar => Finding::Worse,
                _ => Finding::Unclear,
            };
            Mark { finding, gain: Some(gain), se: Some(se), z }
        }
        _ => silent(Finding::Unknown),
    }
}

/// The mean gain of the policies that were judged.
#[derive(Clone, Copy)]
struct Mean {
    gain: f64,
    se: f64,
}

/// Policies are compared with the same control rows, so that their gains go together: by no more than √(f·f′), f being the
/// control rows' share of a gain's variance where arms are alike, n_treated / (n_treated + n_control).
fn mean(outcome: &Outcome<'_>, marks: &[Mark]) -> Option<Mean> {
    let judged: Vec<(f64, f64, f64)> = outcome
        .results
        .iter()
        .zip(marks)
        .filter_map(|(result, mark)| {
            let (treated, control) = (result.metrics.n_treated as f64, result.metrics.n_control as f64);
            Some((mark.gain?, mark.se?, treated / (treated + control)))
        })
        .collect();
    let n = judged.len() as f64;
    let gain = judged.iter().map(|(gain, ..)| gain).sum::<f64>() / n;
    // Σ_j Σ_k se·se′·√(f·f′), and what is a policy's own on the diagonal.
    let shared = judged.iter().map(|(_, se, share)| se * share.sqrt()).sum::<f64>().powi(2);
    let own: f64 = judged.iter().map(|(_, se, share)| se * se * (1.0 - share)).sum();
    (!judged.is_empty()).then(|| Mean { gain, se: (shared + own).sqrt() / n })
}

fn grade(marks: &[Mark], mean: Option<Mean>, n_outcomes: usize) -> Grade {
    let n = |finding: Finding| marks.iter().filter(|mark| mark.finding == finding).count();
    let n_judged = marks.iter().filter(|mark| mark.is_judged()).count();
    let together = mean
        .is_some_and(|mean| mean.gain > normal_quantile(1.0 - TOGETHER / n_outcomes.max(1) as f64) * mean.se);
    let alone = normal_quantile(1.0 - EACH / n_judged.max(1) as f64);
    let somewhere = n_judged > 1 && marks.iter().any(|mark| mark.z > alone);
    match n(Finding::Better) {
        passed if passed > 0 && passed == marks.len() && together => Grade::Good,
        passed if passed > 0 && passed < marks.len() && (together || somewhere) => Grade::Mixed,
        _ if n(Finding::Constant) > 0 && n(Finding::Better) == 0 => Grade::Poor,
        _ if n(Finding::Worse) > 0 && 2 * n(Finding::Worse) > n_judged => Grade::Poor,
        _ => Grade::Undecided,
    }
}

fn text(
    outcome: &Outcome<'_>,
    grade: Grade,
    policies: &[PolicyJudgement],
    marks: &[Mark],
    mean: Option<Mean>,
) -> String {
    let name = outcome.name;
    let n = policies.len();
    let failing: Vec<String> = policies
        .iter()
        .filter(|own| !own.passes)
        .map(|own| if n == 1 { own.why.clone() } else { format!("{} ({})", own.policy, own.why) })
        .collect();
    let n_passed = n - failing.len();
    let gain = match (mean, policies) {
        (Some(_), [PolicyJudgement { value: Some(value), interval: Some(interval), .. }]) => {
            format!(" Gain over a random order: {} per user ({}).", number(*value), ends(*interval))
        }
        (Some(mean), _) => {
            let half = normal_quantile(0.5 + outcome.evaluation.level / 2.0) * mean.se;
            format!(
                " Gain over a random order, mean of policies: {} per user ({}).",
                number(mean.gain),
                ends([mean.gain - half, mean.gain + half])
            )
        }
        (None, _) => String::new(),
    };
    let all = |finding: Finding| marks.iter().all(|mark| mark.finding == finding);
    let what = match grade {
        Grade::Good => format!("users are ranked better than at random within {}.", within(n, n)),
        Grade::Mixed => format!(
            "users are ranked better than at random within {}, but not within {}.",
            within(n_passed, n),
            listed(&failing)
        ),
        Grade::Poor if all(Finding::Constant) => {
            "users are not ranked: every user gets the same predicted effect.".to_owned()
        }
        Grade::Poor => format!("users are not ranked better than at random: {}.", listed(&failing)),
        Grade::Undecided if n_passed == n => {
            "users are perhaps ranked better than at random, but chance is not ruled out at 99.9 %."
                .to_owned()
        }
        Grade::Undecided if all(Finding::Thin) || all(Finding::Unknown) => {
            format!(
                "the ranking of users cannot be judged: {}.",
                marks.first().map_or("", |mark| mark.finding.words())
            )
        }
        Grade::Undecided => {
            "the ranking of users cannot be told from a random one within policies.".to_owned()
        }
    };
    format!("On {name} {what}{gain}")
}
