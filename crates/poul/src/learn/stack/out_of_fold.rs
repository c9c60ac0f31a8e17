//! What members say of rows that they have not seen, as moments of the losses.

use super::level::Population;
use super::moments::Moments;
use super::params::Params;
use crate::data::pick;
use crate::effect::{AssignedTable, EffectModel, TrainingRows, ValidTrainingData};
use crate::learn::Learner;
use crate::learn::poul;
use crate::nuisance::{Folds, Propensity, SomeRows};
use crate::progress::Named;
use crate::{Memory, Progress, Result, Run, Seed};

/// Policies that the doubly robust loss is taken over, at most: those with most rows.
const MOST_SCORED: usize = 64;
/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 18;
/// Least propensity that the doubly robust score divides by.
const CLIP: f64 = 0.01;

/// Rows with m̂ and π̂, out of fold of a first stage of their own.
pub(super) struct Evidence<'a> {
    pub(super) data: &'a ValidTrainingData<'a>,
    pub(super) params: &'a Params,
    /// Y − m̂(X) in standard units, row-major.
    pub(super) residual: &'a [f32],
    /// The unit of each outcome.
    pub(super) scales: &'a [f64],
    pub(super) propensity: &'a Propensity,
    /// The policy that effects are taken against.
    pub(super) against: usize,
    /// Whether members lie around the averages of `poul`.
    pub(super) is_anchored: bool,
    pub(super) is_doubly_robust: bool,
}

/// What the losses are made of, by outcome.
pub(super) struct FoldedMoments {
    /// (r, p_1, …, p_L) of each row.
    pub(super) r: Vec<Moments>,
    /// (k·r, k·p_1, …, k·p_L, τ_1, …, τ_L) of each row and policy; nothing where the loss is not asked for.
    pub(super) doubly_robust: Vec<Moments>,
}

/// The stream of a member: that of the stack, so that first stages are shared, where its settings are the defaults that
/// all have; a stream of its own otherwise, since a stream trains one network only.
pub(super) fn root(seed: Seed, learner: &Learner, params: &Params) -> Seed {
    let is_plain = !params.model.learners.contains_key(learner.name) && !learner.name.starts_with("poul-");
    if is_plain { seed } else { seed.child("stack").child(learner.name) }
}

