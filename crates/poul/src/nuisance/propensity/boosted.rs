//! π by boosted trees, fold by fold.

use crate::net::RowSource;
use crate::nuisance::Folds;
use crate::nuisance::boosted::{Boosted, BoostedParams, Cuts, Rows, Target, Tiles, boost_once};
use crate::{Result, Run};

use super::cross_fit::{Data, by_share};

/// Most classes of policies that boosted trees tell apart: each has trees of its own.
pub(super) const MOST_CLASSES: usize = 64;

/// The trees of all folds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoostedPropensity {
    pub(super) boosted: Boosted,
    /// Classes that the training part of each fold lacked.
    pub(super) absent: Vec<Vec<u32>>,
}

impl BoostedPropensity {
    /// Without any fold yet.
    pub(super) fn new(x: &dyn RowSource, n_folds: usize) -> Self {
        let all: Vec<u32> = (0..x.n_rows() as u32).collect();
        let boosted = Boosted { cuts: Cuts::learn(x, &all), folds: Vec::with_capacity(n_folds) };
        Self { boosted, absent: Vec::with_capacity(n_folds) }
    }

    /// Fits the trees of the next fold.
    pub(super) fn fit(
        &mut self,
        data: &Data<'_>,
        n_classes: usize,
        params: &BoostedParams,
        stage: &str,
        run: Run<'_>,
    ) -> Result<()> {
        let (_, absent) = data.shares(n_classes)?;
        let weighs = |row: &&u32| data.weight_of(**row) > 0.0;
        let rows: Vec<u32> = data.rows.iter().filter(weighs).copied().collect();
        let all: Vec<u32> = rows.iter().chain(data.held.iter().filter(weighs)).copied().collect();
        let tiles = Tiles::new(&self.boosted.cuts, data.x, &all);
        if let Some(error) = data.x.failure() {
            return Err(error);
        }
        let mean = rows.iter().map(|row| data.weight_of(*row)).sum::<f64>() / rows.len() as f64;
        let weight: Option<Vec<f32>> =
            data.weight.map(|_| all.iter().map(|row| (data.weight_of(*row) / mean) as f32).collect());
        let class: Vec<f32> = all.iter().map(|row| data.class[*row as usize] as f32).collect();
        // Of two classes one is enough.
        let target = if n_classes == 2 { Target::Shares(&class) } else { Target::Classes(&class, n_classes) };
        let rows = Rows { tiles: &tiles, n_training: rows.len(), weight: weight.as_deref() };
        self.boosted.folds.push(vec![boost_once(&rows, target, params, stage, run)?]);
        self.absent.push(absent);
        Ok(())
    }

    /// Probabilities of classes by the trees of one fold, row-major.
    pub(super) fn predict(&self, fold: usize, x: &dyn RowSource, shares: &[f64]) -> Result<Vec<f32>> {
        let n_classes = shares.len();
        let mut probabilities = self.boosted.predict(&[fold], x)?;
        if n_classes == 2 {
            probabilities = probabilities.iter().flat_map(|p| [1.0 - p, *p]).collect();
        }
        by_share(&mut probabilities, &self.absent[fold], shares);
        Ok(probabilities)
    }

    /// Outputs of the trees for so many classes.
    pub(super) fn n_outputs(n_classes: usize) -> usize {
        if n_classes == 2 { 1 } else { n_classes }
    }
}

/// Probabilities of all rows by the trees that never saw their fold.
pub(super) fn fit_folds(
    x: &dyn RowSource,
    folds: &Folds,
    shares: &[f64],
    params: &BoostedParams,
    run: Run<'_>,
    data: &dyn Fn(usize) -> (Vec<u32>, Vec<u32>),
    of: (&[u32], Option<&[f32]>),
) -> Result<(Vec<f32>, BoostedPropensity)> {
    let n_classes = shares.len();
    let mut probabilities = vec![0.0; x.n_rows() * n_classes];
    let mut models = BoostedPropensity::new(x, folds.n_folds);
    for fold in 0..folds.n_folds {
        let (rows, held) = data(fold);
        let stage = match folds.n_folds {
            1 => "Boosted propensity".to_owned(),
            n_folds => format!("Boosted propensity, fold {} of {n_folds}", fold + 1),
        };
        let own = Data { x, class: of.0, weight: of.1, rows: &rows, held: &held };
        models.fit(&own, n_classes, params, &stage, run)?;
        let inside = folds.rows(fold);
        let some = crate::nuisance::rows::SomeRows { x, rows: &inside };
        super::cross_fit::place(
            &models.predict(fold, &some, shares)?,
            &inside,
            n_classes,
            &mut probabilities,
        );
    }
    Ok((probabilities, models))
}
