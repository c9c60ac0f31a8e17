//! Causal forest: generalized random forest of the effect of a treatment with several columns (Athey, Tibshirani and
//! Wager 2019): outcomes and treatments centred locally, gradient-based splits, honest trees on subsamples,
//! τ(x; t1, t0) = θ(x)ᵀ(W(t1) − W(t0)) from moments averaged with the forest's weights.

use super::centring::Centring;
use super::columns::TreatmentColumns;
use super::fitted::{FittedForest, ForestKind, Manifest, Reading};
use super::local_moments::{LocalMoments, Solution, leaf_width, padded};
use super::moments::{FULL, Moments, PLAIN};
use super::params::{CausalParams, ForestParams, TreeParams, read};
use super::rows::ForestRows;
use crate::effect::{Settings, Trained, ValidTrainingData};
use crate::policy::PolicySet;
use crate::tree::Tree;
use crate::{Result, Run};

/// Grows a forest for every outcome.
pub(super) fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    let params: CausalParams = read(settings)?;
    let tree = &params.tree;
    let run = run.child(CausalParams::NAME);
    let rows = ForestRows::new(data)?;
    let (columns, mut notes) = TreatmentColumns::new(data, params.tier, tree.min_arm_rows, tree.columns)?;
    if !data.baseline.is_empty() {
        notes.push("a causal forest learns from the experiment alone: baseline rows are not used".to_owned());
    }
    let centring = Centring { data, rows: &rows, params: &params, run };
    let treatment = centring.treatment(&vectors(data, &columns)?)?;
    let (mut scales, mut trees) = (Vec::new(), Vec::new());
    for (number, column) in data.outcomes.iter().enumerate() {
        let (outcome, scale) = centring.outcome(number)?;
        let stage = format!("Causal forest: {}", column.name);
        let run = run.child("effects").index(number as u64);
        let (rows, outcome, treatment, n_columns) = (&rows, &outcome, &treatment, columns.n_columns());
        let forest = Growing { rows, outcome, treatment, n_columns, tree, run, stage: &stage };
        trees.push(forest.grow()?);
        scales.push(scale);
    }
    let manifest = Manifest {
        outcomes: data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect(),
        scales,
        n_features: data.x.n_cols(),
        n_trees: trees[0].len(),
        group_trees: tree.group_trees,
        kind: columns,
    };
    let fitted = FittedForest { manifest, cuts: rows.cuts, trees };
    Ok(Trained { effects: Box::new(fitted), history: Vec::new(), notes })
}

/// The columns of every policy; those that were never run have zeros, which no row meets.
fn vectors(data: &ValidTrainingData<'_>, columns: &TreatmentColumns) -> Result<Vec<Vec<f64>>> {
    let run: Vec<usize> =
        (0..data.policies.len()).filter(|policy| data.policy_mass()[*policy] > 0.0).collect();
    let mut vectors = vec![vec![0.0; columns.n_columns()]; data.policies.len()];
    let (found, _) = columns.vectors(data.policies, &run)?;
    run.into_iter().zip(found).for_each(|(policy, vector)| vectors[policy] = vector);
    Ok(vectors)
}

/// The forest of one outcome, about to be grown.
struct Growing<'a> {
    rows: &'a ForestRows,
    /// Centred.
    outcome: &'a [f32],
    /// Centred, `n_columns` for each row.
    treatment: &'a [f32],
    n_columns: usize,
    tree: &'a TreeParams,
    run: Run<'a>,
    stage: &'a str,
}

impl Growing<'_> {
    /// Grows trees in the least room that rows and their labels have.
    fn grow(&self) -> Result<Vec<Tree>> {
        match (self.n_columns, &self.rows.weight) {
            (1, _) => self.run::<1, 4, FULL>(),
            (2..=3, None) => self.run::<4, 4, PLAIN>(),
            (4..=7, None) => self.run::<8, 8, PLAIN>(),
            (8..=11, None) => self.run::<12, 12, PLAIN>(),
            (_, None) => self.run::<16, 20, PLAIN>(),
            (2..=5, _) => self.run::<8, 8, FULL>(),
            (6..=9, _) => self.run::<12, 12, FULL>(),
            (_, _) => self.run::<16, 20, FULL>(),
        }
    }

    fn run<const P: usize, const E: usize, const FIRST: usize>(&self) -> Result<Vec<Tree>> {
        let treatment: Vec<[f32; P]> = padded(self.treatment, self.n_columns);
        let local = LocalMoments {
            outcome: self.outcome,
            treatment: &treatment,
            width: self.n_columns,
            weight: self.rows.weight.as_deref(),
            min_node: self.tree.min_node,
            min_child_rows: self.tree.min_child_rows,
            imbalance: self.tree.imbalance,
        };
        self.rows.grow(&Moments::<E, FIRST, _>(local), self.tree, self.run, self.stage)
    }
}

impl ForestKind for TreatmentColumns {
    const NAME: &'static str = CausalParams::NAME;
    type Reading = Contrasts;

    fn leaf_width(&self) -> usize {
        leaf_width(self.n_columns())
    }

    fn is_consistent(&self) -> bool {
        self.is_consistent()
    }

    fn reading(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<(Contrasts, Vec<String>)> {
        let all: Vec<usize> = targets.iter().copied().chain([against]).collect();
        let (vectors, notes) = self.vectors(policies, &all)?;
        let (targets, base) = vectors.split_at(targets.len());
        let contrast = |target: &Vec<f64>| target.iter().zip(&base[0]).map(|(a, b)| a - b).collect();
        let contrasts = targets.iter().map(contrast).collect();
        Ok((Contrasts { contrasts, n_columns: self.n_columns() }, notes))
    }
}

/// W(t) − W(t0) of each target.
pub(super) struct Contrasts {
    contrasts: Vec<Vec<f64>>,
    n_columns: usize,
}

impl Reading for Contrasts {
    /// θ, and how moments move each effect.
    type State = (Solution, Vec<Vec<f64>>);

    fn n_targets(&self) -> usize {
        self.contrasts.len()
    }

    fn solve(&self, mean: &[f64], spread: bool) -> Self::State {
        let solution = Solution::of(mean, self.n_columns);
        let influences = match spread {
            true => self.contrasts.iter().map(|contrast| solution.influence(contrast)).collect(),
            false => Vec::new(),
        };
        (solution, influences)
    }

    fn effects(&self, (solution, _): &Self::State, out: &mut [f64]) {
        for (out, contrast) in out.iter_mut().zip(&self.contrasts) {
            *out = contrast.iter().zip(&solution.effect).map(|(c, effect)| c * effect).sum();
        }
    }

    fn deviations(&self, (solution, influences): &Self::State, leaf: &[f32], out: &mut [f64]) {
        let mut residuals = [0.0; 1 + super::local_moments::MOST_COLUMNS];
        let residuals = &mut residuals[..=self.n_columns];
        solution.residuals(leaf, residuals);
        for (out, influence) in out.iter_mut().zip(influences) {
            let moved = influence.iter().zip(&residuals[1..]).zip(&solution.treatment);
            *out = moved.map(|((u, residual), mean)| u * (residual - mean * residuals[0])).sum();
        }
    }
}
