//! Slopes of residual outcomes on several parts of a prediction: a prior times what held-out rows say.
//!
//! One Newton step from where predictions are taken as they are, which for squares is the solution, with the sandwich
//! A⁻¹BA⁻¹ for its variance. Where a row's noise grows with its prediction, as that of spending does, A alone would be far
//! too sure. Parts of which it is not known whether they matter at all have a prior around zero whose variance is that
//! under which the rows are most likely (MacKay 1994; Tipping 2001): most often zero where they do not.

use crate::stats::{Cholesky, dot};

/// How far beyond its error the estimate of a part must lie, squared, for the part to count.
const LEAST_EVIDENCE: f64 = 4.0;
/// Passes over the parts whose variance is found; they settle after a few.
const MOST_PASSES: usize = 50;

/// What is known of a slope beforehand.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlopePrior {
    /// Mean and standard deviation.
    Known(f64, f64),
    /// Around zero, as far as the rows bear it out.
    Found,
}

/// What held-out rows say, added up.
#[derive(Clone, Debug)]
pub(super) struct SlopeEvidence {
    n_parts: usize,
    mass: f64,
    /// Σ weight · error · part.
    score: Vec<f64>,
    /// Σ weight · curvature · part · partᵀ.
    moments: Vec<f64>,
    /// Σ over units of their scores' squares.
    noise: Vec<f64>,
    /// The score of the unit that rows are being added to.
    unit: Vec<f64>,
}

impl SlopeEvidence {
    pub(super) fn new(n_parts: usize) -> Self {
        let square = || vec![0.0; n_parts * n_parts];
        let zeros = || vec![0.0; n_parts];
        Self { n_parts, mass: 0.0, score: zeros(), moments: square(), noise: square(), unit: zeros() }
    }

    pub(super) fn n_parts(&self) -> usize {
        self.n_parts
    }

    /// What the rows say of some of the parts, the others being left out.
    pub(super) fn of_parts(&self, parts: &[usize]) -> Self {
        let n = self.n_parts;
        let square = |lower: &[f64]| -> Vec<f64> {
            let pairs = parts.iter().flat_map(|i| parts.iter().map(move |j| (*i.max(j), *i.min(j))));
            pairs.map(|(i, j)| lower[i * n + j]).collect()
        };
        Self {
            n_parts: parts.len(),
            mass: self.mass,
            score: parts.iter().map(|part| self.score[*part]).collect(),
            moments: square(&self.moments),
            noise: square(&self.noise),
            unit: parts.iter().map(|part| self.unit[*part]).collect(),
        }
    }

    /// The mean square of each part, by what rows weigh.
    pub(super) fn sizes(&self) -> Vec<f64> {
        let mass = self.mass.max(f64::MIN_POSITIVE);
        (0..self.n_parts).map(|part| self.moments[part * self.n_parts + part] / mass).collect()
    }

    /// Adds a row: how far the outcome is from its prediction, and how curved the loss is there.
    pub(super) fn add(&mut self, parts: &[f64], error: f64, curvature: f64, weight: f64) {
        let n = self.n_parts;
        self.mass += weight;
        for (i, own) in parts.iter().enumerate() {
            self.score[i] += weight * error * own;
            self.unit[i] += weight * error * own;
            for (j, other) in parts[..=i].iter().enumerate() {
                self.moments[i * n + j] += weight * curvature * own * other;
            }
        }
    }

    /// Ends a unit, a row or a cluster: what its rows have in common makes slopes less sure.
    pub(super) fn end_unit(&mut self) {
        let n = self.n_parts;
        for i in 0..n {
            for j in 0..=i {
                self.noise[i * n + j] += self.unit[i] * self.unit[j];
            }
        }
        self.unit.fill(0.0);
    }

    /// The slopes. `of_mean` has the moments of the predictor whose slopes are wanted, where it is another one that goes with
    /// outcomes as these parts do; `start` is how much of each part the errors have taken off.
    pub(super) fn posterior(&self, of_mean: Option<&Self>, start: &[f64], priors: &[SlopePrior]) -> Vec<f64> {
        let (precision, pull) = self.normal_equations(of_mean, start);
        solve(&precision, &pull, start, priors).unwrap_or_else(|| priors.iter().map(mean_of).collect())
    }

    /// How far the slope of a part is from zero in standard errors, squared, beside parts whose prior is known.
    pub(super) fn strength(
        &self,
        of_mean: Option<&Self>,
        start: &[f64],
        priors: &[SlopePrior],
        part: usize,
    ) -> f64 {
        let (precision, pull) = self.normal_equations(of_mean, start);
        let mut known: Vec<Option<f64>> = priors.iter().map(precision_of).collect();
        known[part] = Some(0.0);
        match of_part(&precision, &pull, start, priors, &known, part) {
            Some((mean, variance)) if variance > 0.0 => mean * mean / variance,
            _ => 0.0,
        }
    }

