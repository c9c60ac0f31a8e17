//! Rows that come in parts, each from a table of its own: scored and summed up where they are, in two passes (see
//! [`summary`](crate::evaluate::summary)).

use super::by_model::outcomes_of;
use super::chosen::{Chosen, FEWEST_ROWS, FEWEST_THIN_ROWS};
use super::predicted::Predicted;
use super::{EvaluationRequest, ValidEvaluationRequest};
use crate::data::{Columns, Design, Need, Roles, RowReader, Source};
use crate::effect::Question;
use crate::evaluate::arms_are_thin;
use crate::evaluate::summary::{Known, Outline, Part, Plan, Shape, SummedEvaluation, Sums, evaluation};
use crate::model::{Answer, Model};
use crate::policy::{Assigner, PolicySet};
use crate::{Error, Result, counted};

/// Most comparisons at once: each has buckets of its own.
const MOST_COMPARISONS: usize = 128;

/// The first pass: rows are outlined.
pub struct InParts<'m> {
    model: &'m Model,
    request: &'m EvaluationRequest,
    chosen: Chosen<'m>,
    notes: Vec<String>,
}

/// The second pass: rows are summed up.
pub struct SummedInParts<'m> {
    rows: InParts<'m>,
    plan: Plan,
}

impl<'m> InParts<'m> {
    /// Gets ready to score every policy that may be compared: those asked for, or all that the model can score. `policies` are
    /// the model's own and perhaps others; of a factorial design, rows have no others.
    pub fn new(
        model: &'m Model,
        policies: Option<&PolicySet>,
        request: &'m ValidEvaluationRequest,
    ) -> Result<Self> {
        let request = &request.request;
        check_settings(request)?;
        let policies = policies.unwrap_or(&model.manifest().policies);
        let against = request.against.clone().or_else(|| model.manifest().control.clone());
        let mut question = Question { policies: request.policy.clone(), against };
        if question.policies.is_empty() {
            let base = question.against.as_ref().and_then(|name| policies.index(name));
            let others: Vec<usize> = (0..policies.len()).filter(|policy| Some(*policy) != base).collect();
            let supports = model.support(policies, &others);
            let is_scored = |(_, support): &(&usize, crate::effect::PolicySupport)| {
                request.allow_unseen || support.require_seen().is_ok()
            };
            let scored = others.iter().zip(supports).filter(is_scored);
            question.policies = scored.map(|(policy, _)| policies.name(*policy).to_owned()).collect();
            if question.policies.is_empty() {
                return Err(Error::input("the model has no policy that can be compared")
                    .hint("name policies, or see ‹allow_unseen›"));
            }
        }
        let n_comparisons = question.policies.len() * request.roles.outcome.len();
        if n_comparisons > MOST_COMPARISONS {
            return Err(Error::usage(format!(
                "{n_comparisons} comparisons of policies and outcomes, more than {MOST_COMPARISONS}"
            ))
            .hint("name those that matter: ‹policy=NAME›"));
        }
        Self::of_question(model, policies, request, &question, Vec::new())
    }

    fn of_question(
        model: &'m Model,
        policies: &PolicySet,
        request: &'m EvaluationRequest,
        question: &Question,
        mut notes: Vec<String>,
    ) -> Result<Self> {
        let Answer { asked, scorer, .. } = model.ask(policies, question, request.allow_unseen)?;
        notes.extend_from_slice(scorer.notes());
        let chosen = Chosen { asked, scorer: Some(scorer), thin_arms: false };
        Ok(Self { model, request, chosen, notes })
    }

    /// The columns that are read of a table.
    pub fn columns(&self, source: &Source) -> Result<Columns> {
        let roles = Roles { features: Vec::new(), exclude: Vec::new(), ..self.request.roles.clone() };
        let columns = self.model.columns(source, &roles, Need::EVALUATE)?;
        outcomes_of(&columns, self.model)?;
        Ok(columns)
    }

    /// An outline of no rows.
    pub fn outline(&self) -> Outline {
        Outline::new(&self.shape())
    }

    /// Adds the rows of a table.
    pub fn add(&self, outline: &mut Outline, source: &Source) -> Result<()> {
        self.each(source, |part| outline.add(part, &self.shape()))
    }

