//! Local centring: what outcome and treatment are expected to be given x, so that effects are learned from what is off
//! (Athey, Tibshirani and Wager 2019, sec. 6.1.1). Outcomes by out-of-bag regression forests; treatments by the design
//! where it is known and by a forest where it is not.

use super::local_moments::MOST_COLUMNS;
use super::params::CausalParams;
use super::regression::Regression;
use super::rows::ForestRows;
use crate::effect::ValidTrainingData;
use crate::nuisance::{FirstStage, Needs, Propensity, PropensityOrigin, PropensityParams};
use crate::{Result, Run};

/// What nuisances are fitted on.
pub(super) struct Centring<'a> {
    pub(super) data: &'a ValidTrainingData<'a>,
    pub(super) rows: &'a ForestRows,
    pub(super) params: &'a CausalParams,
    pub(super) run: Run<'a>,
}

impl Centring<'_> {
    /// An outcome less what x lets expect, in standard units; and the standard deviation.
    pub(super) fn outcome(&self, number: usize) -> Result<(Vec<f32>, f64)> {
        let column = &self.data.outcomes[number];
        if let Some(prediction) = column.prediction {
            let residual: Vec<f64> =
                column.values.iter().zip(prediction).map(|(value, predicted)| value - predicted).collect();
            let (_, deviation) = self.rows.standard(column.values);
            let kept = self.rows.kept.iter().map(|row| (residual[*row as usize] / deviation) as f32);
            return Ok((kept.collect(), deviation));
        }
        let (mut values, deviation) = self.rows.standard(column.values);
        let run = self.run.child("outcome model").index(number as u64);
        let stage = format!("Outcome forest: {}", column.name);
        let expected = self.expected(&values, 1, run, &stage)?;
        values.iter_mut().zip(expected).for_each(|(value, expected)| *value -= expected);
        Ok((values, deviation))
    }

    /// The treatment of each row less what is expected, given the vector of each policy, all as long.
    pub(super) fn treatment(&self, vectors: &[Vec<f64>]) -> Result<Vec<f32>> {
        let width = vectors[0].len();
        let of_row = |row: &u32| vectors[self.data.policy[*row as usize] as usize].iter();
        let mut values: Vec<f32> =
            self.rows.kept.iter().flat_map(of_row).map(|value| *value as f32).collect();
        if self.data.propensity_origin() == PropensityOrigin::Learned {
            let expected =
                self.expected(&values, width, self.run.child("propensity"), "Propensity forest")?;
            values.iter_mut().zip(expected).for_each(|(value, expected)| *value -= expected);
            return Ok(values);
        }
        let propensity = self.designed()?;
        let expectation = |row: usize| {
            let mut expected = [0.0_f64; MOST_COLUMNS];
            for (share, vector) in propensity.of_row(row, vectors.len()).iter().zip(vectors) {
                expected.iter_mut().zip(vector).for_each(|(sum, value)| *sum += f64::from(*share) * value);
            }
            expected
        };
        let of_all = matches!(propensity, Propensity::Shares(_)).then(|| expectation(0));
        for (row, values) in self.rows.kept.iter().zip(values.chunks_mut(width)) {
            let expected = of_all.unwrap_or_else(|| expectation(*row as usize));
            values.iter_mut().zip(expected).for_each(|(value, expected)| *value -= expected as f32);
        }
        Ok(values)
    }

    fn expected(&self, target: &[f32], width: usize, run: Run<'_>, stage: &str) -> Result<Vec<f32>> {
        let tree = &self.params.tree;
        let regression = Regression {
            bins: &self.rows.bins,
            units: &self.rows.units,
            target,
            width,
            weight: self.rows.weight.as_deref(),
            n_trees: self.params.n_nuisance_trees(),
            fraction: tree.sample_fraction,
            honesty: tree.honesty,
            limits: tree.limits(self.rows.bins.varying.len()),
            min_leaf: tree.min_node,
            imbalance: tree.imbalance,
        };
        regression.out_of_bag(run, stage)
    }

    /// π as the experiment was designed, or as the user says.
    fn designed(&self) -> Result<Propensity> {
        let params = PropensityParams::default().check()?;
        let needs = Needs { n_folds: 1, propensity: Some(&params), ..Needs::default() };
        let mut first = FirstStage::fit(&self.data.observed(), &needs, self.run)?;
        Ok(first.take_propensity()?.propensity)
    }
}
