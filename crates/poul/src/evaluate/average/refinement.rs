//! What is left in an arm's residuals, explained by features: c_t(x), a ridge under weights 1/π, out of fold.
//!
//! The ridge sees every feature as a broken line (hinges at its quantiles) beside m̂ and the log of π̂, so that what
//! is confounded by a smooth function of one feature, or of what the nuisances found, is taken out to first order. Where
//! features are few they have many hinges, some of them far out: networks that stop early flatten waves and tails, and it
//! is in the tails that an arm's few rows weigh most.

use rayon::prelude::*;

use crate::net::RowSource;
use crate::nuisance::{Folds, Propensity, cross_fit_ridge};
use crate::{Result, Silent};

/// Hinges of a feature, in sixteenths of its rows from below: the most that the columns allow.
const HINGES: [&[f64]; 3] = [
    &[
        0.06, 0.32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 15.68,
        15.94,
    ],
    &[0.32, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 15.68],
    &[4.0, 8.0, 12.0],
];
/// Rows that quantiles are taken from, evenly spaced.
const QUANTILE_ROWS: usize = 1 << 14;
/// Beyond so many columns features are taken as they are: the ridge's cost grows with their square.
const MOST_COLUMNS: usize = 512;
/// The propensity's floor, before its logarithm is taken.
const LEAST_PROPENSITY: f32 = 1e-3;

/// The rows that arms are refined on.
#[derive(Clone, Copy)]
pub(super) struct Refinement<'a> {
    /// The encoded features.
    pub(super) x: &'a dyn RowSource,
    /// What is fitted on one part predicts the other.
    pub(super) folds: &'a Folds,
}

impl Refinement<'_> {
    /// c_t of every row, for each of the arms. `residual` is that of a row's own arm, `weight` its weight over π.
    pub(super) fn arms(
        &self,
        arms: &[usize],
        arm_of_row: &[u32],
        (residual, weight): (&[f64], &[f64]),
        (prediction, propensity, n_policies): (Option<&[f64]>, &Propensity, usize),
    ) -> Result<Vec<(usize, Vec<f32>)>> {
        let basis = Basis::new(self.x, prediction, propensity, n_policies, arms);
        let of_arm = |arm: &usize| {
            let own = |(own, weight): (&u32, &f64)| if *own as usize == *arm { *weight } else { 0.0 };
            let weight: Vec<f64> = arm_of_row.iter().zip(weight).map(own).collect();
            let fit = cross_fit_ridge(&basis, &[residual], Some(&weight), self.folds, &Silent)?;
            Ok((*arm, fit.predicted.iter().flatten().map(|value| *value as f32).collect()))
        };
        arms.par_iter().map(of_arm).collect()
    }
}

/// Features with their hinges, m̂, and log π̂ of the arms.
struct Basis<'a> {
    x: &'a dyn RowSource,
    /// Feature and place of each hinge.
    hinges: Vec<(usize, f32)>,
    prediction: Option<&'a [f64]>,
    propensity: Option<&'a Propensity>,
    n_policies: usize,
    arms: &'a [usize],
}

impl<'a> Basis<'a> {
    fn new(
        x: &'a dyn RowSource,
        prediction: Option<&'a [f64]>,
        propensity: &'a Propensity,
        n_policies: usize,
        arms: &'a [usize],
    ) -> Self {
        let propensity = matches!(propensity, Propensity::Rows(_)).then_some(propensity);
        let fits = |places: &&&[f64]| x.n_cols() * (1 + places.len()) <= MOST_COLUMNS;
        let hinges = HINGES.iter().find(fits).map_or_else(Vec::new, |places| hinges(x, places));
        Self { x, hinges, prediction, propensity, n_policies, arms }
    }
}

/// Quantiles of every feature that has more values than two.
fn hinges(x: &dyn RowSource, sixteenths: &[f64]) -> Vec<(usize, f32)> {
    let (n_rows, n_x) = (x.n_rows(), x.n_cols());
    let rows: Vec<u32> = (0..n_rows as u32).step_by(n_rows.div_ceil(QUANTILE_ROWS).max(1)).collect();
    let mut values = vec![0.0; rows.len() * n_x];
    x.copy_rows(&rows, &mut values);
    let of_feature = |feature: usize| {
        let mut own: Vec<f32> = values.iter().skip(feature).step_by(n_x).copied().collect();
        own.sort_by(f32::total_cmp);
        let n = own.len();
        let place = |part: &f64| own[(part / 16.0 * (n - 1) as f64) as usize];
        let mut places: Vec<f32> = sixteenths.iter().map(place).collect();
        places.dedup();
        // A hinge at the lowest value is the feature itself, one at the highest is nothing.
        places.retain(|place| *place > own[0] && *place < own[n - 1]);
        places.into_iter().map(move |place| (feature, place))
    };
    if rows.is_empty() { Vec::new() } else { (0..n_x).flat_map(of_feature).collect() }
}

impl RowSource for Basis<'_> {
    fn n_rows(&self) -> usize {
        self.x.n_rows()
    }

    fn n_cols(&self) -> usize {
        let n_propensities = if self.propensity.is_some() { self.arms.len() } else { 0 };
        self.x.n_cols() + self.hinges.len() + usize::from(self.prediction.is_some()) + n_propensities
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        let n_x = self.x.n_cols();
        let mut features = vec![0.0; rows.len() * n_x];
        self.x.copy_rows(rows, &mut features);
        let rows = rows.iter().zip(features.chunks_exact(n_x)).zip(out.chunks_exact_mut(self.n_cols()));
        for ((row, x), out) in rows {
            out[..n_x].copy_from_slice(x);
            let hinges = self.hinges.iter().map(|(feature, place)| (x[*feature] - place).max(0.0));
            let prediction = self.prediction.map(|prediction| prediction[*row as usize] as f32);
            let probabilities = self.propensity.map(|own| own.of_row(*row as usize, self.n_policies));
            let logs = probabilities.into_iter().flat_map(|probabilities| {
                self.arms.iter().map(|arm| probabilities[*arm].max(LEAST_PROPENSITY).ln())
            });
            let rest = hinges.chain(prediction).chain(logs);
            out[n_x..].iter_mut().zip(rest).for_each(|(out, value)| *out = value);
        }
    }

    fn failure(&self) -> Option<crate::Error> {
        self.x.failure()
    }
}
