//! What can be claimed, in one sentence for somebody who reads nothing else.

use super::super::metric::Metric;
use super::super::reasons::{AverageEffect, Verdict};
use super::super::result::{Evaluation, Interval, PolicyResult, TopShare};
use super::words::{listed, number};
use super::{Outcome, OutcomeVerdict, is_thin};

/// The share of users that the sentence speaks of, where targeting is worth it.
const TOP: f64 = 0.3;

/// About the first outcome's largest effect that is told from zero, and what that policy does to the others.
pub(super) fn sentence(evaluation: &Evaluation, outcomes: &[OutcomeVerdict]) -> String {
    let Some(first) = outcomes.first() else {
        return "Nothing was compared, so nothing is claimed.".to_owned();
    };
    let checks =
        evaluation.validation.as_ref().map(|validation| validation.checks.as_slice()).unwrap_or_default();
    let named = |verdict: Verdict| -> Vec<String> {
        checks.iter().filter(|check| check.verdict == verdict).map(|check| check.name.clone()).collect()
    };
    let failed = named(Verdict::Fail);
    if !failed.is_empty() {
        return format!(
            "No claim is made about {}: the experiment failed {}.",
            first.outcome,
            match &failed[..] {
                [one] => format!("a check ({one})"),
                more => format!("{} checks ({})", more.len(), listed(more)),
            }
        );
    }
    let condition = match (checks.is_empty(), named(Verdict::Doubt)) {
        (true, _) => "If the experiment was sound, which was not checked here, ".to_owned(),
        (false, doubts) if doubts.is_empty() => String::new(),
        (false, doubts) => format!("Subject to a look at {}, ", listed(&doubts)),
    };
    let own = Outcome::new(evaluation, &first.outcome);
    match best(&own) {
        Some(best) => format!("{condition}{}.", claim(evaluation, outcomes, &best)),
        None => {
            let no = if condition.is_empty() { "No" } else { "no" };
            format!("{condition}{no} policy is shown to change {}: every effect may be zero.", first.outcome)
        }
    }
}

struct Best<'a> {
    result: &'a PolicyResult,
    effect: f64,
    ends: Interval,
}

/// The policy with the largest effect that is told from zero; the most negative where all are below.
fn best<'a>(outcome: &Outcome<'a>) -> Option<Best<'a>> {
    let apart = |result: &&'a PolicyResult| {
        let (effect, ends) = observed(result, outcome.average(&result.policy))?;
        let is_apart = !is_thin(result) && (ends[0] > 0.0 || ends[1] < 0.0);
        is_apart.then_some(Best { result, effect, ends })
    };
    let all: Vec<Best<'a>> = outcome.results.iter().filter_map(apart).collect();
    let rises = all.iter().any(|own| own.effect > 0.0);
    let size = |own: &Best<'_>| if rises { own.effect } else { -own.effect };
    // Of equals the first.
    all.into_iter().reduce(|best, own| if size(&own) > size(&best) { own } else { best })
}

/// The average effect with its widest interval: the doubly robust one, or the difference in means.
fn observed(result: &PolicyResult, average: Option<&AverageEffect>) -> Option<(f64, Interval)> {
    let robust = average.and_then(|average| Some((average.effect?, average.band.or(average.interval)?)));
    robust.or_else(|| Some((result.metrics[Metric::Ate].value?, result.metrics[Metric::Ate].interval?)))
}

fn claim(evaluation: &Evaluation, outcomes: &[OutcomeVerdict], best: &Best<'_>) -> String {
    let policy = &best.result.policy;
    let level = 100.0 * evaluation.level;
    let change = |outcome: &str, effect: f64, ends: Interval, sure: &str| {
        let verb = if effect > 0.0 { "raises" } else { "lowers" };
        let [low, high] = if effect > 0.0 { ends } else { [-ends[1], -ends[0]] };
        let (size, low, high) = (number(effect.abs()), number(low), number(high));
        format!("{verb} {outcome} by about {size} per user ({sure}{low} to {high})")
    };
    let sure = format!("{level:.0} % sure: ");
    let mut text = format!("{policy} {}", change(&best.result.outcome, best.effect, best.ends, &sure));
    for other in &outcomes[1..] {
        let own = Outcome::new(evaluation, &other.outcome);
        let result = own.results.iter().find(|result| result.policy == *policy);
        let Some((effect, ends)) = result.and_then(|result| observed(result, own.average(policy))) else {
            continue;
        };
        text += &match ends[0] > 0.0 || ends[1] < 0.0 {
            true => format!(" and {}", change(&other.outcome, effect, ends, "")),
            false => format!(" and is not shown to change {}", other.outcome),
        };
    }
    let ranked = outcomes[0].ranking.policies.iter().any(|own| own.policy == *policy && own.passes);
    let settled = matches!(outcomes[0].ranking.grade, super::Grade::Good | super::Grade::Mixed);
    let top = best.result.metrics.uplift_at_k.iter().find(|top| top.share == TOP);
    match top.and_then(|top| gain_of(top, best.effect)).filter(|_| ranked && settled) {
        Some((effect, [low, high])) => format!(
            "{text}; the {:.0} % of users ranked highest gain about {} each ({} to {})",
            100.0 * TOP,
            number(effect),
            number(low),
            number(high)
        ),
        None if ranked && settled => format!("{text}; the ranking tells who gains more"),
        None => format!("{text}; who gains more is not established, so choose for all users alike"),
    }
}

/// The effect in the top share, where it is above zero and above the average of a policy that raises the outcome.
fn gain_of(top: &TopShare, average: f64) -> Option<(f64, Interval)> {
    let (effect, ends) = (top.overall?, top.overall_interval?);
    (average > 0.0 && effect > average && ends[0] > 0.0).then_some((effect, ends))
}
