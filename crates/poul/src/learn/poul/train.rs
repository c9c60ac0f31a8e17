//! The whole of Algorithm 2: outcomes in standard units, nuisances out of fold, then g and h on the residuals.

use super::anchor::averages;
use super::assignment::AssignmentFit;
use super::baseline_net::distil;
use super::calibration::{Calibration, Slopes, scale};
use super::canonical::Population;
use super::centring::OwnExposure;
use super::chosen::ChosenNuisances;
use super::fit::{Fitted, Problem, fit};
use super::fitted::Poul;
use super::logistic::{Binary, check_binary};
use super::noise::precisions;
use super::nuisances::{notes, outcome_params, propensity_params};
use super::objective::Target;
use super::own_mixtures::{MeanExposure, OwnMixtures};
use super::params::{Loss, ModelParams, Params, TrainingParams, ValidParams};
use super::phases::phases;
use super::preset;
use super::shared_gains::{Arranged, SharedGains};
use super::space::TreatmentSpace;
use super::uplift_net::UpliftNet;
use super::warm_start::WarmStart;
use crate::average::ResidualRows;
use crate::effect::{EffectModel, Phase, Settings, Tensors, Trained, ValidTrainingData};
use crate::nuisance::{FirstStage, Needs, OutcomeLoss, Residuals};
use crate::{Error, Result, Run, counted};

/// Effects that held-out rows bear out by less than this are worth a note.
const LITTLE_SUPPORT: f64 = 0.6;
/// Fewer clusters than this tell little of their own noise.
const FEW_CLUSTERS: usize = 10;

/// The learner's name.
pub const NAME: &str = "poul";

/// Completes settings with defaults; refuses unknown names and values out of range.
pub fn settle(settings: &Settings) -> Result<Settings> {
    let params = params(settings)?;
    Settings::of(settings.preset.clone(), &params.model, &params.training)
}

