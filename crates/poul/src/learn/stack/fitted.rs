//! What comes out: members, their weights for each outcome, and what lifts them to the averages of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::params::StackLoss;
use crate::Result;
use crate::effect::{Averages, EffectModel, PolicyShift, Scorer, Scores, Tensor, Tensors};
use crate::learn::learner;
use crate::net::RowSource;
use crate::policy::{Attributes, PolicySet};
use crate::stored::{contradiction, damaged, read_stored, store};

/// How a stack came about, as its model file tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackSummary {
    /// Which loss weighed members.
    pub(super) loss: StackLoss,
    /// Folds that it was taken over.
    pub folds: usize,
    /// By outcome.
    pub outcomes: Vec<OutcomeWeights>,
}

/// The weights of one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeWeights {
    /// The outcome.
    pub outcome: String,
    /// The out-of-fold loss of the combination, in units of the outcome's variance.
    pub loss: f64,
    /// Every member, in order of names.
    pub members: Vec<StackedMember>,
}

/// A member of a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackedMember {
    /// The learner.
    pub name: String,
    /// Its weight; the weights of an outcome sum to 1.
    pub weight: f64,
    /// Its own out-of-fold loss.
    pub loss: f64,
}

impl StackSummary {
    /// The loss in words.
    pub fn loss_name(&self) -> &'static str {
        match self.loss {
            StackLoss::DoublyRobust => "doubly robust loss",
            _ => "R-loss",
        }
    }

    /// One sentence for each outcome.
    pub(super) fn notes(&self) -> Vec<String> {
        let of_outcome = |own: &OutcomeWeights| {
            let mut members: Vec<&StackedMember> = own.members.iter().collect();
            members.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.name.cmp(&b.name)));
            let member = |own: &&StackedMember| format!("{} {:.2} ({:.5})", own.name, own.weight, own.loss);
            let members: Vec<String> = members.iter().map(member).collect();
            format!(
                "`{}` is stacked of {}, each with its out-of-fold {}; that of the stack is {:.5}",
                own.outcome,
                members.join(", "),
                self.loss_name(),
                own.loss
            )
        };
        self.outcomes.iter().map(of_outcome).collect()
    }

    fn is_sound(&self) -> bool {
        let is_sound = |own: &OutcomeWeights| {
            own.members.iter().all(|own| (0.0..=1.0).contains(&own.weight))
                && (own.members.iter().map(|own| own.weight).sum::<f64>() - 1.0).abs() < 1e-6
        };
        !self.outcomes.is_empty() && self.outcomes.iter().all(is_sound)
    }
}

/// A fitted stack.
pub(super) struct Stack {
    outcomes: Vec<String>,
    n_features: usize,
    members: Vec<Member>,
    /// The member whose averages effects lie around.
    anchor: Option<usize>,
    /// What is added to effects, by outcome; nothing without an anchor.
    shifts: Vec<PolicyShift>,
    summary: StackSummary,
}

struct Member {
    name: String,
    model: Box<dyn EffectModel>,
    /// By outcome.
    weights: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    n_features: usize,
    members: Vec<StoredMember>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    anchor: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shifts: Vec<PolicyShift>,
    summary: StackSummary,
}

#[derive(Serialize, Deserialize)]
struct StoredMember {
    name: String,
    model: Value,
}

/// Reads a model back.
pub(super) fn load(manifest: &Value, tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    let Manifest { n_features, members, anchor, shifts, summary } = read_stored(manifest)?;
    let mut models = Vec::with_capacity(members.len());
    for StoredMember { name, model } in members {
        let learner = learner(&name).map_err(|error| error.at("a member of the stack"))?;
        let mut own = tensors.split_off(&prefix(&name));
        let model =
            (learner.load)(&model, &mut own).map_err(|error| error.within(format!("member `{name}`")))?;
        if let Some(tensor) = own.names().next() {
            return Err(damaged(format!("tensor `{tensor}` does not belong to the member `{name}`")));
        }
        models.push((learner.name, model));
    }
    let stack = Stack::new(models, anchor.as_deref(), shifts, summary, n_features)?;
    Ok(Box::new(stack))
}

fn prefix(name: &str) -> String {
    format!("stack.{name}.")
}

