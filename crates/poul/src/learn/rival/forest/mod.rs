//! Forests: trees on subsamples whose leaves are averaged. One machinery, a criterion for each kind.
//!
//! | forest | labels of a node's rows | split | leaf | effect |
//! |---|---|---|---|---|
//! | nuisances (`regression`) | distance to the mean | `moments` | mean | |
//! | `causal` | gradient of θ (`local_moments`) | `moments` | moments of (1, W), Y | solution of the averaged moments |
//! | `uplift` | arm and outcome | `divergence` | arm means | difference of averaged means |
//!
//! | file | subject |
//! |---|---|
//! | `params` | what can be set, with its defaults |
//! | `bins` | the training rows as bytes |
//! | `sampling` | which rows a tree sees |
//! | `rows` | what forests are grown on |
//! | `criterion` | what a tree is grown by |
//! | `histogram` | the best split of a node |
//! | `grow` | growing a tree |
//! | `kept` | trees left in a checkpoint, and gone on from |
//! | `columns`, `centring` | policies as columns; what is expected of treatment and outcome |
//! | `fitted`, `stored`, `little_bags` | scoring; storing; standard errors |

mod bins;
mod causal;
mod centring;
mod columns;
mod criterion;
mod divergence;
mod fitted;
mod grow;
mod histogram;
mod kept;
mod little_bags;
mod local_moments;
mod moments;
mod params;
mod regression;
mod rows;
mod sampling;
mod stored;
mod uplift;

use params::ForestParams;

use crate::learn::Learner;

/// A generalized random forest of effects.
pub(crate) const CAUSAL_FOREST: Learner = Learner {
    name: params::CausalParams::NAME,
    summary: "generalized random forest of effects, honest, with standard errors",
    settle: params::settle::<params::CausalParams>,
    train: causal::train,
    load: fitted::load::<columns::TreatmentColumns>,
};

/// Trees that drive arms apart.
pub(crate) const UPLIFT_FOREST: Learner = Learner {
    name: params::UpliftParams::NAME,
    summary: "trees whose splits drive the outcomes of policies apart",
    settle: params::settle::<params::UpliftParams>,
    train: uplift::train,
    load: fitted::load::<uplift::Arms>,
};
