//! Proposition 3 of the paper for a trained model: L_ρ and B_φ of each member, and how large g(x) is over rows.
//!
//! z(t) − z(t′) = Σ (α_t − α_t′)(s,a)·(φ(s,a) − c_s) / κ for any c_s, since both policies spend w(s) in every context. So
//! ‖z(t) − z(t′)‖ ≤ B_φ·d_Π(t, t′), B_φ being the largest distance of an atom's φ from the mean of its context.

use std::collections::BTreeMap;

use super::anchor::Anchor;
use super::fitted::Poul;
use super::params::Loss;
use super::uplift_net::UpliftNet;
use crate::Result;
use crate::effect::{GainDeciles, PolicyEmbedding, RowBound, StabilityConstants};
use crate::net::{Layout, RowSource, Workspace, predict};
use crate::policy::PolicySet;

/// Parts into which rows are cut by the size of g.
const N_PARTS: usize = 10;
/// Least scale of an axis, relative to the largest.
const LEAST_SCALE: f64 = 1e-4;

impl PolicyEmbedding for Poul {
    fn embeddings(&self, policies: &PolicySet, chosen: &[usize], outcome: usize) -> Result<Vec<Vec<f32>>> {
        Poul::embeddings(self, policies, chosen, outcome)
    }

    fn constants(
        &self,
        policies: &PolicySet,
        chosen: &[usize],
        outcome: usize,
    ) -> Result<Vec<StabilityConstants>> {
        let policies = &*self.weighted(policies)?;
        let mixtures = self.space().mixtures(policies, chosen)?;
        // An atom of which nothing is known counts as zero: so does its φ.
        let has_nothing = |(row, policy): (usize, &usize)| {
            let carried = policies.mixture(*policy).mass.iter().filter(|mass| **mass > 0.0).count();
            mixtures.rows.row(row).count() < carried
        };
        let with_zero = chosen.iter().enumerate().any(has_nothing);
        let treatment = self.treatment_net(outcome);
        let mut workspace = Workspace::default();
        let gains = self.gains(outcome);
        let of = |(member, weights): (usize, &Vec<f32>)| {
            let phi = workspace.value(self.layout(), weights, |tape| treatment.atoms(tape, &mixtures))?;
            Ok(StabilityConstants {
                lipschitz: match gains.get(member) {
                    Some(own) => treatment.rho.lipschitz_along(self.layout(), weights, &own.scales),
                    None => treatment.rho.lipschitz(self.layout(), weights),
                },
                embedding_bound: embedding_bound(&phi, &mixtures.atoms, with_zero) / self.space().spread,
            })
        };
        self.weights().iter().enumerate().map(of).collect()
    }

    fn gains(&self, outcome: usize) -> &[GainDeciles] {
        let n_members = self.weights().len();
        self.gain_deciles().get(outcome * n_members..(outcome + 1) * n_members).unwrap_or(&[])
    }

    fn row_bounds(
        &self,
        policies: &PolicySet,
        pair: [usize; 2],
        outcome: usize,
    ) -> Result<Option<Vec<RowBound>>> {
        self.own_row_bounds(policies, pair, outcome)
    }

    fn link_slope(&self) -> f64 {
        match self.model_params().loss {
            // The logistic function is nowhere steeper.
            Loss::Logistic => 0.25,
            Loss::Squared => 1.0,
        }
    }

    fn axes(&self, outcome: usize) -> &[f64] {
        self.geometry().get(self.treatment_of(outcome)).map_or(&[], |geometry| &geometry.axes)
    }
}

/// The largest distance of an atom's φ from the mean of its context; `with_zero` adds an atom at 0 to every context.
pub(super) fn embedding_bound(phi: &[f32], atoms: &[(u32, u32)], with_zero: bool) -> f64 {
    let r = phi.len() / atoms.len().max(1);
    let mut by_context: BTreeMap<u32, Vec<&[f32]>> = BTreeMap::new();
    for (vector, (context, _)) in phi.chunks_exact(r.max(1)).zip(atoms) {
        by_context.entry(*context).or_default().push(vector);
    }
    let zero = vec![0.0; r];
    let mut most = 0.0_f64;
    for vectors in by_context.values_mut() {
        if with_zero {
            vectors.push(&zero);
        }
        let n = vectors.len() as f64;
        let mean: Vec<f64> =
            (0..r).map(|k| vectors.iter().map(|vector| f64::from(vector[k])).sum::<f64>() / n).collect();
        for vector in vectors {
            let square: f64 = vector.iter().zip(&mean).map(|(v, mean)| (f64::from(*v) - mean).powi(2)).sum();
            most = most.max(square);
        }
    }
    most.sqrt()
}

