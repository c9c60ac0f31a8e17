//! Balance of the centred treatment: E[(h(T) − e_h(X))·x] = 0 for every feature if π is right, which is what makes the
//! score orthogonal (the paper's lemma on Neyman orthogonality). Standard errors hold for unequal variances, and by cluster.

use rayon::prelude::*;

use super::axes::TreatmentAxes;
use super::{check_result, short};
use crate::effect::ValidTrainingData;
use crate::evaluate::{Balance, CheckResult, Verdict};
use crate::net::{DenseRows, RowSource};
use crate::nuisance::Propensity;
use crate::stats::normal_quantile;

/// Probability of a doubt where there is balance, over all features and axes together.
const LEVEL: f64 = 0.01;
/// Correlations from here on are more than a doubt.
const LARGE: f64 = 0.1;
/// Units that must carry a sum for its z-score to mean something: a feature with three ones has none.
const FEWEST_UNITS: f64 = 20.0;
/// Features listed.
const MOST_LISTED: usize = 100;

pub(super) struct Found {
    /// The largest |correlation| first.
    pub(super) features: Vec<Balance>,
    pub(super) check: CheckResult,
}

pub(super) fn balance(
    data: &ValidTrainingData<'_>,
    x: &DenseRows<'_>,
    names: &[String],
    axes: &TreatmentAxes,
    propensity: &Propensity,
) -> Found {
    let n_rows = data.n_rows();
    let weight: Vec<f64> = (0..n_rows).map(|row| data.weight.map_or(1.0, |weight| weight[row])).collect();
    let given: Vec<f64> = data.policy.iter().flat_map(|policy| axes.of(*policy as usize).to_vec()).collect();
    let expected = expected(axes, propensity, data.policies.len(), n_rows);
    let centred: Vec<f64> = given.iter().zip(&expected).map(|(h, e)| h - e).collect();
    let columns = Columns { n_axes: axes.n_axes, weight: &weight, units: &units(data.cluster, n_rows) };
    let (after, before) = (columns.centre(&centred), columns.centre(&given));
    let rows: Vec<u32> = (0..n_rows as u32).collect();
    let mut values = vec![0.0; n_rows * names.len()];
    x.copy_rows(&rows, &mut values);
    let found: Vec<Option<Balance>> = (0..names.len())
        .into_par_iter()
        .map(|feature| {
            let own: Vec<f64> =
                values.iter().skip(feature).step_by(names.len()).map(|value| f64::from(*value)).collect();
            let own = columns.centre_one(own);
            let (correlation, z) = columns.largest(&own, &after)?;
            let before = columns.largest(&own, &before).map_or(0.0, |(correlation, _)| correlation);
            Some(Balance { feature: names[feature].clone(), correlation, before, z })
        })
        .collect();
    let mut features: Vec<Balance> = found.into_iter().flatten().collect();
    features.sort_by(|a, b| b.correlation.total_cmp(&a.correlation));
    let check = judge(&features, axes);
    features.truncate(MOST_LISTED);
    Found { features, check }
}

fn judge(features: &[Balance], axes: &TreatmentAxes) -> CheckResult {
    let name = "balance";
    let worst = features.iter().max_by(|a, b| a.z.total_cmp(&b.z));
    let Some(worst) = worst else {
        return check_result(
            name,
            Verdict::Doubt,
            "no feature varies enough to see whether it predicts the policy".to_owned(),
        );
    };
    let n_tests = features.len() * axes.n_axes;
    let threshold = normal_quantile(1.0 - LEVEL / (2 * n_tests) as f64);
    let beyond: Vec<&Balance> = features.iter().filter(|own| own.z > threshold).collect();
    let text = |worst: &Balance| {
        format!(
            "`{}` (correlation {}, z = {}; {} before accounting for propensities)",
            worst.feature,
            short(worst.correlation),
            short(worst.z),
            short(worst.before)
        )
    };
    match beyond.first() {
        None => check_result(
            name,
            Verdict::Pass,
            format!(
                "no feature predicts which policy a row received: of {}, the closest is {}, and z above {} would be too much",
                features.len(),
                text(worst),
                short(threshold)
            ),
        ),
        // Sorted by correlation.
        Some(largest) => {
            let verdict = if largest.correlation >= LARGE { Verdict::Fail } else { Verdict::Doubt };
            let predict = if beyond.len() == 1 { "predicts" } else { "predict" };
            let text = format!(
                "{} of {} features {predict} which policy a row received, beyond what the propensities say: most of all {}",
                beyond.len(),
                features.len(),
                text(largest)
            );
            check_result(name, verdict, text)
        }
    }
}

/// e(x) = Σ_t π(t|x)·h(t) of each row.
fn expected(axes: &TreatmentAxes, propensity: &Propensity, n_policies: usize, n_rows: usize) -> Vec<f64> {
    let mean = |shares: &[f32]| {
        let mut sum = vec![0.0; axes.n_axes];
        for (policy, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            sum.iter_mut().zip(axes.of(policy)).for_each(|(sum, h)| *sum += f64::from(*share) * h);
        }
        sum
    };
    match propensity {
        Propensity::Shares(shares) => mean(shares).repeat(n_rows),
        Propensity::Strata { table, of_row } => {
            let by_stratum: Vec<Vec<f64>> = table.chunks(n_policies.max(1)).map(mean).collect();
            of_row.iter().flat_map(|stratum| by_stratum[*stratum as usize].clone()).collect()
        }
        Propensity::Rows(table) => table.par_chunks(n_policies.max(1)).flat_map_iter(mean).collect(),
    }
}

