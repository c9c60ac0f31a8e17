//! Every row by its own policy against what was assigned on average: what can be said where arms are thin.

use poul::compare::Comparison;
use poul::evaluate::{Evaluation, Metric};

use super::markup::{HtmlTable, interval, paragraph, signed};
use super::page::{Part, Section};
use crate::number::{count, optional};
use crate::policies_name;

const HOW: &str = "A row is measured by the effect of its own policy less the average effect of the policies that it could have \
    been given. R-score: the share explained of what the outcome model leaves; noise keeps it far below 1. Slope: 1 where sizes \
    are right. Rank gain: of two rows, how much more outcome the one ranked higher has; 0 for a random ranking.";

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    if evaluation.assigned.is_empty() {
        return None;
    }
    let mut table = HtmlTable::new(
        "Every row by its own policy, against what was assigned on average",
        2,
        [
            "outcome",
            "policies",
            "rows",
            "different policies",
            "R-score",
            "interval",
            "slope",
            "interval",
            "rank gain",
            "interval",
            "if effects are as predicted",
        ],
    );
    let mut notes: Vec<String> = Vec::new();
    for own in &evaluation.assigned {
        table.row(
            "",
            [
                own.outcome.clone(),
                policies_name(own.policies).to_owned(),
                count(own.rows as u64),
                count(own.n_policies as u64),
                optional(own.r_score),
                interval(own.r_score_interval),
                optional(own.slope),
                interval(own.slope_interval),
                optional(own.rank_gain),
                interval(own.rank_gain_interval),
                optional(own.rank_gain_predicted),
            ],
        );
        let note = |note: &String| format!("{}, {}: {note}.", own.outcome, policies_name(own.policies));
        notes.extend(own.notes.iter().map(note));
    }
    let notes: String = notes.iter().map(|note| paragraph(note)).collect();
    let parts = vec![Part::Html(paragraph(HOW) + &table.render() + &notes)];
    Some(Section { id: "assigned", title: "Each row by its own policy", parts })
}

pub(super) fn of_comparison(comparison: &Comparison) -> Option<Section> {
    let first = comparison.learners.first().filter(|own| !own.assigned.is_empty())?;
    let against = format!("vs {}", comparison.reference.as_deref().unwrap_or("–"));
    let mut table = HtmlTable::new(
        "Every row by its own policy, against what was assigned on average",
        4,
        [
            "outcome",
            "population",
            "policies",
            "learner",
            "rows",
            "R-score",
            "interval",
            &against,
            "interval",
            "slope",
            "interval",
            "rank gain",
            "interval",
            &against,
            "interval",
        ],
    );
    for (place, cell) in first.assigned.iter().enumerate() {
        for learner in &comparison.learners {
            let Some(own) = learner.assigned.get(place) else { continue };
            let value = |metric| optional(own.metric(metric).map(|own| own.value));
            let ends = |metric| interval(own.metric(metric).and_then(|own| own.interval));
            let difference = |metric| signed(own.metric(metric).and_then(|own| own.difference));
            let apart = |metric| interval(own.metric(metric).and_then(|own| own.difference_interval));
            table.row(
                "",
                [
                    cell.outcome.clone(),
                    cell.population.clone(),
                    policies_name(own.policies).to_owned(),
                    learner.label.clone(),
                    count(own.rows as u64),
                    value(Metric::RScore),
                    ends(Metric::RScore),
                    difference(Metric::RScore),
                    apart(Metric::RScore),
                    value(Metric::Slope),
                    ends(Metric::Slope),
                    value(Metric::RankGain),
                    ends(Metric::RankGain),
                    difference(Metric::RankGain),
                    apart(Metric::RankGain),
                ],
            );
        }
    }
    let parts = vec![Part::Html(paragraph(HOW) + &table.render())];
    Some(Section { id: "assigned", title: "Each row by its own policy", parts })
}
