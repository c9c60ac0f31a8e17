//! How rivals that are networks of levels are trained: settings, first stage, and a run of epochs for each outcome.
//!
//! Each outcome has networks of its own, in standard units.

use super::first_stage::{LevelModel, RivalStage};
use super::fitted::{Fitted, Manifest};
use super::params::{FoldedTrainingParams, TrainingParams, read_table};
use super::surface::{FittedOutcome, Rows, Shape, Surface};
use super::treatments::Treatments;
use crate::effect::{Phase, Settings, Trained, ValidTrainingData};
use crate::net::{Batch, Fit, Layout, Network, RowSource, Tape, Var, mean_outputs};
use crate::nuisance::{Folds, SomeRows};
use crate::{Error, Result, Run, Seed};

/// Completes settings with defaults; refuses unknown names and values out of range.
pub(super) fn settle<S: Surface>(settings: &Settings) -> Result<Settings> {
    let (model, training) = read::<S>(settings)?;
    match S::HAS_FIRST_STAGE {
        true => Settings::of(None, &model, &training),
        false => Settings::of(None, &model, &training.network),
    }
}

fn read<S: Surface>(settings: &Settings) -> Result<(S::Model, FoldedTrainingParams)> {
    settings.require_no_preset(S::NAME)?;
    let model: S::Model = read_table("model", &settings.model)?;
    let training = match S::HAS_FIRST_STAGE {
        true => read_table("training", &settings.training)?,
        false => {
            let network = read_table("training", &settings.training)?;
            FoldedTrainingParams { network, ..FoldedTrainingParams::default() }
        }
    };
    S::check(&model)?;
    if !(1..=256).contains(&S::members(&model)) {
        return Err(Error::usage("`model.members` is out of range").hint("it must be 1 to 256"));
    }
    training.check()?;
    Ok((model, training))
}

/// Fits the networks of every outcome.
pub(super) fn train<S: Surface + 'static>(
    data: &ValidTrainingData<'_>,
    settings: &Settings,
    root: Run<'_>,
) -> Result<Trained> {
    let (mut model, training) = read::<S>(settings)?;
    S::adapt(&mut model, data)?;
    let run = root.child(S::NAME);
    let treatments = Treatments::new(data, S::tier(&model));
    let arms = treatments.arms.iter().map(|name| data.policies.require(name)).collect::<Result<Vec<_>>>()?;
    let chosen = treatments.choose(data.policies, &arms)?;
    let mut arm_of = vec![0; data.policies.len()];
    arms.iter().enumerate().for_each(|(arm, policy)| arm_of[*policy] = arm as u32);
    let arm: Vec<u32> = data.policy.iter().map(|policy| arm_of[*policy as usize]).collect();
    let weight: Option<Vec<f32>> =
        data.weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect());
    let mass: Vec<f64> = arms.iter().map(|policy| data.policy_mass()[*policy]).collect();
    let total: f64 = mass.iter().sum();
    let balance: Vec<f32> = mass.iter().map(|own| (total / (own * mass.len() as f64)) as f32).collect();
    let parts = validation_parts(data, training.network.validation_share, run.seed);
    let (fitted, held) = match &parts {
        Some(parts) => (parts.rest(0), parts.rows(0)),
        None => ((0..data.n_rows() as u32).collect(), Vec::new()),
    };
    let needs = S::needs(&model);
    let mut first = RivalStage::fit(data, &needs, &arms, training.folds, root)?;
    let levels = needs.levels.map(|params| LevelModel::new(data, &treatments, params)).transpose()?;
    let (surface, layout) = build::<S>(data.x.n_cols(), &treatments, &model)?;
    let mut fit = Fitted {
        manifest: Manifest {
            outcomes: Vec::new(),
            scales: Vec::new(),
            n_features: data.x.n_cols(),
            treatments,
            model,
            shifts: Vec::new(),
        },
        surface,
        layout,
        ensembles: Vec::new(),
    };
    let mut history = Vec::new();
    for (index, outcome) in data.outcomes.iter().enumerate() {
        let run = run.child("outcome").index(index as u64);
        let (values, unit) = S::units(&fit.manifest.model, outcome.values, data.weight);
        let residual = first.residual(index, data.outcomes.len());
        let mut rows = Rows {
            treatments: &chosen,
            arm: &arm,
            outcome: residual.as_deref().unwrap_or(&values),
            weight: weight.as_deref(),
            balance: &balance,
            levels: &[],
            propensity: &first.propensity,
        };
        let expected = match &levels {
            Some(levels) => {
                let fold_of = (&first.folds, parts.as_ref());
                levels.out_of_fold(&rows, data.x, fold_of, &training.network, run.child("levels"))?
            }
            None => Vec::new(),
        };
        rows.levels = &expected;
        let stage = format!("{}: {}", S::NAME, outcome.name);
        let problem = Problem { rows, x: data.x, fitted: &fitted, held: &held, stage };
        let trained = problem.fit(&fit, &training.network, run)?;
        let fitted_outcome = FittedOutcome {
            rows: &problem.rows,
            policies: data.policies,
            x: data.x,
            weights: &trained.ensemble.weights,
            folds: &first.folds,
            parts: parts.as_ref(),
            training: &training.network,
            run,
            stage: &problem.stage,
        };
        let shift = S::shift(&fit, &fitted_outcome)?;
        fit.manifest.shifts.extend(shift);
        history.push(Phase {
            name: outcome.name.to_owned(),
            epochs: trained.history,
            best: Some(trained.best),
        });
        fit.manifest.outcomes.push(outcome.name.to_owned());
        fit.manifest.scales.push(unit);
        fit.ensembles.push(trained.ensemble);
    }
    Ok(Trained { effects: Box::new(fit), history, notes: std::mem::take(&mut first.notes) })
}

