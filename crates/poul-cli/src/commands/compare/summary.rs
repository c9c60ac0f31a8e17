//! A comparison for a person: who is best where, and by how much.

use std::collections::BTreeMap;

use poul::compare::{Cell, Comparison, LearnerResult};
use poul::evaluate::{Metric, Shown};
use poul_report::number::{count, optional};
use poul_report::policies_name;

use crate::table::{Table, shortened_beside};

use super::layout::policy_name;

/// With more policies than this only all together are shown; the JSON has each.
const MOST_POLICIES: usize = 6;

pub(super) fn of(comparison: &Comparison) -> String {
    let mut text = format!(
        "{} rows to train on, {} to validate, {} to test\n",
        count(comparison.train_rows as u64),
        count(comparison.validation_rows as u64),
        count(comparison.test_rows as u64)
    );
    if comparison.validation_rows > 0 && !comparison.learners.is_empty() {
        text += &format!("\n{}", losses(comparison));
    }
    for population in &comparison.populations {
        let Some(first) = comparison.learners.first() else { break };
        let mut outcomes: Vec<&str> = Vec::new();
        for cell in &first.cells {
            if !outcomes.contains(&cell.outcome.as_str()) {
                outcomes.push(&cell.outcome);
            }
        }
        for outcome in outcomes {
            let rows = count(population.rows as u64);
            text += &format!("\n{outcome}, {} population ({rows} rows)\n", population.name);
            text += &table(comparison, &population.name, outcome);
        }
    }
    text + &assigned(comparison) + &footer(comparison)
}

/// Each row by its own policy, where arms are too thin to compare policies one by one.
fn assigned(comparison: &Comparison) -> String {
    let Some(first) = comparison.learners.first().filter(|_| comparison.thin_arms) else {
        return String::new();
    };
    let against = format!("vs {}", comparison.reference.as_deref().unwrap_or("–"));
    let mut text = String::new();
    let mut group = None;
    let mut tables: Vec<(String, Table)> = Vec::new();
    for (place, cell) in first.assigned.iter().enumerate() {
        if group != Some((&cell.population, &cell.outcome)) {
            group = Some((&cell.population, &cell.outcome));
            let title = format!(
                "\n{}, {} population: every row by its own policy, against what was assigned on average\n",
                cell.outcome, cell.population
            );
            let table = Table::new([
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
            ])
            .left(2);
            tables.push((title, table));
        }
        let Some((_, table)) = tables.last_mut() else { continue };
        for learner in &comparison.learners {
            let Some(own) = learner.assigned.get(place) else { continue };
            let value = |metric| optional(own.metric(metric).map(|own| without_rounding(own.value)));
            let ends = |metric| interval(own.metric(metric).and_then(|own| own.interval));
            let difference = |metric| signed(own.metric(metric).and_then(|own| own.difference));
            let apart = |metric| interval(own.metric(metric).and_then(|own| own.difference_interval));
            table.row([
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
            ]);
        }
    }
    tables.iter().for_each(|(title, table)| text += &format!("{title}{table}"));
    let mut notes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (cell, note) in first.assigned.iter().flat_map(|cell| cell.notes.iter().map(move |note| (cell, note)))
    {
        notes.entry(note).or_default().push(policies_name(cell.policies));
    }
    notes.iter().for_each(|(note, about)| text += &format!("note: {}: {note}\n", about.join(", ")));
    text + "\nR-score: the share explained of what the outcome model leaves. Slope: 1 where sizes are right. Rank gain: of two \
            rows, how much more\noutcome the one ranked higher has; 0 for a random ranking.\n"
}

fn losses(comparison: &Comparison) -> String {
    let mut table = Table::new(["learner", "validation R-loss", "sd over seeds", ""]);
    for learner in &comparison.learners {
        let several = comparison.learners.iter().filter(|other| other.learner == learner.learner).count() > 1;
        table.row([
            learner.label.clone(),
            learner.validation_r_loss.map_or_else(|| "–".to_owned(), |loss| format!("{loss:.5}")),
            optional(learner.validation_r_loss_seed_sd),
            if several && learner.selected { "selected" } else { "" }.to_owned(),
        ]);
    }
    table.to_string()
}

