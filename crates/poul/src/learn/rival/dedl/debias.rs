//! Average effects by the influence function (Farrell, Liang and Misra 2021), out of fold.
//!
//! ψ(t) = G(θ, t) − G(θ, c) + (G_θ(t) − G_θ(c))ᵀ·Λ(x)⁻¹·G_θ(T)·(Y − G(θ, T)), θ by networks that never saw the row's fold,
//! averaged over rows by weight and over members. Effects of the networks of all rows are shifted by what their own
//! averages lack: by arm, and for policies that were never run by what [`PolicyShift`] makes of it.

use rayon::prelude::*;

use super::information::{Arms, Point};
use super::{Dedl, DedlLink, factors};
use crate::effect::PolicyShift;
use crate::learn::rival::fit::Problem;
use crate::learn::rival::fitted::{All, Fitted};
use crate::learn::rival::surface::FittedOutcome;
use crate::learn::rival::treatments::Chosen;
use crate::net::{Batch, Network, Tape, Var, predict};
use crate::nuisance::SomeRows;
use crate::{Error, Result};

/// Rows whose sums are taken together. Part of the result.
const CHUNK_ROWS: usize = 256;

/// What must be added to levels.
pub(super) fn shift(fit: &Fitted<Dedl>, outcome: &FittedOutcome<'_>) -> Result<PolicyShift> {
    let treatments = &fit.manifest.treatments;
    let (model, n_arms) = (&fit.manifest.model, treatments.arms.len());
    let factors: Vec<Vec<f64>> = factors::of_chosen(&model.factors, outcome.rows.treatments)
        .into_iter()
        .map(|own| own.into_iter().map(f64::from).collect())
        .collect();
    let arms = Arms::new(model.link, &factors, model.ridge);
    let control = treatments.control;
    let mut sums = vec![0.0; n_arms];
    for fold in 0..outcome.folds.n_folds {
        let is_held = |row: &u32| outcome.parts.is_some_and(|parts| parts.of_row[*row as usize] == 0);
        let (held, fitted): (Vec<u32>, Vec<u32>) =
            outcome.folds.training(fold).iter().partition(|row| is_held(row));
        let stage = format!("{}, without fold {} of {}", outcome.stage, fold + 1, outcome.folds.n_folds);
        let problem = Problem { rows: *outcome.rows, x: outcome.x, fitted: &fitted, held: &held, stage };
        let run = outcome.run.child("debias").child("fold").index(fold as u64);
        let trained = problem.fit(fit, outcome.training, run)?;
        let inside = outcome.folds.rows(fold);
        let share = 1.0 / trained.ensemble.weights.len() as f64;
        for (member, weights) in trained.ensemble.weights.iter().enumerate() {
            let network = Points { surface: &fit.surface, treatments: outcome.rows.treatments };
            let source = SomeRows { x: outcome.x, rows: &inside };
            let points = predict(&fit.layout, weights, &network, &source, n_arms + 1, member)?;
            let own = contrasts(&arms, outcome, &inside, &points)?;
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += share * own);
        }
    }
    let mass: f64 = (0..outcome.rows.arm.len()).map(|row| weight_of(outcome, row)).sum();
    let means = mean_levels(fit, outcome)?;
    let base = sums[control] / mass - means[control];
    let of_arm: Vec<f64> = (0..n_arms).map(|arm| sums[arm] / mass - means[arm] - base).collect();
    let known =
        treatments.arms.iter().map(|name| outcome.policies.require(name)).collect::<Result<Vec<_>>>()?;
    let rows: Vec<f64> = treatments.arm_rows.iter().map(|rows| *rows as f64).collect();
    PolicyShift::fit(outcome.policies, &known, &of_arm, &rows, known[control])
}

fn weight_of(outcome: &FittedOutcome<'_>, row: usize) -> f64 {
    outcome.rows.weight.map_or(1.0, |weight| f64::from(weight[row]))
}

