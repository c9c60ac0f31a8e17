//! How a rival sees a policy: as a category (`id`) or by its mixture over atoms (`spec`).

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::effect::ValidTrainingData;
use crate::learn::poul::TreatmentSpace;
use crate::net::{Tape, Var};
use crate::policy::PolicySet;
use crate::stored::damaged;

/// What of a policy a rival sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Tier {
    /// Its name alone: a policy that was never run is taken for the nearest that was.
    Id,
    /// The vector α_t over atoms: any policy over atoms that were seen has one.
    #[default]
    Spec,
}

/// The treatments of the training data, as a model file keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Treatments {
    pub(super) tier: Tier,
    /// The policies that were run, in order of names.
    pub(super) arms: Vec<String>,
    /// The rows of each.
    pub(super) arm_rows: Vec<u64>,
    /// The arm that the others are compared with: control, or the one with most rows where none is named.
    pub(super) control: usize,
    /// d_Π of each arm from control; none in older models.
    #[serde(default)]
    pub(super) doses: Vec<f64>,
    /// The atoms that were seen.
    pub(super) space: TreatmentSpace,
}

/// Some policies as a rival sees them.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    /// Of each policy, its arm, or that of the nearest policy that was run.
    pub(super) arm: Vec<u32>,
    /// Whether each policy is control, or control stands in for it.
    pub(super) is_control: Vec<bool>,
    /// d_Π of each policy from control.
    pub(super) dose: Vec<f32>,
    /// Policies × [`Treatments::width`], row after row.
    pub(super) vectors: Vec<f32>,
    /// Which policy stands in for which.
    pub(super) notes: Vec<String>,
}

impl Treatments {
    /// The policies with rows of positive weight.
    pub(super) fn new(data: &ValidTrainingData<'_>, tier: Tier) -> Self {
        let mass = data.policy_mass();
        let total: f64 = mass.iter().sum();
        let shares: Vec<f64> = mass.iter().map(|mass| mass / total).collect();
        let run: Vec<usize> = (0..mass.len()).filter(|policy| mass[*policy] > 0.0).collect();
        let arms = run.iter().map(|policy| data.policies.name(*policy).to_owned()).collect();
        let arm_rows: Vec<u64> = run.iter().map(|policy| data.policy_rows()[*policy]).collect();
        // The first of the largest.
        let largest = (0..arm_rows.len()).rev().max_by_key(|arm| arm_rows[*arm]).unwrap_or(0);
        let control = run.iter().position(|policy| Some(*policy) == data.control).unwrap_or(largest);
        let doses = run.iter().map(|policy| data.policies.distance(*policy, run[control])).collect();
        Self { tier, arms, arm_rows, control, doses, space: TreatmentSpace::new(data.policies, &shares) }
    }

    /// The length of a policy's vector.
    pub(super) fn width(&self) -> usize {
        match self.tier {
            Tier::Id => self.arms.len(),
            Tier::Spec => self.space.atoms.len(),
        }
    }

    /// Whether the parts fit together, as they do unless a file was damaged.
    pub(super) fn is_consistent(&self) -> bool {
        let n_arms = self.arms.len();
        n_arms > 1
            && self.arms.is_sorted()
            && self.arm_rows.len() == n_arms
            && self.arm_rows.iter().try_fold(0_u64, |all, rows| all.checked_add(*rows)).is_some()
            && self.control < n_arms
            && (self.doses.is_empty() || self.doses.len() == n_arms)
            && self.space.is_consistent()
    }

    /// Policies of a set that holds those of the training data, as arms and as vectors.
    pub(super) fn choose(&self, policies: &PolicySet, chosen: &[usize]) -> Result<Chosen> {
        let mut run = Vec::with_capacity(self.arms.len());
        for name in &self.arms {
            run.push(policies.require(name).map_err(|error| error.at("a policy of the training data"))?);
        }
        let mut result = Chosen::default();
        for policy in chosen {
            let arm = match run.iter().position(|arm| arm == policy) {
                Some(arm) => arm,
                None => self.stand_in(policies, *policy, &run, &mut result.notes)?,
            };
            result.arm.push(arm as u32);
            let is_itself = run[arm] == *policy;
            result.is_control.push(arm == self.control && (is_itself || self.tier == Tier::Id));
            result.dose.push(policies.distance(*policy, run[self.control]) as f32);
            match self.tier {
                Tier::Id => result.vectors.extend((0..run.len()).map(|other| f32::from(other == arm))),
                Tier::Spec => result.vectors.extend(self.direction(policies, *policy)),
            }
        }
        Ok(result)
    }

