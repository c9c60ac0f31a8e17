//! Rows by bin, eight features in a word: one load brings the bins of eight features of a row, whose histograms fit in the
//! nearest cache together.

use rayon::prelude::*;

use crate::checkpoint::hash;
use crate::net::RowSource;
use crate::tree::{Cuts, MISSING};
use crate::{Error, Result};

/// Features in a word.
pub(super) const TILE: usize = 8;
/// Rows that are read at once.
const BLOCK_ROWS: usize = 4096;
/// Windows of a table on disk that its memory budget is worth: two that are held at a time, and as much for the work on them.
const WINDOWS: usize = 4;
/// Bytes of a value as it is read.
const VALUE_BYTES: usize = 4;

/// The bins of some rows.
pub(in crate::nuisance) struct Tiles {
    n_rows: usize,
    /// Tile after tile, a word for each row.
    words: Vec<u64>,
    /// Bins of values of each feature; missing values come after them.
    n_bins: Vec<usize>,
}

impl Tiles {
    /// The bins of some rows of `x`, numbered in their order.
    pub(in crate::nuisance) fn new(cuts: &Cuts, x: &dyn RowSource, rows: &[u32]) -> Self {
        let (n_rows, n_features) = (rows.len(), cuts.n_features());
        let n_tiles = n_features.div_ceil(TILE);
        // Row after row first, since that is how rows are read.
        let mut by_row = vec![0_u64; n_rows * n_tiles];
        let blocks = by_row.par_chunks_mut(BLOCK_ROWS * n_tiles.max(1)).zip(rows.par_chunks(BLOCK_ROWS));
        blocks.for_each(|(words, rows)| {
            let mut values = vec![0.0; rows.len() * n_features];
            let mut bins = vec![0; n_tiles * TILE];
            x.copy_rows(rows, &mut values);
            for (values, words) in
                values.chunks_exact(n_features.max(1)).zip(words.chunks_exact_mut(n_tiles.max(1)))
            {
                cuts.bin_row(values, &mut bins);
                for (word, bins) in words.iter_mut().zip(bins.chunks_exact(TILE)) {
                    *word = bins.iter().rev().fold(0, |word, bin| (word << 8) | u64::from(*bin));
                }
            }
        });
        let mut words = vec![0; n_rows * n_tiles];
        words.par_chunks_mut(n_rows.max(1)).enumerate().for_each(|(tile, column)| {
            let own = by_row.iter().skip(tile).step_by(n_tiles.max(1));
            column.iter_mut().zip(own).for_each(|(out, word)| *out = *word);
        });
        Self { n_rows, words, n_bins: (0..n_features).map(|feature| cuts.n_bins(feature)).collect() }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(super) fn n_features(&self) -> usize {
        self.n_bins.len()
    }

    /// Of the bins of all rows.
    pub(super) fn fingerprint(&self) -> u64 {
        let tiles = (0..self.n_tiles()).into_par_iter().map(|tile| {
            let n_bins: Vec<u64> = self.n_bins(tile).iter().map(|n_bins| *n_bins as u64).collect();
            hash(bytemuck::cast_slice(self.words(tile))) ^ hash(bytemuck::cast_slice(&n_bins))
        });
        let hashes: Vec<u64> = tiles.collect();
        hash(bytemuck::cast_slice(&hashes))
    }

    pub(super) fn n_tiles(&self) -> usize {
        self.n_bins.len().div_ceil(TILE)
    }

    /// The words of a tile, one for each row.
    pub(super) fn words(&self, tile: usize) -> &[u64] {
        &self.words[tile * self.n_rows..][..self.n_rows]
    }

    /// Bins of values of the features of a tile.
    pub(super) fn n_bins(&self, tile: usize) -> &[usize] {
        &self.n_bins[tile * TILE..self.n_bins.len().min((tile + 1) * TILE)]
    }

    /// Whether each row of a node goes left at a split.
    pub(super) fn goes_left(
        &self,
        feature: u32,
        bin: u8,
        missing_left: bool,
    ) -> impl Fn(u32) -> bool + Sync + '_ {
        let (words, shift) = (self.words(feature as usize / TILE), (feature as usize % TILE) * 8);
        move |row| {
            let own = (words[row as usize] >> shift) as u8;
            (own <= bin) | ((own == MISSING) & missing_left)
        }
    }
}

