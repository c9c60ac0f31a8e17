//! A quick outcome model: m̂(x) linear in the encoded features, cross-fitted in closed form.
//!
//! One pass adds up the products of (1, x, y) by fold. The ridge of a fold is solved from the sums of the others; its
//! penalty is chosen among those others, each predicted by the rest of them, whose loss follows from sums as well: nothing of
//! a row's fold is in its prediction. A last pass predicts. Good enough where assignment is random and m̂ only sharpens averages; [`fit_outcome`](super::fit_outcome) is
//! for the rest.

use rayon::prelude::*;

use super::Folds;
use crate::net::RowSource;
use crate::stats::Cholesky;
use crate::{Error, Progress, Result};

/// Penalties in units of each feature's variance.
const PENALTIES: [f64; 8] = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0];
/// Rows read at once.
const CHUNK_ROWS: usize = 4096;
/// Products are added up from at most so many rows, evenly spaced: more do not sharpen a linear model.
const MOST_ROWS: usize = 1 << 18;
/// With many features, from so many at least.
const FEWEST_ROWS: usize = 1 << 15;
/// Multiplications that the pass may take, about.
const MOST_PRODUCTS: usize = 1 << 33;
/// Rows of the matrix of products that one thread adds up.
const PANEL_ROWS: usize = 16;

/// m̂ of every row, out of fold.
#[derive(Clone, Debug)]
pub struct RidgeFit {
    /// By outcome, a prediction for each row.
    pub predicted: Vec<Vec<f64>>,
    /// Share of each outcome's variance that is explained, out of fold.
    pub r2: Vec<f64>,
    /// The penalty of each outcome and fold, in units of a feature's variance.
    pub penalties: Vec<Vec<f64>>,
}

/// Fits a ridge of each outcome on the other folds, and predicts each row by the one that never saw its fold. Rows of
/// weight 0 are predicted too.
pub fn cross_fit_ridge(
    x: &dyn RowSource,
    outcomes: &[&[f64]],
    weight: Option<&[f64]>,
    folds: &Folds,
    progress: &dyn Progress,
) -> Result<RidgeFit> {
    let n_rows = x.n_rows();
    folds.check(n_rows)?;
    if outcomes.iter().any(|values| values.len() != n_rows)
        || weight.is_some_and(|weight| weight.len() != n_rows)
    {
        return Err(Error::other("outcomes or weights of other rows"));
    }
    let data = Data { x, outcomes, weight, n_x: x.n_cols() };
    progress.start("Outcome model", "rows", Some(2 * n_rows as u64));
    let chosen = data.lines(folds, |_| Vec::new());
    progress.advance(n_rows as u64);
    let of_outcome = |outcome: usize| chosen.iter().map(|fold| fold[outcome].0).collect();
    let penalties = (0..outcomes.len()).map(of_outcome).collect();
    let lines: Vec<Vec<Vec<f64>>> =
        chosen.into_iter().map(|fold| fold.into_iter().map(|(_, line)| line).collect()).collect();
    let predicted = data.predict(folds, &lines);
    let r2 = outcomes.iter().zip(&predicted).map(|(values, own)| r2(values, own, weight)).collect();
    progress.advance(n_rows as u64);
    progress.finish();
    Ok(RidgeFit { predicted, r2, penalties })
}

/// Evenly spaced rows of a fold, as many as its share of what the pass may take.
fn thinned(rows: Vec<u32>, n_rows: usize, n_x: usize) -> Vec<u32> {
    let most = (MOST_PRODUCTS / (n_x * n_x).max(1)).clamp(FEWEST_ROWS, MOST_ROWS);
    let step = n_rows.div_ceil(most).max(1);
    rows.into_iter().step_by(step).collect()
}

/// What a ridge is fitted on.
pub(super) struct Data<'a> {
    pub(super) x: &'a dyn RowSource,
    pub(super) outcomes: &'a [&'a [f64]],
    pub(super) weight: Option<&'a [f64]>,
    pub(super) n_x: usize,
}

