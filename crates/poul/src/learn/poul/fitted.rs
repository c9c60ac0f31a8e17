//! What the learner returns: τ(x; t1, t0) = g(x)ᵀ(h(t1) − h(t0)), the mean over members (Eq. 4 of the paper).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::anchor::{Anchor, AnchorManifest, anchors};
use super::baseline_net::mean_policy;
use super::calibration::Slopes;
use super::canonical::{Geometry, Population};
use super::certificate::gain_deciles;
use super::chosen::ChosenNuisances;
use super::params::{Embedding, Loss, MemberRows, ModelParams, Params, TrainingParams, ValidParams};
use super::reference::{Reference, ReferenceManifest};
use super::scorer::{Link, PoulScorer};
use super::shared_gains::SharedGains;
use super::space::{Mixtures, TreatmentSpace};
use super::treatment_net::TreatmentNet;
use super::uplift_net::UpliftNet;
use crate::Result;
use crate::average::Posterior;
use crate::effect::{
    AverageEstimate, Averages, EffectModel, GainDeciles, PolicyEmbedding, Scorer, Tensor, Tensors,
};
use crate::net::{Columns, Ensemble, Layout, Prepared, Workspace};
use crate::nuisance::{OutcomeManifest, OutcomeModels, SomeRows};
use crate::policy::{Attributes, PolicySet};
use crate::stored::{contradiction, damaged, read_stored, store};

/// A fitted ensemble of g and h.
pub struct Poul {
    manifest: Manifest,
    network: UpliftNet,
    members: Ensemble,
    /// b(x) of 0/1 outcomes.
    baseline: Option<OutcomeModels>,
    /// What effects of rows lie around, by outcome; none in older models and where it was not asked for.
    anchors: Vec<Anchor>,
    /// Rows kept where they have exposures of their own.
    reference: Option<Reference>,
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
    /// b(x) without its weights, for the logistic loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    baseline: Option<OutcomeManifest>,
    /// By member and treatment net; none in older models.
    #[serde(default)]
    geometry: Vec<Geometry>,
    /// ‖g(x)‖ over training rows, by outcome and member; none in older models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gains: Vec<GainDeciles>,
    /// By outcome; none in older models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    anchors: Vec<AnchorManifest>,
    /// What outcomes take from each other; none in older models, and where each has its own g alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<SharedGains>,
    /// Where rows have exposures of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exposure: Option<ReferenceManifest>,
    /// Which nuisance models were chosen, where the choice was left to the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nuisances: Option<ChosenNuisances>,
}

impl Poul {
    /// Members with these weights.
    #[expect(clippy::too_many_arguments, reason = "the parts of a model, each given once")]
    pub(super) fn new(
        outcomes: Vec<String>,
        scales: Vec<f64>,
        n_features: usize,
        space: TreatmentSpace,
        params: &ValidParams,
        weights: Vec<Vec<f32>>,
        baseline: Option<OutcomeModels>,
        shared: Option<SharedGains>,
    ) -> Result<Self> {
        let (model, training) = (params.model.clone(), params.training.clone());
        let stored = baseline.as_ref().map(OutcomeModels::manifest);
        let (geometry, gains) = (Vec::new(), Vec::new());
        let manifest = Manifest {
            outcomes,
            scales,
            n_features,
            space,
            model,
            training,
            baseline: stored,
            geometry,
            gains,
            anchors: Vec::new(),
            shared,
            exposure: None,
            nuisances: None,
        };
        let n_gains = manifest.shared.as_ref().map_or(manifest.outcomes.len(), |own| own.learned.len());
        let (mut network, layout, _) = UpliftNet::new(n_features, n_gains, &manifest.space, params)?;
        if let Some(shared) = &manifest.shared {
            network.loadings = shared.loadings.clone();
        }
        let (anchors, reference) = (Vec::new(), None);
        Ok(Self { manifest, network, members: Ensemble { layout, weights }, baseline, anchors, reference })
    }

