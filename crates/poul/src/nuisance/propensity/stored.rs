//! The propensity models of all folds: probabilities for new rows, and their stored form.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::net::{Ensemble, Epoch, RowSource, Tensor, Tensors};
use crate::nuisance::boosted::{Boosted, BoostedManifest};
use crate::nuisance::classes::{NEVER_RUN, PolicyClasses};
use crate::stored::damaged;
use crate::{Error, Result};

use super::Propensity;
use super::boosted::BoostedPropensity;
use super::clip::clip;
use super::cross_fit::FoldModel;
use super::network::Shape;

/// The models of all folds.
#[derive(Clone, Debug)]
pub struct PropensityModels {
    pub(super) shape: Shape,
    pub(super) classes: PolicyClasses,
    pub(super) floors: Vec<f32>,
    /// The networks, by fold; none where trees predict alone.
    pub(super) models: Vec<FoldModel>,
    pub(super) boosted: Option<BoostedPropensity>,
    /// How much each counts where there may be both.
    pub(super) blend: Option<Blend>,
}

/// The weights of networks and trees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Blend {
    pub(super) network: f32,
    pub(super) boosted: f32,
}

/// Everything of [`PropensityModels`] but the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropensityManifest {
    shape: Shape,
    classes: PolicyClasses,
    floors: Vec<f32>,
    folds: Vec<FoldManifest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boosted: Option<BoostedPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blend: Option<Blend>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoostedPart {
    trees: BoostedManifest,
    absent: Vec<Vec<u32>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FoldManifest {
    n_members: usize,
    log_shares: Vec<f32>,
    absent: Vec<u32>,
    history: Vec<Epoch>,
    best: usize,
}

impl PropensityModels {
    /// π(t | x) of new rows: the mean of the folds' models, clipped as in training.
    pub fn predict(&self, x: &dyn RowSource) -> Result<Propensity> {
        if x.n_cols() != self.shape.n_features {
            let (found, expected) = (x.n_cols(), self.shape.n_features);
            return Err(Error::other(format!("{found} features where the propensity model has {expected}")));
        }
        let (n_classes, n_policies) = (self.classes.len(), self.floors.len());
        let mut mean = vec![0.0; x.n_rows() * n_classes];
        for model in &self.models {
            let probabilities = model.predict(x, &self.classes)?;
            mean.iter_mut().zip(probabilities).for_each(|(mean, probability)| *mean += probability);
        }
        let n_models = self.models.len().max(1) as f32;
        mean.iter_mut().for_each(|mean| *mean /= n_models);
        if let Some(boosted) = &self.boosted {
            let blend = self.blend.unwrap_or(Blend { network: 0.0, boosted: 1.0 });
            mean.iter_mut().for_each(|mean| *mean *= blend.network);
            let n_folds = boosted.absent.len();
            let share = blend.boosted / n_folds as f32;
            for fold in 0..n_folds {
                let probabilities = boosted.predict(fold, x, &self.classes.shares)?;
                mean.iter_mut().zip(probabilities).for_each(|(mean, own)| *mean += share * own);
            }
        }
        let mut table = vec![0.0; x.n_rows() * n_policies];
        for (classes, policies) in mean.chunks(n_classes).zip(table.chunks_mut(n_policies)) {
            self.classes.expand(classes, policies);
        }
        clip(&mut table, &self.floors, None);
        Ok(Propensity::Rows(Arc::new(table)))
    }

    /// How training went in each fold: the epochs, and the one that was kept.
    pub(crate) fn histories(&self) -> impl Iterator<Item = (&[Epoch], usize)> {
        self.models.iter().map(|model| (model.history.as_slice(), model.best))
    }

    /// Everything but the weights.
    pub fn manifest(&self) -> PropensityManifest {
        let fold = |model: &FoldModel| FoldManifest {
            n_members: model.ensemble.weights.len(),
            log_shares: model.net.log_shares.clone(),
            absent: model.absent.clone(),
            history: model.history.clone(),
            best: model.best,
        };
        PropensityManifest {
            shape: self.shape.clone(),
            classes: self.classes.clone(),
            floors: self.floors.clone(),
            folds: self.models.iter().map(fold).collect(),
            boosted: self
                .boosted
                .as_ref()
                .map(|own| BoostedPart { trees: own.boosted.manifest(), absent: own.absent.clone() }),
            blend: self.blend,
        }
    }

    /// The weights, named `pi.<fold>.<member>.<matrix>`; those of boosted trees begin with `pi.boosted`.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let models = self.models.iter().enumerate();
        let networks = models.flat_map(|(fold, model)| model.ensemble.tensors(&format!("pi.{fold}")));
        let boosted = self.boosted.iter().flat_map(|own| own.boosted.tensors("pi.boosted"));
        networks.chain(boosted).collect()
    }

    /// The models that [`manifest`](Self::manifest) and [`tensors`](Self::tensors) came from.
    pub fn from_parts(manifest: &PropensityManifest, tensors: &mut Tensors) -> Result<Self> {
        let PropensityManifest { shape, classes, floors, folds, boosted, blend } = manifest;
        let n_classes = classes.len();
        let is_class = |class: &u32| (*class as usize) < n_classes;
        let is_whole = (!folds.is_empty() || boosted.is_some())
            && n_classes > 0
            && shape.n_classes == n_classes
            && !floors.is_empty()
            && [classes.class_of.len(), classes.within.len()] == [floors.len(); 2]
            && classes.class_of.iter().all(|class| *class == NEVER_RUN || is_class(class));
        if !is_whole {
            return Err(damaged("the propensity model's parts do not fit together"));
        }
        let mut models = Vec::with_capacity(folds.len());
        for (fold, part) in folds.iter().enumerate() {
            if !part.absent.iter().all(is_class) {
                return Err(damaged(format!("the propensity model of fold {fold} lacks a class")));
            }
            let (net, layout) = shape.build(part.log_shares.clone())?;
            let ensemble = Ensemble::from_tensors(layout, part.n_members, &format!("pi.{fold}"), tensors)?;
            models.push(FoldModel {
                net,
                ensemble,
                absent: part.absent.clone(),
                history: part.history.clone(),
                best: part.best,
            });
        }
        let of_trees = |part: &BoostedPart| -> Result<BoostedPropensity> {
            let n_outputs = [BoostedPropensity::n_outputs(n_classes)];
            let trees = Boosted::from_parts(&part.trees, &n_outputs, "pi.boosted", tensors)?;
            let is_whole = trees.cuts.n_features() == shape.n_features
                && trees.folds.len() == part.absent.len()
                && part.absent.iter().flatten().all(is_class);
            match is_whole {
                true => Ok(BoostedPropensity { boosted: trees, absent: part.absent.clone() }),
                false => Err(damaged("the propensity trees' parts do not fit together")),
            }
        };
        let boosted = boosted.as_ref().map(of_trees).transpose()?;
        let (shape, classes, floors) = (shape.clone(), classes.clone(), floors.clone());
        Ok(Self { shape, classes, floors, models, boosted, blend: *blend })
    }
}
