//! The size of effects, checked on rows that a member has not seen: residual outcomes are regressed on what predictions
//! say of policies, the same for every row, and on what they say of rows beyond that.
//!
//! g = ḡ + (g − ḡ) gives predictions p₀ = ḡᵀ(h − e_h) and p₁ = (g − ḡ)ᵀ(h − e_h). Differences between rows are the first to
//! be overfitted, most of all where one outcome of several is noisier than the others, as all are trained equally long.
//! Every member predicts the rows that it holds out, so that most rows bear witness. The slopes wanted are those of the
//! mean over members, p̄: it goes with outcomes as much as one member's predictions do, and is less noisy, so that slopes
//! are E[p̄p̄ᵀ]⁻¹E[p·r], where the first needs no outcome and is taken from rows that members may have seen.
//! Slopes are themselves noisy where effects are small, so both have a normal prior: that of p₀ says that effects are
//! right; that of p₁ lies around zero, as wide as the rows bear out (see `slope_posterior`). Where effects are plain it is
//! wide and does not matter; where rows cannot tell what sets them apart from noise, next to nothing of it is kept: just so
//! much that rows stay ranked.
//!
//! The first slope is used only where nothing better is known of averages: see `anchor`.
//!
//! **What outcomes take from each other.** The effect of a policy on spending drowns in its noise, while that on visits or
//! cost is plain, and often the same users respond. So residuals of an outcome are also regressed on what every outcome's
//! predictions say of rows, p₁ of all outcomes together: g of outcome k becomes Σ_j L_kj·g_j. What is taken of others has a prior
//! around zero whose variance the rows tell: where outcomes share nothing it is zero, and nothing is taken. An outcome takes
//! only from those whose differences between rows are plainer than its own, so that noise teaches nobody.

use super::deviations::Deviations;
use super::objective::{Target, Training};
use super::r_loss::{Validation, predictions};
use super::slope_posterior::{SlopeEvidence, SlopePrior};
use crate::Result;
use crate::net::{Dense, Layout, RowSource, predict};
use crate::nuisance::SomeRows;

/// What is known of each slope beforehand.
const PRIORS: [SlopePrior; 2] = [SlopePrior::Known(1.0, 0.5), SlopePrior::Found];
/// Slopes beyond these are a sign of something else than size.
const LEAST: [f64; 2] = [0.0, 0.02];
const MOST: f64 = 3.0;
/// What is taken of another outcome and makes up less of the variance of effects is not worth taking.
const LEAST_SHARE: f64 = 1e-3;

/// The slopes of an outcome: of what policies do on average, and of what sets rows apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slopes {
    pub(super) average: f64,
    pub(super) rows: f64,
    /// What the outcome takes of g of each outcome, its own among them; none where each has its own alone.
    pub(super) loadings: Vec<f64>,
}

impl Slopes {
    /// What the outcome takes of every outcome's deviations, in all.
    pub(super) fn of_deviations(&self, outcome: usize, n_outcomes: usize) -> Vec<f64> {
        let alone = |other: usize| if other == outcome { self.rows } else { 0.0 };
        match self.loadings.is_empty() {
            true => (0..n_outcomes).map(alone).collect(),
            false => self.loadings.clone(),
        }
    }
}

/// What held-out rows say of effects.
pub(super) struct Calibration {
    /// The slopes of held-out residuals on the mean prediction of all members, by outcome; none where nothing is held out.
    pub(super) slopes: Vec<Slopes>,
    /// What rows differ by, as told by members that held them out; none where nothing is held out.
    pub(super) deviations: Option<Deviations>,
}

