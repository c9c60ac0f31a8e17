//! Tree after tree, until held-out rows gain no more.

use rayon::prelude::*;

use super::grow::{Grower, Grown};
use super::model::FoldTrees;
use super::objective::Objective;
use super::params::BoostedParams;
use super::quantised::Quantised;
use super::tiles::Tiles;
use crate::tree::Tree;
use crate::{Error, Progress, Result};

/// Rows that one thread goes through at a time. Part of the result, as sums are taken by block.
const BLOCK_ROWS: usize = 1 << 14;
/// Gradients below this are what rounding leaves of a fit without error, in units of the outcome's deviation.
const LEAST_GRADIENT: f32 = 1e-6;
/// How near to 0 and 1 the share may be that boosting starts from.
const LEAST_SHARE: f64 = 1e-6;

/// Rows to fit on, then rows to stop by.
#[derive(Clone, Copy)]
pub(in crate::nuisance) struct Rows<'a> {
    pub(in crate::nuisance) tiles: &'a Tiles,
    /// How many are fitted on.
    pub(in crate::nuisance) n_training: usize,
    /// A row of weight 2 is two rows.
    pub(in crate::nuisance) weight: Option<&'a [f32]>,
}

/// What is fitted, of all rows.
#[derive(Clone, Copy, Debug)]
pub(in crate::nuisance) enum Target<'a> {
    /// A number, by squared error; of unit variance, about.
    Values(&'a [f32]),
    /// A probability, by likelihood.
    Shares(&'a [f32]),
    /// One of so many classes, by likelihood.
    Classes(&'a [f32], usize),
}

impl<'a> Target<'a> {
    pub(super) fn values(self) -> &'a [f32] {
        match self {
            Self::Values(values) | Self::Shares(values) | Self::Classes(values, _) => values,
        }
    }

    pub(super) fn objective(self) -> Objective {
        match self {
            Self::Values(_) => Objective::Squared,
            Self::Shares(_) => Objective::Logistic,
            Self::Classes(_, n_classes) => Objective::Softmax(n_classes),
        }
    }
}

/// Fits trees; at least one row that is fitted on has weight.
pub(super) fn boost(
    rows: &Rows<'_>,
    target: Target<'_>,
    params: &BoostedParams,
    stage: &str,
    progress: &dyn Progress,
) -> Result<FoldTrees> {
    let mut boosting = Boosting::new(rows, target);
    let has_held = (rows.n_training..rows.tiles.n_rows()).any(|row| boosting.weight(row) > 0.0);
    let most = if params.patience > 0 && !has_held { params.trees_without_held_rows() } else { params.trees };
    let mut grower = Grower::new(rows.tiles, rows.n_training, params, boosting.objective.most_curvature());
    let mut trees: Vec<Vec<Tree>> = vec![Vec::new(); boosting.base.len()];
    let mut best = (0, boosting.held_loss());
    progress.start(stage, "trees", Some(most as u64));
    for round in 1..=most {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        if !boosting.round(&mut grower, params, &mut trees) {
            break;
        }
        progress.advance(1);
        if params.patience > 0 && has_held {
            let loss = boosting.held_loss();
            if loss < best.1 {
                best = (round, loss);
                progress.remark(&format!("held-out loss {loss:.5}"));
            } else if round >= best.0 + params.patience {
                break;
            }
        } else {
            best.0 = round;
        }
    }
    progress.finish();
    trees.iter_mut().for_each(|trees| trees.truncate(best.0));
    Ok(FoldTrees {
        objective: boosting.objective,
        base: boosting.base.iter().map(|base| f64::from(*base)).collect(),
        trees,
    })
}

struct Boosting<'a> {
    rows: &'a Rows<'a>,
    target: &'a [f32],
    objective: Objective,
    base: Vec<f32>,
    /// Of every row, one number for each output.
    outputs: Vec<f32>,
    /// What the loss is taken of.
    settled: Vec<f32>,
    derivatives: Vec<[f32; 2]>,
    packed: Vec<i64>,
}