    /// From the parts of a model file.
    pub fn from_parts(manifest: &serde_json::Value, tensors: &mut Tensors) -> Result<Self> {
        let manifest: Manifest = read_stored(manifest)?;
        let params = Params { model: manifest.model.clone(), training: manifest.training.clone() };
        let params = params.check().map_err(|error| damaged(error.to_string()))?;
        let Manifest {
            outcomes,
            scales,
            n_features,
            space,
            baseline,
            geometry,
            gains,
            anchors,
            shared,
            exposure,
            nuisances,
            ..
        } = manifest;
        let consistent = scales.len() == outcomes.len()
            && space.is_consistent()
            && shared.as_ref().is_none_or(|own| own.is_consistent(outcomes.len()));
        if !consistent || n_features == 0 || outcomes.is_empty() {
            return Err(contradiction());
        }
        let needs_baseline = params.model.loss == Loss::Logistic;
        if baseline.is_some() != needs_baseline {
            return Err(damaged("the model has a baseline it should not have, or lacks one"));
        }
        let load =
            |stored| OutcomeModels::from_parts(&stored, &mut tensors.split_off(&format!("{BASELINE}.")));
        let baseline = baseline.map(load).transpose()?;
        let mut poul = Self::new(outcomes, scales, n_features, space, &params, Vec::new(), baseline, shared)?;
        (poul.manifest.geometry, poul.manifest.gains) = (geometry, gains);
        poul.manifest.nuisances = nuisances;
        poul.members = Ensemble::from_tensors(poul.members.layout, params.model.members, PREFIX, tensors)?;
        let n_outcomes = poul.manifest.outcomes.len();
        if !anchors.is_empty() && anchors.len() != n_outcomes {
            return Err(damaged("the averages are not of the outcomes"));
        }
        let shape = (poul.members.weights.len(), poul.network.width());
        for (outcome, anchor) in anchors.into_iter().enumerate() {
            let anchor = Anchor::from_parts(anchor, outcome, shape, tensors)?;
            poul.anchors.push(anchor.ok_or_else(|| damaged("the averages are not of the model"))?);
        }
        poul.manifest.anchors = poul.anchors.iter().map(Anchor::manifest).collect();
        if let Some(exposure) = exposure {
            let width = poul.network.width() * n_outcomes;
            let reference = Reference::from_parts(exposure, (poul.members.weights.len(), width), tensors)?;
            poul.reference = Some(reference.ok_or_else(|| damaged("the exposures are not of the model"))?);
        }
        poul.manifest.exposure = poul.reference.as_ref().map(Reference::manifest);
        if !poul.has_sound_gains() {
            return Err(damaged("the deciles of gains are not of the model"));
        }
        Ok(poul)
    }

    /// Whether gains are of every outcome and member, along every axis, in as many parts each; older models have none.
    fn has_sound_gains(&self) -> bool {
        let gains = &self.manifest.gains;
        let n_parts = gains.first().map_or(0, |own| own.mean.len());
        let n_axes = gains.first().map_or(0, |own| own.scales.len());
        let is_sound = |own: &GainDeciles| {
            let all = own.scales.iter().chain(&own.mean).chain(&own.most);
            own.scales.len() == n_axes
                && own.mean.len() == n_parts
                && own.most.len() == n_parts
                && all.into_iter().all(|value| value.is_finite())
        };
        let n_expected = self.manifest.outcomes.len() * self.members.weights.len();
        gains.is_empty() || (gains.len() == n_expected && n_axes > 0 && gains.iter().all(is_sound))
    }

    /// Remembers which nuisance models were chosen.
    pub(super) fn keep_nuisances(&mut self, chosen: Option<ChosenNuisances>) {
        self.manifest.nuisances = chosen;
    }

    pub(super) fn scales(&self) -> &[f64] {
        &self.manifest.scales
    }

    /// The outcomes that have a g, some of which may be there to teach only.
    pub(super) fn learned(&self) -> &[String] {
        self.manifest.shared.as_ref().map_or(&self.manifest.outcomes, |own| &own.learned)
    }

    /// The units in which they are learned.
    pub(super) fn learned_scales(&self) -> &[f64] {
        self.manifest.shared.as_ref().map_or(&self.manifest.scales, |own| &own.scales)
    }

    pub(super) fn space(&self) -> &TreatmentSpace {
        &self.manifest.space
    }

    pub(super) fn model_params(&self) -> &ModelParams {
        &self.manifest.model
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.members.layout
    }

    pub(super) fn weights(&self) -> &[Vec<f32>] {
        &self.members.weights
    }

    /// Brings every member to its canonical form; effects stay the same but for the averages that they are to lie around,
    /// where there are any.
    pub(super) fn canonicalise(
        &mut self,
        population: &Population<'_>,
        averages: Option<Vec<Posterior>>,
        slopes: &[Slopes],
        exposure: Option<(&PolicySet, Vec<f64>)>,
    ) -> Result<()> {
        let Self { manifest, network, members: Ensemble { layout, weights }, .. } = self;
        manifest.geometry = population.canonicalise(&manifest.space, network, layout, weights)?;
        if let Some(averages) = averages {
            let rows = (population.x, population.weight);
            self.anchors = anchors(averages, slopes, network, layout, weights, rows, exposure.is_some())?;
            manifest.anchors = self.anchors.iter().map(Anchor::manifest).collect();
        }
        if let Some((policies, mean)) = exposure {
            let rows = (population.x, population.weight);
            let reference = Reference::new(policies, mean, network, layout, weights, rows)?;
            manifest.exposure = Some(reference.manifest());
            self.reference = Some(reference);
        }
        let rows = population.sample_rows();
        let counted: Vec<u32> = rows.into_iter().filter(|row| population.counts(*row)).collect();
        let x = SomeRows { x: population.x, rows: &counted };
        manifest.gains = gain_deciles(network, layout, weights, &x, &manifest.scales, &self.anchors)?;
        Ok(())
    }

