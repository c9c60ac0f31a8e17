//! The model: a learner's effects with everything needed to use and to explain them, in one file.
//!
//! | file | subject |
//! |---|---|
//! | `fit` | from a table to a model |
//! | `warm_start` | from a model and a new table to the next model |
//! | `baseline` | rows without a treatment, read for the outcome model |
//! | `manifest` | what a model says of itself, by version |
//! | `container` | the bytes of a model file |
//! | `bound` | how far the effects of two policies can differ |
//! | `certificate` | what can be said of a policy before it is run |
//! | `averages` | average effects of policies, run or not, with their intervals |
//! | `effects` | effects of every row of a table |
//! | `answer` | policies asked of a model: which can be scored, and by what |

mod answer;
mod averages;
mod baseline;
mod bound;
mod certificate;
mod container;
mod effects;
mod fit;
mod manifest;
mod warm_start;

use std::borrow::Cow;
use std::path::Path;

pub use crate::learn::{DEFAULT_LEARNER, LEARNERS, Learner, learner};
pub use averages::ModelAverage;
pub use bound::{DecileBound, MemberBound, OutcomeBound};
pub(crate) use bound::{median_bound, median_row_bound, moved};
pub use certificate::{
    Certificate, CertificateParams, CertifiedAverage, Neighbour, Standing, ValidCertificateParams,
};
pub use effects::{EffectRequest, Scored};
pub use fit::{CheckpointPlan, FitRequest};
pub use manifest::{DataRecord, DataUse, FORMAT, Manifest, OutcomeRecord};

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub use answer::Answer;

use crate::data::{Columns, ExposureRole, Need, Roles, Source};
use crate::effect::EffectModel;
use crate::experiment::{Experiment, Policies};
use crate::policy::PolicySet;
use crate::stored::{contradiction, damaged};
use crate::{Error, Kind, Progress, Result};

/// A fitted model.
pub struct Model {
    manifest: Manifest,
    effects: Box<dyn EffectModel>,
}

impl Model {
    /// Puts a learner's effects and what is known of them together; the two must agree.
    #[doc(hidden)]
    pub fn new(manifest: Manifest, effects: Box<dyn EffectModel>) -> Result<Self> {
        let same_outcomes = manifest.outcomes.iter().map(|outcome| &outcome.name).eq(effects.outcomes());
        if !same_outcomes
            || manifest.encoder.width() != effects.n_features()
            || manifest.policy_rows.len() != manifest.policies.len()
            || manifest.exposure.as_ref().is_some_and(|own| !own.is_consistent(&manifest.policies))
        {
            return Err(contradiction());
        }
        Ok(Self { manifest, effects })
    }

    /// Writes the model; the file appears whole or not at all. The same fit gives the same bytes.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        container::write(path.as_ref(), &self.manifest, &self.effects.tensors())
    }

    /// The content of the file that [`save`](Self::save) writes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        container::bytes(&self.manifest, &self.effects.tensors())
    }

    /// Reads a model of this version or any older one.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = container::read_file(path)?;
        Self::from_bytes(&bytes).map_err(|error| error.file(path))
    }

    /// As [`load`](Self::load), from the content of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (manifest, mut tensors) = container::parse(bytes)?;
        let manifest = Manifest::parse(&manifest)?;
        let learner = learner(&manifest.learner).map_err(|error| {
            error.at("the model's learner").hint(format!("it was written by poul {}", manifest.poul))
        })?;
        // Whatever cannot be made of a file is the file's fault.
        let effects = (learner.load)(&manifest.model, &mut tensors).map_err(|error| match error.kind() {
            Kind::Other => damaged(format!("the model contradicts itself: {error}")),
            _ => error,
        })?;
        manifest::require_held(&manifest.model, &effects.manifest()?)?;
        if let Some(name) = tensors.names().next() {
            return Err(damaged("does not belong to the model").at(format!("tensor `{name}`")));
        }
        Self::new(manifest, effects)
    }

    /// What the model says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The effects, whatever learned them.
    #[doc(hidden)]
    pub fn effects(&self) -> &dyn EffectModel {
        self.effects.as_ref()
    }

    /// Whether each treatment column was a context of its own.
    pub fn is_factorial(&self) -> bool {
        !self.manifest.roles.treatment_columns.is_empty()
    }

    /// Finds the model's features, and the other `roles` as far as `need` asks for them, in a table.
    ///
    /// Which of the table's columns would be features by their names does not matter.
    #[doc(hidden)]
    pub fn columns(&self, source: &Source, roles: &Roles, need: Need) -> Result<Columns> {
        let schema = source.schema();
        let mut columns = roles.check(schema, Need { features: false, ..need })?;
        let named = std::mem::take(&mut columns.exposure);
        if let Some(exposure) = &self.manifest.exposure {
            let own = exposure.columns().map(|own| (own.context, own.column)).collect();
            columns.exposure = ExposureRole::Columns(own).find(schema)?;
            columns.exposure_scale = exposure.scale();
            if let Some(other) = named.iter().find(|other| !columns.exposure.contains(other)) {
                let what =
                    format!("the model was fitted with other exposure columns than `{}`", other.column);
                return Err(Error::usage(what).hint("leave ‹exposure› out: the model knows its columns"));
            }
        }
        self.manifest.encoder.columns_for(columns, schema)
    }

    /// An experiment with the same features as this model's, to go on from it: see [`FitRequest::warm_start`]. Without
    /// policies, those of the model are meant, unless factorial columns define them.
    pub fn experiment<'p>(
        &self,
        source: &Source,
        roles: &Roles,
        policies: impl Into<Policies<'p>>,
        progress: &dyn Progress,
    ) -> Result<Experiment> {
        let columns = self.columns(source, roles, Need::FIT).map_err(|error| source.locate(error))?;
        let policies = match columns.factorial {
            true => policies.into(),
            false => policies.into().or(&self.manifest.policies),
        };
        Experiment::resolve(source, roles, columns, policies, progress)
    }

    /// Policies under the weights of contexts that hold where no row is meant: mean exposures, where rows have their own.
    pub(crate) fn weighted<'p>(&self, policies: &'p PolicySet) -> Cow<'p, PolicySet> {
        match &self.manifest.exposure {
            Some(exposure) => Cow::Owned(exposure.weighted(policies)),
            None => Cow::Borrowed(policies),
        }
    }
}