impl<'a> Boosting<'a> {
    fn new(rows: &'a Rows<'a>, target: Target<'a>) -> Self {
        let (objective, n_rows) = (target.objective(), rows.tiles.n_rows());
        let mut boosting = Self {
            rows,
            target: target.values(),
            objective,
            base: Vec::new(),
            outputs: Vec::new(),
            settled: Vec::new(),
            derivatives: vec![[0.0; 2]; rows.n_training],
            packed: Vec::new(),
        };
        boosting.base = boosting.start();
        boosting.outputs = boosting.base.repeat(n_rows);
        boosting.settled = boosting.outputs.clone();
        boosting.settle();
        boosting
    }

    fn weight(&self, row: usize) -> f64 {
        self.rows.weight.map_or(1.0, |weight| f64::from(weight[row]))
    }

    /// The best outputs that are the same for all rows.
    fn start(&self) -> Vec<f32> {
        let rows = 0..self.rows.n_training;
        let mass: f64 = rows.clone().map(|row| self.weight(row)).sum();
        let mean = |value: &dyn Fn(f32) -> f64| {
            rows.clone().map(|row| self.weight(row) * value(self.target[row])).sum::<f64>() / mass
        };
        match self.objective {
            Objective::Squared => vec![mean(&f64::from) as f32],
            Objective::Logistic => {
                let share = mean(&f64::from).clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
                vec![(share / (1.0 - share)).ln() as f32]
            }
            Objective::Softmax(n_classes) => {
                let share = |class: usize| mean(&|own| f64::from(u8::from(own as usize == class)));
                (0..n_classes).map(|class| share(class).max(LEAST_SHARE).ln() as f32).collect()
            }
        }
    }

    fn settle(&mut self) {
        let (objective, n_outputs) = (self.objective, self.base.len());
        let settled = self.settled.par_chunks_mut(BLOCK_ROWS * n_outputs);
        settled.zip(self.outputs.par_chunks(BLOCK_ROWS * n_outputs)).for_each(|(settled, outputs)| {
            settled.copy_from_slice(outputs);
            settled.chunks_exact_mut(n_outputs).for_each(|row| objective.settle(row));
        });
    }

    /// The mean loss of held-out rows.
    fn held_loss(&self) -> f64 {
        let (first, n_outputs) = (self.rows.n_training, self.base.len());
        let settled = self.settled[first * n_outputs..].par_chunks(BLOCK_ROWS * n_outputs).enumerate();
        let sums: Vec<[f64; 2]> = settled
            .map(|(block, settled)| {
                let mut sums = [0.0; 2];
                for (place, outputs) in settled.chunks_exact(n_outputs).enumerate() {
                    let row = first + block * BLOCK_ROWS + place;
                    let weight = self.weight(row);
                    sums[0] += weight * self.objective.loss(outputs, self.target[row]);
                    sums[1] += weight;
                }
                sums
            })
            .collect();
        let total = |part: usize| sums.iter().map(|own| own[part]).sum::<f64>();
        if total(1) > 0.0 { total(0) / total(1) } else { 0.0 }
    }

    /// Adds a tree to every output; false where nothing is left to fit.
    fn round(&mut self, grower: &mut Grower<'_>, params: &BoostedParams, trees: &mut [Vec<Tree>]) -> bool {
        let mut any = false;
        for (output, trees) in trees.iter_mut().enumerate() {
            self.differentiate(output);
            let packed = std::mem::take(&mut self.packed);
            let grown = Quantised::new(&self.derivatives, LEAST_GRADIENT, packed).and_then(|derivatives| {
                let grown = grower.grow(&derivatives);
                self.packed = derivatives.packed;
                grown
            });
            let tree = grown.map(|grown| self.add(grown, output, grower, params.learning_rate));
            any |= tree.is_some();
            trees.push(tree.unwrap_or_else(nothing));
        }
        if any {
            self.settle();
        } else {
            trees.iter_mut().for_each(|trees| drop(trees.pop()));
        }
        any
    }