/// The sum over some rows of w·(G(a) + correction of a), by arm; `points` are arms' indices and θ_{m+1}, row after row.
fn contrasts(arms: &Arms<'_>, outcome: &FittedOutcome<'_>, rows: &[u32], points: &[f32]) -> Result<Vec<f64>> {
    let n_arms = arms.factors.len();
    let propensity = outcome.rows.propensity;
    let shares_of =
        |row: usize| -> Vec<f64> { (0..n_arms).map(|arm| f64::from(propensity.lifted(row, arm))).collect() };
    let unsolved = || {
        Error::other("the averages cannot be debiased: the networks' outcomes are not finite")
            .at("learner `dedl`")
            .hint("set `debias = false` under [model], or a lower `learning_rate`")
    };
    // The same Λ for every row: residuals are summed by arm and solved for once.
    let is_constant = arms.link == DedlLink::Linear && propensity.is_same_for_all();
    let chunks: Vec<_> = rows.chunks(CHUNK_ROWS).zip(points.chunks(CHUNK_ROWS * (n_arms + 1))).collect();
    let of_chunk = |(rows, points): &(&[u32], &[f32])| -> Option<[Vec<f64>; 2]> {
        let (mut sums, mut residuals) = (vec![0.0; n_arms], vec![0.0; n_arms]);
        for (row, points) in rows.iter().zip(points.chunks_exact(n_arms + 1)) {
            let row = *row as usize;
            let weight = weight_of(outcome, row);
            let top = f64::from(points[n_arms]);
            let points: Vec<Point> =
                points[..n_arms].iter().map(|index| Point { index: f64::from(*index), top }).collect();
            let own = outcome.rows.arm[row] as usize;
            let residual = f64::from(outcome.rows.outcome[row]) - points[own].level(arms.link);
            points.iter().zip(&mut sums).for_each(|(point, sum)| *sum += weight * point.level(arms.link));
            if is_constant {
                residuals[own] += weight * residual;
                continue;
            }
            let mut of_own = vec![0.0; n_arms];
            of_own[own] = residual;
            let corrections = arms.corrections(&points, &shares_of(row), &of_own)?;
            sums.iter_mut().zip(corrections).for_each(|(sum, own)| *sum += weight * own);
        }
        Some([sums, residuals])
    };
    let (mut sums, mut residuals) = (vec![0.0; n_arms], vec![0.0; n_arms]);
    for chunk in chunks.par_iter().map(of_chunk).collect::<Vec<_>>() {
        let [own, left] = chunk.ok_or_else(unsolved)?;
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        residuals.iter_mut().zip(left).for_each(|(sum, own)| *sum += own);
    }
    if is_constant {
        let points = vec![Point { index: 0.0, top: 0.0 }; n_arms];
        let corrections = arms.corrections(&points, &shares_of(0), &residuals).ok_or_else(unsolved)?;
        sums.iter_mut().zip(corrections).for_each(|(sum, own)| *sum += own);
    }
    Ok(sums)
}

/// The mean level under each arm by the networks of all rows.
fn mean_levels(fit: &Fitted<Dedl>, outcome: &FittedOutcome<'_>) -> Result<Vec<f64>> {
    let n_arms = fit.manifest.treatments.arms.len();
    let network = All { surface: &fit.surface, treatments: outcome.rows.treatments };
    let (mut sums, mut mass) = (vec![0.0; n_arms], 0.0);
    for (member, weights) in outcome.weights.iter().enumerate() {
        let levels = predict(&fit.layout, weights, &network, outcome.x, n_arms, member)?;
        for (row, levels) in levels.chunks_exact(n_arms).enumerate() {
            let weight = weight_of(outcome, row);
            mass += weight;
            sums.iter_mut().zip(levels).for_each(|(sum, level)| *sum += weight * f64::from(*level));
        }
    }
    Ok(sums.into_iter().map(|sum| sum / mass).collect())
}

/// The index under every arm and θ_{m+1} of each row, as a network.
struct Points<'a> {
    surface: &'a Dedl,
    treatments: &'a Chosen,
}

impl Network for Points<'_> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        super::Surface::shared(self.surface, tape, self.treatments);
    }

    fn rows(&self, tape: &mut Tape<'_>, _batch: &Batch<'_>) -> Var {
        let theta = self.surface.theta(tape);
        let factors = tape.shared(0);
        let slopes = tape.slice_cols(theta, 1, self.surface.factors.len());
        let constant = tape.slice_cols(theta, 0, 1);
        let index = tape.matmul_nt(slopes, factors);
        let index = tape.add(index, constant);
        // The linear link has no θ_{m+1}: θ_0 stands in its place, and nobody reads it.
        let top = match self.surface.link {
            DedlLink::Sigmoid => self.surface.top(tape, theta),
            DedlLink::Linear => constant,
        };
        tape.concat(&[index, top])
    }
}