/// Policies, and within each the learners.
fn table(comparison: &Comparison, population: &str, outcome: &str) -> String {
    let reference = comparison.reference.as_deref().unwrap_or("–");
    let against = format!("vs {reference}");
    let of = |learner: &'_ LearnerResult| -> Vec<Cell> {
        let own =
            learner.cells.iter().filter(|cell| cell.population == population && cell.outcome == outcome);
        own.cloned().collect()
    };
    let Some(first) = comparison.learners.first().map(of) else { return String::new() };
    let is_known = |metric: Metric| first.iter().any(|cell| cell.metric(metric).is_some());
    let metrics: Vec<(Metric, Shown)> = Metric::compared()
        .filter(|metric| !metric.definition().needs_truth || is_known(*metric))
        .filter_map(|metric| Some((metric, metric.definition().compared?)))
        .collect();
    let heading = metrics.iter().flat_map(|(metric, shown)| {
        let interval = shown.interval.then_some("interval");
        let difference = shown.difference.then_some([against.as_str(), "interval"]);
        std::iter::once(metric.title())
            .chain(interval)
            .chain(difference.into_iter().flatten())
            .map(str::to_owned)
    });
    let many = first.iter().filter(|cell| cell.policy.is_some()).count() > MOST_POLICIES;
    let mut table = Table::new(["policy", "learner"]).with(heading).left(2);
    for cell in first.iter().filter(|cell| !many || cell.policy.is_none()) {
        for learner in &comparison.learners {
            let Some(cell) = learner.cell(population, outcome, cell.policy.as_deref()) else { continue };
            let names = [
                shortened_beside(&policy_name(cell.policy.as_deref()), &comparison.against),
                learner.label.clone(),
            ];
            let numbers = metrics.iter().flat_map(|(metric, shown)| {
                let own = cell.metric(*metric);
                let value = optional(own.map(|own| without_rounding(own.value)));
                let ends = shown.interval.then(|| interval(own.and_then(|own| own.interval)));
                let difference = shown.difference.then(|| {
                    let apart = own.and_then(|own| own.difference_interval);
                    [signed(own.and_then(|own| own.difference)), interval(apart)]
                });
                std::iter::once(value).chain(ends).chain(difference.into_iter().flatten())
            });
            table.row_with(names, numbers);
        }
    }
    table.to_string()
}

fn footer(comparison: &Comparison) -> String {
    let mut text = format!("\nEffects are against {}; ", comparison.against);
    text += &match comparison.draws {
        0 => "no intervals were drawn".to_owned(),
        draws => format!(
            "intervals at {:.0} % by {draws} draws of the test rows, the same for every learner",
            100.0 * comparison.level
        ),
    };
    text += &match comparison.seeds.len() {
        1 => ".\n".to_owned(),
        n => format!("; values are means over {n} seeds.\n"),
    };
    let compares = comparison.learners.iter().any(|learner| !learner.cells.is_empty());
    text += if !compares && comparison.thin_arms {
        "Less is better of R-loss.\n"
    } else {
        "A random ranking has AUUC 0.5 (−0.5 where the effect is negative). Less is better of R-loss, MAPE and PEHE.\n"
    };
    let mut notes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for learner in &comparison.learners {
        for note in &learner.notes {
            notes.entry(note).or_default().push(&learner.label);
        }
    }
    comparison.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    notes.iter().for_each(|(note, learners)| text += &format!("note: {}: {note}\n", learners.join(", ")));
    for failure in &comparison.failures {
        text += &format!("FAILED: {}: {}\n", failure.label, failure.error);
    }
    text
}

/// Zero where only rounding keeps a number from it: the Qini of equal scores.
fn without_rounding(value: f64) -> f64 {
    if value.abs() < 1e-12 { 0.0 } else { value }
}

fn interval(ends: Option<[f64; 2]>) -> String {
    ends.map_or_else(
        || "–".to_owned(),
        |[low, high]| format!("{} … {}", optional(Some(low)), optional(Some(high))),
    )
}

fn signed(difference: Option<f64>) -> String {
    match difference {
        Some(value) if value > 0.0 => format!("+{}", optional(Some(value))),
        value => optional(value),
    }
}
