//! `poul compare`: learners side by side on the same test rows.

mod latex;
mod layout;
mod markdown;
mod settings;
mod summary;

use std::io::Write;
use std::path::{Path, PathBuf};

use poul::compare::{ComparisonRequest, Entrant, Preparation, Schedule, Split, compare, default_learners};
use poul::evaluate::Bootstrap;
use poul::model::{CheckpointPlan, DEFAULT_LEARNER, LEARNERS, learner};
use poul::{AtomicFile, Checkpoint, Error, Experiment, Kind, Progress, Result, Seed, Source};
use poul_report::ReportTarget;
use serde_json::Value;

use self::settings::CompareSettings;
use crate::args::{Common, Compare};
use crate::commands::{JsonTarget, check, typed_words, without_outputs};
use crate::config::DataSettings;
use crate::interrupt;
use crate::progress::Terminal;
use crate::settings::{budget, of_learner};

pub(crate) fn run(args: &Compare, typed: &[String], common: &Common, terminal: &Terminal) -> Result<()> {
    let mut data = DataSettings::load(&args.roles, &args.policy_files)?;
    let settings = CompareSettings::new(args, &data)?;
    let entrants = entrants(args, &settings, &data)?;
    let json = JsonTarget::open_beside(
        args.json.as_deref(),
        &[args.report.as_deref(), args.markdown.as_deref(), args.latex.as_deref()],
    )?;
    let markdown = args.markdown.as_ref().map(AtomicFile::create).transpose()?;
    let latex = args.latex.as_ref().map(AtomicFile::create).transpose()?;
    let page = ReportTarget::open(args.report.as_deref())?;
    tell_unused(&data, terminal);

    let encoder = std::mem::take(&mut data.encoder).check()?;
    let source = Source::open_path(&args.data)?;
    let split = split(args, &settings, &data, &source)?;
    let truth = args.truth.as_deref().map(Source::open_path).transpose()?;
    let strata_table = strata_table(args.strata_table.as_ref(), &data)?;
    let policies = split.policies(check::policies(&data)?);
    let experiment = Experiment::open(&source, &data.roles, policies, terminal)?.strata_table(strata_table);
    let folder = args.work.clone().unwrap_or_else(|| work_folder(args.json.as_deref()));
    let _lock = poul::OutputLock::hold(&folder)?;
    tell_checkpoint(&folder, args.resume, terminal);
    let request = ComparisonRequest {
        preparation: Preparation {
            experiment: &experiment,
            encoder,
            budget: budget(common)?,
            seed: common.seed,
            validation_share: settings.validation_share,
        },
        split: &split,
        entrants: &entrants,
        seeds: settings.seeds,
        reference: settings.reference.as_deref(),
        policies: &args.policy,
        allow_unseen: args.allow_unseen,
        core: settings.core.as_deref(),
        truth: truth.as_ref(),
        bootstrap: Bootstrap { draws: settings.draws, level: settings.level, seed: Seed::new(common.seed) },
        checkpoint: Some(CheckpointPlan { folder: &folder, resume: args.resume, steps_between: None }),
    };
    interrupt::listen()?;
    let comparison = compare(&request, terminal).map_err(|error| match error.kind() {
        Kind::Cancelled => stopped(&folder),
        _ => error,
    })?;
    for (file, text) in [(markdown, markdown::tables(&comparison)), (latex, latex::tables(&comparison))] {
        if let Some(file) = file {
            write(file, &text)?;
        }
    }
    page.write(|| poul_report::of_comparison(&comparison, &poul::command_line(&without_outputs(typed))))?;
    json.write(&comparison, || summary::of(&comparison))?;
    match comparison.failures.first() {
        None => {
            if let Err(error) = Checkpoint::remove(&folder) {
                terminal.warn(&error.to_string());
            }
            Ok(())
        }
        Some(failure) => {
            let n = comparison.failures.len();
            let what =
                format!("{n} of {} learners failed; {}: {}", entrants.len(), failure.label, failure.error);
            let hint = failure.hint.as_deref().unwrap_or("see the warnings above");
            Err(Error::other(what).hint(format!("{hint}; --resume keeps the learners that are finished")))
        }
    }
}

