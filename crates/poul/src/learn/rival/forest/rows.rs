//! The rows that forests are grown on: those that weigh something, by bin and by unit; and growing on them.

use super::bins::Bins;
use super::criterion::Criterion;
use super::grow::grow;
use super::kept::Groups;
use super::params::TreeParams;
use super::sampling::Units;
use crate::effect::ValidTrainingData;
use crate::tree::{Cuts, MOST_FEATURES, MOST_NODES, Tree};
use crate::{Error, Result, Run};

/// Rows of positive weight, numbered anew.
pub(super) struct ForestRows {
    /// Their numbers in the data.
    pub(super) kept: Vec<u32>,
    pub(super) cuts: Cuts,
    pub(super) bins: Bins,
    pub(super) units: Units,
    /// Weights, where there are any.
    pub(super) weight: Option<Vec<f32>>,
}

impl ForestRows {
    pub(super) fn new(data: &ValidTrainingData<'_>) -> Result<Self> {
        let n_features = data.x.n_cols();
        if n_features > MOST_FEATURES {
            let what = format!("{n_features} features are more than the {MOST_FEATURES} a forest can hold");
            return Err(Error::input(what).hint("leave some out with ‹exclude›"));
        }
        let counts = |row: &u32| data.weight.is_none_or(|weight| weight[*row as usize] > 0.0);
        let kept: Vec<u32> = (0..data.n_rows() as u32).filter(counts).collect();
        let units = Units::new(&kept, data.cluster);
        if units.n_units() < 4 {
            let what = format!("a forest cannot be grown on {} units", units.n_units());
            return Err(Error::input(what).hint("give more rows, or check the cluster column"));
        }
        let cuts = Cuts::learn(data.x, &kept);
        let bins = Bins::new(&cuts, data.x, &kept);
        let weight = data.weight.map(|weight| kept.iter().map(|row| weight[*row as usize] as f32).collect());
        Ok(Self { kept, cuts, bins, units, weight })
    }

    /// The values of the kept rows in standard units, and the standard deviation.
    pub(super) fn standard(&self, values: &[f64]) -> (Vec<f32>, f64) {
        let values: Vec<f64> = self.kept.iter().map(|row| values[*row as usize]).collect();
        let weight: Option<Vec<f64>> =
            self.weight.as_ref().map(|weight| weight.iter().map(|weight| f64::from(*weight)).collect());
        crate::learn::rival::fit::standard(&values, weight.as_deref())
    }

    /// Grows the trees of a forest.
    pub(super) fn grow<C: Criterion>(
        &self,
        criterion: &C,
        params: &TreeParams,
        run: Run<'_>,
        stage: &str,
    ) -> Result<Vec<Tree>> {
        let limits = params.limits(self.bins.varying.len());
        let (n_groups, group_trees) = (params.n_groups(), params.group_trees);
        let grown_on = (&self.bins, self.weight.as_deref());
        let groups = Groups::new((n_groups, group_trees), criterion, grown_on, run);
        run.progress.start(stage, "trees", Some((n_groups * group_trees) as u64));
        let group = |number: u64| {
            let seed = run.seed.index(number);
            let samples = self.units.draw(params.sampling(), seed.child("sample"));
            let trees = samples.into_iter().enumerate().map(|(tree, sample)| {
                let rng = seed.child("splits").index(tree as u64).rng();
                let tree = grow(&self.bins, criterion, sample, limits, rng);
                run.progress.advance(1);
                if tree.n_nodes() >= MOST_NODES {
                    let error = Error::input(format!("a tree has {} nodes", tree.n_nodes()));
                    return Err(error.hint("raise `model.min_child_rows` or set `model.max_depth`"));
                }
                Ok(tree)
            });
            Ok((trees.collect::<Result<Vec<Tree>>>()?, ()))
        };
        let grown = groups.grow(group, |_| ())?;
        run.progress.finish();
        Ok(grown.into_iter().flat_map(|(trees, ())| trees).collect())
    }
}
