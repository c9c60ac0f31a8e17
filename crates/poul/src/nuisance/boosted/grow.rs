//! Growing a tree leaf by leaf: the leaf whose split gains most is split next. Of two children the smaller is added up, and the
//! other is what is left of their parent.

use std::ops::Range;

use rayon::prelude::*;

use super::histogram::{Histogram, NodeRows, Room, Sums};
use super::params::BoostedParams;
use super::quantised::{Quantised, unpacked};
use super::split::{Limits, Split, best_of_tile};
use super::tiles::{TILE, Tiles};
use crate::tree::Tree;

/// Histograms of all leaves may take so many bytes; beyond, none is kept and both children are added up.
const MOST_KEPT: usize = 512 << 20;
/// Nodes with fewer rows times features are not worth a second thread.
const LEAST_WORK: usize = 1 << 15;
/// Rows that one thread parts at a time.
const PART_ROWS: usize = 1 << 14;

/// Grows trees on the same rows, one after the other, in the same room.
pub(super) struct Grower<'a> {
    tiles: &'a Tiles,
    leaves: usize,
    l2: f64,
    /// Curvature that a leaf has at least.
    least: f64,
    keeps: bool,
    /// Rows that are fitted on, leaf after leaf, then rows that are held out, in the same way.
    order: [Vec<u32>; 2],
    n_rows: [usize; 2],
    room: Vec<u32>,
    packed: Vec<i64>,
    spare: Vec<Histogram>,
}

/// A tree whose leaves have no values yet, and the rows of each.
pub(super) struct Grown {
    pub(super) tree: Tree,
    /// Where the rows of each leaf stand in the orders, by the leaf's number.
    pub(super) leaves: Vec<[Range<usize>; 2]>,
}

