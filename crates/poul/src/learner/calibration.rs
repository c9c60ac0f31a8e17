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
//!
//! **What outcomes take from each other.** The effect of a policy on spending drowns in its noise, while that on visits or
//! cost is plain, and often the same users respond. So residuals of an outcome are also regressed on what every outcome's
//! predictions say of rows, p₁ of all outcomes together: g of outcome k becomes Σ_j L_kj·g_j. What is taken of others has a prior
//! around zero whose variance the rows tell: where outcomes share nothing it is zero, and nothing is taken.

use super::objective::{Target, Training};
use super::r_loss::{Validation, predictions};
use super::slope_posterior::{SlopeEvidence, SlopePrior};
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
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slopes {
    pub(super) average: f64,
    pub(super) rows: f64,
    /// What the outcome takes of g of each outcome, its own among them; none where each has its own alone.
    pub(super) loadings: Vec<f64>,
}

/// The slopes of held-out residuals on the mean prediction of all members, by outcome; none where nothing is held out.
pub(super) fn slopes(
    training: &Training<'_>,
    layout: &Layout,
    members: &[Vec<f32>],
    x: &dyn RowSource,
    validation: &Validation,
    is_shared: bool,
) -> Result<Vec<Slopes>> {
    if validation.is_empty() {
        return Ok(Vec::new());
    }
    let n_outcomes = training.network.g.len();
    let mut held_out: Vec<Witness> = (0..n_outcomes).map(|_| Witness::new(n_outcomes)).collect();
    let mut of_mean = held_out.clone();
    for (weights, rows) in members.iter().zip(&validation.rows).filter(|(_, rows)| !rows.is_empty()) {
        let parts = Parts::of(training, layout, &[weights], x, rows)?;
        held_out.iter_mut().enumerate().for_each(|(outcome, own)| own.add(training, rows, &parts, outcome));
    }
    if members.len() > 1 {
        let all: Vec<&Vec<f32>> = members.iter().collect();
        let parts = Parts::of(training, layout, &all, x, &validation.spread)?;
        let each = of_mean.iter_mut().enumerate();
        each.for_each(|(outcome, own)| own.add(training, &validation.spread, &parts, outcome));
    }
    let of = |(outcome, (own, of_mean)): (usize, (&Witness, &Witness))| {
        let of_mean = (members.len() > 1).then_some(of_mean);
        own.slopes(of_mean, outcome, is_shared && n_outcomes > 1)
    };
    Ok(held_out.iter().zip(&of_mean).enumerate().map(of).collect())
}

/// Predictions of some rows by the mean over members, one column per outcome: all they say, and what policies do on average.
struct Parts {
    whole: Vec<f64>,
    average: Vec<f64>,
}

impl Parts {
    fn of(
        training: &Training<'_>,
        layout: &Layout,
        members: &[&Vec<f32>],
        x: &dyn RowSource,
        rows: &[u32],
    ) -> Result<Self> {
        let flat = |weights: &&Vec<f32>| -> Result<Vec<f32>> {
            let mean = mean_gains(training, layout, weights, x, rows)?;
            Ok(scaled(training, layout, weights, &mean, |_| (1.0, 0.0)))
        };
        let flat = members.iter().map(flat).collect::<Result<Vec<_>>>()?;
        let members: Vec<&[f32]> = members.iter().map(|weights| weights.as_slice()).collect();
        let flat: Vec<&[f32]> = flat.iter().map(Vec::as_slice).collect();
        let whole = predictions(training, layout, &members, x, rows)?;
        Ok(Self { whole, average: predictions(training, layout, &flat, x, rows)? })
    }
}

/// What rows say of the slopes of one outcome: by its own predictions, and by those of all outcomes.
#[derive(Clone)]
struct Witness {
    own: SlopeEvidence,
    all: SlopeEvidence,
}

impl Witness {
    fn new(n_outcomes: usize) -> Self {
        Self { own: SlopeEvidence::new(2), all: SlopeEvidence::new(1 + n_outcomes) }
    }

    fn add(&mut self, training: &Training<'_>, rows: &[u32], predicted: &Parts, outcome: usize) {
        let n_outcomes = training.network.g.len();
        let mut parts = vec![0.0; 1 + n_outcomes];
        for (i, row) in rows.iter().enumerate() {
            let at = *row as usize * n_outcomes + outcome;
            let (p, p0) =
                (predicted.whole[i * n_outcomes + outcome], predicted.average[i * n_outcomes + outcome]);
            let weight = training.weight.map_or(1.0, |weight| f64::from(weight[*row as usize]));
            let (error, curvature) = match training.target {
                Target::Residual(residual) => (f64::from(residual[at]) - p, 1.0),
                Target::Binary { outcome, logit } => {
                    let chance = 1.0 / (1.0 + (-(f64::from(logit[at]) + p)).exp());
                    (f64::from(outcome[at]) - chance, chance * (1.0 - chance))
                }
            };
            self.own.add(&[p0, p - p0], error, curvature, weight);
            parts[0] = p0;
            let of_row = i * n_outcomes..(i + 1) * n_outcomes;
            let each = predicted.whole[of_row.clone()].iter().zip(&predicted.average[of_row]);
            parts[1..].iter_mut().zip(each).for_each(|(part, (whole, average))| *part = whole - average);
            // By 1/σ²: what sets rows apart is found by all of them, not by those who spend most.
            self.all.add(&parts, error, curvature, weight * training.by_noise(at).powi(2));
        }
    }

