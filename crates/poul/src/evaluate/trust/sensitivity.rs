//! How strong an unobserved confounder would have to be to explain an average effect away: the robustness value of
//! Cinelli & Hazlett (2020), "Making sense of sensitivity", on residuals of treatment and outcome.
//!
//! With f² the partial R² odds of treatment and outcome, RV = (√(f⁴ + 4f²) − f²) / 2: a confounder that explains less
//! than that share of the residual variance of both cannot bring the effect to zero.
//!
//! Beside it stand the bounds of the marginal sensitivity model, which come with the averages. Of policies whose rows lack
//! overlap nothing is claimed, so that there is nothing to explain away.

use super::{Trial, check_result};
use crate::effect::ValidTrainingData;
use crate::evaluate::{AverageEffect, CheckResult, Sensitivity, Verdict};
use crate::nuisance::Propensity;
use crate::stats::normal_quantile;

/// Fewer rows of a policy, or of the one compared with, say nothing.
const FEWEST_ROWS: u64 = 50;
/// Policies listed.
const MOST_LISTED: usize = 200;
/// A weaker confounder than this is easily imagined.
const WEAK: f64 = 0.05;
/// The same for a factor of the odds.
const WEAK_FACTOR: f64 = 1.2;

/// The robustness of the average effect of each policy, outcomes first.
pub(super) fn sensitivity(
    trial: &Trial<'_>,
    data: &ValidTrainingData<'_>,
    propensity: &Propensity,
    level: f64,
) -> Vec<Sensitivity> {
    let rows_of = data.policy_rows();
    let mut found = Vec::new();
    if rows_of[trial.against] < FEWEST_ROWS {
        return found;
    }
    for (outcome, column) in data.outcomes.iter().enumerate() {
        let expected = trial.expected[outcome].as_deref();
        let enough = trial.targets.iter().filter(|policy| rows_of[**policy] >= FEWEST_ROWS);
        for policy in enough.take(MOST_LISTED) {
            let pair = Pair { data, policy: *policy, against: trial.against };
            let Some((t, freedom)) = pair.t_statistic(outcome, expected, propensity) else { continue };
            let f = t.abs() / freedom.sqrt();
            // The interval's end, by the critical value in the units of f.
            let critical = normal_quantile(0.5 + level / 2.0) / (freedom - 1.0).max(1.0).sqrt();
            let name = data.policies.name(*policy);
            let average = trial
                .averages
                .iter()
                .find(|own| own.by.is_none() && own.outcome == column.name && own.policy == name);
            if average.is_some_and(AverageEffect::lacks_overlap) {
                continue;
            }
            found.push(Sensitivity {
                outcome: column.name.to_owned(),
                policy: name.to_owned(),
                robustness: robustness(f),
                robustness_interval: robustness((f - critical).max(0.0)),
                hidden: average.and_then(|own| own.hidden.clone()),
            });
        }
    }
    found
}

pub(super) fn checks(
    trial: &Trial<'_>,
    data: &ValidTrainingData<'_>,
    found: &[Sensitivity],
) -> Vec<CheckResult> {
    data.outcomes.iter().map(|outcome| of_outcome(trial.averages, outcome.name, found)).collect()
}

fn of_outcome(averages: &[AverageEffect], name: &str, found: &[Sensitivity]) -> CheckResult {
    let own: Vec<&Sensitivity> = found.iter().filter(|own| own.outcome == name).collect();
    let apart: Vec<&&Sensitivity> = own.iter().filter(|own| is_apart(own)).collect();
    let lacks = |own: &&AverageEffect| own.by.is_none() && own.outcome == name && own.lacks_overlap();
    let n_lacking = averages.iter().filter(lacks).count();
    let (mut verdict, mut text) = match apart.iter().min_by(|a, b| strength(a).total_cmp(&strength(b))) {
        None if own.is_empty() && n_lacking == 0 => {
            (Verdict::Doubt, format!("too few rows of any policy to judge effects on `{name}`"))
        }
        None if own.is_empty() => (Verdict::Doubt, format!("no average effect on `{name}` can be judged")),
        None => (Verdict::Pass, format!("no average effect on `{name}` differs from zero")),
        Some(weakest) => of_weakest(weakest, name, apart.len()),
    };
    if n_lacking > 0 {
        verdict = verdict.min(Verdict::Doubt);
        text += &format!("; {n_lacking} more cannot be judged for want of overlap");
    }
    check_result("sensitivity", verdict, text)
}

