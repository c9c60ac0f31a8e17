//! Why the difference in means and the doubly robust average of a policy differ, where they do.

use super::super::metric::Metric;
use super::Outcome;
use super::words::{number, signed};

/// Of a standard error; less is not seen by a reader who looks at both tables.
const VISIBLE: f64 = 0.5;
/// Of the standard error of the difference, taken as if the two estimates had nothing in common, which is cautious.
const BEYOND_CHANCE: f64 = 2.0;

struct Apart<'a> {
    policy: &'a str,
    plain: f64,
    robust: f64,
    /// The difference in standard errors of the doubly robust average.
    distance: f64,
    beyond_chance: bool,
}

pub(super) fn explain<'a>(outcome: &Outcome<'a>) -> Option<String> {
    let apart = |result: &'a super::PolicyResult| {
        let average = outcome.average(&result.policy)?;
        let (plain, plain_se) = (result.metrics[Metric::Ate].value?, result.metrics[Metric::Ate].se?);
        let (robust, robust_se) = (average.effect?, average.se?);
        let difference = (plain - robust).abs();
        (difference > VISIBLE * plain_se.min(robust_se)).then(|| Apart {
            policy: &result.policy,
            plain,
            robust,
            distance: difference / robust_se,
            beyond_chance: difference > BEYOND_CHANCE * plain_se.hypot(robust_se),
        })
    };
    let apart: Vec<Apart<'_>> = outcome.results.iter().copied().filter_map(apart).collect();
    let largest = apart.iter().max_by(|a, b| a.distance.total_cmp(&b.distance))?;
    let others = match apart.len() - 1 {
        0 => String::new(),
        1 => ", and one more policy differs".to_owned(),
        n => format!(", and {} more policies differ", number(n as f64).trim_end_matches(".00")),
    };
    let design = outcome.evaluation.provenance.as_ref().and_then(|own| own.design.as_deref());
    let why = match design {
        Some("observational") => {
            "the doubly robust estimate adjusts for who received which policy, the difference in means does not"
        }
        Some("stratified") => {
            "the doubly robust estimate compares within strata, the difference in means mixes strata in which the policies \
             had different shares"
        }
        _ => {
            "the doubly robust estimate uses all rows and takes off what the features explain of the outcome, the difference \
             in means takes the arms as they came"
        }
    };
    let beyond = apart.iter().any(|own| own.beyond_chance);
    let then = match (beyond, design) {
        (false, _) => "They differ by no more than chance allows; the doubly robust one is the one to read.",
        (true, Some("observational")) => "The rows of the two policies were not alike before.",
        (true, Some("stratified")) => "The doubly robust one is the one to read.",
        (true, _) => {
            "That is more than chance allows where assignment was random: look at the balance of features before using \
             either."
        }
    };
    Some(format!(
        "On {} the difference in means of {} is {} and the doubly robust average {}{others}: {why}. {then}",
        outcome.name,
        largest.policy,
        signed(largest.plain),
        signed(largest.robust),
    ))
}
