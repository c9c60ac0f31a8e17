//! What each setting of a learner is for, and the values it takes.

use serde_json::{Value, json};

/// The values of a setting, beyond the type of its default.
#[derive(Clone, Copy)]
pub(super) enum Values {
    /// All of its type; whole numbers are at least 0.
    Any,
    /// From one bound to the other, both included.
    Within(f64, f64),
    /// From one bound, included, to the other, not included.
    Below(f64, f64),
    /// Between the bounds, neither included.
    Between(f64, f64),
    AtLeast(f64),
    Above(f64),
    /// Above 0, at most 1.
    Share,
    /// 0, or within the bounds.
    ZeroOr(f64, f64),
    OneOf(&'static [&'static str]),
    /// Widths of layers: one or more, each of 1 to the bound.
    Widths(f64),
    Phases,
    /// Names of learners.
    Learners,
    /// Settings of learners by name.
    OfLearners,
}

use Values::{
    Above, Any, AtLeast, Below, Between, Learners, OfLearners, OneOf, Phases, Share, Widths, Within, ZeroOr,
};

const WIDEST: f64 = 65_536.0;

/// A setting as `table.name`, after `LEARNER:` where it is of one learner (`poul:` of the method's variants too); the first
/// row that fits counts.
pub(super) const SETTINGS: &[(&str, &str, Values)] = &[
    ("stack:model.of", "Learners to combine", Learners),
    ("stack:model.learners", "Settings of members by name", OfLearners),
    (
        "stack:model.loss",
        "The out-of-fold loss that members are weighted by",
        OneOf(&["auto", "r", "doubly-robust"]),
    ),
    ("stack:model.level", "Where averages of policies come from", OneOf(&["auto", "anchored", "members"])),
    ("stack:training.folds", "Folds that members are weighted by", Within(2.0, 100.0)),
    (
        "poul:model.embedding",
        "How an action in a context becomes a vector",
        OneOf(&["lookup", "additive", "hierarchical"]),
    ),
    ("poul:model.embedding_dim", "Width of the vectors of actions in contexts", AtLeast(1.0)),
    ("poul:model.effect_dim", "Width of the policy embedding", AtLeast(1.0)),
    ("poul:model.hidden", "Widths of the hidden layers of the heterogeneity net", Widths(f64::INFINITY)),
    ("poul:model.rho_hidden", "Width of the hidden layer of the policy embedding; 0: linear", Any),
    ("poul:model.rho_skip", "Whether the policy embedding has a linear part beside its hidden layer", Any),
    ("poul:model.layer_norm", "Whether the hidden layer of the policy embedding is normalised", Any),
    (
        "poul:model.lipschitz",
        "Largest Lipschitz constant of the policy embedding; 0: unbounded",
        Below(0.0, 1e6),
    ),
    ("poul:model.shared_treatment_net", "Whether all outcomes share one policy embedding", Any),
    ("poul:model.shared_gain", "Whether outcomes learn from each other who responds", Any),
    (
        "poul:model.centring",
        "How the policy embedding is centred",
        OneOf(&["auto", "exact", "sampled", "mixture", "running-mean", "none"]),
    ),
    ("poul:model.centring_draws", "Policies drawn in a step for `sampled` centring", Within(2.0, WIDEST)),
    (
        "poul:model.loss",
        "Squared error, or likelihood for outcomes that are 0 or 1",
        OneOf(&["squared", "logistic"]),
    ),
    ("poul:model.outcome_model", "The outcome model", OneOf(&["mlp", "dragonnet", "boosted", "auto"])),
    ("poul:model.outcome_hidden", "Widths of the hidden layers of the outcome model", Widths(WIDEST)),
    ("poul:training.batch_rows", "Rows of a batch; 0: by the number of rows", Any),
    ("poul:training.phases", "Training on one population after the other; replaces `epochs`", Phases),
    ("poul:training.decay_g", "Weight decay of the heterogeneity net", Below(0.0, 100.0)),
    ("poul:training.decay_rho", "Weight decay of the policy embedding", Below(0.0, 100.0)),
    ("poul:training.decay_phi", "Weight decay of what actions and contexts share", Below(0.0, 100.0)),
    (
        "poul:training.decay_delta",
        "Weight decay of what is particular to an action in a context",
        Below(0.0, 100.0),
    ),
    (
        "poul:training.delta_start",
        "Initial size of what is particular to an action in a context",
        Below(0.0, 100.0),
    ),
    (
        "poul:training.gate_penalty",
        "Penalty that drops features along which effects do not differ; 0: none",
        Below(0.0, 100.0),
    ),
    ("poul:training.noise_weights", "Whether rows with a noisier outcome count less", Any),
    (
        "poul:training.calibrate",
        "Whether predicted differences are shrunk to what held-out rows confirm",
        Any,
    ),
    (
        "poul:training.member_rows",
        "Rows of each member; `half` for intervals of single rows",
        OneOf(&["all", "half"]),
    ),
    ("poul:training.outcome_training", "How the outcome model is trained", OneOf(&["own", "as-effects"])),
    ("poul:training.clip_norm", "Longest gradient; 0: any", AtLeast(0.0)),
    ("poul:training.clip", "Smallest propensity of a policy where it is learned", Below(0.0, 0.5)),
    ("cfr:model.imbalance", "The distance between arms", OneOf(&["mmd", "wasserstein"])),
    ("cfr:model.alpha", "Weight of the distance between arms", Below(0.0, 1e6)),
    ("efin:model.alpha", "Weight of the constraint on treatments", Below(0.0, 1e6)),
    ("efin:model.token_dim", "Width of tokens and of treatments", Within(1.0, WIDEST)),
    ("dragonnet:model.alpha", "Weight of predicting the arm", Below(0.0, 1e6)),
    ("dragonnet:model.beta", "Weight of the targeted term", Below(0.0, 1e6)),
    ("drcfr:model.alpha", "Weight of keeping representations apart", Below(0.0, 1e6)),
    ("drcfr:model.beta", "Weight of predicting the treatment", Below(0.0, 1e6)),
    ("drcfr:model.separation", "How representations are kept apart", OneOf(&["mmd", "information"])),
    ("sin-cat:model.effect_dim", "Width of the embeddings", Within(1.0, WIDEST)),
    ("graphite:model.encoder", "Widths of the layers of the policy's encoder", Widths(WIDEST)),
    ("graphite:model.kappa", "Weight of the independence of unit and policy", Below(0.0, 1e6)),
    ("drnet:model.strata", "Strata of dose besides control", Within(1.0, 1000.0)),
    ("dedl:model.link", "How factors become an outcome", OneOf(&["sigmoid", "linear"])),
    ("dedl:model.debias", "Whether averages are debiased, at the cost of a fit for each fold", Any),
    (
        "dedl:model.ridge",
        "What is added to the diagonal when averages are debiased, relative to its mean",
        Above(0.0),
    ),
    ("dragonnet:model.clip", "Smallest propensity", Between(0.0, 0.5)),
    ("drcfr:model.clip", "Smallest propensity", Between(0.0, 0.5)),
    ("dedl:model.clip", "Smallest propensity", Between(0.0, 0.5)),
    (
        "x-learner:model.blend",
        "What the two estimates are combined by",
        OneOf(&["auto", "shares", "propensity"]),
    ),
    ("descn:model.weight_propensity", "Weight of the propensity", Below(0.0, 1e6)),
    ("descn:model.weight_treated", "Weight of treated outcomes over the entire space", Below(0.0, 1e6)),
    ("descn:model.weight_control", "Weight of control outcomes over the entire space", Below(0.0, 1e6)),
    (
        "descn:model.weight_cross_treated",
        "Weight of treated outcomes against control plus effect",
        Below(0.0, 1e6),
    ),
    (
        "descn:model.weight_cross_control",
        "Weight of control outcomes against treated less effect",
        Below(0.0, 1e6),
    ),
    (
        "uplift-forest:model.divergence",
        "What splits make large between arms",
        OneOf(&["kl", "euclidean", "chi-squared"]),
    ),
    ("uplift-forest:model.normalize", "Whether uneven splits are marked down", Any),
    (
        "uplift-forest:model.prior_rows",
        "Rows that the arm means of the node above count for",
        Within(0.0, 1e12),
    ),
    (
        "causal-forest:model.nuisance_trees",
        "Trees of each nuisance forest; 0: half of `trees`",
        Within(0.0, 1e6),
    ),
    ("model.trees", "Number of trees", Within(1.0, 1e6)),
    (
        "model.sample_fraction",
        "Share of the units that a tree sees; above 0.5 only with `group_trees` = 1",
        Share,
    ),
    (
        "model.honesty",
        "Share of a tree's units that choose splits; 0: all choose splits and fill leaves",
        ZeroOr(0.1, 0.9),
    ),
    ("model.min_node", "Rows of each arm on either side of a split", AtLeast(1.0)),
    ("model.min_child_rows", "Rows on either side of a split", Any),
    ("model.mtry", "Features that a node tries; 0: by their number", Any),
    ("model.imbalance", "Smallest share of a node's rows on either side of a split", Below(0.0, 0.5)),
    ("model.max_depth", "Most splits on the way to a leaf; 0: any number", Any),
    ("model.group_trees", "Trees that share a half-sample, for standard errors; 1: none", Within(1.0, 100.0)),
    ("model.columns", "Most arms, or axes of mixtures, that are told apart", Within(1.0, 16.0)),
    ("model.tier", "What is seen of a policy: its name, or what it does", OneOf(&["id", "spec"])),
    ("model.hidden", "Widths of the hidden layers", Widths(WIDEST)),
    ("model.trunk", "Widths of the shared layers", Widths(WIDEST)),
    ("model.heads", "Widths of the hidden layers of each head", Widths(WIDEST)),
    ("model.dropout", "Dropout after each hidden layer", Below(0.0, 1.0)),
    ("model.min_arm_rows", "Arms with fewer rows are taken together", Any),
    ("model.members", "Networks trained side by side and averaged", Within(1.0, 256.0)),
    ("model.clip", "Smallest propensity", Below(0.0, 0.5)),
    ("training.folds", "Folds of cross-fitting; 0: by the number of rows", Within(0.0, 100.0)),
    ("training.learning_rate", "Learning rate", Above(0.0)),
    ("training.batch_rows", "Rows of a batch", AtLeast(1.0)),
    ("training.epochs", "Most passes over the rows", AtLeast(1.0)),
    (
        "training.patience",
        "Epochs without a better validation loss before training ends; 0: run all epochs",
        Any,
    ),
    ("training.validation_share", "Share of the units held out for validation", Within(0.0, 0.5)),
    ("training.weight_decay", "Weight decay", Below(0.0, 100.0)),
    ("training.average", "Decay of the running average of weights; 0: none", Below(0.0, 1.0)),
    ("training.clip_norm", "Longest gradient", Above(0.0)),
];

