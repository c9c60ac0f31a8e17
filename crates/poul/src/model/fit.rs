//! From a table to a model: read, encode, assign policies, learn, and record how.

use std::path::Path;

use super::Model;
use super::baseline::Baseline;
use super::manifest::{DataRecord, DataUse, FORMAT, Manifest, OutcomeRecord};
use super::warm_start;
use crate::check::{self, screen};
use crate::data::{Budget, Columns, Dataset, Design, Roles, Source, ValidEncoderParams};
use crate::effect::{ExposedRows, Settings, TrainingData, ValidTrainingData};
use crate::learn::{learner, learns_from_auxiliary};
use crate::nuisance::StratumTable;
use crate::policy::{Assigner, Exposure, PolicySet};
use crate::progress::Resumable;
use crate::{Checkpoint, Error, Progress, Result, Seed};

/// What to fit, on what.
pub struct FitRequest<'a> {
    /// The training table.
    pub source: &'a Source,
    /// The roles as given, which the model keeps.
    pub roles: &'a Roles,
    /// The roles as found in the table.
    pub columns: &'a Columns,
    /// The policies that the treatment columns name.
    pub policies: &'a PolicySet,
    /// The policy that others are compared with, if there is one.
    pub control: Option<&'a str>,
    /// Tables of rows without a treatment, from which the outcome model learns too.
    pub baseline: &'a [Source],
    /// π(t | stratum) as it was designed: `stratum,policy,probability`. Without it, shares within each stratum.
    pub strata_table: Option<&'a Source>,
    /// The learner's name.
    pub learner: &'a str,
    /// The learner's settings.
    pub settings: &'a Settings,
    /// The encoder's settings.
    pub encoder: &'a ValidEncoderParams,
    /// Memory for encoded rows.
    pub budget: &'a Budget,
    /// The root of all random streams.
    pub seed: u64,
    /// The command, for the record.
    pub command: Vec<String>,
    /// Where the fit leaves what it has done, so that it can go on after it was stopped. Default: nowhere.
    pub checkpoint: Option<CheckpointPlan<'a>>,
    /// A model of the same learner, outcomes and features that training starts from. Default: none.
    pub warm_start: Option<&'a Model>,
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

/// Fits a model. What is wrong with the settings is told before any row is read.
pub fn fit(request: &FitRequest<'_>, progress: &dyn Progress) -> Result<Model> {
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
    let (source, schema) = (request.source, request.source.schema());
    let columns = request.columns.clone().with_populations(settings.populations(), schema)?;
    let columns = columns.with_contexts(request.policies, schema)?;
    // A model that goes on keeps the features that it has.
    if start.is_none() {
        screen::refuse_by_name(&columns)?;
    }
    let (policies, mut notes) = warm_start::policies(start, request.policies)?;
    let control = request.control.map(|name| policies.require(name)).transpose();
    let control = control.map_err(|error| error.at("control"))?;
    let strata_table = strata_table(request)?;
    let baseline_columns = Baseline::columns(request)?;
    // Taken before the first row is read, and compared when the last was: the record is of what was trained on.
    let fingerprint = source.fingerprint()?;
    let baseline_prints = request.baseline.iter().map(Source::fingerprint).collect::<Result<Vec<_>>>()?;
    let mut checkpoint = checkpoint(request, &settings, &fingerprint, &baseline_prints)?;
    let (dataset, encoder) = match start {
        None => Dataset::read_and_fit(source, &columns, request.encoder, request.budget, progress)?,
        Some(saved) => {
            let encoder = saved.manifest.encoder.clone();
            let columns = encoder.columns_for(columns.clone(), schema)?;
            (Dataset::read(source, &columns, &encoder, request.budget, progress)?, encoder)
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
    let seed = Seed::new(request.seed);
    let trained = match &checkpoint {
        None => (learner.train)(&data, &settings, seed, progress)?,
        Some(checkpoint) => (learner.train)(&data, &settings, seed, &Resumable { progress, checkpoint })?,
    };
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
        control: request.control.map(str::to_owned),
        roles: request.roles.clone(),
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
    let failed = |error| Error::other(format!("cannot describe the fit: {error}")).source(error);
    let policies = serde_json::to_vec(request.policies).map_err(failed)?;
    let of = |value: serde_json::Result<serde_json::Value>| value.map_err(failed);
    let work = serde_json::json!({
        "poul": env!("CARGO_PKG_VERSION"),
        "data": data,
        "baseline_data": baseline,
        "strata_table": request.strata_table.map(Source::fingerprint).transpose()?,
        "learner": request.learner,
        "seed": request.seed,
        "control": request.control,
        "policies": format!("{:016x}", crate::checkpoint::hash(&policies)),
        "roles": of(serde_json::to_value(request.roles))?,
        "settings": of(serde_json::to_value(settings))?,
        "encoder": of(serde_json::to_value(&**request.encoder))?,
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

/// The designed probabilities, where they are given.
fn strata_table(request: &FitRequest<'_>) -> Result<Option<StratumTable>> {
    let Some(source) = request.strata_table else { return Ok(None) };
    let columns = request.columns;
    if !columns.propensity.is_empty() {
        let error = Error::usage("propensity columns and a table of strata exclude each other");
        return Err(error.hint("give ‹propensity› or ‹strata_table›, not both"));
    }
    if columns.design != Design::Stratified || columns.stratum.is_none() {
        let error = Error::usage("a table of strata is for a stratified design");
        return Err(error.hint("add ‹design=stratified› and ‹stratum=COL›"));
    }
    StratumTable::from_source(source, request.policies.names()).map(Some)
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
    std::iter::once((request.source, n_rows, DataUse::Experiment))
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
