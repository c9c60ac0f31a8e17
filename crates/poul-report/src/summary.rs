//! The summary: what the evaluation found, in plain words, each sentence with a verdict.

use poul::evaluate::{
    AssignedPolicies, AssignedResult, AverageEffect, Evaluation, Grade, Interval, Judgement, Metric,
    OutcomeVerdict, PolicyResult, Verdict, verdicts,
};

use super::markup::{escape, interval, listed, several, signed};
use super::page::{Part, Section};
use super::{is_thin, outcomes};
use crate::number::{count, optional, percent, significant};

/// Less of a policy's mixture than this on atoms with enough rows, and the policy leans on thin evidence.
const ENOUGH_SUPPORT: f64 = 0.9;

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let mut lines = vec![size(evaluation), checks(evaluation)];
    // From the evaluation itself, so that one from before verdicts has them too.
    let verdicts = verdicts(evaluation);
    for own in &verdicts.outcomes {
        lines.push(effects(evaluation, &own.outcome));
        lines.extend(judged(own).map(Some));
        lines.push(own.pooled.clone().map(|text| Line::new(None, text)));
    }
    lines.extend(evaluation.assigned.iter().map(|own| assigned(evaluation, own)));
    lines.push(support(evaluation));
    let items: String = lines.into_iter().flatten().map(|line| line.render()).collect();
    let list = format!("<ul class=\"verdicts\">\n{items}</ul>\n");
    let conclusion = format!("<p class=\"conclusion\">{}</p>\n", escape(&verdicts.conclusion));
    let parts = vec![Part::Html(list + &conclusion)];
    Some(Section { id: "summary", title: "Summary", parts })
}

/// A sentence and what to make of it: a class of the page and a word.
pub(super) struct Line {
    class: &'static str,
    mark: &'static str,
    text: String,
}

impl Line {
    pub(super) fn new(verdict: Option<Verdict>, text: String) -> Self {
        let (class, mark) = match verdict {
            Some(Verdict::Pass) => ("pass", "good"),
            Some(Verdict::Doubt) => ("doubt", "doubt"),
            Some(Verdict::Fail) => ("fail", "fails"),
            None => ("note", "note"),
        };
        Self { class, mark, text }
    }

    fn graded(judgement: &Judgement) -> Self {
        let (class, mark) = match judgement.grade {
            Grade::Good => ("pass", "good"),
            Grade::Mixed => ("doubt", "mixed"),
            Grade::Poor => ("fail", "poor"),
            Grade::Undecided => ("note", "undecided"),
        };
        Self { class, mark, text: judgement.text.clone() }
    }

    pub(super) fn render(&self) -> String {
        let Self { class, mark, text } = self;
        format!("<li class=\"{class}\"><span class=\"mark\">{mark}</span> {}</li>\n", escape(text))
    }
}

fn judged(verdict: &OutcomeVerdict) -> [Line; 2] {
    [Line::graded(&verdict.ranking), Line::graded(&verdict.sizes)]
}

fn size(evaluation: &Evaluation) -> Option<Line> {
    let mut policies: Vec<&str> = evaluation.results.iter().map(|result| result.policy.as_str()).collect();
    policies.sort_unstable();
    policies.dedup();
    let Some(against) = evaluation.results.first().map(|result| &result.against) else {
        let text = format!(
            "{}; policies have too few rows to be compared one by one. Intervals hold {:.0} % of the draws.",
            several(evaluation.rows, "row", "rows"),
            100.0 * evaluation.level,
        );
        return Some(Line::new(None, text));
    };
    let outcomes = outcomes(evaluation).join(" and ");
    let text = format!(
        "{}; {} against {against}, on {outcomes}. Intervals hold {:.0} % of the draws.",
        several(evaluation.rows, "row", "rows"),
        several(policies.len(), "policy", "policies"),
        100.0 * evaluation.level,
    );
    Some(Line::new(None, text))
}

/// Whether the experiment was sound.
fn checks(evaluation: &Evaluation) -> Option<Line> {
    let Some(validation) = evaluation.validation.as_ref().filter(|validation| !validation.checks.is_empty())
    else {
        return Some(Line::new(None, "The evaluation carries no checks of the design.".to_owned()));
    };
    let named = |verdict: Verdict| -> Vec<String> {
        let own = validation.checks.iter().filter(|check| check.verdict == verdict);
        own.map(|check| check.name.clone()).collect()
    };
    let (failed, doubtful) = (named(Verdict::Fail), named(Verdict::Doubt));
    let n = several(validation.checks.len(), "check", "checks");
    Some(match (failed.is_empty(), doubtful.is_empty()) {
        (true, true) => {
            Line::new(Some(Verdict::Pass), format!("The experiment looks sound: {n} of the design passed."))
        }
        (true, false) => {
            let text = format!("Of {n} of the design none failed; to be looked at: {}.", listed(&doubtful));
            Line::new(Some(Verdict::Doubt), text)
        }
        (false, _) => {
            let text = format!("Of {n} of the design some failed: {}.", listed(&failed));
            Line::new(Some(Verdict::Fail), text)
        }
    })
}

