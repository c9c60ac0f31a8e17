//! How much of who gains more *for what it costs* can be learned from so many rows, by somebody who knows what everybody costs.
//!
//! Rows of a world tell gain = cost effect · (a + bᵀx), with the true effects on cost: a regression of what is left of GMV after
//! a linear outcome model on the cost contrast of the row's own policy times 1 and every feature. Rows count by the inverse square
//! of predicted GMV, as its noise grows with it, and b has a normal prior whose variance makes the rows most likely.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Error, Result, Silent, Source};

use super::{COLUMNS, Pair, averages, decided, effects};

/// Standard deviations of b that are tried, for features of variance 1.
const SPREADS: [f64; 7] = [0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0];
/// GMV is not predicted to be less than this share of its mean.
const LEAST_EXPECTED: f64 = 0.06;
/// Weight of no effect in the outcome model, in rows.
const RIDGE: f64 = 10.0;

/// What each policy's true rate returns, over T2 for all, and what rates return that are learned from `rows` rows; then the
/// normalised errors of effects that are true costs times the true rate of the policy, for T1 and T2.
pub(super) fn limit(simulation: &Simulation, folder: &Path) -> Result<[f64; 4]> {
    let (rows, users) = (simulation.rows as usize, simulation.test_rows.unwrap_or_default() as usize);
    // Only test rows have their truth written: the first of them are learned from.
    let all = Some((rows + users) as u64);
    let simulation = Simulation { rows: 2_000, test_rows: all, truth_rows: all, ..simulation.clone() };
    run(&simulation.check()?, folder, &Silent)?;
    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let open = |name: &str| Source::open(&folder.join(name).to_string_lossy());
    let truth = effects(open("truth.parquet")?.batches(&COLUMNS, 1 << 16)?, &policies)?;
    let table = Rows::read(&open("test.parquet")?, &policies)?;
    let rate = table.rates(&truth[..rows], policies.len())?;

    let means = averages(&truth);
    let (of_users, t2) = (&truth[rows..], policies.require("T2")?);
    let total = of_users.iter().fold([0.0; 2], |sum, own| [sum[0] + own[t2][0], sum[1] + own[t2][1]]);
    // Each policy at its true average, as normalised errors of one number for everybody are 1.
    let error = |policy: usize| {
        let rate = means[policy][0] / means[policy][1];
        let squares =
            |of: &dyn Fn(&Pair) -> f64| of_users.iter().map(|own| of(&own[policy]).powi(2)).sum::<f64>();
        (squares(&|own| rate * own[1] - own[0]) / squares(&|own| own[0] - means[policy][0])).sqrt()
    };
    let returned = |gain: &dyn Fn(usize, usize, f64) -> f64| -> Result<f64> {
        let believed: Vec<Vec<Pair>> = of_users
            .iter()
            .enumerate()
            .map(|(user, own)| {
                let each = own.iter().enumerate();
                each.map(|(policy, own)| [gain(user, policy, own[1]), own[1]]).collect()
            })
            .collect();
        let found = decided(&believed, of_users, total[1] / 3.0)?;
        Ok(found[0] / found[1] / (total[0] / total[1]))
    };
    let by_policy =
        |policy: usize| if means[policy][1] > 0.0 { means[policy][0] / means[policy][1] } else { 0.0 };
    Ok([
        returned(&|_, policy, cost| by_policy(policy) * cost)?,
        returned(&|user, _, cost| rate[rows + user] * cost)?,
        error(policies.require("T1")?),
        error(t2),
    ])
}

/// What is known of rows: features of variance 1 (first a column of ones), the policy, GMV.
struct Rows {
    x: Vec<f64>,
    width: usize,
    policy: Vec<usize>,
    gmv: Vec<f64>,
}

impl Rows {
    fn read(source: &Source, policies: &PolicySet) -> Result<Self> {
        let mut names = source.column_names();
        names.retain(|name| !["gmv", "cost", "policy", "month"].contains(name));
        let mut asked = names.clone();
        asked.extend(["policy", "gmv"]);
        let mut columns: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
        let (mut policy, mut gmv) = (Vec::new(), Vec::new());
        for batch in source.batches(&asked, 1 << 16)? {
            let batch = batch?;
            let column = |name: &str| {
                batch.column_by_name(name).ok_or_else(|| Error::other(format!("no column `{name}`")))
            };
            for (values, name) in columns.iter_mut().zip(&names) {
                values.extend(cells(column(name)?).unwrap_or_default());
            }
            gmv.extend(cells(column("gmv")?).unwrap_or_default());
            let given = column("policy")?.as_string::<i32>();
            for name in given.iter().flatten() {
                policy.push(policies.require(name)?);
            }
        }
        // Texts are left out.
        columns.retain(|values| values.len() == gmv.len());
        columns.iter_mut().for_each(|values| standardise(values));
        let width = 1 + columns.len();
        let mut x = vec![1.0; width * gmv.len()];
        for (place, values) in columns.iter().enumerate() {
            values.iter().enumerate().for_each(|(row, value)| x[row * width + 1 + place] = *value);
        }
        Ok(Self { x, width, policy, gmv })
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.x[row * self.width..(row + 1) * self.width]
    }

