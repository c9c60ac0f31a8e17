//! Settings of boosted trees.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Settings of boosted trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoostedParams {
    /// Most trees, for each class where there are classes. Default 2,000; 1 to 100,000.
    pub trees: usize,
    /// Trees without a better held-out loss before no more are grown. Default 40; 0: all `trees`, and no row is held out.
    pub patience: usize,
    /// Most leaves of a tree. Default 8; 2 to 1,024. Many small trees bear noise better than fewer large ones: on four worlds of
    /// 500 to 8,000 rows, 8 leaves had .5 to .95 of the error of 31.
    pub leaves: usize,
    /// Rows that a leaf has at least; where an outcome is 0 or 1, as much evidence as so many rows give of which half are 1.
    /// Default 20; above 0.
    pub min_leaf: f64,
    /// What pulls the value of a leaf to 0, in rows. Default 1; at least 0.
    pub l2: f64,
    /// How much of its value a leaf adds. Default 0.05; in (0, 1].
    pub learning_rate: f64,
}

impl Default for BoostedParams {
    fn default() -> Self {
        Self { trees: 2000, patience: 40, leaves: 8, min_leaf: 20.0, l2: 1.0, learning_rate: 0.05 }
    }
}

impl BoostedParams {
    /// Checks that every setting is in range.
    pub(in crate::nuisance) fn check(&self) -> Result<()> {
        let rules = [
            ("trees", (1..=100_000).contains(&self.trees), "1 to 100,000"),
            ("leaves", (2..=1024).contains(&self.leaves), "2 to 1,024"),
            ("min_leaf", self.min_leaf > 0.0 && self.min_leaf.is_finite(), "above 0"),
            ("l2", self.l2 >= 0.0 && self.l2.is_finite(), "at least 0"),
            ("learning_rate", self.learning_rate > 0.0 && self.learning_rate <= 1.0, "above 0, at most 1"),
        ];
        match rules.iter().find(|(_, inside, _)| !inside) {
            Some((name, _, range)) => {
                let error = Error::usage(format!("`boosted.{name}` is out of range"));
                Err(error.hint(format!("it must be {range}")))
            }
            None => Ok(()),
        }
    }

    /// How many trees are grown where rows should be held out but none can be: they move a prediction about as far as five
    /// whole steps would.
    pub(super) fn trees_without_held_rows(&self) -> usize {
        ((5.0 / self.learning_rate).ceil() as usize).min(self.trees)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let wrong = |change: fn(&mut BoostedParams)| {
            let mut params = BoostedParams::default();
            change(&mut params);
            params.check().unwrap_err().to_string()
        };
        assert!(wrong(|params| params.trees = 0).contains("`boosted.trees`"));
        assert!(wrong(|params| params.leaves = 1).contains("`boosted.leaves`"));
        assert!(wrong(|params| params.min_leaf = f64::NAN).contains("`boosted.min_leaf`"));
        assert!(wrong(|params| params.l2 = -1.0).contains("`boosted.l2`"));
        assert!(wrong(|params| params.learning_rate = 0.0).contains("`boosted.learning_rate`"));
        assert!(BoostedParams::default().check().is_ok());
    }
}
