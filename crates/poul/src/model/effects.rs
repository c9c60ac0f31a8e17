//! Effects of every row of a table, asked of a model: of which policies, what stands beside them, and where they go.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{Answer, CertificateParams, Model};
use crate::data::{Columns, Need, Roles, Source};
use crate::effect::{EffectTable, PolicySupport, Question};
use crate::policy::PolicySet;
use crate::{Progress, Result};

/// Effects as they are asked for. Everything but the table has a default.
#[must_use = "nothing is scored before `write` or `collect`"]
pub struct EffectRequest<'a> {
    model: &'a Model,
    source: &'a Source,
    policies: &'a PolicySet,
    question: Question,
    interval: Option<f64>,
    allow_unseen: bool,
    support: bool,
    min_rows: u64,
    wide: bool,
    id: Option<Vec<String>>,
    population: Option<String>,
}

/// What was scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The rows written.
    pub rows: u64,
    /// The policies.
    pub policies: Vec<String>,
    /// The policy compared with.
    pub against: String,
    /// How well the training data support each policy.
    pub support: Vec<PolicySupport>,
    /// For each policy, the share of its mixture on atoms with enough training rows.
    pub supported_shares: Vec<f64>,
}

impl Model {
    /// The effects of policies on every row of a table: say what differs from the defaults, then
    /// [`write`](EffectRequest::write) or [`collect`](EffectRequest::collect).
    ///
    /// ```no_run
    /// # use poul::{Model, Silent, Source};
    /// let (model, users) = (Model::load("model.poul")?, Source::open("users.parquet")?);
    /// model.effect(&users).policy(["coupon"]).interval(Some(0.9)).write("effects.parquet", &Silent)?;
    /// # Ok::<(), poul::Error>(())
    /// ```
    pub fn effect<'a>(&'a self, source: &'a Source) -> EffectRequest<'a> {
        EffectRequest {
            model: self,
            source,
            policies: &self.manifest.policies,
            question: Question::default(),
            interval: None,
            allow_unseen: false,
            support: false,
            min_rows: CertificateParams::default().min_rows,
            wide: false,
            id: None,
            population: None,
        }
    }
}

impl<'a> EffectRequest<'a> {
    /// Policies that may be asked for: the model's own and others over the same contexts. Default: the model's own.
    pub fn policies(mut self, policies: &'a PolicySet) -> Self {
        self.policies = policies;
        self
    }

    /// The policies asked for, by name or as combinations of factorial columns. Default: all but the one compared with.
    pub fn policy(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.question.policies = names.into_iter().map(Into::into).collect();
        self
    }

    /// The policy compared with. Default: the model's control.
    pub fn against(mut self, name: Option<String>) -> Self {
        self.question.against = name;
        self
    }

    /// The level of intervals from the ensemble, in columns beside the effects. Default: none.
    pub fn interval(mut self, level: Option<f64>) -> Self {
        self.interval = level;
        self
    }

    /// Whether policies on atoms that no training row carried are scored, as far as they are known. Default: they are an error.
    pub fn allow_unseen(mut self, allow: bool) -> Self {
        self.allow_unseen = allow;
        self
    }

    /// Whether columns say how well the training data support each policy. Default: not.
    pub fn support(mut self, support: bool) -> Self {
        self.support = support;
        self
    }

    /// Training rows from which an atom counts as well seen. Default: 100.
    pub fn min_rows(mut self, n_rows: u64) -> Self {
        self.min_rows = n_rows;
        self
    }

    /// Whether there is one row for each row of the table, with a column for each outcome and policy. Default: one row for
    /// each row and policy.
    pub fn wide(mut self, wide: bool) -> Self {
        self.wide = wide;
        self
    }

    /// The columns that identify rows. Default: those of the training data, if the table has them; the row number otherwise.
    pub fn id(mut self, columns: Option<Vec<String>>) -> Self {
        self.id = columns;
        self
    }

    /// The rows that are scored, an expression. Default: all.
    pub fn population(mut self, expression: Option<String>) -> Self {
        self.population = expression;
        self
    }

    /// Writes the effects to a file, `.parquet` or `.csv`; see [`EffectTable::write`] for its columns.
    pub fn write(&self, path: impl AsRef<Path>, progress: &dyn Progress) -> Result<Scored> {
        self.answer(progress, |answer, shares, table| {
            let rows = table.write(self.source, path.as_ref(), progress)?;
            Ok(Scored {
                rows,
                policies: answer.names(),
                against: answer.against().to_owned(),
                support: answer.support.clone(),
                supported_shares: shares.to_vec(),
            })
        })
    }

    /// As [`write`](Self::write), to memory.
    pub fn collect(&self, progress: &dyn Progress) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        self.answer(progress, |_, _, table| table.collect(self.source, progress))
    }

    fn answer<R>(
        &self,
        progress: &dyn Progress,
        act: impl FnOnce(&Answer<'_>, &[f64], &EffectTable<'_>) -> Result<R>,
    ) -> Result<R> {
        let model = self.model;
        let columns = self.columns()?;
        let answer = model.ask(self.policies, &self.question, self.allow_unseen)?;
        answer.scorer.notes().iter().for_each(|note| progress.warn(note));
        let shares = model.supported_shares(&answer.asked.policies, &answer.asked.targets, self.min_rows);
        let table = EffectTable {
            encoder: &model.manifest.encoder,
            columns: &columns,
            exposure: model.manifest.exposure.as_ref(),
            scorer: answer.scorer.as_ref(),
            outcomes: model.effects.outcomes(),
            policies: &answer.names(),
            against: answer.against(),
            interval: self.interval,
            unseen_share: (self.allow_unseen || self.support).then_some(answer.unseen_share.as_slice()),
            support: self.support.then_some(shares.as_slice()),
            wide: self.wide,
        };
        act(&answer, &shares, &table)
    }

    fn columns(&self) -> Result<Columns> {
        let fitted = &self.model.manifest.roles;
        let known = self.source.column_names();
        let has_ids = fitted.id.iter().all(|id| known.contains(&id.as_str()));
        let roles = Roles {
            id: self.id.clone().unwrap_or_else(|| if has_ids { fitted.id.clone() } else { Vec::new() }),
            population: self.population.clone(),
            // Its default would collide with an id column of that name; rows are scored whatever was done to them.
            treatment: fitted.treatment.clone(),
            treatment_columns: fitted.treatment_columns.clone(),
            ..Roles::default()
        };
        let columns = self.model.columns(self.source, &roles, Need::SCORE);
        columns.map_err(|error| self.source.locate(error))
    }
}
