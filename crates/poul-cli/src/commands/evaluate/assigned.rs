//! Each row by its own policy, for a person: shown where policies have too few rows to be compared one by one.

use std::collections::BTreeMap;

use poul::evaluate::Evaluation;
use poul_report::number::{count, optional};
use poul_report::policies_name;

use super::summary::{interval, note_lines};
use crate::table::Table;

/// Nothing where arms are full: the JSON has it then too.
pub(super) fn summary(evaluation: &Evaluation) -> String {
    if !evaluation.thin_arms || evaluation.assigned.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        "outcome",
        "policies",
        "rows",
        "different",
        "R-score",
        "interval",
        "slope",
        "interval",
        "rank gain",
        "interval",
        "if true",
    ])
    .left(2);
    for own in &evaluation.assigned {
        table.row([
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
        ]);
    }
    let mut about: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for own in &evaluation.assigned {
        for note in &own.notes {
            about.entry(note).or_default().push(format!("{}, {}", own.outcome, policies_name(own.policies)));
        }
    }
    format!(
        "\nEvery row by its own policy, against what was assigned on average; intervals at {:.0} %.\n{table}\n\
         R-score: the share explained of what the outcome model leaves. Slope: 1 where sizes are right. Rank gain: of two \
         rows, how much more\noutcome the one ranked higher has; 0 for a random ranking, `if true` where effects are as \
         predicted.\n{}",
        100.0 * evaluation.level,
        note_lines(&about, 3)
    )
}