/// Which policies do something.
fn effects(evaluation: &Evaluation, outcome: &str) -> Option<Line> {
    let own: Vec<&PolicyResult> =
        evaluation.results.iter().filter(|result| result.outcome == outcome).collect();
    let (mut apart, mut n_known, mut banded, mut n_lacking) = (Vec::new(), 0, true, 0);
    for result in &own {
        let average = average(evaluation, result);
        if average.is_some_and(AverageEffect::lacks_overlap) {
            n_lacking += 1;
            continue;
        }
        banded &= average.is_some_and(|average| average.band.is_some());
        let thin = is_thin(result.metrics.n_treated, result.metrics.n_control);
        let Some((effect, ends)) = effect_of(result, average).filter(|_| !thin) else { continue };
        n_known += 1;
        if ends[0] > 0.0 || ends[1] < 0.0 {
            apart.push(format!("{} ({})", result.policy, signed(Some(effect))));
        }
    }
    let n_thin =
        own.iter().filter(|result| is_thin(result.metrics.n_treated, result.metrics.n_control)).count();
    let how = if banded && n_known > 0 { "the simultaneous band" } else { "the interval" };
    let mut text = match (n_known, apart.is_empty()) {
        (0, _) => format!("On {outcome} no policy has an interval for its average effect."),
        (_, true) => format!("On {outcome} {how} separates no policy's average effect from zero."),
        (_, false) => format!(
            "On {outcome} {how} separates the average effect of {} of {} from zero: {}.",
            apart.len(),
            several(n_known, "policy", "policies"),
            listed(&apart)
        ),
    };
    if n_thin > 0 {
        let have = if n_thin == 1 { "has" } else { "have" };
        text += &format!(" {} {have} too few rows to say.", several(n_thin, "policy", "policies"));
    }
    if n_lacking > 0 {
        text += &format!(
            " Of {} nothing is claimed: too many rows had next to no chance of one of the two policies.",
            several(n_lacking, "policy", "policies")
        );
        return Some(Line::new(Some(Verdict::Fail), text));
    }
    Some(Line::new(if apart.is_empty() { None } else { Some(Verdict::Pass) }, text))
}

/// The doubly robust average of a comparison, where it was computed.
pub(super) fn average<'a>(evaluation: &'a Evaluation, result: &PolicyResult) -> Option<&'a AverageEffect> {
    evaluation.averages.iter().find(|average| {
        average.by.is_none() && average.outcome == result.outcome && average.policy == result.policy
    })
}

/// The average effect with its widest interval: the doubly robust one, or the difference in means, which says nothing where
/// nobody randomised.
fn effect_of(result: &PolicyResult, average: Option<&AverageEffect>) -> Option<(f64, Interval)> {
    if let Some(average) = average.filter(|average| average.share_without_overlap.is_some()) {
        return Some((average.effect?, average.band.or(average.interval)?));
    }
    let robust = average.and_then(|average| Some((average.effect?, average.band.or(average.interval)?)));
    robust.or_else(|| Some((result.metrics[Metric::Ate].value?, result.metrics[Metric::Ate].interval?)))
}

/// Whether effects hold row by row, where policies are too thin to be compared.
fn assigned(evaluation: &Evaluation, own: &AssignedResult) -> Option<Line> {
    if !evaluation.thin_arms || own.policies == AssignedPolicies::Seen {
        return None;
    }
    let whose = if own.policies == AssignedPolicies::New { "new policies" } else { "all policies" };
    let (gain, ends) = (own.rank_gain?, own.rank_gain_interval);
    let numbers = format!(
        "rank gain {} ({}), slope {} ({})",
        significant(gain),
        interval(ends),
        optional(own.slope),
        interval(own.slope_interval)
    );
    let (verdict, what) = match ends {
        Some([low, _]) if low > 0.0 => (Some(Verdict::Pass), "rank rows better than chance"),
        Some([_, high]) if high < 0.0 => (Some(Verdict::Fail), "rank rows worse than chance"),
        Some(_) => (Some(Verdict::Doubt), "cannot be told from a random ranking"),
        None => (None, "have no interval"),
    };
    Some(Line::new(verdict, format!("On {} the effects of {whose} {what}: {numbers}.", own.outcome)))
}

/// Which policies lean on what was hardly seen.
fn support(evaluation: &Evaluation) -> Option<Line> {
    if evaluation.policies.is_empty() {
        return None;
    }
    let evaluated = |name: &str| evaluation.results.iter().any(|result| result.policy == name);
    let mut weak = Vec::new();
    for place in evaluation.policies.iter().filter(|place| evaluated(&place.policy)) {
        if place.unseen_share > 0.0 {
            weak.push(format!("{} ({} unseen)", place.policy, percent(place.unseen_share)));
        } else if place.supported_share < ENOUGH_SUPPORT {
            weak.push(format!("{} ({} thin)", place.policy, percent(1.0 - place.supported_share)));
        }
    }
    Some(match weak.is_empty() {
        true => Line::new(
            Some(Verdict::Pass),
            "Every policy rests on atoms with enough training rows.".to_owned(),
        ),
        false => Line::new(
            Some(Verdict::Doubt),
            format!(
                "{} on atoms that training saw little or never: {}.",
                match weak.len() {
                    1 => "One policy leans".to_owned(),
                    n => format!("{} policies lean", count(n as u64)),
                },
                listed(&weak)
            ),
        ),
    })
}
