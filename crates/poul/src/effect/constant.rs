//! The learner `constant`: τ(t1, t0) = ȳ_t1 − ȳ_t0, the same for every row.
//!
//! It uses no features and no structure of policies, so it is the yardstick for everything that does: a learner whose
//! effects are no closer to the truth than these has learned nothing about who gains. Where assignment was not
//! randomized the arm means are confounded, and a note says so. A policy that was never run is given the mean of the
//! nearest one that was (by d_Π), and a note says so too.

use serde::{Deserialize, Serialize};

use super::{EffectModel, Scorer, Scores, Settings, Tensor, Tensors, Trained, ValidTrainingData};
use crate::data::Design;
use crate::net::RowSource;
use crate::policy::PolicySet;
use crate::stored::{damaged, read_stored, store};
use crate::{Error, Result, Run};

/// The learner's name.
pub const NAME: &str = "constant";

/// Checks that nothing is set.
pub fn settle(settings: &Settings) -> Result<Settings> {
    settings.require_none(NAME)
}

/// Takes the mean of each arm.
pub fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    settle(settings)?;
    run.progress.start("Averaging arms", "rows", Some(data.n_rows() as u64));
    let arms: Vec<usize> =
        (0..data.policies.len()).filter(|policy| data.policy_mass()[*policy] > 0.0).collect();
    let mut place = vec![usize::MAX; data.policies.len()];
    arms.iter().enumerate().for_each(|(arm, policy)| place[*policy] = arm);
    let mut model = Constant {
        outcomes: data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect(),
        policies: arms.iter().map(|policy| data.policies.name(*policy).to_owned()).collect(),
        n_features: data.x.n_cols(),
        mean: Vec::new(),
        standard_error: Vec::new(),
    };
    for outcome in &data.outcomes {
        let means = arm_means(outcome.values, data, &place, arms.len());
        model.mean.extend(means.iter().map(|arm| arm.0 as f32));
        model.standard_error.extend(means.iter().map(|arm| arm.1 as f32));
    }
    run.progress.advance(data.n_rows() as u64);
    run.progress.finish();
    let mut notes = Vec::new();
    if data.design != Design::Randomized {
        let design = data.design.name();
        notes.push(format!("the learner `{NAME}` compares arm means as they are: in {design} data they differ for other reasons too"));
    }
    Ok(Trained { effects: Box::new(model), history: Vec::new(), notes })
}

/// Mean, relative to the mean of all rows, and standard error of each arm.
///
/// An arm of one row takes the spread of all rows around their arms.
fn arm_means(
    values: &[f64],
    data: &ValidTrainingData<'_>,
    place: &[usize],
    n_arms: usize,
) -> Vec<(f64, f64)> {
    let weight = |row: usize| data.weight.map_or(1.0, |weight| weight[row]);
    let rows = || {
        let arms = data.policy.iter().map(|policy| place[*policy as usize]);
        arms.zip(values).enumerate().filter(|(row, _)| weight(*row) > 0.0)
    };
    let (mut mass, mut mass_squared, mut sum) = (vec![0.0; n_arms], vec![0.0; n_arms], vec![0.0; n_arms]);
    for (row, (arm, value)) in rows() {
        let w = weight(row);
        mass[arm] += w;
        mass_squared[arm] += w * w;
        sum[arm] += w * value;
    }
    let total_mass: f64 = mass.iter().sum();
    let centre = sum.iter().sum::<f64>() / total_mass;
    let mean: Vec<f64> = sum.iter().zip(&mass).map(|(sum, mass)| sum / mass).collect();
    let mut squares = vec![0.0; n_arms];
    for (row, (arm, value)) in rows() {
        squares[arm] += weight(row) * (value - mean[arm]).powi(2);
    }
    let n_effective = |arm: usize| mass[arm] * mass[arm] / mass_squared[arm];
    let pooled = squares.iter().sum::<f64>() / total_mass;
    let standard_error = |arm: usize| {
        let n = n_effective(arm);
        let variance = if n > 1.5 { squares[arm] / mass[arm] * n / (n - 1.0) } else { pooled };
        (variance / n).sqrt()
    };
    (0..n_arms).map(|arm| (mean[arm] - centre, standard_error(arm))).collect()
}