    /// The precision of slopes by the rows alone, and what it pulls steps from `start` to.
    fn normal_equations(&self, of_mean: Option<&Self>, start: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = self.n_parts;
        let found = self.per_mass(&self.moments, 1);
        let curved = of_mean.map_or_else(|| found.clone(), |own| own.per_mass(&own.moments, 1));
        let mut noise = self.per_mass(&self.noise, 2);
        let mass = self.mass.max(f64::MIN_POSITIVE);
        // E[part · residual], and from there the step from `start` for the predictor whose slopes are wanted.
        let (taken, expected) = (times(&found, start), times(&curved, start));
        let score: Vec<f64> = (0..n).map(|i| self.score[i] / mass + taken[i] - expected[i]).collect();
        // A part that is 0 for all rows says nothing of its slope, nor do a row or two tell slopes apart.
        let trace: f64 = (0..n).map(|i| noise[i * n + i]).sum();
        (0..n).for_each(|i| noise[i * n + i] += 1e-9 * noise[i * n + i] + 1e-15 * trace);
        let (mut precision, mut pull) = (vec![0.0; n * n], vec![0.0; n]);
        if let Some(factor) = Cholesky::new(noise, n).filter(|_| trace > 0.0) {
            // L⁻¹·A: its square is A·B⁻¹·A.
            let columns: Vec<Vec<f64>> = (0..n)
                .map(|column| {
                    let mut own: Vec<f64> = (0..n).map(|row| curved[row * n + column]).collect();
                    factor.forward(&mut own);
                    own
                })
                .collect();
            let mut right = score.clone();
            factor.forward(&mut right);
            for i in 0..n {
                pull[i] = dot(&columns[i], &right);
                (0..n).for_each(|j| precision[i * n + j] = dot(&columns[i], &columns[j]));
            }
        }
        (precision, pull)
    }

    /// The full matrix, divided by a power of the mass.
    fn per_mass(&self, lower: &[f64], power: i32) -> Vec<f64> {
        let n = self.n_parts;
        let mass = self.mass.max(f64::MIN_POSITIVE).powi(power);
        (0..n * n).map(|at| lower[(at / n).max(at % n) * n + (at / n).min(at % n)] / mass).collect()
    }
}

/// The posterior mean, with variances that make the rows most likely for the parts whose prior is to be found.
fn solve(precision: &[f64], pull: &[f64], start: &[f64], priors: &[SlopePrior]) -> Option<Vec<f64>> {
    let n = pull.len();
    // By part the prior's precision; none: the slope is zero.
    let mut known: Vec<Option<f64>> = priors.iter().map(precision_of).collect();
    let is_found = |part: &usize| matches!(priors[*part], SlopePrior::Found);
    let sought: Vec<usize> = (0..n).filter(is_found).collect();
    for _ in 0..MOST_PASSES {
        let before = known.clone();
        for part in &sought {
            known[*part] = Some(0.0);
            let (mean, variance) = of_part(precision, pull, start, priors, &known, *part)?;
            let size = mean * mean - LEAST_EVIDENCE * variance;
            known[*part] = (size > 0.0 && variance > 0.0).then(|| 1.0 / size);
        }
        let close = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            (a, b) => a.is_none() == b.is_none(),
        };
        if sought.is_empty() || known.iter().zip(&before).all(close) {
            break;
        }
    }
    let (mean, _, active) = posterior_of(precision, pull, start, priors, &known)?;
    let mut slopes = vec![0.0; n];
    active.iter().zip(mean).for_each(|(part, mean)| slopes[*part] = mean);
    slopes.iter().all(|slope| slope.is_finite()).then_some(slopes)
}

/// Mean and variance of one part's slope.
fn of_part(
    precision: &[f64],
    pull: &[f64],
    start: &[f64],
    priors: &[SlopePrior],
    known: &[Option<f64>],
    part: usize,
) -> Option<(f64, f64)> {
    if precision[part * pull.len() + part] <= 0.0 {
        return Some((0.0, 0.0));
    }
    let Some((mean, factor, active)) = posterior_of(precision, pull, start, priors, known) else {
        // Rows cannot tell this part from the others.
        return Some((0.0, 0.0));
    };
    let place = active.iter().position(|own| *own == part)?;
    let mut unit = vec![0.0; active.len()];
    unit[place] = 1.0;
    factor.forward(&mut unit);
    Some((mean[place], dot(&unit, &unit)))
}

/// The posterior mean of the parts that are not zero, the factor of its precision, and which parts these are.
fn posterior_of(
    precision: &[f64],
    pull: &[f64],
    start: &[f64],
    priors: &[SlopePrior],
    known: &[Option<f64>],
) -> Option<(Vec<f64>, Cholesky, Vec<usize>)> {
    let n = pull.len();
    let active: Vec<usize> = (0..n).filter(|part| known[*part].is_some()).collect();
    let m = active.len();
    let (mut matrix, mut right) = (vec![0.0; m * m], vec![0.0; m]);
    for (i, part) in active.iter().enumerate() {
        for (j, other) in active.iter().enumerate() {
            matrix[i * m + j] = precision[part * n + other];
        }
        let prior = known[*part].unwrap_or_default();
        matrix[i * m + i] += prior;
        // What rows say of slopes themselves, not of steps from `start`: parts that are left out have slope zero.
        let from_start: f64 = (0..n).map(|other| precision[part * n + other] * start[other]).sum();
        right[i] = pull[*part] + from_start + prior * mean_of(&priors[*part]);
    }
    let factor = Cholesky::new(matrix, m)?;
    factor.forward(&mut right);
    factor.backward(&mut right);
    Some((right, factor, active))
}

