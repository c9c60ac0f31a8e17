//! The rows of one comparison taken out of the table, and comparisons stacked on each other.

use super::doubly_robust::dr_score;
use super::evaluation::{Effects, Outcome, Scored};
use super::ranked::Ranked;
use super::reading::Columns;
use super::sample::Sample;
use crate::{Error, Result};

/// Columns of the rows that got a policy or the one it is compared with.
#[derive(Default)]
pub(super) struct Pair {
    /// The table's row of each row.
    pub(super) row: Vec<u32>,
    score: Vec<f64>,
    outcome: Vec<f64>,
    treated: Vec<bool>,
    weight: Option<Vec<f64>>,
    cluster: Option<Vec<u32>>,
    dr_score: Vec<f64>,
    residual: Vec<f64>,
    arm_residual: Vec<f64>,
    truth: Option<Vec<f64>>,
}

/// Rows and summed weights of a comparison's arms (control, treated).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArmSizes {
    pub(super) n_rows: [usize; 2],
    pub(super) mass: [f64; 2],
}

impl ArmSizes {
    /// The sizes of every policy's comparison, by policy, in one pass over the table.
    pub(super) fn by_policy(table: &Scored<'_>) -> Vec<Self> {
        let mut n_rows = vec![0; table.policies.len()];
        let mut mass = vec![0.0; table.policies.len()];
        for (row, arm) in table.arm.iter().enumerate() {
            let weight = table.weight.map_or(1.0, |weight| weight[row]);
            n_rows[*arm as usize] += usize::from(weight > 0.0);
            mass[*arm as usize] += weight;
        }
        let against = table.against;
        let sizes = n_rows.iter().zip(&mass);
        sizes.map(|(n, m)| Self { n_rows: [n_rows[against], *n], mass: [mass[against], *m] }).collect()
    }

    /// Why nothing can be measured, where an arm has fewer than two rows.
    pub(super) fn too_few(&self) -> Option<String> {
        let [n_control, n_treated] = self.n_rows;
        (n_control < 2 || n_treated < 2).then(|| {
            format!("{n_treated} treated and {n_control} control rows: at least 2 of each are needed for any metric")
        })
    }
}

impl Pair {
    /// Takes the rows out; the weights of control rows are multiplied by `control_factor`.
    pub(super) fn new(
        table: &Scored<'_>,
        outcome: &Outcome<'_>,
        effects: &Effects<'_>,
        control_factor: Option<f64>,
    ) -> Result<Self> {
        let mut pair = Self::default();
        let mut weight = Vec::new();
        for (row, arm) in table.arm.iter().enumerate() {
            let Some(treated) = side(table, *arm, effects.policy) else { continue };
            let (score, observed) = (effects.values[row], outcome.values[row]);
            if !score.is_finite() {
                let policy = &table.policies[effects.policy];
                return Err(unusable(
                    row,
                    format!("the effect of `{policy}` on `{}` is {score}", outcome.name),
                ));
            }
            if !observed.is_finite() {
                return Err(unusable(row, format!("the outcome `{}` is {observed}", outcome.name)));
            }
            pair.row.push(row as u32);
            pair.score.push(score);
            pair.outcome.push(observed);
            pair.treated.push(treated);
            let factor = if treated { 1.0 } else { control_factor.unwrap_or(1.0) };
            weight.push(table.weight.map_or(1.0, |weight| weight[row]) * factor);
        }
        pair.truth = effects.truth.map(|truth| pair.taken(truth));
        if let Some(row) = pair.truth.iter().flatten().position(|truth| !truth.is_finite()) {
            let what = format!("the true effect of `{}` is not finite", table.policies[effects.policy]);
            return Err(unusable(pair.row[row] as usize, what));
        }
        pair.cluster =
            table.cluster.map(|cluster| pair.row.iter().map(|row| cluster[*row as usize]).collect());
        pair.adjust(table, outcome, effects.policy, &weight, control_factor.unwrap_or(1.0))?;
        pair.weight = (table.weight.is_some() || control_factor.is_some()).then_some(weight);
        Ok(pair)
    }

    /// Stacks comparisons; copies of a row form one cluster unless the table has clusters of its own.
    pub(super) fn stack(pairs: Vec<Self>) -> Self {
        let mut stacked = Self { truth: Some(Vec::new()), weight: Some(Vec::new()), ..Self::default() };
        let mut cluster = Vec::new();
        for pair in pairs {
            cluster.extend_from_slice(pair.cluster.as_deref().unwrap_or(&pair.row));
            stacked.row.extend(pair.row);
            stacked.score.extend(pair.score);
            stacked.outcome.extend(pair.outcome);
            stacked.treated.extend(pair.treated);
            stacked.dr_score.extend(pair.dr_score);
            stacked.residual.extend(pair.residual);
            stacked.arm_residual.extend(pair.arm_residual);
            append(&mut stacked.weight, pair.weight);
            append(&mut stacked.truth, pair.truth);
        }
        stacked.cluster = Some(cluster);
        stacked
    }