/// Learns effects.
pub fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    let params = params(settings)?;
    let told: Vec<String> = data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect();
    let arranged = Arranged::new(data, &params)?;
    let data = &arranged.data;
    let phases = phases(data, &params.training)?;
    let names: Vec<String> = data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect();
    let start = data
        .start
        .map(|saved| WarmStart::new(saved, (&told, &names), data.x.n_cols(), &params))
        .transpose()?;
    let run = run.child("poul");
    let is_logistic = params.model.loss == Loss::Logistic;
    if is_logistic {
        check_binary(data)?;
    }
    let exposure = MeanExposure::of(data.x, data.weight, data.policies)?;
    params.model.centring.check(data.design, exposure.is_some())?;
    if exposure.is_some() && data.start.is_some() {
        let error = Error::usage("training with exposures of rows cannot start from a saved model yet");
        return Err(error.hint("fit afresh, or leave the exposure out"));
    }
    // Where no row is meant, contexts weigh what rows meet of them on average.
    let weighted = exposure.as_ref().map(|own| own.weighted(data.policies));
    let policies = weighted.as_ref().unwrap_or(data.policies);
    let weight: Option<Vec<f32>> =
        data.weight.map(|weight| weight.iter().map(|weight| *weight as f32).collect());
    let weight = weight.as_deref();
    let loss = if is_logistic { OutcomeLoss::Logistic } else { OutcomeLoss::Squared };
    let (centring, needs_propensity) = AssignmentFit::centring(data, exposure.is_some(), &params);
    let (outcome, propensity) = (outcome_params(&params, data.n_rows())?, propensity_params(&params)?);
    let needs = Needs {
        n_folds: params.training.folds,
        outcome: Some((&outcome, loss)),
        by_name: true,
        propensity: needs_propensity.then_some(&propensity),
    };
    let mut first = FirstStage::fit(&data.observed(), &needs, run)?;
    let Residuals { values: mut residual, mut scales, outcome, .. } = first.take_outcome()?;
    if let Some(start) = &start {
        change_units(&mut residual, &scales, &start.scales());
        scales = start.scales();
    }
    let total: f64 = data.policy_mass().iter().sum();
    let shares: Vec<f64> = data.policy_mass().iter().map(|mass| mass / total).collect();
    let mut space = TreatmentSpace::new(policies, &shares).with_attributes(policies.attributes())?;
    if let Some(exposure) = &exposure {
        space.spread = exposure.spread(policies, &shares);
    }
    let space =
        start.as_ref().map_or_else(|| space.clone(), |start| start.space(&space, policies.attributes()));
    let all: Vec<usize> = (0..policies.len()).collect();
    let mixtures = space.mixtures(policies, &all)?;
    let own = exposure.as_ref().map(|_| OwnMixtures::new(&space, policies, &all)).transpose()?;
    let expected = own.as_ref().map_or(&mixtures, |own| &own.mixtures);
    let known = (first.propensity, centring);
    let assignment = AssignmentFit::new(data, expected, known, weight, &first.folds, run)?;
    let is_weighted = params.training.noise_weights && !is_logistic;
    let precision =
        is_weighted.then(|| precisions(&residual, &outcome.predicted, weight, names.len())).flatten();
    let binary = is_logistic.then(|| Binary::new(data, &outcome.predicted));
    let problem = Problem {
        x: data.x,
        space: &space,
        mixtures: &mixtures,
        policy: data.policy,
        target: match &binary {
            Some(Binary { outcome, logit }) => Target::Binary { outcome, logit },
            None => Target::Residual(&residual),
        },
        n_outcomes: data.outcomes.len(),
        weight,
        precision: precision.as_deref(),
        cluster: data.cluster,
        assigned: assignment.assigned(),
        own: own.as_ref().map(|mixtures| OwnExposure { x: data.x, mixtures }),
        centring: assignment.centring,
        phases: &phases,
        start: start.as_ref(),
    };
    let Fitted { mut weights, history: effects, calibration: Calibration { slopes, deviations } } =
        fit(&problem, &params, run.child("effects"))?;
    // Averages of policies by the rows of all of them; effects of rows lie around these.
    let averages = match assignment.propensity() {
        Some(fit) if params.training.calibrate && !is_logistic => {
            // With exposures of their own rows differ by h as well, which is no mean of zero.
            let deviations = deviations.as_ref().filter(|_| problem.own.is_none());
            let loadings = |own: (usize, &Slopes)| own.1.of_deviations(own.0, names.len());
            let loadings: Vec<Vec<f64>> = slopes.iter().enumerate().map(loadings).collect();
            let adjusted = deviations.map(|deviations| deviations.taken_off(&residual, &loadings));
            let rows = ResidualRows {
                residual: adjusted.as_deref().unwrap_or(&residual),
                n_outcomes: names.len(),
                policy: data.policy,
                n_policies: data.policies.len(),
                weight: data.weight,
                cluster: data.cluster,
                propensity: &fit.propensity,
            };
            averages(&rows, &arranged.told, policies, data.control)
        }
        _ => None,
    };
    let (shared, left) = arranged.shared(&slopes, &scales, averages.is_some());
    if averages.is_none() && !slopes.is_empty() {
        let (network, layout, _) = UpliftNet::new(data.x.n_cols(), problem.n_outcomes, &space, &params)?;
        let training = problem.training(&network, &params);
        let rows: Vec<u32> = (0..data.n_rows() as u32).collect();
        scale(&training, &layout, &mut weights, data.x, &rows, &slopes)?;
    }
    let baseline = match &binary {
        Some(binary) => {
            let (network, layout, _) = UpliftNet::new(data.x.n_cols(), problem.n_outcomes, &space, &params)?;
            let training = problem.training(&network, &params);
            let (run, x) = (run.child("baseline"), data.x);
            Some(distil(&training, &layout, &weights, &binary.logit, x, data.cluster, run)?)
        }
        None => None,
    };

    let mut history = Vec::new();
    for (fold, model) in outcome.models.folds().iter().enumerate() {
        let name = format!("outcome model, fold {}", fold + 1);
        history.push(Phase { name, epochs: model.history().to_vec(), best: Some(model.best_epoch()) });
    }
    history.extend(assignment.history());
    history.extend(effects);
    let mut notes = notes(data, &outcome, assignment.propensity(), params.training.clip);
    let chosen = ChosenNuisances::new(&data.outcomes, &outcome, assignment.propensity());
    notes.extend(chosen.iter().flat_map(ChosenNuisances::notes));
    notes.extend(sizes(&told, &left, shared.as_ref()));
    if let (Some(n), Some(_)) = (data.cluster.map(count_clusters), &averages)
        && n < FEW_CLUSTERS
    {
        notes.push(format!(
            "the rows come in only {}: intervals of average effects are wide, and rough",
            counted(n, "cluster", "clusters")
        ));
    }
    notes.extend(assignment.note(data.policies.len(), params.model.centring));
    let scales = arranged.of_told(&scales);
    let mut poul =
        Poul::new(told, scales, data.x.n_cols(), space.clone(), &params, weights, baseline, shared)?;
    let population = Population { x: data.x, weight, mixtures: &mixtures, shares: &shares };
    let exposure = exposure.map(|own| (policies, own.mean));
    poul.keep_nuisances(chosen);
    poul.canonicalise(&population, averages, &left, exposure)?;
    Ok(Trained { effects: Box::new(poul), history, notes })
}

