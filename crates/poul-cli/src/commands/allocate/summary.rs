//! An allocation for a person: who gets what, limits with their prices, what it is worth.

use poul::decide::users::{Allocation, Constraint};

use super::worth::worth_summary;
use crate::spelling::with_flags;
use crate::table::{Table, shortened};
use poul_report::number::{count, optional, percent, significant};

/// Policies that a person reads; the JSON has all.
const SHOWN: usize = 20;

pub(super) fn summary(allocation: &Allocation) -> String {
    let mut text = policies(allocation);
    if !allocation.constraints.is_empty() {
        text += "\n";
        text += &constraints(allocation);
    }
    text += "\n";
    text += &gap(allocation);
    if let Some(evaluation) = &allocation.evaluation {
        text += "\n";
        text += &worth_summary(evaluation);
    }
    for note in &allocation.notes {
        text += &format!("note: {}\n", with_flags(note));
    }
    text + "\n" + &allocation.summary + "\n"
}

fn policies(allocation: &Allocation) -> String {
    let outcomes: Vec<&String> = allocation.value.keys().collect();
    let predicted = |name: &&String| format!("{name}, predicted");
    let mut table = Table::new(["policy", "users", "share"]).with(outcomes.iter().map(predicted));
    let shown = allocation.policies.iter().filter(|own| own.users > 0.0);
    for own in shown.clone().take(SHOWN) {
        let totals = outcomes.iter().map(|name| optional(own.totals.get(*name).copied()));
        table.row_with([shortened(&own.policy), users(own.users), percent(own.share)], totals);
    }
    let totals = outcomes.iter().map(|name| optional(allocation.value.get(*name).copied()));
    table.row_with(["all users".to_owned(), count(allocation.users), percent(1.0)], totals);
    let mut text = table.to_string();
    let more = shown.count().saturating_sub(SHOWN);
    if more > 0 {
        text += &format!("{more} more policies have users too: see the JSON\n");
    }
    text += &format!("\nPredicted totals are against everybody keeping {}.", shortened(&allocation.control));
    if let Some(risk) = allocation.risk {
        text += &format!(" Decided by the quantile {risk} of gains, and its mirror of what is limited.");
    }
    text + "\n"
}

fn constraints(allocation: &Allocation) -> String {
    let mut table = Table::new(["limit", "amount", "used", "slack", "price"]);
    let number = |own: &Constraint, number: Option<f64>| match own.unit.as_str() {
        "users" => number.map_or_else(|| "–".to_owned(), percent),
        _ => optional(number),
    };
    for own in &allocation.constraints {
        table.row([
            shortened(&own.name),
            number(own, own.limit),
            number(own, own.used),
            number(own, own.slack.map(|slack| without_rounding(slack, own.limit))),
            own.price_in_words(&allocation.maximize),
        ]);
    }
    table.to_string()
}

fn gap(allocation: &Allocation) -> String {
    let (Some(gap), Some(bound)) = (allocation.duality_gap, allocation.bound) else {
        return "Decided by prices that were found before: limits are not kept by force.\n".to_owned();
    };
    let gap = without_rounding(gap, Some(bound));
    let share = if bound != 0.0 { gap / bound.abs() } else { 0.0 };
    format!(
        "Duality gap {}: no allocation within the limits brings more than {} of {} ({:.3} % more).\n",
        significant(gap),
        significant(bound),
        allocation.maximize,
        100.0 * share
    )
}

/// Nothing, where a number is what rounding left of it.
fn without_rounding(number: f64, of: Option<f64>) -> f64 {
    const ROUNDING: f64 = 1e-8;
    if number.abs() <= ROUNDING * of.unwrap_or(0.0).abs() { 0.0 } else { number }
}

/// Whole users but for a divided one.
fn users(n: f64) -> String {
    if n.fract().abs() < 1e-9 {
        count(n.round() as u64)
    } else {
        format!("{}.{:02.0}", count(n as u64), 100.0 * n.fract())
    }
}
