//! Sums of gradients and curvatures by bin of every feature, for the rows of a node.

use super::quantised::{BLOCK_ROWS, unpacked};
use super::tiles::{TILE, Tiles};
use crate::tree::MISSING;

/// Bins that a byte can name.
const N_BINS: usize = 256;

/// Gradient and curvature, whole numbers that floats of 64 bits hold exactly: sums and differences have no rounding.
pub(super) type Sums = [f64; 2];

/// Sums by bin: for every tile, feature after feature, the bins of values and then the missing ones.
pub(super) struct Histogram {
    pub(super) tiles: Vec<Vec<Sums>>,
}

impl Histogram {
    pub(super) fn new(tiles: &Tiles) -> Self {
        let slots = |tile: usize| tiles.n_bins(tile).iter().map(|n_bins| n_bins + 1).sum();
        Self { tiles: (0..tiles.n_tiles()).map(|tile| vec![[0.0; 2]; slots(tile)]).collect() }
    }

    /// Bytes of a histogram of such tiles.
    pub(super) fn bytes(tiles: &Tiles) -> usize {
        let slots: usize =
            (0..tiles.n_tiles()).flat_map(|tile| tiles.n_bins(tile)).map(|n_bins| n_bins + 1).sum();
        slots * size_of::<Sums>()
    }
}

/// The rows of a node.
#[derive(Clone, Copy)]
pub(super) enum NodeRows<'a> {
    /// All rows from the first to the last that is fitted on.
    All,
    /// Some, by number.
    Some(&'a [u32]),
}

/// Room for the sums of one tile, which stays in the nearest cache.
pub(super) struct Room(Box<[[i64; N_BINS]; TILE]>);

impl Room {
    pub(super) fn new() -> Self {
        Self(Box::new([[0; N_BINS]; TILE]))
    }

    /// Adds up the rows of a node in one tile; `packed` are the derivatives of these rows.
    pub(super) fn fill(
        &mut self,
        (words, n_bins): (&[u64], &[usize]),
        rows: NodeRows<'_>,
        packed: &[i64],
        out: &mut [Sums],
    ) {
        out.fill([0.0; 2]);
        for (block, packed) in packed.chunks(BLOCK_ROWS).enumerate() {
            let first = block * BLOCK_ROWS;
            match rows {
                NodeRows::All => self.add(words[first..][..packed.len()].iter().copied(), packed),
                NodeRows::Some(rows) => {
                    let rows = &rows[first..][..packed.len()];
                    self.add(rows.iter().map(|row| words[*row as usize]), packed);
                }
            }
            self.empty(n_bins, out);
        }
    }

    #[inline(always)]
    fn add(&mut self, words: impl Iterator<Item = u64>, packed: &[i64]) {
        let [a, b, c, d, e, f, g, h] = &mut *self.0;
        for (word, own) in words.zip(packed) {
            let [i, j, k, l, m, n, o, p] = word.to_le_bytes().map(usize::from);
            a[i] += own;
            b[j] += own;
            c[k] += own;
            d[l] += own;
            e[m] += own;
            f[n] += own;
            g[o] += own;
            h[p] += own;
        }
    }

    /// Moves what was added to `out`.
    fn empty(&mut self, n_bins: &[usize], out: &mut [Sums]) {
        let mut rest = out;
        for (bins, n_bins) in self.0.iter_mut().zip(n_bins) {
            let (own, others) = rest.split_at_mut(n_bins + 1);
            let (values, missing) = own.split_at_mut(*n_bins);
            for (sums, bin) in values.iter_mut().zip(bins.iter_mut()) {
                add(sums, unpacked(*bin));
                *bin = 0;
            }
            add(&mut missing[0], unpacked(bins[usize::from(MISSING)]));
            bins[usize::from(MISSING)] = 0;
            rest = others;
        }
        // Beyond the last feature all rows are in the first bin.
        self.0.iter_mut().skip(n_bins.len()).for_each(|bins| bins[0] = 0);
    }
}

#[inline(always)]
fn add(sums: &mut Sums, own: Sums) {
    sums[0] += own[0];
    sums[1] += own[1];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;
    use crate::tree::Cuts;

    #[test]
    fn bins_hold_the_sums_of_their_rows() {
        // More rows than a block, a feature with missing values, one that is constant.
        let n_rows = BLOCK_ROWS + 777;
        let value = |row: usize| if row.is_multiple_of(7) { f32::NAN } else { (row % 5) as f32 };
        let x: Vec<f32> = (0..n_rows).flat_map(|row| [value(row), 3.0]).collect();
        let x = DenseRows::new(&x, 2).unwrap();
        let all: Vec<u32> = (0..n_rows as u32).collect();
        let tiles = Tiles::new(&Cuts::learn(&x, &all), &x, &all);
        let packed: Vec<i64> = (0..n_rows as i64).map(|row| ((row % 11 - 5) << 32) + row % 3).collect();
        let mut room = Room::new();
        let some: Vec<u32> = all.iter().copied().filter(|row| row % 2 == 0).collect();
        for rows in [&all, &some] {
            let of_rows: Vec<i64> = rows.iter().map(|row| packed[*row as usize]).collect();
            let mut out = Histogram::new(&tiles).tiles.remove(0);
            let node = if rows.len() == n_rows { NodeRows::All } else { NodeRows::Some(rows) };
            room.fill((tiles.words(0), tiles.n_bins(0)), node, &of_rows, &mut out);
            let mut expected = vec![[0.0; 2]; 8];
            for row in rows {
                let row = *row as usize;
                let slot = if row.is_multiple_of(7) { 5 } else { row % 5 };
                let own = [(row % 11) as f64 - 5.0, (row % 3) as f64];
                add(&mut expected[slot], own);
                add(&mut expected[6], own);
            }
            assert_eq!(out, expected);
        }
    }
}
