//! Collects policies, weights and attributes in any order; every form of policy file is read through it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::attributes::Attributes;
use super::canonical;
use super::set::PolicySet;
use super::weights::ContextWeights;
use crate::{Error, Result, row_name};

/// The context that stands for every context a policy does not name.
pub(super) const EVERY_OTHER: &str = "*";

/// Collects policies one (policy, context, action, probability) at a time.
///
/// Order does not matter. What is wrong with an entry is reported by [`build`](Self::build), the first wrong
/// entry first. The context `*` stands for every context that the policy does not name.
///
/// ```
/// use poul::policy::PolicySet;
/// let mut builder = PolicySet::builder();
/// builder.weight("peak", 3.0).weight("off_peak", 1.0);
/// builder.add("control", "*", "none", 1.0);
/// builder.add("T2", "peak", "upgrade", 1.0).add("T2", "*", "none", 1.0);
/// let set = builder.build()?;
/// assert_eq!(set.names(), ["T2", "control"]);
/// assert_eq!(set.distance(0, 1), 1.5);
/// # Ok::<(), poul::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct PolicySetBuilder {
    pub(super) policies: Names,
    pub(super) contexts: Names,
    pub(super) actions: Names,
    pub(super) rows: Vec<Row>,
    /// Where each policy was first named.
    pub(super) policy_places: Vec<u32>,
    pub(super) weights: Option<Vec<Weight>>,
    pub(super) attributes: Attributes,
    pub(super) exposure: BTreeMap<String, String>,
    pub(super) source: Source,
    pub(super) weight_source: Source,
    /// Whether the weights come from elsewhere than the policies: then the two must name the same contexts.
    pub(super) weights_apart: bool,
    first_error: Option<Error>,
}

/// One probability, by number of the names in the builder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) policy: u32,
    pub(super) context: u32,
    pub(super) action: u32,
    /// Line or row of the source; 0 where there is none.
    pub(super) place: u32,
    pub(super) probability: f64,
}

/// One context weight.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    pub(super) context: String,
    pub(super) weight: f64,
    pub(super) place: u32,
}

/// What the places of entries refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    pub(super) file: Option<PathBuf>,
    unit: &'static str,
}

impl PolicySetBuilder {
    /// Policy `policy` takes `action` in `context` with this probability.
    pub fn add(&mut self, policy: &str, context: &str, action: &str, probability: f64) -> &mut Self {
        self.add_at(policy, context, action, probability, 0)
    }

    /// Context `context` has this weight; given once, every context needs one.
    pub fn weight(&mut self, context: &str, weight: f64) -> &mut Self {
        self.weight_at(context, weight, 0)
    }

    /// What is known of contexts and actions.
    pub fn attributes(&mut self, attributes: Attributes) -> &mut Self {
        self.attributes = attributes;
        self
    }

    /// The column of the data that says how much each row meets `context`.
    pub(crate) fn exposure(&mut self, context: &str, column: &str) -> &mut Self {
        self.exposure.insert(context.to_owned(), column.to_owned());
        self
    }

    /// The canonical set, or the first thing wrong with it.
    pub fn build(mut self) -> Result<PolicySet> {
        if let Some(error) = self.first_error.take() {
            return Err(error);
        }
        canonical::build(self)
    }

    /// Names where policies are read from; `unit` is "line" or "row".
    pub(super) fn read_from(&mut self, file: &Path, unit: &'static str) {
        self.source = Source::new(file, unit);
        self.weight_source = self.source.clone();
    }

    pub(super) fn add_at(
        &mut self,
        policy: &str,
        context: &str,
        action: &str,
        p: f64,
        place: u32,
    ) -> &mut Self {
        let named = |error: Error| {
            let error = self.source.place(error, place);
            if is_blank(policy) { error } else { error.at(format!("policy `{policy}`")) }
        };
        if let Some(kind) = blank_kind([("policy", policy), ("context", context), ("action", action)]) {
            let error = Error::input(format!("the name of the {kind} is empty"));
            let error = named(error).hint(format!("give the {kind} a name"));
            self.fail(error);
            return self;
        }
        if let Some(what) = wrong_number(p) {
            let error = named(Error::input(format!("the probability of action `{action}` is {what}")));
            let hint = "a probability is a number from 0 to 1, and those of a context sum to 1";
            self.fail(error.at(format!("context `{context}`")).hint(hint));
            return self;
        }
        let policy = self.policy_at(policy, place);
        let (context, action) = (self.contexts.number(context), self.actions.number(action));
        self.rows.push(Row { policy, context, action, place, probability: p });
        self
    }

