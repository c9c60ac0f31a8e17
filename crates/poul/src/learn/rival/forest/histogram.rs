//! The best split of a node, feature by feature: rows are added up by bin, then every cut between bins is scored.
//!
//! Nodes with few rows touch few bins, which a mask remembers: the cost of a node follows its rows, not the bins.

use super::criterion::Criterion;
use crate::dispatch::wide;
use crate::tree::MISSING;

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

    /// Compares the best split on one feature with the best so far. `labels` are of the rows whose bins are given.
    pub(super) fn offer(
        &mut self,
        criterion: &C,
        node: &C::Node,
        (feature, row_bins): (u32, impl Iterator<Item = u8>),
        labels: &[C::Row],
        best: &mut Option<Split>,
    ) {
        let search = Search { criterion, node, feature, best };
        if labels.len() < SMALL_NODE {
            wide(search_few, (self, row_bins, labels, search));
        } else {
            wide(search_many, (self, row_bins, labels, search));
        }
    }

    /// Adds rows up and returns which bins were touched.
    #[inline(always)]
    fn fill_few(&mut self, row_bins: impl Iterator<Item = u8>, labels: &[C::Row]) -> [u64; 4] {
        let mut touched = [0_u64; 4];
        for (bin, label) in row_bins.zip(labels) {
            C::add(&mut self.bins[usize::from(bin)], label);
            touched[usize::from(bin >> 6)] |= 1 << (bin & 63);
        }
        touched
    }

    /// Adds rows up into 64-bit sums, by way of the bins.
    #[inline(always)]
    fn fill_many(&mut self, mut row_bins: impl Iterator<Item = u8>, labels: &[C::Row]) {
        self.sides.clear();
        self.sides.resize(N_BINS, C::EMPTY_SIDE);
        for labels in labels.chunks(FLUSH_ROWS) {
            for (label, bin) in labels.iter().zip(&mut row_bins) {
                C::add(&mut self.bins[usize::from(bin)], label);
            }
            for (bin, side) in self.bins.iter_mut().zip(&mut self.sides) {
                C::gather(side, bin);
                *bin = C::EMPTY_BIN;
            }
        }
    }
}

/// A histogram, the bins of rows and their labels, and the search that they are for.
type Task<'a, C, I> = (&'a mut Histogram<C>, I, &'a [<C as Criterion>::Row], Search<'a, C>);

#[inline(always)]
fn search_few<C: Criterion, I: Iterator<Item = u8>>(task: Task<'_, C, I>) {
    let (histogram, row_bins, labels, mut search) = task;
    let touched = histogram.fill_few(row_bins, labels);
    let bins = &mut histogram.bins;
    let side = |bin: usize| {
        let mut side = C::EMPTY_SIDE;
        C::gather(&mut side, &bins[bin]);
        side
    };
    let missing = (touched[3] >> 63 == 1).then(|| side(usize::from(MISSING)));
    let [a, b, c, d] = touched;
    let values = set_bits([a, b, c, d & !(1 << 63)]);
    search.run(missing, values.map(|bin| (bin, side(bin))));
    set_bits(touched).for_each(|bin| bins[bin] = C::EMPTY_BIN);
}

#[inline(always)]
fn search_many<C: Criterion, I: Iterator<Item = u8>>(task: Task<'_, C, I>) {
    let (histogram, row_bins, labels, mut search) = task;
    histogram.fill_many(row_bins, labels);
    let sides = &histogram.sides;
    let missing = Some(sides[usize::from(MISSING)]).filter(|side| C::count(side) > 0.0);
    let used = (0..usize::from(MISSING)).filter(|bin| C::count(&sides[*bin]) > 0.0);
    search.run(missing, used.map(|bin| (bin, sides[bin])));
}

/// The bits that are set in four words, lowest first.
#[inline(always)]
fn set_bits(words: [u64; 4]) -> impl Iterator<Item = usize> {
    words.into_iter().enumerate().flat_map(|(word, bits)| SetBits(bits).map(move |bit| word * 64 + bit))
}

/// The bits that are set in a word, lowest first.
struct SetBits(u64);

impl Iterator for SetBits {
    type Item = usize;

    #[inline(always)]
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
    #[inline(always)]
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
            if self.criterion.is_over(self.node, &left) {
                return;
            }
            previous = Some(bin);
        }
        if missing.is_some() && previous.is_some() {
            self.score(&left, MISSING - 1, Some(false));
        }
    }

    #[inline(always)]
    fn score(&mut self, left: &C::Side, bin: u8, missing_left: Option<bool>) {
        let least = self.best.as_ref().map_or(0.0, |best| best.score * CLEARLY_BETTER);
        if let Some(score) = self.criterion.score(self.node, left, least) {
            *self.best = Some(Split { feature: self.feature, bin, missing_left, score });
        }
    }
}