/// Whether the average effect differs from zero: by its own interval, or by the pair's t-statistic where there is none.
fn is_apart(own: &Sensitivity) -> bool {
    own.hidden.as_ref().map_or(own.robustness_interval > 0.0, |hidden| hidden.vanishes_at > 1.0)
}

fn strength(own: &Sensitivity) -> f64 {
    own.hidden.as_ref().map_or(own.robustness, |hidden| hidden.vanishes_at)
}

fn of_weakest(weakest: &Sensitivity, name: &str, n_apart: usize) -> (Verdict, String) {
    let mut text = format!(
        "an unobserved confounder that explains {:.1} % of what is left of both treatment and `{name}` would explain the \
         average effect of `{}` away, the weakest of {n_apart} that differ from zero",
        100.0 * weakest.robustness,
        weakest.policy,
    );
    let mut is_weak = weakest.robustness < WEAK;
    if let Some(hidden) = &weakest.hidden {
        text +=
            &format!("; so would one that changes the odds of getting it {:.2} times", hidden.vanishes_at);
        is_weak |= hidden.vanishes_at < WEAK_FACTOR;
    }
    (if is_weak { Verdict::Doubt } else { Verdict::Pass }, text)
}

/// The robustness value of a partial Cohen's f.
fn robustness(f: f64) -> f64 {
    let square = f * f;
    0.5 * ((square * square + 4.0 * square).sqrt() - square)
}

/// The rows of two policies.
struct Pair<'a> {
    data: &'a ValidTrainingData<'a>,
    policy: usize,
    against: usize,
}

impl Pair<'_> {
    /// The t-statistic of the residual outcome on the residual treatment, and its degrees of freedom.
    ///
    /// m is that of all rows, where there is one: whatever is a function of x alone is unrelated to the residual treatment.
    fn t_statistic(&self, outcome: usize, m: Option<&[f64]>, propensity: &Propensity) -> Option<(f64, f64)> {
        let (data, n_policies) = (self.data, self.data.policies.len());
        let mut sums = [0.0; 6];
        let mut n_rows = 0.0;
        for (row, policy) in data.policy.iter().enumerate() {
            let policy = *policy as usize;
            let weight = data.weight.map_or(1.0, |weight| weight[row]);
            if (policy != self.policy && policy != self.against) || weight <= 0.0 {
                continue;
            }
            let own = propensity.of_row(row, n_policies);
            let (p, q) = (f64::from(own[self.policy]), f64::from(own[self.against]));
            let d = f64::from(u8::from(policy == self.policy)) - p / (p + q).max(f64::MIN_POSITIVE);
            let y = data.outcomes[outcome].values[row] - m.map_or(0.0, |m| m[row]);
            let terms = [1.0, d, y, d * d, d * y, y * y];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
            n_rows += 1.0;
        }
        let [mass, d, y, dd, dy, yy] = sums;
        let (dd, dy, yy) = (dd - d * d / mass, dy - d * y / mass, yy - y * y / mass);
        let freedom = n_rows - 2.0;
        let unexplained = yy - dy * dy / dd;
        let is_defined = freedom > 1.0 && dd > 0.0 && unexplained > 0.0;
        is_defined.then(|| (dy / (dd * unexplained / freedom).sqrt(), freedom))
    }
}

#[cfg(test)]
mod tests {
    use super::robustness;

    #[test]
    fn published_values_are_met() {
        // Darfur: t = 4.18 with 783 degrees of freedom has RV 13.9 % (Cinelli & Hazlett 2020, table 1).
        assert!((robustness(4.18 / 783.0_f64.sqrt()) - 0.139).abs() < 5e-4);
        // With the interval at 95 %: 7.6 %.
        let end = 4.18 / 783.0_f64.sqrt() - 1.963 / 782.0_f64.sqrt();
        assert!((robustness(end) - 0.076).abs() < 5e-4);
        assert_eq!(robustness(0.0), 0.0);
    }
}