/// Calibrates predictions of members; rows of a `cluster` are one unit of evidence.
pub(super) fn calibrate(
    training: &Training<'_>,
    layout: &Layout,
    members: &[Vec<f32>],
    x: &dyn RowSource,
    validation: &Validation,
    cluster: Option<&[u32]>,
    is_shared: bool,
) -> Result<Calibration> {
    if validation.is_empty() {
        return Ok(Calibration { slopes: Vec::new(), deviations: None });
    }
    let n_outcomes = training.network.g.len();
    let mut held_out: Vec<SlopeEvidence> =
        (0..n_outcomes).map(|_| SlopeEvidence::new(1 + n_outcomes)).collect();
    let mut of_mean = held_out.clone();
    let mut deviations = Deviations::new(x.n_rows(), n_outcomes);
    for (weights, rows) in members.iter().zip(&validation.rows).filter(|(_, rows)| !rows.is_empty()) {
        let parts = Parts::of(training, layout, &[weights], x, rows)?;
        let each = held_out.iter_mut().enumerate();
        each.for_each(|(outcome, own)| add(own, training, (rows, cluster), &parts, outcome));
        deviations.add(rows, parts.whole.iter().zip(&parts.average).map(|(whole, average)| whole - average));
    }
    if members.len() > 1 {
        let all: Vec<&Vec<f32>> = members.iter().collect();
        let parts = Parts::of(training, layout, &all, x, &validation.spread)?;
        let each = of_mean.iter_mut().enumerate();
        each.for_each(|(outcome, own)| add(own, training, (&validation.spread, None), &parts, outcome));
    }
    let of_mean = |outcome: usize| (members.len() > 1).then(|| &of_mean[outcome]);
    let strengths: Vec<f64> = (0..n_outcomes)
        .map(|outcome| OwnEvidence::new(&held_out[outcome], of_mean(outcome), outcome).strength())
        .collect();
    let slopes = (0..n_outcomes).map(|outcome| {
        let is_teacher = |other: &usize| is_shared && strengths[*other] > strengths[outcome];
        let mut teachers: Vec<usize> = (0..n_outcomes).filter(is_teacher).collect();
        teachers.sort_by(|a, b| strengths[*b].total_cmp(&strengths[*a]));
        Slopes::new(&held_out[outcome], of_mean(outcome), outcome, &teachers, is_shared && n_outcomes > 1)
    });
    let slopes = slopes.collect();
    Ok(Calibration { slopes, deviations: Some(deviations) })
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

/// Adds what rows say of the slopes of one outcome: on what policies do on average, and on what sets rows apart by the
/// predictions of every outcome.
fn add(
    evidence: &mut SlopeEvidence,
    training: &Training<'_>,
    (rows, cluster): (&[u32], Option<&[u32]>),
    predicted: &Parts,
    outcome: usize,
) {
    let n_outcomes = training.network.g.len();
    let mut parts = vec![0.0; 1 + n_outcomes];
    let mut places: Vec<usize> = (0..rows.len()).collect();
    let unit_of = |place: usize| cluster.map_or(rows[place], |cluster| cluster[rows[place] as usize]);
    if cluster.is_some() {
        places.sort_by_key(|place| unit_of(*place));
    }
    for (turn, i) in places.iter().copied().enumerate() {
        let row = &rows[i];
        let at = *row as usize * n_outcomes + outcome;
        let of_row = i * n_outcomes..(i + 1) * n_outcomes;
        let (whole, average) = (&predicted.whole[of_row.clone()], &predicted.average[of_row]);
        let p = whole[outcome];
        let weight = training.weight.map_or(1.0, |weight| f64::from(weight[*row as usize]));
        let (error, curvature) = match training.target {
            Target::Residual(residual) => (f64::from(residual[at]) - p, 1.0),
            Target::Binary { outcome, logit } => {
                let chance = 1.0 / (1.0 + (-(f64::from(logit[at]) + p)).exp());
                (f64::from(outcome[at]) - chance, chance * (1.0 - chance))
            }
        };
        parts[0] = average[outcome];
        let each = whole.iter().zip(average);
        parts[1..].iter_mut().zip(each).for_each(|(part, (whole, average))| *part = whole - average);
        // By 1/σ²: what sets rows apart is found by all of them, not by those who spend most.
        evidence.add(&parts, error, curvature, weight * training.by_noise(at).powi(2));
        if places.get(turn + 1).is_none_or(|next| unit_of(*next) != unit_of(i)) {
            evidence.end_unit();
        }
    }
}

/// What held-out rows say of the slopes of an outcome's own predictions, and the moments of the mean of members.
struct OwnEvidence {
    held_out: SlopeEvidence,
    of_mean: Option<SlopeEvidence>,
}

impl OwnEvidence {
    fn new(held_out: &SlopeEvidence, of_mean: Option<&SlopeEvidence>, outcome: usize) -> Self {
        let own = [0, 1 + outcome];
        Self { held_out: held_out.of_parts(&own), of_mean: of_mean.map(|of_mean| of_mean.of_parts(&own)) }
    }

    /// How plainly rows differ in what the predictions say they differ by.
    fn strength(&self) -> f64 {
        self.held_out.strength(self.of_mean.as_ref(), &[1.0, 1.0], &PRIORS, 1)
    }

    fn slopes(&self) -> [f64; 2] {
        let slopes = self.held_out.posterior(self.of_mean.as_ref(), &[1.0, 1.0], &PRIORS);
        [0, 1].map(|part| slopes[part].clamp(LEAST[part], MOST))
    }
}

impl Slopes {
    /// From what held-out rows say, and what predictions of the mean of members are; taken from no outcome but `teachers`,
    /// the plainest first.
    fn new(
        held_out: &SlopeEvidence,
        of_mean: Option<&SlopeEvidence>,
        outcome: usize,
        teachers: &[usize],
        is_shared: bool,
    ) -> Self {
        let [average, rows] = OwnEvidence::new(held_out, of_mean, outcome).slopes();
        if !is_shared {
            return Self { average, rows, loadings: Vec::new() };
        }
        let mut loadings = vec![0.0; held_out.n_parts() - 1];
        loadings[outcome] = rows;
        if !teachers.is_empty() {
            // The plainest come first: what goes with them is then asked only for what they do not say.
            let others = teachers.iter().chain([&outcome]).map(|other| 1 + other);
            let parts: Vec<usize> = [0].into_iter().chain(others).collect();
            let (held_out, of_mean) = (held_out.of_parts(&parts), of_mean.map(|own| own.of_parts(&parts)));
            let own = parts.len() - 1;
            let start: Vec<f64> = (0..=own).map(|place| f64::from(u8::from(place % own == 0))).collect();
            let priors: Vec<SlopePrior> = (0..=own).map(|place| PRIORS[place.min(1)]).collect();
            let mut slopes = held_out.posterior(of_mean.as_ref(), &start, &priors);
            drop_negligible(&mut slopes[1..], &of_mean.as_ref().unwrap_or(&held_out).sizes()[1..]);
            // Rows stay ranked by their own outcome where no other tells more.
            let takes = slopes[1..own].iter().any(|slope| *slope != 0.0);
            slopes[own] = slopes[own].clamp(if takes { 0.0 } else { LEAST[1] }, MOST);
            parts[1..].iter().zip(&slopes[1..]).for_each(|(part, slope)| loadings[part - 1] = *slope);
        }
        Self { average, rows, loadings }
    }
}

/// Leaves out what is taken of other outcomes and moves next to nothing; the last loading is the outcome's own.
fn drop_negligible(loadings: &mut [f64], sizes: &[f64]) {
    let moved: Vec<f64> = loadings.iter().zip(sizes).map(|(loading, size)| loading.powi(2) * size).collect();
    let total: f64 = moved.iter().sum();
    let others = loadings.len().saturating_sub(1);
    for (loading, moved) in loadings.iter_mut().zip(&moved).take(others) {
        if *moved < LEAST_SHARE * total {
            *loading = 0.0;
        }
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
        let mut evidence = SlopeEvidence::new(2);
        for (parts, error) in rows {
            evidence.add(parts, *error, 1.0, 1.0);
            evidence.end_unit();
        }
        let Slopes { average, rows, .. } = Slopes::new(&evidence, None, 0, &[], false);
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
        assert!((average - 1.0).abs() < 0.05 && own == LEAST[1], "{average}, {own}");
        assert_eq!(posterior(&rows(20_000, [-3.0, 9.0], 1.0)), (LEAST[0], MOST));
    }

    #[test]
    fn noise_that_grows_with_predictions_makes_slopes_less_sure() {
        let even = rows(400, [1.0, 1.0], 0.3);
        let mass: f64 = even.iter().map(|(parts, _)| parts[1].powi(2)).sum::<f64>() / even.len() as f64;
        let mut uneven = even.clone();
        // As much noise in all, more where p₁ is large.
        uneven.iter_mut().for_each(|(parts, error)| *error *= (parts[1].powi(2) / mass).sqrt());
        let [even, uneven] = [even, uneven].map(|rows| posterior(&rows).1);
        assert!(uneven < 0.98 * even, "{uneven} against {even}");
        let (average, own) = posterior(&rows(50, [1.0, 1.0], 0.0));
        assert!((average - 1.0).abs() < 1e-9 && own == LEAST[1], "{average}, {own}");
    }

    #[test]
    fn parts_that_cannot_be_told_apart_have_finite_slopes() {
        for size in [1e-6, 1.0, 1e6] {
            for error in [0.0, 1e-3, 2.0] {
                let (average, own) = posterior(&[([0.3 * size, 0.7 * size], error * size)]);
                assert!(average.is_finite() && own.is_finite(), "{size}, {error}: {average}, {own}");
            }
        }
    }
}
