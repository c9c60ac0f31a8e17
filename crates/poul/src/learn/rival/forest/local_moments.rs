//! The causal forest's local moment equations (Athey, Tibshirani and Wager 2019, sec. 6): rows are labelled with the
//! gradient of θ, leaves keep the moments of centred treatments W and outcomes Y, and θ(x) solves
//! Σ α_i(x) (1, W_i) (Y_i − μ − W_iᵀθ) = 0 with the forest's weights α(x).

use super::moments::{FULL, Labels, Least};
use crate::dispatch::wide;

/// Most columns of a treatment.
pub(super) const MOST_COLUMNS: usize = 16;
/// Added to the variance of each column, which is 1 over all rows: keeps θ finite where a column hardly varies.
const RIDGE: f64 = 1e-4;

/// Centred rows.
#[derive(Clone, Copy)]
pub(super) struct LocalMoments<'a, const P: usize> {
    pub(super) outcome: &'a [f32],
    /// `width` columns, then zeros.
    pub(super) treatment: &'a [[f32; P]],
    pub(super) width: usize,
    pub(super) weight: Option<&'a [f32]>,
    pub(super) min_node: usize,
    pub(super) min_child_rows: usize,
    pub(super) imbalance: f64,
}

/// Rows of `width` numbers with zeros up to `P`: loops of a fixed length compile to vector instructions.
pub(super) fn padded<const P: usize>(values: &[f32], width: usize) -> Vec<[f32; P]> {
    let row = |values: &[f32]| std::array::from_fn(|place| values.get(place).copied().unwrap_or(0.0));
    values.chunks_exact(width).map(row).collect()
}

/// How many numbers a leaf keeps: the means of Y, W, WY and, of WWᵀ, one triangle.
pub(super) fn leaf_width(n_columns: usize) -> usize {
    1 + 2 * n_columns + n_columns * (n_columns + 1) / 2
}

/// Means of moments, added up over rows or trees.
pub(super) struct Solution {
    /// W̄.
    pub(super) treatment: Vec<f64>,
    /// Cholesky factor of the covariance of W, row after row.
    factor: Vec<f64>,
    pub(super) effect: Vec<f64>,
    /// μ.
    pub(super) level: f64,
}

impl Solution {
    /// Solves the moment equations, given the weighted means that leaves keep.
    pub(super) fn of(moments: &[f64], n_columns: usize) -> Self {
        let (outcome, rest) = (moments[0], &moments[1..]);
        let (treatment, rest) = rest.split_at(n_columns);
        let (cross, squares) = rest.split_at(n_columns);
        let mut factor = vec![0.0; n_columns * n_columns];
        let mut place = 0;
        for i in 0..n_columns {
            for j in 0..=i {
                factor[i * n_columns + j] = squares[place] - treatment[i] * treatment[j];
                place += 1;
            }
            factor[i * n_columns + i] += RIDGE;
        }
        cholesky(&mut factor, n_columns);
        let mut effect: Vec<f64> =
            cross.iter().zip(treatment).map(|(cross, treatment)| cross - treatment * outcome).collect();
        substitute(&factor, n_columns, &mut effect);
        let explained: f64 = treatment.iter().zip(&effect).map(|(w, effect)| w * effect).sum();
        Self { treatment: treatment.to_vec(), factor, effect, level: outcome - explained }
    }

    /// Solves cov(W) u = c: how a change of the moments moves cᵀθ.
    pub(super) fn influence(&self, contrast: &[f64]) -> Vec<f64> {
        let mut influence = contrast.to_vec();
        substitute(&self.factor, contrast.len(), &mut influence);
        influence
    }

