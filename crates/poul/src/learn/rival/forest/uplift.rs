//! Uplift forest: trees whose splits drive the outcomes of arms apart (Rzepakowski and Jaroszewicz 2012), averaged. It
//! takes assignment as random; leaves are filled honestly by default, which the paper does not do.

use serde::{Deserialize, Serialize};

use super::columns::ArmGroups;
use super::divergence::DivergenceSplits;
use super::fitted::{FittedForest, ForestKind, Manifest, Reading};
use super::params::{Divergence, ForestParams, UpliftParams, read};
use super::rows::ForestRows;
use crate::data::Design;
use crate::effect::{OutcomeColumn, Settings, Trained, ValidTrainingData};
use crate::learn::rival::treatments::{Tier, Treatments};
use crate::policy::PolicySet;
use crate::tree::Tree;
use crate::{Error, Result, Run};

/// Grows a forest for every outcome.
pub(super) fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    let params: UpliftParams = read(settings)?;
    let run = run.child(UpliftParams::NAME);
    let treatments = Treatments::new(data, Tier::Id);
    let groups = ArmGroups::new(&treatments, params.tree.min_arm_rows, params.tree.columns);
    let mut notes: Vec<String> = groups.note().into_iter().collect();
    if data.design != Design::Randomized {
        notes.push("an uplift forest takes assignment as random: its effects may be confounded".to_owned());
    }
    let kind = Arms {
        place_of_arm: groups.of_arm.iter().map(|group| group.map_or(0, |group| group + 1)).collect(),
        n_places: groups.n_groups + 1,
        treatments,
    };
    let rows = ForestRows::new(data)?;
    let place = kind.place_of_policy(data.policies)?;
    let arm: Vec<u8> = rows.kept.iter().map(|row| place[data.policy[*row as usize] as usize]).collect();
    let (mut scales, mut trees) = (Vec::new(), Vec::new());
    for (number, column) in data.outcomes.iter().enumerate() {
        let (outcome, scale) = units(column, &rows, params.divergence, &mut notes)?;
        let problem =
            Problem { rows: &rows, arm: &arm, n_arms: kind.n_places, outcome: &outcome, params: &params };
        let stage = format!("Uplift forest: {}", column.name);
        let run = run.child("effects").index(number as u64);
        trees.push(match kind.n_places {
            0..=2 => problem.grow::<2>(run, &stage)?,
            3..=5 => problem.grow::<5>(run, &stage)?,
            6..=9 => problem.grow::<9>(run, &stage)?,
            _ => problem.grow::<17>(run, &stage)?,
        });
        scales.push(scale);
    }
    let manifest = Manifest {
        outcomes: data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect(),
        scales,
        n_features: data.x.n_cols(),
        n_trees: trees[0].len(),
        group_trees: params.tree.group_trees,
        kind,
    };
    let fitted = FittedForest { manifest, cuts: rows.cuts, trees };
    Ok(Trained { effects: Box::new(fitted), history: Vec::new(), notes })
}

/// A 0/1 outcome as it is, any other in standard units, with what effects are multiplied by.
fn units(
    column: &OutcomeColumn<'_>,
    rows: &ForestRows,
    divergence: Divergence,
    notes: &mut Vec<String>,
) -> Result<(Vec<f32>, f64)> {
    let values = rows.kept.iter().map(|row| column.values[*row as usize]);
    if values.clone().all(|value| value == 0.0 || value == 1.0) {
        return Ok((values.map(|value| value as f32).collect(), 1.0));
    }
    if divergence != Divergence::Euclidean {
        let error =
            Error::usage("`model.divergence` is for 0/1 outcomes").at(format!("outcome `{}`", column.name));
        return Err(error.hint("set `model.divergence` to \"euclidean\" for other outcomes"));
    }
    notes.push(format!(
        "`{}` is not a 0/1 outcome: splits are by squared differences of arm means instead of a divergence",
        column.name
    ));
    Ok(rows.standard(column.values))
}

struct Problem<'a> {
    rows: &'a ForestRows,
    arm: &'a [u8],
    n_arms: usize,
    outcome: &'a [f32],
    params: &'a UpliftParams,
}

impl Problem<'_> {
    fn grow<const A: usize>(&self, run: Run<'_>, stage: &str) -> Result<Vec<Tree>> {
        let weight = self.rows.weight.as_deref();
        let (mut sums, mut mass) = ([0.0; A], [0.0; A]);
        for (row, arm) in self.arm.iter().enumerate() {
            let weight = weight.map_or(1.0, |weight| f64::from(weight[row]));
            sums[usize::from(*arm)] += weight * f64::from(self.outcome[row]);
            mass[usize::from(*arm)] += weight;
        }
        sums.iter_mut().zip(mass).filter(|(_, mass)| *mass > 0.0).for_each(|(sum, mass)| *sum /= mass);
        let splits = DivergenceSplits::<A> {
            outcome: self.outcome,
            arm: self.arm,
            n_arms: self.n_arms,
            weight,
            means: sums,
            params: self.params,
        };
        self.rows.grow(&splits, &self.params.tree, run, stage)
    }
}

/// Policies as places in a leaf: control is the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Arms {
    treatments: Treatments,
    place_of_arm: Vec<u32>,
    n_places: usize,
}

impl Arms {
    /// The place of each policy; one that was never run has the first, which no row meets.
    fn place_of_policy(&self, policies: &PolicySet) -> Result<Vec<u8>> {
        let mut places = vec![0; policies.len()];
        for (name, place) in self.treatments.arms.iter().zip(&self.place_of_arm) {
            places[policies.require(name)?] = *place as u8;
        }
        Ok(places)
    }
}

impl ForestKind for Arms {
    const NAME: &'static str = UpliftParams::NAME;
    type Reading = Differences;

    fn leaf_width(&self) -> usize {
        self.n_places
    }

    fn is_consistent(&self) -> bool {
        self.treatments.is_consistent()
            && self.place_of_arm.len() == self.treatments.arms.len()
            && self.n_places > 1
            && self.place_of_arm.iter().all(|place| (*place as usize) < self.n_places)
    }

    fn reading(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<(Differences, Vec<String>)> {
        let all: Vec<usize> = targets.iter().copied().chain([against]).collect();
        let chosen = self.treatments.choose(policies, &all)?;
        let place = |arm: &u32| self.place_of_arm[*arm as usize] as usize;
        let places: Vec<usize> = chosen.arm.iter().map(place).collect();
        let (targets, against) = (places[..targets.len()].to_vec(), places[targets.len()]);
        Ok((Differences { targets, against }, chosen.notes))
    }
}

/// Differences of arm means.
pub(super) struct Differences {
    targets: Vec<usize>,
    against: usize,
}

impl Differences {
    fn of(&self, target: usize, means: impl Fn(usize) -> f64) -> f64 {
        means(target) - means(self.against)
    }
}

impl Reading for Differences {
    /// The effects.
    type State = Vec<f64>;

    fn n_targets(&self) -> usize {
        self.targets.len()
    }

    fn solve(&self, mean: &[f64], _spread: bool) -> Vec<f64> {
        self.targets.iter().map(|target| self.of(*target, |place| mean[place])).collect()
    }

    fn effects(&self, state: &Vec<f64>, out: &mut [f64]) {
        out.copy_from_slice(state);
    }

    fn deviations(&self, state: &Vec<f64>, leaf: &[f32], out: &mut [f64]) {
        for ((out, target), effect) in out.iter_mut().zip(&self.targets).zip(state) {
            *out = self.of(*target, |place| f64::from(leaf[place])) - effect;
        }
    }
}
