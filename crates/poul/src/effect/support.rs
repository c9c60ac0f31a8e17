//! How well the training data support a policy: atoms never seen, and the distance to what was run (Sec. 2.1, d_Π).

use serde::Serialize;

use crate::policy::PolicySet;
use crate::{Error, Result};

/// The atoms that some training row carried.
pub struct Support<'a> {
    trained: &'a PolicySet,
    policy_rows: &'a [u64],
    /// Training rows whose policy carries each atom of `trained`.
    atom_rows: Vec<u64>,
}

/// An atom of a policy, and what stands behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtomSupport {
    /// Name of the context.
    pub context: String,
    /// Name of the action.
    pub action: String,
    /// Its share of the policy's mixture.
    pub share: f64,
    /// Training rows whose policy carries it.
    pub rows: u64,
}

/// What is known of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicySupport {
    /// Its name.
    pub policy: String,
    /// Its training rows.
    pub rows: u64,
    /// The share of its mixture on atoms that cannot be scored, from 0 to 1.
    pub unseen_share: f64,
    /// Those atoms, as `context:action`.
    pub unseen: Vec<String>,
    /// The policy nearest to it among those that were run; itself if it was.
    pub nearest: Option<String>,
    /// The distance d_Π to that one, from 0 to 2.
    pub distance: Option<f64>,
}

impl<'a> Support<'a> {
    /// For a model trained on `policies`, of which each had so many rows.
    pub fn new(policies: &'a PolicySet, policy_rows: &'a [u64]) -> Self {
        let mut atom_rows = vec![0_u64; policies.atoms().len()];
        for (policy, rows) in policy_rows.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            let mixture = policies.mixture(policy);
            for (atom, _) in mixture.atoms.iter().zip(mixture.mass).filter(|(_, mass)| **mass > 0.0) {
                // Counts of a model file may be any.
                let sum = &mut atom_rows[*atom as usize];
                *sum = sum.saturating_add(*rows);
            }
        }
        Self { trained: policies, policy_rows, atom_rows }
    }

    /// Training rows whose policy carries an atom.
    pub fn atom_rows(&self, context: &str, action: &str) -> u64 {
        self.trained.atom_index(context, action).map_or(0, |atom| self.atom_rows[atom])
    }

    /// Training rows of a policy of that name.
    pub(crate) fn policy_rows(&self, name: &str) -> u64 {
        self.trained.index(name).map_or(0, |own| self.policy_rows[own])
    }

    /// The atoms of a policy of `policies`, a set over the same contexts.
    pub(crate) fn atoms(&self, policies: &PolicySet, policy: usize) -> Vec<AtomSupport> {
        let mixture = policies.mixture(policy);
        let carried = mixture.atoms.iter().zip(mixture.mass).filter(|(_, mass)| **mass > 0.0);
        let atom = |(atom, share): (&u32, &f64)| {
            let names = policies.atoms()[*atom as usize];
            let context = policies.contexts()[names.context as usize].clone();
            let action = policies.actions()[names.action as usize].clone();
            AtomSupport { rows: self.atom_rows(&context, &action), share: *share, context, action }
        };
        carried.map(atom).collect()
    }

    /// The share of a policy's mixture on atoms with at least `min_rows` training rows.
    pub(crate) fn supported_share(&self, policies: &PolicySet, policy: usize, min_rows: u64) -> f64 {
        let atoms = self.atoms(policies, policy);
        let (weak, weak_share) = atoms
            .iter()
            .filter(|atom| atom.rows < min_rows)
            .fold((0, 0.0), |(n, share), atom| (n + 1, share + atom.share));
        // Shares of whole policies are exactly 1 and 0, whatever their sums round to.
        if weak == 0 {
            1.0
        } else if weak == atoms.len() {
            0.0
        } else {
            (1.0 - weak_share).clamp(0.0, 1.0)
        }
    }

    /// Whether every atom of a policy was seen, or can be scored by what `embeds` knows of it.
    pub(crate) fn is_known(
        &self,
        policies: &PolicySet,
        policy: usize,
        embeds: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let atoms = self.atoms(policies, policy);
        atoms.iter().all(|atom| atom.rows > 0 || embeds(&atom.context, &atom.action))
    }

    /// The `k` policies that were run nearest to one of `policies`, a set that includes the trained ones.
    pub(crate) fn nearest_run(&self, policies: &PolicySet, policy: usize, k: usize) -> Vec<(usize, f64)> {
        let is_run = self.policy_rows(policies.name(policy)) > 0;
        if is_run && k == 1 {
            return vec![(policy, 0.0)];
        }
        let run = (0..self.trained.len()).filter(|own| self.policy_rows[*own] > 0);
        let run = run.filter_map(|own| policies.index(self.trained.name(own)));
        let mut nearest = policies.nearest_among(policy, run, k);
        // A policy of the same mixture may come before it by name.
        if is_run {
            nearest.retain(|(other, _)| *other != policy);
            nearest.insert(0, (policy, 0.0));
            nearest.truncate(k);
        }
        nearest
    }

    /// The support of a policy of `policies`, a set over the same contexts that includes the trained ones.
    ///
    /// `embeds` says of an atom that was not seen whether it can be scored nevertheless.
    pub fn of(
        &self,
        policies: &PolicySet,
        policy: usize,
        embeds: impl Fn(&str, &str) -> bool,
    ) -> PolicySupport {
        let (mut unseen, mut unseen_share) = (Vec::new(), 0.0);
        for atom in self.atoms(policies, policy) {
            if atom.rows == 0 && !embeds(&atom.context, &atom.action) {
                unseen.push(format!("{}:{}", atom.context, atom.action));
                unseen_share += atom.share;
            }
        }
        let name = policies.name(policy);
        let rows = self.policy_rows(name);
        let nearest = self.nearest_run(policies, policy, 1).first().copied();
        PolicySupport {
            policy: name.to_owned(),
            rows,
            unseen_share,
            unseen,
            nearest: nearest.map(|(nearest, _)| policies.name(nearest).to_owned()),
            distance: nearest.map(|(_, distance)| distance),
        }
    }
}

