//! F: from the mixture of a policy to a short vector (Assumption 1 of the method paper).
//!
//! Each component is a sum of three parts, standardised over random policies: linear in the mixture (an action's
//! effect, scaled by how sensitive the context is, plus a deviation of the atom); a bounded response to other
//! linear maps of the mixture; and diminishing returns and complementarity in the total share of each action.
//! It is a function of the mixture alone, and not a small network.

use rand::RngExt;
use rand_distr::StandardNormal;

use super::policies::PolicyTable;
use super::recombine::original;
use super::world::{dot, mean_and_sd};
use crate::{Rng, Seed};

/// Components, of falling importance.
pub(super) const RANK: usize = 4;
const IMPORTANCE: [f64; RANK] = [1.0, 0.8, 0.65, 0.5];
/// Standard deviations of the linear, bounded and returns parts.
const PARTS: [f64; 3] = [1.0, 0.6, 0.4];

/// A random F.
pub(super) struct Functional {
    n_actions: usize,
    components: Vec<Component>,
}

struct Component {
    linear: Vec<f64>,
    bounded: Vec<Bounded>,
    /// (height, half-saturation share) of each action.
    returns: Vec<(f64, f64)>,
    /// (height, action, action).
    together: (f64, usize, usize),
    /// Mean and standard deviation of each part over random policies.
    moments: [(f64, f64); 3],
}

/// height · tanh(slope · (direction · α − centre)).
struct Bounded {
    height: f64,
    direction: Vec<f64>,
    centre: f64,
    slope: f64,
}

impl Functional {
    /// Draws F for the contexts and actions of `table`.
    pub(super) fn draw(table: &PolicyTable, seed: Seed) -> Self {
        let (n_contexts, n_actions) = (table.contexts.len(), table.actions.len());
        let mut policy_rng = seed.child("calibration").rng();
        let sample: Vec<Vec<f64>> =
            (0..256).map(|_| table.mixture_of(&original(n_contexts, n_actions, &mut policy_rng))).collect();
        let mut rng = seed.rng();
        let components =
            (0..RANK).map(|_| Component::draw(n_contexts, n_actions, &sample, &mut rng)).collect();
        Self { n_actions, components }
    }

    /// F(μ).
    pub(super) fn value(&self, mixture: &[f64]) -> Vec<f64> {
        let components = self.components.iter().zip(IMPORTANCE);
        components
            .map(|(component, importance)| importance * component.value(mixture, self.n_actions))
            .collect()
    }
}

impl Component {
    fn draw(n_contexts: usize, n_actions: usize, sample: &[Vec<f64>], rng: &mut Rng) -> Self {
        let mut component = Self {
            linear: atom_values(n_contexts, n_actions, rng),
            bounded: (0..3).map(|_| Bounded::draw(n_contexts, n_actions, sample, rng)).collect(),
            returns: (0..n_actions).map(|_| (normal(rng), rng.random_range(0.05..0.3))).collect(),
            together: (3.0 * normal(rng), rng.random_range(1..n_actions), rng.random_range(0..n_actions)),
            moments: [(0.0, 1.0); 3],
        };
        let parts: Vec<[f64; 3]> = sample.iter().map(|mixture| component.parts(mixture, n_actions)).collect();
        component.moments = [0, 1, 2].map(|part| {
            let (mean, sd) = mean_and_sd(parts.iter().map(|parts| parts[part]));
            (mean, sd.max(1e-6))
        });
        component
    }

    fn value(&self, mixture: &[f64], n_actions: usize) -> f64 {
        let parts = self.parts(mixture, n_actions);
        (0..3).map(|part| PARTS[part] * (parts[part] - self.moments[part].0) / self.moments[part].1).sum()
    }

    fn parts(&self, mixture: &[f64], n_actions: usize) -> [f64; 3] {
        let linear = dot(&self.linear, mixture);
        let bounded = self.bounded.iter().map(|bounded| bounded.value(mixture)).sum();
        let share = |action: usize| mixture.iter().skip(action).step_by(n_actions).sum::<f64>();
        let returns: f64 = (self.returns.iter().enumerate().skip(1))
            .map(|(action, (height, half))| height * share(action) / (share(action) + half))
            .sum();
        let (height, a, b) = self.together;
        [linear, bounded, returns + height * share(a) * share(b)]
    }
}

impl Bounded {
    fn draw(n_contexts: usize, n_actions: usize, sample: &[Vec<f64>], rng: &mut Rng) -> Self {
        let direction = atom_values(n_contexts, n_actions, rng);
        let (mean, sd) = mean_and_sd(sample.iter().map(|mixture| dot(&direction, mixture)));
        let slope = rng.random_range(1.0..2.0) / sd.max(1e-6);
        Self { height: normal(rng), direction, centre: mean + 0.5 * sd * normal(rng), slope }
    }

    fn value(&self, mixture: &[f64]) -> f64 {
        self.height * (self.slope * (dot(&self.direction, mixture) - self.centre)).tanh()
    }
}

/// The value of each atom; that of the first action, `none`, is 0.
fn atom_values(n_contexts: usize, n_actions: usize, rng: &mut Rng) -> Vec<f64> {
    let actions: Vec<f64> = (0..n_actions).map(|_| normal(rng)).collect();
    let mut values = Vec::with_capacity(n_contexts * n_actions);
    for _ in 0..n_contexts {
        let (sensitivity, level) = (1.0 + 0.5 * normal(rng), 0.3 * normal(rng));
        values.push(0.0);
        values.extend(actions.iter().skip(1).map(|action| action * sensitivity + level + 0.5 * normal(rng)));
    }
    values
}

fn normal(rng: &mut Rng) -> f64 {
    rng.sample(StandardNormal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::recombine::recombined;

    #[test]
    fn depends_on_the_mixture_alone_and_is_not_linear_in_it() {
        let table = recombined(40, 6, 4, Seed::new(5)).unwrap().table;
        let functional = Functional::draw(&table, Seed::new(6));
        let mixtures = table.mixtures();
        let mut departure: f64 = 0.0;
        for pair in mixtures[1..].chunks_exact(2) {
            let middle: Vec<f64> = pair[0].iter().zip(&pair[1]).map(|(a, b)| (a + b) / 2.0).collect();
            let (a, b) = (functional.value(&pair[0]), functional.value(&pair[1]));
            assert_eq!(a, functional.value(&pair[0].clone()));
            for (k, value) in functional.value(&middle).into_iter().enumerate() {
                departure = departure.max((value - (a[k] + b[k]) / 2.0).abs());
            }
        }
        assert!(departure > 0.2, "{departure}");
    }

    #[test]
    fn is_continuous() {
        let table = recombined(10, 6, 4, Seed::new(7)).unwrap().table;
        let functional = Functional::draw(&table, Seed::new(8));
        let mixtures = table.mixtures();
        let toward = |step: f64| -> Vec<f64> {
            mixtures[1].iter().zip(&mixtures[2]).map(|(a, b)| a + step * (b - a)).collect()
        };
        let distance = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum::<f64>();
        let whole = distance(functional.value(&toward(0.0)), functional.value(&toward(1.0)));
        let small = distance(functional.value(&toward(0.0)), functional.value(&toward(1e-6)));
        assert!(small < 1e-3 * (1.0 + whole), "{small}");
    }
}