impl Evidence<'_> {
    /// Fits every member without each fold.
    pub(super) fn gather(&self, run: Run<'_>) -> Result<FoldedMoments> {
        let (data, n_members) = (self.data, self.params.members.len());
        let n_folds = self.params.training.folds;
        let folds = Folds::deal(data.n_rows(), data.cluster, n_folds, run.seed.child("stack"));
        folds.check(data.n_rows())?;
        let n_outcomes = data.outcomes.len();
        let mut moments =
            FoldedMoments { r: vec![Moments::new(1 + n_members); n_outcomes], doubly_robust: Vec::new() };
        if self.is_doubly_robust {
            moments.doubly_robust = vec![Moments::new(1 + 2 * n_members); n_outcomes];
        }
        for fold in 0..n_folds {
            let name = format!("fold {} of {n_folds}", fold + 1);
            let run = run.child("stack").child("fold").index(fold as u64);
            let place = |error: crate::Error| error.within(format!("without {name}"));
            self.fold(&folds, fold, &name, &mut moments, run).map_err(place)?;
        }
        Ok(moments)
    }

    fn fold(
        &self,
        folds: &Folds,
        fold: usize,
        name: &str,
        moments: &mut FoldedMoments,
        run: Run<'_>,
    ) -> Result<()> {
        let part = TrainingRows::new(self.data, folds.rest(fold));
        let x = SomeRows { x: self.data.x, rows: &part.rows };
        let data = part.data(self.data, &x).check()?;
        let memory = Memory::default();
        let population = Population::new(&data, self.against);
        let inside = folds.rows(fold);
        let held = Held::new(self, &inside);
        let mut said: Vec<Said> = Vec::new();
        let mut anchor = None;
        for place in in_turn(self.params, self.is_anchored) {
            let (learner, settings) = &self.params.members[place];
            let progress = Named { progress: run.progress, name: format!("{name}, {}", learner.name) };
            let seed = root(run.seed, learner, self.params);
            let run = Run { seed, memory: Some(&memory), ..run.told(&progress) };
            let trained = (learner.train)(&data, settings, run)
                .map_err(|error| error.within(format!("member `{}`", learner.name)))?;
            let model = trained.effects.as_ref();
            if self.is_anchored && learner.name == poul::NAME {
                anchor = population.averages(model)?;
            }
            let shifts = match &anchor {
                Some(averages) => self.shifts(&population, averages, model)?,
                None => Vec::new(),
            };
            said.push(Said { place, ..held.said(model, &shifts, &progress)? });
        }
        said.sort_by_key(|own| own.place);
        held.add(&said, moments);
        Ok(())
    }

    /// What is added to a member's effects, by outcome and policy.
    fn shifts(
        &self,
        population: &Population<'_>,
        averages: &[Vec<f64>],
        model: &dyn EffectModel,
    ) -> Result<Vec<Vec<f64>>> {
        let policies = self.data.policies;
        let of_outcome = |(averages, means): (&Vec<f64>, &Vec<f64>)| {
            let differences: Vec<f64> = averages.iter().zip(means).map(|(own, mean)| own - mean).collect();
            let shift = population.shift(&differences)?;
            let is_run = |policy: usize| self.data.policy_mass()[policy] > 0.0;
            let of = |policy| if is_run(policy) { shift.of(policies, policy) } else { 0.0 };
            Ok((0..policies.len()).map(of).collect())
        };
        averages.iter().zip(&population.means(model)?).map(of_outcome).collect()
    }
}

/// The members by number, the one that others lie around first.
pub(super) fn in_turn(params: &Params, is_anchored: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..params.members.len()).collect();
    let is_anchor = |place: &usize| is_anchored && params.members[*place].0.name == poul::NAME;
    order.sort_by_key(|place| !is_anchor(place));
    order
}

/// What a member says of held-out rows, in standard units by outcome.
struct Said {
    place: usize,
    /// p of each row.
    contrasts: Vec<Vec<f64>>,
    /// τ of each row under every scored policy, rows × policies; nothing where it is not asked for.
    effects: Vec<Vec<f32>>,
}

/// The rows of a fold.
struct Held<'a> {
    evidence: &'a Evidence<'a>,
    rows: &'a [u32],
    policy: Vec<u32>,
    propensity: Propensity,
    is_run: Vec<bool>,
    /// The policies of the doubly robust loss.
    scored: Vec<usize>,
}

impl<'a> Held<'a> {
    fn new(evidence: &'a Evidence<'a>, rows: &'a [u32]) -> Self {
        let (data, n_policies) = (evidence.data, evidence.data.policies.len());
        let mass = data.policy_mass();
        let is_target = |policy: &usize| mass[*policy] > 0.0 && *policy != evidence.against;
        let mut scored: Vec<usize> = match evidence.is_doubly_robust {
            true => (0..n_policies).filter(is_target).collect(),
            false => Vec::new(),
        };
        scored.sort_by(|a, b| mass[*b].total_cmp(&mass[*a]).then(a.cmp(b)));
        scored.truncate(MOST_SCORED);
        Self {
            evidence,
            rows,
            policy: pick(data.policy, rows),
            propensity: evidence.propensity.subset(rows, n_policies),
            is_run: mass.iter().map(|mass| *mass > 0.0).collect(),
            scored,
        }
    }

