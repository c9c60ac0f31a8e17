//! The size of effects, checked on rows that a member has not seen: residual outcomes are regressed on what predictions
//! say of policies, the same for every row, and on what they say of rows beyond that.
//!
//! g = ḡ + (g − ḡ) gives predictions p₀ = ḡᵀ(h − e_h) and p₁ = (g − ḡ)ᵀ(h − e_h). Differences between rows are the first to
//! be overfitted, most of all where one outcome of several is noisier than the others, as they share one early stopping.
//! Every member predicts the rows that it holds out, so that most rows bear witness. The slopes wanted are those of the
//! mean over members, p̄: it goes with outcomes as much as one member's predictions do, and is less noisy, so that slopes
//! are E[p̄p̄ᵀ]⁻¹E[p·r], where the first needs no outcome and is taken from rows that members may have seen.
//! Slopes are themselves noisy where effects are small, so both have a normal prior: that of p₀ says that effects are
//! right, that of p₁ that half of what sets rows apart is. Where effects are plain, the prior does not matter.
//!
//! The first slope is used only where nothing better is known of averages: see `anchor`.

use super::objective::{Target, Training};
use super::r_loss::{Validation, predictions};
use crate::Result;
use crate::net::{Dense, Layout, RowSource, predict};
use crate::nuisance::SomeRows;

/// Mean of the prior of each slope, and its standard deviation.
const PRIOR: [f64; 2] = [1.0, 0.5];
const PRIOR_SD: f64 = 0.5;
/// Slopes beyond these are a sign of something else than size.
const LEAST: [f64; 2] = [0.0, 0.02];
const MOST: f64 = 3.0;

/// The slopes of an outcome: of what policies do on average, and of what sets rows apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slopes {
    pub(super) average: f64,
    pub(super) rows: f64,
}

/// The slopes of held-out residuals on the mean prediction of all members, by outcome; none where nothing is held out.
pub(super) fn slopes(
    training: &Training<'_>,
    layout: &Layout,
    members: &[Vec<f32>],
    x: &dyn RowSource,
    validation: &Validation,
) -> Result<Vec<Slopes>> {
    if validation.is_empty() {
        return Ok(Vec::new());
    }
    let n_outcomes = training.network.g.len();
    let mut terms: Vec<Vec<Term>> = vec![Vec::new(); n_outcomes];
    let flat = |weights: &Vec<f32>, rows: &[u32]| -> Result<Vec<f32>> {
        let mean = mean_gains(training, layout, weights, x, rows)?;
        Ok(scaled(training, layout, weights, &mean, |_| Slopes { average: 1.0, rows: 0.0 }))
    };
    for (weights, rows) in members.iter().zip(&validation.rows).filter(|(_, rows)| !rows.is_empty()) {
        let whole = predictions(training, layout, &[weights], x, rows)?;
        let average = predictions(training, layout, &[&flat(weights, rows)?], x, rows)?;
        for (outcome, terms) in terms.iter_mut().enumerate() {
            terms.extend(held_out(training, rows, &whole, &average, outcome));
        }
    }
    let mut of_mean: Vec<Option<Pair>> = vec![None; n_outcomes];
    if members.len() > 1 {
        let rows = &validation.spread;
        let all: Vec<&[f32]> = members.iter().map(Vec::as_slice).collect();
        let flat = members.iter().map(|weights| flat(weights, rows)).collect::<Result<Vec<_>>>()?;
        let flat: Vec<&[f32]> = flat.iter().map(Vec::as_slice).collect();
        let whole = predictions(training, layout, &all, x, rows)?;
        let average = predictions(training, layout, &flat, x, rows)?;
        for (outcome, of_mean) in of_mean.iter_mut().enumerate() {
            *of_mean = Some(moments(&held_out(training, rows, &whole, &average, outcome)));
        }
    }
    Ok(terms.iter().zip(of_mean).map(|(terms, of_mean)| posterior(terms, of_mean)).collect())
}

