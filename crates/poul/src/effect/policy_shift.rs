//! A number for each policy that was run, to be added to its effects, and what follows for policies that were not.
//!
//! A policy with the mixture of one that was run has its number. Any other has βᵀ(α_t − α_0), the least squares fit of the
//! numbers on mixtures, policies weighted by their rows; where several fit as well, the shortest β.

use serde::{Deserialize, Serialize};

use crate::policy::PolicySet;
use crate::stats::{Cholesky, dot};
use crate::{Error, Result};

/// What keeps the fit solvable, in units of the mean diagonal.
const RIDGE: f64 = 1e-6;

/// Numbers by policy, as a model file keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PolicyShift {
    /// The policies whose numbers are known, sorted.
    policies: Vec<String>,
    shifts: Vec<f64>,
    /// Context and action of the atoms that these policies carry, sorted.
    atoms: Vec<(String, String)>,
    /// β.
    slopes: Vec<f64>,
    /// −βᵀα_0.
    constant: f64,
}

impl PolicyShift {
    /// From the numbers of `known` policies, in their order, and how much each counts; that of `against` should be 0.
    pub(crate) fn fit(
        policies: &PolicySet,
        known: &[usize],
        shifts: &[f64],
        rows: &[f64],
        against: usize,
    ) -> Result<Self> {
        let mut carried = vec![false; policies.atoms().len()];
        for policy in known.iter().chain([&against]) {
            policies.mixture(*policy).atoms.iter().for_each(|atom| carried[*atom as usize] = true);
        }
        // In order of names, as the set has them.
        let name = |atom: usize| {
            let atom = policies.atoms()[atom];
            let context = policies.contexts()[atom.context as usize].clone();
            (context, policies.actions()[atom.action as usize].clone())
        };
        let mut atoms: Vec<((String, String), usize)> =
            (0..carried.len()).filter(|atom| carried[*atom]).map(|atom| (name(atom), atom)).collect();
        atoms.sort();
        let mut place = vec![0; carried.len()];
        atoms.iter().enumerate().for_each(|(own, (_, atom))| place[*atom] = own);
        let masses = |policy: usize| {
            let mut masses = vec![0.0; atoms.len()];
            let mixture = policies.mixture(policy);
            mixture
                .atoms
                .iter()
                .zip(mixture.mass)
                .for_each(|(atom, mass)| masses[place[*atom as usize]] += mass);
            masses
        };
        let base = masses(against);
        let change = |policy: &usize| -> Vec<f64> {
            masses(*policy).iter().zip(&base).map(|(own, base)| own - base).collect()
        };
        let changes: Vec<Vec<f64>> = known.iter().map(change).collect();
        let slopes = least_squares(&changes, shifts, rows)
            .ok_or_else(|| Error::other("the averages of policies cannot be carried over to new ones"))?;
        let mut named: Vec<(String, f64)> = known
            .iter()
            .zip(shifts)
            .map(|(policy, shift)| (policies.name(*policy).to_owned(), *shift))
            .collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let constant = -dot(&slopes, &base);
        let (policies, shifts) = named.into_iter().unzip();
        let atoms = atoms.into_iter().map(|(name, _)| name).collect();
        Ok(Self { policies, shifts, atoms, slopes, constant })
    }

    /// The number of a policy of a set that holds those that were run.
    pub(crate) fn of(&self, policies: &PolicySet, policy: usize) -> f64 {
        let known = |name: &str| self.policies.binary_search_by(|own| own.as_str().cmp(name)).ok();
        if let Some(place) = known(policies.name(policy)) {
            return self.shifts[place];
        }
        let run = self.policies.iter().filter_map(|name| policies.index(name));
        if let Some((nearest, 0.0)) = policies.nearest_among(policy, run, 1).first().copied()
            && let Some(place) = known(policies.name(nearest))
        {
            return self.shifts[place];
        }
        let mixture = policies.mixture(policy);
        let mut shift = self.constant;
        for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
            let atom = policies.atoms()[*atom as usize];
            let context = &policies.contexts()[atom.context as usize];
            let action = &policies.actions()[atom.action as usize];
            let place = self.atoms.binary_search_by(|(c, a)| (c, a).cmp(&(context, action)));
            shift += place.map_or(0.0, |place| self.slopes[place]) * mass;
        }
        shift
    }

    /// Whether the parts fit together, as they do unless a file was damaged.
    pub(crate) fn is_sound(&self) -> bool {
        let numbers = self.shifts.iter().chain(&self.slopes).chain([&self.constant]);
        self.policies.is_sorted()
            && self.policies.len() == self.shifts.len()
            && self.atoms.is_sorted()
            && self.atoms.len() == self.slopes.len()
            && { numbers }.all(|number| number.is_finite())
    }
}

