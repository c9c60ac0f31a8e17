//! The atoms that were learned about, and mixtures of any policies over them.
//!
//! A context or action that was never seen has a place among the others if it has attributes that training knew.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::attributes::AttributeEncoder;
use crate::Result;
use crate::net::SparseRows;
use crate::policy::{AttributeValue, Attributes, PolicySet};

/// The atoms seen in training, by name, and where the mean training policy lies among them.
///
/// z is taken relative to the mean policy ᾱ and divided by the spread κ = √E‖α_T − ᾱ‖², so that it has unit variance
/// over policies when the entries of φ do, whatever the number of contexts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreatmentSpace {
    /// Contexts of the seen atoms, sorted.
    pub contexts: Vec<String>,
    /// Actions of the seen atoms, sorted.
    pub actions: Vec<String>,
    /// Seen atoms, as indices of contexts and actions.
    pub atoms: Vec<(u32, u32)>,
    /// ᾱ over the seen atoms.
    pub mean: Vec<f64>,
    /// κ.
    pub spread: f64,
    /// Attributes of the contexts as numbers; none in older models.
    #[serde(default, skip_serializing_if = "AttributeEncoder::is_empty")]
    pub context_attributes: AttributeEncoder,
    /// Attributes of the actions as numbers; none in older models.
    #[serde(default, skip_serializing_if = "AttributeEncoder::is_empty")]
    pub action_attributes: AttributeEncoder,
}

/// Mixtures of some policies in a space, as the treatment net takes them.
#[derive(Clone, Debug)]
pub(super) struct Mixtures {
    /// α_t / κ by policy, over the atoms below.
    pub(super) rows: Arc<SparseRows>,
    /// ᾱ / κ.
    pub(super) mean: Arc<SparseRows>,
    /// Context and action of each atom, as indices of the names below.
    pub(super) atoms: Vec<(u32, u32)>,
    /// From atoms to the seen atoms; an unseen one has an empty row.
    pub(super) seen: Arc<SparseRows>,
    /// The contexts of the space, then those that only attributes describe.
    pub(super) contexts: Names,
    /// The actions of the space, then those that only attributes describe.
    pub(super) actions: Names,
    /// The contexts that only attributes describe, in their order.
    pub(super) new_contexts: Vec<String>,
    /// What the user should know: attributes beyond those of training.
    pub(super) notes: Vec<String>,
}

/// Contexts or actions as the treatment net takes them.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// From names to those of the space; a new one has an empty row.
    pub(super) seen: Arc<SparseRows>,
    /// The attributes of each.
    pub(super) attributes: Arc<SparseRows>,
}

