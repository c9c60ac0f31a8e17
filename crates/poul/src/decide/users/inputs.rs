//! What an allocation is made from: a model, its policies, and a table of users.

use super::candidates::Candidates;
use super::request::AllocationRequest;
use super::scored::{ScoredUsers, find_columns};
use super::terms::Terms;
use crate::data::{Columns, Need, Roles, Source};
use crate::model::{DataUse, Model};
use crate::policy::PolicySet;
use crate::{Error, Progress, Result};

/// Everything that is read.
#[derive(Clone, Copy)]
pub struct AllocationInputs<'a> {
    /// The effects.
    pub model: &'a Model,
    /// The model's own policies, and perhaps others over the same contexts.
    pub policies: &'a PolicySet,
    /// The users.
    pub users: &'a Source,
    /// Limits of groups: see [`AllocationRequest::group`].
    pub group_budgets: Option<&'a Source>,
}

impl<'a> AllocationInputs<'a> {
    /// Whether these are the rows that the model learned from: an error, unless that is forced.
    pub(super) fn check_training(&self, force: bool) -> Result<bool> {
        let trained = is_trained_on(self.model, self.users)?;
        if trained && !force {
            return Err(self.users.locate(training_table()));
        }
        Ok(trained)
    }

    /// The columns to read of users.
    pub(super) fn columns(&self, request: &AllocationRequest, terms: &Terms) -> Result<Columns> {
        let fitted = &self.model.manifest().roles;
        let known = self.users.column_names();
        let id = match request.id.is_empty() && fitted.id.iter().all(|id| known.contains(&id.as_str())) {
            true => fitted.id.clone(),
            false => request.id.clone(),
        };
        let roles = Roles {
            id,
            population: request.population.clone(),
            // Its default would collide with an id column of that name; users are scored whatever was done to them.
            treatment: fitted.treatment.clone(),
            treatment_columns: fitted.treatment_columns.clone(),
            ..Roles::default()
        };
        let expressions: Vec<&str> = terms.expressions.iter().map(String::as_str).collect();
        let columns = self.model.columns(self.users, &roles, Need::SCORE);
        let columns = columns
            .and_then(|columns| find_columns(self.users, columns, &expressions, request.group.as_deref()));
        columns.map_err(|error| self.users.locate(error))
    }

    /// Starts a pass over the users.
    pub(super) fn scored(
        &self,
        candidates: &'a Candidates<'a>,
        columns: &Columns,
        request: &AllocationRequest,
        terms: &Terms,
    ) -> Result<ScoredUsers<'a>> {
        let has_group = request.group.is_some();
        ScoredUsers::start(self.model, candidates, self.users, columns, has_group, terms.is_cautious())
    }

    /// Fingerprints of the tables that the model was fitted on.
    pub(super) fn trained_on(&self) -> Vec<String> {
        self.model.manifest().data.iter().map(|data| data.fingerprint.clone()).collect()
    }

    /// Names the users in an error about their content.
    pub(super) fn locate(&self, error: Error) -> Error {
        self.users.locate(error)
    }

    pub(super) fn note_unlike(&self, trained_on: &[String], progress: &dyn Progress) {
        if self.trained_on() != trained_on {
            progress.warn("the prices were found with another model: they are in the units of its effects");
        }
    }
}

/// Whether the model learned effects from just this table.
pub(super) fn is_trained_on(model: &Model, source: &Source) -> Result<bool> {
    let fingerprint = source.fingerprint()?;
    let experiments = model.manifest().data.iter().filter(|data| data.used_for == DataUse::Experiment);
    Ok(experiments.into_iter().any(|data| data.fingerprint == fingerprint))
}

pub(super) fn training_table() -> Error {
    Error::input("the model was fitted on this very table: its effects look better here than they are").hint(
        "take rows that the model has not seen, or say that you know: ‹force›; outcomes of these rows flatter the allocation",
    )
}
