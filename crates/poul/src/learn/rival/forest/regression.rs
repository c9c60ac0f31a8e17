//! Regression forests for the nuisances: of an outcome, or of the columns of a treatment, predicted out of bag.

use rayon::prelude::*;

use super::bins::Bins;
use super::grow::{Limits, Sample, grow};
use super::kept::Groups;
use super::moments::{FULL, Labels, Least, Moments};
use super::sampling::{Sampling, Units};
use crate::checkpoint::NOT_KEPT;
use crate::tree::Tree;
use crate::{Result, Run};

/// Rows that walk down the trees together.
const BLOCK_ROWS: usize = 512;

/// A regression forest to be grown.
#[derive(Clone, Copy)]
pub(super) struct Regression<'a> {
    pub(super) bins: &'a Bins,
    pub(super) units: &'a Units,
    /// Row-major, `width` numbers each row.
    pub(super) target: &'a [f32],
    pub(super) width: usize,
    pub(super) weight: Option<&'a [f32]>,
    pub(super) n_trees: usize,
    pub(super) fraction: f64,
    pub(super) honesty: f64,
    pub(super) limits: Limits,
    pub(super) min_leaf: usize,
    pub(super) imbalance: f64,
}

impl Regression<'_> {
    /// For each row and number, the mean over the trees that did not see the row.
    pub(super) fn out_of_bag(&self, run: Run<'_>, stage: &str) -> Result<Vec<f32>> {
        match self.width {
            1 => self.run::<4>(run, stage),
            2..=5 => self.run::<8>(run, stage),
            6..=9 => self.run::<12>(run, stage),
            _ => self.run::<20>(run, stage),
        }
    }

    fn run<const E: usize>(&self, run: Run<'_>, stage: &str) -> Result<Vec<f32>> {
        let criterion = Moments::<E, FULL, _>(*self);
        // Honest leaves matter though predictions are out of bag: where splits chase noise, leaves that share it carry it
        // into residuals, and noise in the expected treatment shrinks effects.
        let sampling = Sampling { fraction: self.fraction, honesty: self.honesty, group_trees: 1 };
        let groups = Groups::new((self.n_trees, 1), &criterion, (self.bins, self.weight), run);
        let entry = groups.entry_of("out-of-bag");
        if let Some(predicted) = self.kept(run, &entry)? {
            return Ok(predicted);
        }
        run.progress.start(stage, "trees", Some(self.n_trees as u64));
        let draw =
            |number: u64| self.units.draw(sampling, run.seed.index(number).child("sample")).swap_remove(0);
        let fresh = |number: u64| {
            let sample = draw(number);
            let seen = self.seen(&sample);
            let rng = run.seed.index(number).child("splits").rng();
            let tree = grow(self.bins, &criterion, sample, self.limits, rng);
            run.progress.advance(1);
            Ok((vec![tree], seen))
        };
        let trees = groups.grow(fresh, |number| self.seen(&draw(number)))?;
        run.progress.finish();
        let mut predicted = vec![0.0; self.target.len()];
        let blocks = predicted.par_chunks_mut(BLOCK_ROWS * self.width).enumerate();
        let mean = self.mean();
        blocks.for_each(|(block, out)| self.predict(&trees, &mean, block * BLOCK_ROWS, out));
        if let Some(checkpoint) = run.checkpoint {
            // Predictions are much smaller than the trees that they come from.
            let bytes: Vec<u8> = predicted.iter().flat_map(|value| value.to_le_bytes()).collect();
            let kept = checkpoint.put(&entry, &bytes).and_then(|()| groups.forget());
            if let Err(error) = kept {
                run.progress.warn(&format!("{error}; the work goes on, and {NOT_KEPT}"));
            }
        }
        Ok(predicted)
    }

    /// What was predicted before the work was stopped.
    fn kept(&self, run: Run<'_>, entry: &str) -> Result<Option<Vec<f32>>> {
        let Some(checkpoint) = run.checkpoint else { return Ok(None) };
        let Some(bytes) = checkpoint.get(entry)? else { return Ok(None) };
        let (values, rest) = bytes.as_chunks::<4>();
        let predicted: Vec<f32> = values.iter().map(|value| f32::from_le_bytes(*value)).collect();
        let is_whole = rest.is_empty() && predicted.len() == self.target.len();
        match is_whole && predicted.iter().all(|value| value.is_finite()) {
            true => Ok(Some(predicted)),
            false => Err(checkpoint.damaged_entry(entry)),
        }
    }

    /// A bit for each row, set where the sample has it.
    fn seen(&self, sample: &Sample) -> Vec<u64> {
        let mut seen = vec![0_u64; self.bins.n_rows().div_ceil(64)];
        let rows = sample.split.iter().chain(sample.estimate.iter().flatten());
        rows.for_each(|row| seen[*row as usize / 64] |= 1 << (row % 64));
        seen
    }

    fn predict(&self, trees: &[(Vec<Tree>, Vec<u64>)], mean: &[f64], first: usize, out: &mut [f32]) {
        let (width, n_rows) = (self.width, out.len() / self.width);
        let rows = self.bins.rows(first..first + n_rows);
        let mut sums = vec![0.0_f64; out.len()];
        let mut counts = vec![0_u32; n_rows];
        let mut leaves = vec![0_u32; n_rows];
        for (tree, seen) in trees.iter().flat_map(|(trees, seen)| trees.iter().map(move |tree| (tree, seen)))
        {
            tree.leaves_of(rows, self.bins.n_features(), &mut leaves);
            for (row, leaf) in leaves.iter().enumerate() {
                let number = first + row;
                if (seen[number / 64] >> (number % 64)) & 1 == 0 {
                    let values = &tree.leaves[*leaf as usize * width..][..width];
                    let sums = &mut sums[row * width..][..width];
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
                    counts[row] += 1;
                }
            }
        }
        for ((out, sums), count) in out.chunks_mut(width).zip(sums.chunks(width)).zip(counts) {
            for ((out, sum), mean) in out.iter_mut().zip(sums).zip(mean) {
                // A row that every tree saw is predicted by the mean.
                *out = if count > 0 { (sum / f64::from(count)) as f32 } else { *mean as f32 };
            }
        }
    }

    /// The weighted mean of all rows.
    fn mean(&self) -> Vec<f64> {
        let rows: Vec<u32> = (0..self.bins.n_rows() as u32).collect();
        self.mean_of(&rows)
    }

    fn mean_of(&self, rows: &[u32]) -> Vec<f64> {
        let mut sums = vec![0.0; self.width];
        let mut mass = 0.0;
        for row in rows {
            let weight = self.weight_of(*row);
            mass += weight;
            let target = &self.target[*row as usize * self.width..][..self.width];
            sums.iter_mut().zip(target).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        }
        sums.iter_mut().for_each(|sum| *sum /= mass);
        sums
    }

    fn weight_of(&self, row: u32) -> f64 {
        self.weight.map_or(1.0, |weight| f64::from(weight[row as usize]))
    }
}

impl<const E: usize> Labels<E, FULL> for Regression<'_> {
    fn label(&self, rows: &[u32], out: &mut Vec<[f32; E]>) -> Option<Least> {
        let least = (self.imbalance * rows.len() as f64).ceil().max(self.min_leaf as f64);
        if (rows.len() as f64) < 2.0 * least {
            return None;
        }
        let mut mean = [0.0_f64; E];
        mean[..self.width].copy_from_slice(&self.mean_of(rows));
        out.extend(rows.iter().map(|row| {
            let weight = self.weight_of(*row) as f32;
            let mut label = [0.0; E];
            (label[0], label[2]) = (1.0, weight);
            let target = &self.target[*row as usize * self.width..][..self.width];
            for ((label, value), mean) in label[FULL..].iter_mut().zip(target).zip(&mean) {
                *label = weight * (f64::from(*value) - mean) as f32;
            }
            label
        }));
        Some(Least { rows: least, of_each: 0.0 })
    }

    fn leaf(&self, rows: &[u32], out: &mut Vec<f32>) {
        out.extend(self.mean_of(rows).iter().map(|mean| *mean as f32));
    }
}