    /// What a tree's own moments are off at this solution: of the level, then of each column.
    pub(super) fn residuals(&self, leaf: &[f32], out: &mut [f64]) {
        let n_columns = self.effect.len();
        let (outcome, rest) = (f64::from(leaf[0]), &leaf[1..]);
        let (treatment, rest) = rest.split_at(n_columns);
        let (cross, squares) = rest.split_at(n_columns);
        out[0] = outcome - self.level;
        for (column, (cross, w)) in cross.iter().zip(treatment).enumerate() {
            out[0] -= f64::from(*w) * self.effect[column];
            out[1 + column] = f64::from(*cross) - f64::from(*w) * self.level;
        }
        let mut place = 0;
        for i in 0..n_columns {
            for j in 0..=i {
                let square = f64::from(squares[place]);
                out[1 + i] -= square * self.effect[j];
                if i != j {
                    out[1 + j] -= square * self.effect[i];
                }
                place += 1;
            }
        }
    }
}

impl<const P: usize> LocalMoments<'_, P> {
    #[inline(always)]
    fn weight_of(&self, row: u32) -> f64 {
        self.weight.map_or(1.0, |weight| f64::from(weight[row as usize]))
    }

    #[inline(always)]
    fn treatment_of(&self, row: u32) -> [f64; P] {
        self.treatment[row as usize].map(f64::from)
    }
}

impl<const P: usize, const E: usize, const FIRST: usize> Labels<E, FIRST> for LocalMoments<'_, P> {
    fn label(&self, rows: &[u32], out: &mut Vec<[f32; E]>) -> Option<Least> {
        let width = self.width;
        // With one column each side must have rows on both sides of its mean, as in the reference implementation; with
        // more, as many rows as that is on average: rare arms would forbid all splits otherwise.
        let (of_each, each_arm) =
            if width == 1 { (self.min_node, 0) } else { (0, self.min_node * (width + 1)) };
        let least = (self.imbalance * rows.len() as f64).ceil().max(1.0);
        let least = least.max(self.min_child_rows as f64).max((2 * of_each).max(each_arm) as f64);
        if (rows.len() as f64) < 2.0 * least {
            return None;
        }
        let mut room = [0.0; 1 + 2 * MOST_COLUMNS + MOST_COLUMNS * (MOST_COLUMNS + 1) / 2];
        let moments = &mut room[..leaf_width(width)];
        wide(means, (self, rows, &mut *moments));
        if width == 1 {
            let [outcome, treatment, cross, square] = [moments[0], moments[1], moments[2], moments[3]];
            let variance = square - treatment * treatment;
            if variance <= 1e-9 {
                return None;
            }
            let effect = (cross - treatment * outcome) / variance;
            out.extend(rows.iter().map(|row| {
                let weight = self.weight_of(*row);
                let centred = f64::from(self.treatment[*row as usize][0]) - treatment;
                let residual = f64::from(self.outcome[*row as usize]) - outcome - centred * effect;
                let mut label = [0.0; E];
                label[0] = 1.0;
                label[1] = if centred > 0.0 { 1.0 } else { 0.0 };
                label[2] = weight as f32;
                label[FULL] = (weight * centred * residual / variance) as f32;
                label
            }));
        } else {
            wide(label_columns::<P, E, FIRST>, (self, rows, &*moments, out));
        }
        Some(Least { rows: least, of_each: of_each as f64 })
    }

    fn leaf(&self, rows: &[u32], out: &mut Vec<f32>) {
        let mut room = [0.0; 1 + 2 * MOST_COLUMNS + MOST_COLUMNS * (MOST_COLUMNS + 1) / 2];
        let moments = &mut room[..leaf_width(self.width)];
        wide(means, (self, rows, &mut *moments));
        out.extend(moments.iter().map(|moment| *moment as f32));
    }
}

