//! Sums by cluster, squared: variances and covariances of means of rows whose errors are related within clusters.

use rayon::prelude::*;

/// Clusters of a part of the work. Part of the result: sums are taken part by part.
const PART_UNITS: usize = 1 << 14;
/// Comparisons are summed for so many units at a time.
const BLOCK_UNITS: usize = 64;

/// Rows by cluster; each row is one where there are no clusters.
pub(super) struct Units {
    n_rows: usize,
    /// Rows in the order of their clusters, and where each cluster begins.
    clusters: Option<(Vec<u32>, Vec<usize>)>,
}

impl Units {
    /// Sorts rows by cluster. Codes are any numbers.
    pub(super) fn new(n_rows: usize, cluster: Option<&[u32]>) -> Self {
        let clusters = cluster.map(|cluster| {
            let mut rows: Vec<u32> = (0..n_rows as u32).collect();
            rows.sort_by_key(|row| cluster[*row as usize]);
            let code = |place: usize| cluster[rows[place] as usize];
            let starts = (0..n_rows).filter(|place| *place == 0 || code(*place) != code(place - 1)).collect();
            (rows, starts)
        });
        Self { n_rows, clusters }
    }

    /// Whether rows are related within clusters.
    pub(super) fn has_clusters(&self) -> bool {
        self.clusters.is_some()
    }

    /// How many clusters, or rows.
    pub(super) fn n_units(&self) -> usize {
        self.clusters.as_ref().map_or(self.n_rows, |(_, starts)| starts.len())
    }

    /// The variance of Σ value over all rows.
    pub(super) fn variance(&self, value: impl Fn(usize) -> f64) -> SumVariance {
        let found = self.variances(&vec![0; self.n_rows], 1, |row| Some(value(row)));
        found.first().copied().unwrap_or_else(|| Powers::default().variance())
    }

    /// For each group the variance of Σ value over its rows; rows without a value do not count.
    pub(super) fn variances(
        &self,
        of_row: &[u16],
        n_groups: usize,
        value: impl Fn(usize) -> Option<f64>,
    ) -> Vec<SumVariance> {
        let mut powers = vec![Powers::default(); n_groups];
        if self.clusters.is_none() {
            for (row, group) in of_row.iter().enumerate() {
                let Some(value) = value(row) else { continue };
                powers[usize::from(*group)].add(value);
            }
        } else {
            let mut sums = vec![0.0; n_groups];
            let mut is_met = vec![false; n_groups];
            let mut met: Vec<usize> = Vec::new();
            for unit in 0..self.n_units() {
                self.each_row(unit, |row| {
                    let Some(value) = value(row) else { return };
                    let group = usize::from(of_row[row]);
                    if !std::mem::replace(&mut is_met[group], true) {
                        met.push(group);
                    }
                    sums[group] += value;
                });
                for group in met.drain(..) {
                    powers[group].add(std::mem::take(&mut sums[group]));
                    is_met[group] = false;
                }
            }
        }
        powers.iter().map(Powers::variance).collect()
    }

    /// Σ over units of the products of their sums, for each pair of `n` comparisons, n × n.
    pub(super) fn covariance(&self, n: usize, value: impl Fn(usize, usize) -> f64 + Sync) -> Vec<f64> {
        let n_units = self.n_units();
        let part = |first: usize| {
            let mut products = vec![0.0; n * n];
            let last = n_units.min(first + PART_UNITS);
            let mut sums = vec![0.0; BLOCK_UNITS * n];
            for block in (first..last).step_by(BLOCK_UNITS) {
                let n_block = BLOCK_UNITS.min(last - block);
                sums.fill(0.0);
                // Column after column: each comparison reads columns of its own.
                for comparison in 0..n {
                    for unit in 0..n_block {
                        self.each_row(block + unit, |row| {
                            sums[unit * n + comparison] += value(comparison, row);
                        });
                    }
                }
                for sums in sums.chunks_exact(n).take(n_block) {
                    for (own, products) in sums.iter().zip(products.chunks_exact_mut(n)) {
                        products.iter_mut().zip(sums).for_each(|(product, other)| *product += own * other);
                    }
                }
            }
            products
        };
        if n == 0 {
            return Vec::new();
        }
        let starts: Vec<usize> = (0..n_units).step_by(PART_UNITS).collect();
        let parts: Vec<Vec<f64>> = starts.into_par_iter().map(part).collect();
        let mut total = vec![0.0; n * n];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        total
    }

