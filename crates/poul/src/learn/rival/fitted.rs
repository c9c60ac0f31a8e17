//! Fitted networks of outcomes under treatments: effects as differences of their levels, and their stored form.

use serde::{Deserialize, Serialize};

use super::fit::build;
use super::surface::Surface;
use super::treatments::{Chosen, Treatments};
use crate::Result;
use crate::effect::{EffectModel, PolicyShift, Scorer, Scores, Tensor, Tensors};
use crate::net::{Batch, Ensemble, Layout, Network, RowSource, Tape, Var, predict};
use crate::policy::PolicySet;
use crate::stored::{contradiction, read_stored, store};

/// Fitted networks.
pub(super) struct Fitted<S: Surface> {
    pub(super) manifest: Manifest<S::Model>,
    pub(super) surface: S,
    pub(super) layout: Layout,
    /// By outcome.
    pub(super) ensembles: Vec<Ensemble>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Manifest<M> {
    pub(super) outcomes: Vec<String>,
    /// The unit that each outcome was learned in: its standard deviation, for most.
    pub(super) scales: Vec<f64>,
    pub(super) n_features: usize,
    pub(super) treatments: Treatments,
    pub(super) model: M,
    /// What is added to levels, by outcome; none for most, and in older models.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) shifts: Vec<PolicyShift>,
}

/// Reads a model back.
pub(super) fn load<S: Surface + 'static>(
    manifest: &serde_json::Value,
    tensors: &mut Tensors,
) -> Result<Box<dyn EffectModel>> {
    let manifest: Manifest<S::Model> = read_stored(manifest)?;
    let consistent = manifest.scales.len() == manifest.outcomes.len()
        && !manifest.outcomes.is_empty()
        && manifest.n_features > 0
        && manifest.treatments.is_consistent()
        && S::fits(&manifest.model, &manifest.treatments)
        && (manifest.shifts.is_empty() || manifest.shifts.len() == manifest.outcomes.len())
        && manifest.shifts.iter().all(PolicyShift::is_sound);
    if !consistent || S::check(&manifest.model).is_err() {
        return Err(contradiction());
    }
    let (surface, layout) = build::<S>(manifest.n_features, &manifest.treatments, &manifest.model)?;
    let n_members = S::members(&manifest.model);
    let ensemble =
        |outcome| Ensemble::from_tensors(layout.clone(), n_members, &tensor_prefix::<S>(outcome), tensors);
    let ensembles = (0..manifest.outcomes.len()).map(ensemble).collect::<Result<_>>()?;
    Ok(Box::new(Fitted { manifest, surface, layout, ensembles }))
}

impl<S: Surface> EffectModel for Fitted<S> {
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
        let all: Vec<usize> = targets.iter().copied().chain([against]).collect();
        let treatments = self.manifest.treatments.choose(policies, &all)?;
        let n_targets = targets.len();
        let of_outcome = |shift: &PolicyShift| -> Vec<f64> {
            let base = shift.of(policies, against);
            targets.iter().map(|target| shift.of(policies, *target) - base).collect()
        };
        let shifts = self.manifest.shifts.iter().map(of_outcome).collect();
        Ok(Box::new(SurfaceScorer { fitted: self, treatments, n_targets, shifts }))
    }

    fn manifest(&self) -> Result<serde_json::Value> {
        store(&self.manifest)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let by_outcome = self.ensembles.iter().enumerate();
        by_outcome.flat_map(|(outcome, own)| own.tensors(&tensor_prefix::<S>(outcome))).collect()
    }
}

struct SurfaceScorer<'m, S: Surface> {
    fitted: &'m Fitted<S>,
    /// The targets, then the treatment compared with.
    treatments: Chosen,
    n_targets: usize,
    /// What is added to effects by outcome and target, as levels are; none for most.
    shifts: Vec<Vec<f64>>,
}

impl<S: Surface> Scorer for SurfaceScorer<'_, S> {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let Fitted { surface, layout, ensembles, manifest } = self.fitted;
        let network = All { surface, treatments: &self.treatments };
        let n_values = x.n_rows() * self.n_targets;
        let mut scores = Scores::default();
        for (outcome, (ensemble, scale)) in ensembles.iter().zip(&manifest.scales).enumerate() {
            let shifts = self.shifts.get(outcome);
            let mut sums = vec![0.0_f64; n_values];
            let mut squares = vec![0.0_f64; if spread { n_values } else { 0 }];
            for (member, weights) in ensemble.weights.iter().enumerate() {
                let levels = predict(layout, weights, &network, x, self.n_targets + 1, member)?;
                for (row, levels) in levels.chunks_exact(self.n_targets + 1).enumerate() {
                    let (targets, base) = levels.split_at(self.n_targets);
                    for (target, level) in targets.iter().enumerate() {
                        let shift = shifts.map_or(0.0, |shifts| shifts[target]);
                        let effect = (f64::from(*level) - f64::from(base[0]) + shift) * scale;
                        sums[row * self.n_targets + target] += effect;
                        if spread {
                            squares[row * self.n_targets + target] += effect * effect;
                        }
                    }
                }
            }
            let n_members = ensemble.weights.len() as f64;
            scores.mean.push(sums.iter().map(|sum| (sum / n_members) as f32).collect());
            if spread {
                let deviation = |(sum, square): (&f64, &f64)| {
                    let variance = (square - sum * sum / n_members) / (n_members - 1.0).max(1.0);
                    variance.max(0.0).sqrt() as f32
                };
                scores.spread.push(sums.iter().zip(&squares).map(deviation).collect());
            }
        }
        Ok(scores)
    }

    fn has_spread(&self) -> bool {
        self.fitted.ensembles.first().is_some_and(|own| own.weights.len() > 1)
    }

    fn notes(&self) -> &[String] {
        &self.treatments.notes
    }
}

/// μ of rows under every treatment, as a network.
pub(super) struct All<'a, S> {
    pub(super) surface: &'a S,
    pub(super) treatments: &'a Chosen,
}

impl<S: Surface> Network for All<'_, S> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.surface.shared(tape, self.treatments);
    }

    fn rows(&self, tape: &mut Tape<'_>, _batch: &Batch<'_>) -> Var {
        self.surface.all(tape, self.treatments)
    }
}

fn tensor_prefix<S: Surface>(outcome: usize) -> String {
    format!("{}.{outcome}", S::NAME)
}