    fn stand_in(
        &self,
        policies: &PolicySet,
        policy: usize,
        run: &[usize],
        notes: &mut Vec<String>,
    ) -> Result<usize> {
        let nearest = policies.nearest_among(policy, run.iter().copied(), 1);
        let Some((nearest, distance)) = nearest.first() else {
            return Err(damaged("the model knows no policies"));
        };
        if self.tier == Tier::Id {
            let (name, other) = (policies.name(policy), policies.name(*nearest));
            notes.push(format!(
                "policy `{name}` was never run: `{other}` stands in for it, at distance {distance:.3}"
            ));
        }
        Ok(run.iter().position(|arm| arm == nearest).unwrap_or(0))
    }

    /// (α_t − ᾱ)·√atoms / κ over the seen atoms, so that an entry has unit variance on average, as features have;
    /// atoms that were never seen count as zero.
    fn direction(&self, policies: &PolicySet, policy: usize) -> Vec<f32> {
        let space = &self.space;
        let mut direction: Vec<f64> = space.mean.iter().map(|mean| -mean).collect();
        let mixture = policies.mixture(policy);
        for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
            let atom = policies.atoms()[*atom as usize];
            let context = &policies.contexts()[atom.context as usize];
            let action = &policies.actions()[atom.action as usize];
            if let Some(place) = space.place(context, action) {
                direction[place] += mass;
            }
        }
        let scale = (direction.len() as f64).sqrt() / space.spread;
        direction.iter().map(|value| (value * scale) as f32).collect()
    }
}

impl Chosen {
    /// The policies' vectors as a matrix, a row each.
    pub(super) fn vectors(&self, tape: &mut Tape<'_>) -> Var {
        let n_treatments = self.arm.len();
        tape.constant(n_treatments, self.vectors.len() / n_treatments.max(1), &self.vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_seen_by_name_or_by_mixture() {
        let mut builder = PolicySet::builder();
        for (policy, a, b) in [("a", "none", "none"), ("b", "up", "up"), ("c", "up", "none")] {
            builder.add(policy, "x", a, 1.0).add(policy, "y", b, 1.0);
        }
        builder.weight("x", 0.25).weight("y", 0.75);
        let policies = builder.build().unwrap();
        let space = TreatmentSpace::new(&policies, &[0.5, 0.5, 0.0]);
        let arms = vec!["a".to_owned(), "b".to_owned()];
        let (arm_rows, doses) = (vec![5, 5], vec![0.0, 2.0]);
        let spec = Treatments { tier: Tier::Spec, arms, arm_rows, control: 0, doses, space };
        let id = Treatments { tier: Tier::Id, ..spec.clone() };
        let chosen = id.choose(&policies, &[2, 1, 0]).unwrap();
        assert_eq!(chosen.arm, [0, 1, 0]);
        assert_eq!(chosen.is_control, [true, false, true]);
        assert_eq!(chosen.dose, [0.5, 2.0, 0.0]);
        assert_eq!(chosen.vectors, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
        assert_eq!(chosen.notes.len(), 1);
        assert!(chosen.notes[0].contains("`a` stands in"), "{:?}", chosen.notes);
        let chosen = spec.choose(&policies, &[0, 1, 2]).unwrap();
        assert!(chosen.notes.is_empty());
        assert_eq!(chosen.is_control, [true, false, false]);
        let rows: Vec<&[f32]> = chosen.vectors.chunks(spec.width()).collect();
        // The two that were run lie on either side of their mean; the third shares the context `y` with `a`.
        assert!(rows[0].iter().zip(rows[1]).all(|(a, b)| (a + b).abs() < 1e-6));
        assert!(rows[2].iter().zip(rows[0]).filter(|(c, a)| (*c - *a).abs() < 1e-6).count() == 2);
    }
}
