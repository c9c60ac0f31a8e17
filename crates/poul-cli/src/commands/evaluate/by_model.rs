//! Evaluating a model: the rows are scored by it, then measured as any other effects.

use poul::data::{Columns, Design, Feature, Need, Roles, Source};
use poul::effect::{Question, Scores};
use poul::evaluate::Effects;
use poul::model::{Answer, Model};
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Error, Kind, Progress, Result};

use super::rows::Rows;
use super::{measure, params, summary};
use crate::args::{Common, Evaluate};
use crate::commands::{JsonTarget, about_data, effect};
use crate::progress::Terminal;
use crate::settings::DataSettings;
use crate::specs::Specs;

/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;

pub(super) fn run(
    args: &Evaluate,
    model: &str,
    data: &str,
    common: &Common,
    terminal: &Terminal,
) -> Result<()> {
    let model = Model::load(model)?;
    let source = Source::open(data)?;
    let defaults = default_roles(&model, &source, terminal);
    let settings = DataSettings::load_over(defaults, &args.roles, &args.policy_files)?;
    let roles = Roles { features: Vec::new(), exclude: Vec::new(), ..settings.roles };
    let truth = Specs::parse(&args.truth, "--truth")?;
    let params = params(args, common, &roles)?;
    let json = JsonTarget::open(args.json.as_deref())?;
    truth.check(&source, &roles).map_err(|error| about_data(error, data))?;
    let columns = model.columns(&source, &roles, Need::EVALUATE);
    let mut columns = columns.map_err(|error| about_data(error, data))?;
    let outcomes = outcomes_of(&columns, &model)?;
    let answer = ask(args, &model, &source, &columns, terminal)?;
    let asked = &answer.asked;

    let n_features = columns.features.len();
    for column in truth.columns() {
        let known = columns.features[n_features..].iter().any(|feature| feature.name == column);
        if !known {
            let kind = poul::data::ColumnKind::Number;
            columns.features.push(Feature { name: column.to_owned(), kind });
        }
    }
    let mut effects = Predicted::new(&model, &answer, outcomes);
    let table = Rows::read(
        &source,
        &columns,
        &asked.policies,
        n_features,
        |features| effects.add(features),
        terminal,
    );
    let table = table.map_err(|error| about_data(error, data))?;
    let truths = truth.assign(&columns, &asked.policies, asked.against, &asked.targets)?;
    let truth_of =
        |policy, outcome| truths.get(&(policy, outcome)).map(|column| table.scores[*column].as_slice());
    let predicted: Vec<Effects<'_>> = effects
        .columns()
        .map(|(policy, outcome, values)| Effects {
            policy,
            outcome: Some(outcome),
            values,
            truth: truth_of(policy, outcome),
        })
        .collect();
    let evaluation =
        measure(&table, &columns, &asked.policies, asked.against, &predicted, &params, terminal)?;
    json.write(&evaluation, || summary(&evaluation))
}

/// The roles that the model was fitted with, as far as they matter here and the table has them.
fn default_roles(model: &Model, source: &Source, progress: &dyn Progress) -> Roles {
    let fitted = &model.manifest().roles;
    let known = source.column_names();
    let has = |name: &String| known.contains(&name.as_str());
    let kept = |role: &str, name: &Option<String>| {
        let kept = name.clone().filter(has);
        if let (Some(name), None) = (name, &kept) {
            progress.warn(&format!("the data have no column `{name}`: evaluated without a {role}"));
        }
        kept
    };
    Roles {
        treatment: fitted.treatment.clone(),
        treatment_columns: fitted.treatment_columns.clone(),
        outcome: fitted.outcome.clone(),
        control: model.manifest().control.clone(),
        weight: kept("weight", &fitted.weight),
        cluster: kept("cluster", &fitted.cluster),
        prediction: fitted.prediction.clone().into_iter().filter(|(_, column)| has(column)).collect(),
        // Strata and propensities play no part in the metrics.
        design: Design::Randomized,
        ..Roles::default()
    }
}