impl Data<'_> {
    /// By fold and outcome, the penalty, and constant and slopes of the ridge on the other folds. Folds are of the first rows;
    /// `more` says which of the rows beyond them a fold's ridge learns from too.
    pub(super) fn lines(&self, folds: &Folds, more: impl Fn(usize) -> Vec<u32>) -> Vec<Vec<(f64, Vec<f64>)>> {
        let counts = |row: &u32| self.weight.is_none_or(|weight| weight[*row as usize] > 0.0);
        let n_counting = (0..self.x.n_rows() as u32).filter(counts).count();
        let products = |rows: Vec<u32>| {
            let rows = rows.into_iter().filter(counts).collect();
            self.products(&thinned(rows, n_counting, self.n_x))
        };
        let sums: Vec<Products> = (0..folds.n_folds).map(|fold| products(folds.rows(fold))).collect();
        let mut total = Products::zeros(self.width());
        sums.iter().for_each(|fold| total.add(fold));
        let mut beyond: Vec<Option<Products>> = Vec::with_capacity(folds.n_folds);
        let mut last: Option<Vec<u32>> = None;
        for fold in 0..folds.n_folds {
            let rows = more(fold);
            // Without clusters they are the same for all folds.
            let own = match last.as_ref() == Some(&rows) {
                true => beyond.last().cloned().flatten(),
                false => (!rows.is_empty()).then(|| products(rows.clone())),
            };
            beyond.push(own);
            last = Some(rows);
        }
        (0..folds.n_folds)
            .into_par_iter()
            .map(|fold| {
                let mut rest = if folds.n_folds > 1 { total.without(&sums[fold]) } else { total.clone() };
                if let Some(beyond) = &beyond[fold] {
                    rest.add(beyond);
                }
                let others: Vec<&Products> =
                    (0..folds.n_folds).filter(|other| *other != fold).map(|other| &sums[other]).collect();
                let line = |outcome| {
                    let penalty = rest.best_penalty(&others, self.n_x, outcome);
                    (penalty, rest.ridge(self.n_x, outcome, penalty))
                };
                (0..self.outcomes.len()).map(line).collect()
            })
            .collect()
    }

    /// A constant, the features, the outcomes.
    fn width(&self) -> usize {
        1 + self.n_x + self.outcomes.len()
    }

    /// Σ w z zᵀ over rows, z = (1, x, y): panels of the matrix in parallel, rows in order.
    fn products(&self, rows: &[u32]) -> Products {
        let width = self.width();
        let mut products = Products::zeros(width);
        let (mut features, mut z) = (Vec::new(), Vec::new());
        for rows in rows.chunks(CHUNK_ROWS) {
            features.resize(rows.len() * self.n_x, 0.0);
            self.x.copy_rows(rows, &mut features);
            z.clear();
            for (index, row) in rows.iter().enumerate() {
                z.push(1.0);
                z.extend(features[index * self.n_x..][..self.n_x].iter().map(|value| f64::from(*value)));
                z.extend(self.outcomes.iter().map(|values| values[*row as usize]));
            }
            products.values.par_chunks_mut(PANEL_ROWS * width).enumerate().for_each(|(panel, values)| {
                for (row, z) in rows.iter().zip(z.chunks_exact(width)) {
                    let weight = self.weight.map_or(1.0, |weight| weight[*row as usize]);
                    for (index, sums) in values.chunks_exact_mut(width).enumerate() {
                        let place = panel * PANEL_ROWS + index;
                        let factor = weight * z[place];
                        // The matrix is symmetric: up to the diagonal is enough.
                        sums[..=place].iter_mut().zip(z).for_each(|(sum, other)| *sum += factor * other);
                    }
                }
            });
        }
        products
    }

    fn predict(&self, folds: &Folds, lines: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
        let n_rows = self.x.n_rows();
        let chunk = |first: usize| {
            let rows: Vec<u32> = (first as u32..n_rows.min(first + CHUNK_ROWS) as u32).collect();
            let mut features = vec![0.0; rows.len() * self.n_x];
            self.x.copy_rows(&rows, &mut features);
            let mut predicted = vec![Vec::with_capacity(rows.len()); self.outcomes.len()];
            for (index, row) in rows.iter().enumerate() {
                let x = &features[index * self.n_x..][..self.n_x];
                for (predicted, line) in
                    predicted.iter_mut().zip(&lines[folds.of_row[*row as usize] as usize])
                {
                    let dot: f64 = x.iter().zip(&line[1..]).map(|(x, slope)| f64::from(*x) * slope).sum();
                    predicted.push(line[0] + dot);
                }
            }
            predicted
        };
        let starts: Vec<usize> = (0..n_rows).step_by(CHUNK_ROWS).collect();
        let chunks: Vec<Vec<Vec<f64>>> = starts.into_par_iter().map(chunk).collect();
        (0..self.outcomes.len())
            .map(|outcome| chunks.iter().flat_map(|chunk| chunk[outcome].iter().copied()).collect())
            .collect()
    }
}

