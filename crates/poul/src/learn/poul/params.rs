//! Settings of the learner: `[model]` and `[training]` of `poul.toml`.

use serde::{Deserialize, Serialize};

use super::phases::PhaseParams;
use crate::net::Schedule;
use crate::nuisance::OutcomeKind;
use crate::{Error, Result};

/// How an atom (s, a) becomes a vector φ(s, a).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Embedding {
    /// A vector of its own for every atom.
    Lookup,
    /// What atoms share: a_a + b_a ⊙ c_s, the action's vector and how the context bends it.
    Additive,
    /// The shared part plus a deviation of the atom, shrunk harder.
    Hierarchical,
}

/// How h(T) is centred: what stands for e_h(x) = E[h(T) | x].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centring {
    /// `exact` up to 256 policies, up to 1,024 where their shares differ between rows, and up to 32 where rows have
    /// exposures of their own. Beyond, so that a step's cost
    /// does not grow with them: `mixture` where the propensity would have to be estimated (an observational design
    /// without propensity columns), else `sampled`.
    Auto,
    /// Σ_t π(t|x) h(t) for the current h, with its gradient: h of every policy in every step, whatever the cost.
    Exact,
    /// The mean of h over policies drawn from π, afresh in every step and apart from the rows' own, with its gradient.
    /// Two halves of the draws tell how far they scatter, and the loss is corrected for it: its expectation is that of
    /// `exact` under the squared loss, and close to it under the logistic one.
    Sampled,
    /// ρ(E[z | x]): the expected mixture of policies in place of the expected h, exact in the linear part of ρ. In an
    /// observational design E[α_T | x] is a cross-fitted regression of the atoms' mass on the features.
    Mixture,
    /// The mean of h over the rows of all past batches, as it was then, without a gradient: Algorithm 1 of the paper to
    /// the letter, for randomized designs.
    RunningMean,
    /// Not at all: for comparison only.
    None,
}

/// What predictions are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// y = m(x) + g(x)ᵀ(h(t) − e_h(x)) by squared error.
    Squared,
    /// logit P(y = 1) = logit m(x) + g(x)ᵀ(h(t) − e_h(x)) by likelihood, for outcomes that are 0 or 1. Effects are
    /// differences of probabilities.
    Logistic,
}

/// The rows that each member of the ensemble is fitted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberRows {
    /// All rows: members differ by their start and dropout, and their spread is the noise of training alone.
    #[default]
    All,
    /// Half of the clusters, or rows: members 2k and 2k + 1 have the two halves of one split. Half their difference is then
    /// the standard error of their mean, sampling included.
    Half,
}

/// How the outcome model m is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeTraining {
    /// In its own way, made for it: two networks, rate 0.002, at most 40 epochs, stopped by held-out rows, dropout 0.1.
    #[default]
    Own,
    /// As g is: the same rate, batches, epochs (those of all phases together), patience, dropout, decay, average of
    /// weights and number of networks. Without `patience` no row is held out.
    AsEffects,
}

/// What is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelParams {
    /// φ. Default `hierarchical`.
    pub embedding: Embedding,
    /// Width r of φ and z. Default 16; at least 1.
    pub embedding_dim: usize,
    /// Width d of g and h. Default 16; at least 1.
    pub effect_dim: usize,
    /// Widths of the hidden layers of g. Default 128, 64; at least one layer.
    pub hidden: Vec<usize>,
    /// Width of ρ's hidden layer. Default 32; 0: ρ is linear.
    pub rho_hidden: usize,
    /// Whether ρ has a linear part beside its hidden layer. Default true.
    pub rho_skip: bool,
    /// Whether ρ's hidden layer is normalised (LayerNorm, before its tanh). Default false; needs `rho_hidden`.
    pub layer_norm: bool,
    /// Most that the Lipschitz constant L_ρ may be, by singular values. Default 0: unbounded; not with `layer_norm`,
    /// whose constant is unknown.
    pub lipschitz: f32,
    /// Dropout in g. Default 0.2; in [0, 1).
    pub dropout: f32,
    /// Whether all outcomes share one treatment net h; otherwise each has its own. Default true.
    pub shared_treatment_net: bool,
    /// Whether outcomes learn from each other who responds: g of an outcome takes of the others' what held-out rows bear out.
    /// Only with `shared_treatment_net` and under the squared loss. Default true.
    pub shared_gain: bool,
    /// Centring of h. Default `auto`.
    pub centring: Centring,
    /// Policies drawn in a step for `sampled` centring. Where π depends on the row, every row draws an eighth as many,
    /// at least 2. Default 64; 2 to 65,536.
    pub centring_draws: usize,
    /// The loss, for every outcome. Default `squared`; `logistic` needs outcomes that are all 0 or 1.
    pub loss: Loss,
    /// Members of the ensemble. Default 6; at least 1.
    pub members: usize,
    /// The outcome model m: `mlp`; `dragonnet`, whose trunk predicts the policy too; `boosted` trees; or `auto`, the best of a
    /// ridge, `mlp`, `boosted` and their convex combinations by out-of-fold loss for each outcome. Where the propensity is
    /// learned it is by networks, by boosted trees, or chosen in the same way. Default `mlp`.
    pub outcome_model: OutcomeKind,
    /// Widths of its hidden layers; of the trunk, for `dragonnet`. Default 128, 64; at least one layer.
    pub outcome_hidden: Vec<usize>,
}