    /// The rows as a checked sample.
    pub(super) fn sample(&self) -> Result<Sample<'_>> {
        let mut sample = Sample::new(&self.score, &self.outcome, &self.treated)?;
        if let Some(weight) = &self.weight {
            sample = sample.with_weight(weight)?;
        }
        if let Some(cluster) = &self.cluster {
            sample = sample.with_cluster(cluster)?;
        }
        Ok(sample)
    }

    /// Columns beside score and outcome, in rank order.
    pub(super) fn columns(&self, ranked: &Ranked) -> Columns {
        Columns {
            dr_score: ranked.ranked_column(&self.dr_score),
            residual: ranked.ranked_column(&self.residual),
            arm_residual: ranked.ranked_column(&self.arm_residual),
            truth: self.truth.as_ref().map(|truth| ranked.ranked_column(truth)),
            residual_variance: None,
        }
    }

    /// The rows' values of a column of the table.
    pub(super) fn taken(&self, column: &[f64]) -> Vec<f64> {
        self.row.iter().map(|row| column[*row as usize]).collect()
    }

    /// Residual outcome, arm residual and doubly robust score of every row.
    ///
    /// The outcome model is the given m̂(x) (0 without one) moved to each arm's mean; the propensity is the share of
    /// the arm, or the given propensity among the two arms, with control counted `control_factor` times.
    fn adjust(
        &mut self,
        table: &Scored<'_>,
        outcome: &Outcome<'_>,
        policy: usize,
        weight: &[f64],
        control_factor: f64,
    ) -> Result<()> {
        let model = outcome.prediction.map(|prediction| self.taken(prediction));
        let model_of = |index: usize| model.as_ref().map_or(0.0, |model| model[index]);
        let mut mass = [0.0; 2];
        let mut sum = [0.0; 2];
        for (index, weight) in weight.iter().enumerate() {
            let arm = usize::from(self.treated[index]);
            mass[arm] += weight;
            sum[arm] += weight * (self.outcome[index] - model_of(index));
        }
        let arm_mean = [sum[0] / mass[0], sum[1] / mass[1]];
        let mean = (sum[0] + sum[1]) / (mass[0] + mass[1]);
        let share = mass[1] / (mass[0] + mass[1]);
        for index in 0..self.row.len() {
            let (row, treated) = (self.row[index] as usize, self.treated[index]);
            let propensity = match table.propensity {
                None => share,
                Some(columns) => {
                    let (ours, theirs) = (columns[policy][row], columns[table.against][row] * control_factor);
                    let propensity = ours / (ours + theirs);
                    if !(ours > 0.0 && theirs > 0.0 && propensity.is_finite()) {
                        let names = (&table.policies[policy], &table.policies[table.against]);
                        let what = format!(
                            "the propensities of `{}` and `{}` are {ours} and {theirs}",
                            names.0, names.1
                        );
                        return Err(unusable(row, what));
                    }
                    propensity
                }
            };
            let model = model_of(index);
            self.residual.push(self.outcome[index] - model - mean);
            self.arm_residual.push(f64::from(u8::from(treated)) - propensity);
            self.dr_score.push(dr_score(
                self.outcome[index],
                treated,
                model + arm_mean[1],
                model + arm_mean[0],
                propensity,
            ));
        }
        match self.residual.iter().position(|residual| !residual.is_finite()) {
            None => Ok(()),
            Some(index) => {
                let what = format!("the prediction of `{}` is not finite", outcome.name);
                Err(unusable(self.row[index] as usize, what))
            }
        }
    }
}

/// Whether a row of this arm is treated, is compared with, or (`None`) takes no part.
fn side(table: &Scored<'_>, arm: u32, policy: usize) -> Option<bool> {
    let arm = arm as usize;
    if arm == policy {
        Some(true)
    } else if arm == table.against {
        Some(false)
    } else {
        None
    }
}

/// Keeps a stacked column only while every part has it.
fn append(stacked: &mut Option<Vec<f64>>, part: Option<Vec<f64>>) {
    match (stacked.as_mut(), part) {
        (Some(stacked), Some(part)) => stacked.extend(part),
        _ => *stacked = None,
    }
}

fn unusable(row: usize, what: String) -> Error {
    Error::input(what).at_row(row).hint("drop the row, or give a finite number")
}