/// Sums of products, the lower triangle of a square matrix.
#[derive(Clone)]
struct Products {
    values: Vec<f64>,
    width: usize,
}

impl Products {
    fn zeros(width: usize) -> Self {
        Self { values: vec![0.0; width * width], width }
    }

    fn add(&mut self, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(sum, other)| *sum += other);
    }

    fn without(&self, other: &Self) -> Self {
        let values = self.values.iter().zip(&other.values).map(|(sum, other)| sum - other).collect();
        Self { values, width: self.width }
    }

    /// The penalty whose ridge on all but one of `parts` predicts that one best, over all of them; the middle of the
    /// range where there are not two parts to choose by.
    fn best_penalty(&self, parts: &[&Self], n_x: usize, outcome: usize) -> f64 {
        if parts.len() < 2 {
            return PENALTIES[PENALTIES.len() / 2];
        }
        let rests: Vec<Self> = parts.iter().map(|part| self.without(part)).collect();
        let loss = |penalty: f64| -> f64 {
            let parts = parts.iter().zip(&rests);
            parts.map(|(part, rest)| part.loss(n_x, outcome, &rest.ridge(n_x, outcome, penalty))).sum()
        };
        let mut best = (f64::INFINITY, PENALTIES[0]);
        for penalty in PENALTIES {
            let loss = loss(penalty);
            if loss < best.0 {
                best = (loss, penalty);
            }
        }
        best.1
    }

    fn at(&self, a: usize, b: usize) -> f64 {
        self.values[a.max(b) * self.width + a.min(b)]
    }

    /// Constant and slopes of the ridge; the constant is free, slopes are penalised in units of the features' variances.
    fn ridge(&self, n_x: usize, outcome: usize, penalty: f64) -> Vec<f64> {
        let mass = self.at(0, 0);
        let mut line = vec![0.0; n_x + 1];
        if mass <= 0.0 {
            return line;
        }
        let mean = |place: usize| self.at(0, place) / mass;
        let centred = |a: usize, b: usize| self.at(a, b) / mass - mean(a) * mean(b);
        let y = 1 + n_x + outcome;
        let mut matrix = vec![0.0; n_x * n_x];
        for row in 0..n_x {
            for column in 0..=row {
                matrix[row * n_x + column] = centred(row + 1, column + 1);
            }
            let variance = matrix[row * n_x + row];
            // A feature that does not vary explains nothing: a large penalty keeps its slope at zero.
            let varies = variance > 1e-12 * (1.0 + mean(row + 1).powi(2));
            matrix[row * n_x + row] = if varies { variance * (1.0 + penalty) } else { 1e12 };
        }
        // Moments that are not finite have no factor, and then features explain nothing.
        let Some(factor) = Cholesky::floored(matrix, n_x, 1e-12) else {
            line[0] = mean(y);
            return line;
        };
        let mut slopes: Vec<f64> = (0..n_x).map(|place| centred(place + 1, y)).collect();
        factor.solve(&mut slopes);
        line[0] =
            mean(y) - slopes.iter().enumerate().map(|(place, slope)| slope * mean(place + 1)).sum::<f64>();
        line[1..].copy_from_slice(&slopes);
        line
    }

    /// Σ w (y − a − xᵀb)².
    fn loss(&self, n_x: usize, outcome: usize, line: &[f64]) -> f64 {
        let y = 1 + n_x + outcome;
        let linear: f64 = line.iter().enumerate().map(|(place, slope)| slope * self.at(place, y)).sum();
        let mut square = 0.0;
        for (a, slope) in line.iter().enumerate() {
            let below: f64 = line[..a].iter().enumerate().map(|(b, other)| other * self.at(a, b)).sum();
            square += slope * (2.0 * below + slope * self.at(a, a));
        }
        self.at(y, y) - 2.0 * linear + square
    }
}