impl Default for ModelParams {
    fn default() -> Self {
        Self {
            embedding: Embedding::Hierarchical,
            embedding_dim: 16,
            effect_dim: 16,
            hidden: vec![128, 64],
            rho_hidden: 32,
            rho_skip: true,
            layer_norm: false,
            lipschitz: 0.0,
            dropout: 0.2,
            shared_treatment_net: true,
            shared_gain: true,
            centring: Centring::Auto,
            centring_draws: 64,
            loss: Loss::Squared,
            members: 6,
            outcome_model: OutcomeKind::Mlp,
            outcome_hidden: vec![128, 64],
        }
    }
}

/// How it is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingParams {
    /// Folds K of cross-fitting. Default 0: 6 up to 5,000 rows, where every row counts, and 3 beyond; 1 fits the nuisances on
    /// all rows, as Algorithm 1 does.
    pub folds: usize,
    /// Learning rate of AdamW; gates learn six times as fast. Default 0.001; above 0.
    pub learning_rate: f32,
    /// Rows of a batch. Default 0: 64 up to 8,192 rows, so that few rows make many steps, too; 128 up to 16,384; 256 beyond.
    pub batch_rows: usize,
    /// Most passes over the rows. Default 80; at least 1.
    pub epochs: usize,
    /// Phases of training, one population after the other; `epochs` then counts for nothing. Default: one phase of
    /// `epochs` on all rows.
    pub phases: Vec<PhaseParams>,
    /// Epochs without a better validation R-loss before training ends. Default 8; 0: run all epochs.
    pub patience: usize,
    /// Share of the units held out for the validation R-loss. Default 0.125; in [0, 0.5].
    pub validation_share: f64,
    /// Weight decay of g, for passes of up to 64 batches as all decays: longer ones decay less per step, so that a pass
    /// shrinks weights as much however many rows there are. Default 1; at least 0.
    pub decay_g: f32,
    /// Weight decay of ρ. Default 0.1; at least 0.
    pub decay_rho: f32,
    /// Weight decay of what atoms share. Default 0.3; at least 0.
    pub decay_phi: f32,
    /// Weight decay of the atoms' deviations. Default 0.5; at least 0.
    pub decay_delta: f32,
    /// Start of the atoms' deviations, relative to the shared part. Default 0.3; at least 0.
    pub delta_start: f32,
    /// Penalty on the gates through which features enter g, in units of √E[(effect · error)²] / √rows. Default 1.75; 0: no
    /// gates.
    pub gate_penalty: f32,
    /// Whether rows count by 1/σ of their outcome in stage 2, the spread of the residuals of rows for which m̂ says as much;
    /// not under the logistic loss. Default true.
    pub noise_weights: bool,
    /// Whether effects of an outcome are scaled by the slope of held-out residuals on them. Default true.
    pub calibrate: bool,
    /// Rows of each member. Default `all`; `half`: complementary halves, for intervals of single rows, with an even number
    /// of members.
    pub member_rows: MemberRows,
    /// How the outcome model is trained. Default `own`; `as-effects`: by the settings of g.
    pub outcome_training: OutcomeTraining,
    /// Decay of the running average of weights. Default 0.999; in [0, 1); 0: no average.
    pub average: f32,
    /// Longest gradient. Default 5; at least 0; 0: any.
    pub clip_norm: f32,
    /// Least propensity of a policy where the propensity is learned, a tenth of its share for rare ones. Default 0.01;
    /// in [0, 0.5).
    pub clip: f32,
}

impl Default for TrainingParams {
    fn default() -> Self {
        Self {
            folds: 0,
            learning_rate: 1e-3,
            batch_rows: 0,
            epochs: 80,
            phases: Vec::new(),
            patience: 8,
            validation_share: 0.125,
            decay_g: 1.0,
            decay_rho: 0.1,
            decay_phi: 0.3,
            decay_delta: 0.5,
            delta_start: 0.3,
            gate_penalty: 1.75,
            noise_weights: true,
            calibrate: true,
            member_rows: MemberRows::All,
            outcome_training: OutcomeTraining::Own,
            average: 0.999,
            clip_norm: 5.0,
            clip: 0.01,
        }
    }
}

