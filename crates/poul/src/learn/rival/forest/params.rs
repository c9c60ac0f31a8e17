//! `[model]` of the forests: how trees are drawn, grown and filled.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::grow::Limits;
use super::local_moments::MOST_COLUMNS;
use super::sampling::Sampling;
use crate::effect::Settings;
use crate::learn::rival::params::{Rule, check_rules, read_table};
use crate::learn::rival::treatments::Tier;
use crate::{Error, Kind, Result};

/// What all forests share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TreeParams {
    /// Number of trees. Default 2000 (causal), 500 (uplift); 1 to 1,000,000, rounded up to whole groups.
    pub(super) trees: usize,
    /// Share of the units that a tree sees. Default 0.5; above 0, at most 0.5 with groups of trees and 1 without.
    pub(super) sample_fraction: f64,
    /// Share of a tree's units that choose splits, while the others fill leaves. Default 0.5; 0 (all do both) or 0.1
    /// to 0.9.
    pub(super) honesty: f64,
    /// Rows of each arm that a side of a split must have; with more than two arms, on average. Default 5 (causal), 10
    /// (uplift); at least 1.
    pub(super) min_node: usize,
    /// Rows that a side of a split must have in all. Default 0 (causal), 100 (uplift).
    pub(super) min_child_rows: usize,
    /// Features that a node tries, on average. Default 0: ⌈√features + 20⌉.
    pub(super) mtry: usize,
    /// Least share of a node's rows on either side of a split. Default 0.05; in [0, 0.5).
    pub(super) imbalance: f64,
    /// Splits on the way to a leaf. Default 0 (causal): any number; 10 (uplift).
    pub(super) max_depth: usize,
    /// Trees that share a half-sample, from which standard errors come. Default 2; 1 (no standard errors) to 100.
    pub(super) group_trees: usize,
    /// Arms with fewer rows are taken together. Default 200.
    pub(super) min_arm_rows: u64,
    /// Most arms, or axes of mixtures, that are told apart besides control: the largest. Default 16; 1 to 16.
    pub(super) columns: usize,
}

/// `[model]` of `causal-forest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CausalParams {
    /// What is seen of a policy. Default `id`: a column for each arm other than control; `spec`: the mixture over
    /// atoms, along its principal axes.
    pub(super) tier: Tier,
    #[serde(flatten)]
    pub(super) tree: TreeParams,
    /// Trees of each nuisance forest. Default 0: half of `trees`, at least 50.
    pub(super) nuisance_trees: usize,
}

/// How far apart the outcomes of two arms are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Divergence {
    /// Kullback–Leibler; for 0/1 outcomes.
    Kl,
    /// Squared Euclidean; for other than 0/1 outcomes the squared difference of means.
    Euclidean,
    /// χ²; for 0/1 outcomes.
    ChiSquared,
}

/// `[model]` of `uplift-forest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct UpliftParams {
    /// What splits make large between arms. Default `euclidean`; `kl` and `chi-squared` need 0/1 outcomes.
    pub(super) divergence: Divergence,
    /// Whether splits that part arms unevenly, or rows unevenly, are marked down. Default true.
    pub(super) normalize: bool,
    #[serde(flatten)]
    pub(super) tree: TreeParams,
    /// How many rows the arm means of the node above count for in a node. Default 10; at least 0.
    pub(super) prior_rows: f64,
}

impl Default for CausalParams {
    /// As in the reference implementation.
    fn default() -> Self {
        let tree = TreeParams {
            trees: 2000,
            sample_fraction: 0.5,
            honesty: 0.5,
            min_node: 5,
            min_child_rows: 0,
            mtry: 0,
            imbalance: 0.05,
            max_depth: 0,
            group_trees: 2,
            min_arm_rows: 200,
            columns: MOST_COLUMNS,
        };
        Self { tier: Tier::Id, tree, nuisance_trees: 0 }
    }
}

impl Default for UpliftParams {
    fn default() -> Self {
        let tree = TreeParams {
            trees: 500,
            min_node: 10,
            min_child_rows: 100,
            max_depth: 10,
            ..CausalParams::default().tree
        };
        Self { divergence: Divergence::Euclidean, normalize: true, tree, prior_rows: 10.0 }
    }
}

impl CausalParams {
    /// The settings of the method's paper: shallow trees on most of the rows. Their samples overlap too much for
    /// standard errors.
    fn paper() -> Self {
        let Self { tier, tree, nuisance_trees } = Self::default();
        let tree = TreeParams {
            trees: 300,
            sample_fraction: 0.8,
            max_depth: 10,
            min_child_rows: 500,
            group_trees: 1,
            ..tree
        };
        Self { tier, tree, nuisance_trees }
    }

    pub(super) fn n_nuisance_trees(&self) -> usize {
        if self.nuisance_trees > 0 { self.nuisance_trees } else { (self.tree.trees / 2).max(50) }
    }
}

/// A learner's `[model]`, with the defaults of its presets.
pub(super) trait ForestParams: Default + Clone + Serialize + DeserializeOwned {
    const NAME: &'static str;

