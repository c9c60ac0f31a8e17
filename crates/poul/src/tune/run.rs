//! The search: every trial trains on the same rows and is judged by the same validation R-loss; resumable.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::halving::{Halving, Resource, Round, with_epochs};
use super::points::{Search, points};
use super::space::{Point, Space, apply};
use crate::compare::{Part, Preparation, Prepared};
use crate::effect::Settings;
use crate::model::{CheckpointPlan, Learner};
use crate::progress::Named;
use crate::{Checkpoint, Error, Kind, Progress, Result, Run, Seed};

/// What to search, on what.
pub struct TuneRequest<'a> {
    /// The data; its validation share is above 0.
    pub preparation: Preparation<'a>,
    /// The learner.
    pub learner: &'static Learner,
    /// Settings under every trial.
    pub base: &'a Settings,
    /// What is searched.
    pub space: &'a Space,
    /// How points are chosen. Default: the grid where it is small enough, at random otherwise.
    pub search: Search,
    /// Most trials; the grid, where it is asked for, is run whole. At least 1.
    pub trials: usize,
    /// How trials are thinned out. Default: each gets everything.
    pub halving: Option<Halving>,
    /// Where results are left as they are finished. Default: nowhere.
    pub checkpoint: Option<CheckpointPlan<'a>>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuning {
    /// The version of the library.
    pub poul: String,
    /// The learner.
    pub learner: String,
    /// Rows trained on.
    pub train_rows: usize,
    /// Rows of the validation R-loss.
    pub validation_rows: usize,
    /// The seed.
    pub seed: u64,
    /// Every trial, in order of its number.
    pub trials: Vec<Trial>,
    /// The number of the trial of least R-loss among those that had everything.
    pub best: usize,
    /// The settings to fit by: those under every trial and the best point.
    pub settings: Settings,
}

/// One point of the space.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Its number, from 1.
    pub number: usize,
    /// The values tried.
    pub point: Point,
    /// Share of the rows or epochs in its last round; 1 is everything.
    pub share: f64,
    /// Mean R-loss over outcomes in that round, in variances of the outcomes; less is better.
    pub r_loss: Option<f64>,
    /// The same by outcome.
    pub r_loss_by_outcome: Vec<f64>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a trial leaves.
#[derive(Serialize, Deserialize)]
struct Judged {
    r_loss: Vec<f64>,
    error: Option<String>,
}

/// Searches for settings. Wrong points are told before any row is read.
pub fn tune(request: &TuneRequest<'_>, progress: &dyn Progress) -> Result<Tuning> {
    let preparation = &request.preparation;
    if preparation.validation_share <= 0.0 {
        return Err(
            Error::usage("no rows are held out to judge by").hint("use a validation share such as 0.2")
        );
    }
    if let Some(halving) = &request.halving {
        halving.check()?;
    }
    let seed = Seed::new(preparation.seed).child("tune");
    let points = points(request.space, request.search, request.trials, seed)?;
    let mut trials = Vec::with_capacity(points.len());
    let mut settings = Vec::with_capacity(points.len());
    for (index, point) in points.into_iter().enumerate() {
        let settled = settle(request, &point).map_err(|error| error.within(shown(&point)))?;
        settings.push(settled);
        let number = index + 1;
        trials.push(Trial {
            number,
            point,
            share: 0.0,
            r_loss: None,
            r_loss_by_outcome: Vec::new(),
            error: None,
        });
    }
    let mut checkpoint = checkpoint(request)?;
    let mut populations: Vec<&str> = settings.iter().flat_map(Settings::populations).collect();
    populations.sort_unstable();
    populations.dedup();
    let (prepared, _) = preparation.prepare(None, &populations, progress)?;
    if let Some(checkpoint) = &mut checkpoint {
        checkpoint.hold(vec![prepared.table.dataset.x.window_rows()], preparation.budget.bytes)?;
    }
    let work = Work { request, prepared: &prepared, checkpoint: checkpoint.as_ref(), progress };

    let rounds = Halving::plan(request.halving.as_ref(), trials.len());
    let mut left: Vec<usize> = (0..trials.len()).collect();
    for (index, round) in rounds.iter().enumerate() {
        left.truncate(round.n_trials);
        let fewer = work.part(round, seed.child("rows"));
        let part = fewer.as_ref().unwrap_or(&prepared.train);
        for (done, trial) in left.iter().enumerate() {
            let name = match rounds.len() {
                1 => format!("trial {} of {}", done + 1, left.len()),
                n => format!("round {} of {n}, trial {} of {}", index + 1, done + 1, left.len()),
            };
            let judged = work.judge(&settings[*trial], round, part, &name)?;
            let trial = &mut trials[*trial];
            trial.share = round.share;
            trial.r_loss = match judged.r_loss.len() {
                0 => None,
                n => Some(judged.r_loss.iter().sum::<f64>() / n as f64),
            };
            (trial.r_loss_by_outcome, trial.error) = (judged.r_loss, judged.error);
        }
        // A stable sort: of equal losses the first trial goes on.
        let loss = |trial: &usize| trials[*trial].r_loss.unwrap_or(f64::INFINITY);
        left.sort_by(|a, b| loss(a).total_cmp(&loss(b)));
        left.retain(|trial| trials[*trial].r_loss.is_some());
    }
    let Some(best) = left.first().copied() else {
        let first = trials.iter().find_map(|trial| trial.error.clone()).unwrap_or_default();
        return Err(Error::other(format!("every trial failed; the first said: {first}"))
            .hint("correct the settings, or search others"));
    };
    Ok(Tuning {
        poul: env!("CARGO_PKG_VERSION").to_owned(),
        learner: request.learner.name.to_owned(),
        train_rows: prepared.train.n_rows(),
        validation_rows: prepared.validation.as_ref().map_or(0, |validation| validation.part.n_rows()),
        seed: preparation.seed,
        best: trials[best].number,
        settings: apply(&trials[best].point, request.base),
        trials,
    })
}

