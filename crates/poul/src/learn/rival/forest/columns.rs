//! Policies as columns of a treatment: one for each arm other than control (`id`), or the principal axes of mixtures
//! over atoms (`spec`). Columns have unit variance over the training rows.

use serde::{Deserialize, Serialize};

use super::local_moments::MOST_COLUMNS;
use crate::Result;
use crate::effect::ValidTrainingData;
use crate::learn::rival::treatments::{Tier, Treatments};
use crate::policy::PolicySet;

/// Rounds of subspace iteration for the principal axes.
const ROUNDS: usize = 40;
/// Axes with less than this share of the variance are left out.
const LEAST_SHARE: f64 = 1e-6;

/// How a policy becomes numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TreatmentColumns {
    pub(super) treatments: Treatments,
    /// The column of each arm, in the tier `id`; control has none.
    column_of_arm: Vec<Option<u32>>,
    /// In the tier `id` one number each column; in `spec` one axis each, as long as there are atoms.
    axes: Vec<Vec<f64>>,
}

impl TreatmentColumns {
    /// Columns of the policies that were run, and what the user should know.
    pub(super) fn new(
        data: &ValidTrainingData<'_>,
        tier: Tier,
        min_arm_rows: u64,
        most: usize,
    ) -> Result<(Self, Vec<String>)> {
        let treatments = Treatments::new(data, tier);
        let arms =
            treatments.arms.iter().map(|name| data.policies.require(name)).collect::<Result<Vec<_>>>()?;
        let mass: Vec<f64> = arms.iter().map(|policy| data.policy_mass()[*policy]).collect();
        let total: f64 = mass.iter().sum();
        let share: Vec<f64> = mass.iter().map(|mass| mass / total).collect();
        let mut notes = Vec::new();
        let (column_of_arm, axes) = match tier {
            Tier::Id => {
                let groups = ArmGroups::new(&treatments, min_arm_rows, most);
                notes.extend(groups.note());
                let mut of_column = vec![0.0; groups.n_groups];
                for (group, share) in groups.of_arm.iter().zip(&share) {
                    if let Some(group) = group {
                        of_column[*group as usize] += share;
                    }
                }
                let axes = of_column.iter().map(|share| vec![1.0 / (share * (1.0 - share)).sqrt()]).collect();
                (groups.of_arm, axes)
            }
            Tier::Spec => {
                let chosen = treatments.choose(data.policies, &arms)?;
                (Vec::new(), principal_axes(&chosen.vectors, &share, most))
            }
        };
        Ok((Self { treatments, column_of_arm, axes }, notes))
    }

    pub(super) fn n_columns(&self) -> usize {
        self.axes.len()
    }

    /// Whether the parts fit together, as they do unless a file was damaged.
    pub(super) fn is_consistent(&self) -> bool {
        let is_id = self.treatments.tier == Tier::Id;
        let length = if is_id { 1 } else { self.treatments.space.atoms.len() };
        let n_arms = if is_id { self.treatments.arms.len() } else { 0 };
        let known = |column: &Option<u32>| column.is_none_or(|column| (column as usize) < self.axes.len());
        self.treatments.is_consistent()
            && (1..=MOST_COLUMNS).contains(&self.axes.len())
            && self.axes.iter().all(|axis| axis.len() == length && axis.iter().all(|value| value.is_finite()))
            && self.column_of_arm.len() == n_arms
            && self.column_of_arm.iter().all(known)
    }

    /// The numbers of some policies, one vector each, and which policy stands in for which.
    pub(super) fn vectors(
        &self,
        policies: &PolicySet,
        chosen: &[usize],
    ) -> Result<(Vec<Vec<f64>>, Vec<String>)> {
        let found = self.treatments.choose(policies, chosen)?;
        let vectors = match self.treatments.tier {
            Tier::Id => {
                let vector = |arm: &u32| {
                    let mut vector = vec![0.0; self.axes.len()];
                    if let Some(column) = self.column_of_arm[*arm as usize] {
                        vector[column as usize] = self.axes[column as usize][0];
                    }
                    vector
                };
                found.arm.iter().map(vector).collect()
            }
            Tier::Spec => {
                let along = |direction: &[f32], axis: &[f64]| -> f64 {
                    direction.iter().zip(axis).map(|(value, axis)| f64::from(*value) * axis).sum()
                };
                let vector =
                    |direction: &[f32]| self.axes.iter().map(|axis| along(direction, axis)).collect();
                found.vectors.chunks(self.treatments.width()).map(vector).collect()
            }
        };
        Ok((vectors, found.notes))
    }
}

/// Arms other than control, the small ones taken together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArmGroups {
    /// The group of each arm; none for control.
    pub(super) of_arm: Vec<Option<u32>>,
    pub(super) n_groups: usize,
    n_pooled: usize,
}

impl ArmGroups {
    /// At most `most` groups: the largest arms have one each; those with few rows, and those for whom there is no room,
    /// share the last.
    pub(super) fn new(treatments: &Treatments, min_arm_rows: u64, most: usize) -> Self {
        let rows = &treatments.arm_rows;
        let mut order: Vec<usize> = (0..rows.len()).filter(|arm| *arm != treatments.control).collect();
        order.sort_by_key(|arm| (std::cmp::Reverse(rows[*arm]), *arm));
        let n_large = order.iter().filter(|arm| rows[**arm] >= min_arm_rows).count();
        let n_own = match order.len() - n_large {
            0 | 1 if order.len() <= most => order.len(),
            _ => n_large.min(most - 1),
        };
        let n_pooled = order.len() - n_own;
        let mut of_arm = vec![None; rows.len()];
        order.iter().enumerate().for_each(|(place, arm)| of_arm[*arm] = Some(place.min(n_own) as u32));
        Self { of_arm, n_groups: n_own + usize::from(n_pooled > 0), n_pooled }
    }

