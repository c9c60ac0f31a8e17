//! `poul tune`: search for settings by validation R-loss, and write the best as a settings file.

mod best;

use poul::compare::Preparation;
use poul::effect::Settings;
use poul::model::{CheckpointPlan, DEFAULT_LEARNER, Learner, learner};
use poul::tune::{Halving, Resource, Search, Space, TuneRequest, Tuning, default_space, preset, tune};
use poul::{AtomicFile, Checkpoint, Kind, Progress, Result, Source};
use poul_report::number::{count, percent};

use crate::args::{Common, ResourceKind, SearchKind, Tune};
use crate::commands::{JsonTarget, check, compare};
use crate::config::DataSettings;
use crate::interrupt;
use crate::progress::Terminal;
use crate::settings::{budget, file_learner, of_learner};
use crate::table::Table;

pub(crate) fn run(args: &Tune, common: &Common, terminal: &Terminal) -> Result<()> {
    let mut data = DataSettings::load(&args.roles, &args.policy)?;
    let named = args.learner.clone().or(file_learner(&data.learner)?.0);
    let learner = learner(named.as_deref().unwrap_or(DEFAULT_LEARNER))?;
    let (base, space) = search(args, &data, learner)?;
    let json = JsonTarget::open_beside(args.json.as_deref(), &[Some(args.out.as_path())])?;
    let out = AtomicFile::create(&args.out)?;
    let folder = match poul::is_standard_output(&args.out) {
        true => Checkpoint::beside("poul-tune"),
        false => Checkpoint::beside(&args.out),
    };
    let _lock = poul::OutputLock::hold(&folder)?;
    compare::tell_unused(&data, terminal);
    let encoder = data.encoder.clone().check()?;
    let source = Source::open_path(&args.data)?;
    let strata_table = compare::strata_table(args.strata_table.as_ref(), &data)?;
    let experiment = check::experiment(&data, &source, terminal)?.strata_table(strata_table);
    compare::tell_checkpoint(&folder, args.resume, terminal);
    let resource = match args.resource {
        ResourceKind::Rows => Resource::Rows,
        ResourceKind::Epochs => Resource::Epochs,
    };
    let request = TuneRequest {
        preparation: Preparation {
            experiment: &experiment,
            encoder,
            budget: budget(common)?,
            seed: common.seed,
            validation_share: args.validation_share,
        },
        learner,
        base: &base,
        space: &space,
        search: match args.search {
            SearchKind::Auto => Search::Auto,
            SearchKind::Grid => Search::Grid,
            SearchKind::Random => Search::Random,
        },
        trials: args.trials,
        halving: args.halving.then(|| Halving { resource, ..Halving::default() }),
        checkpoint: Some(CheckpointPlan { folder: &folder, resume: args.resume, steps_between: None }),
    };
    interrupt::listen()?;
    let tuning = tune(&request, terminal).map_err(|error| match error.kind() {
        Kind::Cancelled => compare::stopped(&folder),
        _ => error,
    })?;
    if args.strata_table.is_some() {
        data.strata_table.clone_from(&args.strata_table);
    }
    compare::write(out, &best::settings_file(&tuning, &data, &args.out)?)?;
    if let Err(error) = Checkpoint::remove(&folder) {
        terminal.warn(&error.to_string());
    }
    json.write(&tuning, || summary(&tuning))?;
    let (file, table) = (args.out.display(), args.data.display());
    terminal.say(format!("wrote {file}; next: poul fit {table} --config {file} --out model.poul"));
    Ok(())
}

/// Settings under every trial, and what is searched: the preset, `[tune]`, or the learner's own space.
fn search(args: &Tune, data: &DataSettings, learner: &'static Learner) -> Result<(Settings, Space)> {
    let own = of_learner(data, learner.name)?;
    if let Some(name) = &args.preset {
        let preset = preset(name, learner, args.core.as_deref())?;
        return Ok((own.over(&preset.base), preset.space));
    }
    let space = match data.tune.is_empty() {
        true => default_space(learner)?,
        false => Space::parse(&data.tune).map_err(|error| match &args.roles.config {
            Some(config) => error.file(config),
            None => error,
        })?,
    };
    Ok((own, space))
}

/// The best trials, for a person.
fn summary(tuning: &Tuning) -> String {
    const SHOWN: usize = 10;
    let mut order: Vec<&poul::tune::Trial> = tuning.trials.iter().collect();
    // Those that had more come first; among them the least loss.
    let key = |trial: &poul::tune::Trial| (-trial.share, trial.r_loss.unwrap_or(f64::INFINITY));
    order.sort_by(|a, b| {
        let ((a_share, a_loss), (b_share, b_loss)) = (key(a), key(b));
        a_share.total_cmp(&b_share).then(a_loss.total_cmp(&b_loss)).then(a.number.cmp(&b.number))
    });
    let mut table = Table::new(["trial", "validation R-loss", "share"])
        .with(tuning.trials.first().into_iter().flat_map(|trial| trial.point.keys().cloned()));
    for trial in order.iter().take(SHOWN) {
        let best = if trial.number == tuning.best { " *" } else { "" };
        let cells = [
            format!("{}{best}", trial.number),
            trial.r_loss.map_or_else(|| "failed".to_owned(), |loss| format!("{loss:.5}")),
            percent(trial.share),
        ];
        table.row_with(cells, trial.point.values().map(ToString::to_string));
    }
    let more = order.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!("and {more} more trials\n") } else { String::new() };
    format!(
        "{}: {} rows to train on, {} to validate\n\n{table}{rest}* best: written\n",
        tuning.learner,
        count(tuning.train_rows as u64),
        count(tuning.validation_rows as u64)
    )
}
