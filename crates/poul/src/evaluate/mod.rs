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
//! Beside the metrics, [`average_effects`] gives the average effect of every policy, over all rows and by group, with
//! intervals, simultaneous bands and false-discovery rates; [`who_gains`] says along which features effects differ;
//! [`verdicts`] says what it all amounts to.
//!
//! **Weights** count rows: a weight of 2 gives what the row twice would have given, exactly, in every metric that
//! does not follow the input order of ties. Weights that sum to less than the number of rows are scaled up to sum to
//! it, so that shares or normalised inverse propensities mean what they say. Standard errors and bootstrap draws
//! count units, not weights: a row given twice is not a second observation.

mod area;
mod assigned;
mod ate;
mod average;
mod average_score;
mod bootstrap;
mod calibration;
mod causalml;
mod claim;
mod coarse;
mod cost_curve;
mod doubly_robust;
mod effect_tree;
mod estimate;
mod evaluation;
mod gain_curve;
mod groups;
mod hidden;
mod notes;
mod order;
mod pair;
mod params;
mod ranked;
mod rate;
mod reading;
mod readings;
mod reasons;
mod refinement;
mod resample;
mod residual;
mod result;
mod sample;
mod simultaneous;
mod sklift;
mod slope;
mod table;
mod tails;
mod top_share;
mod truth;
mod units;
mod verdict;
mod who_gains;
mod worth;

pub use area::{auuc, qini, random_auuc};
pub use assigned::{AssignedReading, AssignedRows, arms_are_thin, assigned};
pub use ate::{Ate, ate};
pub use average::{Assigned, BY_PREDICTED_EFFECT, FEWEST_ARM_ROWS, average_effects};
pub use bootstrap::{Bootstrap, Draws};
pub use calibration::{Bin, Calibration, calibration};
pub use causalml::{auuc_causalml, auuc_causalml_unnormalised, qini_causalml, qini_causalml_unnormalised};
pub use cost_curve::{CostCurve, CostPoint, cost_curve};
pub use doubly_robust::{dr_scores, dr_scores_randomized};
pub use evaluation::{Effects, Outcome, Scored, evaluate};
pub use gain_curve::gain_curve;
pub use params::{CostPair, Params, ValidParams};
pub use ranked::{Ranked, Rows, Totals};
pub use rate::{Rate, rate, rate_autoc, rate_qini};
pub use readings::{Metric, Readings, readings};
pub use reasons::{
    AtomEffect, AverageEffect, Balance, CheckResult, FeatureEffect, FeatureGroup, HiddenBound,
    HiddenConfounding, OutcomeCalibration, Overlap, Placebo, PolicyAverage, PolicyPlace, Provenance,
    Sensitivity, TrainingPoint, TreeNode, Validation, Verdict, WhoGains,
};
pub use residual::{constant_effect, r_loss, r_score};
pub use result::{
    AssignedPolicies, AssignedResult, CostResult, CurvePoint, Evaluation, Interval, Metrics, PolicyResult,
    PooledResult, TopShare,
};
pub use sample::Sample;
pub(crate) use simultaneous::{max_t_quantile, sidak_quantile};
pub use sklift::{qini_auc_sklift, uplift_auc_sklift};
pub use slope::{Slope, calibration_slope};
pub use top_share::{Strategy, uplift_at_k};
pub use truth::{ate_error, normalised_pehe, pehe};
pub use verdict::{Grade, Judgement, OutcomeVerdict, PolicyJudgement, Verdicts, verdicts};
pub use who_gains::{SampledEffects, who_gains};
pub use worth::{Choice, Estimated, OutcomeWorth, Rule, RuleWorth, WorthParams, worth, worth_band};
