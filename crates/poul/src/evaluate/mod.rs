//! How good predicted effects are: their ranking, their size, their worth, and their distance from a known truth.
//!
//! [`evaluate()`] does everything for several outcomes and policies and returns an [`Evaluation`] that serialises to
//! the metrics file. Underneath, each metric is a plain function of [`Rows`]: the rows of one policy and of the one
//! it is compared with, sorted by predicted effect. A [`Sample`] is checked once, [`Ranked`] sorts it once, and
//! [`Bootstrap`] hands every metric the same rows with other counts, so that a draw costs one pass and no sort.
//!
//! | metric | function | convention |
//! |---|---|---|
//! | `auuc` | [`auuc`] | the paper's, eqs. of the appendix "Evaluation Metrics"; ties cannot matter |
//! | `qini` | [`qini`] | as `qini_causalml`, with the ties of `auuc` |
//! | `auuc_causalml`, `qini_causalml` | [`auuc_causalml`], [`qini_causalml`] | causalml 0.18; ties in input order |
//! | `uplift_auc_sklift`, `qini_auc_sklift` | [`uplift_auc_sklift`], [`qini_auc_sklift`] | scikit-uplift 0.5 |
//! | `uplift_at_k` | [`uplift_at_k`] | scikit-uplift 0.5; a tie across the cut is shared in proportion |
//! | `rate_autoc`, `rate_qini` | [`rate_autoc`], [`rate_qini`] | grf; doubly robust scores by [`dr_scores`] |
//! | `mape`, `wmape` | [`calibration`] | the paper's, 10 bins |
//! | `calibration_slope` | [`calibration_slope`] | best linear predictor of the effect |
//! | `pehe`, `ate_error` | [`pehe`], [`ate_error`] | where the truth is known |
//! | `r_loss`, `r_score` | [`r_loss`], [`r_score`] | the validation objective |
//! | `aucc` | [`cost_curve`] | incremental value against incremental cost |
//! | `assigned` | [`assigned()`] | R-score, slope and rank gain of each row's own policy, however few rows a policy has |
//!
//! [`Metric`] lists them: each says what it is called, what it reads and where it is shown.
//!
//! | room | subject |
//! |---|---|
//! | `metric` | the metrics, and the list of them |
//! | `average` | average effects by the doubly robust score |
//! | `summary` | an evaluation of rows that are never in one place, from sums that merge |
//! | `trust` | whether effects can be trusted; takes a model |
//! | [`run`] | a whole evaluation, from tables to an [`Evaluation`]; takes a model |
//!
//! Beside the metrics an [`Evaluation`] of [`run`] has the average effect of every policy, over all rows and by group, with
//! intervals, simultaneous bands and false-discovery rates, and along which features effects differ; [`verdicts`] says what it
//! all amounts to.
//!
//! **Weights** count rows: a weight of 2 gives what the row twice would have given, exactly, in every metric that
//! does not follow the input order of ties. Weights that sum to less than the number of rows are scaled up to sum to
//! it, so that shares or normalised inverse propensities mean what they say. Standard errors and bootstrap draws
//! count units, not weights: a row given twice is not a second observation.

mod average;
mod effect_tree;
mod metric;
mod reasons;
mod result;
pub mod run;
#[doc(hidden)]
pub mod summary;
#[doc(hidden)]
pub mod trust;
mod verdict;
mod who_gains;

pub use average::{Estimated, OutcomeWorth, RuleWorth};
pub(crate) use average::{max_t_quantile, sidak_quantile};
pub use metric::{
    About, AssignedReading, AssignedRows, Ate, Better, Bin, Bootstrap, Calibration, CostCurve, CostPair,
    CostPoint, Definition, Draws, Effects, Metric, Metrics, Number, Outcome, Params, Ranked, Rate, Rows,
    Sample, Scored, Shown, Slope, Strategy, Totals, ValidParams, assigned, ate, ate_error, auuc,
    auuc_causalml, auuc_causalml_unnormalised, calibration, calibration_slope, constant_effect, cost_curve,
    dr_scores, dr_scores_randomized, evaluate, gain_curve, normalised_pehe, pehe, qini, qini_auc_sklift,
    qini_causalml, qini_causalml_unnormalised, r_loss, r_score, random_auuc, rate, rate_autoc, rate_qini,
    uplift_at_k, uplift_auc_sklift,
};
pub use reasons::{
    AtomEffect, AverageEffect, Balance, CheckResult, FeatureEffect, FeatureGroup, HiddenBound,
    HiddenConfounding, OutcomeCalibration, Overlap, Placebo, PolicyAverage, PolicyPlace, Provenance,
    Sensitivity, TrainingPoint, TreeNode, Validation, Verdict, WhoGains,
};
pub use result::{
    AssignedPolicies, AssignedResult, CostResult, CurvePoint, Evaluation, Interval, PolicyResult,
    PooledResult, TopShare,
};
pub use verdict::{Grade, Judgement, OutcomeVerdict, PolicyJudgement, Verdicts, verdicts};

pub(crate) use average::{Choice, Rule, WorthParams, worth, worth_band};
pub(crate) use metric::{Readings, readings};
pub(crate) use who_gains::{SampledEffects, who_gains};

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub use average::{Assigned, BY_PREDICTED_EFFECT, average_effects};
#[doc(hidden)]
pub use metric::arms_are_thin;