    /// The number of a policy, which is thereby known even without rows.
    pub(super) fn policy_at(&mut self, policy: &str, place: u32) -> u32 {
        let number = self.policies.number(policy);
        if number as usize == self.policy_places.len() {
            self.policy_places.push(place);
        }
        number
    }

    pub(super) fn weight_at(&mut self, context: &str, weight: f64, place: u32) -> &mut Self {
        let wrong = if is_blank(context) {
            Some(("the name of the context is empty".to_owned(), "give the context a name"))
        } else if context == EVERY_OTHER {
            Some(("`*` cannot have a weight".to_owned(), "give every context its own weight"))
        } else {
            wrong_number(weight).map(|what| {
                let hint = "a weight is a finite number, 0 or more; weights need not sum to 1";
                (format!("the weight of context `{context}` is {what}"), hint)
            })
        };
        if let Some((what, hint)) = wrong {
            let error = self.weight_source.place(Error::input(what), place).hint(hint);
            self.fail(error);
            return self;
        }
        let weight = Weight { context: context.to_owned(), weight: weight + 0.0, place };
        self.weights.get_or_insert_default().push(weight);
        self
    }

    /// Weights from a file or a map, instead of any given so far.
    pub(super) fn replace_weights(&mut self, weights: &ContextWeights) {
        self.weight_source = weights.source.clone();
        self.weights_apart = true;
        self.weights = Some(Vec::new());
        for Weight { context, weight, place } in &weights.entries {
            self.weight_at(context, *weight, *place);
        }
    }

    fn fail(&mut self, error: Error) {
        self.first_error.get_or_insert(error);
    }
}

impl Source {
    pub(super) fn new(file: &Path, unit: &'static str) -> Self {
        Self { file: Some(file.to_path_buf()), unit }
    }

    /// Adds the file and the line or row to an error.
    pub(super) fn place(&self, error: Error, place: u32) -> Error {
        let error = match &self.file {
            Some(file) => error.file(file),
            None => error,
        };
        match self.describe(place) {
            Some(place) => error.at(place),
            None => error,
        }
    }

    /// `line 3`, where there is such a thing. Editors count lines from 1; rows are counted from 0 everywhere.
    pub(super) fn describe(&self, place: u32) -> Option<String> {
        (place > 0 && !self.unit.is_empty()).then(|| match self.unit {
            "row" => row_name(place - 1),
            unit => format!("{unit} {place}"),
        })
    }
}

/// Names numbered in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    // Only looked up, never walked: its order reaches no result.
    numbers: HashMap<String, u32>,
    last: u32,
    /// Which name came after each name the last time.
    follower: Vec<u32>,
}

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        // Files repeat themselves: the name is often the previous one, or the one that followed it before.
        let last = self.last as usize;
        let guesses = [Some(self.last), self.follower.get(last).copied()];
        let guess = guesses.into_iter().flatten().find(|guess| self.is(*guess, name));
        let number = guess.or_else(|| self.numbers.get(name).copied()).unwrap_or_else(|| {
            let number = self.names.len() as u32;
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), number);
            self.follower.push(number);
            number
        });
        self.follower[last] = number;
        self.last = number;
        number
    }

    fn is(&self, number: u32, name: &str) -> bool {
        self.names.get(number as usize).is_some_and(|candidate| candidate == name)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }

    pub(super) fn as_slice(&self) -> &[String] {
        &self.names
    }
}

fn blank_kind(names: [(&'static str, &str); 3]) -> Option<&'static str> {
    names.into_iter().find(|(_, name)| is_blank(name)).map(|(kind, _)| kind)
}

pub(super) fn is_blank(name: &str) -> bool {
    name.trim().is_empty()
}

/// What is wrong with a probability or a weight, if anything.
pub(super) fn wrong_number(value: f64) -> Option<String> {
    if value.is_nan() {
        Some("not a number (NaN)".to_owned())
    } else if value.is_infinite() {
        Some("not finite".to_owned())
    } else if value < 0.0 {
        Some(format!("negative ({value})"))
    } else {
        None
    }
}
