//! Bilinear ridge: residual outcome on x ⊗ (α_t − ᾱ), the linear special case of the method.
//!
//! Minimises mean (y − m̂(x) − (1, x)ᵀ B (α_t − ᾱ))² + λ‖B‖² over matrices B, features × atoms. The normal equations are
//! solved by conjugate gradients, which need only passes over the rows, for falling λ, each started from the last; the λ
//! with the least loss on held-out units is kept. Rows enter through their policy, so a pass costs rows × features.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::effect::{
    EffectModel, NoSettings, Scorer, Scores, Settings, Tensor, Tensors, Trained, ValidTrainingData,
};
use crate::learn::poul::TreatmentSpace;
use crate::net::RowSource;
use crate::nuisance::{FirstStage, Folds};
use crate::policy::PolicySet;
use crate::stored::{contradiction, read_stored, store};
use crate::{Error, Result, Run};

/// The learner's name.
pub const NAME: &str = "ridge";

/// One in so many units is held out to choose λ.
const HELD_PARTS: usize = 8;
const PENALTIES: [f64; 10] = [3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5];
/// Rows of a fixed block, summed in order whatever the number of threads.
const BLOCK_ROWS: usize = 4096;
const MAX_STEPS: usize = 100;

/// `[training]` of the learner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RidgeParams {
    /// Folds of cross-fitting of the outcome model. Default 0: 6 up to 5,000 rows, 3 beyond.
    folds: usize,
}

/// Completes settings with defaults.
pub fn settle(settings: &Settings) -> Result<Settings> {
    settings.require_no_preset(NAME)?;
    let (model, training): (NoSettings, RidgeParams) = settings.read()?;
    if training.folds > 100 {
        return Err(Error::usage("`training.folds` is out of range").hint("it must be 0 to 100"));
    }
    Settings::of(None, &model, &training)
}

/// Fits B for every outcome.
pub fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    let (_, params): (NoSettings, RidgeParams) = settle(settings)?.read()?;
    // The same nuisances as the method's, from the same streams: only the last stage differs.
    let rows = data.observed();
    let residuals = FirstStage::shared(&rows, params.folds, true, None, run)?.take_outcome()?;
    let total: f64 = data.policy_mass().iter().sum();
    let shares: Vec<f64> = data.policy_mass().iter().map(|mass| mass / total).collect();
    let space = TreatmentSpace::new(data.policies, &shares);
    let directions = directions(&space, data.policies, &(0..data.policies.len()).collect::<Vec<_>>());
    let held = Folds::deal(data.n_rows(), data.cluster, HELD_PARTS, run.seed.child(NAME));
    let (validation, rows) = (held.rows(0), held.rest(0));
    let n_outcomes = data.outcomes.len();
    let mut ridge = Ridge {
        manifest: Manifest {
            outcomes: data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect(),
            scales: residuals.scales.clone(),
            n_features: data.x.n_cols(),
            space,
            penalties: Vec::new(),
        },
        coefficients: Vec::new(),
    };
    run.progress.start("Ridge", "penalties", Some((n_outcomes * PENALTIES.len()) as u64));
    for outcome in 0..n_outcomes {
        let residual: Vec<f64> = residuals
            .values
            .iter()
            .skip(outcome)
            .step_by(n_outcomes)
            .map(|value| f64::from(*value))
            .collect();
        let system = System { data, directions: &directions, residual: &residual };
        let mut best: Option<(f64, f64, Vec<f64>)> = None;
        let mut start = vec![0.0; (data.x.n_cols() + 1) * ridge.manifest.space.atoms.len()];
        for penalty in PENALTIES {
            start = system.solve(&rows, penalty, start);
            let loss = system.loss(&validation, &start);
            if best.as_ref().is_none_or(|best| loss < best.0) {
                best = Some((loss, penalty, start.clone()));
            }
            run.progress.advance(1);
            if run.progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        let (_, penalty, coefficients) = best.unwrap_or((0.0, 0.0, start));
        ridge.manifest.penalties.push(penalty);
        ridge.coefficients.push(coefficients.iter().map(|value| *value as f32).collect());
    }
    run.progress.finish();
    Ok(Trained { effects: Box::new(ridge), history: Vec::new(), notes: Vec::new() })
}

/// Reads a model back.
pub fn load(manifest: &serde_json::Value, tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    let manifest: Manifest = read_stored(manifest)?;
    if manifest.scales.len() != manifest.outcomes.len() || !manifest.space.is_consistent() {
        return Err(contradiction());
    }
    let shape = [manifest.n_features.saturating_add(1), manifest.space.atoms.len()];
    let coefficients = (0..manifest.outcomes.len())
        .map(|outcome| tensors.take(&tensor_name(outcome), &shape))
        .collect::<Result<_>>()?;
    Ok(Box::new(Ridge { manifest, coefficients }))
}

