//! Grown forests: what all have in common when they score and are stored. A row's leaves are averaged over trees, then
//! read as effects.

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::little_bags::standard_error;
use super::stored::{cuts_tensors, load_cuts, load_trees, tree_tensors};
use crate::effect::{EffectModel, Scorer, Scores, Tensor, Tensors};
use crate::net::RowSource;
use crate::policy::PolicySet;
use crate::tree::{Cuts, Tree};
use crate::{Error, Result};

/// Rows that walk down the trees together.
const BLOCK_ROWS: usize = 512;

/// What sets a forest apart from others once it is grown.
pub(super) trait ForestKind: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The learner's name.
    const NAME: &'static str;
    /// How leaves become effects.
    type Reading: Reading;

    /// How many numbers a leaf keeps.
    fn leaf_width(&self) -> usize;

    /// Whether the parts fit together, as they do unless a file was damaged.
    fn is_consistent(&self) -> bool;

    /// Gets ready for some policies; tells which policy stands in for which.
    fn reading(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<(Self::Reading, Vec<String>)>;
}

/// How leaves become effects of some policies against one.
pub(super) trait Reading: Send + Sync {
    /// What is known of a row.
    type State;

    fn n_targets(&self) -> usize;

    /// The mean over trees of what leaves keep; `spread`: whether deviations will be asked for.
    fn solve(&self, mean: &[f64], spread: bool) -> Self::State;

    /// The effects, one each target.
    fn effects(&self, state: &Self::State, out: &mut [f64]);

    /// How far a tree of its own moves each effect.
    fn deviations(&self, state: &Self::State, leaf: &[f32], out: &mut [f64]);
}

/// A grown forest for each outcome.
pub(super) struct FittedForest<K> {
    pub(super) manifest: Manifest<K>,
    pub(super) cuts: Cuts,
    /// By outcome.
    pub(super) trees: Vec<Vec<Tree>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Manifest<K> {
    pub(super) outcomes: Vec<String>,
    /// What an effect is multiplied by, for each outcome.
    pub(super) scales: Vec<f64>,
    pub(super) n_features: usize,
    pub(super) n_trees: usize,
    pub(super) group_trees: usize,
    pub(super) kind: K,
}

/// Reads a model back.
pub(super) fn load<K: ForestKind>(
    manifest: &serde_json::Value,
    tensors: &mut Tensors,
) -> Result<Box<dyn EffectModel>> {
    let damaged = |what: String| Error::input(what).hint("the file is damaged: fit again");
    let manifest: Manifest<K> =
        serde_json::from_value(manifest.clone()).map_err(|error| damaged(error.to_string()))?;
    let consistent = manifest.scales.len() == manifest.outcomes.len()
        && !manifest.outcomes.is_empty()
        && manifest.n_features > 0
        && manifest.n_trees > 0
        && manifest.group_trees > 0
        && manifest.kind.is_consistent();
    if !consistent {
        return Err(damaged("the parts of the model contradict each other".to_owned()));
    }
    let cuts = load_cuts(K::NAME, manifest.n_features, tensors)?;
    let sizes = (manifest.n_trees, manifest.n_features, manifest.kind.leaf_width());
    let trees = (0..manifest.outcomes.len())
        .map(|outcome| load_trees(&format!("{}.{outcome}", K::NAME), sizes, tensors))
        .collect::<Result<_>>()?;
    Ok(Box::new(FittedForest { manifest, cuts, trees }))
}

impl<K: ForestKind> EffectModel for FittedForest<K> {
    fn outcomes(&self) -> &[String] {
        &self.manifest.outcomes
    }

    fn n_features(&self) -> usize {
        self.manifest.n_features
    }

    fn prepare<'m>(
        &'m self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Box<dyn Scorer + 'm>> {
        let (reading, notes) = self.manifest.kind.reading(policies, targets, against)?;
        Ok(Box::new(ForestScorer { forest: self, reading, notes }))
    }

    fn manifest(&self) -> Result<serde_json::Value> {
        serde_json::to_value(&self.manifest)
            .map_err(|error| Error::other(format!("cannot store the model: {error}")).source(error))
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = cuts_tensors(K::NAME, &self.cuts);
        for (outcome, trees) in self.trees.iter().enumerate() {
            let width = self.manifest.kind.leaf_width();
            tensors.extend(tree_tensors(&format!("{}.{outcome}", K::NAME), trees, width));
        }
        tensors
    }
}

struct ForestScorer<'m, K: ForestKind> {
    forest: &'m FittedForest<K>,
    reading: K::Reading,
    notes: Vec<String>,
}

