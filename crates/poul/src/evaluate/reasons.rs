//! What an evaluation says beside its metrics, so that a reader knows how far to trust them.
//!
//! Plain data, each part absent where nothing computed it. The report is made from an [`Evaluation`](super::Evaluation)
//! alone: what it shows is here, or in the metrics.

use serde::{Deserialize, Serialize};

use super::result::Interval;

/// The average effect of a policy over all rows, or over the rows of a group, by the doubly robust score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AverageEffect {
    /// Name of the outcome.
    pub outcome: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the policy it is compared with.
    pub against: String,
    /// What rows are grouped by: `predicted effect`, or a column; none for all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The group: a value, a range, or a decile such as `1 of 10`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Rows averaged over, whatever policy they got.
    pub rows: usize,
    /// Of them, rows that got the policy.
    pub n_treated: usize,
    /// Of them, rows that got the policy compared with.
    pub n_control: usize,
    /// The mean of the doubly robust score.
    pub effect: Option<f64>,
    /// Its standard error, by cluster where clusters are given.
    pub se: Option<f64>,
    /// Its interval at the level of the evaluation, for this comparison alone.
    pub interval: Option<Interval>,
    /// Its simultaneous interval: all comparisons of the outcome (of the grouping) are inside theirs at once.
    pub band: Option<Interval>,
    /// Two-sided p-value of no effect.
    pub p_value: Option<f64>,
    /// The same, adjusted for the number of comparisons: the false-discovery rate at which it is found.
    pub q_value: Option<f64>,
    /// The mean predicted effect over the same rows.
    pub predicted: Option<f64>,
    /// The standard error of the model's own average, where it knows one; for all rows only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_se: Option<f64>,
    /// The interval of `predicted` by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_interval: Option<Interval>,
    /// The rows averaged over, where these are not all: in observational designs, those with overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<String>,
    /// Share of the rows that had next to no chance of one of the two policies and are left out, in observational designs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_without_overlap: Option<f64>,
    /// The rows of the policy that would tell as much if all counted the same: (Σw)²/Σw², w = 1/π over its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_rows: Option<f64>,
    /// What is left of the effect if something unobserved drove the assignment too, in observational designs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<HiddenConfounding>,
    /// Whether the mean predicted effect is outside the observed band.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_band: bool,
    /// Why numbers are missing or doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl AverageEffect {
    /// Share of the rows without overlap beyond which an average claims nothing.
    pub(crate) const MOST_WITHOUT_OVERLAP: f64 = 0.1;

    /// Whether too many rows had no chance of one of the two policies: then the number is no finding.
    pub fn lacks_overlap(&self) -> bool {
        self.share_without_overlap.is_some_and(|share| share > Self::MOST_WITHOUT_OVERLAP)
    }
}

/// An average effect under hidden confounding: the marginal sensitivity model of Tan (2006), in which something unobserved
/// changes the odds of getting a policy by a factor of at most Λ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HiddenConfounding {
    /// Bounds for some factors.
    pub bounds: Vec<HiddenBound>,
    /// The factor at which the interval first holds zero; 1 where it does without any.
    pub vanishes_at: f64,
}

/// Bounds of an average effect for one factor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HiddenBound {
    /// The factor Λ by which the odds of getting a policy may differ from what features say.
    pub lambda: f64,
    /// The least and the largest average effect that the rows allow.
    pub effect: Interval,
    /// The same, widened by the noise of the average.
    pub interval: Interval,
}

/// Who gains: how predicted effects of one policy differ between rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WhoGains {
    /// Name of the outcome.
    pub outcome: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the policy it is compared with.
    pub against: String,
    /// The features along which effects differ most, the first most.
    pub features: Vec<FeatureEffect>,
    /// A small tree of the predicted effects; node 0 is the root.
    pub tree: Vec<TreeNode>,
    /// Of the variance of predicted effects, the share that the tree explains.
    pub tree_share: Option<f64>,
}

/// Predicted effects along one feature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeatureEffect {
    /// The column.
    pub feature: String,
    /// Of the variance of predicted effects, the share between its groups.
    pub share: f64,
    /// Its groups, in the order of the values (numbers) or of their rows (categories).
    pub groups: Vec<FeatureGroup>,
}

/// The rows with some values of a feature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeatureGroup {
    /// The values: a range, a category, `missing`, `other`.
    pub label: String,
    /// Rows.
    pub rows: usize,
    /// Mean predicted effect.
    pub effect: f64,
}

/// A node of the tree of predicted effects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeNode {
    /// Its rows in words, such as `trips < 3.5`; `all rows` for the root.
    pub rule: String,
    /// Rows.
    pub rows: usize,
    /// Mean predicted effect.
    pub effect: f64,
    /// The node above; none for the root.
    pub parent: Option<usize>,
}

/// Checks of the design and of the orthogonal score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// One line for each check, the worst first.
    pub checks: Vec<CheckResult>,
    /// Balance of the centred embedding against features: |correlation| of h(T) − e_h(X) with x, largest first.
    pub balance: Vec<Balance>,
    /// Calibration of m, by outcome.
    pub outcome_model: Vec<OutcomeCalibration>,
    /// How the propensities of the policy that each row got are spread, by policy.
    pub overlap: Vec<Overlap>,
    /// Effects under permuted treatment, where it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placebo: Vec<Placebo>,
    /// How strong an unobserved confounder would have to be, for observational designs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Sensitivity>,
}