fn tensor_name(outcome: usize) -> String {
    format!("{NAME}.{outcome}")
}

struct Ridge {
    manifest: Manifest,
    /// By outcome, (1 + features) × atoms.
    coefficients: Vec<Vec<f32>>,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    outcomes: Vec<String>,
    scales: Vec<f64>,
    n_features: usize,
    space: TreatmentSpace,
    penalties: Vec<f64>,
}

impl EffectModel for Ridge {
    fn outcomes(&self) -> &[String] {
        &self.manifest.outcomes
    }

    fn n_features(&self) -> usize {
        self.manifest.n_features
    }

    fn prepare<'m>(
        &'m self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Box<dyn Scorer + 'm>> {
        let chosen: Vec<usize> = targets.iter().copied().chain([against]).collect();
        let directions = directions(&self.manifest.space, policies, &chosen);
        let (targets, base) = directions.split_at(targets.len());
        let n_atoms = self.manifest.space.atoms.len();
        // B(α_t − α_against): what one row is multiplied by, for each outcome and target.
        let slopes = |coefficients: &Vec<f32>| {
            let slope = |target: &Vec<f64>| -> Vec<f32> {
                let change: Vec<f64> = target.iter().zip(&base[0]).map(|(a, b)| a - b).collect();
                let row =
                    |row: &[f32]| row.iter().zip(&change).map(|(b, a)| f64::from(*b) * a).sum::<f64>() as f32;
                coefficients.chunks(n_atoms).map(row).collect()
            };
            targets.iter().map(slope).collect()
        };
        let slopes = self.coefficients.iter().map(slopes).collect();
        Ok(Box::new(RidgeScorer { ridge: self, slopes }))
    }

    fn manifest(&self) -> Result<serde_json::Value> {
        store(&self.manifest)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let shape = [self.manifest.n_features + 1, self.manifest.space.atoms.len()];
        let tensors = self.coefficients.iter().enumerate();
        tensors
            .map(|(outcome, values)| Tensor::new(tensor_name(outcome), &shape, values.as_slice()))
            .collect()
    }
}

struct RidgeScorer<'m> {
    ridge: &'m Ridge,
    /// By outcome and target: the constant and the slope of each feature.
    slopes: Vec<Vec<Vec<f32>>>,
}

impl Scorer for RidgeScorer<'_> {
    fn score(&self, x: &dyn RowSource, _spread: bool) -> Result<Scores> {
        let (n_cols, n_rows) = (x.n_cols(), x.n_rows());
        let mut row = vec![0.0; n_cols];
        let mut mean = vec![Vec::new(); self.slopes.len()];
        for number in 0..n_rows as u32 {
            x.copy_rows(&[number], &mut row);
            for ((mean, targets), scale) in mean.iter_mut().zip(&self.slopes).zip(&self.ridge.manifest.scales)
            {
                mean.extend(targets.iter().map(|slope| {
                    let dot: f64 = row.iter().zip(&slope[1..]).map(|(x, b)| f64::from(x * b)).sum();
                    ((f64::from(slope[0]) + dot) * scale) as f32
                }));
            }
        }
        Ok(Scores { mean, spread: Vec::new() })
    }

    fn has_spread(&self) -> bool {
        false
    }
}

/// α_t − ᾱ over the seen atoms, for some policies; atoms that were never seen count as zero.
fn directions(space: &TreatmentSpace, policies: &PolicySet, chosen: &[usize]) -> Vec<Vec<f64>> {
    let direction = |policy: &usize| {
        let mut direction: Vec<f64> = space.mean.iter().map(|mean| -mean).collect();
        let mixture = policies.mixture(*policy);
        for (atom, mass) in mixture.atoms.iter().zip(mixture.mass) {
            let atom = policies.atoms()[*atom as usize];
            let (context, action) =
                (&policies.contexts()[atom.context as usize], &policies.actions()[atom.action as usize]);
            if let Some(place) = space.place(context, action) {
                direction[place] += mass;
            }
        }
        direction
    };
    chosen.iter().map(direction).collect()
}

/// The least-squares problem of one outcome.
struct System<'a> {
    data: &'a ValidTrainingData<'a>,
    directions: &'a [Vec<f64>],
    residual: &'a [f64],
}