impl TreatmentSpace {
    /// The atoms that policies with a positive training share carry.
    pub fn new(policies: &PolicySet, shares: &[f64]) -> Self {
        let mut mean = vec![0.0; policies.atoms().len()];
        let mut square = 0.0;
        for (policy, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let mixture = policies.mixture(policy);
            for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
                mean[*atom as usize] += share * mass;
                square += share * mass * mass;
            }
        }
        let spread = (square - mean.iter().map(|mean| mean * mean).sum::<f64>()).max(1e-12).sqrt();
        let seen: Vec<usize> = (0..mean.len()).filter(|atom| mean[*atom] > 0.0).collect();
        let names = |of: &dyn Fn(usize) -> String| {
            let mut names: Vec<String> = seen.iter().map(|atom| of(*atom)).collect();
            names.sort();
            names.dedup();
            names
        };
        let contexts = names(&|atom| policies.contexts()[policies.atoms()[atom].context as usize].clone());
        let actions = names(&|atom| policies.actions()[policies.atoms()[atom].action as usize].clone());
        let place = |atom: usize| {
            let atom = policies.atoms()[atom];
            let context = &policies.contexts()[atom.context as usize];
            let action = &policies.actions()[atom.action as usize];
            let find = |names: &[String], name: &String| names.partition_point(|other| other < name) as u32;
            (find(&contexts, context), find(&actions, action))
        };
        let mut atoms: Vec<((u32, u32), f64)> = seen.iter().map(|atom| (place(*atom), mean[*atom])).collect();
        atoms.sort_by_key(|(atom, _)| *atom);
        let (atoms, mean) = atoms.into_iter().unzip();
        let none = AttributeEncoder::default;
        Self { contexts, actions, atoms, mean, spread, context_attributes: none(), action_attributes: none() }
    }

    /// The same space, with what is known of its contexts and actions.
    pub(crate) fn with_attributes(mut self, attributes: &Attributes) -> Result<Self> {
        self.context_attributes = AttributeEncoder::fit("context", &self.contexts, &attributes.contexts)?;
        self.action_attributes = AttributeEncoder::fit("action", &self.actions, &attributes.actions)?;
        Ok(self)
    }

    /// The place of a seen atom.
    pub(crate) fn place(&self, context: &str, action: &str) -> Option<usize> {
        let find =
            |names: &[String], name: &str| names.binary_search_by(|other| other.as_str().cmp(name)).ok();
        let atom = (find(&self.contexts, context)? as u32, find(&self.actions, action)? as u32);
        self.atoms.binary_search(&atom).ok()
    }

    /// Whether the parts fit together, as they do unless a file was damaged.
    pub(crate) fn is_consistent(&self) -> bool {
        let inside = |(context, action): &(u32, u32)| {
            (*context as usize) < self.contexts.len() && (*action as usize) < self.actions.len()
        };
        self.mean.len() == self.atoms.len()
            && !self.atoms.is_empty()
            && self.atoms.iter().all(inside)
            && self.context_attributes.is_consistent(self.contexts.len())
            && self.action_attributes.is_consistent(self.actions.len())
    }

    /// Whether an atom that was never seen can be taken by attributes: its context and its action were each seen or have
    /// attributes that training knew, and one of them has.
    ///
    /// Without attributes, an atom whose context and action were seen apart is not vouched for: it is scored by what
    /// they share with others only when the user allows it.
    pub(crate) fn embeds(&self, context: &str, action: &str, attributes: &Attributes) -> bool {
        let known =
            |names: &[String], name: &str| names.binary_search_by(|other| other.as_str().cmp(name)).is_ok();
        let by_context = self.context_attributes.encode(attributes.contexts.get(context)).is_known;
        let by_action = self.action_attributes.encode(attributes.actions.get(action)).is_known;
        match (by_context, by_action) {
            (true, true) => true,
            (true, false) => known(&self.actions, action),
            (false, true) => known(&self.contexts, context),
            (false, false) => false,
        }
    }

    /// Mixtures of the chosen policies. An atom that was never seen is taken by what its context and action share
    /// with others, and by their attributes; where one of them is unknown in every way, it counts as zero.
    pub(super) fn mixtures(&self, policies: &PolicySet, chosen: &[usize]) -> Result<Mixtures> {
        self.place_policies(policies, chosen, |policy| policies.mixture(policy).mass, &self.mean)
    }

    /// As [`mixtures`](Self::mixtures) with Π_t(a|s) and Π̄(a|s) in place of their products with w(s); and the context of
    /// each atom, as a number among those of the policies.
    pub(super) fn whole_in_every_context(
        &self,
        policies: &PolicySet,
        chosen: &[usize],
    ) -> Result<(Mixtures, Vec<u32>)> {
        let mut weights = vec![0.0; self.contexts.len()];
        self.atoms.iter().zip(&self.mean).for_each(|((context, _), mean)| weights[*context as usize] += mean);
        let mean =
            self.atoms.iter().zip(&self.mean).map(|((context, _), mean)| mean / weights[*context as usize]);
        let mean: Vec<f64> = mean.collect();
        let mixtures = self.place_policies(policies, chosen, |policy| policies.conditional(policy), &mean)?;
        let known = policies.contexts();
        let names = self.contexts.iter().map(|name| known.binary_search(name).ok());
        let names = names.chain(mixtures.new_contexts.iter().map(|name| known.binary_search(name).ok()));
        let places: Option<Vec<u32>> = names.map(|place| place.map(|place| place as u32)).collect();
        let places =
            places.ok_or_else(|| crate::Error::other("policies over other contexts than the model's"))?;
        let context_of = mixtures.atoms.iter().map(|(context, _)| places[*context as usize]).collect();
        Ok((mixtures, context_of))
    }

    fn place_policies<'p>(
        &self,
        policies: &'p PolicySet,
        chosen: &[usize],
        mass_of: impl Fn(usize) -> &'p [f64],
        mean: &[f64],
    ) -> Result<Mixtures> {
        let known = policies.attributes();
        let mut contexts =
            NameTable::new("context", &self.contexts, &self.context_attributes, &known.contexts);
        let mut actions = NameTable::new("action", &self.actions, &self.action_attributes, &known.actions);
        let mut place: BTreeMap<(u32, u32), u32> =
            self.atoms.iter().enumerate().map(|(index, atom)| (*atom, index as u32)).collect();
        let mut atoms = self.atoms.clone();
        let mut rows = Vec::with_capacity(chosen.len());
        for policy in chosen {
            let mixture = policies.mixture(*policy);
            let mut row = Vec::with_capacity(mixture.atoms.len());
            for (atom, mass) in mixture.atoms.iter().zip(mass_of(*policy)).filter(|(_, mass)| **mass > 0.0) {
                let parts = policies.atoms()[*atom as usize];
                let context = contexts.place(&policies.contexts()[parts.context as usize]);
                let action = actions.place(&policies.actions()[parts.action as usize]);
                let (Some(context), Some(action)) = (context, action) else {
                    continue;
                };
                let index = *place.entry((context, action)).or_insert_with(|| {
                    atoms.push((context, action));
                    atoms.len() as u32 - 1
                });
                row.push((index, (mass / self.spread) as f32));
            }
            rows.push(row);
        }
        let n_atoms = atoms.len();
        let mean = mean.iter().enumerate().map(|(atom, mass)| (atom as u32, (mass / self.spread) as f32));
        let seen = (0..n_atoms).map(|atom| (atom < self.atoms.len()).then_some((atom as u32, 1.0)));
        Ok(Mixtures {
            rows: Arc::new(SparseRows::new(n_atoms, rows)?),
            mean: Arc::new(SparseRows::new(n_atoms, [mean])?),
            seen: Arc::new(SparseRows::new(self.atoms.len(), seen)?),
            atoms,
            new_contexts: contexts.new_names(),
            notes: contexts.notes().chain(actions.notes()).collect(),
            contexts: contexts.finish()?,
            actions: actions.finish()?,
        })
    }
}

