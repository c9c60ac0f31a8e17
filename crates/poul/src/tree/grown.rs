//! A grown tree as flat arrays: nodes in preorder, so that a left child follows its parent, and numbers of leaves.

use super::cuts::MISSING;

const LEAF: u32 = u32::MAX;
/// Numbers up to here are exact in the 32-bit floats of a model file.
pub(crate) const MOST_NODES: usize = 1 << 24;
/// A split is stored as feature · 512 + bin · 2 + missing, which must be exact too.
pub(crate) const MOST_FEATURES: usize = MOST_NODES >> 9;
/// Rows that walk down a tree side by side: their loads overlap.
const LANES: usize = 8;

/// A split or a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    /// feature · 512 + bin · 2 + whether missing values go left; [`LEAF`] in a leaf.
    split: u32,
    /// The right child; in a leaf its number.
    right: u32,
}

/// A tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// What leaves keep, one after the other.
    pub(crate) leaves: Vec<f32>,
}

impl Tree {
    pub(crate) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Gives back room that growing left over.
    pub(crate) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.leaves.shrink_to_fit();
    }

    #[cfg(test)]
    pub(crate) fn same_splits(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }

    /// Adds a split, whose left child must be added next; returns its number.
    pub(crate) fn push_split(&mut self, feature: u32, bin: u8, missing_left: bool) -> usize {
        let split = (feature << 9) | (u32::from(bin) << 1) | u32::from(missing_left);
        self.nodes.push(Node { split, right: 0 });
        self.nodes.len() - 1
    }

    /// Adds the leaf with this number.
    pub(crate) fn push_leaf(&mut self, number: usize) {
        self.nodes.push(Node { split: LEAF, right: number as u32 });
    }

    /// The node added next is the right child of `parent`.
    pub(crate) fn next_is_right_of(&mut self, parent: usize) {
        self.nodes[parent].right = self.nodes.len() as u32;
    }

    /// The leaf of each row; rows are bins of `n_features`, one row after the other.
    pub(crate) fn leaves_of(&self, rows: &[u8], n_features: usize, out: &mut [u32]) {
        for (rows, out) in rows.chunks(LANES * n_features).zip(out.chunks_mut(LANES)) {
            let mut at = [0_u32; LANES];
            loop {
                let mut moved = false;
                for ((row, at), out) in rows.chunks_exact(n_features).zip(&mut at).zip(out.iter_mut()) {
                    let node = self.nodes[*at as usize];
                    if node.split == LEAF {
                        *out = node.right;
                    } else {
                        let bin = row[(node.split >> 9) as usize];
                        let is_low = bin <= (node.split >> 1) as u8;
                        let left = is_low | ((bin == MISSING) & (node.split & 1 == 1));
                        *at = if left { *at + 1 } else { node.right };
                        moved = true;
                    }
                }
                if !moved {
                    break;
                }
            }
        }
    }

    /// Adds the tree to bytes, for a checkpoint.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.nodes.len() as u64).to_le_bytes());
        for Node { split, right } in &self.nodes {
            bytes.extend(split.to_le_bytes());
            bytes.extend(right.to_le_bytes());
        }
        self.leaves.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }

    /// Takes a tree, whose leaves have `width` numbers, from the front of bytes; none where there is not one.
    pub(crate) fn read(bytes: &mut &[u8], n_features: usize, width: usize) -> Option<Self> {
        let (n_nodes, mut rest) = bytes.split_first_chunk()?;
        let n_nodes = usize::try_from(u64::from_le_bytes(*n_nodes)).ok()?;
        let (words, _) = rest.split_off(..n_nodes.checked_mul(8)?)?.as_chunks::<4>();
        let (nodes, _) = words.as_chunks::<2>();
        let node = |words: &[[u8; 4]; 2]| {
            let [split, right] = words.map(u32::from_le_bytes);
            Node { split, right }
        };
        let nodes: Vec<Node> = nodes.iter().map(node).collect();
        let n_leaves = nodes.iter().filter(|node| node.split == LEAF).count();
        let (values, _) = rest.split_off(..n_leaves.checked_mul(4)?.checked_mul(width)?)?.as_chunks::<4>();
        let leaves: Vec<f32> = values.iter().map(|value| f32::from_le_bytes(*value)).collect();
        *bytes = rest;
        let tree = Self { nodes, leaves };
        (tree.is_sound(n_features, n_leaves) && tree.leaves.iter().all(|value| value.is_finite()))
            .then_some(tree)
    }

    /// Whether every way down ends in a leaf that is there.
    fn is_sound(&self, n_features: usize, n_leaves: usize) -> bool {
        let sound = |(number, node): (usize, &Node)| match node.split {
            LEAF => (node.right as usize) < n_leaves,
            split => {
                let right = node.right as usize;
                ((split >> 9) as usize) < n_features && right > number + 1 && right < self.nodes.len()
            }
        };
        self.nodes.last().is_some_and(|node| node.split == LEAF) && self.nodes.iter().enumerate().all(sound)
    }
}

