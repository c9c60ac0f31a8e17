//! An allocation as it is told: totals, limits with their prices, who gets what, what it is worth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evaluate::RuleWorth;

/// What was decided. Serialises to the JSON of `poul allocate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The users.
    pub users: u64,
    /// The outcome that is to be large.
    pub maximize: String,
    /// The policy that costs and brings nothing.
    pub control: String,
    /// The quantile that effects were decided by, where not as they are predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<f64>,
    /// The predicted total of each outcome against everybody keeping the control.
    pub value: BTreeMap<String, f64>,
    /// The limits.
    pub constraints: Vec<Constraint>,
    /// The total that counts for the decision: that of the maximised outcome, by its lower bounds where there is a risk.
    pub counted: f64,
    /// No allocation within the limits counts for more; none where prices decided.
    pub bound: Option<f64>,
    /// The bound less what counts: how far from the best this can be.
    pub duality_gap: Option<f64>,
    /// Who gets what, the policies with most users first; policies that nobody gets too.
    pub policies: Vec<PolicyShare>,
    /// What budgets bring; empty where it was not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
    /// What it is worth by outcomes; none where users have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<AllocationWorth>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The decision in a sentence.
    pub summary: String,
}

/// A limit and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    /// Such as `budget cost`, `rate cost/gmv`, `cap T2 in Rome`.
    pub name: String,
    /// As it was given: an amount, a ratio, a share of users; none where prices decided.
    pub limit: Option<f64>,
    /// What the allocation takes of it, as it counts for the decision; none where a ratio has no meaning.
    pub used: Option<f64>,
    /// What is left of it: the limit less what is used, the other way round for a floor.
    pub slack: Option<f64>,
    /// What one more unit would add to the total that counts.
    pub price: f64,
    /// What a unit of the price is: an outcome, or `users`.
    pub unit: String,
    /// Whether the limit is from below: one unit less of it is what the price is for.
    pub is_floor: bool,
}

/// The users of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyShare {
    /// The policy.
    pub policy: String,
    /// Its users; a divided user counts by its share.
    pub users: f64,
    /// Their share of all users.
    pub share: f64,
    /// The predicted total of each outcome over them, against the control.
    #[serde(flatten)]
    pub totals: BTreeMap<String, f64>,
}

/// The best that a budget can bring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// What may be spent.
    pub budget: f64,
    /// What it brings: by outcomes where users have them, else as predicted.
    pub value: f64,
    /// The ends of a band that holds the whole curve at once; none without outcomes.
    pub lower: Option<f64>,
    /// As `lower`.
    pub upper: Option<f64>,
    /// What it brings as predicted.
    pub predicted: f64,
}

/// What an allocation is worth on rows of an experiment, beside other ways to give policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationWorth {
    /// The rows.
    pub rows: u64,
    /// Level of intervals.
    pub level: f64,
    /// The outcome that is to be large.
    pub maximize: String,
    /// The outcome that is spent, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<String>,
    /// The policy that the others are compared with.
    pub against: String,
    /// The allocation first, then the others.
    pub rules: Vec<RuleWorth>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Constraint {
    /// What the price means: `one more unit of cost brings 2.3 of gmv`.
    pub fn price_in_words(&self, maximize: &str) -> String {
        let price = plain(self.price);
        match (self.price > 0.0, self.unit.as_str(), self.is_floor) {
            (false, ..) => "not binding".to_owned(),
            (_, "users", false) => format!("one more user brings {price} of {maximize}"),
            (_, "users", true) => format!("one user less brings {price} of {maximize}"),
            (_, unit, _) => format!("one more unit of {unit} brings {price} of {maximize}"),
        }
    }
}

