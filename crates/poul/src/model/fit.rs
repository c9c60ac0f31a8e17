//! From a table to a model: read, encode, assign policies, learn, and record how.

use std::path::Path;

use super::Model;
use super::baseline::Baseline;
use super::manifest::{DataRecord, DataUse, FORMAT, Manifest, OutcomeRecord};
use super::warm_start;
use crate::check::{self, screen};
use crate::data::{Budget, Dataset, Source, ValidEncoderParams};
use crate::effect::{ExposedRows, Settings, TrainingData, ValidTrainingData};
use crate::experiment::Experiment;
use crate::learn::{DEFAULT_LEARNER, learner, learns_from_auxiliary};
use crate::policy::{Assigner, Exposure};
use crate::{Checkpoint, Error, Progress, Result, Run, Seed};

/// A fit as it is asked for. Everything but the experiment has a default.
#[must_use = "nothing is fitted before `run`"]
pub struct FitRequest<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) baseline: &'a [Source],
    pub(super) learner: &'a str,
    pub(super) settings: Settings,
    pub(super) encoder: ValidEncoderParams,
    pub(super) budget: Budget,
    pub(super) seed: u64,
    command: Vec<String>,
    checkpoint: Option<CheckpointPlan<'a>>,
    warm_start: Option<&'a Model>,
}

impl Model {
    /// Learns effects from an experiment: say what differs from the defaults, then [`run`](FitRequest::run).
    ///
    /// ```no_run
    /// # use poul::{Experiment, Model, Silent};
    /// # fn fit(experiment: &Experiment) -> poul::Result<Model> {
    /// Model::fit(experiment).learner("causal-forest").seed(7).run(&Silent)
    /// # }
    /// ```
    pub fn fit(experiment: &Experiment) -> FitRequest<'_> {
        FitRequest {
            experiment,
            baseline: &[],
            learner: DEFAULT_LEARNER,
            settings: Settings::default(),
            encoder: ValidEncoderParams::default(),
            budget: Budget::default(),
            seed: 3407,
            command: Vec::new(),
            checkpoint: None,
            warm_start: None,
        }
    }
}

impl<'a> FitRequest<'a> {
    /// The learner, one of [`LEARNERS`](super::LEARNERS). Default: `poul`.
    pub fn learner(mut self, name: &'a str) -> Self {
        self.learner = name;
        self
    }

    /// What is set of the learner. Default: nothing, the learner's defaults hold.
    pub fn settings(mut self, settings: &Settings) -> Self {
        self.settings = settings.clone();
        self
    }

    /// How features become numbers.
    pub fn encoder(mut self, params: &ValidEncoderParams) -> Self {
        self.encoder = params.clone();
        self
    }

    /// Memory for encoded rows. Default: half of the machine's.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// The root of all random streams. Default: 3407. The same seed gives the same model, to the last bit.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Tables of rows without a treatment, from which the outcome model learns too. Default: none.
    pub fn baseline(mut self, tables: &'a [Source]) -> Self {
        self.baseline = tables;
        self
    }

    /// A model of the same learner, outcomes and features that training starts from. Default: none. The experiment is best
    /// opened [by it](Model::experiment).
    pub fn warm_start(mut self, model: Option<&'a Model>) -> Self {
        self.warm_start = model;
        self
    }

    /// Where the fit leaves what it has done, so that it can go on after it was stopped. Default: nowhere.
    pub fn checkpoint(mut self, plan: Option<CheckpointPlan<'a>>) -> Self {
        self.checkpoint = plan;
        self
    }

    /// The command, for the record. Default: empty.
    pub fn command(mut self, words: Vec<String>) -> Self {
        self.command = words;
        self
    }

    /// Fits the model. What is wrong with the settings is told before any row is read.
    pub fn run(&self, progress: &dyn Progress) -> Result<Model> {
        fit(self, progress)
    }
}

/// Where a fit leaves what it has done.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointPlan<'a> {
    /// A folder of its own: see [`Checkpoint::beside`]. The caller [removes](Checkpoint::remove) it once the model is
    /// saved.
    pub folder: &'a Path,
    /// Whether to go on from what is there; it is deleted otherwise.
    pub resume: bool,
    /// Training steps between two writes. Default: 500.
    pub steps_between: Option<u64>,
}