/// Reads a model back.
pub fn load(manifest: &serde_json::Value, tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    Ok(Box::new(Poul::from_parts(manifest, tensors)?))
}

/// What was given, over the defaults of the preset.
fn params(settings: &Settings) -> Result<ValidParams> {
    let defaults = preset::defaults(settings.preset.as_deref())?;
    let (model, training): (ModelParams, TrainingParams) = match settings.preset {
        None => settings.read()?,
        Some(_) => settings.over(&Settings::of(None, &defaults.model, &defaults.training)?).read()?,
    };
    Params { model, training }.check()
}

/// What to say of the size of differences between rows, and of where an outcome has them from; `left` are the slopes that
/// are applied beside what is taken.
fn sizes(told: &[String], left: &[Slopes], shared: Option<&SharedGains>) -> Vec<String> {
    let mut notes = Vec::new();
    for (outcome, (name, left)) in told.iter().zip(left).enumerate() {
        let taken = shared.map(|shared| shared.taken(outcome, name)).unwrap_or_default();
        let own = taken.iter().find(|part| part.name == name).map_or(1.0, |part| part.per_unit);
        let kept = 100.0 * left.rows * own;
        let others: Vec<String> = taken
            .iter()
            .filter(|part| part.name != name && part.per_unit != 0.0)
            .map(|part| {
                let (size, other) = (rounded(part.per_unit.abs()), part.name);
                let way = if part.per_unit < 0.0 { "less" } else { "more" };
                format!("users whose predicted effect on `{other}` is 1 higher are predicted {size} {way} in `{name}`")
            })
            .collect();
        if !others.is_empty() {
            notes.push(format!(
                "who gains more in `{name}` was learned partly from other outcomes: {}; {kept:.0} % of what `{name}` \
                 itself suggested was kept",
                others.join(", ")
            ));
        } else if kept < 100.0 * LITTLE_SUPPORT {
            notes.push(format!(
                "only {kept:.0} % of the predicted differences between users in `{name}` held up on held-out rows; they \
                 were shrunk to {kept:.0} %"
            ));
        }
    }
    notes
}

/// To three digits that count.
fn rounded(value: f64) -> String {
    let digits = (2.0 - value.log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{value:.digits$}")
}

/// How many different clusters there are.
fn count_clusters(cluster: &[u32]) -> usize {
    let mut codes = cluster.to_vec();
    codes.sort_unstable();
    codes.dedup();
    codes.len()
}

/// From the units of `scales` to those of `others`; row-major, one column per outcome.
fn change_units(values: &mut [f32], scales: &[f64], others: &[f64]) {
    let factors: Vec<f32> = scales.iter().zip(others).map(|(own, other)| (own / other) as f32).collect();
    for row in values.chunks_exact_mut(factors.len().max(1)) {
        row.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= factor);
    }
}