impl<'a> Grower<'a> {
    /// The first `n_training` rows are fitted on; `most_curvature` is that of one row.
    pub(super) fn new(
        tiles: &'a Tiles,
        n_training: usize,
        params: &BoostedParams,
        most_curvature: f64,
    ) -> Self {
        let bytes = Histogram::bytes(tiles).saturating_mul(params.leaves);
        Self {
            tiles,
            leaves: params.leaves,
            l2: params.l2 * most_curvature,
            least: params.min_leaf * most_curvature,
            keeps: bytes <= MOST_KEPT,
            order: [Vec::new(), Vec::new()],
            n_rows: [n_training, tiles.n_rows() - n_training],
            room: Vec::new(),
            packed: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// What λ is in the units of curvatures.
    pub(super) fn l2(&self) -> f64 {
        self.l2
    }

    /// The rows of a leaf: those that were fitted on, and those held out.
    pub(super) fn rows(&self, leaf: &[Range<usize>; 2]) -> [&[u32]; 2] {
        [0, 1].map(|part| &self.order[part][leaf[part].clone()])
    }

    /// None where not even the root can be split.
    pub(super) fn grow(&mut self, derivatives: &Quantised) -> Option<Grown> {
        let unit = derivatives.curvature_unit;
        // Half a unit each row is what rounding may take away.
        let limits = Limits { least: self.least * unit * (1.0 - 1e-6), l2: self.l2 * unit };
        let first = |part: usize| if part == 0 { 0 } else { self.n_rows[0] as u32 };
        for part in [0, 1] {
            let (first, n_rows) = (first(part), self.n_rows[part] as u32);
            self.order[part].clear();
            self.order[part].extend(first..first + n_rows);
        }
        let sums = derivatives
            .packed
            .par_chunks(super::quantised::BLOCK_ROWS)
            .map(|rows| unpacked(rows.iter().sum()));
        let sums: Sums = sums.reduce(|| [0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let mut histogram = self.spare.pop().unwrap_or_else(|| Histogram::new(self.tiles));
        let split = fill(self.tiles, NodeRows::All, &derivatives.packed, sums, limits, &mut histogram);
        let rows = [0, 1].map(|part| 0..self.n_rows[part]);
        let mut leaves = vec![Leaf { rows, sums, histogram: self.kept(histogram), split, node: 0 }];
        let mut nodes = vec![Node::Leaf(0)];
        while leaves.len() < self.leaves {
            let gain = |leaf: &Leaf| leaf.split.map_or(0.0, |split| split.gain);
            // The first of the best.
            let next = leaves.iter().enumerate().rev().max_by(|a, b| gain(a.1).total_cmp(&gain(b.1)));
            let Some((next, split)) = next.and_then(|(next, leaf)| leaf.split.map(|split| (next, split)))
            else {
                break;
            };
            let is_last = leaves.len() + 1 == self.leaves;
            let parent = &mut leaves[next];
            let (rows, sums, node, kept) =
                (parent.rows.clone(), parent.sums, parent.node, parent.histogram.take());
            let [left, right] = self.part(&rows, &split);
            let right_sums = [sums[0] - split.left[0], sums[1] - split.left[1]];
            let mut children = [(left, split.left), (right, right_sums)].map(|(rows, sums)| Leaf {
                rows,
                sums,
                histogram: None,
                split: None,
                node: 0,
            });
            match is_last {
                true => self.spare.extend(kept),
                false => self.search(&mut children, kept, derivatives, limits),
            }
            let numbers = [next, leaves.len()];
            for (child, number) in children.iter_mut().zip(numbers) {
                child.node = nodes.len();
                nodes.push(Node::Leaf(number));
            }
            nodes[node] = Node::Split(split, [children[0].node, children[1].node]);
            let [left, right] = children;
            leaves[next] = left;
            leaves.push(right);
        }
        let n_leaves = leaves.len();
        self.spare.extend(leaves.iter_mut().filter_map(|leaf| leaf.histogram.take()));
        (n_leaves > 1).then(|| Grown {
            tree: preorder(&nodes),
            leaves: leaves.into_iter().map(|leaf| leaf.rows).collect(),
        })
    }

    /// Finds the best splits of two siblings.
    fn search(
        &mut self,
        children: &mut [Leaf; 2],
        parent: Option<Histogram>,
        derivatives: &Quantised,
        limits: Limits,
    ) {
        let can_split = |leaf: &Leaf| leaf.sums[1] >= 2.0 * limits.least;
        if !children.iter().any(can_split) {
            self.spare.extend(parent);
            return;
        }
        let [left, right] = children;
        let (small, large) =
            if left.rows[0].len() <= right.rows[0].len() { (left, right) } else { (right, left) };
        let mut own = self.spare.pop().unwrap_or_else(|| Histogram::new(self.tiles));
        let Some(mut parent) = parent else {
            for leaf in [small, large] {
                self.gather(leaf, derivatives);
                let rows = NodeRows::Some(&self.order[0][leaf.rows[0].clone()]);
                leaf.split = fill(self.tiles, rows, &self.packed, leaf.sums, limits, &mut own);
            }
            self.spare.push(own);
            return;
        };
        self.gather(small, derivatives);
        let rows = NodeRows::Some(&self.order[0][small.rows[0].clone()]);
        let (tiles, packed) = (self.tiles, &self.packed);
        let sums = [small.sums, large.sums];
        let task = |(tile, (own, parent)): (usize, (&mut Vec<Sums>, &mut Vec<Sums>)), room: &mut Room| {
            let n_bins = tiles.n_bins(tile);
            room.fill((tiles.words(tile), n_bins), rows, packed, own);
            for (large, small) in parent.iter_mut().zip(own.iter()) {
                *large = [large[0] - small[0], large[1] - small[1]];
            }
            let best = |bins: &[Sums], sums: Sums| best_of_tile(tile * TILE, n_bins, bins, sums, limits);
            [best(own, sums[0]), best(parent, sums[1])]
        };
        let n_features = tiles.n_tiles() * TILE;
        let found: Vec<[Option<Split>; 2]> = match (packed.len() + 2 * 256) * n_features < LEAST_WORK {
            true => {
                let mut room = Room::new();
                let both = own.tiles.iter_mut().zip(&mut parent.tiles).enumerate();
                both.map(|both| task(both, &mut room)).collect()
            }
            false => {
                let both = own.tiles.par_iter_mut().zip(&mut parent.tiles).enumerate();
                both.map_init(Room::new, |room, both| task(both, room)).collect()
            }
        };
        small.split = best(found.iter().map(|both| both[0]));
        large.split = best(found.iter().map(|both| both[1]));
        for (leaf, histogram) in [(small, own), (large, parent)] {
            match leaf.split.is_some() {
                true => leaf.histogram = Some(histogram),
                false => self.spare.push(histogram),
            }
        }
    }

    /// The derivatives of a leaf's rows, one after the other.
    fn gather(&mut self, leaf: &Leaf, derivatives: &Quantised) {
        let rows = &self.order[0][leaf.rows[0].clone()];
        self.packed.clear();
        self.packed.extend(rows.iter().map(|row| derivatives.packed[*row as usize]));
    }

    fn kept(&mut self, histogram: Histogram) -> Option<Histogram> {
        if self.keeps {
            return Some(histogram);
        }
        self.spare.push(histogram);
        None
    }

    /// Parts the rows of a leaf; both sides keep their order.
    fn part(&mut self, rows: &[Range<usize>; 2], split: &Split) -> [[Range<usize>; 2]; 2] {
        let goes_left = self.tiles.goes_left(split.feature, split.bin, split.missing_left);
        let middle = [0, 1].map(|part| {
            let rows = rows[part].clone();
            rows.start + partition(&mut self.order[part][rows], &mut self.room, &goes_left)
        });
        [[0, 1].map(|part| rows[part].start..middle[part]), [0, 1].map(|part| middle[part]..rows[part].end)]
    }
}

/// A leaf that may be split.
struct Leaf {
    rows: [Range<usize>; 2],
    sums: Sums,
    histogram: Option<Histogram>,
    split: Option<Split>,
    node: usize,
}

enum Node {
    /// By number.
    Leaf(usize),
    /// With its children.
    Split(Split, [usize; 2]),
}

/// Adds up the rows of a node and finds its best split.
fn fill(
    tiles: &Tiles,
    rows: NodeRows<'_>,
    packed: &[i64],
    sums: Sums,
    limits: Limits,
    histogram: &mut Histogram,
) -> Option<Split> {
    let task = |room: &mut Room, (tile, bins): (usize, &mut Vec<Sums>)| {
        let n_bins = tiles.n_bins(tile);
        room.fill((tiles.words(tile), n_bins), rows, packed, bins);
        best_of_tile(tile * TILE, n_bins, bins, sums, limits)
    };
    let found: Vec<Option<Split>> =
        histogram.tiles.par_iter_mut().enumerate().map_init(Room::new, task).collect();
    best(found.into_iter())
}

/// The best split of all tiles; the first where they are as good.
fn best(found: impl Iterator<Item = Option<Split>>) -> Option<Split> {
    found.flatten().reduce(|best, own| if own.gain > best.gain { own } else { best })
}

/// Moves the rows that go left to the front and returns how many. Parts of the rows are parted side by side, then put
/// together in their order.
fn partition(rows: &mut [u32], room: &mut Vec<u32>, goes_left: &(impl Fn(u32) -> bool + Sync)) -> usize {
    room.resize(room.len().max(rows.len()), 0);
    let room = &mut room[..rows.len()];
    let part = |(rows, room): (&mut [u32], &mut [u32])| {
        let (mut n_left, mut n_right) = (0, 0);
        for place in 0..rows.len() {
            let row = rows[place];
            let left = goes_left(row);
            // Both are written and one of them counts: which one cannot be foreseen.
            rows[n_left] = row;
            room[n_right] = row;
            n_left += usize::from(left);
            n_right += usize::from(!left);
        }
        n_left
    };
    if rows.len() <= PART_ROWS {
        let n_left = part((&mut *rows, &mut *room));
        let n_right = rows.len() - n_left;
        rows[n_left..].copy_from_slice(&room[..n_right]);
        return n_left;
    }
    let parts = rows.par_chunks_mut(PART_ROWS).zip(room.par_chunks_mut(PART_ROWS));
    let counts: Vec<usize> = parts.map(part).collect();
    let mut n_left = 0;
    for (number, count) in counts.iter().enumerate() {
        rows.copy_within(number * PART_ROWS..number * PART_ROWS + count, n_left);
        n_left += count;
    }
    let mut at = n_left;
    for (room, n_left) in room.chunks(PART_ROWS).zip(&counts) {
        let own = &room[..room.len() - n_left];
        rows[at..at + own.len()].copy_from_slice(own);
        at += own.len();
    }
    n_left
}

/// Nodes as a tree has them.
fn preorder(nodes: &[Node]) -> Tree {
    let mut tree = Tree::default();
    let mut stack = vec![(0, None)];
    while let Some((node, right_of)) = stack.pop() {
        if let Some(parent) = right_of {
            tree.next_is_right_of(parent);
        }
        match &nodes[node] {
            Node::Leaf(number) => tree.push_leaf(*number),
            Node::Split(split, [left, right]) => {
                let number = tree.push_split(split.feature, split.bin, split.missing_left);
                stack.push((*right, Some(number)));
                stack.push((*left, None));
            }
        }
    }
    tree.shrink();
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_parted_in_order_however_many() {
        for n_rows in [0, 5, PART_ROWS, 3 * PART_ROWS + 17] {
            let mut rows: Vec<u32> = (0..n_rows as u32).map(|row| 2 * row).collect();
            let goes_left = |row: u32| row.wrapping_mul(2_654_435_761).is_multiple_of(3);
            let (left, right): (Vec<u32>, Vec<u32>) = rows.iter().copied().partition(|row| goes_left(*row));
            let n_left = partition(&mut rows, &mut vec![9; 3], &goes_left);
            assert_eq!(n_left, left.len());
            assert_eq!(rows, [left, right].concat());
        }
    }
}