/// Whether the bins of `n_rows` rows fit beside the budget that `x` was read with; the error says what would do. Rows that are
/// in memory as numbers always fit as bins, which take a quarter.
pub(in crate::nuisance) fn room(x: &dyn RowSource, n_rows: usize) -> Result<()> {
    let n_features = x.n_cols();
    if n_features > crate::tree::MOST_FEATURES {
        let most = crate::tree::MOST_FEATURES;
        let error = Error::input(format!(
            "{n_features} encoded features are more than the {most} that trees can hold"
        ));
        return Err(error.hint("leave some out with ‹exclude›, or use ‹outcome_model=mlp›"));
    }
    let Some(window_rows) = x.window_rows() else { return Ok(()) };
    // While they are made, words are there twice.
    let needed = 2 * n_rows.saturating_mul(n_features.div_ceil(TILE) * TILE);
    let at_hand = WINDOWS.saturating_mul(window_rows).saturating_mul(n_features * VALUE_BYTES);
    if needed <= at_hand {
        return Ok(());
    }
    let [needed, at_hand] = [needed, at_hand].map(|bytes| bytes.div_ceil(1 << 20));
    let error = Error::input(format!(
        "boosted trees need {needed} MiB for the bins of {n_rows} rows, and the memory budget leaves about {at_hand} MiB"
    ));
    Err(error.hint("raise ‹memory›, or use ‹outcome_model=mlp›, which reads rows from disk as it goes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;

    #[test]
    fn words_hold_the_bins_of_rows() {
        let x: Vec<f32> = (0..5 * 11).map(|i| ((i * 7) % 13) as f32).collect();
        let x = DenseRows::new(&x, 11).unwrap();
        let cuts = Cuts::learn(&x, &[0, 1, 2, 3, 4]);
        let tiles = Tiles::new(&cuts, &x, &[4, 2, 0]);
        assert_eq!((tiles.n_rows(), tiles.n_tiles(), tiles.n_bins(1).len()), (3, 2, 3));
        let (mut values, mut bins) = ([0.0; 11], [0; 11]);
        for (place, row) in [4, 2, 0].into_iter().enumerate() {
            x.copy_rows(&[row], &mut values);
            cuts.bin_row(&values, &mut bins);
            for (feature, bin) in bins.iter().enumerate() {
                let found = (tiles.words(feature / 8)[place] >> (8 * (feature % 8))) as u8;
                assert_eq!(found, *bin);
                assert!(tiles.goes_left(feature as u32, *bin, false)(place as u32));
                assert!(*bin == 0 || !tiles.goes_left(feature as u32, bin - 1, false)(place as u32));
            }
        }
    }

    /// Rows of which few may be in memory.
    struct OnDisk(usize, usize);

    impl RowSource for OnDisk {
        fn n_rows(&self) -> usize {
            self.0
        }

        fn n_cols(&self) -> usize {
            20
        }

        fn copy_rows(&self, _: &[u32], out: &mut [f32]) {
            out.fill(0.0);
        }

        fn window_rows(&self) -> Option<usize> {
            Some(self.1)
        }
    }

    #[test]
    fn bins_that_do_not_fit_are_told() {
        assert!(room(&OnDisk(1_000_000, 200_000), 1_000_000).is_ok());
        let error = room(&OnDisk(10_000_000, 200_000), 10_000_000).unwrap_err();
        assert!(error.to_string().contains("boosted trees need 458 MiB"), "{error}");
        assert!(error.hint_text().unwrap().contains("`memory`"));
    }
}