impl Allocation {
    /// The decision in a sentence.
    pub(super) fn sentence(&self, spent: Option<&str>) -> String {
        let treated: Vec<&PolicyShare> =
            self.policies.iter().filter(|own| own.policy != self.control && own.users > 0.0).collect();
        if treated.is_empty() {
            return format!("Keep {} for everybody: nothing pays within the limits.", self.control);
        }
        const NAMED: usize = 3;
        let mut parts: Vec<String> = treated
            .iter()
            .take(NAMED)
            .map(|own| format!("{} to {}", own.policy, percent(own.share)))
            .collect();
        if let Some(first) = parts.first_mut() {
            *first += " of users";
        }
        if treated.len() > NAMED {
            let rest: f64 = treated[NAMED..].iter().map(|own| own.share).sum();
            let others = match treated.len() - NAMED {
                1 => "another policy".to_owned(),
                n => format!("{n} other policies"),
            };
            parts.push(format!("{others} to {}", percent(rest)));
        }
        let total = |outcome: &str| self.value.get(outcome).copied().unwrap_or(0.0);
        let mut text =
            format!("Give {}: about {} of {}", listed(&parts), plain(total(&self.maximize)), self.maximize);
        if let Some(spent) = spent.filter(|spent| *spent != self.maximize) {
            text += &match total(spent) {
                total if total < 0.0 => format!(" while saving {} of {spent}", plain(-total)),
                total => format!(" for {} of {spent}", plain(total)),
            };
        }
        text += ", as predicted";
        let binding = self.constraints.iter().filter(|own| own.price > 0.0 && own.unit != "users");
        // Of many groups each has its own price, which no sentence holds.
        if let [only] = binding.collect::<Vec<_>>().as_slice() {
            text += &format!("; {}", only.price_in_words(&self.maximize));
        }
        text + "."
    }
}

/// `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `0.312` → `31 %`; small shares keep a digit.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// Three digits that matter, with commas between thousands.
pub(super) fn plain(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 { "0".to_owned() } else { number.to_string() };
    }
    let magnitude = number.abs().log10().floor() as i32;
    if !(-4..15).contains(&magnitude) {
        return format!("{number:.2e}");
    }
    if magnitude < 3 {
        return format!("{number:.*}", (2 - magnitude) as usize);
    }
    let unit = 10f64.powi(magnitude - 2);
    let digits = ((number.abs() / unit).round() * unit).round().to_string();
    let mut text = String::from(if number < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let cases =
            [(1_234_567.0, "1,230,000"), (-250_400.0, "-250,000"), (2.345, "2.35"), (0.0123, "0.0123")];
        for (number, text) in cases {
            assert_eq!(plain(number), text);
        }
        assert_eq!((plain(999.6), plain(0.0), plain(12.0)), ("1000".into(), "0".into(), "12.0".into()));
        assert_eq!((percent(0.3123), percent(0.0123)), ("31 %".into(), "1.2 %".into()));
    }

    #[test]
    fn a_sentence_says_what_to_do() {
        let share = |policy: &str, share| PolicyShare {
            policy: policy.to_owned(),
            users: 1000.0 * share,
            share,
            totals: BTreeMap::new(),
        };
        let budget = Constraint {
            name: "budget cost".to_owned(),
            limit: Some(250_000.0),
            used: Some(250_000.0),
            slack: Some(0.0),
            price: 2.3,
            unit: "cost".to_owned(),
            is_floor: false,
        };
        let mut allocation = Allocation {
            users: 1000,
            maximize: "gmv".to_owned(),
            control: "control".to_owned(),
            risk: None,
            value: BTreeMap::from([("gmv".to_owned(), 1.2e6), ("cost".to_owned(), 2.5e5)]),
            constraints: vec![budget],
            counted: 1.2e6,
            bound: None,
            duality_gap: None,
            policies: vec![share("control", 0.57), share("T2", 0.31), share("T1", 0.12), share("T3", 0.0)],
            curve: Vec::new(),
            evaluation: None,
            notes: Vec::new(),
            summary: String::new(),
        };
        assert_eq!(
            allocation.sentence(Some("cost")),
            "Give T2 to 31 % of users and T1 to 12 %: about 1,200,000 of gmv for 250,000 of cost, as predicted; one more unit \
             of cost brings 2.30 of gmv."
        );
        allocation.policies.truncate(1);
        assert_eq!(
            allocation.sentence(Some("cost")),
            "Keep control for everybody: nothing pays within the limits."
        );
    }
}