impl PolicySupport {
    /// An error that lists the atoms that cannot be scored, if there are any.
    pub(crate) fn require_seen(&self) -> Result<()> {
        const SHOWN: usize = 8;
        if self.unseen.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> = self.unseen.iter().take(SHOWN).map(|atom| format!("`{atom}`")).collect();
        let more = match self.unseen.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let atoms = if self.unseen.len() == 1 { "an atom" } else { "atoms" };
        let share = 100.0 * self.unseen_share;
        let what = format!(
            "{share:.1} % of the policy is on {atoms} that no training row carried: {}{more}",
            shown.join(", ")
        );
        let error = Error::input(what).at(format!("policy `{}`", self.policy));
        Err(error.hint(
            "score it anyway with ‹allow_unseen›: by what the context and the action do elsewhere, and as no effect where one of them is new; or choose another policy",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(policies: &[(&str, &str, &str)]) -> PolicySet {
        let mut builder = PolicySet::builder();
        builder.weight("s1", 3.0).weight("s2", 1.0).weight("never", 0.0);
        for (name, first, second) in policies {
            builder.add(name, "s1", first, 1.0).add(name, "s2", second, 1.0).add(name, "never", name, 1.0);
        }
        builder.build().unwrap()
    }

    #[test]
    fn counts_of_a_model_file_may_be_any() {
        let policies = set(&[("a", "x", "x"), ("b", "y", "x")]);
        assert_eq!(Support::new(&policies, &[u64::MAX, 2]).atom_rows("s2", "x"), u64::MAX);
    }

    #[test]
    fn atoms_count_as_seen_only_through_policies_with_rows() {
        let trained = set(&[("a", "x", "x"), ("b", "y", "x"), ("planned", "x", "z")]);
        let all = trained.union(&set(&[("new", "y", "z"), ("far", "q", "x")])).unwrap();
        let rows: Vec<u64> =
            trained.names().iter().map(|name| if name == "planned" { 0 } else { 7 }).collect();
        let support = Support::new(&trained, &rows);
        let of = |name: &str| support.of(&all, all.index(name).unwrap(), |_, _| false);
        assert_eq!(of("a").unseen_share, 0.0);
        assert_eq!((of("a").nearest.as_deref(), of("a").distance, of("a").rows), (Some("a"), Some(0.0), 7));
        let new = of("new");
        assert_eq!((new.unseen_share, new.unseen.as_slice()), (0.25, &["s2:z".to_owned()][..]));
        assert_eq!((new.nearest.as_deref(), new.distance), (Some("b"), Some(0.5)));
        assert_eq!(of("planned").unseen, ["s2:z"]);
        let error = of("far").require_seen().unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy `far`: 75.0 % of the policy is on an atom that no training row carried: `s1:q`"
        );
        assert!(error.hint_text().unwrap().contains("`allow_unseen`"));
        assert_eq!((support.atom_rows("s1", "x"), support.atom_rows("s2", "x")), (7, 14));
        let share = |name: &str, rows| support.supported_share(&all, all.index(name).unwrap(), rows);
        assert_eq!([share("a", 7), share("a", 8), share("far", 8), share("far", 15)], [1.0, 0.25, 0.25, 0.0]);
        let known = support.of(&all, all.index("far").unwrap(), |_, action| action == "q");
        assert!(known.require_seen().is_ok());
    }
}
