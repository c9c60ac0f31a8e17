//! Fitted trees of all folds: predictions, and what a model file keeps.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::objective::Objective;
use crate::Result;
use crate::net::{RowSource, Tensor, Tensors, check_n_rows};
use crate::stored::damaged;
use crate::tree::{Cuts, MOST_FEATURES, Tree, TreeParts};

/// Rows that walk down the trees together.
const BLOCK_ROWS: usize = 512;

/// The trees that were fitted without the rows of one fold.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::nuisance) struct FoldTrees {
    pub(super) objective: Objective,
    /// What each output starts from.
    pub(super) base: Vec<f64>,
    /// The trees of each output, as many for all.
    pub(super) trees: Vec<Vec<Tree>>,
}

/// The trees of all folds, for one or several targets.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::nuisance) struct Boosted {
    pub(in crate::nuisance) cuts: Cuts,
    /// By fold and target.
    pub(in crate::nuisance) folds: Vec<Vec<FoldTrees>>,
}

/// Everything of [`Boosted`] but cuts and trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::nuisance) struct BoostedManifest {
    n_features: usize,
    folds: Vec<Vec<TreesManifest>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TreesManifest {
    objective: Objective,
    base: Vec<f64>,
    n_trees: usize,
}

impl FoldTrees {
    /// How many trees each output has.
    pub(in crate::nuisance) fn n_trees(&self) -> usize {
        self.trees.first().map_or(0, Vec::len)
    }

    fn n_outputs(&self) -> usize {
        self.base.len()
    }

    /// Outputs times `deviation` plus `mean`, for trees of a squared loss that were fitted in standard units.
    pub(in crate::nuisance) fn in_units(mut self, mean: f64, deviation: f64) -> Self {
        self.base.iter_mut().for_each(|base| *base = mean + deviation * *base);
        for value in self.trees.iter_mut().flatten().flat_map(|tree| &mut tree.leaves) {
            *value = (f64::from(*value) * deviation) as f32;
        }
        self
    }

    /// Means or probabilities of some rows, which are given by bin; row-major.
    fn predict(&self, bins: &[u8], n_features: usize, leaves: &mut [u32]) -> Vec<f32> {
        let n_outputs = self.n_outputs();
        let mut outputs = vec![0.0; leaves.len() * n_outputs];
        let mut sums = vec![0.0_f64; leaves.len()];
        for (output, (base, trees)) in self.base.iter().zip(&self.trees).enumerate() {
            sums.fill(*base);
            for tree in trees {
                tree.leaves_of(bins, n_features, leaves);
                let values = leaves.iter().map(|leaf| f64::from(tree.leaves[*leaf as usize]));
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            let column = outputs.iter_mut().skip(output).step_by(n_outputs);
            column.zip(&sums).for_each(|(out, sum)| *out = *sum as f32);
        }
        outputs.chunks_exact_mut(n_outputs).for_each(|row| self.objective.settle(row));
        outputs
    }
}

impl Boosted {
    /// The mean of some folds' predictions for every row: the outputs of all targets side by side.
    pub(in crate::nuisance) fn predict(&self, folds: &[usize], x: &dyn RowSource) -> Result<Vec<f32>> {
        let (n_rows, n_features) = (x.n_rows(), self.cuts.n_features());
        check_n_rows(x)?;
        let width = self.width();
        let mut mean = vec![0.0; n_rows * width];
        let share = 1.0 / folds.len().max(1) as f32;
        mean.par_chunks_mut(BLOCK_ROWS * width.max(1)).enumerate().for_each(|(block, mean)| {
            let first = block * BLOCK_ROWS;
            let rows: Vec<u32> = (first as u32..(first + BLOCK_ROWS).min(n_rows) as u32).collect();
            let mut values = vec![0.0; rows.len() * n_features];
            x.copy_rows(&rows, &mut values);
            let mut bins = vec![0; values.len()];
            for (row, out) in values.chunks_exact(n_features).zip(bins.chunks_exact_mut(n_features)) {
                self.cuts.bin_row(row, out);
            }
            let mut leaves = vec![0; rows.len()];
            for fold in folds {
                let mut first = 0;
                for target in &self.folds[*fold] {
                    let outputs = target.predict(&bins, n_features, &mut leaves);
                    let n_outputs = target.n_outputs();
                    for (mean, outputs) in mean.chunks_exact_mut(width).zip(outputs.chunks_exact(n_outputs)) {
                        let own = mean[first..][..n_outputs].iter_mut();
                        own.zip(outputs).for_each(|(mean, value)| *mean += share * value);
                    }
                    first += n_outputs;
                }
            }
        });
        match x.failure() {
            Some(error) => Err(error),
            None => Ok(mean),
        }
    }

