//! Rivals: what the method must beat. Each is one file and one line of the registry.
//!
//! | file | subject |
//! |---|---|
//! | `treatments` | how a rival sees a policy: by name or by mixture |
//! | `params` | how rivals that are networks are trained |
//! | `surface` | networks of outcomes under treatments: what they are, how they are trained |
//! | `fitted` | such networks when fitted: storing, scoring |
//! | `heads` | a head for each arm, or one that reads the policy's vector |
//! | `s_learner` | one network of features and treatment |
//! | `t_learner` | a network for each arm |
//! | `trunk`, `imbalance` | a shared representation, and how far arms are apart in it |
//! | `tarnet`, `cfr`, `dragonnet`, `descn`, `drcfr` | networks on a shared representation |
//! | `forest` | causal forest, uplift forest |
//! | `ridge` | bilinear ridge on residuals |

pub mod ridge;

mod cfr;
mod descn;
mod dragonnet;
mod drcfr;
mod fitted;
mod forest;
mod heads;
mod imbalance;
mod params;
mod s_learner;
mod surface;
mod t_learner;
mod tarnet;
mod treatments;
mod trunk;

pub(crate) use forest::{CAUSAL_FOREST, UPLIFT_FOREST};

use crate::model::Learner;

/// One network of features and treatment.
pub(crate) const S_LEARNER: Learner =
    learner::<s_learner::SLearner>("one network of features and the policy's mixture");

/// A network for each arm.
pub(crate) const T_LEARNER: Learner = learner::<t_learner::TLearner>("a network for each policy, by name");

/// A shared representation and a head for each arm.
pub(crate) const TARNET: Learner =
    learner::<tarnet::TarNet>("a shared representation, a head for each policy");

/// TARNet with arms brought together.
pub(crate) const CFR: Learner = learner::<cfr::Cfr>("tarnet whose representations of policies are balanced");

/// TARNet with a propensity and targeted regularisation.
pub(crate) const DRAGONNET: Learner =
    learner::<dragonnet::DragonNet>("tarnet with a propensity on the same trunk");

/// Towers on the entire space.
pub(crate) const DESCN: Learner =
    learner::<descn::Descn>("entire-space cross networks, adapted to any outcome");

/// Three representations.
pub(crate) const DRCFR: Learner =
    learner::<drcfr::DrCfr>("disentangled representations of treatment and outcome");

/// A network of outcomes under treatments, as a learner.
const fn learner<S: surface::Surface + 'static>(summary: &'static str) -> Learner {
    Learner {
        name: S::NAME,
        summary,
        settle: surface::settle::<S>,
        train: surface::train::<S>,
        load: fitted::load::<S>,
    }
}