/// A prior's precision; none where it is to be found.
fn precision_of(prior: &SlopePrior) -> Option<f64> {
    match prior {
        SlopePrior::Known(_, sd) => Some(sd.powi(-2)),
        SlopePrior::Found => None,
    }
}

fn mean_of(prior: &SlopePrior) -> f64 {
    match prior {
        SlopePrior::Known(mean, _) => *mean,
        SlopePrior::Found => 0.0,
    }
}

fn times(matrix: &[f64], v: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(v.len()).map(|row| dot(row, v)).collect()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Seed;

    /// Rows of three parts whose residual is `truth` times each plus noise; nothing has been taken off.
    fn evidence(n_rows: usize, truth: [f64; 3], seed: u64) -> SlopeEvidence {
        let mut rng = Seed::new(seed).rng();
        let mut draw = || (0..12).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>();
        let mut evidence = SlopeEvidence::new(3);
        for _ in 0..n_rows {
            let shared = draw();
            let parts = [0.1 * draw(), 0.1 * shared, 0.1 * (0.8 * shared + 0.6 * draw())];
            let residual = parts.iter().zip(truth).map(|(part, truth)| part * truth).sum::<f64>() + draw();
            evidence.add(&parts, residual, 1.0, 1.0);
            evidence.end_unit();
        }
        evidence
    }

    const PRIORS: [SlopePrior; 3] =
        [SlopePrior::Known(1.0, 0.5), SlopePrior::Known(0.5, 0.5), SlopePrior::Found];

    #[test]
    fn what_matters_is_found_beside_what_it_goes_with() {
        let slopes = evidence(100_000, [1.0, 0.0, 2.0], 3).posterior(None, &[0.0; 3], &PRIORS);
        assert!((slopes[2] - 2.0).abs() < 0.15 && slopes[1].abs() < 0.15, "{slopes:?}");
    }

    #[test]
    fn what_does_not_matter_is_mostly_left_out() {
        let of = |seed| evidence(5_000, [1.0, 1.0, 0.0], seed).posterior(None, &[0.0; 3], &PRIORS)[2];
        let slopes: Vec<f64> = (0..40).map(of).collect();
        assert!(slopes.iter().filter(|slope| **slope == 0.0).count() >= 28, "{slopes:?}");
    }

    #[test]
    fn units_of_a_part_do_not_matter() {
        let (mut one, mut other) = (SlopeEvidence::new(2), SlopeEvidence::new(2));
        let mut rng = Seed::new(4).rng();
        for _ in 0..2_000 {
            let parts: [f64; 2] = [rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)];
            let residual = parts[0] + 0.7 * parts[1] + rng.random_range(-2.0..2.0);
            one.add(&parts, residual, 1.0, 1.0);
            other.add(&[parts[0], 1e4 * parts[1]], residual, 1.0, 1.0);
            [&mut one, &mut other].into_iter().for_each(SlopeEvidence::end_unit);
        }
        let priors = [SlopePrior::Known(1.0, 0.5), SlopePrior::Found];
        let [one, other] = [one, other].map(|own| own.posterior(None, &[0.0; 2], &priors));
        assert!(
            (one[0] - other[0]).abs() < 1e-3 && (one[1] - 1e4 * other[1]).abs() < 1e-3,
            "{one:?} {other:?}"
        );
        assert!((one[1] - 0.7).abs() < 0.2, "{one:?}");
    }

    #[test]
    fn rows_that_say_the_same_count_once() {
        let (mut once, mut often, mut clustered) =
            (SlopeEvidence::new(2), SlopeEvidence::new(2), SlopeEvidence::new(2));
        let mut rng = Seed::new(5).rng();
        for _ in 0..60 {
            let parts: [f64; 2] = [rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)];
            let residual = parts[0] + 0.5 * parts[1] + rng.random_range(-2.0..2.0);
            once.add(&parts, residual, 1.0, 1.0);
            once.end_unit();
            for _ in 0..20 {
                often.add(&parts, residual, 1.0, 1.0);
                often.end_unit();
                clustered.add(&parts, residual, 1.0, 1.0);
            }
            clustered.end_unit();
        }
        let priors = [SlopePrior::Known(1.0, 0.5), SlopePrior::Known(0.0, 0.2)];
        let [once, often, clustered] =
            [once, often, clustered].map(|own| own.posterior(None, &[0.0; 2], &priors));
        assert!((once[1] - clustered[1]).abs() < 1e-9, "{once:?} {clustered:?}");
        assert!(often[1] > 1.2 * clustered[1], "{often:?} {clustered:?}");
    }
}
