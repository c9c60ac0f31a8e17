//! `poul show`: what a model says of itself.

use poul::Result;
use poul::effect::Phase;
use poul::learn::poul::{ChosenNuisances, Geometry};
use poul::learn::stack::StackSummary;
use poul::model::{DataUse, Manifest, Model};
use poul::nuisance::{ChoiceLoss, NuisanceChoice};
use poul_report::number::{count, counted, optional, percent, significant};
use serde::Deserialize;
use serde_json::Value;

use crate::args::Show;
use crate::commands::{print, print_json};
use crate::table::Table;

pub(crate) fn run(args: &Show) -> Result<()> {
    let model = Model::load(&args.model)?;
    match args.json {
        true => print_json(model.manifest()),
        false => print(summary(model.manifest())),
    }
}

/// The manifest, for a person.
fn summary(manifest: &Manifest) -> String {
    let mut text = format!(
        "learner   {}\nwritten   by poul {} (format {})\ndesign    {}\ncontrol   {}\nseed      {}\n",
        manifest.learner,
        manifest.poul,
        manifest.format,
        manifest.roles.design.name(),
        manifest.control.as_deref().unwrap_or("none"),
        manifest.seed,
    );
    for data in &manifest.data {
        let files = match data.files.as_slice() {
            [] => "a table in memory".to_owned(),
            [file] => file.clone(),
            [file, rest @ ..] => format!("{file} and {} more files", rest.len()),
        };
        let used_for = match data.used_for {
            DataUse::Experiment => "data      ",
            DataUse::Baseline => "baseline  ",
        };
        text += &format!("{used_for}{files}, {} rows, fingerprint {}\n", count(data.rows), data.fingerprint);
    }
    let (n_features, width) = (manifest.encoder.features().count(), manifest.encoder.width());
    text += &format!("features  {n_features}, {width} encoded columns\n");
    if let Some(exposure) = &manifest.exposure {
        let n_columns = exposure.columns().count();
        text += &format!("exposure  of each row, {n_columns} columns, as {}\n", exposure.scale().name());
    }
    if !manifest.command.is_empty() {
        text += &format!("command   {}\n", poul::command_line(&manifest.command));
    }
    let mut outcomes = Table::new(["outcome", "mean", "sd"]);
    for outcome in &manifest.outcomes {
        outcomes.row([outcome.name.clone(), significant(outcome.mean), significant(outcome.sd)]);
    }
    text += &format!("\n{outcomes}\n{}", policies(manifest));
    text += &nuisances(&manifest.model).unwrap_or_default();
    text += &shared(manifest).unwrap_or_default();
    text += &geometry(&manifest.model).unwrap_or_default();
    text += &stack(manifest).unwrap_or_default();
    let settings = &manifest.settings;
    if let Some(preset) = &settings.preset {
        text += &format!("\npreset {preset}\n");
    }
    for (name, table) in [("model", &settings.model), ("training", &settings.training)] {
        if !table.is_empty() {
            text += &format!("\n[{name}]\n");
            table.iter().for_each(|(key, value)| text += &format!("{key} = {}\n", setting(value)));
        }
    }
    text += &history(&manifest.history);
    manifest.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

fn policies(manifest: &Manifest) -> String {
    let policies = &manifest.policies;
    let run = manifest.policy_rows.iter().filter(|rows| **rows > 0).count();
    let mut table = Table::new(["policy", "training rows"]);
    for (name, rows) in policies.names().iter().zip(&manifest.policy_rows) {
        table.row([name.clone(), count(*rows)]);
    }
    let n = counted(policies.len(), "policy", "policies");
    format!("{n} ({run} run) over {}\n{table}", super::policy::extent(policies))
}

/// Which models of outcomes and of the propensity were chosen; nothing where they were not left to choose.
fn nuisances(model: &Value) -> Option<String> {
    let chosen = ChosenNuisances::deserialize(model.get("nuisances")?).ok()?;
    let mut table = Table::new(["predicted", "by", "weight", "out-of-fold", "explained"]);
    let mut add = |what: &str, choice: &NuisanceChoice| {
        let loss = match choice.by {
            ChoiceLoss::Squared => "squared error",
            ChoiceLoss::Log => "log loss",
        };
        for own in &choice.candidates {
            let weight = format!("{:.2}", own.weight);
            let figures = (format!("{loss} {}", significant(own.loss)), percent(own.explained));
            table.row([what.to_owned(), own.model.name().to_owned(), weight, figures.0, figures.1]);
        }
    };
    chosen.outcomes.iter().for_each(|own| add(&own.outcome, &own.choice));
    chosen.propensity.iter().for_each(|choice| add("policy", choice));
    Some(format!("\n{table}"))
}

/// What each outcome has taken of the predicted differences between users in every outcome; nothing where each stands for
/// itself.
fn shared(manifest: &Manifest) -> Option<String> {
    #[derive(Deserialize)]
    struct Shared {
        learned: Vec<String>,
        scales: Vec<f64>,
        loadings: Vec<Vec<f64>>,
    }
    let Shared { learned, scales, loadings } =
        Deserialize::deserialize(manifest.model.get("shared")?).ok()?;
    let scale_of = |name: &String| learned.iter().position(|own| own == name).map(|place| scales[place]);
    let mut table = Table::new(["who gains in"]).with(learned.iter().map(|name| format!("from {name}")));
    for (outcome, loadings) in manifest.outcomes.iter().zip(&loadings) {
        let unit = scale_of(&outcome.name)?;
        let taken = |(loading, scale): (&f64, &f64)| match *loading {
            0.0 => "0".to_owned(),
            loading => significant(loading * unit / scale),
        };
        let cells = loadings.iter().zip(&scales).map(taken);
        table.row_with([outcome.name.clone()], cells);
    }
    Some(format!(
        "\nwhere differences between users come from: change in the row's effect for each unit of the column's\n{table}"
    ))
}

/// The axes of h, and the constants of |τ(x; t, t′)| ≤ ‖g(x)‖·L_ρ·B_φ·d_Π(t, t′); nothing for learners without them.
fn geometry(model: &Value) -> Option<String> {
    /// Axes that carry less are not worth a number.
    const LEAST_SHARE: f64 = 0.01;
    let members: Vec<Geometry> = Deserialize::deserialize(model.get("geometry")?).ok()?;
    let n_axes = members.first()?.axes.len();
    let mean =
        |axis: usize| members.iter().filter_map(|own| own.axes.get(axis)).sum::<f64>() / members.len() as f64;
    let axes: Vec<String> =
        (0..n_axes).map(mean).filter(|share| *share >= LEAST_SHARE).map(percent).collect();
    let range = |values: Vec<f64>| {
        let (low, high) =
            values.iter().fold((f64::MAX, f64::MIN), |(low, high), own| (low.min(*own), high.max(*own)));
        match values.as_slice() {
            [] => "unknown".to_owned(),
            [only] => significant(*only),
            _ => format!("{} to {}", significant(low), significant(high)),
        }
    };
    let lipschitz = range(members.iter().filter_map(|own| own.lipschitz).collect());
    let bound = range(members.iter().map(|own| own.embedding_bound).collect());
    let axes = axes.join(", ");
    Some(format!(
        "\npolicy embedding\n  axes                   {axes} of the variance of effects\n  Lipschitz constant     {lipschitz}\n  \
         largest action vector  {bound}\n"
    ))
}

/// The members of a stack with their weights and losses for each outcome; nothing for other learners.
fn stack(manifest: &Manifest) -> Option<String> {
    if manifest.learner != poul::learn::stack::NAME {
        return None;
    }
    let summary = StackSummary::deserialize(manifest.model.get("summary")?).ok()?;
    let mut table = Table::new(["outcome", "member", "weight", "out-of-fold loss"]);
    for outcome in &summary.outcomes {
        for own in &outcome.members {
            let row =
                [&outcome.outcome, &own.name, &format!("{:.2}", own.weight), &format!("{:.5}", own.loss)];
            table.row(row.map(String::clone));
        }
        let all =
            [outcome.outcome.clone(), "all".to_owned(), "1.00".to_owned(), format!("{:.5}", outcome.loss)];
        table.row(all);
    }
    let (name, folds) = (summary.loss_name(), summary.folds);
    Some(format!("\nmembers by {name} over {folds} folds, in units of the outcome's variance\n{table}"))
}

/// The first, the best and the last epoch of each phase.
fn history(phases: &[Phase]) -> String {
    let mut table = Table::new(["trained", "epochs", "best", "first loss", "best loss", "validation"]);
    for phase in phases {
        let best = phase.best.and_then(|best| phase.epochs.get(best));
        table.row([
            phase.name.clone(),
            count(phase.epochs.len() as u64),
            phase.best.map_or_else(|| "–".to_owned(), |best| count(best as u64 + 1)),
            optional(phase.epochs.first().map(|epoch| epoch.loss)),
            optional(best.map(|epoch| epoch.loss)),
            optional(best.and_then(|epoch| epoch.validation)),
        ]);
    }
    if table.is_empty() { String::new() } else { format!("\n{table}") }
}

/// A setting as `poul.toml` has it.
fn setting(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    }
}