    /// a + bᵀx of all rows, learned from those whose truth is given.
    fn rates(&self, truth: &[Vec<Pair>], n_policies: usize) -> Result<Vec<f64>> {
        let n = truth.len();
        let mut shares = vec![0.0; n_policies];
        self.policy[..n].iter().for_each(|policy| shares[*policy] += 1.0 / n as f64);
        let contrast = |row: usize| {
            let expected: f64 = truth[row].iter().zip(&shares).map(|(own, share)| share * own[1]).sum();
            truth[row][self.policy[row]][1] - expected
        };
        let plain = Moments::of(n, self.width, |row| (1.0, 1.0, self.row(row), self.gmv[row]));
        let m = plain.solved(&vec![RIDGE; self.width])?.0;
        let mean = self.gmv[..n].iter().sum::<f64>() / n as f64;
        let expected = |row: usize| self.row(row).iter().zip(&m).map(|(x, m)| x * m).sum::<f64>();
        let left = Moments::of(n, self.width, |row| {
            let expected = expected(row);
            let weight = expected.max(LEAST_EXPECTED * mean).powi(-2);
            (weight, contrast(row), self.row(row), self.gmv[row] - expected)
        });
        // In units of the noise, so that a prior's precision can stand beside the rows'.
        let left = left.over_noise();
        let mut best: Option<(f64, Vec<f64>)> = None;
        for spread in SPREADS {
            let mut prior = vec![spread.powi(-2); self.width];
            prior[0] = 1e-6;
            let (found, fit, log_determinant) = left.solved(&prior)?;
            let log_prior: f64 = prior.iter().map(|own| own.ln()).sum();
            let likelihood = 0.5 * (fit - log_determinant + log_prior);
            if best.as_ref().is_none_or(|(most, _)| likelihood > *most) {
                best = Some((likelihood, found));
            }
        }
        let (_, b) = best.ok_or_else(|| Error::other("no prior fits"))?;
        let rate = |row: usize| self.row(row).iter().zip(&b).map(|(x, b)| x * b).sum::<f64>().max(0.0);
        Ok((0..self.gmv.len()).map(rate).collect())
    }
}

/// Σ weight · d·dᵀ, Σ weight · d·y and Σ weight · y², with d = size · x.
struct Moments {
    width: usize,
    n_rows: usize,
    square: Vec<f64>,
    pull: Vec<f64>,
    total: f64,
}

impl Moments {
    fn of<'x>(n_rows: usize, width: usize, row: impl Fn(usize) -> (f64, f64, &'x [f64], f64)) -> Self {
        let mut own =
            Self { width, n_rows, square: vec![0.0; width * width], pull: vec![0.0; width], total: 0.0 };
        for (weight, size, x, y) in (0..n_rows).map(row) {
            own.total += weight * y * y;
            for (i, a) in x.iter().enumerate() {
                let a = weight * size * a;
                own.pull[i] += a * y;
                own.square[i * width..=i * width + i]
                    .iter_mut()
                    .zip(x)
                    .for_each(|(sum, b)| *sum += a * size * b);
            }
        }
        own
    }

    /// Divided by the mean square of what is not explained, next to all of it.
    fn over_noise(self) -> Self {
        let noise = self.total / self.n_rows as f64;
        let scaled = |values: Vec<f64>| values.into_iter().map(|value| value / noise).collect();
        Self { square: scaled(self.square), pull: scaled(self.pull), total: self.total / noise, ..self }
    }

    /// The coefficients under a prior's precisions, how much they explain, and log |square + prior|.
    fn solved(&self, prior: &[f64]) -> Result<(Vec<f64>, f64, f64)> {
        let n = self.width;
        let mut factor = self.square.clone();
        (0..n).for_each(|i| factor[i * n + i] += prior[i]);
        for j in 0..n {
            for i in j..n {
                let sum: f64 = (0..j).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
                let rest = factor[i * n + j] - sum;
                factor[i * n + j] = if i == j { rest.sqrt() } else { rest / factor[j * n + j] };
            }
        }
        let log_determinant = 2.0 * (0..n).map(|i| factor[i * n + i].ln()).sum::<f64>();
        if !log_determinant.is_finite() {
            return Err(Error::other("features are collinear"));
        }
        let mut found = self.pull.clone();
        for i in 0..n {
            let sum: f64 = (0..i).map(|k| factor[i * n + k] * found[k]).sum();
            found[i] = (found[i] - sum) / factor[i * n + i];
        }
        for i in (0..n).rev() {
            let sum: f64 = (i + 1..n).map(|k| factor[k * n + i] * found[k]).sum();
            found[i] = (found[i] - sum) / factor[i * n + i];
        }
        let fit = found.iter().zip(&self.pull).map(|(b, pull)| b * pull).sum();
        Ok((found, fit, log_determinant))
    }
}

/// Numbers of a column, what is not known being NaN; none if it has texts.
fn cells(column: &ArrayRef) -> Option<Vec<f64>> {
    let known = |row: usize, value: f64| if column.is_null(row) { f64::NAN } else { value };
    let numbers = |values: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        values.enumerate().map(|(row, value)| known(row, value)).collect()
    };
    if let Some(own) = column.as_primitive_opt::<Float32Type>() {
        return Some(numbers(&mut own.values().iter().map(|value| f64::from(*value))));
    }
    if let Some(own) = column.as_primitive_opt::<Float64Type>() {
        return Some(numbers(&mut own.values().iter().copied()));
    }
    if let Some(own) = column.as_primitive_opt::<Int32Type>() {
        return Some(numbers(&mut own.values().iter().map(|value| f64::from(*value))));
    }
    if let Some(own) = column.as_primitive_opt::<Int64Type>() {
        return Some(numbers(&mut own.values().iter().map(|value| *value as f64)));
    }
    column
        .as_boolean_opt()
        .map(|own| numbers(&mut own.values().iter().map(|value| f64::from(u8::from(value)))))
}

/// To mean 0 and variance 1; what is not known counts as the mean.
fn standardise(values: &mut [f64]) {
    let known = || values.iter().filter(|value| value.is_finite());
    let n = known().count().max(1) as f64;
    let mean = known().sum::<f64>() / n;
    let variance = known().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let sd = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    for value in values {
        *value = if value.is_finite() { (*value - mean) / sd } else { 0.0 };
    }
}