fn fit(request: &FitRequest<'_>, progress: &dyn Progress) -> Result<Model> {
    let learner = learner(request.learner)?;
    let start = request.warm_start;
    if let Some(saved) = start {
        warm_start::check(saved, request)?;
    }
    let settings = match start {
        Some(saved) => request.settings.over(&saved.manifest.settings),
        None => request.settings.clone(),
    };
    let settings = (learner.settle)(&settings)?;
    let experiment = request.experiment;
    let (source, schema) = (experiment.source(), experiment.source().schema());
    let columns = experiment.columns().clone().with_populations(settings.populations(), schema)?;
    // A model that goes on keeps the features that it has.
    if start.is_none() {
        screen::refuse_by_name(&columns)?;
    }
    let (policies, mut notes) = warm_start::policies(start, experiment.policies())?;
    let control = experiment.control().map(|name| policies.require(name)).transpose();
    let control = control.map_err(|error| error.at("‹control›"))?;
    let strata_table = experiment.designed_strata(&policies)?;
    let baseline_columns = Baseline::columns(request)?;
    // Taken before the first row is read, and compared when the last was: the record is of what was trained on.
    let fingerprint = source.fingerprint()?;
    let baseline_prints = request.baseline.iter().map(Source::fingerprint).collect::<Result<Vec<_>>>()?;
    let mut checkpoint = checkpoint(request, &settings, &fingerprint, &baseline_prints)?;
    let (dataset, encoder) = match start {
        None => Dataset::read_and_fit(source, &columns, &request.encoder, &request.budget, progress)?,
        Some(saved) => {
            let encoder = saved.manifest.encoder.clone();
            let columns = encoder.columns_for(columns.clone(), schema)?;
            (Dataset::read(source, &columns, &encoder, &request.budget, progress)?, encoder)
        }
    };
    let mut features = Vec::new();
    let policy = Assigner::new(&policies, &columns).assign_table(&dataset)?;
    if start.is_none() {
        let warnings = screen::screen_training(source, &columns, &dataset, &encoder, &policies, &policy)?;
        warnings.iter().for_each(|warning| progress.warn(warning));
        features = warnings;
    }
    let baseline = Baseline::read_all(request, baseline_columns, &encoder, &dataset, progress)?;
    if let Some(checkpoint) = &mut checkpoint {
        let tables =
            std::iter::once(dataset.x.window_rows()).chain(baseline.iter().map(Baseline::window_rows));
        checkpoint.hold(tables.collect(), request.budget.bytes)?;
    }
    let weight = dataset.weight.as_deref();
    let exposure = Exposure::fit(&columns, &dataset.exposure, weight)?;
    notes.extend(exposure.as_ref().filter(|_| !learner.takes_exposure()).map(|_| learner.exposure_note()));
    let exposure = exposure.filter(|_| learner.takes_exposure());
    let exposed = exposure.as_ref().map(|own| own.rows(&dataset.exposure));
    if let (Some(exposure), Some(rows)) = (&exposure, &exposed) {
        notes.extend(exposure.note(rows.n_unexposed()));
    }
    let x = ExposedRows { x: &dataset.x, exposure: exposed.as_ref() };
    let mut data = TrainingData::of(&dataset, &x, &policies, &policy, columns.design, control)?;
    data.baseline = baseline.iter().map(Baseline::rows).collect();
    data.stratum_table = strata_table.as_ref();
    data.start = start.map(Model::effects);
    let data = data.check()?;
    notes.extend(check::few_rows(&policies, data.policy_rows()));
    let run = Run { checkpoint: checkpoint.as_ref(), ..Run::new(Seed::new(request.seed), progress) };
    let trained = (learner.train)(&data, &settings, run)?;
    notes.extend(checkpoint.iter().flat_map(|checkpoint| checkpoint.notes().iter().cloned()));
    notes.extend(trained.notes);
    if !columns.auxiliary.is_empty() && !learns_from_auxiliary(learner.name) {
        let names = columns.auxiliary.join("`, `");
        notes.push(format!(
            "the learner `{}` learns nothing from auxiliary outcomes (`{names}`)",
            learner.name
        ));
    }
    notes.iter().for_each(|note| progress.warn(note));
    let earlier = start.into_iter().flat_map(|saved| saved.manifest.data.iter().cloned());
    let manifest = Manifest {
        format: FORMAT,
        poul: env!("CARGO_PKG_VERSION").to_owned(),
        learner: learner.name.to_owned(),
        outcomes: outcomes(&data),
        control: experiment.control().map(str::to_owned),
        roles: experiment.roles().clone(),
        settings,
        seed: request.seed,
        data: earlier
            .chain(records(
                request,
                data.n_rows(),
                &baseline,
                [fingerprint].into_iter().chain(baseline_prints),
            ))
            .collect(),
        command: request.command.clone(),
        notes: encoder
            .notes()
            .iter()
            .chain(&features)
            .chain(&notes)
            .map(|note| crate::plainly(note))
            .collect(),
        history: trained.history,
        policy_rows: warm_start::policy_rows(start, &policies, data.policy_rows()),
        model: trained.effects.manifest()?,
        policies: policies.clone().into_owned(),
        exposure,
        encoder,
    };
    Model::new(manifest, trained.effects)
}

