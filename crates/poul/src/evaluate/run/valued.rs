//! Rows with what happened, on which rules that give policies are valued: with a model's effects, or without.

use super::chosen::Chosen;
use super::measure::Compared;
use super::nuisances::Nuisances;
use super::predicted::Predicted;
use crate::data::{Batch, Budget, Columns, Design, Need, Roles, RowReader, Source, Table};
use crate::effect::{ExposedRows, Question};
use crate::evaluate::{Effects, Scored};
use crate::model::{Answer, Model};
use crate::net::{DenseRows, RowSource};
use crate::nuisance::Propensity;
use crate::policy::{Assigner, PolicySet};
use crate::{Error, Progress, Result, Run, Seed};

/// The rows, ready to be valued on.
pub(crate) struct ValuedRows<'a> {
    /// Rows with effects of all candidates.
    pub(crate) table: Scored<'a>,
    /// How they came to their policies.
    pub(crate) propensity: &'a Propensity,
    /// The number of each row in its table.
    pub(crate) number: &'a [u64],
}

/// Where the rows are and what is to be known of them.
pub(crate) struct ValuedSource<'a> {
    pub(crate) source: &'a Source,
    /// Which column is what; features are the model's.
    pub(crate) roles: &'a Roles,
    /// Policies that rules may give, and the one that others are compared with.
    pub(crate) candidates: &'a [String],
    pub(crate) against: &'a str,
    pub(crate) allow_unseen: bool,
    pub(crate) budget: &'a Budget,
    pub(crate) seed: Seed,
}

impl ValuedSource<'_> {
    /// Reads the rows, scores them by `model`, and hands them to `act`. `policies` holds the model's own.
    pub(crate) fn by_model<R>(
        &self,
        model: &Model,
        policies: &PolicySet,
        progress: &dyn Progress,
        act: impl FnOnce(&ValuedRows<'_>) -> Result<R>,
    ) -> Result<R> {
        let source = self.source;
        let roles = Roles { features: Vec::new(), exclude: Vec::new(), ..self.roles.clone() };
        let columns = model.columns(source, &roles, Need::EVALUATE);
        let columns = columns.map_err(|error| source.locate(error))?;
        check_design(&columns)?;
        let outcomes = super::by_model::outcomes_of(&columns, model)?;
        let in_rows = match model.is_factorial() {
            true => Some(policies.union(&PolicySet::from_data(source, &columns, None, progress)?)?),
            false => None,
        };
        let policies = in_rows.as_ref().unwrap_or(policies);
        let question =
            Question { policies: self.candidates.to_vec(), against: Some(self.against.to_owned()) };
        let Answer { asked, scorer, .. } = model.ask(policies, &question, self.allow_unseen)?;
        let chosen = Chosen { asked, scorer: Some(scorer), thin_arms: false };
        super::by_model::check_memory(source, chosen.asked.targets.len() * outcomes.len(), self.budget)?;
        let mut predicted = Predicted::new(model, &chosen, outcomes);
        let width = model.manifest().encoder.width();
        let (rows, matrix) = predicted.read(source, &columns, self.budget, |_| Ok(()), progress)?;
        let effects: Vec<Effects<'_>> = predicted
            .columns()
            .map(|(policy, outcome, values)| Effects { policy, outcome: Some(outcome), values, truth: None })
            .collect();
        let x = DenseRows::new(matrix.values(), width)?;
        let x = ExposedRows { x: &x, exposure: predicted.exposed.as_ref() };
        let asked = &chosen.asked;
        let compared =
            Compared { rows: &rows, policies: &asked.policies, against: asked.against, effects: &effects };
        self.hand_over(&compared, Some(&x), progress, act)
    }

    /// Reads the rows and hands them to `act`, without anybody's predictions: all effects count as 0 before the rows speak.
    pub(crate) fn without_model<R>(
        &self,
        progress: &dyn Progress,
        act: impl FnOnce(&ValuedRows<'_>) -> Result<R>,
    ) -> Result<R> {
        let source = self.source;
        let roles = Roles { features: Vec::new(), exclude: vec!["*".to_owned()], ..self.roles.clone() };
        let columns = roles.check(source.schema(), Need { features: false, ..Need::EVALUATE });
        let mut columns = columns.map_err(|error| source.locate(error))?;
        columns.features.clear();
        check_design(&columns)?;
        let policies = PolicySet::from_data(source, &columns, None, progress)?;
        let find = |name: &String| {
            policies.index(name).ok_or_else(|| {
                let what = format!("no row has the policy `{name}`, which the allocation gives");
                source.locate(Error::input(what).hint(
                    "without rows of it only a model can say what it is worth: give the model before the data",
                ))
            })
        };
        let against = find(&self.against.to_owned())?;
        let targets = self.candidates.iter().map(find).collect::<Result<Vec<usize>>>()?;
        let mut assigner = Assigner::new(&policies, &columns);
        let each = |table: &mut Table, batch: &Batch, reader: &RowReader| {
            table.policy.extend(assigner.assign_batch(batch, reader)?);
            Ok(None)
        };
        let rows = Table::read(source, &columns, "Reading", each, progress);
        let rows = rows.map_err(|error| source.locate(error))?;
        let nothing = vec![0.0; rows.n_rows()];
        let effects: Vec<Effects<'_>> = targets
            .into_iter()
            .filter(|policy| *policy != against)
            .map(|policy| Effects { policy, outcome: None, values: &nothing, truth: None })
            .collect();
        let compared = Compared { rows: &rows, policies: &policies, against, effects: &effects };
        self.hand_over(&compared, None, progress, act)
    }

    fn hand_over<R>(
        &self,
        compared: &Compared<'_>,
        x: Option<&dyn RowSource>,
        progress: &dyn Progress,
        act: impl FnOnce(&ValuedRows<'_>) -> Result<R>,
    ) -> Result<R> {
        let nuisances = Nuisances::of(compared, x, Run::new(self.seed, progress));
        let nuisances = nuisances.map_err(|error| self.source.locate(error))?;
        let Some(propensity) = &nuisances.propensity else {
            return Err(Error::input("how rows came to their policies is not known")
                .hint("value the allocation on rows that were randomised"));
        };
        let mut outcomes = compared.outcomes();
        for (outcome, fitted) in outcomes.iter_mut().zip(&nuisances.predictions) {
            outcome.prediction = outcome.prediction.or(fitted.as_deref());
        }
        let rows = ValuedRows { table: compared.scored(&outcomes), propensity, number: &compared.rows.rows };
        act(&rows).map_err(|error| self.source.locate(error))
    }
}

/// What nobody randomised says nothing certain of a rule.
fn check_design(columns: &Columns) -> Result<()> {
    if columns.design != Design::Observational || !columns.propensity.is_empty() {
        return Ok(());
    }
    Err(Error::usage("these rows were not randomised: what an allocation is worth cannot be told from them")
        .hint("give rows of a randomised experiment (‹design=randomized›), or the chances that rows had: ‹propensity›"))
}