/// β of the least Σ_k w_k·(y_k − βᵀx_k)² + a little ‖β‖², by the smaller of two equivalent systems.
fn least_squares(x: &[Vec<f64>], y: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
    let (n_known, width) = (x.len(), x.first().map_or(0, Vec::len));
    let trace: f64 = x.iter().zip(weights).map(|(own, weight)| weight * dot(own, own)).sum();
    let ridge = RIDGE * (trace / width.max(1) as f64).max(1e-12);
    if n_known <= width {
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        let entry = |pair: usize| {
            let (a, b) = (pair / n_known, pair % n_known);
            roots[a] * roots[b] * dot(&x[a], &x[b]) + if a == b { ridge } else { 0.0 }
        };
        let system = Cholesky::new((0..n_known * n_known).map(entry).collect(), n_known)?;
        let mut solved: Vec<f64> = y.iter().zip(&roots).map(|(y, root)| y * root).collect();
        system.solve(&mut solved);
        let mut slopes = vec![0.0; width];
        for ((own, solved), root) in x.iter().zip(&solved).zip(&roots) {
            slopes.iter_mut().zip(own).for_each(|(slope, x)| *slope += root * solved * x);
        }
        return Some(slopes);
    }
    let (mut matrix, mut solved) = (vec![0.0; width * width], vec![0.0; width]);
    for ((own, y), weight) in x.iter().zip(y).zip(weights) {
        for (row, value) in own.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            let entries = &mut matrix[row * width..][..=row];
            entries.iter_mut().zip(own).for_each(|(entry, other)| *entry += weight * value * other);
            solved[row] += weight * value * y;
        }
    }
    (0..width).for_each(|row| matrix[row * width + row] += ridge);
    Cholesky::new(matrix, width)?.solve(&mut solved);
    Some(solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contexts x and y, each none or up; the last policy was never run, and the one before has the mixture of `c`.
    fn policies() -> PolicySet {
        let mut builder = PolicySet::builder();
        for (policy, x, y) in
            [("a", 0.0, 0.0), ("b", 1.0, 0.0), ("c", 0.0, 1.0), ("e", 0.0, 1.0), ("f", 1.0, 0.5)]
        {
            for (context, up) in [("x", x), ("y", y)] {
                builder.add(policy, context, "none", 1.0 - up).add(policy, context, "up", up);
            }
        }
        builder.weight("x", 0.25).weight("y", 0.75);
        builder.build().unwrap()
    }

    #[test]
    fn run_policies_keep_their_numbers_and_others_follow_mixtures() {
        let policies = policies();
        for known in [vec![0, 1, 2], vec![0, 1, 2, 3]] {
            let shifts: Vec<f64> = known.iter().map(|policy| [0.0, 2.0, -1.0, -1.0][*policy]).collect();
            let rows = vec![10.0; known.len()];
            let shift = PolicyShift::fit(&policies, &known, &shifts, &rows, 0).unwrap();
            assert!(shift.is_sound());
            let found: Vec<f64> = (0..5).map(|policy| shift.of(&policies, policy)).collect();
            assert_eq!(found[..4], [0.0, 2.0, -1.0, -1.0]);
            assert!((found[4] - 1.5).abs() < 1e-4, "{found:?}");
            let text = serde_json::to_string(&shift).unwrap();
            assert_eq!(serde_json::from_str::<PolicyShift>(&text).unwrap(), shift);
        }
    }

    #[test]
    fn both_systems_agree() {
        let x = vec![vec![1.0, 0.0, 0.5], vec![0.0, 1.0, 0.5], vec![1.0, 1.0, -0.2]];
        let (y, weights) = ([1.0, 2.0, 0.5], [1.0, 2.0, 3.0]);
        let one = least_squares(&x, &y, &weights).unwrap();
        // A fourth row of no weight makes the other system the smaller.
        let (mut more, no_weight) = (x.clone(), [1.0, 2.0, 3.0, 0.0]);
        more.push(vec![0.0; 3]);
        let other = least_squares(&more, &[1.0, 2.0, 0.5, 9.0], &no_weight).unwrap();
        assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-4), "{one:?} {other:?}");
    }
}
