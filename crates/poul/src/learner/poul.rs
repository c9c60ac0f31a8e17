//! What the learner returns: τ(x; t1, t0) = g(x)ᵀ(h(t1) − h(t0)), the mean over members (Eq. 4 of the paper).

use serde::{Deserialize, Serialize};

use super::canonical::{Geometry, canonicalise};
use super::fit::Problem;
use super::params::{Embedding, ModelParams, Params, TrainingParams, ValidParams};
use super::space::{Mixtures, TreatmentSpace};
use super::uplift_net::UpliftNet;
use crate::effect::{EffectModel, Scorer, Scores, Tensor, Tensors};
use crate::net::{Layout, RowSource, Workspace, predict};
use crate::policy::{Attributes, PolicySet};
use crate::{Error, Result};

/// A fitted ensemble of g and h.
pub struct Poul {
    manifest: Manifest,
    network: UpliftNet,
    layout: Layout,
    weights: Vec<Vec<f32>>,
}

/// What the model file keeps besides the weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    outcomes: Vec<String>,
    /// Standard deviation of each outcome: effects are learned in these units.
    scales: Vec<f64>,
    n_features: usize,
    space: TreatmentSpace,
    model: ModelParams,
    training: TrainingParams,
    /// By member; none in older models.
    #[serde(default)]
    geometry: Vec<Geometry>,
}

impl Poul {
    /// Members with these weights.
    pub(super) fn new(
        outcomes: Vec<String>,
        scales: Vec<f64>,
        n_features: usize,
        space: TreatmentSpace,
        params: &ValidParams,
        weights: Vec<Vec<f32>>,
    ) -> Result<Self> {
        let (model, training) = (params.model.clone(), params.training.clone());
        let geometry = Vec::new();
        let manifest = Manifest { outcomes, scales, n_features, space, model, training, geometry };
        let (network, layout, _) =
            UpliftNet::new(n_features, manifest.outcomes.len(), &manifest.space, params)?;
        Ok(Self { manifest, network, layout, weights })
    }

    /// From the parts of a model file.
    pub fn from_parts(manifest: serde_json::Value, tensors: &mut Tensors) -> Result<Self> {
        let damaged = |what: String| Error::input(what).hint("the file is damaged: fit again");
        let manifest: Manifest =
            serde_json::from_value(manifest).map_err(|error| damaged(error.to_string()))?;
        let params = Params { model: manifest.model.clone(), training: manifest.training.clone() };
        let params = params.check().map_err(|error| damaged(error.to_string()))?;
        let Manifest { outcomes, scales, n_features, space, geometry, .. } = manifest;
        let consistent = scales.len() == outcomes.len() && space.is_consistent();
        if !consistent || n_features == 0 || outcomes.is_empty() {
            return Err(damaged("the parts of the model contradict each other".to_owned()));
        }
        let mut poul = Self::new(outcomes, scales, n_features, space, &params, Vec::new())?;
        poul.manifest.geometry = geometry;
        for member in 0..params.model.members {
            let mut weights = vec![0.0; poul.layout.n_values()];
            for segment in poul.layout.segments() {
                let name = tensor_name(member, &segment.name);
                let values = tensors.take(&name, &[segment.n_rows, segment.n_cols])?;
                weights[segment.range()].copy_from_slice(&values);
            }
            poul.weights.push(weights);
        }
        Ok(poul)
    }

    /// Brings every member to its canonical form; effects stay the same.
    pub(super) fn canonicalise(&mut self, problem: &Problem<'_>) -> Result<()> {
        let Self { manifest, network, layout, weights } = self;
        manifest.geometry = canonicalise(problem, &manifest.space, network, layout, weights)?;
        Ok(())
    }

    /// What the canonical form tells, by member; nothing for models older than it.
    pub fn geometry(&self) -> &[Geometry] {
        &self.manifest.geometry
    }

    /// h of some policies, by member: policies × d, row after row.
    pub fn embeddings(&self, policies: &PolicySet, chosen: &[usize]) -> Result<Vec<Vec<f32>>> {
        self.embed(&self.manifest.space.mixtures(policies, chosen)?)
    }

