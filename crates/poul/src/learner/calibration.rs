//! The size of effects, checked on held-out rows: residual outcomes are regressed on what predictions say of policies, the
//! same for every row, and on what they say of rows beyond that; g is scaled by the two slopes.
//!
//! g = ḡ + (g − ḡ) gives predictions p₀ = ḡᵀ(h − e_h) and p₁ = (g − ḡ)ᵀ(h − e_h). Differences between rows are the first to
//! be overfitted, most of all where one outcome of several is noisier than the others, as they share one early stopping.
//! Slopes are themselves noisy where effects are small, so both have a normal prior: that of p₀ says that effects are
//! right, that of p₁ that a quarter of what sets rows apart is. Where effects are plain, the prior does not matter.

use super::objective::{Target, Training};
use super::r_loss::predictions;
use crate::Result;
use crate::net::{Dense, Layout, RowSource, predict};
use crate::nuisance::SomeRows;

/// Mean of the prior of each slope, and its standard deviation.
const PRIOR: [f64; 2] = [1.0, 0.25];
const PRIOR_SD: f64 = 0.35;
/// Slopes beyond these are a sign of something else than size.
const LEAST: [f64; 2] = [0.0, 0.02];
const MOST: f64 = 2.0;

/// The slopes of an outcome: of what policies do on average, and of what sets rows apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slopes {
    pub(super) average: f64,
    pub(super) rows: f64,
}

/// Scales g of every member by the slopes of held-out residuals on predictions; gives the slopes of each outcome.
pub(super) fn calibrate(
    training: &Training<'_>,
    layout: &Layout,
    members: &mut [Vec<f32>],
    x: &dyn RowSource,
    rows: &[u32],
) -> Result<Vec<Slopes>> {
    let network = training.network;
    let means = members.iter().map(|weights| mean_gains(training, layout, weights, x, rows));
    let means = means.collect::<Result<Vec<_>>>()?;
    let lasts: Vec<Option<Dense>> = network.g.iter().map(super::gain::Gain::last).collect();
    let flat = affine(layout, members, &lasts, &means, |_| Slopes { average: 1.0, rows: 0.0 });
    let predict_by = |members: &[Vec<f32>]| {
        let members: Vec<&[f32]> = members.iter().map(Vec::as_slice).collect();
        predictions(training, layout, &members, x, rows)
    };
    let (whole, average) = (predict_by(members)?, predict_by(&flat)?);
    let slopes: Vec<Slopes> =
        (0..network.g.len()).map(|outcome| slopes(training, rows, &whole, &average, outcome)).collect();
    let scaled = affine(layout, members, &lasts, &means, |outcome| slopes[outcome]);
    members.iter_mut().zip(scaled).for_each(|(weights, scaled)| *weights = scaled);
    Ok(slopes)
}

/// ḡ of each outcome for one member, side by side.
fn mean_gains(
    training: &Training<'_>,
    layout: &Layout,
    weights: &[f32],
    x: &dyn RowSource,
    rows: &[u32],
) -> Result<Vec<f64>> {
    let width = training.network.width() * training.network.g.len();
    let gains = predict(layout, weights, training.network, &SomeRows { x, rows }, width, 0)?;
    let (mut sums, mut mass) = (vec![0.0; width], 0.0);
    for (gains, row) in gains.chunks_exact(width).zip(rows) {
        let weight = training.weight.map_or(1.0, |weight| f64::from(weight[*row as usize]));
        mass += weight;
        sums.iter_mut().zip(gains).for_each(|(sum, g)| *sum += weight * f64::from(*g));
    }
    sums.iter_mut().for_each(|sum| *sum /= f64::max(mass, f64::MIN_POSITIVE));
    Ok(sums)
}

/// The members with g replaced by average·ḡ + rows·(g − ḡ), through the last layer.
fn affine(
    layout: &Layout,
    members: &[Vec<f32>],
    lasts: &[Option<Dense>],
    means: &[Vec<f64>],
    slopes: impl Fn(usize) -> Slopes,
) -> Vec<Vec<f32>> {
    let mut changed = members.to_vec();
    for (weights, means) in changed.iter_mut().zip(means) {
        let width = means.len() / lasts.len().max(1);
        for (outcome, last) in lasts.iter().enumerate() {
            let Some(Dense { weight, bias: Some(bias), .. }) = last else { continue };
            let Slopes { average, rows } = slopes(outcome);
            weights[layout.segment(*weight).range()].iter_mut().for_each(|value| *value *= rows as f32);
            let biases = &mut weights[layout.segment(*bias).range()];
            for (bias, mean) in biases.iter_mut().zip(&means[outcome * width..]) {
                *bias = (rows * f64::from(*bias) + (average - rows) * mean) as f32;
            }
        }
    }
    changed
}

/// The posterior means of the slopes of an outcome.
fn slopes(training: &Training<'_>, rows: &[u32], whole: &[f64], average: &[f64], outcome: usize) -> Slopes {
    let n_outcomes = training.network.g.len();
    let mut terms = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let at = *row as usize * n_outcomes + outcome;
        let (p, p0) = (whole[i * n_outcomes + outcome], average[i * n_outcomes + outcome]);
        let weight = training.weight.map_or(1.0, |weight| f64::from(weight[*row as usize]));
        let (error, curvature) = match training.target {
            Target::Residual(residual) => (f64::from(residual[at]) - p, 1.0),
            Target::Binary { outcome, logit } => {
                let chance = 1.0 / (1.0 + (-(f64::from(logit[at]) + p)).exp());
                (f64::from(outcome[at]) - chance, chance * (1.0 - chance))
            }
        };
        terms.push(Term { parts: [p0, p - p0], error, curvature, weight });
    }
    posterior(&terms)
}

