//! The atoms that were learned about, and mixtures of any policies over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::net::SparseRows;
use crate::policy::PolicySet;

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
}

/// Mixtures of some policies in a space, as the treatment net takes them.
#[derive(Clone, Debug)]
pub(super) struct Mixtures {
    /// α_t / κ by policy, over the atoms below.
    pub(super) rows: Arc<SparseRows>,
    /// ᾱ / κ.
    pub(super) mean: Arc<SparseRows>,
    /// Context and action of each atom, as indices of the space.
    pub(super) atoms: Vec<(u32, u32)>,
    /// From atoms to the seen atoms; an unseen one has an empty row.
    pub(super) seen: Arc<SparseRows>,
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
        Self { contexts, actions, atoms, mean, spread }
    }

    /// The place of a seen atom.
    pub fn place(&self, context: &str, action: &str) -> Option<usize> {
        let find =
            |names: &[String], name: &str| names.binary_search_by(|other| other.as_str().cmp(name)).ok();
        let atom = (find(&self.contexts, context)? as u32, find(&self.actions, action)? as u32);
        self.atoms.binary_search(&atom).ok()
    }

    /// Whether the parts fit together, as they do unless a file was damaged.
    pub fn is_consistent(&self) -> bool {
        let inside = |(context, action): &(u32, u32)| {
            (*context as usize) < self.contexts.len() && (*action as usize) < self.actions.len()
        };
        self.mean.len() == self.atoms.len() && !self.atoms.is_empty() && self.atoms.iter().all(inside)
    }

    /// Whether an atom can be taken by what its context and action share with others.
    pub fn embeds(&self, context: &str, action: &str) -> bool {
        let known =
            |names: &[String], name: &str| names.binary_search_by(|other| other.as_str().cmp(name)).is_ok();
        known(&self.contexts, context) && known(&self.actions, action)
    }

    /// Mixtures of the chosen policies. An atom that was never seen is taken by what its context and action share
    /// with others; where one of them was never seen either, it counts as zero.
    pub(super) fn mixtures(&self, policies: &PolicySet, chosen: &[usize]) -> Result<Mixtures> {
        let mut place: BTreeMap<(u32, u32), u32> =
            self.atoms.iter().enumerate().map(|(index, atom)| (*atom, index as u32)).collect();
        let mut atoms = self.atoms.clone();
        let mut rows = Vec::with_capacity(chosen.len());
        for policy in chosen {
            let mixture = policies.mixture(*policy);
            let mut row = Vec::with_capacity(mixture.atoms.len());
            for (atom, mass) in mixture.atoms.iter().zip(mixture.mass).filter(|(_, mass)| **mass > 0.0) {
                let parts = policies.atoms()[*atom as usize];
                let context = self.contexts.binary_search(&policies.contexts()[parts.context as usize]);
                let action = self.actions.binary_search(&policies.actions()[parts.action as usize]);
                let (Ok(context), Ok(action)) = (context, action) else {
                    continue;
                };
                let atom = (context as u32, action as u32);
                let index = *place.entry(atom).or_insert_with(|| {
                    atoms.push(atom);
                    atoms.len() as u32 - 1
                });
                row.push((index, (mass / self.spread) as f32));
            }
            rows.push(row);
        }
        let n_atoms = atoms.len();
        let mean =
            self.mean.iter().enumerate().map(|(atom, mass)| (atom as u32, (mass / self.spread) as f32));
        let seen = (0..n_atoms).map(|atom| (atom < self.atoms.len()).then_some((atom as u32, 1.0)));
        Ok(Mixtures {
            rows: Arc::new(SparseRows::new(n_atoms, rows)?),
            mean: Arc::new(SparseRows::new(n_atoms, [mean])?),
            seen: Arc::new(SparseRows::new(self.atoms.len(), seen)?),
            atoms,
        })
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
        assert!(space.embeds("y", "up") && !space.embeds("x", "new"));
        let index = |name: &str| set.index(name).unwrap();
        let mixtures = space.mixtures(&set, &[0, index("t2"), index("t3")]).unwrap();
        assert_eq!(mixtures.atoms.len(), 4);
        assert_eq!(mixtures.seen.row(3).count(), 0);
        let atoms = |row: usize| mixtures.rows.row(row).map(|(atom, _)| atom).collect::<Vec<_>>();
        assert_eq!(atoms(1).last(), Some(&3));
        assert_eq!(atoms(2).len(), 1);
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