fn settle(request: &TuneRequest<'_>, point: &Point) -> Result<Settings> {
    let settings = (request.learner.settle)(&apply(point, request.base))?;
    match request.halving {
        Some(Halving { resource: Resource::Epochs, .. }) => with_epochs(&settings, 1.0),
        _ => Ok(settings),
    }
}

/// A point in a message.
fn shown(point: &Point) -> String {
    let values: Vec<String> = point.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    values.join(", ")
}

/// What all trials share.
struct Work<'a> {
    request: &'a TuneRequest<'a>,
    prepared: &'a Prepared,
    checkpoint: Option<&'a Checkpoint>,
    progress: &'a dyn Progress,
}

impl Work<'_> {
    /// The rows of a round that has not all of them. Each round's contain those of the round before.
    fn part(&self, round: &Round, seed: Seed) -> Option<Part> {
        let resource = self.request.halving.map(|halving| halving.resource);
        if resource != Some(Resource::Rows) || round.share >= 1.0 {
            return None;
        }
        let Prepared { table, train, .. } = self.prepared;
        let is_drawn = table.draw_units(&train.rows, round.share, seed);
        let rows = train.rows.iter().zip(is_drawn).filter(|(_, drawn)| *drawn);
        Some(table.part(rows.map(|(row, _)| *row).collect()))
    }

    /// The R-loss of a trial: from the checkpoint where it was finished before. A trial that fails says why.
    fn judge(&self, settings: &Settings, round: &Round, part: &Part, name: &str) -> Result<Judged> {
        let settings = match self.request.halving {
            Some(Halving { resource: Resource::Epochs, .. }) => with_epochs(settings, round.share)?,
            _ => settings.clone(),
        };
        let failed = |error| Error::other(format!("cannot store a result: {error}")).source(error);
        let key =
            serde_json::to_vec(&json!({ "settings": settings, "rows": part.n_rows() })).map_err(failed)?;
        let entry = format!("trial-{:016x}", crate::checkpoint::hash(&key));
        if let Some(checkpoint) = self.checkpoint
            && let Some(bytes) = checkpoint.get(&entry)?
        {
            return serde_json::from_slice(&bytes).map_err(|_| checkpoint.damaged_entry(&entry));
        }
        let progress = Named { progress: self.progress, name: name.to_owned() };
        let judged = match self.r_loss(&settings, part, &progress) {
            Ok(r_loss) => Judged { r_loss, error: None },
            Err(error) if matches!(error.kind(), Kind::Cancelled | Kind::Output) => return Err(error),
            Err(error) => {
                progress.warn(&error.to_string());
                Judged { r_loss: Vec::new(), error: Some(error.to_string()) }
            }
        };
        if let Some(checkpoint) = self.checkpoint {
            checkpoint.keep(&entry, &serde_json::to_vec(&judged).map_err(failed)?, self.progress);
        }
        Ok(judged)
    }

    fn r_loss(&self, settings: &Settings, part: &Part, progress: &dyn Progress) -> Result<Vec<f64>> {
        let Prepared { table, setting, validation, .. } = self.prepared;
        let run = Run::new(Seed::new(self.request.preparation.seed), progress);
        let trained = self.prepared.train(part, self.request.learner, settings, run)?;
        let effects = trained.effects.as_ref();
        let r_loss = validation.as_ref().map(|validation| validation.r_loss(table, setting, effects));
        Ok(r_loss.transpose()?.unwrap_or_default())
    }
}

/// The checkpoint that is asked for. The space is no part of the work: it may grow when the work goes on.
fn checkpoint(request: &TuneRequest<'_>) -> Result<Option<Checkpoint>> {
    let Some(plan) = request.checkpoint else { return Ok(None) };
    let work = json!({ "experiment": request.preparation.work()?, "learner": request.learner.name });
    Ok(Some(match plan.resume {
        true => Checkpoint::resume(plan.folder, work)?,
        false => Checkpoint::create(plan.folder, work),
    }))
}