impl Stack {
    /// Puts the parts together; they must agree.
    pub(super) fn new(
        members: Vec<(&'static str, Box<dyn EffectModel>)>,
        anchor: Option<&str>,
        shifts: Vec<PolicyShift>,
        summary: StackSummary,
        n_features: usize,
    ) -> Result<Self> {
        let outcomes: Vec<String> = summary.outcomes.iter().map(|own| own.outcome.clone()).collect();
        let weight = |name: &str, own: &OutcomeWeights| {
            own.members.iter().find(|own| own.name == name).map_or(0.0, |own| own.weight)
        };
        let member = |(name, model): (&'static str, Box<dyn EffectModel>)| Member {
            name: name.to_owned(),
            weights: summary.outcomes.iter().map(|own| weight(name, own)).collect(),
            model,
        };
        let members: Vec<Member> = members.into_iter().map(member).collect();
        let fits = |own: &Member| own.model.outcomes() == outcomes && own.model.n_features() == n_features;
        let total = |outcome: usize| members.iter().map(|own| own.weights[outcome]).sum::<f64>();
        let place = anchor.map(|name| members.iter().position(|own| own.name == name));
        let is_sound = summary.is_sound()
            && members.iter().all(fits)
            && (0..outcomes.len()).all(|outcome| (total(outcome) - 1.0).abs() < 1e-6)
            && place != Some(None)
            && shifts.len() == if place.is_some() { outcomes.len() } else { 0 }
            && shifts.iter().all(PolicyShift::is_sound);
        if !is_sound {
            return Err(contradiction());
        }
        Ok(Self { outcomes, n_features, members, anchor: place.flatten(), shifts, summary })
    }
}

impl Member {
    fn is_used(&self) -> bool {
        self.weights.iter().any(|weight| *weight > 0.0)
    }
}

impl EffectModel for Stack {
    fn outcomes(&self) -> &[String] {
        &self.outcomes
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn embeds(&self, context: &str, action: &str, attributes: &Attributes) -> bool {
        self.members.iter().all(|own| own.model.embeds(context, action, attributes))
    }

    fn averages(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
        joint: bool,
    ) -> Result<Option<Vec<Averages>>> {
        match self.anchor {
            Some(place) => self.members[place].model.averages(policies, targets, against, joint),
            None => Ok(None),
        }
    }

    fn row_deviations(&self) -> Option<Vec<f64>> {
        self.anchor.and_then(|place| self.members[place].model.row_deviations())
    }

    fn prepare<'m>(
        &'m self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Box<dyn Scorer + 'm>> {
        let mut members = Vec::new();
        let mut notes: Vec<String> = Vec::new();
        for member in self.members.iter().filter(|member| member.is_used()) {
            let scorer = member.model.prepare(policies, targets, against)?;
            for note in scorer.notes() {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
            members.push((scorer, member.weights.as_slice()));
        }
        let of_outcome = |shift: &PolicyShift| -> Vec<f64> {
            let base = shift.of(policies, against);
            targets.iter().map(|target| shift.of(policies, *target) - base).collect()
        };
        let shifts = self.shifts.iter().map(of_outcome).collect();
        Ok(Box::new(StackScorer { members, shifts, n_targets: targets.len(), notes }))
    }

    fn manifest(&self) -> Result<Value> {
        let stored = |own: &Member| Ok(StoredMember { name: own.name.clone(), model: own.model.manifest()? });
        store(&Manifest {
            n_features: self.n_features,
            members: self.members.iter().map(stored).collect::<Result<_>>()?,
            anchor: self.anchor.map(|place| self.members[place].name.clone()),
            shifts: self.shifts.clone(),
            summary: self.summary.clone(),
        })
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = Vec::new();
        for member in &self.members {
            let prefix = prefix(&member.name);
            let named = |tensor: &Tensor<'_>| format!("{prefix}{}", tensor.name);
            tensors.extend(
                member.model.tensors().into_iter().map(|tensor| Tensor { name: named(&tensor), ..tensor }),
            );
        }
        tensors
    }
}

struct StackScorer<'m> {
    /// Members that count, with their weights by outcome.
    members: Vec<(Box<dyn Scorer + 'm>, &'m [f64])>,
    /// By outcome and target.
    shifts: Vec<Vec<f64>>,
    n_targets: usize,
    notes: Vec<String>,
}

impl Scorer for StackScorer<'_> {
    /// The spread is the weighted mean of the members' own: as large as it can be, since they learned from the same rows.
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let n_outcomes = self.members.first().map_or(0, |(_, weights)| weights.len());
        let n_values = x.n_rows() * self.n_targets;
        let mut means = vec![vec![0.0_f64; n_values]; n_outcomes];
        let mut spreads = vec![vec![0.0_f64; n_values]; if spread { n_outcomes } else { 0 }];
        for (scorer, weights) in &self.members {
            let scores = scorer.score(x, spread)?;
            for (outcome, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                let add = |sums: &mut [f64], own: &[f32]| {
                    sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += weight * f64::from(*own));
                };
                add(&mut means[outcome], &scores.mean[outcome]);
                if spread && let Some(own) = scores.spread.get(outcome) {
                    add(&mut spreads[outcome], own);
                }
            }
        }
        for (means, shifts) in means.iter_mut().zip(&self.shifts) {
            for row in means.chunks_exact_mut(self.n_targets.max(1)) {
                row.iter_mut().zip(shifts).for_each(|(mean, shift)| *mean += shift);
            }
        }
        let single = |values: Vec<Vec<f64>>| -> Vec<Vec<f32>> {
            values.into_iter().map(|own| own.into_iter().map(|value| value as f32).collect()).collect()
        };
        Ok(Scores { mean: single(means), spread: single(spreads) })
    }

    fn has_spread(&self) -> bool {
        self.members.iter().all(|(scorer, _)| scorer.has_spread())
    }

    fn spread_freedom(&self) -> Option<usize> {
        self.members.iter().filter_map(|(scorer, _)| scorer.spread_freedom()).min()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
