//! Features whose names say that they are none.

use super::super::findings::{Finding, Level};
use super::{about, exclude};
use crate::data::Columns;

/// What outcomes are called. Whole names only: `past_spend` and `visits_30d` were known before.
const OUTCOMES: [&str; 24] = [
    "click",
    "clicked",
    "clicks",
    "conversion",
    "conversions",
    "converted",
    "cost",
    "costs",
    "gmv",
    "margin",
    "orders",
    "outcome",
    "profit",
    "purchase",
    "purchased",
    "redeemed",
    "response",
    "revenue",
    "sales",
    "spend",
    "spent",
    "visit",
    "visited",
    "y",
];

pub(crate) fn by_name(columns: &Columns) -> Vec<Finding> {
    let names: Vec<&str> = columns.features.iter().map(|feature| feature.name.as_str()).collect();
    let those = |is: fn(&str) -> bool| names.iter().copied().filter(|name| is(name)).collect::<Vec<&str>>();
    let mut findings = Vec::new();
    let indices = those(is_index);
    if !indices.is_empty() {
        let what = match indices.len() {
            1 => "is the index of a data frame, not a feature",
            _ => "are indices of data frames, not features",
        };
        let hint = format!("leave it out: {}", exclude(&indices));
        findings.push(about(Level::Problem, &indices, what, &hint));
    }
    let outcomes = those(is_outcome);
    if !outcomes.is_empty() {
        let what = match outcomes.len() {
            1 => "is named like an outcome and is used as a feature",
            _ => "are named like outcomes and are used as features",
        };
        let hint = format!(
            "if it was measured after assignment, leave it out with {}, or name it as an ‹outcome›",
            exclude(&outcomes)
        );
        findings.push(about(Level::Warning, &outcomes, what, &hint));
    }
    findings
}

/// What pandas calls an index that it writes: `__index_level_0__` in Parquet, `Unnamed: 0` in CSV.
fn is_index(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parquet = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    let csv = name.strip_prefix("Unnamed: ").or_else(|| name.strip_prefix("Unnamed:"));
    parquet.or(csv).is_some_and(number)
}

fn is_outcome(name: &str) -> bool {
    OUTCOMES.contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_outcomes_are_told_from_features() {
        assert!(["__index_level_0__", "__index_level_12__", "Unnamed: 0"].iter().all(|name| is_index(name)));
        assert!(
            !["index", "__index_level__", "Unnamed: city", "Unnamed: "].iter().any(|name| is_index(name))
        );
        assert!(["cost", "Spend", "GMV"].iter().all(|name| is_outcome(name)));
        assert!(!["past_spend", "cost_30d", "visits", "city"].iter().any(|name| is_outcome(name)));
        assert!(OUTCOMES.is_sorted());
    }
}