    fn said(&self, model: &dyn EffectModel, shifts: &[Vec<f64>], progress: &dyn Progress) -> Result<Said> {
        let Evidence { data, scales, against, .. } = self.evidence;
        let x = SomeRows { x: data.x, rows: self.rows };
        let table = AssignedTable {
            policies: data.policies,
            policy: &self.policy,
            propensity: &self.propensity,
            is_scored: &self.is_run,
            against: *against,
            // The same draw of policies for every member and fold.
            seed: Seed::new(0).child("stack"),
        };
        let mut contrasts = table.by_model(model, &x, progress)?;
        contrasts.iter_mut().zip(shifts).for_each(|(own, shifts)| self.add_shifts(own, shifts));
        for (contrasts, scale) in contrasts.iter_mut().zip(scales.iter()) {
            contrasts.iter_mut().for_each(|contrast| *contrast /= scale);
        }
        let n_scored = self.scored.len();
        let mut effects = Vec::new();
        if n_scored > 0 {
            effects = vec![Vec::with_capacity(self.rows.len() * n_scored); scales.len()];
            let scorer = model.prepare(data.policies, &self.scored, *against)?;
            for rows in self.rows.chunks((BLOCK_PAIRS / n_scored).max(64)) {
                let scores = scorer.score(&SomeRows { x: data.x, rows }, false)?;
                for (outcome, (effects, means)) in effects.iter_mut().zip(&scores.mean).enumerate() {
                    let shift =
                        |target: usize| shifts.get(outcome).map_or(0.0, |own| own[self.scored[target]]);
                    let units = means.iter().enumerate().map(|(place, effect)| {
                        ((f64::from(*effect) + shift(place % n_scored)) / scales[outcome]) as f32
                    });
                    effects.extend(units);
                }
            }
        }
        Ok(Said { place: 0, contrasts, effects })
    }

    /// Adds shift(T) − Σ_t π(t|x)·shift(t).
    fn add_shifts(&self, contrasts: &mut [f64], shifts: &[f64]) {
        let expected = |row: usize| -> f64 {
            let own = self.propensity.of_row(row, shifts.len());
            own.iter().zip(shifts).map(|(share, shift)| f64::from(*share) * shift).sum()
        };
        let shared = matches!(self.propensity, Propensity::Shares(_)).then(|| expected(0));
        for (row, contrast) in contrasts.iter_mut().enumerate() {
            let expected = shared.unwrap_or_else(|| expected(row));
            *contrast += shifts[self.policy[row] as usize] - expected;
        }
    }

    fn add(&self, said: &[Said], moments: &mut FoldedMoments) {
        let Evidence { data, residual, against, .. } = self.evidence;
        let (n_outcomes, n_members, n_policies) = (moments.r.len(), said.len(), data.policies.len());
        let n_scored = self.scored.len();
        let total: f64 = self.scored.iter().map(|policy| data.policy_mass()[*policy]).sum();
        for (place, row) in self.rows.iter().enumerate() {
            let row = *row as usize;
            let weight = data.weight.map_or(1.0, |weight| weight[row]);
            if weight == 0.0 {
                continue;
            }
            let shares = self.propensity.of_row(place, n_policies);
            let own = self.policy[place] as usize;
            let inverse = 1.0 / f64::from(shares[own]).max(CLIP.min(data.policy_mass()[own] / total / 10.0));
            for outcome in 0..n_outcomes {
                let mut v = vec![f64::from(residual[row * n_outcomes + outcome])];
                v.extend(said.iter().map(|own| own.contrasts[outcome][place]));
                moments.r[outcome].add(weight, &v);
                for (target, policy) in self.scored.iter().enumerate() {
                    let k = match own {
                        own if own == *policy => inverse,
                        own if own == *against => -inverse,
                        _ => 0.0,
                    };
                    let mut terms: Vec<f64> = v.iter().map(|value| k * value).collect();
                    terms.extend(
                        said.iter().map(|own| f64::from(own.effects[outcome][place * n_scored + target])),
                    );
                    debug_assert_eq!(terms.len(), 1 + 2 * n_members);
                    let share = data.policy_mass()[*policy] / total;
                    moments.doubly_robust[outcome].add(weight * share, &terms);
                }
            }
        }
    }
}
