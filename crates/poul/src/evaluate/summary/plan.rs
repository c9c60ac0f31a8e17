//! What follows from the outline of all rows: where effects are cut into buckets, around what sums are taken, and the shares and
//! means that scores are made with. The same for every part.

use super::outline::{Means, Outline};
use super::part::Shape;
use crate::{Error, Result};

/// Buckets of rows with about the same effect.
const MOST_BUCKETS: usize = 4096;
/// Fewest rows of an arm that say anything of its mean effect.
const FEWEST_ROWS: u64 = 30;

/// How the second pass is done.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) outline: Outline,
    /// By policy: π as the scores take it.
    pub(super) shares: Vec<f64>,
    /// By outcome.
    pub(super) outcomes: Vec<OutcomePlan>,
    /// By outcome, then by target.
    pub(super) comparisons: Vec<ComparisonPlan>,
    /// Policies with rows, but without predicted effects.
    pub(super) unpredicted: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct OutcomePlan {
    /// The means of y and of y − m̂ over all rows: sums are taken around them.
    pub(super) centre: [f64; 2],
    /// By policy: what its rows show against those compared with, where it has no predicted effects.
    pub(super) constant: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(super) struct ComparisonPlan {
    /// The lowest key of each bucket, ascending.
    pub(super) cuts: Vec<u32>,
    /// An effect in the middle.
    pub(super) middle: f64,
    /// By arm: rows that count, weight, mean of y, mean of y − m̂.
    pub(super) arms: [ArmPlan; 2],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ArmPlan {
    pub(super) n_rows: u64,
    pub(super) n_counted: u64,
    pub(super) mass: f64,
    pub(super) mean: f64,
    pub(super) residual: f64,
}

impl Plan {
    pub(crate) fn new(outline: Outline, shape: &Shape<'_>) -> Result<Self> {
        let (n_policies, n_outcomes) = (shape.policies.len(), shape.outcomes.len());
        let fits = outline.arms.len() == n_policies
            && outline.outcomes.len() == n_outcomes * n_policies
            && outline.effects.len() == n_outcomes * shape.targets.len();
        if !fits {
            return Err(Error::other("an outline of another question"));
        }
        // Shares as π is taken everywhere: in single precision.
        let single: Vec<f64> = outline.arms.iter().map(|arm| arm.single_mass.value()).collect();
        let total: f64 = single.iter().sum();
        let share = |mass: &f64| if total > 0.0 { f64::from((mass / total) as f32) } else { 0.0 };
        let shares = single.iter().map(share).collect();
        let is_unpredicted = |policy: &usize| {
            !shape.targets.contains(policy) && *policy != shape.against && outline.arms[*policy].n_counted > 0
        };
        let unpredicted: Vec<usize> = (0..n_policies).filter(is_unpredicted).collect();
        let of_outcome = |means: &[Means]| {
            let mass: f64 = outline.arms.iter().map(|arm| arm.mass.value()).sum();
            let mean = |sum: f64| if mass > 0.0 { sum / mass } else { 0.0 };
            let residual = |policy: usize| means[policy].residual.value() / outline.arms[policy].mass.value();
            let mut constant = vec![0.0; n_policies];
            for policy in &unpredicted {
                if outline.arms[*policy].n_counted >= FEWEST_ROWS {
                    constant[*policy] = residual(*policy) - residual(shape.against);
                }
            }
            let centre = [
                mean(means.iter().map(|own| own.outcome.value()).sum()),
                mean(means.iter().map(|own| own.residual.value()).sum()),
            ];
            OutcomePlan { centre, constant }
        };
        let outcomes = outline.outcomes.chunks(n_policies.max(1)).map(of_outcome).collect();
        let arm = |outcome: usize, policy: usize| {
            let (arm, means) = (&outline.arms[policy], &outline.outcomes[outcome * n_policies + policy]);
            let mass = arm.mass.value();
            let mean = |sum: f64| if mass > 0.0 { sum / mass } else { 0.0 };
            ArmPlan {
                n_rows: arm.n_rows,
                n_counted: arm.n_counted,
                mass,
                mean: mean(means.outcome.value()),
                residual: mean(means.residual.value()),
            }
        };
        let of_comparison =
            |((outcome, target), sketch): ((usize, usize), &super::sketch::Sketch)| ComparisonPlan {
                cuts: sketch.cut(MOST_BUCKETS),
                middle: sketch.middle(),
                arms: [arm(outcome, shape.against), arm(outcome, target)],
            };
        let comparisons = shape.comparisons().zip(&outline.effects).map(of_comparison).collect();
        Ok(Self { shares, outcomes, comparisons, unpredicted, outline })
    }
}

impl ComparisonPlan {
    /// The share of the treated among both arms.
    pub(super) fn share(&self) -> f64 {
        self.arms[1].mass / (self.arms[0].mass + self.arms[1].mass)
    }

    /// What turns weights into counts: those that sum to less than the number of rows are scaled up to it.
    pub(super) fn scale(&self) -> f64 {
        let rows = self.arms.iter().map(|arm| arm.n_counted).sum::<u64>() as f64;
        (rows / self.arms.iter().map(|arm| arm.mass).sum::<f64>()).max(1.0)
    }
}
