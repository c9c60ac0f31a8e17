//! What a design amounts to, in a sentence.

use super::result::{Design, Plan, Population};

/// For proposals.
pub(super) fn conclusion(found: &Design, level: f64) -> String {
    let (Some(first), Some(base), Some(outcome)) = (found.proposals.first(), &found.base, &found.maximize)
    else {
        return String::new();
    };
    let whose = match found.population {
        Population::Training => "of the training population",
        Population::Users => "of these users",
    };
    if let Some(learn) = &found.learn {
        let less = 100.0 * (1.0 - learn.se_after / learn.se.max(f64::MIN_POSITIVE));
        return format!(
            "{} users, {:.0} % of them under {}, on {} policies would make the averages of {} candidates {less:.0} % more precise.",
            count(learn.rows),
            100.0 * learn.control_share,
            found.against,
            learn.arms.len(),
            learn.candidates,
        );
    }
    let Some(effect) = first.effects.iter().find(|own| own.outcome == *outcome) else { return String::new() };
    let [low, high] = effect.interval.map(number);
    let contexts = match first.words.len() {
        1 => "1 context".to_owned(),
        n => format!("{n} contexts"),
    };
    let gain = first.improvement.value;
    let beyond = match gain > 0.0 {
        true => format!(
            "{} more than {} (better with a probability of {:.0} %)",
            number(gain),
            base.policy,
            100.0 * first.improvement.chance
        ),
        false => format!("no more than {}, which nothing near it is expected to beat", base.policy),
    };
    let users = match effect.users_needed {
        Some(users) => format!("; {} users would tell it from {}", count(users), found.against),
        None => String::new(),
    };
    format!(
        "Run {} next: it changes {contexts} of {} and is expected to add {} {outcome} for a user {whose} ({:.0} % interval {low} to \
         {high}), {beyond}{users}.",
        first.policy,
        base.policy,
        number(effect.effect),
        100.0 * level,
    )
}

/// For a plan alone.
pub(super) fn plan_conclusion(plan: &Plan, control: &str) -> String {
    let smallest: Vec<String> =
        plan.detectable.iter().map(|own| format!("{} {}", number(own.effect), own.outcome)).collect();
    format!(
        "With {} users shared evenly by {} policies and {control}, effects of {} or more would be told four times in five.",
        count(plan.rows),
        plan.arms - 1,
        smallest.join(" and "),
    )
}

/// Three significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..7).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    format!("{value:.*}", (2 - magnitude).max(0) as usize)
}

/// `3,820,637`.
fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
