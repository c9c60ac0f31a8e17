//! `poul fit`: learn effects from a table and write them to a model file.

use std::path::Path;

use poul::effect::Settings;
use poul::model::{CheckpointPlan, DEFAULT_LEARNER, learner};
use poul::policy::PolicySet;
use poul::{Checkpoint, Error, Kind, Model, Progress, Result, Roles, Source};
use poul_report::number::{count, counted};

use crate::args::{Common, Fit};
use crate::commands::{about_data, check, typed_words, without_outputs};
use crate::config::DataSettings;
use crate::interrupt;
use crate::progress::Terminal;
use crate::settings;

pub(crate) fn run(args: &Fit, typed: &[String], common: &Common, terminal: &Terminal) -> Result<()> {
    let saved = args.warm_start.as_ref().map(Model::load).transpose()?;
    let roles = saved.as_ref().map_or_else(Roles::default, |saved| saved.manifest().roles.clone());
    let mut data = DataSettings::load_over(roles, &args.roles, &args.policy)?;
    let (name, mut settings) = settings::learner(args, &data.learner)?;
    let default = saved.as_ref().map_or(DEFAULT_LEARNER, |saved| &saved.manifest().learner);
    let learner = learner(name.as_deref().unwrap_or(default))?;
    // Wrong settings and a file that cannot be written are told before hours of work, not after.
    let under = saved.as_ref().map_or_else(Settings::default, |saved| saved.manifest().settings.clone());
    let in_config = |error: Error| match &args.roles.config {
        Some(config) => error.file(config),
        None => error,
    };
    if !args.of.is_empty() && learner.name != poul::learn::stack::NAME {
        let error = Error::usage(format!("--of names the members of a stack, not of `{}`", learner.name));
        return Err(error.hint("add --learner stack"));
    }
    if learner.name == poul::learn::stack::NAME {
        settings::stack(&mut settings, &data.learners).map_err(in_config)?;
    }
    (learner.settle)(&settings.over(&under)).map_err(in_config)?;
    drop(poul::AtomicFile::create_named(&args.out, "a model")?);
    let folder = Checkpoint::beside(&args.out);
    let _lock = poul::OutputLock::hold(&folder)?;
    let encoder = std::mem::take(&mut data.encoder).check()?;
    let source = Source::open_path(&args.data)?;
    let (baseline, strata_table) = data.nuisance_tables(&args.nuisance)?;
    let experiment = match &saved {
        Some(saved) if !saved.is_factorial() => {
            let policies = policies_beside(&data, &saved.manifest().policies)?;
            saved.experiment(&source, &data.roles, policies, terminal)?
        }
        Some(saved) => saved.experiment(&source, &data.roles, check::policies(&data)?, terminal)?,
        None => check::experiment(&data, &source, terminal)?,
    };
    let experiment = experiment.strata_table(strata_table);
    tell_checkpoint(args, &folder, terminal);
    let request = Model::fit(&experiment)
        .baseline(&baseline)
        .learner(learner.name)
        .settings(&settings)
        .encoder(&encoder)
        .budget(settings::budget(common)?)
        .seed(common.seed)
        .command(without_outputs(typed))
        .checkpoint(Some(CheckpointPlan { folder: &folder, resume: args.resume, steps_between: None }))
        .warm_start(saved.as_ref());
    interrupt::listen()?;
    let model = request.run(terminal).map_err(|error| match error.kind() {
        Kind::Cancelled => stopped(&folder),
        _ => about_data(error, &args.data),
    })?;
    model.save(&args.out)?;
    // The model is there; a folder that stays is a nuisance, not a failure.
    if let Err(error) = Checkpoint::remove(&folder) {
        terminal.warn(&error.to_string());
    }
    describe(&model, args, terminal);
    Ok(())
}

/// The policies of the file, or the saved model's own. A file that names no context of its own is about the model's.
fn policies_beside(data: &DataSettings, saved: &PolicySet) -> Result<PolicySet> {
    let Some(policies) = data.policies.read()? else { return Ok(saved.clone()) };
    let has_new_contexts = policies.contexts().iter().any(|context| !saved.contexts().contains(context));
    if has_new_contexts || policies.contexts() == saved.contexts() {
        return Ok(policies);
    }
    Ok(data.policies.read_beside(saved)?.unwrap_or(policies))
}

fn tell_checkpoint(args: &Fit, folder: &Path, terminal: &Terminal) {
    let shown = folder.display();
    match (Checkpoint::exists(folder), args.resume) {
        (true, false) => terminal.warn(&format!(
            "{shown} is left from a fit that was stopped; this fit starts afresh and replaces it, --resume continues it"
        )),
        (false, true) => terminal.warn(&format!("there is no checkpoint {shown}: starting from the beginning")),
        _ => {}
    }
}

/// Somebody pressed Ctrl-C: what was kept, and the command that goes on.
fn stopped(folder: &Path) -> Error {
    if !Checkpoint::exists(folder) {
        return Error::cancelled().hint("training had not begun: there is nothing to resume");
    }
    let mut words: Vec<String> = typed_words();
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".to_owned());
    }
    Error::cancelled().file(folder).hint(format!("resume with: poul {}", words.join(" ")))
}

fn describe(model: &Model, args: &Fit, terminal: &Terminal) {
    let manifest = model.manifest();
    let rows = manifest.policy_rows.iter().sum();
    let run = manifest.policy_rows.iter().filter(|rows| **rows > 0).count();
    let (out, data) = (args.out.display(), args.data.display());
    terminal.say(format!(
        "{}: {} rows, {}; wrote {out}",
        manifest.learner,
        count(rows),
        counted(run, "policy", "policies")
    ));
    terminal.say(format!("next: poul effect {out} {data} --out effects.parquet, or poul show {out}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_not_recorded() {
        let typed =
            "fit d.csv --threads 2 --outcome y --out m.poul -q --memory=1GiB --seed 7 --quiet --resume";
        let typed: Vec<String> = typed.split(' ').map(String::from).collect();
        let recorded = without_outputs(&typed);
        assert_eq!(recorded.join(" "), "poul fit d.csv --outcome y --seed 7");
    }
}
