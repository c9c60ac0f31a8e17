//! Policies as factors: t_j = Π_t(a|s) − Π_control(a|s) for every seen atom (s, a) but one of each context.
//!
//! The atom left out is the one that control gives most weight. Where control takes one action in each context and policies
//! switch some contexts to another, t is 0 under control and 1 where the context is switched, as published; policies that
//! draw actions at random have values between. All are divided by the root mean square length of t over training rows, so
//! that θ has the same scale whatever the number of factors.

use serde::{Deserialize, Serialize};

use crate::learn::rival::treatments::{Chosen, Treatments};
use crate::policy::PolicySet;
use crate::{Error, Result};

/// One factor: an entry of a policy's vector, less that of control, times a scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::learn::rival) struct Factor {
    /// The place in the policy's vector.
    pub(super) entry: usize,
    /// The entry of control.
    pub(super) centre: f32,
    pub(super) scale: f32,
}

impl Factor {
    pub(super) fn is_sound(&self, width: usize) -> bool {
        self.entry < width && self.centre.is_finite() && self.scale.is_finite()
    }

    fn of(&self, vector: &[f32]) -> f32 {
        (vector[self.entry] - self.centre) * self.scale
    }
}

/// The factors of the arms of an experiment.
pub(super) fn factors(treatments: &Treatments, policies: &PolicySet) -> Result<Vec<Factor>> {
    let arms = treatments.arms.iter().map(|name| policies.require(name)).collect::<Result<Vec<_>>>()?;
    let chosen = treatments.choose(policies, &arms)?;
    let (space, width) = (&treatments.space, treatments.width());
    let vector = |arm: usize| &chosen.vectors[arm * width..][..width];
    let control = vector(treatments.control);
    let unit = (width as f64).sqrt() / space.spread;
    // Masses of a context sum to its weight under every policy, so they do under the mean one.
    let mut weight = vec![0.0; space.contexts.len()];
    for ((context, _), mean) in space.atoms.iter().zip(&space.mean) {
        weight[*context as usize] += mean;
    }
    let mut reference: Vec<Option<(f64, usize)>> = vec![None; space.contexts.len()];
    for (entry, ((context, _), mean)) in space.atoms.iter().zip(&space.mean).enumerate() {
        let mass = f64::from(control[entry]) / unit + mean;
        let own = &mut reference[*context as usize];
        if own.is_none_or(|(most, _)| mass > most + 1e-9) {
            *own = Some((mass, entry));
        }
    }
    let is_reference =
        |entry: usize, context: u32| reference[context as usize].map(|own| own.1) == Some(entry);
    let entries = space.atoms.iter().enumerate();
    let mut factors: Vec<Factor> = entries
        .filter(|(entry, (context, _))| !is_reference(*entry, *context))
        .map(|(entry, (context, _))| {
            let scale = (1.0 / (unit * weight[*context as usize])) as f32;
            Factor { entry, centre: control[entry], scale }
        })
        .collect();
    if factors.is_empty() {
        return Err(Error::input("every policy that was run takes the same actions")
            .hint("an effect needs policies that differ; look at them with `poul policy show`"));
    }
    let rows: f64 = treatments.arm_rows.iter().map(|rows| *rows as f64).sum();
    let square = |arm: usize| factors.iter().map(|own| f64::from(own.of(vector(arm))).powi(2)).sum::<f64>();
    let squares: f64 = (0..arms.len()).map(|arm| treatments.arm_rows[arm] as f64 * square(arm)).sum();
    let length = (squares / rows).sqrt();
    if length > 0.0 {
        factors.iter_mut().for_each(|factor| factor.scale = (f64::from(factor.scale) / length) as f32);
    }
    Ok(factors)
}

/// The factors of some policies.
pub(super) fn of_chosen(factors: &[Factor], chosen: &Chosen) -> Vec<Vec<f32>> {
    let width = chosen.vectors.len() / chosen.arm.len().max(1);
    let of = |vector: &[f32]| factors.iter().map(|factor| factor.of(vector)).collect();
    chosen.vectors.chunks(width.max(1)).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{OutcomeColumn, TrainingData};
    use crate::learn::rival::treatments::Tier;
    use crate::net::DenseRows;

    #[test]
    fn a_factorial_policy_is_zeros_and_ones_up_to_scale() {
        let mut builder = PolicySet::builder();
        for (policy, a, b) in [("a", "none", "none"), ("b", "up", "none"), ("c", "up", "up")] {
            builder.add(policy, "x", a, 1.0).add(policy, "y", b, 1.0);
        }
        builder.add("d", "x", "up", 0.25).add("d", "x", "none", 0.75).add("d", "y", "none", 1.0);
        builder.weight("x", 0.2).weight("y", 0.8);
        let policies = builder.build().unwrap();
        let x = [0.0; 4];
        let x = DenseRows::new(&x, 1).unwrap();
        let outcomes = vec![OutcomeColumn { name: "y", values: &[0.0, 1.0, 2.0, 3.0], prediction: None }];
        let policy = [0, 1, 2, 0];
        let data = TrainingData { control: Some(0), ..TrainingData::new(&x, &policies, &policy, outcomes) };
        let treatments = Treatments::new(&data.check().unwrap(), Tier::Spec);
        let factors = factors(&treatments, &policies).unwrap();
        let chosen = treatments.choose(&policies, &[0, 1, 2, 3]).unwrap();
        // The mean square length of 0, 1, √2 and 0 is 3/4.
        let scale = (4.0_f32 / 3.0).sqrt();
        let expected = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.25, 0.0]];
        for (found, expected) in of_chosen(&factors, &chosen).iter().zip(expected) {
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected * scale).abs() < 1e-5, "{found} {expected}");
            }
        }
    }
}