/// The contexts or actions of a space, and new ones as they come up.
struct NameTable<'a> {
    kind: &'static str,
    seen: &'a [String],
    encoder: &'a AttributeEncoder,
    attributes: &'a BTreeMap<String, BTreeMap<String, AttributeValue>>,
    /// Index, and what the attributes become.
    new: BTreeMap<&'a str, (u32, Vec<f32>)>,
}

impl<'a> NameTable<'a> {
    fn new(
        kind: &'static str,
        seen: &'a [String],
        encoder: &'a AttributeEncoder,
        attributes: &'a BTreeMap<String, BTreeMap<String, AttributeValue>>,
    ) -> Self {
        Self { kind, seen, encoder, attributes, new: BTreeMap::new() }
    }

    /// The index of a name; none where nothing is known of it.
    fn place(&mut self, name: &'a String) -> Option<u32> {
        if let Ok(index) = self.seen.binary_search(name) {
            return Some(index as u32);
        }
        if let Some((index, _)) = self.new.get(name.as_str()) {
            return Some(*index);
        }
        let encoded = self.encoder.encode(self.attributes.get(name));
        let index = (self.seen.len() + self.new.len()) as u32;
        encoded.is_known.then(|| {
            self.new.insert(name, (index, encoded.values));
            index
        })
    }

    /// The names beyond those of the space, in the order of their numbers.
    fn new_names(&self) -> Vec<String> {
        let mut new: Vec<(u32, &str)> = self.new.iter().map(|(name, (index, _))| (*index, *name)).collect();
        new.sort_unstable();
        new.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        self.new.keys().flat_map(move |name| {
            let beyond = self.encoder.beyond(self.attributes.get(*name));
            beyond.map(move |(attribute, value, low, high)| {
                let kind = self.kind;
                format!(
                    "attribute `{attribute}` of {kind} `{name}` is {value}, where training knew {low} to {high}: \
                     its effect is extrapolated"
                )
            })
        })
    }