    fn slopes(&self, of_mean: Option<&Self>, outcome: usize, is_shared: bool) -> Slopes {
        let priors = PRIOR.map(|mean| SlopePrior::Known(mean, PRIOR_SD));
        let own = self.own.posterior(of_mean.map(|own| &own.own), &[1.0, 1.0], &priors);
        let [average, rows] = [0, 1].map(|part| own[part].clamp(LEAST[part], MOST));
        if !is_shared {
            return Slopes { average, rows, loadings: Vec::new() };
        }
        let n_outcomes = of_mean.map_or(self.all.n_parts(), |own| own.all.n_parts()) - 1;
        let is_own = |part: usize| part == 1 + outcome;
        let start: Vec<f64> =
            (0..=n_outcomes).map(|part| f64::from(u8::from(part == 0 || is_own(part)))).collect();
        let prior = |part: usize| match part {
            0 => priors[0],
            part if is_own(part) => priors[1],
            _ => SlopePrior::Found,
        };
        let mut priors: Vec<SlopePrior> = (0..=n_outcomes).map(prior).collect();
        let of_mean = of_mean.map(|own| &own.all);
        let mut slopes = self.all.posterior(of_mean, &start, &priors);
        // Beside what others tell, its own g has to show by rows that it says more: half of it is no longer a fair guess.
        if (1..=n_outcomes).any(|part| !is_own(part) && slopes[part] != 0.0) {
            priors[1 + outcome] = SlopePrior::Found;
            slopes = self.all.posterior(of_mean, &start, &priors);
        }
        slopes[1 + outcome] = slopes[1 + outcome].clamp(0.0, MOST);
        Slopes { average, rows, loadings: slopes.split_off(1) }
    }
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
        *weights = scaled(training, layout, weights, &mean, |outcome| {
            (slopes[outcome].average, slopes[outcome].rows)
        });
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
    slopes: impl Fn(usize) -> (f64, f64),
) -> Vec<f32> {
    let mut weights = weights.to_vec();
    let gains = &training.network.g;
    let width = means.len() / gains.len().max(1);
    for (outcome, gain) in gains.iter().enumerate() {
        let Some(Dense { weight, bias: Some(bias), .. }) = gain.last() else { continue };
        let (average, rows) = slopes(outcome);
        weights[layout.segment(weight).range()].iter_mut().for_each(|value| *value *= rows as f32);
        let biases = &mut weights[layout.segment(bias).range()];
        for (bias, mean) in biases.iter_mut().zip(&means[outcome * width..]) {
            *bias = (rows * f64::from(*bias) + (average - rows) * mean) as f32;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Seed;

    /// A row: its two parts, and how far the outcome is from their sum.
    type Row = ([f64; 2], f64);

    fn posterior(rows: &[Row]) -> (f64, f64) {
        let mut witness = Witness::new(1);
        rows.iter().for_each(|(parts, error)| witness.own.add(parts, *error, 1.0, 1.0));
        let Slopes { average, rows, .. } = witness.slopes(None, 0, false);
        (average, rows)
    }

    /// Rows whose residual is `truth` times each part plus noise.
    fn rows(n_rows: usize, truth: [f64; 2], size: f64) -> Vec<Row> {
        let mut rng = Seed::new(8).rng();
        let mut draw = || (0..12).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>();
        (0..n_rows)
            .map(|_| {
                let parts = [size * draw(), size * draw()];
                let residual = truth[0] * parts[0] + truth[1] * parts[1] + draw();
                (parts, residual - parts[0] - parts[1])
            })
            .collect()
    }

    #[test]
    fn plain_slopes_are_found_and_unsure_ones_are_the_prior() {
        let (average, own) = posterior(&rows(20_000, [0.9, 0.3], 1.0));
        assert!((average - 0.9).abs() < 0.03 && (own - 0.3).abs() < 0.03, "{average}, {own}");
        let (average, own) = posterior(&rows(200, [0.9, 0.3], 1e-3));
        assert!((average - 1.0).abs() < 0.05 && (own - PRIOR[1]).abs() < 0.05, "{average}, {own}");
        assert_eq!(posterior(&rows(20_000, [-3.0, 9.0], 1.0)), (LEAST[0], MOST));
    }

    #[test]
    fn noise_that_grows_with_predictions_makes_slopes_less_sure() {
        let even = rows(400, [1.0, 1.0], 0.3);
        let mass: f64 = even.iter().map(|(parts, _)| parts[1].powi(2)).sum::<f64>() / even.len() as f64;
        let mut uneven = even.clone();
        // As much noise in all, more where p₁ is large.
        uneven.iter_mut().for_each(|(parts, error)| *error *= (parts[1].powi(2) / mass).sqrt());
        let far = |rows: &[Row]| (posterior(rows).1 - PRIOR[1]).abs();
        assert!(far(&uneven) < 0.85 * far(&even), "{} against {}", far(&uneven), far(&even));
        let (average, own) = posterior(&rows(50, [1.0, 1.0], 0.0));
        assert!((average - PRIOR[0]).abs() < 1e-9 && (own - PRIOR[1]).abs() < 1e-9, "{average}, {own}");
    }

    #[test]
    fn parts_that_cannot_be_told_apart_have_finite_slopes() {
        for size in [1e-6, 1.0, 1e6] {
            for error in [0.0, 1e-3, 2.0] {
                let (average, own) = posterior(&[([0.3 * size, 0.7 * size], error * size)]);
                assert!(average.is_finite() && own.is_finite(), "{size}, {error}: {average}, {own}");
                // What one row says moves both by the same rule: along its parts.
                let (a, b) = (average - PRIOR[0], own - PRIOR[1]);
                let is_clamped = average == LEAST[0] || average == MOST || own == LEAST[1] || own == MOST;
                assert!(is_clamped || (0.7 * a - 0.3 * b).abs() < 0.02, "{size}, {error}: {a}, {b}");
            }
        }
    }
}
