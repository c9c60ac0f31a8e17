//! The learners by name. A new learner is one line here.

use super::rival::{self, ridge};
use super::{poul, stack};
use crate::effect::{EffectModel, Settings, Tensors, Trained, ValidTrainingData, constant};
use crate::{Error, Kind, Result, Run};

/// What a learner is to the rest of the library.
#[derive(Clone, Copy, Debug)]
pub struct Learner {
    /// Its name on the command line and in model files.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Completes settings with defaults; refuses unknown names and values out of range. Called before data are read.
    pub settle: fn(&Settings) -> Result<Settings>,
    /// Learns, by settings that were settled.
    #[doc(hidden)]
    pub train: fn(&ValidTrainingData<'_>, &Settings, Run<'_>) -> Result<Trained>,
    /// Reads a model back: the learner's own manifest, and its tensors, all of which it takes.
    #[doc(hidden)]
    pub load: fn(&serde_json::Value, &mut Tensors) -> Result<Box<dyn EffectModel>>,
}

/// The learner used where none is named.
pub const DEFAULT_LEARNER: &str = "poul";

/// Every learner.
pub const LEARNERS: &[Learner] = &[
    Learner {
        name: poul::NAME,
        summary: "permutation-invariant orthogonal uplift learning",
        settle: poul::settle,
        train: poul::train,
        load: poul::load,
    },
    stack::STACK,
    Learner {
        name: ridge::NAME,
        summary: "bilinear ridge of the residual outcome on features × mixture",
        settle: ridge::settle,
        train: ridge::train,
        load: ridge::load,
    },
    rival::S_LEARNER,
    rival::T_LEARNER,
    rival::X_LEARNER,
    rival::R_LEARNER,
    rival::DR_LEARNER,
    rival::TARNET,
    rival::CFR,
    rival::DRAGONNET,
    rival::DESCN,
    rival::DRCFR,
    rival::EFIN,
    rival::SIN_CAT,
    rival::GRAPHITE,
    rival::DRNET,
    rival::DEDL,
    rival::CAUSAL_FOREST,
    rival::UPLIFT_FOREST,
    Learner {
        name: constant::NAME,
        summary: "differences of arm means: the same effect for every row",
        settle: constant::settle,
        train: constant::train,
        load: constant::load,
    },
    rival::RANDOM,
    rival::POUL_ID,
    rival::UNCENTRED,
    rival::RUNNING_MEAN,
    rival::ONE_FOLD,
    rival::ADDITIVE,
    rival::LINEAR,
];

/// Whether a learner makes use of auxiliary outcomes: `poul`, its variants, and what is made of them.
pub(crate) fn learns_from_auxiliary(name: &str) -> bool {
    name.starts_with(poul::NAME) || name == "stack"
}

/// The learners that go by how much each row meets every context.
const BY_EXPOSURE: [&str; 5] = ["poul", "poul-uncentred", "poul-k1", "poul-additive", "poul-linear"];

impl Learner {
    /// Whether it goes by the exposure of rows, where that is given; others take contexts to weigh the same for all.
    pub(crate) fn takes_exposure(&self) -> bool {
        BY_EXPOSURE.contains(&self.name)
    }

    /// What the user should know where exposure is given to a learner that does not take it.
    pub(crate) fn exposure_note(&self) -> String {
        format!(
            "the learner `{}` weighs contexts the same for every row: it uses exposure columns as features only",
            self.name
        )
    }
}

/// The learner called `name`.
pub fn learner(name: &str) -> Result<&'static Learner> {
    LEARNERS.iter().find(|learner| learner.name == name).ok_or_else(|| {
        let known = LEARNERS.iter().map(|learner| learner.name);
        Error::unknown(Kind::Usage, "learner", name, "learners", known)
    })
}
