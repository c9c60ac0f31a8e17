//! Rivals: what the method must beat. Each is one file and one line of the registry.
//!
//! | file | subject |
//! |---|---|
//! | `treatments` | how a rival sees a policy: by name or by mixture |
//! | `params` | how rivals that are networks are trained |
//! | `surface` | networks of levels under treatments: what they are |
//! | `fit` | how they are trained |
//! | `first_stage` | m, π and μ out of fold, for rivals in two stages |
//! | `fitted` | such networks when fitted: storing, scoring |
//! | `heads` | a head for each arm, or one that reads the policy's vector |
//! | `s_learner` | one network of features and treatment |
//! | `t_learner` | a network for each arm |
//! | `effect_heads` | networks of effects themselves |
//! | `x_learner`, `r_learner`, `dr_learner` | effects from nuisances, in two stages |
//! | `trunk`, `imbalance` | a shared representation, and how far arms are apart in it |
//! | `tarnet`, `cfr`, `dragonnet`, `descn`, `drcfr` | networks on a shared representation |
//! | `efin` | features as tokens; the treatment attends to them |
//! | `sin` | structured intervention networks on names |
//! | `graphite`, `independence` | encoders of unit and policy, kept independent |
//! | `drnet` | a head for each stratum of dose |
//! | `dedl` | a network into a link of factors, with debiased averages |
//! | `forest` | causal forest, uplift forest |
//! | `ablation`, `poul_id` | the method less one of its ideas |
//! | `random` | effects drawn from the seed |
//! | `ridge` | bilinear ridge on residuals |

pub mod ridge;

mod ablation;
mod cfr;
mod dedl;
mod descn;
mod dr_learner;
mod dragonnet;
mod drcfr;
mod drnet;
mod effect_heads;
mod efin;
mod first_stage;
mod fit;
mod fitted;
mod forest;
mod graphite;
mod heads;
mod imbalance;
mod independence;
mod params;
mod poul_id;
mod r_learner;
mod random;
mod s_learner;
mod sin;
mod surface;
mod t_learner;
mod tarnet;
mod treatments;
mod trunk;
mod x_learner;

pub(crate) use forest::{CAUSAL_FOREST, UPLIFT_FOREST};

use crate::learn::Learner;

pub(crate) use ablation::{ADDITIVE, LINEAR, ONE_FOLD, RUNNING_MEAN, UNCENTRED};
pub(crate) use poul_id::POUL_ID;
pub(crate) use random::RANDOM;

/// One network of features and treatment.
pub(crate) const S_LEARNER: Learner =
    learner::<s_learner::SLearner>("one network of features and the policy's mixture");

/// A network for each arm.
pub(crate) const T_LEARNER: Learner = learner::<t_learner::TLearner>("a network for each policy, by name");

/// Imputed effects of treated and control rows.
pub(crate) const X_LEARNER: Learner =
    learner::<x_learner::XLearner>("imputed effects of treated and control rows, blended by the propensity");

/// Residual on residual.
pub(crate) const R_LEARNER: Learner =
    learner::<r_learner::RLearner>("the residual outcome on residual treatments, policies by name");

/// Doubly robust scores.
pub(crate) const DR_LEARNER: Learner =
    learner::<dr_learner::DrLearner>("doubly robust scores of each policy, regressed on features");

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

/// Attention over features.
pub(crate) const EFIN: Learner =
    learner::<efin::Efin>("explicit feature interaction: treatments attend to features");

/// Structured intervention networks.
pub(crate) const SIN_CAT: Learner =
    learner::<sin::SinCat>("structured intervention networks on the names of policies");

/// Independent encoders.
pub(crate) const GRAPHITE: Learner =
    learner::<graphite::Graphite>("encoders of unit and policy kept independent by HSIC");

/// Heads by dose.
pub(crate) const DRNET: Learner =
    learner::<drnet::DrNet>("a head for each stratum of the distance from control");

/// A link of factors.
pub(crate) const DEDL: Learner =
    learner::<dedl::Dedl>("a network into a link of the factors, with debiased averages");

/// A network of outcomes under treatments, as a learner.
const fn learner<S: surface::Surface + 'static>(summary: &'static str) -> Learner {
    Learner {
        name: S::NAME,
        summary,
        settle: fit::settle::<S>,
        train: fit::train::<S>,
        load: fitted::load::<S>,
    }
}