/// The rows of each cluster together.
fn units(cluster: Option<&[u32]>, n_rows: usize) -> Vec<Vec<usize>> {
    let Some(cluster) = cluster else { return (0..n_rows).map(|row| vec![row]).collect() };
    let n_clusters = cluster.iter().max().map_or(0, |last| *last as usize + 1);
    let mut units = vec![Vec::new(); n_clusters];
    cluster.iter().enumerate().for_each(|(row, cluster)| units[*cluster as usize].push(row));
    units.retain(|rows| !rows.is_empty());
    units
}

struct Columns<'a> {
    n_axes: usize,
    weight: &'a [f64],
    units: &'a [Vec<usize>],
}

/// A column less its mean.
struct Centred {
    values: Vec<f64>,
    square: f64,
}

impl Columns<'_> {
    fn centre(&self, values: &[f64]) -> Vec<Centred> {
        let column = |axis: usize| values.iter().skip(axis).step_by(self.n_axes.max(1)).copied().collect();
        (0..self.n_axes).map(|axis| self.centre_one(column(axis))).collect()
    }

    fn centre_one(&self, mut values: Vec<f64>) -> Centred {
        let total: f64 = self.weight.iter().sum();
        let mean = values.iter().zip(self.weight).map(|(v, w)| v * w).sum::<f64>() / total;
        values.iter_mut().for_each(|value| *value -= mean);
        let square = values.iter().zip(self.weight).map(|(v, w)| w * v * v).sum();
        Centred { values, square }
    }

    /// The largest |correlation| of a feature with an axis, and its |z|; none where too few units carry it.
    fn largest(&self, feature: &Centred, axes: &[Centred]) -> Option<(f64, f64)> {
        let of_axis = |axis: &Centred| {
            let (mut sum, mut square, mut fourth) = (0.0, 0.0, 0.0);
            for rows in self.units {
                let own: f64 =
                    rows.iter().map(|row| self.weight[*row] * feature.values[*row] * axis.values[*row]).sum();
                sum += own;
                square += own * own;
                fourth += own.powi(4);
            }
            let scale = (feature.square * axis.square).sqrt();
            let is_carried = fourth > 0.0 && square * square / fourth >= FEWEST_UNITS && scale > 0.0;
            is_carried.then(|| ((sum / scale).abs(), sum.abs() / square.sqrt()))
        };
        axes.iter().filter_map(of_axis).max_by(|a, b| a.0.total_cmp(&b.0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rand::RngExt;

    use super::*;
    use crate::Seed;
    use crate::effect::{OutcomeColumn, TrainingData};
    use crate::policy::PolicySet;

    const N_ROWS: usize = 3000;

    /// Rows whose treatment follows the first of three features, `copies` times each.
    fn found(is_known: bool, copies: usize) -> Found {
        let mut rng = Seed::new(4).rng();
        let (mut x, mut policy, mut table, mut cluster) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for row in 0..N_ROWS {
            let own: [f32; 3] = std::array::from_fn(|_| rng.random_range(-1.0..1.0));
            let share = 1.0 / (1.0 + (-1.5 * own[0]).exp());
            let got = u32::from(rng.random_range(0.0..1.0) < share);
            for _ in 0..copies {
                x.extend(own);
                policy.push(got);
                table.extend([1.0 - share, share]);
                cluster.push(row as u32);
            }
        }
        let mut builder = PolicySet::builder();
        builder.add("a", "s", "x", 1.0).add("b", "s", "y", 1.0);
        let policies = builder.build().unwrap();
        let x = DenseRows::new(&x, 3).unwrap();
        let values: Vec<f64> = (0..policy.len()).map(|row| row as f64).collect();
        let outcomes = vec![OutcomeColumn { name: "y", values: &values, prediction: None }];
        let mut data = TrainingData::new(&x, &policies, &policy, outcomes);
        data.cluster = (copies > 1).then_some(cluster.as_slice());
        let propensity = match is_known {
            true => Propensity::Rows(Arc::new(table)),
            false => Propensity::shares(&policy, None, 2),
        };
        let axes = TreatmentAxes { n_axes: 1, values: vec![-1.0, 1.0] };
        let names = ["first", "second", "third"].map(String::from);
        balance(&data.check().unwrap(), &x, &names, &axes, &propensity)
    }

    #[test]
    fn the_right_propensity_balances_and_shares_do_not() {
        let right = found(true, 1);
        assert_eq!(right.check.verdict, Verdict::Pass, "{}", right.check.text);
        let worst = right.features.iter().find(|own| own.feature == "first").unwrap();
        assert!(worst.correlation < 0.06 && worst.before > 0.3, "{worst:?}");
        let wrong = found(false, 1);
        assert_eq!(wrong.check.verdict, Verdict::Fail, "{}", wrong.check.text);
        assert_eq!(wrong.features[0].feature, "first");
        assert!(
            wrong.check.text.starts_with("1 of 3 features predicts which policy a row received"),
            "{}",
            wrong.check.text
        );
    }

    #[test]
    fn a_row_twice_in_a_cluster_is_no_second_observation() {
        let (once, twice) = (found(true, 1), found(true, 2));
        for (once, twice) in once.features.iter().zip(&twice.features) {
            assert_eq!(once.feature, twice.feature);
            assert!((once.z - twice.z).abs() < 1e-6 && (once.correlation - twice.correlation).abs() < 1e-9);
        }
    }
}
