//! What to look for: the settings of a design, and their checked form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Probabilities of actions that are tried where none are given.
const GRID: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// What a policy is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The expected value.
    Value,
    /// The lower end of its interval.
    Lower,
    /// How much it is expected to gain over the best policy that was run, if it gains: E[max(0, difference)].
    #[default]
    Improvement,
}

/// The settings of a design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DesignParams {
    /// The outcome whose average effect is to be as large as possible; none for a plan alone.
    pub maximize: Option<String>,
    /// What a unit of another outcome costs, in units of the one that is maximised: the value of a policy is its effect less
    /// price × effect. Default: nothing.
    pub price: BTreeMap<String, f64>,
    /// The most that a policy may add to an outcome, for a user on average. Default: no limit.
    pub budget: BTreeMap<String, f64>,
    /// The policy that is changed; the best that was run.
    pub from: Option<String>,
    /// Contexts that may be changed; 3. At least 1.
    pub edits: i64,
    /// The farthest that a proposal may be from some policy that was run, by d_Π; 0.5. More than 0, at most 2.
    pub within: f64,
    /// Training rows that every action of a proposal must have had in its context; 100. At least 1.
    pub min_rows: u64,
    /// The probabilities of actions that are tried; 0, 0.25, 0.5, 0.75 and 1, and 0 and 1 where treatments are columns.
    pub grid: Option<Vec<f64>>,
    /// By context (`*` for all that are not named) the actions that a proposal may take. Default: all.
    pub allow: BTreeMap<String, Vec<String>>,
    /// How many to propose; 5. At least 1.
    pub proposals: i64,
    /// What they are judged by; `improvement`, which did best on three worlds (see the example `design`).
    pub by: By,
    /// Whether to find what teaches most, instead of what is best.
    pub learn: bool,
    /// Policies to learn from at once; 4. At least 1.
    pub batch: i64,
    /// Users of the next experiment; needed for a plan and to learn.
    pub rows: Option<i64>,
    /// Policies of a plan without an outcome to maximise; the five that were run on most rows.
    pub policy: Vec<String>,
    /// Level of the intervals; 0.9.
    pub level: f64,
    /// Root of the random streams of restarts and of joint draws; 3407.
    pub seed: u64,
}

impl Default for DesignParams {
    fn default() -> Self {
        Self {
            maximize: None,
            price: BTreeMap::new(),
            budget: BTreeMap::new(),
            from: None,
            edits: 3,
            within: 0.5,
            min_rows: 100,
            grid: None,
            allow: BTreeMap::new(),
            proposals: 5,
            by: By::default(),
            learn: false,
            batch: 4,
            rows: None,
            policy: Vec::new(),
            level: 0.9,
            seed: 3407,
        }
    }
}

/// [`DesignParams`] whose settings are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidDesignParams {
    pub(super) given: DesignParams,
    pub(super) edits: usize,
    pub(super) proposals: usize,
    pub(super) batch: usize,
    pub(super) rows: Option<u64>,
}

impl DesignParams {
    /// Checks every setting by itself; what depends on the model is checked by [`design`](super::design).
    pub fn check(mut self) -> Result<ValidDesignParams> {
        let wrong = |name: &str, value: String, hint: &str| {
            Err(Error::usage(format!("`{name}` is {value}")).hint(hint.to_owned()))
        };
        for (name, value) in [("edits", self.edits), ("proposals", self.proposals), ("batch", self.batch)] {
            if value < 1 {
                return wrong(name, value.to_string(), "it must be at least 1");
            }
        }
        if let Some(rows) = self.rows.filter(|rows| *rows < 1) {
            return wrong("rows", rows.to_string(), "it must be at least 1");
        }
        if !(self.within > 0.0 && self.within <= 2.0) {
            let hint =
                "a distance between policies lies between 0 (the same) and 2 (nothing shared), such as 0.5";
            return wrong("within", self.within.to_string(), hint);
        }
        if self.min_rows == 0 {
            return wrong("min_rows", "0".to_owned(), "it must be at least 1");
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return wrong("level", self.level.to_string(), "a level lies between 0 and 1, such as 0.9");
        }
        for (name, amounts) in [("price", &self.price), ("budget", &self.budget)] {
            if let Some((outcome, amount)) = amounts.iter().find(|(_, amount)| !amount.is_finite()) {
                return wrong(name, format!("{amount} for `{outcome}`"), "give a finite number");
            }
        }
        if let Some(grid) = &mut self.grid {
            if let Some(value) = grid.iter().find(|value| !(0.0..=1.0).contains(*value)) {
                return wrong("grid", value.to_string(), "probabilities lie between 0 and 1");
            }
            grid.extend([0.0, 1.0]);
            grid.sort_by(f64::total_cmp);
            grid.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
        }
        if self.learn && self.rows.is_none() {
            return Err(Error::usage("how many users will the next experiment have?")
                .hint("what teaches most depends on it: ‹rows=200000›"));
        }
        if self.maximize.is_none() && (self.rows.is_none() || self.learn) {
            return Err(Error::usage("what is to be maximised?").hint(
                "name an outcome, ‹maximize=gmv›; or ask what an experiment could tell: ‹rows=200000›",
            ));
        }
        if self.maximize.as_ref().is_some_and(|own| self.price.contains_key(own)) {
            return Err(Error::usage("the outcome that is maximised has a price")
                .hint("a price is for what a policy costs: ‹price=cost=1›"));
        }
        if self.maximize.is_some() && !self.policy.is_empty() {
            return Err(Error::usage("policies are named, and an outcome to maximise too")
                .hint("name policies for a plan of what could be told of them, or leave ‹policy› out to find new ones"));
        }
        let count = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(ValidDesignParams {
            edits: count(self.edits),
            proposals: count(self.proposals),
            batch: count(self.batch),
            rows: self.rows.and_then(|rows| u64::try_from(rows).ok()),
            given: self,
        })
    }
}

impl ValidDesignParams {
    /// The probabilities to try.
    pub(super) fn grid(&self, is_factorial: bool) -> Vec<f64> {
        match (&self.given.grid, is_factorial) {
            (Some(grid), _) => grid.clone(),
            (None, true) => vec![0.0, 1.0],
            (None, false) => GRID.to_vec(),
        }
    }
}