    pub(super) fn gain_deciles(&self) -> &[GainDeciles] {
        &self.manifest.gains
    }

    /// Whether effects go by how much each row meets every context.
    pub(super) fn has_own_exposure(&self) -> bool {
        self.reference.is_some()
    }

    pub(super) fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    pub(super) fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    pub(super) fn baseline(&self) -> Option<&OutcomeModels> {
        self.baseline.as_ref()
    }

    pub(super) fn training_params(&self) -> &TrainingParams {
        &self.manifest.training
    }

    pub(super) fn network(&self) -> &UpliftNet {
        &self.network
    }

    pub(super) fn treatment_of(&self, outcome: usize) -> usize {
        self.network.treatment_of(outcome)
    }

    pub(super) fn treatment_net(&self, outcome: usize) -> &TreatmentNet {
        &self.network.treatments[self.treatment_of(outcome)]
    }

    /// What the canonical form tells, by member and treatment net; nothing for models older than it.
    pub fn geometry(&self) -> &[Geometry] {
        &self.manifest.geometry
    }

    /// h of some policies for one outcome, by member: policies × d, row after row.
    pub fn embeddings(
        &self,
        policies: &PolicySet,
        chosen: &[usize],
        outcome: usize,
    ) -> Result<Vec<Vec<f32>>> {
        self.embed(&self.mixtures(policies, chosen)?, outcome)
    }

    /// The policies under the weights of contexts that hold where no row is meant.
    pub(super) fn weighted<'p>(&self, policies: &'p PolicySet) -> Result<Cow<'p, PolicySet>> {
        Ok(match &self.reference {
            Some(reference) => Cow::Owned(reference.weighted(policies)?),
            None => Cow::Borrowed(policies),
        })
    }

    /// Mixtures of the chosen policies under these weights.
    pub(super) fn mixtures(&self, policies: &PolicySet, chosen: &[usize]) -> Result<Mixtures> {
        let policies = self.weighted(policies)?;
        self.manifest.space.mixtures(&policies, chosen)
    }

    fn embed(&self, mixtures: &Mixtures, outcome: usize) -> Result<Vec<Vec<f32>>> {
        let net = &self.network.treatments[self.network.treatment_of(outcome)];
        let mut workspace = Workspace::default();
        let of = |weights: &Vec<f32>| {
            workspace.value(&self.members.layout, weights, |tape| net.forward(tape, mixtures))
        };
        self.members.weights.iter().map(of).collect()
    }

    /// h̄ of one outcome by member: h of the mean training mixture.
    fn mean_embeddings(&self, policies: &PolicySet, outcome: usize) -> Result<Vec<Vec<f32>>> {
        let mixtures = self.mixtures(policies, &[])?;
        let net = &self.network.treatments[self.network.treatment_of(outcome)];
        let mut workspace = Workspace::default();
        let of = |weights: &Vec<f32>| {
            workspace.value(&self.members.layout, weights, |tape| {
                let phi = net.atoms(tape, &mixtures);
                mean_policy(tape, net, &mixtures, phi)
            })
        };
        self.members.weights.iter().map(of).collect()
    }

    /// How g of an outcome becomes effects of some policies, of which the last is the one compared with.
    fn link(
        &self,
        policies: &PolicySet,
        chosen: &[usize],
        mixtures: &Mixtures,
        outcome: usize,
    ) -> Result<Link> {
        let (d, n_chosen, n_members) =
            (self.network.width(), mixtures.rows.n_rows(), self.members.weights.len());
        let n_targets = n_chosen - 1;
        let h = self.embed(mixtures, outcome)?;
        if self.manifest.model.loss == Loss::Logistic {
            let means = self.mean_embeddings(policies, outcome)?;
            let columns =
                |(h, mean): (&Vec<f32>, &Vec<f32>)| Columns::new(d, n_chosen, |k, t| h[t * d + k] - mean[k]);
            return Ok(Link::Logistic { members: h.iter().zip(&means).map(columns).collect() });
        }
        // Deviations of rows only, where averages are known by themselves.
        let anchor = self.anchors.get(outcome);
        let unit = self.manifest.scales[outcome];
        let scale = unit * anchor.map_or(1.0, |anchor| anchor.slope);
        let contrast = |member: usize, k: usize, target: usize| {
            let h = &h[member];
            f64::from(h[target * d + k] - h[n_targets * d + k]) * scale
        };
        let mean = Columns::new(n_members * d, n_targets, |row, target| {
            (contrast(row / d, row % d, target) / n_members as f64) as f32
        });
        let columns =
            |member: usize| Columns::new(d, n_targets, |k, target| contrast(member, k, target) as f32);
        let members = (0..n_members).map(columns).collect();
        let Some(anchor) = anchor else {
            return Ok(Link::Identity { mean, members, offsets: Vec::new(), errors: Vec::new() });
        };
        let averages = anchor.average.averages(policies, &chosen[..n_targets], chosen[n_targets], false)?;
        let offset = |member: usize| -> Vec<f32> {
            let around = |target: usize| -> f64 {
                anchor.centre[member].iter().enumerate().map(|(k, g)| g * contrast(member, k, target)).sum()
            };
            let own = averages.estimates.iter().enumerate();
            own.map(|(target, own)| (own.effect * unit - around(target)) as f32).collect()
        };
        let errors = averages.estimates.iter().map(|own| (own.se * unit) as f32).collect();
        Ok(Link::Identity { mean, members, offsets: (0..n_members).map(offset).collect(), errors })
    }
}