    fn preset(name: &str) -> Option<Self>;

    fn check(&self) -> Result<()>;
}

impl ForestParams for CausalParams {
    const NAME: &'static str = "causal-forest";

    fn preset(name: &str) -> Option<Self> {
        (name == "paper").then(Self::paper)
    }

    fn check(&self) -> Result<()> {
        self.tree.check()?;
        check_rules(&[Rule("model.nuisance_trees", self.nuisance_trees <= 1_000_000, "at most 1,000,000")])
    }
}

impl ForestParams for UpliftParams {
    const NAME: &'static str = "uplift-forest";

    fn preset(_name: &str) -> Option<Self> {
        None
    }

    fn check(&self) -> Result<()> {
        self.tree.check()?;
        let range = 0.0..=1e12;
        check_rules(&[Rule("model.prior_rows", range.contains(&self.prior_rows), "at least 0")])
    }
}

/// There is nothing to set under `[training]`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct NoSettings {}

/// Completes settings with defaults; refuses unknown names and values out of range.
pub(super) fn settle<P: ForestParams>(settings: &Settings) -> Result<Settings> {
    Settings::of(settings.preset.clone(), &read::<P>(settings)?, &NoSettings {})
}

/// The settings as a type.
pub(super) fn read<P: ForestParams>(settings: &Settings) -> Result<P> {
    let defaults = match settings.preset.as_deref() {
        None => P::default(),
        Some(name) => P::preset(name).ok_or_else(|| match P::preset("paper") {
            Some(_) => Error::unknown(Kind::Usage, "preset", name, "presets", ["paper"]),
            None => Error::usage(format!("the learner `{}` has no preset `{name}`", P::NAME)),
        })?,
    };
    let complete = settings.over(&Settings::of(None, &defaults, &NoSettings {})?);
    let params: P = read_table("model", &complete.model)?;
    read_table::<NoSettings>("training", &complete.training)?;
    params.check()?;
    Ok(params)
}

impl TreeParams {
    fn check(&self) -> Result<()> {
        let most_drawn = if self.group_trees > 1 { 0.5 } else { 1.0 };
        let fraction = self.sample_fraction > 0.0 && self.sample_fraction <= most_drawn;
        let honesty = self.honesty == 0.0 || (0.1..=0.9).contains(&self.honesty);
        check_rules(&[
            Rule("model.trees", (1..=1_000_000).contains(&self.trees), "1 to 1,000,000"),
            Rule(
                "model.sample_fraction",
                fraction,
                "above 0, and at most 0.5, or at most 1 with `model.group_trees` = 1",
            ),
            Rule("model.honesty", honesty, "0, or from 0.1 to 0.9"),
            Rule("model.min_node", (1..=1 << 30).contains(&self.min_node), "at least 1"),
            Rule("model.imbalance", (0.0..0.5).contains(&self.imbalance), "in [0, 0.5)"),
            Rule("model.group_trees", (1..=100).contains(&self.group_trees), "1 to 100"),
            Rule("model.columns", (1..=MOST_COLUMNS).contains(&self.columns), "1 to 16"),
        ])
    }

    pub(super) fn sampling(&self) -> Sampling {
        let (fraction, honesty, group_trees) = (self.sample_fraction, self.honesty, self.group_trees);
        Sampling { fraction, honesty, group_trees }
    }

    /// `n_features` are those that vary.
    pub(super) fn limits(&self, n_features: usize) -> Limits {
        let usual = ((n_features as f64).sqrt() + 20.0).ceil() as usize;
        let mtry = if self.mtry > 0 { self.mtry } else { usual };
        Limits { max_depth: self.max_depth, mtry: mtry.min(n_features).max(1) }
    }

    /// Trees come in whole groups.
    pub(super) fn n_groups(&self) -> usize {
        self.trees.div_ceil(self.group_trees)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_completed_and_wrong_settings_are_named() {
        let mut settings = Settings { preset: Some("paper".into()), ..Settings::default() };
        settings.model.insert("trees".into(), 600.into());
        let settled = settle::<CausalParams>(&settings).unwrap();
        assert_eq!(settled.model["trees"], 600);
        assert_eq!(settled.model["min_child_rows"], 500);
        assert_eq!(settle::<CausalParams>(&settled).unwrap(), settled);
        let message = |name: &str, value: serde_json::Value| {
            let mut settings = Settings::default();
            settings.model.insert(name.into(), value);
            settle::<CausalParams>(&settings).unwrap_err().to_string()
        };
        assert_eq!(message("sample_fraction", 0.8.into()), "`model.sample_fraction` is out of range");
        assert!(message("tree", 5.into()).contains("unknown setting `tree`"));
        let unknown = Settings { preset: Some("fast".into()), ..Settings::default() };
        assert!(settle::<CausalParams>(&unknown).is_err() && settle::<UpliftParams>(&unknown).is_err());
        assert!(settle::<UpliftParams>(&Settings::default()).is_ok());
    }
}