fn r2(values: &[f64], predicted: &[f64], weight: Option<&[f64]>) -> f64 {
    let mass = |row: usize| weight.map_or(1.0, |weight| weight[row]);
    let total: f64 = (0..values.len()).map(mass).sum();
    let mean = values.iter().enumerate().map(|(row, y)| mass(row) * y).sum::<f64>() / total;
    let variation: f64 = values.iter().enumerate().map(|(row, y)| mass(row) * (y - mean).powi(2)).sum();
    let rest: f64 =
        values.iter().zip(predicted).enumerate().map(|(row, (y, m))| mass(row) * (y - m).powi(2)).sum();
    if variation > 0.0 { 1.0 - rest / variation } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;
    use crate::{Seed, Silent};
    use rand::RngExt;
    use rand_distr::StandardNormal;

    /// y = 3 + 2x₀ − x₁ + noise of variance 1, beside columns that say nothing and one that is constant.
    fn rows(n_rows: usize, n_x: usize) -> (Vec<f32>, Vec<f64>) {
        let mut rng = Seed::new(9).rng();
        let mut x: Vec<f32> = (0..n_rows * n_x).map(|_| rng.sample(StandardNormal)).collect();
        x.iter_mut().skip(2).step_by(n_x).for_each(|value| *value = 7.0);
        let of =
            |x: &[f32]| 3.0 + 2.0 * f64::from(x[0]) - f64::from(x[1]) + rng.sample::<f64, _>(StandardNormal);
        let y = x.chunks(n_x).map(of).collect();
        (x, y)
    }

    #[test]
    fn a_line_is_found_and_noise_is_not() {
        let (values, y) = rows(3_000, 12);
        let x = DenseRows::new(&values, 12).unwrap();
        let noise: Vec<f64> = y.iter().rev().copied().collect();
        let folds = Folds::deal(3_000, None, 3, Seed::new(1));
        let fit = cross_fit_ridge(&x, &[&y, &noise], None, &folds, &Silent).unwrap();
        // Variance 5 of 6.
        assert!((fit.r2[0] - 5.0 / 6.0).abs() < 0.02, "{}", fit.r2[0]);
        assert!(fit.r2[1].abs() < 0.02, "{}", fit.r2[1]);
        let total = |outcome: usize| fit.penalties[outcome].iter().sum::<f64>();
        assert!(total(1) > total(0), "{:?}", fit.penalties);
    }

    #[test]
    fn a_row_is_predicted_without_its_fold() {
        let (values, mut y) = rows(300, 4);
        let x = DenseRows::new(&values, 4).unwrap();
        let folds = Folds::deal(300, None, 3, Seed::new(1));
        let before = cross_fit_ridge(&x, &[&y], None, &folds, &Silent).unwrap();
        y[17] += 1e4;
        let after = cross_fit_ridge(&x, &[&y], None, &folds, &Silent).unwrap();
        for row in 0..300 {
            let moved = (before.predicted[0][row] - after.predicted[0][row]).abs();
            match folds.of_row[row] == folds.of_row[17] {
                true => assert!(moved < 1e-4, "row {row}: {moved}"),
                false => assert!(moved > 1e-4, "row {row}: {moved}"),
            }
        }
    }

    #[test]
    fn weights_are_repeated_rows() {
        let (values, y) = rows(200, 4);
        let weight: Vec<f64> = (0..200).map(|row| f64::from(row % 3)).collect();
        let copies: Vec<usize> = (0..200).flat_map(|row| vec![row; row % 3]).collect();
        let folds = Folds::deal(200, None, 2, Seed::new(1));
        let x = DenseRows::new(&values, 4).unwrap();
        let weighted = cross_fit_ridge(&x, &[&y], Some(&weight), &folds, &Silent).unwrap();
        let repeated: Vec<f32> = copies.iter().flat_map(|row| values[row * 4..][..4].to_vec()).collect();
        let own: Vec<f64> = copies.iter().map(|row| y[*row]).collect();
        let own_folds = Folds { of_row: copies.iter().map(|row| folds.of_row[*row]).collect(), n_folds: 2 };
        let x = DenseRows::new(&repeated, 4).unwrap();
        let plain = cross_fit_ridge(&x, &[&own], None, &own_folds, &Silent).unwrap();
        for (place, row) in copies.iter().enumerate() {
            assert!((plain.predicted[0][place] - weighted.predicted[0][*row]).abs() < 1e-6);
        }
        assert!((plain.r2[0] - weighted.r2[0]).abs() < 1e-9);
    }
}
