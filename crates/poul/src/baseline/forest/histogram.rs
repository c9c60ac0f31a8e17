//! The best split of a node, feature by feature: rows are added up by bin, then every cut between bins is scored.
//!
//! Nodes with few rows touch few bins, which a mask remembers: the cost of a node follows its rows, not the bins.

use super::bins::MISSING;
use super::criterion::Criterion;

const N_BINS: usize = 256;
/// Nodes below this size remember which bins they touched.
const SMALL_NODE: usize = 512;
/// Bins are emptied into 64-bit sums after so many rows.
const FLUSH_ROWS: usize = 8192;
/// A split must be better than the last by more than rounding: features that part a small node the same way tie
/// whatever the rounding, and the first drawn wins.
const CLEARLY_BETTER: f64 = 1.0 + 1e-5;

/// A split that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) feature: u32,
    /// The last bin that goes left.
    pub(super) bin: u8,
    /// Where missing values go, if the node has any.
    pub(super) missing_left: Option<bool>,
    pub(super) score: f64,
}

/// Room for the bins of one feature, reused for all nodes of a tree.
pub(super) struct Histogram<C: Criterion> {
    bins: Box<[C::Bin; N_BINS]>,
    sides: Vec<C::Side>,
}

impl<C: Criterion> Histogram<C> {
    pub(super) fn new() -> Self {
        Self { bins: Box::new([C::EMPTY_BIN; N_BINS]), sides: Vec::new() }
    }

    /// Compares the best split on one feature with the best so far. `labels` are of `rows`.
    pub(super) fn offer(
        &mut self,
        criterion: &C,
        node: &C::Node,
        (feature, column): (u32, &[u8]),
        (rows, labels): (&[u32], &[C::Row]),
        best: &mut Option<Split>,
    ) {
        let mut search = Search { criterion, node, feature, best };
        if rows.len() < SMALL_NODE {
            let touched = self.fill_few(column, rows, labels);
            let bins = &mut self.bins;
            let mut take = |bin: usize| {
                let mut side = C::EMPTY_SIDE;
                C::gather(&mut side, &bins[bin]);
                bins[bin] = C::EMPTY_BIN;
                side
            };
            let missing = (touched[3] >> 63 == 1).then(|| take(usize::from(MISSING)));
            let [a, b, c, d] = touched;
            let words = [a, b, c, d & !(1 << 63)];
            let set = (0..4).flat_map(|word| SetBits(words[word]).map(move |bit| word * 64 + bit));
            search.run(missing, set.map(|bin| (bin, take(bin))));
        } else {
            self.fill_many(column, rows, labels);
            let sides = &self.sides;
            let missing = Some(sides[usize::from(MISSING)]).filter(|side| C::count(side) > 0.0);
            let used = (0..usize::from(MISSING)).filter(|bin| C::count(&sides[*bin]) > 0.0);
            search.run(missing, used.map(|bin| (bin, sides[bin])));
        }
    }

    /// Adds rows up and returns which bins were touched.
    fn fill_few(&mut self, column: &[u8], rows: &[u32], labels: &[C::Row]) -> [u64; 4] {
        let mut touched = [0_u64; 4];
        for (row, label) in rows.iter().zip(labels) {
            let bin = column[*row as usize];
            C::add(&mut self.bins[usize::from(bin)], label);
            touched[usize::from(bin >> 6)] |= 1 << (bin & 63);
        }
        touched
    }

    /// Adds rows up into 64-bit sums, by way of the bins.
    fn fill_many(&mut self, column: &[u8], rows: &[u32], labels: &[C::Row]) {
        self.sides.clear();
        self.sides.resize(N_BINS, C::EMPTY_SIDE);
        for (rows, labels) in rows.chunks(FLUSH_ROWS).zip(labels.chunks(FLUSH_ROWS)) {
            for (row, label) in rows.iter().zip(labels) {
                C::add(&mut self.bins[usize::from(column[*row as usize])], label);
            }
            for (bin, side) in self.bins.iter_mut().zip(&mut self.sides) {
                C::gather(side, bin);
                *bin = C::EMPTY_BIN;
            }
        }
    }
}

/// The bits that are set in a word, lowest first.
struct SetBits(u64);

impl Iterator for SetBits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

struct Search<'a, C: Criterion> {
    criterion: &'a C,
    node: &'a C::Node,
    feature: u32,
    best: &'a mut Option<Split>,
}

impl<C: Criterion> Search<'_, C> {
    /// Scores the cut between every two neighbouring bins with rows; missing values go to either side.
    fn run(&mut self, missing: Option<C::Side>, bins: impl Iterator<Item = (usize, C::Side)>) {
        let mut left = C::EMPTY_SIDE;
        let mut previous = None;
        for (bin, side) in bins {
            if let Some(previous) = previous {
                // Halfway between the two: rows elsewhere fall on the nearer side.
                let cut = usize::midpoint(previous, bin) as u8;
                match &missing {
                    None => self.score(&left, cut, None),
                    Some(missing) => {
                        self.score(&left, cut, Some(false));
                        let mut with = left;
                        C::merge(&mut with, missing);
                        self.score(&with, cut, Some(true));
                    }
                }
            }
            C::merge(&mut left, &side);
            previous = Some(bin);
        }
        if missing.is_some() && previous.is_some() {
            self.score(&left, MISSING - 1, Some(false));
        }
    }

    fn score(&mut self, left: &C::Side, bin: u8, missing_left: Option<bool>) {
        let least = self.best.as_ref().map_or(0.0, |best| best.score * CLEARLY_BETTER);
        if let Some(score) = self.criterion.score(self.node, left, least) {
            *self.best = Some(Split { feature: self.feature, bin, missing_left, score });
        }
    }
}