/// Scales g of every member by the slopes of each outcome, around its mean over `rows`.
pub(super) fn scale(
    training: &Training<'_>,
    layout: &Layout,
    members: &mut [Vec<f32>],
    x: &dyn RowSource,
    rows: &[u32],
    slopes: &[Slopes],
) -> Result<()> {
    for weights in members {
        let mean = mean_gains(training, layout, weights, x, rows)?;
        *weights = scaled(training, layout, weights, &mean, |outcome| slopes[outcome]);
    }
    Ok(())
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

/// The weights with g replaced by average·ḡ + rows·(g − ḡ), through the last layer.
fn scaled(
    training: &Training<'_>,
    layout: &Layout,
    weights: &[f32],
    means: &[f64],
    slopes: impl Fn(usize) -> Slopes,
) -> Vec<f32> {
    let mut weights = weights.to_vec();
    let gains = &training.network.g;
    let width = means.len() / gains.len().max(1);
    for (outcome, gain) in gains.iter().enumerate() {
        let Some(Dense { weight, bias: Some(bias), .. }) = gain.last() else { continue };
        let Slopes { average, rows } = slopes(outcome);
        weights[layout.segment(weight).range()].iter_mut().for_each(|value| *value *= rows as f32);
        let biases = &mut weights[layout.segment(bias).range()];
        for (bias, mean) in biases.iter_mut().zip(&means[outcome * width..]) {
            *bias = (rows * f64::from(*bias) + (average - rows) * mean) as f32;
        }
    }
    weights
}

/// What rows say of the slopes of an outcome, by predictions of all they say and of what policies do on average.
fn held_out(
    training: &Training<'_>,
    rows: &[u32],
    whole: &[f64],
    average: &[f64],
    outcome: usize,
) -> Vec<Term> {
    let n_outcomes = training.network.g.len();
    let term = |(i, row): (usize, &u32)| {
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
        Term { parts: [p0, p - p0], error, curvature, weight }
    };
    rows.iter().enumerate().map(term).collect()
}

/// A held-out row.
#[derive(Clone, Copy)]
struct Term {
    /// p₀ and p₁.
    parts: [f64; 2],
    error: f64,
    curvature: f64,
    weight: f64,
}

/// E[p·pᵀ], curved as the loss is.
fn moments(terms: &[Term]) -> Pair {
    let mut moments = [[0.0; 2]; 2];
    let mass: f64 = terms.iter().map(|term| term.weight).sum();
    for Term { parts, curvature, weight, .. } in terms {
        for i in 0..2 {
            for j in 0..2 {
                moments[i][j] += weight / mass * curvature * parts[i] * parts[j];
            }
        }
    }
    moments
}

/// The prior times what held-out rows say of the slopes: one Newton step from 1, which for squares is the solution, with
/// the sandwich A⁻¹BA⁻¹ for its variance. Where a row's noise grows with its prediction, as that of spending does, A alone
/// would be far too sure. `of_mean` is A of the predictor whose slopes are wanted, where it is not that of the terms.
fn posterior(terms: &[Term], of_mean: Option<Pair>) -> Slopes {
    let mass: f64 = terms.iter().map(|term| term.weight).sum::<f64>().max(f64::MIN_POSITIVE);
    let (mut score, mut noise) = ([0.0; 2], [[0.0; 2]; 2]);
    let own = moments(terms);
    for Term { parts, error, weight, .. } in terms {
        for i in 0..2 {
            score[i] += weight / mass * error * parts[i];
            for j in 0..2 {
                noise[i][j] += (weight / mass * error).powi(2) * parts[i] * parts[j];
            }
        }
    }
    // E[p·r], and from there the step from slopes of 1 for the mean prediction.
    let curved = of_mean.unwrap_or(own);
    let (found, expected) = (times(own, [1.0; 2]), times(curved, [1.0; 2]));
    (0..2).for_each(|i| score[i] += found[i] - expected[i]);
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

    fn posterior_alone(terms: &[Term]) -> Slopes {
        posterior(terms, None)
    }

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
        let sure = posterior_alone(&terms(20_000, [0.9, 0.3], 1.0));
        assert!((sure.average - 0.9).abs() < 0.03 && (sure.rows - 0.3).abs() < 0.03, "{sure:?}");
        let unsure = posterior_alone(&terms(200, [0.9, 0.3], 1e-3));
        assert!((unsure.average - 1.0).abs() < 0.05 && (unsure.rows - PRIOR[1]).abs() < 0.05, "{unsure:?}");
        let absurd = posterior_alone(&terms(20_000, [-3.0, 9.0], 1.0));
        assert_eq!((absurd.average, absurd.rows), (LEAST[0], MOST));
    }

    #[test]
    fn noise_that_grows_with_predictions_makes_slopes_less_sure() {
        let even = terms(400, [1.0, 1.0], 0.3);
        let mass: f64 = even.iter().map(|term| term.parts[1].powi(2)).sum::<f64>() / even.len() as f64;
        let mut uneven = terms(400, [1.0, 1.0], 0.3);
        // As much noise in all, more where p₁ is large.
        uneven.iter_mut().for_each(|term| term.error *= (term.parts[1].powi(2) / mass).sqrt());
        let far = |terms: &[Term]| (posterior(terms, None).rows - PRIOR[1]).abs();
        assert!(far(&uneven) < 0.85 * far(&even), "{} against {}", far(&uneven), far(&even));
        let Slopes { average, rows } = posterior_alone(&terms(50, [1.0, 1.0], 0.0));
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
                let Slopes { average, rows } = posterior(&[row], None);
                assert!(average.is_finite() && rows.is_finite(), "{size}, {error}: {average}, {rows}");
                // What one row says moves both by the same rule: along its parts.
                let (a, b) = (average - PRIOR[0], rows - PRIOR[1]);
                let is_clamped = average == LEAST[0] || average == MOST || rows == LEAST[1] || rows == MOST;
                assert!(is_clamped || (0.7 * a - 0.3 * b).abs() < 0.02, "{size}, {error}: {a}, {b}");
            }
        }
    }
}