impl System<'_> {
    fn loss(&self, rows: &[u32], coefficients: &[f64]) -> f64 {
        let (mut total, mut mass) = (0.0, 0.0);
        for (row, fitted) in rows.iter().zip(self.fitted(rows, coefficients)) {
            let weight = self.weight(*row);
            total += weight * (fitted - self.residual[*row as usize]).powi(2);
            mass += weight;
        }
        total / mass
    }

    fn weight(&self, row: u32) -> f64 {
        self.data.weight.map_or(1.0, |weight| weight[row as usize])
    }

    /// (1, x)ᵀ B (α_t − ᾱ) of rows.
    fn fitted(&self, rows: &[u32], coefficients: &[f64]) -> Vec<f64> {
        let n_atoms = self.directions[0].len();
        let slope = |direction: &Vec<f64>| -> Vec<f64> {
            coefficients
                .chunks(n_atoms)
                .map(|row| row.iter().zip(direction).map(|(b, a)| b * a).sum())
                .collect()
        };
        let slopes: Vec<Vec<f64>> = self.directions.iter().map(slope).collect();
        let block = |rows: &[u32]| -> Vec<f64> {
            let mut x = vec![0.0; rows.len() * self.data.x.n_cols()];
            self.data.x.copy_rows(rows, &mut x);
            let fitted = |(row, x): (&u32, &[f32])| {
                let slope = &slopes[self.data.policy[*row as usize] as usize];
                slope[0] + x.iter().zip(&slope[1..]).map(|(x, b)| f64::from(*x) * b).sum::<f64>()
            };
            rows.iter().zip(x.chunks(self.data.x.n_cols())).map(fitted).collect()
        };
        rows.par_chunks(BLOCK_ROWS).map(block).collect::<Vec<_>>().concat()
    }

    /// Σ weight · value · (1, x) ⊗ (α_t − ᾱ) / Σ weight: by policy first, then one outer product each.
    fn adjoint(&self, rows: &[u32], values: &[f64]) -> Vec<f64> {
        let width = self.data.x.n_cols() + 1;
        let block = |(rows, values): (&[u32], &[f64])| {
            let mut x = vec![0.0; rows.len() * (width - 1)];
            self.data.x.copy_rows(rows, &mut x);
            let mut sums = vec![0.0; self.directions.len() * width];
            for ((row, value), x) in rows.iter().zip(values).zip(x.chunks(width - 1)) {
                let value = self.weight(*row) * value;
                let sums = &mut sums[self.data.policy[*row as usize] as usize * width..][..width];
                sums[0] += value;
                sums[1..].iter_mut().zip(x).for_each(|(sum, x)| *sum += value * f64::from(*x));
            }
            sums
        };
        let blocks: Vec<Vec<f64>> =
            rows.par_chunks(BLOCK_ROWS).zip(values.par_chunks(BLOCK_ROWS)).map(block).collect();
        let mass: f64 = rows.iter().map(|row| self.weight(*row)).sum();
        let mut total = vec![0.0; self.directions.len() * width];
        for block in blocks {
            total.iter_mut().zip(block).for_each(|(total, sum)| *total += sum / mass);
        }
        let n_atoms = self.directions[0].len();
        let mut gradient = vec![0.0; width * n_atoms];
        for (sums, direction) in total.chunks(width).zip(self.directions) {
            for (sum, gradient) in sums.iter().zip(gradient.chunks_mut(n_atoms)) {
                gradient.iter_mut().zip(direction).for_each(|(gradient, a)| *gradient += sum * a);
            }
        }
        gradient
    }

    /// Conjugate gradients on (ΦᵀΦ/n + λ) B = Φᵀy/n, from `start`.
    fn solve(&self, rows: &[u32], penalty: f64, start: Vec<f64>) -> Vec<f64> {
        let apply = |b: &[f64]| {
            let mut out = self.adjoint(rows, &self.fitted(rows, b));
            out.iter_mut().zip(b).for_each(|(out, b)| *out += penalty * b);
            out
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let outcome: Vec<f64> = rows.iter().map(|row| self.residual[*row as usize]).collect();
        let mut b = start;
        let mut rest = self.adjoint(rows, &outcome);
        let first = dot(&rest, &rest);
        rest.iter_mut().zip(apply(&b)).for_each(|(rest, applied)| *rest -= applied);
        let mut direction = rest.clone();
        let mut size = dot(&rest, &rest);
        for _ in 0..MAX_STEPS {
            if size <= 1e-12 * first {
                break;
            }
            let applied = apply(&direction);
            let step = size / dot(&direction, &applied);
            b.iter_mut().zip(&direction).for_each(|(b, d)| *b += step * d);
            rest.iter_mut().zip(&applied).for_each(|(rest, applied)| *rest -= step * applied);
            let next = dot(&rest, &rest);
            direction.iter_mut().zip(&rest).for_each(|(d, rest)| *d = rest + next / size * *d);
            size = next;
        }
        b
    }
}
