//! Overlap: how π(t|x) is spread over rows, by policy, and where it had to be lifted to its floor.

use super::{check_result, short};
use crate::data::Design;
use crate::effect::ValidTrainingData;
use crate::evaluate::{CheckResult, Overlap, Verdict};
use crate::nuisance::{Propensity, PropensityFit};

/// The floor of propensities that are learned here.
pub(super) const CLIP: f32 = 0.01;
/// Policies listed, those with the most rows.
const MOST_LISTED: usize = 200;
const POINTS: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];
/// Effective shares of the rows, and shares of rows at the floor, from which there is a doubt, or worse.
const EFFECTIVE: [f64; 2] = [0.5, 0.1];
const CLIPPED: [f64; 2] = [0.005, 0.05];

pub(super) fn overlap(data: &ValidTrainingData<'_>, fit: &PropensityFit) -> (Vec<Overlap>, CheckResult) {
    let (n_rows, n_policies) = (data.n_rows(), data.policies.len());
    let mut listed: Vec<usize> = (0..n_policies).filter(|policy| data.policy_rows()[*policy] > 0).collect();
    listed.sort_by_key(|policy| std::cmp::Reverse(data.policy_rows()[*policy]));
    listed.truncate(MOST_LISTED);
    listed.sort_unstable();
    let is_learned = fit.models.is_some();
    let total: f64 = data.policy_mass().iter().sum();
    let of_policy = |policy: usize| {
        let mut values: Vec<f64> = match &fit.propensity {
            Propensity::Shares(shares) => vec![f64::from(shares[policy])],
            other => (0..n_rows).map(|row| f64::from(other.of_row(row, n_policies)[policy])).collect(),
        };
        values.sort_by(f64::total_cmp);
        // As `PropensityParams::clip` says; f32 rounds.
        let floor = f64::from(CLIP).min(0.1 * data.policy_mass()[policy] / total) * (1.0 + 1e-5);
        let quantile = |point: f64| values[(point * (values.len() - 1) as f64).round() as usize];
        Overlap {
            policy: data.policies.name(policy).to_owned(),
            rows: data.policy_rows()[policy] as usize,
            quantiles: POINTS.map(quantile).to_vec(),
            clipped: if is_learned { values.iter().take_while(|value| **value <= floor).count() } else { 0 },
        }
    };
    (listed.into_iter().map(of_policy).collect(), judge(data, fit))
}

fn judge(data: &ValidTrainingData<'_>, fit: &PropensityFit) -> CheckResult {
    let report = &fit.report;
    let clipped = report.clipped_own_rows as f64 / data.n_rows() as f64;
    let is_worse = |grade: usize| report.effective_share < EFFECTIVE[grade] || clipped > CLIPPED[grade];
    let verdict = match (is_worse(1), is_worse(0)) {
        (true, _) => Verdict::Fail,
        (_, true) => Verdict::Doubt,
        _ => Verdict::Pass,
    };
    let kept = format!("weights 1/π keep the worth of {:.0} % of the rows", 100.0 * report.effective_share);
    let text = match (data.design, data.propensity.is_empty()) {
        (Design::Randomized, true) => "every row had the same chance of each policy, by design".to_owned(),
        (Design::Observational, true) => format!(
            "{kept}; {:.1} % of rows have a policy whose propensity was lifted to its floor; the least is {}",
            100.0 * clipped,
            short(report.min)
        ),
        _ => format!("{kept}; the least propensity of a row's own policy is {}", short(report.min)),
    };
    check_result("overlap", verdict, text)
}
