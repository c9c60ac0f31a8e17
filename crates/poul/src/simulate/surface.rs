//! Random smooth non-linear functions of a few features: ridges, interactions and bumps.

use rand::RngExt;
use rand_distr::StandardNormal;

use super::world::mean_and_sd;
use crate::Rng;

/// A function with mean 0 and standard deviation 1 over the units it was calibrated on.
pub(super) struct Surface {
    /// heightₗ · tanh(wₗ · x + bₗ), each on two or three features.
    ridges: Vec<Ridge>,
    /// height · tanh(xᵢ) · tanh(xⱼ).
    interactions: Vec<(f64, usize, usize)>,
    /// height · exp(−(xᵢ − centre)²).
    bumps: Vec<(f64, usize, f64)>,
    mean: f64,
    sd: f64,
}

struct Ridge {
    height: f64,
    slopes: Vec<(usize, f64)>,
    offset: f64,
}

impl Surface {
    /// Draws a function of the features `among`, standardised over `sample` (`n_features` wide, row after row).
    pub(super) fn draw(among: &[usize], sample: &[f64], n_features: usize, rng: &mut Rng) -> Self {
        let mut surface = Self {
            ridges: (0..3).map(|_| Ridge::draw(among, rng)).collect(),
            interactions: (0..1).map(|_| (height(rng), pick(among, rng), pick(among, rng))).collect(),
            bumps: (0..1).map(|_| (0.5 * height(rng), pick(among, rng), normal(rng))).collect(),
            mean: 0.0,
            sd: 1.0,
        };
        (surface.mean, surface.sd) = mean_and_sd(sample.chunks(n_features).map(|x| surface.value(x)));
        surface.sd = surface.sd.max(1e-6);
        surface
    }

    /// The value at a unit's features.
    pub(super) fn value(&self, x: &[f64]) -> f64 {
        let mut sum = 0.0;
        for ridge in &self.ridges {
            let slope: f64 = ridge.slopes.iter().map(|&(feature, slope)| slope * x[feature]).sum();
            sum += ridge.height * (slope + ridge.offset).tanh();
        }
        for &(height, i, j) in &self.interactions {
            sum += height * x[i].tanh() * x[j].tanh();
        }
        for &(height, i, centre) in &self.bumps {
            sum += height * (-(x[i] - centre).powi(2)).exp();
        }
        (sum - self.mean) / self.sd
    }
}

impl Ridge {
    fn draw(among: &[usize], rng: &mut Rng) -> Self {
        let n_slopes = rng.random_range(2..=3);
        let slopes = (0..n_slopes).map(|_| (pick(among, rng), normal(rng))).collect();
        Self { height: height(rng), slopes, offset: 0.5 * normal(rng) }
    }
}

fn pick(among: &[usize], rng: &mut Rng) -> usize {
    among[rng.random_range(0..among.len())]
}

/// Away from 0, so that no term is there in name only.
fn height(rng: &mut Rng) -> f64 {
    let size = rng.random_range(0.5..1.5);
    if rng.random_bool(0.5) { size } else { -size }
}

fn normal(rng: &mut Rng) -> f64 {
    rng.sample(StandardNormal)
}