    pub(super) fn note(&self) -> Option<String> {
        (self.n_pooled > 1).then(|| {
            format!(
                "{} policies with few rows are taken together (`min_arm_rows`, `columns`): they have one effect",
                self.n_pooled
            )
        })
    }
}

/// The directions in which policies differ most, weighted by share, scaled to unit variance: by subspace iteration
/// from the policies with the largest shares.
fn principal_axes(directions: &[f32], share: &[f64], most: usize) -> Vec<Vec<f64>> {
    let n_atoms = directions.len() / share.len();
    // Rows of √share · (α_t − ᾱ), whose products with themselves are the covariance.
    let rows: Vec<Vec<f64>> = directions
        .chunks(n_atoms)
        .zip(share)
        .map(|(direction, share)| direction.iter().map(|value| f64::from(*value) * share.sqrt()).collect())
        .collect();
    let total: f64 = rows.iter().flatten().map(|value| value * value).sum();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| share[*b].total_cmp(&share[*a]).then(a.cmp(b)));
    let mut axes: Vec<Vec<f64>> = order.iter().map(|row| rows[*row].clone()).collect();
    orthonormalise(&mut axes, most, total * 1e-12);
    for _ in 0..ROUNDS {
        for axis in &mut axes {
            *axis = covariance_times(&rows, axis);
        }
        // The longest first: the order of the variances.
        axes.sort_by(|a, b| dot(b, b).total_cmp(&dot(a, a)));
        orthonormalise(&mut axes, most, 0.0);
    }
    let variance = |axis: &[f64]| -> f64 { rows.iter().map(|row| dot(row, axis).powi(2)).sum() };
    axes.retain(|axis| variance(axis) > LEAST_SHARE * total);
    for axis in &mut axes {
        let deviation = variance(axis).sqrt();
        axis.iter_mut().for_each(|value| *value /= deviation);
    }
    axes
}

fn covariance_times(rows: &[Vec<f64>], axis: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; axis.len()];
    for row in rows {
        let along = dot(row, axis);
        product.iter_mut().zip(row).for_each(|(product, value)| *product += along * value);
    }
    product
}

/// Gram–Schmidt, twice for accuracy; keeps the first `most` vectors that have something new to say.
fn orthonormalise(vectors: &mut Vec<Vec<f64>>, most: usize, least: f64) {
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for mut vector in vectors.drain(..) {
        let before = dot(&vector, &vector);
        for _ in 0..2 {
            for other in &kept {
                let along = dot(&vector, other);
                vector.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
            }
        }
        let left = dot(&vector, &vector);
        if left > least.max(before * 1e-20) && kept.len() < most {
            let length = left.sqrt();
            vector.iter_mut().for_each(|value| *value /= length);
            kept.push(vector);
        }
    }
    *vectors = kept;
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::poul::TreatmentSpace;

    fn treatments(arm_rows: &[u64], control: usize) -> Treatments {
        let arms = (0..arm_rows.len()).map(|arm| format!("p{arm}")).collect();
        let mut builder = PolicySet::builder();
        builder.add("p0", "s", "a", 1.0).add("p1", "s", "b", 1.0);
        let space = TreatmentSpace::new(&builder.build().unwrap(), &[0.5, 0.5]);
        Treatments { tier: Tier::Id, arms, arm_rows: arm_rows.to_vec(), control, doses: Vec::new(), space }
    }

    #[test]
    fn small_arms_share_a_group_and_control_has_none() {
        let groups = |rows: &[u64], control, most| {
            let groups = ArmGroups::new(&treatments(rows, control), 100, most);
            (groups.of_arm.clone(), groups.n_groups, groups.note().is_some())
        };
        assert_eq!(
            groups(&[10, 500, 20, 600, 30], 2, 16),
            (vec![Some(2), Some(1), None, Some(0), Some(2)], 3, true)
        );
        assert_eq!(groups(&[500, 20, 600], 0, 16), (vec![None, Some(1), Some(0)], 2, false));
        assert_eq!(groups(&[500, 400, 600, 300], 0, 2), (vec![None, Some(1), Some(0), Some(1)], 2, true));
        assert_eq!(groups(&[500, 400], 0, 1), (vec![None, Some(0)], 1, false));
        assert_eq!(groups(&[500, 400, 300], 0, 1), (vec![None, Some(0), Some(0)], 1, true));
    }

    #[test]
    fn axes_span_what_policies_differ_by() {
        // Three policies in a plane of four atoms.
        let directions = [2.0, -2.0, 0.0, 0.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0_f32];
        let share = [1.0 / 3.0; 3];
        let axes = principal_axes(&directions, &share, 16);
        assert_eq!(axes.len(), 2);
        let along = |axis: &[f64]| -> Vec<f64> {
            let row = |row: &[f32]| row.iter().zip(axis).map(|(value, axis)| f64::from(*value) * axis).sum();
            directions.chunks(4).map(row).collect()
        };
        let [first, second] = [along(&axes[0]), along(&axes[1])];
        for along in [&first, &second] {
            assert!((dot(along, along) / 3.0 - 1.0).abs() < 1e-9, "{along:?}");
        }
        assert!(dot(&first, &second).abs() < 1e-6, "{first:?} {second:?}");
        assert_eq!(principal_axes(&directions, &share, 1).len(), 1);
    }
}
