//! Evaluating a model: the rows are scored by it, then measured as any other effects.

use poul::data::{Columns, Design, Feature, Labels, MatrixBuilder, Need, Roles, RowReader, Source, Unseen};
use poul::effect::{Question, Scores};
use poul::evaluate::Effects;
use poul::model::{Answer, Model};
use poul::net::DenseRows;
use poul::policy::{Assigner, PolicySet};
use poul::{Error, Kind, Progress, Result, Seed};

use super::nuisances::Nuisances;
use super::rows::Rows;
use super::sampled::SampledRows;
use super::trust::Trust;
use super::{by_column, measure, params, provenance, summary};
use crate::args::{Common, Evaluate};
use crate::commands::{JsonTarget, about_data, effect};
use crate::progress::Terminal;
use crate::report::{self, ReportTarget};
use crate::settings::{self, DataSettings};
use crate::specs::Specs;

/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;

pub(super) fn run(
    args: &Evaluate,
    [model, data]: [&str; 2],
    typed: &[String],
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
    let trust = Trust::new(&args.checks, params.bootstrap.level, common)?;
    let json = JsonTarget::open(args.json.as_deref())?;
    let page = ReportTarget::open(args.report.as_deref())?;
    truth.check(&source, &roles).map_err(|error| about_data(error, data))?;
    let columns = model.columns(&source, &roles, Need::EVALUATE);
    let mut columns = columns.map_err(|error| about_data(error, data))?;
    let outcomes = outcomes_of(&columns, &model)?;
    let answer = ask(args, &model, &source, &columns, terminal);
    let answer = answer.map_err(|error| about_data(error, data))?;
    let asked = &answer.asked;
    check_memory(&source, asked.targets.len() * outcomes.len(), common)?;

    let n_features = columns.features.len();
    for column in truth.columns() {
        let known = columns.features[n_features..].iter().any(|feature| feature.name == column);
        if !known {
            let kind = poul::data::ColumnKind::Number;
            columns.features.push(Feature { name: column.to_owned(), kind });
        }
    }
    let by = by_column::features(&args.by, &source, &columns).map_err(|error| about_data(error, data))?;
    let n_by = by.len();
    columns.features.extend(by);
    let mut effects = Predicted::new(&model, &answer, outcomes);
    let mut sampled = SampledRows::new(&columns.features[..n_features]);
    let (width, budget) = (model.manifest().encoder.width(), settings::budget(common)?);
    let mut x = MatrixBuilder::new(width, source.n_rows(), &budget)?;
    let table = Rows::read(
        &source,
        &columns,
        &asked.policies,
        n_features,
        n_by,
        |features| {
            effects.add(features)?;
            sampled.add(features)?;
            let encoded = &effects.encoded;
            x.append(encoded.len() / width.max(1), |rows| {
                rows.copy_from_slice(encoded);
                Ok(())
            })
        },
        terminal,
    );
    let table = table.map_err(|error| about_data(error, data))?;
    let x = x.finish()?;
    let rows = DenseRows::new(x.values(), width)?;
    let seed = Seed::new(common.seed);
    let nuisances = Nuisances::of(&table, &columns, &asked.policies, Some(&rows), seed, terminal);
    let nuisances = nuisances.map_err(|error| about_data(error, data))?;
    effects.unseen.notes(&model.manifest().encoder).iter().for_each(|note| terminal.warn(note));
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
    let (policies, against) = (&asked.policies, asked.against);
    let evaluation = measure(&table, &columns, policies, against, &predicted, &nuisances, &params, terminal);
    let mut evaluation = evaluation.map_err(|error| about_data(error, data))?;
    drop(x);
    evaluation.who_gains = sampled.who_gains(&table, &columns, policies, against, &predicted)?;
    trust.add(&mut evaluation, &model, &source, &roles, asked, terminal)?;
    evaluation.provenance = Some(provenance::of_model(&model, &source, typed, common)?);
    page.write(|| report::of_evaluation(&evaluation))?;
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
    let stratum = kept("stratum", &fitted.stratum);
    // The pattern has one `*`, which stands for the policy.
    let matches = |pattern: &String| {
        let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
        known.iter().any(|name| name.starts_with(before) && name.ends_with(after))
    };
    let propensity = fitted.propensity.clone().filter(matches);
    if let (Some(pattern), None) = (&fitted.propensity, &propensity) {
        progress
            .warn(&format!("the data have no column like `{pattern}`: evaluated without given propensities"));
    }
    let design = match fitted.design {
        Design::Stratified if stratum.is_none() && propensity.is_none() => {
            progress.warn("without strata, average effects take assignment as random");
            Design::Randomized
        }
        design => design,
    };
    Roles {
        treatment: fitted.treatment.clone(),
        treatment_columns: fitted.treatment_columns.clone(),
        outcome: fitted.outcome.clone(),
        control: model.manifest().control.clone(),
        weight: kept("weight", &fitted.weight),
        cluster: kept("cluster", &fitted.cluster),
        prediction: fitted.prediction.clone().into_iter().filter(|(_, column)| has(column)).collect(),
        stratum,
        propensity,
        design,
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
    if model.is_factorial() {
        policies = policies.union(&PolicySet::from_data(source, columns, None, terminal)?)?;
    }
    let mut question = Question { policies: args.policy.clone(), against: args.against.clone() };
    if question.policies.is_empty() {
        let against = question.against.as_ref().or(model.manifest().control.as_ref());
        question.policies = comparable(args, model, source, columns, &policies, against, terminal)?;
    }
    let answer = model.ask(&policies, &question, args.allow_unseen)?;
    answer.scorer.notes().iter().for_each(|note| terminal.warn(note));
    Ok(answer)
}

/// The policies with rows enough to be measured, and atoms that were seen. What is left out is said.
fn comparable(
    args: &Evaluate,
    model: &Model,
    source: &Source,
    columns: &Columns,
    policies: &PolicySet,
    against: Option<&String>,
    terminal: &Terminal,
) -> Result<Vec<String>> {
    const FEWEST_ROWS: u64 = 2;
    let rows = rows_of_policies(source, columns, policies, terminal)?;
    let in_data = |policy: &usize| rows[*policy] > 0 && against != Some(&policies.names()[*policy]);
    let in_data: Vec<usize> = (0..policies.len()).filter(in_data).collect();
    let enough: Vec<usize> = in_data.iter().copied().filter(|policy| rows[*policy] >= FEWEST_ROWS).collect();
    if enough.len() < in_data.len() {
        let n = in_data.len() - enough.len();
        terminal.warn(&format!("left out: {n} of {} policies have a single row", in_data.len()));
    }
    let mut chosen = Vec::with_capacity(enough.len());
    for (policy, support) in enough.iter().zip(model.support(policies, &enough)) {
        match support.require_seen() {
            Err(error) if !args.allow_unseen => terminal.warn(&format!("left out: {error}")),
            _ => chosen.push(policies.name(*policy).to_owned()),
        }
    }
    if chosen.is_empty() {
        return Err(Error::input("the rows have no policy that can be compared")
            .hint("an effect needs two policies; check the treatment column, or see --allow-unseen"));
    }
    Ok(chosen)
}

fn rows_of_policies(
    source: &Source,
    columns: &Columns,
    policies: &PolicySet,
    progress: &dyn Progress,
) -> Result<Vec<u64>> {
    let mut treatment = columns.clone();
    (treatment.features, treatment.outcomes, treatment.predictions) = (Vec::new(), Vec::new(), Vec::new());
    (treatment.weight, treatment.cluster, treatment.stratum) = (None, None, None);
    treatment.propensity.clear();
    let mut counts = vec![0; policies.len()];
    let mut assigner = Assigner::new(policies, columns);
    let mut reader = RowReader::new(source, &treatment)?;
    progress.start("Counting policies", "rows", source.n_rows());
    while let Some(batch) = reader.next_batch()? {
        let labels: Vec<&Labels> = (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
        for policy in assigner.assign(&batch.treatment, &labels, &batch.rows)? {
            counts[policy as usize] += 1;
        }
        progress.advance(batch.n_rows() as u64);
    }
    progress.finish();
    Ok(counts)
}

/// Every effect is kept until all are measured.
fn check_memory(source: &Source, n_columns: usize, common: &Common) -> Result<()> {
    let budget = settings::budget(common)?.bytes;
    let needed = source.n_rows().unwrap_or(0).saturating_mul(n_columns as u64).saturating_mul(8);
    if needed <= budget {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
    let what = format!("the effects to measure take {:.1} GiB of {:.1}", gib(needed), gib(budget));
    Err(Error::usage(what)
        .hint("choose policies with --policy, or rows with --population, or raise --memory"))
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
    unseen: Unseen,
}

impl<'a> Predicted<'a> {
    fn new(model: &'a Model, answer: &'a Answer<'a>, outcomes: Vec<usize>) -> Self {
        let values = vec![Vec::new(); outcomes.len() * answer.asked.targets.len()];
        Self { model, answer, outcomes, values, encoded: Vec::new(), unseen: Unseen::default() }
    }

    fn add(&mut self, features: &[arrow_array::ArrayRef]) -> Result<()> {
        use arrow_array::Array;
        let encoder = &self.model.manifest().encoder;
        let (width, n_rows) = (encoder.width(), features.first().map_or(0, Array::len));
        self.encoded.resize(n_rows * width, 0.0);
        encoder.encode_counting(features, &mut self.encoded, &mut self.unseen)?;
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
