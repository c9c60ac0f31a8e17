//! The comparison: every learner with every seed, each result kept so that the work can be stopped and gone on with.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::assigned::AssignedReadings;
use super::entrant::Entrant;
use super::part::EncodedTable;
use super::preparation::{Preparation, Prepared};
use super::result::{Comparison, Failure};
use super::split::Split;
use super::summary::{Shape, results};
use super::test_rows::{TestQuestion, TestReadings, TestRows};
use crate::data::{Filter, Source};
use crate::evaluate::{Bootstrap, Params, Readings, ValidParams};
use crate::experiment::Experiment;
use crate::model::{CheckpointPlan, DEFAULT_LEARNER};
use crate::progress::Named;
use crate::{Checkpoint, Error, Kind, Memory, Progress, Result, Run, Seed};

/// What to compare, on what.
pub struct ComparisonRequest<'a> {
    /// The data.
    pub preparation: Preparation<'a>,
    /// Which rows are tested on.
    pub split: &'a Split,
    /// What takes part; labels are distinct.
    pub entrants: &'a [Entrant],
    /// How many seeds each is trained with: the experiment's and those that follow it. At least 1.
    pub seeds: usize,
    /// The label, or the learner's name, that differences are taken to. Default: the method's own, or the first.
    pub reference: Option<&'a str>,
    /// Policies by name. Default: all that test rows have.
    pub policies: &'a [String],
    /// Whether policies on atoms that no training row carried are compared too. Default: they are left out.
    pub allow_unseen: bool,
    /// The core population, an expression: it is measured beside all rows. Default: none.
    pub core: Option<&'a str>,
    /// True effects: `row, policy, effect_<outcome>`. Default: none.
    pub truth: Option<&'a Source>,
    /// How intervals are drawn.
    pub bootstrap: Bootstrap,
    /// Where results are left as they are finished. Default: nowhere.
    pub checkpoint: Option<CheckpointPlan<'a>>,
}

impl<'a> ComparisonRequest<'a> {
    /// Of these learners on the test rows of an experiment, with all defaults.
    pub fn new(experiment: &'a Experiment, split: &'a Split, entrants: &'a [Entrant]) -> Self {
        Self {
            preparation: Preparation::new(experiment),
            split,
            entrants,
            seeds: 1,
            reference: None,
            policies: &[],
            allow_unseen: false,
            core: None,
            truth: None,
            bootstrap: Bootstrap::default(),
            checkpoint: None,
        }
    }
}

/// What one learner with one seed leaves.
#[derive(Serialize, Deserialize)]
pub(super) struct Finished {
    /// By outcome; empty without validation rows.
    pub(super) r_loss: Vec<f64>,
    /// By population.
    pub(super) readings: Vec<Vec<Readings>>,
    /// The same rows by their own policies; by population.
    #[serde(default)]
    pub(super) assigned: Vec<Vec<AssignedReadings>>,
    pub(super) notes: Vec<String>,
}