/// What takes part: the learners asked for, the method's own by every schedule.
fn entrants(args: &Compare, settings: &CompareSettings, data: &DataSettings) -> Result<Vec<Entrant>> {
    let names: Vec<String> = match (args.all, settings.learner.as_slice()) {
        (true, _) => LEARNERS.iter().map(|learner| learner.name.to_owned()).collect(),
        (false, []) => default_learners().into_iter().map(str::to_owned).collect(),
        (false, names) => names.to_vec(),
    };
    if !settings.schedule.is_empty() && !names.iter().any(|name| name == DEFAULT_LEARNER) {
        let error = Error::usage(format!(
            "schedules are of the learner `{DEFAULT_LEARNER}`, which does not take part"
        ));
        return Err(error.hint(format!("add --learner {DEFAULT_LEARNER}")));
    }
    let mut entrants = Vec::new();
    for name in &names {
        let learner = learner(name)?;
        let own = of_learner(data, name)?;
        if name != DEFAULT_LEARNER || settings.schedule.is_empty() {
            entrants.push(Entrant::new(learner, &own)?);
            continue;
        }
        for schedule in &settings.schedule {
            let schedule: Schedule = schedule.parse()?;
            entrants.push(Entrant::scheduled(learner, &own, schedule, settings.core.as_deref())?);
        }
    }
    Ok(entrants)
}

/// Which rows are tested on: another table, later rows, or a share.
fn split(args: &Compare, settings: &CompareSettings, data: &DataSettings, source: &Source) -> Result<Split> {
    match (&args.test, &settings.test_from) {
        (Some(test), _) => Split::table(&Source::open_path(test)?, &data.roles),
        (None, Some(Value::String(from))) => Split::later(from, &data.roles, source),
        (None, Some(from)) => Split::later(&from.to_string(), &data.roles, source),
        (None, None) => Ok(settings.test_share.map_or(Split::DEFAULT, Split::Share)),
    }
}

/// The designed probabilities, flags before the file.
pub(super) fn strata_table(flag: Option<&PathBuf>, data: &DataSettings) -> Result<Option<Source>> {
    let path = flag.or(data.strata_table.as_ref());
    path.map(Source::open_path).transpose()
}

/// Says which settings of the file play no part here.
pub(super) fn tell_unused(data: &DataSettings, terminal: &Terminal) {
    if !data.baseline_data.is_empty() {
        terminal.warn("`baseline_data` plays no part here: every learner sees the same rows");
    }
}

pub(super) fn tell_checkpoint(folder: &Path, resume: bool, terminal: &Terminal) {
    let shown = folder.display();
    match (Checkpoint::exists(folder), resume) {
        (true, false) => terminal.warn(&format!(
            "{shown} is left from work that was stopped; this work starts afresh and replaces it, --resume continues it"
        )),
        (false, true) => terminal.warn(&format!("there is nothing in {shown}: starting from the beginning")),
        _ => {}
    }
}

/// Somebody pressed Ctrl-C: what was kept, and the command that goes on.
pub(super) fn stopped(folder: &Path) -> Error {
    if !Checkpoint::exists(folder) {
        return Error::cancelled().hint("nothing was finished: there is nothing to resume");
    }
    let mut words: Vec<String> = typed_words();
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".to_owned());
    }
    Error::cancelled().file(folder).hint(format!("resume with: poul {}", words.join(" ")))
}

fn work_folder(json: Option<&Path>) -> PathBuf {
    match json {
        Some(path) if !poul::is_standard_output(path) => Checkpoint::beside(path),
        _ => Checkpoint::beside("poul-compare"),
    }
}

pub(super) fn write(mut file: AtomicFile, text: &str) -> Result<()> {
    file.write_all(text.as_bytes()).map_err(|error| Error::output(file.path(), error))?;
    file.commit()
}