/// Trees as a model file keeps them: whole numbers that 32-bit floats hold exactly, and what leaves keep.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TreeParts {
    pub(crate) nodes_of_tree: Vec<f32>,
    /// Of every node, tree after tree; −1 in a leaf.
    pub(crate) split: Vec<f32>,
    pub(crate) right: Vec<f32>,
    pub(crate) leaf: Vec<f32>,
}

impl TreeParts {
    pub(crate) fn new(trees: &[Tree]) -> Self {
        let nodes = || trees.iter().flat_map(|tree| &tree.nodes);
        let mut leaf = Vec::with_capacity(trees.iter().map(|tree| tree.leaves.len()).sum());
        trees.iter().for_each(|tree| leaf.extend_from_slice(&tree.leaves));
        Self {
            nodes_of_tree: trees.iter().map(|tree| tree.nodes.len() as f32).collect(),
            split: nodes().map(|node| if node.split == LEAF { -1.0 } else { node.split as f32 }).collect(),
            right: nodes().map(|node| node.right as f32).collect(),
            leaf,
        }
    }

    /// How many nodes there are, by `nodes_of_tree`.
    pub(crate) fn n_nodes(nodes_of_tree: &[f32]) -> usize {
        nodes_of_tree.iter().map(|n| *n as usize).fold(0, usize::saturating_add)
    }

    /// How many leaves there are, by `split`.
    pub(crate) fn n_leaves(split: &[f32]) -> usize {
        split.iter().filter(|split| **split < 0.0).count()
    }

    /// The trees, whose leaves have `width` numbers; none where parts contradict each other.
    pub(crate) fn trees(&self, n_features: usize, width: usize) -> Option<Vec<Tree>> {
        let Self { nodes_of_tree, split, right, leaf } = self;
        let fits = Self::n_nodes(nodes_of_tree) == split.len()
            && right.len() == split.len()
            && leaf.len() == Self::n_leaves(split) * width;
        if !fits {
            return None;
        }
        let (mut at, mut first_leaf) = (0, 0);
        let mut trees = Vec::with_capacity(nodes_of_tree.len());
        for n_nodes in nodes_of_tree {
            let of_tree = at..at + *n_nodes as usize;
            let node = |(split, right): (&f32, &f32)| {
                let split = if *split < 0.0 { LEAF } else { *split as u32 };
                Node { split, right: *right as u32 }
            };
            let nodes: Vec<Node> =
                split[of_tree.clone()].iter().zip(&right[of_tree.clone()]).map(node).collect();
            let n_leaves = nodes.iter().filter(|node| node.split == LEAF).count();
            let tree = Tree { nodes, leaves: leaf[first_leaf * width..][..n_leaves * width].to_vec() };
            if !tree.is_sound(n_features, n_leaves) {
                return None;
            }
            trees.push(tree);
            at = of_tree.end;
            first_leaf += n_leaves;
        }
        Some(trees)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x₀ ≤ 3 → (x₁ ≤ 1 → 0 | 1) | 2; missing x₀ goes left, missing x₁ right.
    fn tree() -> Tree {
        let mut tree = Tree::default();
        let root = tree.push_split(0, 3, true);
        let inner = tree.push_split(1, 1, false);
        tree.push_leaf(0);
        tree.next_is_right_of(inner);
        tree.push_leaf(1);
        tree.next_is_right_of(root);
        tree.push_leaf(2);
        tree.leaves = vec![0.5, 1.5, 2.5];
        tree
    }

    #[test]
    fn rows_fall_where_splits_say() {
        let rows = [[3, 1], [3, 2], [4, 0], [MISSING, 0], [0, MISSING], [MISSING, MISSING]];
        let rows: Vec<u8> = rows.iter().cycle().take(20).flatten().copied().collect();
        let mut leaves = vec![0; 20];
        tree().leaves_of(&rows, 2, &mut leaves);
        let expected: Vec<u32> = [0, 1, 2, 0, 1, 1].into_iter().cycle().take(20).collect();
        assert_eq!(leaves, expected);
    }

    #[test]
    fn trees_survive_storage_and_damage_is_told() {
        let trees = vec![tree(), tree()];
        let parts = TreeParts::new(&trees);
        assert_eq!(parts.trees(2, 1).unwrap(), trees);
        // A right child beyond the end, before its parent, an unknown feature, a tree that ends early.
        let damages: [fn(&mut TreeParts); 4] = [
            |parts| parts.right[0] = 5.0,
            |parts| parts.right[0] = 0.0,
            |parts| parts.split[0] = 1024.0,
            |parts| parts.nodes_of_tree[0] = 4.0,
        ];
        for damage in damages {
            let mut parts = parts.clone();
            damage(&mut parts);
            assert!(parts.trees(2, 1).is_none(), "{parts:?}");
        }
    }
}