/// Compares learners. One that fails is left out and told; wrong settings of the comparison itself are errors.
pub fn compare(request: &ComparisonRequest<'_>, progress: &dyn Progress) -> Result<Comparison> {
    let (params, reference) = check(request)?;
    let mut checkpoint = checkpoint(request)?;
    let preparation = &request.preparation;
    let mut populations: Vec<&str> = request
        .entrants
        .iter()
        .flat_map(|entrant| entrant.settings.populations())
        .chain(request.core)
        .collect();
    populations.sort_unstable();
    populations.dedup();
    let (prepared, rows) = preparation.prepare(Some(request.split), &populations, progress)?;
    if let Some(checkpoint) = &mut checkpoint {
        checkpoint.hold(vec![prepared.table.dataset.x.window_rows()], preparation.budget.bytes)?;
    }
    let other = other_table(request, &prepared, progress)?;
    let (table, rows) = match &other {
        Some(table) => (table, (0..table.n_rows() as u32).collect()),
        None => (&prepared.table, rows),
    };
    let question = TestQuestion {
        policies: request.policies,
        allow_unseen: request.allow_unseen,
        core: request.core,
        truth: request.truth,
        bytes: preparation.budget.bytes,
        seed: Seed::new(preparation.seed).child("compare"),
    };
    let test = TestRows::new(table, rows, &prepared.train, &prepared.setting, &question, progress)?;
    test.notes.iter().for_each(|note| progress.warn(note));

    let seeds: Vec<u64> = (0..request.seeds as u64).map(|k| preparation.seed.wrapping_add(k)).collect();
    let work =
        Work { prepared: &prepared, test: &test, params: &params, checkpoint: checkpoint.as_ref(), progress };
    let mut finished: Vec<Vec<Finished>> = request.entrants.iter().map(|_| Vec::new()).collect();
    let mut failures: Vec<Failure> = Vec::new();
    for seed in &seeds {
        // Learners with one seed share their first stage.
        let memory = Memory::default();
        for (entrant, finished) in request.entrants.iter().zip(&mut finished) {
            if failures.iter().any(|failure| failure.label == entrant.label) {
                continue;
            }
            let name = match seeds.len() {
                1 => entrant.label.clone(),
                _ => format!("{}, seed {seed}", entrant.label),
            };
            match work.finish(entrant, *seed, &name, &memory) {
                Ok(own) => finished.push(own),
                Err(error) if matches!(error.kind(), Kind::Cancelled | Kind::Output) => return Err(error),
                Err(error) => {
                    progress.warn(&format!("{name} failed: {error}; the comparison goes on without it"));
                    let hint = error.hint_text().map(str::to_owned);
                    let (label, error) = (entrant.label.clone(), error.to_string());
                    failures.push(Failure { label, seed: *seed, error, hint });
                }
            }
        }
    }
    let shape = Shape {
        entrants: request.entrants,
        populations: test.populations(),
        outcomes: &prepared.table.dataset.outcome_names,
        policies: &prepared.setting.policies,
        n_seeds: seeds.len(),
        level: request.bootstrap.level,
    };
    let (learners, reference) = results(&shape, &finished, &reference);
    Ok(Comparison {
        poul: env!("CARGO_PKG_VERSION").to_owned(),
        train_rows: prepared.train.n_rows(),
        validation_rows: prepared.validation.as_ref().map_or(0, |validation| validation.part.n_rows()),
        test_rows: test.n_rows(),
        seeds,
        draws: request.bootstrap.draws,
        level: request.bootstrap.level,
        against: prepared.setting.policies.name(prepared.setting.control).to_owned(),
        reference,
        populations: shape.populations,
        learners,
        failures,
        notes: test.notes.clone(),
        thin_arms: test.thin_arms,
    })
}

/// What all learners share.
struct Work<'a> {
    prepared: &'a Prepared,
    test: &'a TestRows<'a>,
    params: &'a ValidParams,
    checkpoint: Option<&'a Checkpoint>,
    progress: &'a dyn Progress,
}

impl Work<'_> {
    /// One learner with one seed: from the checkpoint where it was finished before.
    fn finish(&self, entrant: &Entrant, seed: u64, name: &str, memory: &Memory) -> Result<Finished> {
        let failed = |error| Error::other(format!("cannot store a result: {error}")).source(error);
        let settings = serde_json::to_vec(&entrant.settings).map_err(failed)?;
        let entry = format!("{}-{seed}-{:016x}", entrant.learner.name, crate::checkpoint::hash(&settings));
        if let Some(checkpoint) = self.checkpoint
            && let Some(bytes) = checkpoint.get(&entry)?
        {
            self.progress.start(name, "learners done before", None);
            self.progress.advance(1);
            self.progress.finish();
            return serde_json::from_slice(&bytes).map_err(|_| checkpoint.damaged_entry(&entry));
        }
        let progress = Named { progress: self.progress, name: name.to_owned() };
        // No checkpoint: the networks of all learners draw from the same streams.
        let run = Run { memory: Some(memory), ..Run::new(Seed::new(seed), &progress) };
        let Prepared { train, validation, setting, table, .. } = self.prepared;
        let trained = self.prepared.train(train, entrant.learner, &entrant.settings, run)?;
        let effects = trained.effects.as_ref();
        let r_loss = validation.as_ref().map(|validation| validation.r_loss(table, setting, effects));
        let TestReadings { readings, assigned, notes: more } =
            self.test.readings(effects, setting, self.params, &progress)?;
        let mut notes = trained.notes;
        notes.extend(more);
        let finished =
            Finished { r_loss: r_loss.transpose()?.unwrap_or_default(), readings, assigned, notes };
        if let Some(checkpoint) = self.checkpoint {
            checkpoint.keep(&entry, &serde_json::to_vec(&finished).map_err(failed)?, self.progress);
        }
        Ok(finished)
    }
}