/// The row of a learner's setting.
pub(super) fn meaning(learner: &str, setting: &str) -> Option<&'static (&'static str, &'static str, Values)> {
    SETTINGS.iter().find(|(key, ..)| match key.split_once(':') {
        Some(("poul", rest)) => rest == setting && (learner == "poul" || learner.starts_with("poul-")),
        Some((own, rest)) => rest == setting && own == learner,
        None => *key == setting,
    })
}

impl Values {
    /// The keywords that say so.
    pub(super) fn keywords(self) -> Value {
        match self {
            Any => json!({}),
            Within(low, high) => json!({ "minimum": whole(low), "maximum": whole(high) }),
            Below(low, high) => {
                json!({ "minimum": whole(low), "maximum": whole(high), "exclusiveMaximum": true })
            }
            Between(low, high) => json!({
                "minimum": whole(low), "exclusiveMinimum": true, "maximum": whole(high), "exclusiveMaximum": true,
            }),
            Share => json!({ "minimum": 0, "exclusiveMinimum": true, "maximum": 1 }),
            AtLeast(low) => json!({ "minimum": whole(low) }),
            Above(low) => json!({ "minimum": whole(low), "exclusiveMinimum": true }),
            ZeroOr(low, high) => json!({ "anyOf": [{ "enum": [0] }, { "minimum": low, "maximum": high }] }),
            OneOf(names) => json!({ "enum": names }),
            Widths(most) => {
                let mut width = json!({ "type": "integer", "minimum": 1 });
                if most.is_finite() {
                    width["maximum"] = whole(most);
                }
                json!({ "type": "array", "minItems": 1, "items": width })
            }
            Phases => json!({ "type": "array", "items": {
                "type": "object",
                "properties": {
                    "population": { "description": "Rows to train on, such as 'core = 1' [default: all]", "type": "string" },
                    "epochs": { "description": "Most passes over the rows", "type": "integer", "minimum": 1 },
                },
                "additionalProperties": false,
            } }),
            Learners => {
                json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "string" } })
            }
            OfLearners => json!({ "$ref": "#/definitions/learners" }),
        }
    }
}

/// Whole numbers without a point.
fn whole(number: f64) -> Value {
    if number.fract() == 0.0 { Value::from(number as i64) } else { Value::from(number) }
}
