//! Bins and trees of a forest as tensors of a model file.

use crate::effect::{Tensor, Tensors};
use crate::tree::{Cuts, Tree, TreeParts};
use crate::{Error, Result};

/// The cuts of features.
pub(super) fn cuts_tensors(name: &str, cuts: &Cuts) -> Vec<Tensor<'static>> {
    let (cuts, lengths) = cuts.parts();
    vec![
        Tensor::new(format!("{name}.cuts"), &[cuts.len()], cuts),
        Tensor::new(format!("{name}.cuts_of_feature"), &[lengths.len()], lengths),
    ]
}

/// Reads cuts back.
pub(super) fn load_cuts(name: &str, n_features: usize, tensors: &mut Tensors) -> Result<Cuts> {
    let damaged = || Error::input("the bins of features are wrong").hint("the file is damaged: fit again");
    let lengths = tensors.take(&format!("{name}.cuts_of_feature"), &[n_features])?;
    let n_cuts = Cuts::count(&lengths).ok_or_else(damaged)?;
    let cuts = tensors.take(&format!("{name}.cuts"), &[n_cuts])?;
    Cuts::from_parts(&cuts, &lengths).ok_or_else(damaged)
}

/// Trees whose leaves have `width` numbers.
pub(super) fn tree_tensors(name: &str, trees: &[Tree], width: usize) -> Vec<Tensor<'static>> {
    let TreeParts { nodes_of_tree, split, right, leaf } = TreeParts::new(trees);
    vec![
        Tensor::new(format!("{name}.nodes_of_tree"), &[nodes_of_tree.len()], nodes_of_tree),
        Tensor::new(format!("{name}.split"), &[split.len()], split),
        Tensor::new(format!("{name}.right"), &[right.len()], right),
        Tensor::new(format!("{name}.leaf"), &[leaf.len() / width, width], leaf),
    ]
}

/// Reads trees back.
pub(super) fn load_trees(
    name: &str,
    (n_trees, n_features, width): (usize, usize, usize),
    tensors: &mut Tensors,
) -> Result<Vec<Tree>> {
    let nodes_of_tree = tensors.take(&format!("{name}.nodes_of_tree"), &[n_trees])?;
    let n_nodes = TreeParts::n_nodes(&nodes_of_tree);
    let split = tensors.take(&format!("{name}.split"), &[n_nodes])?;
    let right = tensors.take(&format!("{name}.right"), &[n_nodes])?;
    let leaf = tensors.take(&format!("{name}.leaf"), &[TreeParts::n_leaves(&split), width])?;
    TreeParts { nodes_of_tree, split, right, leaf }.trees(n_features, width).ok_or_else(|| {
        let error = Error::input("the parts of a tree contradict each other").at(format!("forest `{name}`"));
        error.hint("the file is damaged: fit again")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;

    #[test]
    fn forests_survive_storage_and_damage_is_told() {
        let x = [1.0, 5.0, 2.0, 5.0, 3.0, 5.0];
        let cuts = Cuts::learn(&DenseRows::new(&x, 2).unwrap(), &[0, 1, 2]);
        let mut tree = Tree::default();
        let root = tree.push_split(0, 1, true);
        tree.push_leaf(0);
        tree.next_is_right_of(root);
        tree.push_leaf(1);
        tree.leaves = vec![0.5, 1.5];
        let trees = vec![tree.clone(), tree];
        let stored = |change: &str| {
            let mut tensors = Tensors::default();
            for tensor in cuts_tensors("f", &cuts).into_iter().chain(tree_tensors("f", &trees, 1)) {
                let mut values = tensor.values.to_vec();
                if tensor.name == change {
                    values.reverse();
                }
                tensors.insert(tensor.name, tensor.shape, values);
            }
            Ok((load_cuts("f", 2, &mut tensors)?, load_trees("f", (2, 2, 1), &mut tensors)?))
        };
        let found: Result<(Cuts, Vec<Tree>)> = stored("");
        assert_eq!(found.unwrap(), (cuts.clone(), trees.clone()));
        for change in ["f.cuts", "f.split", "f.right"] {
            assert!(stored(change).is_err(), "{change}");
        }
    }
}
