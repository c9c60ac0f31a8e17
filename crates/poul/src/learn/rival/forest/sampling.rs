//! Which rows a tree sees: units (clusters, or rows) drawn without replacement, in groups that share a half-sample so
//! that variances can be told apart (Athey, Tibshirani and Wager 2019, sec. 4.1).

use rand::seq::SliceRandom;

use super::grow::Sample;
use crate::Seed;
use crate::seed::Rng;

/// What is drawn: clusters, or rows where there are none.
pub(super) struct Units {
    n_rows: usize,
    n_units: usize,
    of_row: Option<Vec<u32>>,
}

/// How samples are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// Share of the units in a sample.
    pub(super) fraction: f64,
    /// Share of a sample that chooses splits; 0: all rows do, and fill leaves too.
    pub(super) honesty: f64,
    /// Trees that share a half-sample; 1: each draws from all units.
    pub(super) group_trees: usize,
}

impl Units {
    /// The units of some rows; `cluster` is that of all rows.
    pub(super) fn new(rows: &[u32], cluster: Option<&[u32]>) -> Self {
        let Some(cluster) = cluster else {
            return Self { n_rows: rows.len(), n_units: rows.len(), of_row: None };
        };
        let mut codes: Vec<u32> = rows.iter().map(|row| cluster[*row as usize]).collect();
        codes.sort_unstable();
        codes.dedup();
        let unit = |row: &u32| codes.partition_point(|code| *code < cluster[*row as usize]) as u32;
        let of_row = rows.iter().map(unit).collect();
        Self { n_rows: rows.len(), n_units: codes.len(), of_row: Some(of_row) }
    }

    pub(super) fn n_units(&self) -> usize {
        self.n_units
    }

    /// The samples of one group of trees.
    pub(super) fn draw(&self, sampling: Sampling, seed: Seed) -> Vec<Sample> {
        let mut rng = seed.rng();
        let mut pool: Vec<u32> = (0..self.n_units as u32).collect();
        if sampling.group_trees > 1 {
            let (half, _) = pool.partial_shuffle(&mut rng, self.n_units.div_ceil(2));
            pool = half.to_vec();
        }
        let n_drawn = (sampling.fraction * self.n_units as f64).round() as usize;
        let n_drawn = n_drawn.max(2).min(pool.len());
        (0..sampling.group_trees)
            .map(|_| self.sample(&mut pool, n_drawn, sampling.honesty, &mut rng))
            .collect()
    }

    fn sample(&self, pool: &mut [u32], n_drawn: usize, honesty: f64, rng: &mut Rng) -> Sample {
        let (drawn, _) = pool.partial_shuffle(rng, n_drawn);
        if honesty <= 0.0 || n_drawn < 2 {
            return Sample { split: self.rows_of(drawn), estimate: None };
        }
        let n_split = ((honesty * n_drawn as f64).ceil() as usize).clamp(1, n_drawn - 1);
        let (split, estimate) = drawn.split_at(n_split);
        Sample { split: self.rows_of(split), estimate: Some(self.rows_of(estimate)) }
    }

    /// The rows of units, ascending.
    fn rows_of(&self, units: &[u32]) -> Vec<u32> {
        let mut is_drawn = vec![false; self.n_units];
        units.iter().for_each(|unit| is_drawn[*unit as usize] = true);
        let unit = |row: u32| self.of_row.as_ref().map_or(row, |of_row| of_row[row as usize]) as usize;
        (0..self.n_rows as u32).filter(|row| is_drawn[unit(*row)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_stay_together_and_groups_share_a_half() {
        let rows: Vec<u32> = (0..400).collect();
        let cluster: Vec<u32> = rows.iter().map(|row| 7 + row / 4).collect();
        let units = Units::new(&rows, Some(&cluster));
        assert_eq!(units.n_units(), 100);
        let sampling = Sampling { fraction: 0.4, honesty: 0.5, group_trees: 2 };
        let samples = units.draw(sampling, Seed::new(1));
        let mut seen = [false; 100];
        for sample in &samples {
            let estimate = sample.estimate.as_ref().unwrap();
            assert_eq!((sample.split.len(), estimate.len()), (80, 80));
            for part in [&sample.split, estimate] {
                for rows in part.chunks(4) {
                    assert!(rows[0] % 4 == 0 && rows.windows(2).all(|pair| pair[1] == pair[0] + 1));
                    seen[rows[0] as usize / 4] = true;
                }
            }
            assert!(sample.split.iter().all(|row| !estimate.contains(row)));
        }
        let n_seen = seen.iter().filter(|seen| **seen).count();
        assert!((41..=50).contains(&n_seen), "{n_seen} of a half-sample of 50");
    }
}
