//! Test rows by their own policies against what was assigned on average: how learners compare where arms are thin.

use serde::{Deserialize, Serialize};

use super::part::{Part, Setting, Table, pick};
use super::result::Population;
use crate::data::Design;
use crate::effect::{AssignedTable, EffectModel, PolicyColumn, Support};
use crate::evaluate::{AssignedPolicies, AssignedReading, AssignedRows, ValidParams, assigned};
use crate::nuisance::{Assignment, EvaluatedRows, Propensity, PropensityColumn, evaluated_nuisances};
use crate::{Progress, Result, Seed};

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
        table: &Table,
        part: &Part,
        train: &Part,
        setting: &Setting<'_>,
        (allow_unseen, thin_arms): (bool, bool),
        seed: Seed,
        progress: &dyn Progress,
    ) -> Result<Option<Self>> {
        if setting.design == Design::Observational && !thin_arms {
            return Ok(None);
        }
        let policies = setting.policies;
        let given = |outcome: usize| part.predictions.iter().find(|(of, _)| *of == outcome);
        let wanted: Vec<usize> =
            (0..part.outcomes.len()).filter(|outcome| given(*outcome).is_none()).collect();
        let outcomes: Vec<&[f64]> = wanted.iter().map(|outcome| part.outcomes[*outcome].as_slice()).collect();
        let columns: Vec<PropensityColumn<'_>> =
            (table.dataset.propensity_columns.iter().zip(&part.propensity))
                .map(|(own, values)| PropensityColumn { column: &own.column, policy: &own.policy, values })
                .collect();
        let weight: Option<Vec<f32>> =
            part.weight.as_ref().map(|weight| weight.iter().map(|weight| *weight as f32).collect());
        let x = part.x(table.x());
        let rows = EvaluatedRows {
            x: Some(&x),
            assignment: Assignment {
                policy_names: policies.names(),
                policy: &part.policy,
                weight: weight.as_deref(),
                cluster: part.cluster.as_deref(),
                rows: Some(&part.numbers),
            },
            design: setting.design,
            stratum: part.stratum.as_deref().map(|stratum| (stratum, table.dataset.stratum_labels.names())),
            propensity: &columns,
            outcomes: &outcomes,
        };
        let fitted = evaluated_nuisances(&rows, seed, progress)?;
        let Some(propensity) = fitted.propensity else { return Ok(None) };
        let residual = (0..part.outcomes.len()).map(|outcome| {
            let place = wanted.iter().position(|own| *own == outcome);
            let fitted = place.and_then(|place| fitted.predictions.as_ref().map(|all| &all[place]));
            match given(outcome).map(|(_, values)| values).or(fitted) {
                Some(expected) => part.outcomes[outcome].iter().zip(expected).map(|(y, m)| y - m).collect(),
                None => part.outcomes[outcome].clone(),
            }
        });
        let residual = residual.collect();
        let mut trained = vec![0_u64; policies.len()];
        train.policy.iter().for_each(|policy| trained[*policy as usize] += 1);
        let support = Support::new(policies, &trained);
        let is_scored = (0..policies.len())
            .map(|policy| allow_unseen || support.is_known(policies, policy, |_, _| false));
        let is_scored = is_scored.collect();
        let is_seen = trained.iter().map(|rows| *rows > 0).collect();
        Ok(Some(Self { residual, propensity: propensity.propensity, is_scored, is_seen, seed }))
    }

    /// The readings of each population. `columns` are effects at hand, by outcome and target.
    pub(crate) fn readings(
        &self,
        effects: &dyn EffectModel,
        (table, part, setting): (&Table, &Part, &Setting<'_>),
        (targets, columns): (&[usize], &[Vec<f64>]),
        populations: &[(Population, Vec<u32>)],
        params: &ValidParams,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<AssignedReadings>>> {
        let assigned_table = AssignedTable {
            policies: setting.policies,
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