/// The name of the baseline's tensors begins with this.
const BASELINE: &str = "poul.baseline";
/// That of members.
const PREFIX: &str = "poul";

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
        let chosen: Vec<usize> = targets.iter().copied().chain([against]).collect();
        if let Some(reference) = &self.reference {
            return Ok(Box::new(self.own_scorer(reference, &*self.weighted(policies)?, &chosen)?));
        }
        let mixtures = self.manifest.space.mixtures(policies, &chosen)?;
        let links = (0..self.manifest.outcomes.len())
            .map(|outcome| self.link(policies, &chosen, &mixtures, outcome))
            .collect::<Result<_>>()?;
        let members = self.members.weights.iter().enumerate();
        let members = members
            .map(|(member, weights)| Prepared::new(&self.members.layout, weights, &self.network, member))
            .collect::<Result<_>>()?;
        Ok(Box::new(PoulScorer {
            members,
            width: self.network.width(),
            n_targets: targets.len(),
            n_features: self.manifest.n_features,
            links,
            baseline: self.baseline.as_ref(),
            in_pairs: self.manifest.training.member_rows == MemberRows::Half,
            notes: mixtures.notes,
        }))
    }

    fn averages(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
        joint: bool,
    ) -> Result<Option<Vec<Averages>>> {
        if self.anchors.is_empty() {
            return Ok(None);
        }
        let policies = &*self.weighted(policies)?;
        let of_outcome = |(anchor, unit): (&Anchor, &f64)| {
            let Averages { estimates, covariance } =
                anchor.average.averages(policies, targets, against, joint)?;
            let in_units = |own: AverageEstimate| AverageEstimate {
                effect: own.effect * unit,
                se: own.se * unit,
                ..own
            };
            Ok(Averages {
                estimates: estimates.into_iter().map(in_units).collect(),
                covariance: covariance.map(|own| own.into_iter().map(|value| value * unit * unit).collect()),
            })
        };
        self.anchors.iter().zip(&self.manifest.scales).map(of_outcome).collect::<Result<_>>().map(Some)
    }

    fn row_deviations(&self) -> Option<Vec<f64>> {
        let of_outcome = |(anchor, unit): (&Anchor, &f64)| {
            anchor.average.row_deviation().map(|deviation| deviation * unit)
        };
        let found: Option<Vec<f64>> =
            self.anchors.iter().zip(&self.manifest.scales).map(of_outcome).collect();
        found.filter(|found| !found.is_empty())
    }

    fn embeds(&self, context: &str, action: &str, attributes: &Attributes) -> bool {
        // With vectors of their own, atoms share nothing that attributes could tell.
        self.manifest.model.embedding != Embedding::Lookup
            && self.manifest.space.embeds(context, action, attributes)
    }

    fn starts_training(&self) -> bool {
        true
    }

    fn policy_embedding(&self) -> Option<&dyn PolicyEmbedding> {
        Some(self)
    }

    fn manifest(&self) -> Result<serde_json::Value> {
        store(&self.manifest)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = self.members.tensors(PREFIX);
        for (outcome, anchor) in self.anchors.iter().enumerate() {
            tensors.extend(anchor.tensors(outcome));
        }
        tensors.extend(self.reference.iter().flat_map(Reference::tensors));
        for tensor in self.baseline.iter().flat_map(OutcomeModels::tensors) {
            tensors.push(Tensor::new(format!("{BASELINE}.{}", tensor.name), &tensor.shape, tensor.values));
        }
        tensors
    }
}
