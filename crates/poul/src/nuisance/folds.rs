//! Folds of rows, by cluster where there are clusters (the cross-fitting of Algorithm 2 in the paper).

use rand::seq::SliceRandom;

use crate::{Error, Result, Seed};

/// Which fold each row belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds {
    /// Fold of each row, from 0.
    pub of_row: Vec<u32>,
    /// Number of folds. With one, models are fitted and applied on the same rows: Algorithm 1 of the paper.
    pub n_folds: usize,
}

impl Folds {
    /// Deals units (clusters, or rows) out to `n_folds` folds at random, equally many units each; 0 counts as 1.
    pub fn deal(n_rows: usize, cluster: Option<&[u32]>, n_folds: usize, seed: Seed) -> Self {
        let n_folds = n_folds.max(1);
        let n_units = match cluster {
            Some(cluster) => cluster.iter().max().map_or(0, |last| *last as usize + 1),
            None => n_rows,
        };
        let mut of_unit: Vec<u32> = (0..n_units).map(|unit| (unit % n_folds) as u32).collect();
        of_unit.shuffle(&mut seed.child("folds").rng());
        let of_row = match cluster {
            Some(cluster) => cluster.iter().map(|unit| of_unit[*unit as usize]).collect(),
            None => of_unit,
        };
        Self { of_row, n_folds }
    }

    /// The rows of one fold.
    pub fn rows(&self, fold: usize) -> Vec<u32> {
        (0..self.of_row.len() as u32).filter(|row| self.of_row[*row as usize] as usize == fold).collect()
    }

    /// The rows of all folds but one.
    pub fn rest(&self, fold: usize) -> Vec<u32> {
        (0..self.of_row.len() as u32).filter(|row| self.of_row[*row as usize] as usize != fold).collect()
    }

    /// The rows that the model of a fold is fitted on: the rest, or all where there is one fold.
    pub(crate) fn training(&self, fold: usize) -> Vec<u32> {
        if self.n_folds == 1 { self.rows(fold) } else { self.rest(fold) }
    }

    /// Checks that there are as many rows as in the data, that folds are numbered below [`n_folds`](Self::n_folds),
    /// and that every fold leaves rows to fit on.
    pub fn check(&self, n_rows: usize) -> Result<()> {
        if self.of_row.len() != n_rows {
            let n_given = self.of_row.len();
            return Err(Error::other(format!("folds of {n_given} rows for a table of {n_rows}")));
        }
        if let Some(fold) = self.of_row.iter().find(|fold| **fold as usize >= self.n_folds) {
            return Err(Error::other(format!("a row in fold {fold} of {}", self.n_folds)));
        }
        let first = self.of_row.first();
        if self.n_folds > 1 && self.of_row.iter().all(|fold| Some(fold) == first) {
            let error =
                Error::input(format!("{} folds of a single unit leave no rows to fit on", self.n_folds));
            return Err(error.hint("set the number of folds to 1, or check the cluster column"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_stay_together_and_folds_are_even() {
        let cluster: Vec<u32> = (0..900).map(|row| row / 3).collect();
        let folds = Folds::deal(900, Some(&cluster), 3, Seed::new(1));
        for rows in folds.of_row.chunks(3) {
            assert!(rows.iter().all(|fold| *fold == rows[0]));
        }
        for fold in 0..3 {
            assert_eq!(folds.rows(fold).len(), 300);
            assert_eq!(folds.rest(fold).len(), 600);
            assert_eq!(folds.training(fold), folds.rest(fold));
        }
        assert!(folds.check(900).is_ok());
        assert_ne!(folds, Folds::deal(900, Some(&cluster), 3, Seed::new(2)));
    }

    #[test]
    fn one_fold_is_fitted_on_itself() {
        let folds = Folds::deal(10, None, 1, Seed::new(1));
        assert_eq!((folds.rows(0), folds.training(0)), ((0..10).collect(), (0..10).collect()));
        assert_eq!(Folds::deal(10, None, 0, Seed::new(1)), folds);
    }

    #[test]
    fn folds_that_do_not_fit_are_told() {
        let folds = Folds::deal(10, None, 3, Seed::new(1));
        assert!(folds.check(11).is_err());
        assert!(Folds { of_row: vec![0, 3], n_folds: 3 }.check(2).is_err());
        let one_unit = Folds::deal(10, Some(&[0; 10]), 3, Seed::new(1));
        assert!(one_unit.check(10).unwrap_err().hint_text().is_some());
    }
}