pub(super) fn build<S: Surface>(
    n_features: usize,
    treatments: &Treatments,
    model: &S::Model,
) -> Result<(S, Layout)> {
    let mut layout = Layout::builder();
    let surface = S::build(&mut layout, &Shape { n_features, treatments }, model);
    Ok((surface, layout.finish()?))
}

/// Parts of the rows by cluster, the first of which validates; none where nothing is held out.
fn validation_parts(data: &ValidTrainingData<'_>, share: f64, seed: Seed) -> Option<Folds> {
    let n_parts = (1.0 / share).round().max(2.0) as usize;
    (share > 0.0).then(|| Folds::deal(data.n_rows(), data.cluster, n_parts, seed.child("validation")))
}

/// An outcome in standard units, and its weighted standard deviation.
pub(super) fn standard(values: &[f64], weight: Option<&[f64]>) -> (Vec<f32>, f64) {
    let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
    let mass: f64 = (0..values.len()).map(weight_of).sum();
    let mean = values.iter().enumerate().map(|(row, value)| weight_of(row) * value).sum::<f64>() / mass;
    let squares = values.iter().enumerate().map(|(row, value)| weight_of(row) * (value - mean).powi(2));
    let sd = (squares.sum::<f64>() / mass).sqrt();
    (values.iter().map(|value| ((value - mean) / sd) as f32).collect(), sd)
}

/// One outcome to fit.
pub(super) struct Problem<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) x: &'a dyn RowSource,
    pub(super) fitted: &'a [u32],
    pub(super) held: &'a [u32],
    pub(super) stage: String,
}

impl Problem<'_> {
    pub(super) fn fit<S: Surface>(
        &self,
        fit: &Fitted<S>,
        training: &TrainingParams,
        run: Run<'_>,
    ) -> Result<crate::net::Fitted> {
        let Fitted { surface, layout, manifest, .. } = fit;
        let held = SomeRows { x: self.x, rows: self.held };
        let judged = Judged { surface, rows: &self.rows, held: self.held };
        let n_goals = surface.n_goals();
        let judge = |weights: &[&[f32]]| {
            let mean = mean_outputs(layout, weights, &judged, &held, n_goals)?;
            Ok(self.rows.held_loss(surface, self.held, &mean))
        };
        let fit = Fit {
            x: self.x,
            rows: self.fitted,
            loss: &Loss { surface, rows: &self.rows },
            judge: (!self.held.is_empty()).then_some(&judge),
            adam: training.adam().check()?,
            n_members: S::members(&manifest.model),
            start: None,
            schedule: &training.schedule(),
            part: 0,
            stage: &self.stage,
        };
        fit.run(layout.clone(), run)
    }
}

/// The loss on rows, as a network.
struct Loss<'a, S> {
    surface: &'a S,
    rows: &'a Rows<'a>,
}

impl<S: Surface> Network for Loss<'_, S> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.surface.shared(tape, self.rows.treatments);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        self.surface.loss(tape, self.rows, batch)
    }
}

/// What is judged on held-out rows, as a network of those rows.
struct Judged<'a, S> {
    surface: &'a S,
    rows: &'a Rows<'a>,
    held: &'a [u32],
}

impl<S: Surface> Network for Judged<'_, S> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.surface.shared(tape, self.rows.treatments);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let rows: Vec<u32> = batch.pick(self.held).collect();
        let batch = Batch { member: batch.member, rows: &rows, batch_rows: &rows };
        self.surface.fitted(tape, self.rows, &batch)
    }
}
