//! What rows differ by, as told by members that have not seen them: p₁ = (g(x) − ḡ)ᵀ(h(T) − e_h(x)) of each row and outcome.
//!
//! Taken off the residuals, it leaves averages of policies where they are and takes the differences between rows out of
//! their noise: with ḡ the mean over the very rows that a member holds out, (g − ḡ)ᵀh(t) has mean zero there for every t, and
//! e_h is the same for all t. Under weights 1/π this is the augmented estimator (Robins, Rotnitzky and Zhao 1994), right where
//! either the propensity or the effects of rows are. Rows that no member holds out keep their residuals.

/// Deviations of all rows, row-major, one column per outcome.
pub(super) struct Deviations {
    n_outcomes: usize,
    sums: Vec<f32>,
    /// How many members held each row out.
    counts: Vec<u8>,
}

impl Deviations {
    pub(super) fn new(n_rows: usize, n_outcomes: usize) -> Self {
        Self { n_outcomes, sums: vec![0.0; n_rows * n_outcomes], counts: vec![0; n_rows] }
    }

    /// Adds what a member says of rows that it holds out, one column per outcome.
    pub(super) fn add(&mut self, rows: &[u32], values: impl Iterator<Item = f64>) {
        let mut values = values;
        for row in rows {
            let row = *row as usize;
            self.counts[row] = self.counts[row].saturating_add(1);
            let own = &mut self.sums[row * self.n_outcomes..(row + 1) * self.n_outcomes];
            own.iter_mut().zip(&mut values).for_each(|(sum, value)| *sum += value as f32);
        }
    }

    /// Residuals less `loadings` times the deviations, by outcome and by the outcome that it takes from.
    pub(super) fn taken_off(&self, residual: &[f32], loadings: &[Vec<f64>]) -> Vec<f32> {
        let n = self.n_outcomes;
        let mut left = residual.to_vec();
        for (row, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let own = &self.sums[row * n..(row + 1) * n];
            for (left, loadings) in left[row * n..(row + 1) * n].iter_mut().zip(loadings) {
                let sum: f64 = loadings.iter().zip(own).map(|(loading, own)| loading * f64::from(*own)).sum();
                *left -= (sum / f64::from(*count)) as f32;
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_members_held_out_lose_what_they_say_on_average() {
        let mut deviations = Deviations::new(3, 2);
        deviations.add(&[2, 0], [1.0, 10.0, 2.0, 20.0].into_iter());
        deviations.add(&[2], [3.0, 30.0].into_iter());
        let left = deviations.taken_off(&[5.0; 6], &[vec![1.0, 0.0], vec![0.5, 0.1]]);
        assert_eq!(left, [3.0, 2.0, 5.0, 5.0, 3.0, 2.0]);
    }
}