/// Arm means.
#[derive(Debug)]
struct Constant {
    outcomes: Vec<String>,
    /// The policies that were run, sorted.
    policies: Vec<String>,
    n_features: usize,
    /// Outcomes × policies.
    mean: Vec<f32>,
    standard_error: Vec<f32>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    outcomes: Vec<String>,
    policies: Vec<String>,
    n_features: usize,
}

/// Reads the model back.
pub fn load(manifest: &serde_json::Value, tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    let Stored { outcomes, policies, n_features } = read_stored(manifest)?;
    if policies.is_empty() || !policies.is_sorted() {
        return Err(damaged("the stored policies are not sorted"));
    }
    let shape = [outcomes.len(), policies.len()];
    let mean = tensors.take("mean", &shape)?;
    let standard_error = tensors.take("standard_error", &shape)?;
    Ok(Box::new(Constant { outcomes, policies, n_features, mean, standard_error }))
}

impl EffectModel for Constant {
    fn outcomes(&self) -> &[String] {
        &self.outcomes
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn prepare<'m>(
        &'m self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Box<dyn Scorer + 'm>> {
        let mut notes = Vec::new();
        let base = self.arm_of(policies, against, &mut notes)?;
        let arms = targets.iter().map(|target| self.arm_of(policies, *target, &mut notes));
        let arms = arms.collect::<Result<Vec<usize>>>()?;
        let n_arms = self.policies.len();
        let of_outcome = |outcome: usize| {
            let mean = &self.mean[outcome * n_arms..][..n_arms];
            let error = &self.standard_error[outcome * n_arms..][..n_arms];
            let effect = |arm: &usize| mean[*arm] - mean[base];
            // The difference of an arm with itself is zero, and certain.
            let spread = |arm: &usize| if *arm == base { 0.0 } else { error[*arm].hypot(error[base]) };
            (arms.iter().map(effect).collect(), arms.iter().map(spread).collect())
        };
        let (effects, spreads) = (0..self.outcomes.len()).map(of_outcome).unzip();
        Ok(Box::new(ConstantScorer { effects, spreads, notes }))
    }

    fn manifest(&self) -> Result<serde_json::Value> {
        store(&Stored {
            outcomes: self.outcomes.clone(),
            policies: self.policies.clone(),
            n_features: self.n_features,
        })
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let shape = [self.outcomes.len(), self.policies.len()];
        vec![
            Tensor::new("mean", &shape, self.mean.as_slice()),
            Tensor::new("standard_error", &shape, self.standard_error.as_slice()),
        ]
    }
}

impl Constant {
    /// The arm of a policy: its own, or the nearest.
    fn arm_of(&self, policies: &PolicySet, policy: usize, notes: &mut Vec<String>) -> Result<usize> {
        let name = policies.name(policy);
        if let Ok(arm) = self.policies.binary_search_by(|own| own.as_str().cmp(name)) {
            return Ok(arm);
        }
        let run = self.policies.iter().filter_map(|own| policies.index(own));
        let nearest = policies.nearest_among(policy, run, 1);
        let (nearest, distance) = nearest.first().copied().ok_or_else(|| {
            Error::other("none of the policies that were run is in the set").at(format!("policy `{name}`"))
        })?;
        let stand_in = policies.name(nearest);
        notes.push(format!("policy `{name}` was never run: `{stand_in}`, the nearest that was, stands in for it (distance {distance:.3})"));
        self.policies
            .binary_search_by(|own| own.as_str().cmp(stand_in))
            .map_err(|_| Error::other("the nearest policy was not run"))
    }
}

struct ConstantScorer {
    /// For each outcome, one number a target.
    effects: Vec<Vec<f32>>,
    spreads: Vec<Vec<f32>>,
    notes: Vec<String>,
}

impl Scorer for ConstantScorer {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let repeated = |of_outcomes: &Vec<Vec<f32>>| {
            of_outcomes.iter().map(|targets| targets.repeat(x.n_rows())).collect::<Vec<_>>()
        };
        Ok(Scores {
            mean: repeated(&self.effects),
            spread: if spread { repeated(&self.spreads) } else { Vec::new() },
        })
    }

    fn has_spread(&self) -> bool {
        true
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