/// The result of a check, in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// What was checked, in a few words.
    pub name: String,
    /// `pass`, `doubt` or `fail`.
    pub verdict: Verdict,
    /// One sentence with the number behind it.
    pub text: String,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Something that effects rest on does not hold.
    Fail,
    /// To be looked at.
    Doubt,
    /// As it should be.
    #[default]
    Pass,
}

/// Correlation of one feature with the centred embedding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// The encoded feature.
    pub feature: String,
    /// The largest |correlation| with an axis of h(T) − e_h(X).
    pub correlation: f64,
    /// The same for h(T) − E h(T): what centring had to remove.
    pub before: f64,
    /// z-score of `correlation` under balance.
    pub z: f64,
}

/// How well m predicts an outcome out of fold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeCalibration {
    /// Name of the outcome.
    pub outcome: String,
    /// Share of the variance explained.
    pub r2: f64,
    /// Mean prediction and mean outcome by decile of the prediction.
    pub bins: Vec<[f64; 2]>,
}

/// The propensity of the policy that a row got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// Name of the policy.
    pub policy: String,
    /// Rows that got it.
    pub rows: usize,
    /// The 0, 5, 25, 50, 75, 95 and 100 % points of π(t|x) over all rows.
    pub quantiles: Vec<f64>,
    /// Rows whose propensity was clipped.
    pub clipped: usize,
    /// Rows that had next to no chance of it.
    #[serde(default)]
    pub without_overlap: usize,
    /// Its rows, as many as would tell as much if all counted the same: (Σw)²/Σw², w = 1/π.
    #[serde(default)]
    pub effective_rows: f64,
}

/// What a fit on permuted treatment finds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placebo {
    /// Name of the outcome.
    pub outcome: String,
    /// Root mean square of predicted effects over rows and policies, as fitted.
    pub spread: f64,
    /// The same with the treatment permuted, a number for each permutation.
    pub permuted: Vec<f64>,
}

/// How strong an unobserved confounder would have to be to change a conclusion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// Name of the outcome.
    pub outcome: String,
    /// Name of the policy.
    pub policy: String,
    /// Share of the residual variance, of treatment and of outcome alike, that it would have to explain to bring the
    /// average effect to zero.
    pub robustness: f64,
    /// The same, for the end of the interval nearest to zero; 0 where the interval holds zero.
    pub robustness_interval: f64,
    /// Bounds of the average effect if something unobserved changed the odds of getting the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<HiddenConfounding>,
}

/// Where a policy lies among the others, and what stands behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyPlace {
    /// Name of the policy.
    pub policy: String,
    /// Rows in training.
    pub rows: u64,
    /// Its place on the map: the first two axes of h, or of the mixtures where the learner has no h.
    pub at: [f64; 2],
    /// The nearest policy that was run; itself if it was.
    pub nearest: Option<String>,
    /// d_Π to it.
    pub distance: Option<f64>,
    /// Share of its mixture on atoms with enough training rows.
    pub supported_share: f64,
    /// Share of its mixture on atoms never seen.
    pub unseen_share: f64,
    /// The largest difference from the nearest policy's effect that the trained net allows, by outcome, for the median
    /// row: mean over members of ‖g(x)‖·‖h(t) − h(t′)‖, axes scaled by the size of g; none where the learner has no bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<f64>,
    /// Its average effect over the training population, by outcome, where the learner knows how sure it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub averages: Vec<PolicyAverage>,
}

/// The average effect of a policy, run or not, by the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyAverage {
    /// Name of the outcome.
    pub outcome: String,
    /// The average effect.
    pub effect: f64,
    /// Its standard error.
    pub se: f64,
    /// Its interval at the level of the evaluation.
    pub interval: Interval,
}

/// What an action does in a context: the effect of changing that one cell of the control policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AtomEffect {
    /// Name of the outcome.
    pub outcome: String,
    /// Name of the context.
    pub context: String,
    /// Name of the action.
    pub action: String,
    /// The average effect on the population, in units of the outcome; none where it cannot be scored.
    pub effect: Option<f64>,
    /// Its standard error, where the learner knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub se: Option<f64>,
    /// Its interval, for this atom alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Its simultaneous interval: all atoms of the outcome are inside theirs at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<Interval>,
    /// The share of the mixture that the context has.
    #[serde(default)]
    pub weight: f64,
    /// Training rows whose policy carries the atom.
    pub rows: u64,
    /// Whether control does this already.
    pub control: bool,
}

/// Where the numbers come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version that evaluated.
    pub poul: String,
    /// The command as typed.
    pub command: String,
    /// The command that fitted the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit_command: Option<String>,
    /// The learner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner: Option<String>,
    /// How assignment happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    /// The seeds, by what they are for.
    pub seeds: Vec<(String, u64)>,
    /// The files, with their fingerprints.
    pub files: Vec<(String, String)>,
    /// What fitting the model had to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fit_notes: Vec<String>,
    /// Training: phase, epoch, loss, validation loss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<TrainingPoint>,
}

/// One epoch of training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingPoint {
    /// What was trained.
    pub phase: String,
    /// The epoch, from 1.
    pub epoch: usize,
    /// Training loss.
    pub loss: f64,
    /// Validation loss.
    pub validation: Option<f64>,
}
