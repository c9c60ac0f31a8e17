//! What an allocation is worth by outcomes, for a person.

use poul::decide::users::AllocationWorth;
use poul::evaluate::Estimated;

use crate::table::{Table, shortened};
use poul_report::number::{count, optional, significant};

pub(crate) fn worth_summary(worth: &AllocationWorth) -> String {
    let outcomes: Vec<&str> = worth
        .rules
        .first()
        .map(|rule| rule.outcomes.iter().map(|own| own.outcome.as_str()).collect())
        .unwrap_or_default();
    let of_outcome = |name: &&str| [format!("{name} a user"), "interval".to_owned()];
    let mut heading: Vec<String> = outcomes.iter().flat_map(of_outcome).collect();
    if worth.spent.is_some() {
        heading.push("return".to_owned());
    }
    heading.extend(["this is better by".to_owned(), "interval".to_owned()]);
    let mut table = Table::new(["rule"]).with(heading);
    for rule in &worth.rules {
        let mut cells: Vec<String> = Vec::new();
        for own in &rule.outcomes {
            cells.extend([significant(own.per_user.estimate), interval(&own.per_user)]);
        }
        if worth.spent.is_some() {
            cells.push(optional(rule.gained_per_unit.map(|own| own.estimate)));
        }
        let better = rule.outcomes.iter().find(|own| own.outcome == worth.maximize);
        let better = better.and_then(|own| own.first_is_better_by);
        cells.push(optional(better.map(|own| own.estimate)));
        cells.push(better.as_ref().map_or_else(|| "–".to_owned(), interval));
        table.row_with([shortened(&rule.rule)], cells);
    }
    let mut text = format!(
        "Worth by the outcomes of {} rows, against everybody {}: doubly robust, intervals at {:.0} %; better in {}\n",
        count(worth.rows),
        shortened(&worth.against),
        100.0 * worth.level,
        worth.maximize
    );
    text += &table.to_string();
    for note in &worth.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn interval(own: &Estimated) -> String {
    let [low, high] = own.interval;
    format!("{} … {}", significant(low), significant(high))
}