/// Settings of the learner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// What is learned.
    pub model: ModelParams,
    /// How.
    pub training: TrainingParams,
}

/// Settings known to be in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidParams(Params);

impl Params {
    /// Checks every setting against its range.
    pub fn check(self) -> Result<ValidParams> {
        let Self { model, training } = &self;
        let inside = |value: f32, low: f32, high: f32| (low..high).contains(&value);
        let positive = |value: f32| value > 0.0 && value.is_finite();
        let decay = |value: f32| inside(value, 0.0, 100.0);
        let rules = [
            ("model.embedding_dim", model.embedding_dim > 0, "at least 1"),
            ("model.effect_dim", model.effect_dim > 0, "at least 1"),
            (
                "model.hidden",
                !model.hidden.is_empty() && !model.hidden.contains(&0),
                "one or more widths above 0",
            ),
            ("model.layer_norm", !model.layer_norm || model.rho_hidden > 0, "false where `rho_hidden` is 0"),
            ("model.lipschitz", inside(model.lipschitz, 0.0, 1e6), "from 0 to 1000000"),
            ("model.lipschitz", model.lipschitz == 0.0 || !model.layer_norm, "0 where `layer_norm` is true"),
            ("model.dropout", inside(model.dropout, 0.0, 1.0), "in [0, 1)"),
            ("model.centring_draws", (2..=65_536).contains(&model.centring_draws), "2 to 65,536"),
            ("model.members", (1..=256).contains(&model.members), "1 to 256"),
            (
                "model.members",
                training.member_rows == MemberRows::All || model.members.is_multiple_of(2),
                "even where `training.member_rows` is `half`",
            ),
            (
                "model.outcome_hidden",
                !model.outcome_hidden.is_empty()
                    && model.outcome_hidden.iter().all(|width| (1..=1 << 16).contains(width)),
                "one or more widths from 1 to 65536",
            ),
            ("training.folds", training.folds <= 100, "0 to 100"),
            ("training.learning_rate", positive(training.learning_rate), "above 0"),
            ("training.epochs", training.epochs > 0, "at least 1"),
            ("training.phases.epochs", training.phases.iter().all(|phase| phase.epochs > 0), "at least 1"),
            ("training.validation_share", (0.0..=0.5).contains(&training.validation_share), "from 0 to 0.5"),
            ("training.decay_g", decay(training.decay_g), "from 0 to 100"),
            ("training.decay_rho", decay(training.decay_rho), "from 0 to 100"),
            ("training.decay_phi", decay(training.decay_phi), "from 0 to 100"),
            ("training.decay_delta", decay(training.decay_delta), "from 0 to 100"),
            ("training.delta_start", inside(training.delta_start, 0.0, 100.0), "from 0 to 100"),
            ("training.gate_penalty", inside(training.gate_penalty, 0.0, 100.0), "from 0 to 100"),
            ("training.average", inside(training.average, 0.0, 1.0), "in [0, 1)"),
            ("training.clip_norm", training.clip_norm == 0.0 || positive(training.clip_norm), "at least 0"),
            ("training.clip", inside(training.clip, 0.0, 0.5), "in [0, 0.5)"),
        ];
        match rules.iter().find(|(_, inside, _)| !inside) {
            Some((name, _, range)) => {
                Err(Error::usage(format!("`{name}` is out of range")).hint(format!("it must be {range}")))
            }
            None => Ok(ValidParams(self)),
        }
    }
}

impl std::ops::Deref for ValidParams {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.0
    }
}

impl TrainingParams {
    /// The epochs of all phases.
    pub(super) fn all_epochs(&self) -> usize {
        match self.phases.as_slice() {
            [] => self.epochs,
            phases => phases.iter().map(|phase| phase.epochs).sum(),
        }
    }

    /// The schedule of a fit to so many rows.
    pub(super) fn schedule(&self, n_rows: usize) -> Schedule {
        // On `long-tail` 64 in place of 256 had .93 of the error with 2,000 and 5,000 rows, and 1.01 with 20,000.
        let batch_rows = match (self.batch_rows, n_rows) {
            (0, ..=8_192) => 64,
            (0, ..=16_384) => 128,
            (0, _) => 256,
            (given, _) => given,
        };
        Schedule { batch_rows, epochs: self.epochs, patience: self.patience, ..Schedule::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_wrong_settings_are_named() {
        assert!(Params::default().check().is_ok());
        let mut params = Params::default();
        params.model.hidden.clear();
        let error = params.check().unwrap_err();
        assert_eq!(error.to_string(), "`model.hidden` is out of range");
        let mut params = Params::default();
        params.training.learning_rate = f32::NAN;
        assert!(params.check().unwrap_err().to_string().contains("learning_rate"));
    }
}