    fn embed(&self, mixtures: &Mixtures) -> Result<Vec<Vec<f32>>> {
        let mut workspace = Workspace::default();
        let of = |weights: &Vec<f32>| {
            workspace.value(&self.layout, weights, |tape| self.network.treatment.forward(tape, mixtures))
        };
        self.weights.iter().map(of).collect()
    }
}

fn tensor_name(member: usize, segment: &str) -> String {
    format!("poul.{member}.{segment}")
}

impl EffectModel for Poul {
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
        let d = self.network.treatment.n_out;
        let chosen: Vec<usize> = targets.iter().copied().chain([against]).collect();
        let mixtures = self.manifest.space.mixtures(policies, &chosen)?;
        let contrasts = self.embed(&mixtures)?;
        // d × targets, so that g times it is one product.
        let contrast = |h: Vec<f32>| {
            let base = targets.len() * d;
            let mut contrast = vec![0.0; d * targets.len()];
            for target in 0..targets.len() {
                for k in 0..d {
                    contrast[k * targets.len() + target] = h[target * d + k] - h[base + k];
                }
            }
            contrast
        };
        let contrasts = contrasts.into_iter().map(contrast).collect();
        Ok(Box::new(PoulScorer { poul: self, contrasts, n_targets: targets.len(), notes: mixtures.notes }))
    }

    fn embeds(&self, context: &str, action: &str, attributes: &Attributes) -> bool {
        // With vectors of their own, atoms share nothing that attributes could tell.
        self.manifest.model.embedding != Embedding::Lookup
            && self.manifest.space.embeds(context, action, attributes)
    }

    fn manifest(&self) -> Result<serde_json::Value> {
        serde_json::to_value(&self.manifest)
            .map_err(|error| Error::other(format!("cannot store the model: {error}")).source(error))
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = Vec::new();
        for (member, weights) in self.weights.iter().enumerate() {
            for segment in self.layout.segments() {
                let shape = [segment.n_rows, segment.n_cols];
                let name = tensor_name(member, &segment.name);
                tensors.push(Tensor::new(name, &shape, &weights[segment.range()]));
            }
        }
        tensors
    }
}

struct PoulScorer<'m> {
    poul: &'m Poul,
    /// h(t) − h(against) by member, d × targets.
    contrasts: Vec<Vec<f32>>,
    n_targets: usize,
    notes: Vec<String>,
}

impl Scorer for PoulScorer<'_> {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let Poul { manifest, network, layout, weights } = self.poul;
        let (d, n_outcomes, n_targets) = (network.treatment.n_out, manifest.outcomes.len(), self.n_targets);
        let n_values = x.n_rows() * n_targets;
        let mut sums = vec![vec![0.0_f64; n_values]; n_outcomes];
        let mut squares = vec![vec![0.0_f64; if spread { n_values } else { 0 }]; n_outcomes];
        for (weights, contrast) in weights.iter().zip(&self.contrasts) {
            let g = predict(layout, weights, network, x, d * n_outcomes, 0)?;
            for (row, g) in g.chunks_exact(d * n_outcomes).enumerate() {
                for (outcome, g) in g.chunks_exact(d).enumerate() {
                    for target in 0..n_targets {
                        let column = contrast[target..].iter().step_by(n_targets);
                        let effect: f32 = g.iter().zip(column).map(|(g, h)| g * h).sum();
                        let effect = f64::from(effect) * manifest.scales[outcome];
                        sums[outcome][row * n_targets + target] += effect;
                        if spread {
                            squares[outcome][row * n_targets + target] += effect * effect;
                        }
                    }
                }
            }
        }
        let n_members = weights.len() as f64;
        let mean = |sums: &Vec<f64>| sums.iter().map(|sum| (sum / n_members) as f32).collect();
        let deviation = |(sums, squares): (&Vec<f64>, &Vec<f64>)| {
            let of = |(sum, square): (&f64, &f64)| {
                let variance = (square - sum * sum / n_members) / (n_members - 1.0).max(1.0);
                variance.max(0.0).sqrt() as f32
            };
            sums.iter().zip(squares).map(of).collect()
        };
        Ok(Scores {
            mean: sums.iter().map(mean).collect(),
            spread: if spread { sums.iter().zip(&squares).map(deviation).collect() } else { Vec::new() },
        })
    }

    fn has_spread(&self) -> bool {
        self.poul.weights.len() > 1
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