/// The place of each outcome among the model's.
fn outcomes_of(columns: &Columns, model: &Model) -> Result<Vec<usize>> {
    let known = model.effects().outcomes();
    let place = |name: &String| {
        known.iter().position(|known| known == name).ok_or_else(|| {
            let known = known.iter().map(String::as_str);
            Error::unknown(Kind::Usage, "outcome", name, "outcomes of the model", known)
        })
    };
    columns.outcomes.iter().map(place).collect()
}

/// The policies to compare: those asked for, or those that the rows have and the model can score.
fn ask<'m>(
    args: &Evaluate,
    model: &'m Model,
    source: &Source,
    columns: &Columns,
    terminal: &Terminal,
) -> Result<Answer<'m>> {
    let (mut policies, _) = effect::policies(model, &args.policy_files)?;
    let in_data = PolicySet::from_data(source, columns, None, terminal)?;
    if model.is_factorial() {
        policies = policies.union(&in_data)?;
    }
    let mut question = Question { policies: args.policy.clone(), against: args.against.clone() };
    if question.policies.is_empty() {
        let against = question.against.as_ref().or(model.manifest().control.as_ref());
        for name in in_data.names().iter().filter(|name| against != Some(name)) {
            // A name that is not defined is told with its row, when rows are read.
            let Some(policy) = policies.index(name) else { continue };
            match model.support(&policies, policy).require_seen() {
                Err(error) if !args.allow_unseen => terminal.warn(&format!("left out: {error}")),
                _ => question.policies.push(name.clone()),
            }
        }
        if question.policies.is_empty() {
            return Err(Error::input("the rows have no policy that can be compared")
                .hint("an effect needs two policies; check the treatment column, or see --allow-unseen"));
        }
    }
    let answer = model.ask(&policies, &question, args.allow_unseen)?;
    answer.scorer.notes().iter().for_each(|note| terminal.warn(note));
    Ok(answer)
}

/// Effects as they are predicted, batch after batch.
struct Predicted<'a> {
    model: &'a Model,
    answer: &'a Answer<'a>,
    /// The place of each outcome among the model's.
    outcomes: Vec<usize>,
    /// For each outcome and target a column.
    values: Vec<Vec<f64>>,
    encoded: Vec<f32>,
}

impl<'a> Predicted<'a> {
    fn new(model: &'a Model, answer: &'a Answer<'a>, outcomes: Vec<usize>) -> Self {
        let values = vec![Vec::new(); outcomes.len() * answer.asked.targets.len()];
        Self { model, answer, outcomes, values, encoded: Vec::new() }
    }

    fn add(&mut self, features: &[arrow_array::ArrayRef]) -> Result<()> {
        use arrow_array::Array;
        let encoder = &self.model.manifest().encoder;
        let (width, n_rows) = (encoder.width(), features.first().map_or(0, Array::len));
        self.encoded.resize(n_rows * width, 0.0);
        encoder.encode(features, &mut self.encoded)?;
        let n_targets = self.answer.asked.targets.len();
        let block_rows = (BLOCK_PAIRS / n_targets).max(64);
        for block in self.encoded.chunks(block_rows * width) {
            let Scores { mean, .. } = self.answer.scorer.score(&DenseRows::new(block, width)?, false)?;
            for (outcome, columns) in self.outcomes.iter().zip(self.values.chunks_mut(n_targets)) {
                for (target, column) in columns.iter_mut().enumerate() {
                    let own = mean[*outcome].iter().skip(target).step_by(n_targets);
                    column.extend(own.map(|effect| f64::from(*effect)));
                }
            }
        }
        Ok(())
    }

    /// Policy, outcome and effects.
    fn columns(&self) -> impl Iterator<Item = (usize, usize, &[f64])> {
        let targets = &self.answer.asked.targets;
        self.values
            .iter()
            .enumerate()
            .map(|(place, values)| (targets[place % targets.len()], place / targets.len(), values.as_slice()))
    }
}
