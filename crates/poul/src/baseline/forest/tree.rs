//! A grown tree as flat arrays: nodes in preorder, so that a left child follows its parent, and numbers of leaves.

use super::bins::MISSING;
use crate::effect::{Tensor, Tensors};
use crate::{Error, Result};

const LEAF: u32 = u32::MAX;
/// Numbers up to here are exact in the 32-bit floats of a model file.
pub(super) const MOST_NODES: usize = 1 << 24;
/// A split is stored as feature · 512 + bin · 2 + missing, which must be exact too.
pub(super) const MOST_FEATURES: usize = MOST_NODES >> 9;
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
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// What leaves keep, one after the other.
    pub(super) leaves: Vec<f32>,
}

impl Tree {
    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Gives back room that growing left over.
    pub(super) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.leaves.shrink_to_fit();
    }

    #[cfg(test)]
    pub(super) fn same_splits(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }

    /// Adds a split, whose left child must be added next; returns its number.
    pub(super) fn push_split(&mut self, feature: u32, bin: u8, missing_left: bool) -> usize {
        let split = (feature << 9) | (u32::from(bin) << 1) | u32::from(missing_left);
        self.nodes.push(Node { split, right: 0 });
        self.nodes.len() - 1
    }

    /// Adds the leaf with this number.
    pub(super) fn push_leaf(&mut self, number: usize) {
        self.nodes.push(Node { split: LEAF, right: number as u32 });
    }

    /// The node added next is the right child of `parent`.
    pub(super) fn next_is_right_of(&mut self, parent: usize) {
        self.nodes[parent].right = self.nodes.len() as u32;
    }

    /// The leaf of each row; rows are bins of `n_features`, one row after the other.
    pub(super) fn leaves_of(&self, rows: &[u8], n_features: usize, out: &mut [u32]) {
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

/// Trees as a model file keeps them.
pub(super) fn tensors(name: &str, trees: &[Tree], width: usize) -> Vec<Tensor<'static>> {
    let nodes = || trees.iter().flat_map(|tree| &tree.nodes);
    let splits: Vec<f32> =
        nodes().map(|node| if node.split == LEAF { -1.0 } else { node.split as f32 }).collect();
    let rights: Vec<f32> = nodes().map(|node| node.right as f32).collect();
    let n_nodes: Vec<f32> = trees.iter().map(|tree| tree.nodes.len() as f32).collect();
    let mut leaves = Vec::with_capacity(trees.iter().map(|tree| tree.leaves.len()).sum());
    trees.iter().for_each(|tree| leaves.extend_from_slice(&tree.leaves));
    vec![
        Tensor::new(format!("{name}.nodes_of_tree"), &[n_nodes.len()], n_nodes),
        Tensor::new(format!("{name}.split"), &[splits.len()], splits),
        Tensor::new(format!("{name}.right"), &[rights.len()], rights),
        Tensor::new(format!("{name}.leaf"), &[leaves.len() / width, width], leaves),
    ]
}

/// Reads trees back whose leaves have `width` numbers.
pub(super) fn load(
    name: &str,
    (n_trees, n_features, width): (usize, usize, usize),
    tensors: &mut Tensors,
) -> Result<Vec<Tree>> {
    let damaged = || {
        let error = Error::input("the parts of a tree contradict each other").at(format!("forest `{name}`"));
        error.hint("the file is damaged: fit again")
    };
    let n_nodes = tensors.take(&format!("{name}.nodes_of_tree"), &[n_trees])?;
    let n_nodes: Vec<usize> = n_nodes.iter().map(|n| *n as usize).collect();
    let total = n_nodes.iter().sum::<usize>();
    let splits = tensors.take(&format!("{name}.split"), &[total])?;
    let rights = tensors.take(&format!("{name}.right"), &[total])?;
    let n_leaves = splits.iter().filter(|split| **split < 0.0).count();
    let leaves = tensors.take(&format!("{name}.leaf"), &[n_leaves, width])?;
    let (mut at, mut leaf) = (0, 0);
    let mut trees = Vec::with_capacity(n_trees);
    for n_nodes in n_nodes {
        let of_tree = at..at + n_nodes;
        let node = |(split, right): (&f32, &f32)| {
            let split = if *split < 0.0 { LEAF } else { *split as u32 };
            Node { split, right: *right as u32 }
        };
        let nodes: Vec<Node> = splits[of_tree.clone()].iter().zip(&rights[of_tree]).map(node).collect();
        let n_leaves = nodes.iter().filter(|node| node.split == LEAF).count();
        let tree = Tree { nodes, leaves: leaves[leaf * width..][..n_leaves * width].to_vec() };
        if !tree.is_sound(n_features, n_leaves) {
            return Err(damaged());
        }
        trees.push(tree);
        at += n_nodes;
        leaf += n_leaves;
    }
    Ok(trees)
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
        let stored = |change: &str, to: f32| {
            let mut stored = Tensors::default();
            for tensor in tensors("f", &trees, 1) {
                let mut values = tensor.values.to_vec();
                if tensor.name == change {
                    values[0] = to;
                }
                stored.insert(tensor.name, tensor.shape, values);
            }
            load("f", (2, 2, 1), &mut stored)
        };
        assert_eq!(stored("", 0.0).unwrap(), trees);
        // A right child beyond the end, before its parent, an unknown feature, a tree that ends early.
        for (change, to) in
            [("f.right", 5.0), ("f.right", 0.0), ("f.split", 1024.0), ("f.nodes_of_tree", 4.0)]
        {
            assert!(stored(change, to).is_err(), "{change}");
        }
    }
}