    /// Outputs of all targets.
    fn width(&self) -> usize {
        self.folds.first().map_or(0, |fold| fold.iter().map(FoldTrees::n_outputs).sum())
    }

    pub(in crate::nuisance) fn manifest(&self) -> BoostedManifest {
        let target = |own: &FoldTrees| TreesManifest {
            objective: own.objective,
            base: own.base.clone(),
            n_trees: own.n_trees(),
        };
        let folds = self.folds.iter().map(|fold| fold.iter().map(target).collect()).collect();
        BoostedManifest { n_features: self.cuts.n_features(), folds }
    }

    /// Cuts and trees, named `<prefix>.cuts` and `<prefix>.<fold>.<target>.<part>`.
    pub(in crate::nuisance) fn tensors(&self, prefix: &str) -> Vec<Tensor<'static>> {
        let (cuts, lengths) = self.cuts.parts();
        let mut tensors = vec![
            column(format!("{prefix}.cuts"), cuts),
            column(format!("{prefix}.cuts_of_feature"), lengths),
        ];
        for (fold, targets) in self.folds.iter().enumerate() {
            for (target, own) in targets.iter().enumerate() {
                let TreeParts { nodes_of_tree, split, right, leaf } = TreeParts::new(&own.trees.concat());
                let named =
                    [("nodes_of_tree", nodes_of_tree), ("split", split), ("right", right), ("leaf", leaf)];
                let of = |(part, values)| column(format!("{prefix}.{fold}.{target}.{part}"), values);
                tensors.extend(named.map(of));
            }
        }
        tensors
    }

    /// What [`manifest`](Self::manifest) and [`tensors`](Self::tensors) came from; `n_outputs` says how many outputs each
    /// target has.
    pub(in crate::nuisance) fn from_parts(
        manifest: &BoostedManifest,
        n_outputs: &[usize],
        prefix: &str,
        tensors: &mut Tensors,
    ) -> Result<Self> {
        let wrong =
            |what: &str| damaged(format!("{what} of the boosted trees `{prefix}` do not fit together"));
        let mut take = |part: &str| tensors.take_column(&format!("{prefix}.{part}"));
        let n_features = manifest.n_features;
        let cuts =
            Cuts::from_parts(&take("cuts")?, &take("cuts_of_feature")?).ok_or_else(|| wrong("the bins"))?;
        if cuts.n_features() != n_features
            || !(1..=MOST_FEATURES).contains(&n_features)
            || manifest.folds.is_empty()
        {
            return Err(wrong("the parts"));
        }
        let mut folds = Vec::with_capacity(manifest.folds.len());
        for (fold, targets) in manifest.folds.iter().enumerate() {
            if targets.len() != n_outputs.len() {
                return Err(wrong("the targets"));
            }
            let mut own = Vec::with_capacity(targets.len());
            for (target, (part, n_outputs)) in targets.iter().zip(n_outputs).enumerate() {
                let mut part_of = |name: &str| take(&format!("{fold}.{target}.{name}"));
                let parts = TreeParts {
                    nodes_of_tree: part_of("nodes_of_tree")?,
                    split: part_of("split")?,
                    right: part_of("right")?,
                    leaf: part_of("leaf")?,
                };
                let is_whole = part.base.len() == *n_outputs
                    && part.objective.n_outputs() == *n_outputs
                    && part.base.iter().all(|base| base.is_finite())
                    && Some(parts.nodes_of_tree.len()) == part.n_trees.checked_mul(*n_outputs);
                let mut trees =
                    parts.trees(n_features, 1).filter(|_| is_whole).ok_or_else(|| wrong("the trees"))?;
                let of_output = |_| trees.drain(..part.n_trees).collect();
                let trees = (0..*n_outputs).map(of_output).collect();
                own.push(FoldTrees { objective: part.objective, base: part.base.clone(), trees });
            }
            folds.push(own);
        }
        Ok(Self { cuts, folds })
    }
}

fn column(name: String, values: Vec<f32>) -> Tensor<'static> {
    Tensor::new(name, &[values.len(), 1], values)
}
