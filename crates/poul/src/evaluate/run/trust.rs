//! Whether the effects of a model can be trusted: checks, places of policies, effects of atoms.

use super::nuisances::Nuisances;
use crate::data::{Design, Need, Roles, Source, Table};
use crate::effect::{Asked, ExposedRows};
use crate::evaluate::Evaluation;
use crate::evaluate::trust::{SampleRows, Trial, ValidTrustParams, components, examine, places};
use crate::model::Model;
use crate::net::RowSource;
use crate::{Kind, Progress, Result};

/// What to find out.
pub(super) struct Trust<'a> {
    pub(super) params: &'a ValidTrustParams,
    /// Training rows from which an atom counts as well seen.
    pub(super) min_rows: u64,
    /// The rows of the evaluation, and what their averages were taken with.
    pub(super) evaluated: (&'a Table, &'a Nuisances),
}

impl Trust<'_> {
    /// Adds what is found to the evaluation of the rows that `roles` describe.
    pub(super) fn add(
        &self,
        evaluation: &mut Evaluation,
        model: &Model,
        source: &Source,
        roles: &Roles,
        asked: &Asked,
        progress: &dyn Progress,
    ) -> Result<()> {
        let (policies, manifest) = (&asked.policies, model.manifest());
        let is_run = |policy: usize| {
            let own = manifest.policies.index(policies.name(policy));
            own.is_some_and(|own| manifest.policy_rows[own] > 0)
        };
        let mut is_shown: Vec<bool> = (0..policies.len()).map(is_run).collect();
        asked.targets.iter().chain([&asked.against]).for_each(|policy| is_shown[*policy] = true);
        let shown: Vec<usize> = (0..policies.len()).filter(|policy| is_shown[*policy]).collect();
        evaluation.policies =
            places(model, policies, &shown, asked.against, (self.min_rows, evaluation.level))?;
        let roles = with_design(model, source, roles, progress);
        let columns = model.columns(source, &roles, Need::EVALUATE)?;
        let columns = columns.with_populations(manifest.settings.populations(), source.schema())?;
        let exposure = manifest.exposure.as_ref();
        let rows = SampleRows::read(source, &columns, &manifest.encoder, exposure, policies, progress)?;
        let x = rows.features()?;
        let x = ExposedRows { x: &x, exposure: rows.exposure() };
        let rows_of = (&x as &dyn RowSource, rows.weight.as_deref());
        let atoms = components(model, policies, asked.against, evaluation.level, Some(rows_of))?;
        atoms.notes.iter().for_each(|note| progress.warn(note));
        evaluation.atoms = atoms.atoms;
        let (evaluated, nuisances) = self.evaluated;
        let trial = Trial {
            model,
            rows: &rows,
            policies,
            targets: &asked.targets,
            against: asked.against,
            averages: &evaluation.averages,
            expected: &nuisances.expected(evaluated, &rows.rows),
        };
        match examine(&trial, self.params, progress) {
            Ok(validation) => evaluation.validation = Some(validation),
            // Metrics were computed: rows that cannot be checked are told, not fatal.
            Err(error) if error.kind() == Kind::Input => {
                progress.warn(&format!("the assumptions could not be checked: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The roles with the design that the model was fitted under, as far as the table has its columns.
fn with_design(model: &Model, source: &Source, roles: &Roles, progress: &dyn Progress) -> Roles {
    let fitted = &model.manifest().roles;
    let mut roles = roles.clone();
    if roles.design != Design::Randomized || roles.stratum.is_some() || roles.propensity.is_some() {
        return roles;
    }
    let known = source.column_names();
    roles.design = fitted.design;
    roles.stratum = fitted.stratum.clone().filter(|name| known.contains(&name.as_str()));
    // A pattern that no column matches is an error to `check`.
    let with_propensity = Roles { propensity: fitted.propensity.clone(), ..roles.clone() };
    if fitted.propensity.is_some() && model.columns(source, &with_propensity, Need::EVALUATE).is_ok() {
        roles = with_propensity;
    }
    if roles.design == Design::Stratified && roles.stratum.is_none() && roles.propensity.is_none() {
        progress.warn("the data have no strata: the checks take the assignment for randomized");
        roles.design = Design::Randomized;
    }
    roles
}