    fn differentiate(&mut self, output: usize) {
        let (objective, n_outputs, weight, target) =
            (self.objective, self.base.len(), self.rows.weight, self.target);
        let blocks = self.derivatives.par_chunks_mut(BLOCK_ROWS).enumerate();
        let settled = &self.settled;
        blocks.for_each(|(block, derivatives)| {
            let first = block * BLOCK_ROWS;
            let settled = settled[first * n_outputs..].chunks_exact(n_outputs);
            for (place, (own, outputs)) in derivatives.iter_mut().zip(settled).enumerate() {
                let row = first + place;
                *own = objective.derivatives(outputs, output, target[row]);
                if let Some(weight) = weight {
                    *own = own.map(|value| value * weight[row]);
                }
            }
        });
    }

    /// Gives leaves their values and adds them to the outputs of their rows.
    fn add(&mut self, grown: Grown, output: usize, grower: &Grower<'_>, rate: f64) -> Tree {
        let Grown { mut tree, leaves } = grown;
        let n_outputs = self.base.len();
        let derivatives = &self.derivatives;
        let value = |leaf: &[std::ops::Range<usize>; 2]| {
            let [rows, _] = grower.rows(leaf);
            let mut sums = [0.0; 2];
            for row in rows {
                let [gradient, curvature] = derivatives[*row as usize].map(f64::from);
                sums = [sums[0] + gradient, sums[1] + curvature];
            }
            (-rate * sums[0] / (sums[1] + grower.l2()).max(f64::MIN_POSITIVE)) as f32
        };
        tree.leaves = leaves.par_iter().map(value).collect();
        for (leaf, value) in leaves.iter().zip(&tree.leaves) {
            for row in grower.rows(leaf).into_iter().flatten() {
                self.outputs[*row as usize * n_outputs + output] += value;
            }
        }
        tree
    }
}

/// A tree that adds nothing.
fn nothing() -> Tree {
    let mut tree = Tree::default();
    tree.push_leaf(0);
    tree.leaves = vec![0.0];
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::net::DenseRows;
    use crate::tree::Cuts;

    /// Numbers without an order that one could learn, from −1 to 1.
    fn noise(n: usize, start: u32) -> Vec<f32> {
        let mut state = start;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn held_out_rows_are_never_worse_off_than_by_the_mean() {
        let (n_rows, n_training) = (400, 300);
        let rows: Vec<u32> = (0..n_rows as u32).collect();
        let mut kept = 0;
        for case in 0..8 {
            let x = noise(n_rows * 6, 2 * case + 1);
            let x = DenseRows::new(&x, 6).unwrap();
            let y = noise(n_rows, 900 + case);
            let tiles = Tiles::new(&Cuts::learn(&x, &rows), &x, &rows);
            let fitted = Rows { tiles: &tiles, n_training, weight: None };
            let run =
                |params: &BoostedParams| boost(&fitted, Target::Values(&y), params, "", &Silent).unwrap();
            let stopped = run(&BoostedParams { patience: 10, ..BoostedParams::default() });
            kept += stopped.n_trees();
            // The same trees again, without looking at held-out rows: how they do there.
            let all = run(&BoostedParams {
                patience: 0,
                trees: stopped.n_trees().max(1),
                ..BoostedParams::default()
            });
            let mut boosting = Boosting::new(&fitted, Target::Values(&y));
            let mean = boosting.held_loss();
            let params = BoostedParams::default();
            let mut grower = Grower::new(&tiles, n_training, &params, 1.0);
            let mut trees = vec![Vec::new()];
            for _ in 0..stopped.n_trees() {
                assert!(boosting.round(&mut grower, &params, &mut trees));
            }
            assert!(boosting.held_loss() <= mean, "{case}");
            assert_eq!(trees[0], stopped.trees[0]);
            assert_eq!(&all.trees[0][..stopped.n_trees()], &stopped.trees[0][..]);
        }
        assert!(kept < 8 * 40, "{kept} trees were kept of noise");
    }
}
