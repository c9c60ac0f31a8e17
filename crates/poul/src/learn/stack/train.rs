//! The whole: m̂ and π̂ once, members without each fold, weights, members on all rows.

use super::fitted::{OutcomeWeights, Stack, StackSummary, StackedMember};
use super::level::Population;
use super::moments::Quadratic;
use super::out_of_fold::{Evidence, in_turn, root};
use super::params::{Level, Params, StackLoss, read};
use crate::data::Design;
use crate::effect::{EffectModel, Phase, Settings, Trained, ValidTrainingData};
use crate::learn::poul;
use crate::nuisance::{CommonSupport, FirstStage, Propensity};
use crate::progress::Named;
use crate::{Error, Memory, Result, Run};

/// Folds of m̂ and π̂, by the rows: those of the method itself, so that both are fitted once.
const NUISANCE_FOLDS: usize = 0;
/// Least propensity where it is learned.
const CLIP: f32 = 0.01;
/// Overlap is poor where more of the rows than this had no real chance of a policy.
const POOR_OVERLAP: f64 = 0.1;

/// Learns.
pub(super) fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    let params = read(settings)?;
    let own = Memory::default();
    let run = Run { memory: run.memory.or(Some(&own)), ..run };
    let named = |name: &str| Named { progress: run.progress, name: name.to_owned() };
    let rows = data.observed();
    let progress = named("stack");
    let mut first = FirstStage::shared(&rows, NUISANCE_FOLDS, true, Some(CLIP), run.told(&progress))?;
    let (residuals, fit) = (first.take_outcome()?, first.take_propensity()?);
    let said = fit.report.clipping_note(CLIP, data.n_rows());
    let against = against(data);
    let has_anchor = params.members.iter().any(|(learner, _)| learner.name == poul::NAME);
    let is_anchored = has_anchor
        && match params.model.level {
            Level::Auto => data.design != Design::Observational,
            Level::Anchored => true,
            Level::Members => false,
        };
    let is_doubly_robust = match params.model.loss {
        StackLoss::Auto => data.design == Design::Observational && is_poor(data, &fit.propensity),
        StackLoss::R => false,
        StackLoss::DoublyRobust => true,
    };
    let evidence = Evidence {
        data,
        params: &params,
        residual: &residuals.values,
        scales: &residuals.scales,
        propensity: &fit.propensity,
        against,
        is_anchored,
        is_doubly_robust,
    };
    let moments = evidence.gather(run)?;
    let mut outcomes = Vec::new();
    for (outcome, column) in data.outcomes.iter().enumerate() {
        let mut loss = moments.r[outcome].r_loss();
        check(&loss)?;
        let mut weights = loss.aggregate();
        if is_doubly_robust {
            loss = moments.doubly_robust[outcome].doubly_robust_loss(&weights);
            check(&loss)?;
            weights = loss.aggregate();
        }
        outcomes.push(OutcomeWeights::new(column.name, &loss, &weights, &params));
    }

    let is_used = |place: usize| outcomes.iter().any(|own| own.members[place].weight > 0.0);
    let population = Population::new(data, against);
    let mut fitted: Vec<(usize, Box<dyn EffectModel>)> = Vec::new();
    let (mut history, mut notes) = (Vec::new(), said.into_iter().collect::<Vec<String>>());
    let mut averages = None;
    for place in in_turn(&params, is_anchored) {
        let (learner, settings) = &params.members[place];
        let is_anchor = is_anchored && learner.name == poul::NAME;
        if !is_used(place) && !is_anchor {
            continue;
        }
        let (seed, progress) = (root(run.seed, learner, &params), named(learner.name));
        let trained = (learner.train)(data, settings, Run { seed, ..run.told(&progress) })
            .map_err(|error| error.within(format!("member `{}`", learner.name)))?;
        if is_anchor {
            averages = population.averages(trained.effects.as_ref())?;
            // Without averages there is nothing to lie around.
            if averages.is_none() && !is_used(place) {
                continue;
            }
        }
        let named = |phase: Phase| Phase { name: format!("{}: {}", learner.name, phase.name), ..phase };
        history.extend(trained.history.into_iter().map(named));
        let told = trained.notes.into_iter().map(|note| format!("{}: {note}", learner.name));
        notes.extend(told.filter(|_| is_used(place)));
        fitted.push((place, trained.effects));
    }
    fitted.sort_by_key(|(place, _)| *place);
    let mut shifts = Vec::new();
    if let Some(averages) = &averages {
        let mut differences: Vec<Vec<f64>> = averages.iter().map(|own| vec![0.0; own.len()]).collect();
        for (place, model) in &fitted {
            if !is_used(*place) {
                continue;
            }
            let means = population.means(model.as_ref())?;
            for (outcome, differences) in differences.iter_mut().enumerate() {
                let weight = outcomes[outcome].members[*place].weight;
                let own =
                    averages[outcome].iter().zip(&means[outcome]).map(|(own, mean)| weight * (own - mean));
                differences.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
        }
        shifts = differences.iter().map(|own| population.shift(own)).collect::<Result<_>>()?;
    }
    let loss = if is_doubly_robust { StackLoss::DoublyRobust } else { StackLoss::R };
    let summary = StackSummary { loss, folds: params.training.folds, outcomes };
    notes.extend(summary.notes());
    let members = fitted.into_iter().map(|(place, model)| (params.members[place].0.name, model)).collect();
    let anchor = averages.is_some().then_some(poul::NAME);
    let stack = Stack::new(members, anchor, shifts, summary, data.x.n_cols())?;
    Ok(Trained { effects: Box::new(stack), history, notes })
}

/// The control, or the policy with most rows where control has none.
fn against(data: &ValidTrainingData<'_>) -> usize {
    let mass = data.policy_mass();
    let largest = || (0..mass.len()).rev().max_by(|a, b| mass[*a].total_cmp(&mass[*b])).unwrap_or(0);
    data.control.filter(|control| mass[*control] > 0.0).unwrap_or_else(largest)
}

/// Whether many rows had no real chance of the policies that were run, each counting by its rows.
fn is_poor(data: &ValidTrainingData<'_>, propensity: &Propensity) -> bool {
    let mass = data.policy_mass();
    let total: f64 = mass.iter().sum();
    let support = CommonSupport::new(propensity, mass);
    let run: Vec<usize> = (0..mass.len()).filter(|policy| mass[*policy] > 0.0).collect();
    let (mut outside, mut all) = (0.0, 0.0);
    for row in 0..data.n_rows() {
        let weight = data.weight.map_or(1.0, |weight| weight[row]);
        all += weight;
        let missed = run.iter().filter(|policy| !support.holds(row, **policy));
        outside += weight * missed.map(|policy| mass[*policy]).sum::<f64>() / total;
    }
    outside > POOR_OVERLAP * all
}

fn check(loss: &Quadratic) -> Result<()> {
    match loss.is_finite() {
        true => Ok(()),
        false => Err(Error::other("the out-of-fold loss is not finite").at("learner `stack`").hint(
            "a member's effects overflow: fit members one by one to see which, and leave it out of `of`",
        )),
    }
}

impl OutcomeWeights {
    fn new(name: &str, loss: &Quadratic, weights: &[f64], params: &Params) -> Self {
        let member = |(place, (learner, _)): (usize, &(&crate::learn::Learner, Settings))| StackedMember {
            name: learner.name.to_owned(),
            weight: weights[place],
            loss: loss.of_member(place),
        };
        let members = params.members.iter().enumerate().map(member).collect();
        Self { outcome: name.to_owned(), loss: loss.at(weights), members }
    }
}
