//! What a tree of any forest is grown by: how rows count towards splits, and what a leaf keeps.

/// A way of splitting nodes and filling leaves.
pub(super) trait Criterion: Sync {
    /// What one row adds to its bin.
    type Row: Copy + Send;
    /// Sums over the rows of a bin, in 32 bits: bins are emptied into [`Side`](Self::Side)s before sums get long.
    type Bin: Copy + Send;
    /// Sums over one side of a split.
    type Side: Copy + Send;
    /// What the scores of a node's splits share.
    type Node;
    /// What a leaf takes from the nodes above it.
    type Above: Clone;

    /// A bin without rows.
    const EMPTY_BIN: Self::Bin;
    /// A side without rows.
    const EMPTY_SIDE: Self::Side;

    /// What the rows of a node add to bins; `None` where the node cannot be split.
    fn relabel(&self, rows: &[u32], out: &mut Vec<Self::Row>) -> Option<Self::Node>;

    /// Adds a row to its bin.
    fn add(bin: &mut Self::Bin, row: &Self::Row);

    /// Adds a bin to a side.
    fn gather(side: &mut Self::Side, bin: &Self::Bin);

    /// How many rows are on a side.
    fn count(side: &Self::Side) -> f64;

    /// Adds a side to another.
    fn merge(side: &mut Self::Side, other: &Self::Side);

    /// How good a split is whose left side this is; `None` where it is not allowed, or not better than `least`, which
    /// is at least 0.
    fn score(&self, node: &Self::Node, left: &Self::Side, least: f64) -> Option<f64>;

    /// Whether too few rows are left for the right side, with this left side and any that has more.
    fn is_over(&self, node: &Self::Node, left: &Self::Side) -> bool;

    /// What is above the root.
    fn start(&self) -> Self::Above;

    /// What the children of a node take from it; `rows` are those that fill leaves.
    fn inherit(&self, above: &Self::Above, rows: &[u32]) -> Self::Above;

    /// The numbers that a leaf keeps, always as many; there is at least one row.
    fn leaf(&self, above: &Self::Above, rows: &[u32], out: &mut Vec<f32>);
}