/// A held-out row.
struct Term {
    /// p₀ and p₁.
    parts: [f64; 2],
    error: f64,
    curvature: f64,
    weight: f64,
}

/// The prior times what held-out rows say of the slopes: one Newton step from 1, which for squares is the solution, with
/// the sandwich A⁻¹BA⁻¹ for its variance. Where a row's noise grows with its prediction, as that of spending does, A alone
/// would be far too sure.
fn posterior(terms: &[Term]) -> Slopes {
    let (mut score, mut curved, mut noise) = ([0.0; 2], [[0.0; 2]; 2], [[0.0; 2]; 2]);
    for Term { parts, error, curvature, weight } in terms {
        for i in 0..2 {
            score[i] += weight * error * parts[i];
            for j in 0..2 {
                curved[i][j] += weight * curvature * parts[i] * parts[j];
                noise[i][j] += weight * error.powi(2) * parts[i] * parts[j];
            }
        }
    }
    // A part that is 0 for all rows says nothing of its slope, nor do a row or two tell both slopes apart.
    let least = 1e-9 * (noise[0][0] + noise[1][1]);
    noise[0][0] += least;
    noise[1][1] += least;
    let of_noise = if least > 0.0 { product(curved, inverse(noise)) } else { [[0.0; 2]; 2] };
    let mut precision = product(of_noise, curved);
    let mut pull = times(of_noise, score);
    for i in 0..2 {
        precision[i][i] += PRIOR_SD.powi(-2);
        pull[i] += (PRIOR[i] - 1.0) * PRIOR_SD.powi(-2);
    }
    let step = times(inverse(precision), pull);
    let slope = |i: usize| (1.0 + step[i]).clamp(LEAST[i], MOST);
    Slopes { average: slope(0), rows: slope(1) }
}

type Pair = [[f64; 2]; 2];

fn inverse([[a, b], [c, d]]: Pair) -> Pair {
    let determinant = a * d - b * c;
    [[d / determinant, -b / determinant], [-c / determinant, a / determinant]]
}

fn product(a: Pair, b: Pair) -> Pair {
    a.map(|row| [row[0] * b[0][0] + row[1] * b[1][0], row[0] * b[0][1] + row[1] * b[1][1]])
}

fn times(a: Pair, v: [f64; 2]) -> [f64; 2] {
    a.map(|row| row[0] * v[0] + row[1] * v[1])
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Seed;

    /// Rows whose residual is `truth` times each part plus noise.
    fn terms(n_rows: usize, truth: [f64; 2], size: f64) -> Vec<Term> {
        let mut rng = Seed::new(8).rng();
        let mut draw = || (0..12).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>();
        (0..n_rows)
            .map(|_| {
                let parts = [size * draw(), size * draw()];
                let residual = truth[0] * parts[0] + truth[1] * parts[1] + draw();
                Term { parts, error: residual - parts[0] - parts[1], curvature: 1.0, weight: 1.0 }
            })
            .collect()
    }

    #[test]
    fn plain_slopes_are_found_and_unsure_ones_are_the_prior() {
        let sure = posterior(&terms(20_000, [0.9, 0.3], 1.0));
        assert!((sure.average - 0.9).abs() < 0.03 && (sure.rows - 0.3).abs() < 0.03, "{sure:?}");
        let unsure = posterior(&terms(200, [0.9, 0.3], 1e-3));
        assert!((unsure.average - 1.0).abs() < 0.05 && (unsure.rows - PRIOR[1]).abs() < 0.05, "{unsure:?}");
        let absurd = posterior(&terms(20_000, [-3.0, 9.0], 1.0));
        assert_eq!((absurd.average, absurd.rows), (LEAST[0], MOST));
    }

    #[test]
    fn noise_that_grows_with_predictions_makes_slopes_less_sure() {
        let even = terms(400, [1.0, 1.0], 0.3);
        let mass: f64 = even.iter().map(|term| term.parts[1].powi(2)).sum::<f64>() / even.len() as f64;
        let mut uneven = terms(400, [1.0, 1.0], 0.3);
        // As much noise in all, more where p₁ is large.
        uneven.iter_mut().for_each(|term| term.error *= (term.parts[1].powi(2) / mass).sqrt());
        let far = |terms: &[Term]| (posterior(terms).rows - PRIOR[1]).abs();
        assert!(far(&uneven) < 0.8 * far(&even), "{} against {}", far(&uneven), far(&even));
        let Slopes { average, rows } = posterior(&terms(50, [1.0, 1.0], 0.0));
        assert!((average - PRIOR[0]).abs() < 1e-9 && (rows - PRIOR[1]).abs() < 1e-9, "{average}, {rows}");
    }

    #[test]
    fn parts_that_cannot_be_told_apart_have_finite_slopes() {
        for size in [1e-6, 1.0, 1e6] {
            for error in [0.0, 1e-3, 2.0] {
                let row = Term {
                    parts: [0.3 * size, 0.7 * size],
                    error: error * size,
                    curvature: 1.0,
                    weight: 1.0,
                };
                let Slopes { average, rows } = posterior(&[row]);
                assert!(average.is_finite() && rows.is_finite(), "{size}, {error}: {average}, {rows}");
                // What one row says moves both by the same rule: along its parts.
                let (a, b) = (average - PRIOR[0], rows - PRIOR[1]);
                let is_clamped = average == LEAST[0] || average == MOST || rows == LEAST[1] || rows == MOST;
                assert!(is_clamped || (0.7 * a - 0.3 * b).abs() < 0.02, "{size}, {error}: {a}, {b}");
            }
        }
    }
}