/// The settings of the evaluation, and the label or name that differences are taken to.
fn check(request: &ComparisonRequest<'_>) -> Result<(ValidParams, String)> {
    let entrants = request.entrants;
    let Some(first) = entrants.first() else {
        return Err(Error::usage("there are no learners to compare").hint("name some: ‹learner=NAME›"));
    };
    if !(1..=1000).contains(&request.seeds) {
        return Err(Error::usage(format!("{} seeds", request.seeds)).hint("use 1 to 1000"));
    }
    for (index, entrant) in entrants.iter().enumerate() {
        if entrants[..index].iter().any(|other| other.label == entrant.label) {
            let error = Error::usage(format!("`{}` takes part twice", entrant.label));
            return Err(error.hint("name each learner and each schedule once"));
        }
    }
    let known = |name: &str| entrants.iter().any(|own| own.label == name || own.learner.name == name);
    let reference = match request.reference {
        Some(name) if !known(name) => {
            let labels = entrants.iter().map(|own| own.label.as_str());
            return Err(Error::unknown(Kind::Usage, "reference", name, "learners compared", labels));
        }
        Some(name) => name,
        None if known(DEFAULT_LEARNER) => DEFAULT_LEARNER,
        None => &first.label,
    };
    // What the tables do not show need not be computed in every draw.
    let params =
        Params { bootstrap: request.bootstrap, top_shares: Vec::new(), curve_points: 2, ..Params::default() };
    Ok((params.check()?, reference.to_owned()))
}

/// The test rows where they are not of the table that is trained on, by its encoder.
fn other_table(
    request: &ComparisonRequest<'_>,
    prepared: &Prepared,
    progress: &dyn Progress,
) -> Result<Option<EncodedTable>> {
    let experiment = request.preparation.experiment;
    let (source, mut columns) = match request.split {
        Split::Share(_) => return Ok(None),
        Split::Table(table) => (&table.source, table.columns.clone()),
        Split::Filters { test, .. } => {
            let mut columns = experiment.columns().clone();
            columns.population = Some(test.clone());
            (experiment.source(), columns)
        }
    };
    // Strata and propensities say what was assigned on average; predictions and outcomes that only teach play no part in
    // the metrics.
    columns.predictions = Vec::new();
    columns.auxiliary = Vec::new();
    let columns = columns.with_populations(request.core, source.schema())?;
    let columns = columns.with_contexts(&prepared.setting.policies, source.schema())?;
    let columns = prepared.encoder.columns_for(columns, source.schema())?;
    let (encoder, policies) = (&prepared.encoder, &prepared.setting.policies);
    let table = EncodedTable::read(
        source,
        &columns,
        encoder,
        policies,
        prepared.table.exposure.as_ref().map(|(exposure, _)| exposure),
        &prepared.table.left_of(&request.preparation.budget),
        progress,
    )?;
    match table.dataset.outcome_names == prepared.table.dataset.outcome_names {
        true => Ok(Some(table)),
        false => Err(Error::other("the test table has other outcomes")),
    }
}

/// The checkpoint that is asked for. Learners are no part of the work: more of them may join when it goes on.
fn checkpoint(request: &ComparisonRequest<'_>) -> Result<Option<Checkpoint>> {
    let Some(plan) = request.checkpoint else { return Ok(None) };
    let split = match request.split {
        Split::Table(table) => {
            let population = table.columns.population.as_ref().map(Filter::text);
            json!({ "table": table.source.fingerprint()?, "population": population })
        }
        Split::Filters { train, test } => json!({ "train": train.text(), "test": test.text() }),
        Split::Share(share) => json!({ "share": share }),
    };
    let Bootstrap { draws, level, seed } = request.bootstrap;
    let work = json!({
        "experiment": request.preparation.work()?,
        "split": split,
        "policies": request.policies,
        "allow_unseen": request.allow_unseen,
        "core": request.core,
        "truth": request.truth.map(Source::fingerprint).transpose()?,
        "bootstrap": { "draws": draws, "level": level, "seed": seed.value() },
    });
    Ok(Some(match plan.resume {
        true => Checkpoint::resume(plan.folder, work)?,
        false => Checkpoint::create(plan.folder, work),
    }))
}