    #[inline]
    fn each_row(&self, unit: usize, mut act: impl FnMut(usize)) {
        match &self.clusters {
            None => act(unit),
            Some((rows, starts)) => {
                let end = starts.get(unit + 1).copied().unwrap_or(rows.len());
                rows[starts[unit]..end].iter().for_each(|row| act(*row as usize));
            }
        }
    }
}

/// The variance of a sum over units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SumVariance {
    pub(super) variance: f64,
    pub(super) n_units: usize,
    /// How well the variance itself is known, as degrees of freedom of a χ² (Satterthwaite): as many as there are units where
    /// values are normal, few where a few large values make most of it.
    pub(super) degrees: f64,
}

/// Sums of powers of the units' values.
#[derive(Clone, Copy, Default)]
struct Powers {
    n_units: usize,
    squares: f64,
    fourths: f64,
}

impl Powers {
    fn add(&mut self, value: f64) {
        let square = value * value;
        self.n_units += 1;
        self.squares += square;
        self.fourths += square * square;
    }

    fn variance(&self) -> SumVariance {
        let n = self.n_units as f64;
        // The variance of Σ v², estimated; 2/degrees is that of Σ v² over its mean.
        let spread = self.fourths - self.squares * self.squares / n.max(1.0);
        let degrees = if spread > 0.0 { 2.0 * self.squares * self.squares / spread } else { f64::INFINITY };
        SumVariance { variance: self.squares * correction(self.n_units), n_units: self.n_units, degrees }
    }
}

/// C/(C − 1).
fn correction(n_units: usize) -> f64 {
    if n_units > 1 { n_units as f64 / (n_units as f64 - 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_summed_before_they_are_squared() {
        let values = [1.0, 2.0, -3.0, 4.0, 0.5];
        let groups = [0, 0, 1, 1, 0];
        let plain = |found: &[SumVariance]| -> Vec<(f64, usize)> {
            found.iter().map(|own| (own.variance, own.n_units)).collect()
        };
        let rows = Units::new(5, None).variances(&groups, 2, |row| Some(values[row]));
        assert_eq!(plain(&rows), [((1.0 + 4.0 + 0.25) * 1.5, 3), ((9.0 + 16.0) * 2.0, 2)]);
        let units = Units::new(5, Some(&[7, 3, 7, 3, 7]));
        let clusters = units.variances(&groups, 2, |row| Some(values[row]));
        assert_eq!(plain(&clusters), [((2.25 + 4.0) * 2.0, 2), ((9.0 + 16.0) * 2.0, 2)]);
        // One cluster for each row is none.
        let own = Units::new(5, Some(&[4, 0, 2, 1, 3])).variances(&groups, 2, |row| Some(values[row]));
        assert_eq!(own, rows);
    }

    #[test]
    fn large_values_leave_few_degrees_of_freedom() {
        let degrees = |value: &dyn Fn(usize) -> f64| {
            Units::new(2_000, None).variances(&[0; 2_000], 1, |row| Some(value(row)))[0].degrees
        };
        // Quantiles of a normal distribution, then the same with ten rows out of 2,000 that are thirty times as large.
        let normal = |row: usize| crate::stats::normal_quantile((row as f64 + 0.5) / 2_000.0);
        let heavy = |row: usize| normal(row) * if row.is_multiple_of(200) { 30.0 } else { 1.0 };
        assert!((1_800.0..2_300.0).contains(&degrees(&normal)), "{}", degrees(&normal));
        assert!((2.0..30.0).contains(&degrees(&heavy)), "{}", degrees(&heavy));
    }

    #[test]
    fn covariances_do_not_depend_on_blocks() {
        let n_rows = 3 * PART_UNITS / 2;
        let cluster: Vec<u32> = (0..n_rows as u32).map(|row| row / 2).collect();
        let value = |comparison: usize, row: usize| ((row * 31 + comparison * 17) % 101) as f64 - 50.0;
        for cluster in [None, Some(cluster.as_slice())] {
            let found = Units::new(n_rows, cluster).covariance(3, value);
            let size = if cluster.is_some() { 2 } else { 1 };
            for (a, b) in [(0, 0), (0, 2), (1, 2), (2, 1)] {
                let sum = |comparison, unit: usize| -> f64 {
                    (unit * size..(unit + 1) * size).map(|row| value(comparison, row)).sum()
                };
                let expected: f64 = (0..n_rows / size).map(|unit| sum(a, unit) * sum(b, unit)).sum();
                assert!((found[a * 3 + b] - expected).abs() < 1e-6 * expected.abs().max(1.0));
            }
        }
    }
}