/// ‖g(x)/s‖ of every outcome and member by decile of the rows, and s in the units of `units`; outcomes first. Where effects
/// lie around averages, g is what sets rows apart from them.
pub(super) fn gain_deciles(
    network: &UpliftNet,
    layout: &Layout,
    members: &[Vec<f32>],
    x: &dyn RowSource,
    units: &[f64],
    anchors: &[Anchor],
) -> Result<Vec<GainDeciles>> {
    let (d, n_outcomes, n_rows) = (network.width(), units.len(), x.n_rows());
    if n_rows == 0 {
        return Ok(Vec::new());
    }
    let mut sizes = vec![Vec::with_capacity(n_rows); n_outcomes * members.len()];
    let mut scales = vec![Vec::new(); n_outcomes * members.len()];
    for (member, weights) in members.iter().enumerate() {
        let mut g = predict(layout, weights, network, x, d * n_outcomes, member)?;
        for (outcome, anchor) in anchors.iter().enumerate() {
            for g in g.chunks_exact_mut(d).skip(outcome).step_by(n_outcomes) {
                let own = g.iter_mut().zip(&anchor.centre[member]);
                own.for_each(|(g, centre)| {
                    let around = anchor.slope * (f64::from(*g) - centre);
                    *g = (around + anchor.level * centre) as f32;
                });
            }
        }
        for outcome in 0..n_outcomes {
            let own = || g.chunks_exact(d).skip(outcome).step_by(n_outcomes);
            let s = root_mean_squares(own(), d);
            let size =
                |g: &[f32]| g.iter().zip(&s).map(|(g, s)| (f64::from(*g) / s).powi(2)).sum::<f64>().sqrt();
            sizes[outcome * members.len() + member] = own().map(size).collect::<Vec<f64>>();
            scales[outcome * members.len() + member] = s.iter().map(|s| s * units[outcome]).collect();
        }
    }
    let of_outcome = |(sizes, scales): (&[Vec<f64>], &[Vec<f64>])| {
        let total: Vec<f64> = (0..n_rows).map(|row| sizes.iter().map(|own| own[row]).sum()).collect();
        let mut order: Vec<usize> = (0..n_rows).collect();
        order.sort_by(|a, b| total[*a].total_cmp(&total[*b]));
        let both = sizes.iter().zip(scales);
        both.map(|(own, scales)| deciles(own, &order, scales.clone())).collect::<Vec<_>>()
    };
    let n = members.len().max(1);
    Ok(sizes.chunks(n).zip(scales.chunks(n)).flat_map(of_outcome).collect())
}

/// √E[g_k²] of each axis; axes along which g is next to nothing count a little, so that nothing is divided by zero.
fn root_mean_squares<'g>(rows: impl Iterator<Item = &'g [f32]>, d: usize) -> Vec<f64> {
    let (mut squares, mut n) = (vec![0.0; d], 0.0_f64);
    for g in rows {
        squares.iter_mut().zip(g).for_each(|(sum, g)| *sum += f64::from(*g).powi(2));
        n += 1.0;
    }
    let roots: Vec<f64> = squares.iter().map(|sum| (sum / n.max(1.0)).sqrt()).collect();
    let least = LEAST_SCALE * roots.iter().copied().fold(f64::MIN_POSITIVE.sqrt(), f64::max);
    roots.into_iter().map(|root| root.max(least)).collect()
}

