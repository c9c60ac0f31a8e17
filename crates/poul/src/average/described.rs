//! Policies with what is known of their actions: actions with like attributes do alike, so that one that was never taken
//! is not unknown.
//!
//! An action counts half by its name and half by its attributes: exp(−½ Σ (difference in standard deviations)²), a
//! category or flag that differs counting as one standard deviation. Without attributes it counts by its name alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use crate::policy::{AttributeValue, PolicySet};

/// The standard deviation of every numeric attribute over the actions of training.
pub(super) type AttributeScales = BTreeMap<String, f64>;

/// A set of policies, and how alike its actions are.
pub(super) struct Described<'a> {
    policies: &'a PolicySet,
    /// Actions × actions; none where nothing is known of them but their names.
    alike: Option<Vec<f64>>,
}

impl Deref for Described<'_> {
    type Target = PolicySet;

    fn deref(&self) -> &PolicySet {
        self.policies
    }
}

/// The scales of the actions of a set.
pub(super) fn attribute_scales(policies: &PolicySet) -> AttributeScales {
    let known = policies.actions().iter().filter_map(|action| policies.attributes().actions.get(action));
    let mut values: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (name, value) in known.flatten() {
        if let AttributeValue::Number(value) = value {
            values.entry(name).or_default().push(*value);
        }
    }
    let deviation = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt()
    };
    let scales = values.into_iter().map(|(name, values)| (name.clone(), deviation(&values)));
    scales.filter(|(_, scale)| *scale > 0.0 && scale.is_finite()).collect()
}

impl<'a> Described<'a> {
    pub(super) fn new(policies: &'a PolicySet, scales: &AttributeScales) -> Self {
        let (actions, known) = (policies.actions(), &policies.attributes().actions);
        let n = actions.len();
        let is_described = actions.iter().any(|action| known.contains_key(action));
        let alike = is_described.then(|| {
            let entry = |k: usize| {
                let (a, b) = (&actions[k / n], &actions[k % n]);
                match (known.get(a), known.get(b)) {
                    _ if a == b => 1.0,
                    (Some(a), Some(b)) => 0.5 * (-0.5 * distance(a, b, scales)).exp(),
                    _ => 0.0,
                }
            };
            (0..n * n).map(entry).collect()
        });
        Self { policies, alike }
    }

    /// How much two actions have in common, from 0 to 1.
    #[inline]
    pub(super) fn alike(&self, a: u32, b: u32) -> f64 {
        match &self.alike {
            Some(alike) => alike[a as usize * self.policies.actions().len() + b as usize],
            None => f64::from(u8::from(a == b)),
        }
    }

    /// Whether names are all that is known of actions.
    pub(super) fn is_by_name(&self) -> bool {
        self.alike.is_none()
    }
}

/// The squared distance of two actions by their attributes, in standard deviations.
fn distance(
    a: &BTreeMap<String, AttributeValue>,
    b: &BTreeMap<String, AttributeValue>,
    scales: &AttributeScales,
) -> f64 {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let apart = |name: &String| match (a.get(name), b.get(name)) {
        (Some(AttributeValue::Number(a)), Some(AttributeValue::Number(b))) => {
            scales.get(name).map_or(f64::from(u8::from(a != b)), |scale| ((a - b) / scale).powi(2))
        }
        (a, b) => f64::from(u8::from(a != b)),
    };
    names.into_iter().map(apart).sum()
}