    fn finish(self) -> Result<Names> {
        let (n_seen, width) = (self.seen.len(), self.encoder.width());
        let mut rows: Vec<&[f32]> = (0..n_seen).map(|name| self.encoder.trained(name)).collect();
        let mut new: Vec<&(u32, Vec<f32>)> = self.new.values().collect();
        new.sort_by_key(|(index, _)| *index);
        rows.extend(new.iter().map(|(_, values)| values.as_slice()));
        let seen = (0..rows.len()).map(|name| (name < n_seen).then_some((name as u32, 1.0)));
        let seen = SparseRows::new(n_seen, seen)?;
        let numbered = |row: &[f32]| (0..).zip(row.iter().copied()).collect::<Vec<(u32, f32)>>();
        let attributes = SparseRows::new(width, rows.into_iter().map(numbered))?;
        Ok(Names { seen: Arc::new(seen), attributes: Arc::new(attributes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> PolicySet {
        let mut builder = PolicySet::builder();
        for (policy, a, b) in
            [("control", "none", "none"), ("t1", "up", "none"), ("t2", "none", "up"), ("t3", "new", "none")]
        {
            builder.add(policy, "x", a, 1.0).add(policy, "y", b, 1.0);
        }
        builder.build().unwrap()
    }

    #[test]
    fn unseen_atoms_are_taken_by_their_parts() {
        let set = set();
        // t2 and t3 were not run: `y:up` is unseen with known parts, `new` is an unknown action.
        let space = TreatmentSpace::new(&set, &[0.5, 0.5, 0.0, 0.0]);
        assert_eq!(space.actions, ["none", "up"]);
        assert_eq!(space.atoms.len(), 3);
        assert!(!space.embeds("y", "up", set.attributes()) && !space.embeds("x", "new", set.attributes()));
        let index = |name: &str| set.index(name).unwrap();
        let mixtures = space.mixtures(&set, &[0, index("t2"), index("t3")]).unwrap();
        assert_eq!(mixtures.atoms.len(), 4);
        assert_eq!(mixtures.seen.row(3).count(), 0);
        let atoms = |row: usize| mixtures.rows.row(row).map(|(atom, _)| atom).collect::<Vec<_>>();
        assert_eq!(atoms(1).last(), Some(&3));
        assert_eq!(atoms(2).len(), 1);
    }

    #[test]
    fn what_has_attributes_has_a_place() {
        let mut builder = PolicySet::builder();
        for (policy, action) in
            [("control", "none"), ("t1", "up"), ("t2", "more"), ("t3", "odd"), ("t4", "far")]
        {
            builder.add(policy, "x", action, 1.0).add(policy, "y", "none", 1.0);
        }
        let mut attributes = Attributes::default();
        for (action, price) in [("none", 0.0), ("up", 2.0), ("more", 3.0), ("far", 1.5)] {
            let price = ("price".to_owned(), AttributeValue::Number(price));
            attributes.actions.insert(action.to_owned(), [price].into());
        }
        builder.attributes(attributes.clone());
        let set = builder.build().unwrap();
        let space =
            TreatmentSpace::new(&set, &[0.5, 0.5, 0.0, 0.0, 0.0]).with_attributes(&attributes).unwrap();
        assert_eq!(space.actions, ["none", "up"]);
        for (context, action, embeds) in [
            ("x", "more", true),
            ("y", "up", true),
            ("x", "odd", false),
            ("new", "up", false),
            ("new", "more", false),
        ] {
            assert_eq!(space.embeds(context, action, &attributes), embeds, "{context}:{action}");
        }
        let index = |name: &str| set.index(name).unwrap();
        let mixtures = space.mixtures(&set, &[index("t2"), index("t3"), index("t4")]).unwrap();
        assert_eq!(mixtures.atoms[3..], [(0, 2), (0, 3)]);
        assert_eq!([0, 1, 2].map(|row| mixtures.rows.row(row).count()), [2, 1, 2]);
        let prices: Vec<f32> =
            (0..4).flat_map(|name| mixtures.actions.attributes.row(name).map(|pair| pair.1)).collect();
        assert_eq!(prices, [-1.0, 1.0, 2.0, 0.5]);
        assert_eq!(mixtures.actions.seen.row(2).count(), 0);
        assert_eq!(mixtures.notes.len(), 1);
        assert!(mixtures.notes[0].contains("`price` of action `more` is 3,"), "{:?}", mixtures.notes);
        let stored = serde_json::to_string(&space).unwrap();
        assert_eq!(serde_json::from_str::<TreatmentSpace>(&stored).unwrap(), space);
    }

    #[test]
    fn z_has_unit_spread() {
        let set = set();
        let space = TreatmentSpace::new(&set, &[0.25; 4]);
        let mean: f64 = space.mean.iter().sum();
        assert!((mean - 1.0).abs() < 1e-12);
        let all: Vec<usize> = (0..4).collect();
        let mixtures = space.mixtures(&set, &all).unwrap();
        let mut square = 0.0;
        for policy in 0..4 {
            let mut row: Vec<f64> = space.mean.iter().map(|mean| -mean / space.spread).collect();
            mixtures.rows.row(policy).for_each(|(atom, mass)| row[atom] += f64::from(mass));
            square += row.iter().map(|value| value * value).sum::<f64>() / 4.0;
        }
        assert!((square - 1.0).abs() < 1e-6, "{square}");
    }
}