    /// Goes on with the outline of all rows, and the policies that have rows enough.
    pub fn second_pass(self, outline: Outline) -> Result<SummedInParts<'m>> {
        let Chosen { asked, .. } = &self.chosen;
        let rows = outline.policy_rows();
        if rows.len() != asked.policies.len() {
            return Err(Error::other("an outline of another question"));
        }
        if rows[asked.against] == 0 {
            let name = asked.policies.name(asked.against);
            return Err(Error::input(format!(
                "no row has the policy `{name}`, which others are compared with"
            ))
            .hint("add its rows, or compare with a policy that the rows have: ‹against=NAME›"));
        }
        let thin_arms = arms_are_thin(&rows, Some(asked.against));
        let fewest = if thin_arms { FEWEST_THIN_ROWS } else { FEWEST_ROWS };
        let is_kept = |target: &usize| !self.request.policy.is_empty() || rows[*target] >= fewest;
        let places: Vec<usize> =
            (0..asked.targets.len()).filter(|place| is_kept(&asked.targets[*place])).collect();
        let mut notes = self.notes.clone();
        let with_rows = asked.targets.iter().filter(|target| rows[**target] > 0).count();
        if with_rows > places.len() {
            let n = with_rows - places.len();
            notes.push(format!(
                "left out: {n} of {}, with too few rows",
                counted(with_rows, "policy", "policies")
            ));
        }
        if places.is_empty() {
            return Err(Error::input("the rows have no policy that can be compared")
                .hint("an effect needs two policies; check the treatment column, or evaluate a sample on one machine"));
        }
        let names = |place: &usize| asked.policies.name(asked.targets[*place]).to_owned();
        let question = Question {
            policies: places.iter().map(names).collect(),
            against: Some(asked.policies.name(asked.against).to_owned()),
        };
        let outline = outline.with_targets(&places, asked.targets.len());
        let mut rows = Self::of_question(self.model, &asked.policies, self.request, &question, notes)?;
        rows.chosen.thin_arms = thin_arms;
        let plan = Plan::new(outline, &rows.shape())?;
        Ok(SummedInParts { rows, plan })
    }

    fn shape(&self) -> Shape<'_> {
        let Chosen { asked, .. } = &self.chosen;
        Shape {
            outcomes: &self.request.roles.outcome,
            policies: asked.policies.names(),
            targets: &asked.targets,
            against: asked.against,
        }
    }

    /// Scores the rows of a table and hands them on, some at a time.
    fn each(&self, source: &Source, mut act: impl FnMut(&Part<'_>) -> Result<()>) -> Result<()> {
        let columns = self.columns(source)?;
        let outcomes = outcomes_of(&columns, self.model)?;
        let mut reader = RowReader::new(source, &columns)?;
        let mut assigner = Assigner::new(&self.chosen.asked.policies, &columns);
        while let Some(batch) = reader.next_batch()? {
            let policy = assigner.assign_batch(&batch, &reader)?;
            let mut predicted = Predicted::new(self.model, &self.chosen, outcomes.clone());
            predicted.add(&batch.features, &batch.exposure)?;
            let effects: Vec<&[f64]> = predicted.columns().map(|(_, _, values)| values).collect();
            let mut predictions = vec![None; outcomes.len()];
            for (outcome, values) in &batch.predictions {
                predictions[*outcome] = Some(values.as_slice());
            }
            act(&Part {
                policy: &policy,
                weight: batch.weight.as_deref(),
                outcomes: &batch.outcomes[..outcomes.len()],
                predictions: &predictions,
                effects: &effects,
            })?;
        }
        Ok(())
    }
}

impl SummedInParts<'_> {
    /// Sums of no rows.
    pub fn sums(&self) -> Sums {
        Sums::new(&self.plan)
    }

    /// Adds the rows of a table.
    pub fn add(&self, sums: &mut Sums, source: &Source) -> Result<()> {
        self.rows.each(source, |part| sums.add(part, &self.rows.shape(), &self.plan))
    }

    /// What the sums of all rows amount to.
    pub fn evaluation(&self, sums: &Sums) -> SummedEvaluation {
        let InParts { request, chosen, notes, .. } = &self.rows;
        let known = Known {
            is_randomized: request.roles.design == Design::Randomized && request.roles.propensity.is_none(),
            has_clusters: request.roles.cluster.is_some(),
            level: request.level,
        };
        evaluation(sums, &self.rows.shape(), &self.plan, known, chosen.thin_arms, notes.clone())
    }
}

/// What sums cannot know is refused rather than left out without a word.
fn check_settings(request: &EvaluationRequest) -> Result<()> {
    let asked = [
        ("effects", !request.effects.is_empty()),
        ("truth", !request.truth.is_empty()),
        ("cost_curve", request.cost_curve.is_some()),
        ("by", !request.by.is_empty()),
        ("placebo", request.placebo > 0),
    ];
    match asked.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((name, _)) => Err(Error::usage(format!("‹{name}› needs all rows in one place"))
            .hint("leave it out, or evaluate a sample on one machine")),
        None => Ok(()),
    }
}
