//! Overlap: how π(t|x) is spread over rows, by policy, which rows had next to no chance of it, and what its own rows are worth.
//!
//! Where nobody randomised, the verdict is about the rows that averages are over: those of the evaluation where it has averages,
//! the sample's otherwise.

use super::{Trial, check_result, short};
use crate::data::Design;
use crate::effect::ValidTrainingData;
use crate::evaluate::{AverageEffect, CheckResult, Overlap, Verdict};
use crate::nuisance::{CommonSupport, Propensity, PropensityFit};

/// The floor of propensities that are learned here.
pub(super) const CLIP: f32 = 0.01;
/// Policies listed, those with the most rows.
const MOST_LISTED: usize = 200;
/// Policies named in the sentence.
const MOST_NAMED: usize = 5;
const POINTS: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];
/// Effective shares of the rows from which there is a doubt, or worse.
const EFFECTIVE: [f64; 2] = [0.5, 0.1];
/// Shares of rows without overlap with a policy from which there is a doubt, or worse.
const WITHOUT: [f64; 2] = [0.02, AverageEffect::MOST_WITHOUT_OVERLAP];

pub(super) fn overlap(
    trial: &Trial<'_>,
    data: &ValidTrainingData<'_>,
    fit: &PropensityFit,
) -> (Vec<Overlap>, CheckResult) {
    let (n_rows, n_policies) = (data.n_rows(), data.policies.len());
    let mut listed: Vec<usize> = (0..n_policies).filter(|policy| data.policy_rows()[*policy] > 0).collect();
    listed.sort_by_key(|policy| std::cmp::Reverse(data.policy_rows()[*policy]));
    listed.truncate(MOST_LISTED);
    listed.sort_unstable();
    let is_learned = fit.models.is_some();
    let total: f64 = data.policy_mass().iter().sum();
    let support = CommonSupport::new(&fit.propensity, data.policy_mass());
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
            without_overlap: (0..n_rows).filter(|row| !support.holds(*row, policy)).count(),
            effective_rows: effective_rows(data, &support, policy),
        }
    };
    let check = if data.design == Design::Observational {
        judge_observed(trial, data, &support, fit)
    } else {
        judge_designed(data, fit)
    };
    (listed.into_iter().map(of_policy).collect(), check)
}

/// (Σw)²/Σw² over the policy's own rows, w = 1/π.
fn effective_rows(data: &ValidTrainingData<'_>, support: &CommonSupport<'_>, policy: usize) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for row in (0..data.n_rows()).filter(|row| data.policy[*row] as usize == policy) {
        let (weight, chance) = (data.weight.map_or(1.0, |weight| weight[row]), support.chance(row, policy));
        if weight > 0.0 && chance > 0.0 {
            sum += weight / chance;
            squares += (weight / chance).powi(2);
        }
    }
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// Where assignment was drawn: how unequal the chances were.
fn judge_designed(data: &ValidTrainingData<'_>, fit: &PropensityFit) -> CheckResult {
    let share = fit.report.effective_share;
    let text = match (data.design, data.propensity.is_empty()) {
        (Design::Randomized, true) => "every row had the same chance of each policy, by design".to_owned(),
        _ => {
            let least = short(fit.report.min);
            format!("{}; the least propensity of a row's own policy is {least}", kept(share))
        }
    };
    check_result("overlap", verdict(share, 0.0), text)
}

/// Where nobody randomised: which policies some rows had next to no chance of.
fn judge_observed(
    trial: &Trial<'_>,
    data: &ValidTrainingData<'_>,
    support: &CommonSupport<'_>,
    fit: &PropensityFit,
) -> CheckResult {
    let of_sample = |policy: &usize| {
        let overlaps = |row: &usize| support.holds(*row, *policy) && support.holds(*row, trial.against);
        let n_rows = data.n_rows();
        let share = 1.0 - (0..n_rows).filter(overlaps).count() as f64 / n_rows.max(1) as f64;
        (data.policies.name(*policy).to_owned(), share)
    };
    let of_average = |own: &AverageEffect| Some((own.policy.clone(), own.share_without_overlap?));
    let mut shares: Vec<(String, f64)> =
        trial.averages.iter().filter(|own| own.by.is_none()).filter_map(of_average).collect();
    if shares.is_empty() {
        let is_run = |policy: &&usize| data.policy_rows()[**policy] > 0;
        shares = trial.targets.iter().filter(is_run).map(of_sample).collect();
    }
    // Several outcomes have one and the same rows; a stable order for equal shares.
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    shares.dedup();
    let (effective, worst) = (fit.report.effective_share, shares.first().map_or(0.0, |own| own.1));
    let lacking: Vec<&(String, f64)> = shares.iter().filter(|own| own.1 > WITHOUT[1]).collect();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let against = data.policies.name(trial.against);
    let text = match (&lacking[..], shares.first()) {
        ([], Some((policy, share))) if *share > 0.0 => format!(
            "{} of the rows had next to no chance of `{policy}` or of `{against}`, the most of any policy, and are left out \
             of its average; {}",
            percent(*share),
            kept(effective)
        ),
        ([], _) => format!("every row had a real chance of every policy; {}", kept(effective)),
        (lacking, _) => {
            let mut named: Vec<String> = lacking
                .iter()
                .take(MOST_NAMED)
                .map(|(policy, share)| format!("`{policy}` ({})", percent(*share)))
                .collect();
            let more = lacking.len().saturating_sub(MOST_NAMED);
            if more > 0 {
                named.push(format!("{more} more"));
            }
            format!(
                "too many rows had next to no chance of the policy or of `{against}`, so that its average effect is no \
                 finding: {}",
                named.join(", ")
            )
        }
    };
    check_result("overlap", verdict(effective, worst), text)
}

fn verdict(effective_share: f64, without_overlap: f64) -> Verdict {
    let is_worse = |grade: usize| effective_share < EFFECTIVE[grade] || without_overlap > WITHOUT[grade];
    match (is_worse(1), is_worse(0)) {
        (true, _) => Verdict::Fail,
        (_, true) => Verdict::Doubt,
        _ => Verdict::Pass,
    }
}

fn kept(effective_share: f64) -> String {
    format!("effective sample size after weighting: {:.0} %", 100.0 * effective_share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_of_the_two_decides() {
        assert_eq!(verdict(0.9, 0.0), Verdict::Pass);
        assert_eq!(verdict(0.9, 0.05), Verdict::Doubt);
        assert_eq!(verdict(0.4, 0.0), Verdict::Doubt);
        assert_eq!(verdict(0.9, 0.11), Verdict::Fail);
        assert_eq!(verdict(0.05, 0.0), Verdict::Fail);
    }
}