fn deciles(sizes: &[f64], order: &[usize], scales: Vec<f64>) -> GainDeciles {
    let n = order.len();
    let part = |part: usize| {
        let first = (part * n / N_PARTS).min(n - 1);
        &order[first..((part + 1) * n / N_PARTS).max(first + 1)]
    };
    let mean = |rows: &[usize]| rows.iter().map(|row| sizes[*row]).sum::<f64>() / rows.len() as f64;
    let most = |rows: &[usize]| rows.iter().fold(0.0_f64, |most, row| most.max(sizes[*row]));
    GainDeciles {
        scales,
        mean: (0..N_PARTS).map(|number| mean(part(number))).collect(),
        most: (0..N_PARTS).map(|number| most(part(number))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::super::canonical::Population;
    use super::super::params::{Embedding, Params};
    use super::super::space::TreatmentSpace;
    use super::*;
    use crate::Seed;
    use crate::effect::EffectModel;
    use crate::net::DenseRows;

    #[test]
    fn deciles_cover_all_rows_and_few_rows_fill_them() {
        let sizes: Vec<f64> = (0..40).map(|row| f64::from((row * 7) % 40)).collect();
        let mut order: Vec<usize> = (0..40).collect();
        order.sort_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
        let found = deciles(&sizes, &order, Vec::new());
        assert_eq!((found.mean[0], found.most[0]), (1.5, 3.0));
        assert_eq!((found.mean[9], found.most[9]), (37.5, 39.0));
        let few = deciles(&[2.0, 1.0], &[1, 0], Vec::new());
        assert_eq!((few.mean[0], few.most[9]), (1.0, 2.0));
    }

    #[test]
    fn what_all_atoms_of_a_context_share_does_not_count() {
        let atoms = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let phi = [1.0, 0.0, -1.0, 0.0, 10.0, 2.0, 10.0, -2.0];
        assert_eq!(embedding_bound(&phi, &atoms, false), 2.0);
        let shifted: Vec<f32> = phi.iter().enumerate().map(|(i, v)| v + (i / 4 * 5) as f32).collect();
        assert_eq!(embedding_bound(&shifted, &atoms, false), 2.0);
        // An atom at 0 is far from the second context.
        assert!(embedding_bound(&phi, &atoms, true) > 6.0);
    }

    const N_ROWS: usize = 400;
    const CONTEXTS: [&str; 4] = ["a", "b", "c", "d"];

    /// Random policies; of the first `n_run` only five actions, of the others, which were never run, seven. Every second
    /// of those differs from the first policy in one context.
    fn policies(rng: &mut crate::Rng, n_run: usize, n_new: usize) -> PolicySet {
        let mut builder = PolicySet::builder();
        CONTEXTS.iter().zip([3.0, 1.0, 2.0, 0.5]).for_each(|(context, weight)| {
            builder.weight(context, weight);
        });
        for policy in 0..n_run + n_new {
            let name = format!("t{policy:03}");
            for (number, context) in CONTEXTS.into_iter().enumerate() {
                if policy == 0 || (policy > n_run && policy % 2 == 1 && policy / 2 % 4 != number) {
                    builder.add(&name, context, "a0", 1.0);
                    continue;
                }
                let n_actions = if policy < n_run { 5 } else { 7 };
                let (first, second) = (rng.random_range(0..n_actions), rng.random_range(0..n_actions));
                let share = if first == second { 1.0 } else { rng.random_range(0.0..1.0) };
                builder.add(&name, context, &format!("a{first}"), share);
                if first != second {
                    builder.add(&name, context, &format!("a{second}"), 1.0 - share);
                }
            }
        }
        builder.build().unwrap()
    }

    /// Searches for rows and pairs of policies that break the bound. The largest share of it that was reached: by d_Π,
    /// and by the embeddings.
    fn search(change: impl FnOnce(&mut Params)) -> [f64; 2] {
        let mut rng = Seed::new(11).rng();
        let (n_run, n_new) = (30, 60);
        let policies = policies(&mut rng, n_run, n_new);
        let shares: Vec<f64> =
            (0..n_run + n_new).map(|t| if t < n_run { 1.0 / n_run as f64 } else { 0.0 }).collect();
        let mut params = Params::default();
        (params.model.members, params.model.effect_dim) = (2, 4);
        change(&mut params);
        let params = params.check().unwrap();
        let values: Vec<f32> = (0..N_ROWS * 3).map(|_| rng.random_range(-2.0..2.0)).collect();
        let x = DenseRows::new(&values, 3).unwrap();
        let space = TreatmentSpace::new(&policies, &shares);
        let (_, layout, _) = UpliftNet::new(3, 2, &space, &params).unwrap();
        let start = |member| layout.init(Seed::new(5).index(member)).iter().map(|w| 1.5 * w).collect();
        let outcomes = vec!["gmv".to_owned(), "cost".to_owned()];
        let scales = vec![20.0, 0.5];
        let mut poul =
            Poul::new(outcomes, scales.clone(), 3, space, &params, vec![start(0), start(1)], None, None)
                .unwrap();
        let all: Vec<usize> = (0..policies.len()).collect();
        let mixtures = poul.space().mixtures(&policies, &all).unwrap();
        let population = Population { x: &x, weight: None, mixtures: &mixtures, shares: &shares };
        poul.canonicalise(&population, None, &[], None).unwrap();

        let d = params.model.effect_dim;
        let g: Vec<Vec<f32>> = (0..2)
            .map(|m| predict(poul.layout(), &poul.weights()[m], poul.network(), &x, 2 * d, m).unwrap())
            .collect();
        let size = |member: usize, row: usize, outcome: usize| {
            let g = &g[member][(row * 2 + outcome) * d..][..d];
            let s = &poul.gains(outcome)[member].scales;
            let along = g.iter().zip(s).map(|(g, s)| (f64::from(*g) * scales[outcome] / s).powi(2));
            along.sum::<f64>().sqrt()
        };
        let mut reached = [0.0_f64; 2];
        for trial in 0..60 {
            let (t, other) = match trial < 30 {
                true => (n_run + 2 * trial + 1, 0),
                false => (rng.random_range(0..n_run + n_new), rng.random_range(0..n_run)),
            };
            let distance = policies.distance(t, other);
            if distance == 0.0 {
                continue;
            }
            let scores = poul.prepare(&policies, &[t], other).unwrap().score(&x, false).unwrap().mean;
            for (outcome, effects) in scores.iter().enumerate() {
                let h = poul.embeddings(&policies, &[t, other], outcome).unwrap();
                let moved: Vec<f64> =
                    h.iter().zip(poul.gains(outcome)).map(|(h, own)| own.moved(&h[..d], &h[d..])).collect();
                let constants = poul.constants(&policies, &[t, other], outcome).unwrap();
                let by_distance = |m: usize| {
                    constants[m].lipschitz.map_or(f64::INFINITY, |own| own * constants[m].embedding_bound)
                        * distance
                };
                let deciles = poul.gains(outcome);
                for (row, effect) in effects.iter().enumerate() {
                    let effect = f64::from(*effect).abs();
                    let mean = |of: &dyn Fn(usize) -> f64| (of(0) + of(1)) / 2.0;
                    let bounds = [
                        mean(&|m| size(m, row, outcome) * by_distance(m)),
                        mean(&|m| size(m, row, outcome) * moved[m]),
                    ];
                    for (reached, bound) in reached.iter_mut().zip(bounds) {
                        assert!(effect <= bound * (1.0 + 1e-4), "{effect} of {bound}");
                        *reached = reached.max(effect / bound);
                    }
                    // All rows are in the sample, so none is beyond the last decile.
                    assert!(effect <= mean(&|m| deciles[m].most[9] * moved[m]) * (1.0 + 1e-4));
                }
            }
        }
        reached
    }

    #[test]
    fn random_search_never_breaks_the_bound() {
        let linear = search(|params| params.model.rho_hidden = 0);
        let default = search(|_| ());
        println!("reached of the bound: linear {linear:?}, default {default:?}");
        // The bound is no idle one: pairs and rows come near it.
        assert!(linear[0] > 0.05 && linear[1] > 0.5, "{linear:?}");
        assert!(default[0] > 0.01 && default[1] > 0.5, "{default:?}");
        search(|params| params.model.shared_treatment_net = false);
        search(|params| params.model.lipschitz = 0.5);
        search(|params| params.model.embedding = Embedding::Lookup);
        let normalised = search(|params| params.model.layer_norm = true);
        assert_eq!(normalised[0], 0.0);
    }
}
