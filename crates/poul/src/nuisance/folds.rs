//! Folds of rows, by cluster where there are clusters.

use rand::seq::SliceRandom;

use crate::Seed;

/// Which fold each row belongs to.
#[derive(Clone, Debug)]
pub struct Folds {
    /// Fold of each row, from 0.
    pub of_row: Vec<u32>,
    /// Number of folds.
    pub n_folds: usize,
}

impl Folds {
    /// Deals units (clusters, or rows) out to `n_folds` folds at random, equally many units each.
    pub fn deal(n_rows: usize, cluster: Option<&[u32]>, n_folds: usize, seed: Seed) -> Self {
        let n_units = match cluster {
            Some(cluster) => cluster.iter().max().map_or(0, |last| *last as usize + 1),
            None => n_rows,
        };
        let mut of_unit: Vec<u32> = (0..n_units).map(|unit| (unit % n_folds.max(1)) as u32).collect();
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
        }
    }
}