/// The weighted means that a leaf keeps, of some rows.
#[inline(always)]
fn means<const P: usize>((local, rows, means): (&LocalMoments<'_, P>, &[u32], &mut [f64])) {
    let (mut mass, mut outcomes) = (0.0, 0.0);
    let (mut treatments, mut crosses, mut squares) = ([0.0; P], [0.0; P], [[0.0; P]; P]);
    for row in rows {
        let weight = local.weight_of(*row);
        let outcome = f64::from(local.outcome[*row as usize]);
        let treatment = local.treatment_of(*row);
        let weighted = treatment.map(|w| weight * w);
        mass += weight;
        outcomes += weight * outcome;
        treatments = std::array::from_fn(|i| treatments[i] + weighted[i]);
        crosses = std::array::from_fn(|i| crosses[i] + weighted[i] * outcome);
        for (squares, w) in squares.iter_mut().zip(weighted) {
            *squares = std::array::from_fn(|i| squares[i] + w * treatment[i]);
        }
    }
    let width = local.width;
    let triangle = squares[..width].iter().enumerate().flat_map(|(i, squares)| &squares[..=i]);
    let sums = [outcomes].into_iter().chain(treatments[..width].iter().copied());
    let sums = sums.chain(crosses[..width].iter().copied()).chain(triangle.copied());
    means.iter_mut().zip(sums).for_each(|(mean, sum)| *mean = sum / mass);
}

/// A node's rows, its moments, and where their labels go.
type Labelling<'a, const P: usize, const E: usize> =
    (&'a LocalMoments<'a, P>, &'a [u32], &'a [f64], &'a mut Vec<[f32; E]>);

/// ρ = cov(W)⁻¹ ((W − W̄)(Y − Ȳ − (W − W̄)ᵀθ) − λθ): with the ridge λ of the covariance, the last term is what the first is on
/// average.
#[inline(always)]
fn label_columns<const P: usize, const E: usize, const FIRST: usize>(task: Labelling<'_, P, E>) {
    let (local, rows, moments, out) = task;
    let width = local.width;
    let node = Solution::of(moments, width);
    let fixed = |values: &[f64]| std::array::from_fn(|i| values.get(i).copied().unwrap_or(0.0));
    let (mean, effect): ([f64; P], [f64; P]) = (fixed(&node.treatment), fixed(&node.effect));
    let mut inverse = [[0.0; P]; P];
    for (i, row) in inverse[..width].iter_mut().enumerate() {
        row[i] = 1.0;
        substitute(&node.factor, width, &mut row[..width]);
    }
    out.reserve(rows.len());
    for row in rows {
        let weight = local.weight_of(*row);
        let treatment = local.treatment_of(*row);
        let explained: [f64; P] = std::array::from_fn(|i| treatment[i] * effect[i]);
        let residual = f64::from(local.outcome[*row as usize]) - node.level - explained.iter().sum::<f64>();
        let mut gradient = [0.0; P];
        for (i, inverse) in inverse.iter().enumerate() {
            let own = weight * ((treatment[i] - mean[i]) * residual - RIDGE * effect[i]);
            gradient = std::array::from_fn(|j| gradient[j] + own * inverse[j]);
        }
        let mut label = [0.0; E];
        label[0] = 1.0;
        if FIRST == FULL {
            label[2] = weight as f32;
        }
        label[FIRST..].iter_mut().zip(gradient).for_each(|(label, value)| *label = value as f32);
        out.push(label);
    }
}

/// The lower Cholesky factor in place; a pivot that rounding made negative counts as the ridge. Not that of `stats`, which takes
/// sums off where this takes products off one by one: from three columns on the last bits differ, and with them all effects.
fn cholesky(matrix: &mut [f64], n: usize) {
    for j in 0..n {
        for k in 0..j {
            let factor = matrix[j * n + k];
            for i in j..n {
                matrix[i * n + j] -= matrix[i * n + k] * factor;
            }
        }
        let pivot = matrix[j * n + j].max(RIDGE * RIDGE).sqrt();
        (j..n).for_each(|i| matrix[i * n + j] /= pivot);
        matrix[j * n + j] = pivot;
    }
}

/// Solves LLᵀ z = v in place.
fn substitute(factor: &[f64], n: usize, v: &mut [f64]) {
    for i in 0..n {
        let known: f64 = (0..i).map(|j| factor[i * n + j] * v[j]).sum();
        v[i] = (v[i] - known) / factor[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| factor[j * n + i] * v[j]).sum();
        v[i] = (v[i] - known) / factor[i * n + i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::rival::forest::moments::PLAIN;
    use rand::RngExt;

    #[test]
    fn a_linear_outcome_gives_its_slopes_and_no_residuals() {
        let mut rng = crate::Seed::new(1).rng();
        let treatment: Vec<f32> = (0..600).map(|_| rng.random_range(-1.0..1.0)).collect();
        let outcome: Vec<f32> = treatment.chunks(3).map(|w| 0.5 + 2.0 * w[0] - w[1] + 0.25 * w[2]).collect();
        let weight: Vec<f32> = (0..200).map(|row| (row % 3) as f32).collect();
        let rows: Vec<u32> = (0..200).filter(|row| row % 3 != 0).collect();
        let local = LocalMoments {
            outcome: &outcome,
            treatment: &padded::<4>(&treatment, 3),
            width: 3,
            weight: Some(&weight),
            min_node: 5,
            min_child_rows: 0,
            imbalance: 0.0,
        };
        let mut leaf = Vec::new();
        Labels::<4, PLAIN>::leaf(&local, &rows, &mut leaf);
        assert_eq!(leaf.len(), leaf_width(3));
        let moments: Vec<f64> = leaf.iter().map(|value| f64::from(*value)).collect();
        let solution = Solution::of(&moments, 3);
        for (effect, truth) in solution.effect.iter().zip([2.0, -1.0, 0.25]) {
            assert!((effect - truth).abs() < 2e-3, "{effect} {truth}");
        }
        assert!((solution.level - 0.5).abs() < 2e-3);
        let mut residuals = [1.0; 4];
        solution.residuals(&leaf, &mut residuals);
        assert!(residuals.iter().all(|residual| residual.abs() < 1e-3), "{residuals:?}");
        // Gradients vanish too, wherever a row is.
        let mut labels: Vec<[f32; 8]> = Vec::new();
        Labels::<8, FULL>::label(&local, &rows, &mut labels).unwrap();
        assert!(labels.iter().all(|label| label[FULL..].iter().all(|value| value.abs() < 1e-2)));
    }

    /// Splits count on it. A column that hardly varies is where the ridge matters.
    #[test]
    fn labels_of_a_node_add_up_to_nothing() {
        let mut rng = crate::Seed::new(2).rng();
        let column = |row: usize, column: usize| if column == 2 && row > 1 { 0.0 } else { 1.0 };
        let mut number = || rng.random_range(-1.0..1.0_f32);
        let treatment: Vec<f32> = (0..600).map(|place| number() * column(place / 3, place % 3)).collect();
        let outcome: Vec<f32> = (0..200).map(|_| number()).collect();
        let weight: Vec<f32> = (0..200).map(|_| 1.5 + number()).collect();
        let rows: Vec<u32> = (0..200).collect();
        let treatment = padded::<4>(&treatment, 3);
        let mut local = LocalMoments {
            outcome: &outcome,
            treatment: &treatment,
            width: 3,
            weight: None,
            min_node: 5,
            min_child_rows: 0,
            imbalance: 0.0,
        };
        let adds_up = |labels: &[&[f32]]| {
            for place in 0..3 {
                let sum: f64 = labels.iter().map(|label| f64::from(label[place])).sum();
                let size: f64 = labels.iter().map(|label| f64::from(label[place].abs())).sum();
                assert!(size > 0.1 && sum.abs() < 1e-6 * size, "{sum} of {size}");
            }
        };
        let mut plain: Vec<[f32; 4]> = Vec::new();
        Labels::<4, PLAIN>::label(&local, &rows, &mut plain).unwrap();
        adds_up(&plain.iter().map(|label| &label[PLAIN..]).collect::<Vec<_>>());
        local.weight = Some(&weight);
        let mut full: Vec<[f32; 8]> = Vec::new();
        Labels::<8, FULL>::label(&local, &rows, &mut full).unwrap();
        adds_up(&full.iter().map(|label| &label[FULL..]).collect::<Vec<_>>());
    }
}
