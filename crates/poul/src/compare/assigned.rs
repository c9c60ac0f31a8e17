//! Test rows by their own policies against what was assigned on average: how learners compare where arms are thin.

use serde::{Deserialize, Serialize};

use super::part::{EncodedTable, Part, Setting};
use super::result::Population;
use crate::data::{Design, pick};
use crate::effect::{AssignedTable, EffectModel, PolicyColumn, Support};
use crate::evaluate::{AssignedPolicies, AssignedReading, AssignedRows, ValidParams, assigned};
use crate::nuisance::{ObservedRows, Propensity, evaluated_nuisances};
use crate::{Progress, Result, Run, Seed};

/// The metrics of some test rows on one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssignedReadings {
    /// The outcome, as an index into the table's.
    pub(crate) outcome: usize,
    pub(crate) policies: AssignedPolicies,
    pub(crate) rows: usize,
    pub(crate) n_policies: usize,
    /// By [`Metric::ASSIGNED`](crate::evaluate::Metric::ASSIGNED).
    pub(crate) values: Vec<Option<f64>>,
    /// The same for each draw.
    pub(crate) draws: Vec<Vec<Option<f64>>>,
    pub(crate) notes: Vec<String>,
}

/// What the test rows of all learners have in common.
pub(crate) struct AssignedTest {
    /// By outcome, Y − m̂(x): m̂ as given, or by a ridge of the test rows, out of fold.
    residual: Vec<Vec<f64>>,
    propensity: Propensity,
    is_scored: Vec<bool>,
    is_seen: Vec<bool>,
    seed: Seed,
}

impl AssignedTest {
    /// Fits m̂ and π on the test rows. None in an observational design with full arms, where both would be networks that
    /// no table shows.
    pub(crate) fn new(
        table: &EncodedTable,
        part: &Part,
        train: &Part,
        setting: &Setting,
        (allow_unseen, thin_arms): (bool, bool),
        run: Run<'_>,
    ) -> Result<Option<Self>> {
        if setting.design == Design::Observational && !thin_arms {
            return Ok(None);
        }
        let policies = &setting.policies;
        let x = part.x(table.x());
        // By shares within strata, as evaluations have it.
        let rows = ObservedRows { stratum_table: None, ..part.observed(&x, setting) };
        let fitted = evaluated_nuisances(&rows, run)?;
        let Some(propensity) = fitted.propensity else { return Ok(None) };
        let residual = rows.outcomes.iter().zip(&fitted.predictions).map(|(outcome, fitted)| {
            match outcome.prediction.or(fitted.as_deref()) {
                Some(expected) => outcome.values.iter().zip(expected).map(|(y, m)| y - m).collect(),
                None => outcome.values.to_vec(),
            }
        });
        let residual = residual.collect();
        let trained = train.policy_rows(policies.len());
        let support = Support::new(policies, &trained);
        let is_scored = (0..policies.len())
            .map(|policy| allow_unseen || support.is_known(policies, policy, |_, _| false));
        let is_scored = is_scored.collect();
        let is_seen = trained.iter().map(|rows| *rows > 0).collect();
        Ok(Some(Self { residual, propensity: propensity.propensity, is_scored, is_seen, seed: run.seed }))
    }

    /// The readings of each population. `columns` are effects at hand, by outcome and target.
    pub(crate) fn readings(
        &self,
        effects: &dyn EffectModel,
        (table, part, setting): (&EncodedTable, &Part, &Setting),
        (targets, columns): (&[usize], &[Vec<f64>]),
        populations: &[(Population, Vec<u32>)],
        params: &ValidParams,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<AssignedReadings>>> {
        let assigned_table = AssignedTable {
            policies: &setting.policies,
            policy: &part.policy,
            propensity: &self.propensity,
            is_scored: &self.is_scored,
            against: setting.control,
            seed: self.seed,
        };
        let by_columns = |outcome: usize| {
            let own = targets.iter().zip(columns.iter().skip(outcome * targets.len()));
            let own: Vec<PolicyColumn<'_>> =
                own.map(|(policy, effects)| PolicyColumn { policy: *policy, effects }).collect();
            assigned_table.by_columns(&own)
        };
        let contrasts: Option<Vec<Vec<f64>>> = (0..self.residual.len()).map(by_columns).collect();
        let contrasts = match contrasts {
            Some(contrasts) => contrasts,
            None => assigned_table.by_model(effects, &part.x(table.x()), progress)?,
        };
        let mut all = Vec::with_capacity(populations.len());
        for (_, rows) in populations {
            let mut readings = Vec::new();
            let weight = part.weight.as_ref().map(|weight| pick(weight, rows));
            let cluster = part.cluster.as_ref().map(|cluster| pick(cluster, rows));
            let policy = pick(&part.policy, rows);
            for (outcome, (residual, contrast)) in self.residual.iter().zip(&contrasts).enumerate() {
                let (residual, contrast) = (pick(residual, rows), pick(contrast, rows));
                let measured = AssignedRows {
                    residual: &residual,
                    contrast: &contrast,
                    policy: &policy,
                    is_seen: Some(&self.is_seen),
                    weight: weight.as_deref(),
                    cluster: cluster.as_deref(),
                };
                let found = assigned(&measured, &params.bootstrap, progress)?;
                readings.extend(found.into_iter().map(|reading| kept(outcome, reading)));
            }
            all.push(readings);
        }
        Ok(all)
    }
}

fn kept(outcome: usize, AssignedReading { result, draws }: AssignedReading) -> AssignedReadings {
    let defined = |draw: Vec<f64>| draw.into_iter().map(|value| value.is_finite().then_some(value)).collect();
    AssignedReadings {
        outcome,
        policies: result.policies,
        rows: result.rows,
        n_policies: result.n_policies,
        values: vec![result.r_score, result.slope, result.rank_gain],
        draws: draws.into_iter().map(defined).collect(),
        notes: result.notes,
    }
}