impl<K: ForestKind> Scorer for ForestScorer<'_, K> {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let n_rows = x.n_rows();
        crate::net::check_n_rows(x)?;
        let n_outcomes = self.forest.trees.len();
        let spread = spread && self.has_spread();
        let blocks: Vec<Vec<Effects>> = (0..n_rows.div_ceil(BLOCK_ROWS))
            .into_par_iter()
            .map(|block| {
                let first = block * BLOCK_ROWS;
                let rows = first as u32..(first + BLOCK_ROWS).min(n_rows) as u32;
                let bins = self.bins(x, rows);
                (0..n_outcomes).map(|outcome| self.block(&bins, outcome, spread)).collect()
            })
            .collect();
        let mut scores = Scores::default();
        for outcome in 0..n_outcomes {
            scores.mean.push(blocks.iter().flat_map(|block| &block[outcome].mean).copied().collect());
            if spread {
                scores.spread.push(blocks.iter().flat_map(|block| &block[outcome].spread).copied().collect());
            }
        }
        Ok(scores)
    }

    fn has_spread(&self) -> bool {
        let manifest = &self.forest.manifest;
        manifest.group_trees > 1 && manifest.n_trees > manifest.group_trees
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Effects of some rows on one outcome, rows × targets.
#[derive(Default)]
struct Effects {
    mean: Vec<f32>,
    spread: Vec<f32>,
}

impl<K: ForestKind> ForestScorer<'_, K> {
    fn bins(&self, x: &dyn RowSource, rows: std::ops::Range<u32>) -> Vec<u8> {
        let n_features = self.forest.manifest.n_features;
        let rows: Vec<u32> = rows.collect();
        let mut values = vec![0.0; rows.len() * n_features];
        x.copy_rows(&rows, &mut values);
        let mut bins = vec![0; values.len()];
        for (row, out) in values.chunks_exact(n_features).zip(bins.chunks_exact_mut(n_features)) {
            self.forest.cuts.bin_row(row, out);
        }
        bins
    }

    fn block(&self, bins: &[u8], outcome: usize, spread: bool) -> Effects {
        let Manifest { n_features, group_trees, ref kind, ref scales, .. } = self.forest.manifest;
        let (trees, scale, width) = (&self.forest.trees[outcome], scales[outcome], kind.leaf_width());
        let (n_rows, n_targets) = (bins.len() / n_features, self.reading.n_targets());
        let mut sums = vec![0.0_f64; n_rows * width];
        // Which leaf of which tree, where deviations are asked for.
        let mut kept = vec![0_u32; if spread { n_rows * trees.len() } else { n_rows }];
        for (number, tree) in trees.iter().enumerate() {
            let place = if spread { number * n_rows } else { 0 };
            let leaves = &mut kept[place..][..n_rows];
            tree.leaves_of(bins, n_features, leaves);
            for (sums, leaf) in sums.chunks_exact_mut(width).zip(leaves) {
                let values = &tree.leaves[*leaf as usize * width..][..width];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
            }
        }
        let mut effects = Effects::default();
        let mut room = vec![0.0; n_targets];
        let mut deviations = vec![0.0; if spread { n_targets * trees.len() } else { 0 }];
        for (row, mean) in sums.chunks_exact_mut(width).enumerate() {
            mean.iter_mut().for_each(|sum| *sum /= trees.len() as f64);
            let state = self.reading.solve(mean, spread);
            self.reading.effects(&state, &mut room);
            effects.mean.extend(room.iter().map(|effect| (effect * scale) as f32));
            if !spread {
                continue;
            }
            for (number, tree) in trees.iter().enumerate() {
                let leaf = kept[number * n_rows + row] as usize;
                let leaf = &tree.leaves[leaf * width..][..width];
                self.reading.deviations(&state, leaf, &mut deviations[number * n_targets..][..n_targets]);
            }
            effects.spread.extend((0..n_targets).map(|target| {
                let of_trees = deviations.iter().skip(target).step_by(n_targets).copied();
                (standard_error(of_trees, group_trees) * scale) as f32
            }));
        }
        effects
    }
}