/// The checkpoint that is asked for, with everything that decides the model by name.
fn checkpoint(
    request: &FitRequest<'_>,
    settings: &Settings,
    data: &str,
    baseline: &[String],
) -> Result<Option<Checkpoint>> {
    let Some(plan) = request.checkpoint else { return Ok(None) };
    let experiment = request.experiment;
    let failed = |error| Error::other(format!("cannot describe the fit: {error}")).source(error);
    let policies = serde_json::to_vec(experiment.policies()).map_err(failed)?;
    let of = |value: serde_json::Result<serde_json::Value>| value.map_err(failed);
    let work = serde_json::json!({
        "poul": env!("CARGO_PKG_VERSION"),
        "data": data,
        "baseline_data": baseline,
        "strata_table": experiment.strata_source().map(Source::fingerprint).transpose()?,
        "learner": request.learner,
        "seed": request.seed,
        "control": experiment.control(),
        "policies": format!("{:016x}", crate::checkpoint::hash(&policies)),
        "roles": of(serde_json::to_value(experiment.roles()))?,
        "settings": of(serde_json::to_value(settings))?,
        "encoder": of(serde_json::to_value(&*request.encoder))?,
        "warm_start": request.warm_start.map(warm_start::digest).transpose()?,
    });
    let checkpoint = match plan.resume {
        true => Checkpoint::resume(plan.folder, work)?,
        false => Checkpoint::create(plan.folder, work),
    };
    Ok(Some(match plan.steps_between {
        Some(n_steps) => checkpoint.steps_between(n_steps),
        None => checkpoint,
    }))
}

fn outcomes(data: &ValidTrainingData<'_>) -> Vec<OutcomeRecord> {
    let record = |outcome: &crate::effect::OutcomeColumn<'_>| {
        let weight = |row: usize| data.weight.map_or(1.0, |weight| weight[row]);
        let mass: f64 = (0..data.n_rows()).map(weight).sum();
        let mean_of = |value: &dyn Fn(f64) -> f64| {
            let terms = outcome.values.iter().enumerate().map(|(row, y)| weight(row) * value(*y));
            terms.sum::<f64>() / mass
        };
        let mean = mean_of(&|y| y);
        let sd = mean_of(&|y| (y - mean).powi(2)).sqrt();
        OutcomeRecord { name: outcome.name.to_owned(), mean, sd }
    };
    data.outcomes.iter().map(record).collect()
}

/// The experiment first, then the baseline tables.
fn records(
    request: &FitRequest<'_>,
    n_rows: usize,
    baseline: &[Baseline],
    fingerprints: impl Iterator<Item = String>,
) -> Vec<DataRecord> {
    let tables = request.baseline.iter().zip(baseline);
    let tables = tables.map(|(source, part)| (source, part.n_rows(), DataUse::Baseline));
    std::iter::once((request.experiment.source(), n_rows, DataUse::Experiment))
        .chain(tables)
        .zip(fingerprints)
        .map(|((source, n_rows, used_for), fingerprint)| DataRecord {
            files: file_names(source),
            rows: n_rows as u64,
            fingerprint,
            used_for,
        })
        .collect()
}

/// Names without folders: where a file lay does not matter to the model.
fn file_names(source: &Source) -> Vec<String> {
    let name = |path: &std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    source.files().into_iter().filter_map(name).collect()
}
