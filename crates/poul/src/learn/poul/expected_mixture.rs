//! E[α_T | x]: the mixture that a row's policy has on average, from π or by a cross-fitted regression of the atoms' mass
//! on the features. Its cost depends on the atoms, not on the policies.

use super::space::Mixtures;
use super::stage::Stage;
use crate::effect::ValidTrainingData;
use crate::nuisance::{
    Folds, OutcomeKind, OutcomeLoss, OutcomeModels, OutcomeParams, OutcomeProblem, Propensity, fit_outcome,
};
use crate::{Result, Run};

/// Expected mixtures, and which one each row has.
pub(super) struct ExpectedMixtures {
    /// E[α_T | ·] / κ over the atoms of the mixtures, row-major.
    pub(super) mass: Vec<f32>,
    /// Row of the table for each row of the data.
    pub(super) of_row: Vec<u32>,
    /// The regressions, where there are any.
    pub(super) models: Option<OutcomeModels>,
}

impl ExpectedMixtures {
    /// Σ_t π(t|x) α_t for every π that rows have.
    pub(super) fn of_propensity(propensity: &Propensity, mixtures: &Mixtures, n_rows: usize) -> Self {
        let n_policies = mixtures.rows.n_rows();
        let (table, of_row): (&[f32], Vec<u32>) = match propensity {
            Propensity::Shares(shares) => (shares, vec![0; n_rows]),
            Propensity::Strata { table, of_row } => (table, of_row.clone()),
            Propensity::Rows(table) => (table, (0..n_rows as u32).collect()),
        };
        let n_atoms = mixtures.atoms.len();
        let mut mass = vec![0.0; table.len() / n_policies.max(1) * n_atoms];
        for (mass, shares) in mass.chunks_mut(n_atoms).zip(table.chunks(n_policies)) {
            for (policy, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                mixtures.rows.row(policy).for_each(|(atom, value)| mass[atom] += share * value);
            }
        }
        Self { mass, of_row, models: None }
    }

    /// The atoms' mass regressed on the features: one trunk, a linear output for each atom, cross-fitted.
    pub(super) fn fit(
        data: &ValidTrainingData<'_>,
        mixtures: &Mixtures,
        weight: Option<&[f32]>,
        folds: &Folds,
        run: Run<'_>,
    ) -> Result<Self> {
        let (n_rows, n_atoms) = (data.n_rows(), mixtures.atoms.len());
        let mut mass = vec![0.0; n_rows * n_atoms];
        for (mass, policy) in mass.chunks_mut(n_atoms).zip(data.policy) {
            mixtures.rows.row(*policy as usize).for_each(|(atom, value)| mass[atom] = value);
        }
        let losses = vec![OutcomeLoss::Squared; n_atoms];
        let problem =
            OutcomeProblem { weight, cluster: data.cluster, ..OutcomeProblem::new(data.x, &mass, &losses) };
        let params = OutcomeParams {
            kind: OutcomeKind::Dragonnet,
            head_hidden: Vec::new(),
            policy_weight: 0.0,
            ..OutcomeParams::default()
        };
        let stage = Stage { name: "Expected mixture", progress: run.progress };
        let fit = fit_outcome(&problem, folds, &params.check()?, run.told(&stage))?;
        Ok(Self { mass: fit.predicted, of_row: (0..n_rows as u32).collect(), models: Some(fit.models) })
    }
}
