//! A design for a person: what was searched, the proposals and their changes, what could be told, and a sentence.

use poul::decide::design::{Base, Design, Effect, Learn, Plan, Population, Proposal, Search};

use crate::table::{Table, shortened};
use poul_report::number::{count, percent, significant};

pub(super) fn text(found: &Design, level: f64) -> String {
    let mut text = String::new();
    if let (Some(base), Some(search)) = (&found.base, &found.search) {
        text += &searched(base, search);
    }
    if !found.proposals.is_empty() {
        let whose = match (found.population, found.users) {
            (Population::Users, Some(users)) => format!("{} users", count(users)),
            _ => "the training population".to_owned(),
        };
        text += &format!(
            "\naverage effect against {} over {whose}, interval at {}\n{}",
            shortened(&found.against),
            percent(level),
            table(found)
        );
        found.proposals.iter().for_each(|own| text += &changes(own));
    }
    text += &found.learn.as_ref().map(|own| learned(own, &found.against)).unwrap_or_default();
    text += &found.plan.as_ref().map(planned).unwrap_or_default();
    if !text.is_empty() {
        text += "\n";
    }
    text + &found.conclusion + "\n"
}

fn searched(base: &Base, search: &Search) -> String {
    let size = match search.policies < 1_000_000_000 {
        true => count(search.policies),
        false => format!("{:.1e}", search.policies as f64),
    };
    let space = format!(
        "policies that are {} with at most {} contexts changed, to actions with at least {} training rows there",
        shortened(&base.policy),
        search.edits,
        count(search.min_rows)
    );
    let how = match search.exact {
        true => format!("searched all {size} {space}\n"),
        false => format!(
            "looked at {} of {size} {space}; {} of {} starts ended at the best found\n",
            count(search.looked_at),
            search.agreeing,
            search.starts
        ),
    };
    format!(
        "{how}{} of them are new, within {} of a policy that was run, and affordable\n",
        count(search.eligible),
        search.within
    )
}

fn table(found: &Design) -> String {
    let outcomes: Vec<&String> = found.noise.iter().map(|own| &own.outcome).collect();
    let base = found.base.as_ref().map_or("the base", |base| base.policy.as_str());
    let heading = outcomes.iter().flat_map(|outcome| [(*outcome).clone(), "interval".to_owned()]);
    let more = [
        format!("more than {}", shortened(base)),
        "chance of more".to_owned(),
        "nearest run".to_owned(),
        "distance".to_owned(),
        "fewest rows".to_owned(),
        "users to tell".to_owned(),
    ];
    let mut table = Table::new(["policy"]).with(heading.chain(more));
    let cells = |effects: &[Effect]| {
        effects
            .iter()
            .flat_map(|own| {
                let [low, high] = own.interval.map(significant);
                [significant(own.effect), format!("{low} … {high}")]
            })
            .collect::<Vec<String>>()
    };
    let of_outcome = |effects: &[Effect]| {
        let own = effects.iter().find(|own| Some(&own.outcome) == found.maximize.as_ref());
        own.and_then(|own| own.users_needed).map_or_else(|| "–".to_owned(), count)
    };
    if let Some(base) = &found.base {
        let none = || "–".to_owned();
        let tail =
            [none(), none(), shortened(&base.policy), "0".to_owned(), none(), of_outcome(&base.effects)];
        table.row_with([shortened(&base.policy)], cells(&base.effects).into_iter().chain(tail));
    }
    for own in &found.proposals {
        let tail = [
            significant(own.improvement.value),
            percent(own.improvement.chance),
            own.nearest.as_deref().map(shortened).unwrap_or_default(),
            significant(own.distance),
            count(own.fewest_rows),
            of_outcome(&own.effects),
        ];
        table.row_with([own.policy.clone()], cells(&own.effects).into_iter().chain(tail));
    }
    table.to_string()
}

fn changes(own: &Proposal) -> String {
    let mut text = format!("\n{}: {}\n", own.policy, own.verdict);
    own.words.iter().for_each(|words| text += &format!("  {words}\n"));
    text
}

fn learned(learn: &Learn, control: &str) -> String {
    let mut table = Table::new(["policy", "share", "users", "interval of its value now", "after"]);
    let ends = |[low, high]: [f64; 2]| format!("{} … {}", significant(low), significant(high));
    let users = (learn.control_share * learn.rows as f64).round() as u64;
    let dash = || "–".to_owned();
    table.row([shortened(control), percent(learn.control_share), count(users), dash(), dash()]);
    for own in &learn.arms {
        table.row([
            own.policy.clone(),
            percent(own.share),
            count(own.rows),
            ends(own.interval),
            ends(own.interval_after),
        ]);
    }
    format!(
        "\n{} users that teach most about {} candidates: standard error {} now, {} after\n{table}",
        count(learn.rows),
        learn.candidates,
        significant(learn.se),
        significant(learn.se_after)
    )
}

fn planned(plan: &Plan) -> String {
    let smallest: Vec<String> =
        plan.detectable.iter().map(|own| format!("{} {}", significant(own.effect), own.outcome)).collect();
    let mut table = Table::new([
        "policy",
        "outcome",
        "expected",
        "error now",
        "error after",
        "chance to tell",
        "users to tell",
    ])
    .left(2);
    let users = |users: Option<u64>| users.map_or_else(|| "–".to_owned(), count);
    for own in &plan.policies {
        table.row([
            shortened(&own.policy),
            own.outcome.clone(),
            significant(own.effect),
            significant(own.se),
            significant(own.se_after),
            percent(own.chance),
            users(own.users_needed),
        ]);
    }
    let mut text = format!(
        "\n{} users on {} policies, control among them: the smallest effect they tell is {}\n{table}",
        count(plan.rows),
        plan.arms,
        smallest.join(", ")
    );
    if !plan.pairs.is_empty() {
        let mut pairs =
            Table::new(["policy", "against", "outcome", "expected", "error now", "users to tell"]).left(3);
        for own in &plan.pairs {
            pairs.row([
                shortened(&own.policy),
                shortened(&own.against),
                own.outcome.clone(),
                significant(own.effect),
                significant(own.se),
                users(own.users_needed),
            ]);
        }
        text += &format!("\n{pairs}");
    }
    text
}
