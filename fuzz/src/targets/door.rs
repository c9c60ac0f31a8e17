//! The front door: a generated experiment is fitted, scored, evaluated, saved and loaded, and what must not matter is changed.
//!
//! An input is the experiment as JSON, from which its rows follow.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, RecordBatch, StringArray, UInt32Array,
};
use poul::data::{Design, Need, Roles, Source};
use poul::effect::{EffectTable, Question, Settings};
use poul::evaluate::run::{EvaluationRequest, evaluate_model, fitted_roles};
use poul::model::Model;
use poul::policy::PolicySet;
use poul::{Error, Kind, Silent};
use serde::{Deserialize, Serialize};

use super::Target;
use crate::execution::{Ended, promised, refused};
use crate::front_door::{self, Fitting};
use crate::random::Random;

/// Learners that fit a small table in milliseconds; the first ones are drawn most.
const LEARNERS: [&str; 8] =
    ["ridge", "constant", "ridge", "uplift-forest", "causal-forest", "s-learner", "random", "dr-learner"];
const DRAWS: usize = 20;

pub(crate) fn open(_: &Path) -> Result<Box<dyn Target>, String> {
    Ok(Box::new(Door))
}

struct Door;

/// An experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Case {
    seed: u64,
    rows: usize,
    policies: usize,
    contexts: usize,
    outcomes: usize,
    numbers: usize,
    learner: String,
    /// Outcomes are about 10 to this power.
    outcome_size: i32,
    /// So are features.
    feature_size: i32,
    weighted: bool,
    design: Design,
    quirk: Quirk,
}

/// What is odd about the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Quirk {
    None,
    ConstantOutcome,
    ConstantFeatures,
    MissingFeatures,
    SameFeatures,
    OneRowArms,
    NearlyAllControl,
    WeightsOfZero,
    HugeWeights,
    OutcomeIsPolicy,
    FeatureIsPolicy,
    Outlier,
    DuplicateRows,
}

const QUIRKS: [Quirk; 13] = [
    Quirk::None,
    Quirk::ConstantOutcome,
    Quirk::ConstantFeatures,
    Quirk::MissingFeatures,
    Quirk::SameFeatures,
    Quirk::OneRowArms,
    Quirk::NearlyAllControl,
    Quirk::WeightsOfZero,
    Quirk::HugeWeights,
    Quirk::OutcomeIsPolicy,
    Quirk::FeatureIsPolicy,
    Quirk::Outlier,
    Quirk::DuplicateRows,
];

impl Target for Door {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let size = |random: &mut Random| match random.below(8) {
            0 => random.below(640) as i32 - 320,
            1 | 2 => random.below(60) as i32 - 30,
            _ => 0,
        };
        let case = Case {
            seed: random.next(),
            rows: 3 + random.below(90),
            policies: 2 + random.below(4),
            contexts: 1 + random.below(3),
            outcomes: 1 + random.below(2),
            numbers: random.below(4),
            learner: (*random.pick(&LEARNERS)).to_owned(),
            outcome_size: size(random),
            feature_size: size(random),
            weighted: random.once_in(3),
            design: *random.pick(&[
                Design::Randomized,
                Design::Randomized,
                Design::Stratified,
                Design::Observational,
            ]),
            quirk: if random.once_in(2) { Quirk::None } else { *random.pick(&QUIRKS) },
        };
        serde_json::to_vec(&case).expect("a case is plain data")
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        let Ok(case) = serde_json::from_slice::<Case>(input) else { return Ok(Ended::Refused) };
        if case.rows > 10_000
            || case.policies > 100
            || case.contexts > 100
            || case.outcomes > 10
            || case.numbers > 100
        {
            return Ok(Ended::Refused);
        }
        case.attack()
    }
}

impl Case {
    fn attack(&self) -> Result<Ended, String> {
        let batch = self.batch();
        let policies =
            self.policy_set(false).map_err(|error| format!("valid policies are refused: {error}"))?;
        let model = match self.fit(&batch, &policies) {
            Ok(model) => model,
            Err(error) => return refused_or_diverged(&error),
        };
        let effects = match effects(&model, &batch) {
            Ok(effects) => effects,
            Err(error) => return refused(&error),
        };
        promised(effects.values().flatten().all(|value| value.is_finite()), || {
            "effects are not finite".to_owned()
        })?;
        self.saved(&model, &batch, &effects)?;
        self.same_whatever(&model, &batch, &effects)?;
        self.evaluated(&model, &batch)
    }

    fn fit(&self, batch: &RecordBatch, policies: &PolicySet) -> poul::Result<Model> {
        let settings: Settings =
            poul::model::learner(&self.learner).map(|own| front_door::SMALL.settings(own))?;
        let names = |what: &str, n: usize| (0..n).map(|idx| format!("{what}{idx}")).collect::<Vec<String>>();
        let stratum = (self.design == Design::Stratified).then(|| "city".to_owned());
        let roles = Roles {
            outcome: names("y", self.outcomes),
            id: vec!["user".into()],
            weight: self.weighted.then(|| "w".into()),
            exclude: if self.weighted { Vec::new() } else { vec!["w".into()] },
            stratum,
            design: self.design,
            ..Roles::default()
        };
        let fitting = Fitting {
            batch,
            roles: &roles,
            policies,
            control: Some("p0"),
            learner: &self.learner,
            settings: &settings,
            seed: self.seed,
            checkpoint: None,
        };
        fitting.fit(&Silent)
    }

    /// A model that was saved and loaded is the same model.
    fn saved(&self, model: &Model, batch: &RecordBatch, effects: &Effects) -> Result<(), String> {
        let bytes = model.to_bytes().map_err(|error| format!("a fitted model cannot be written: {error}"))?;
        let loaded =
            Model::from_bytes(&bytes).map_err(|error| format!("a fitted model cannot be read: {error}"))?;
        let twice =
            loaded.to_bytes().map_err(|error| format!("a model that was read cannot be written: {error}"))?;
        promised(twice == bytes, || "a model changes when it is read and written".to_owned())?;
        let again =
            self::effects(&loaded, batch).map_err(|error| format!("a loaded model cannot score: {error}"))?;
        promised(again == *effects, || "a loaded model has other effects".to_owned())
    }

    /// The order of the rows that are scored, their names, and the order of the policies do not matter.
    fn same_whatever(&self, model: &Model, batch: &RecordBatch, effects: &Effects) -> Result<(), String> {
        let mut order: Vec<u32> = (0..self.rows as u32).collect();
        Random::new(self.seed ^ 1).shuffle(&mut order);
        let indices = UInt32Array::from(order.clone());
        let columns = batch.columns().iter().map(|column| arrow_select::take::take(column, &indices, None));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let shuffled = RecordBatch::try_new(batch.schema(), columns).map_err(|error| error.to_string())?;
        let again =
            self::effects(model, &shuffled).map_err(|error| format!("other order of rows: {error}"))?;
        for (column, values) in effects {
            let n_policies = values.len() / self.rows.max(1);
            let row = |row: usize| &values[row * n_policies..(row + 1) * n_policies];
            let expected: Vec<f64> = order.iter().flat_map(|idx| row(*idx as usize)).copied().collect();
            promised(again.get(column) == Some(&expected), || {
                format!("`{column}` depends on the order of rows")
            })?;
        }
        let renamed =
            self.policy_set(true).map_err(|error| format!("valid policies are refused: {error}"))?;
        let other =
            self.fit(batch, &renamed).map_err(|error| format!("policies in another order: {error}"))?;
        let (one, two) = (model.to_bytes(), other.to_bytes());
        let same = matches!((&one, &two), (Ok(one), Ok(two)) if one == two);
        promised(same, || "the model depends on the order in which policies are defined".to_owned())?;
        let ids: ArrayRef = Arc::new(StringArray::from(
            (0..self.rows).map(|row| format!("x{}", row * 7)).collect::<Vec<_>>(),
        ));
        let mut columns = batch.columns().to_vec();
        columns[0] = ids;
        let named = RecordBatch::try_new(batch.schema(), columns).map_err(|error| error.to_string())?;
        let other = self.fit(&named, &renamed).map_err(|error| format!("rows under other names: {error}"))?;
        let again =
            self::effects(&other, batch).map_err(|error| format!("rows under other names: {error}"))?;
        promised(again == *effects, || "effects depend on the names of rows".to_owned())
    }

    fn evaluated(&self, model: &Model, batch: &RecordBatch) -> Result<Ended, String> {
        let source = source(batch)?;
        let roles = fitted_roles(model, &source, &Silent);
        let request =
            EvaluationRequest { roles, draws: DRAWS, seed: self.seed, ..EvaluationRequest::default() };
        let request = request.check().map_err(|error| format!("a plain request is refused: {error}"))?;
        match evaluate_model(model, None, &source, &request, &Silent) {
            Err(error) => refused_or_diverged(&error),
            Ok(evaluation) => {
                let text = format!("{evaluation:?}");
                let wrong = ["NaN", "inf"].iter().find_map(|wrong| {
                    let places = text.match_indices(wrong);
                    let mut numbers = places.filter(|(at, _)| text[..*at].ends_with(['(', ' ', '[', '-']));
                    numbers.next().map(|(at, _)| start_of(&text, at))
                });
                promised(wrong.is_none(), || format!("an evaluation says {}", wrong.unwrap_or_default()))?;
                let stored = serde_json::to_string(&evaluation)
                    .map_err(|error| format!("cannot be stored: {error}"))?;
                let read: Result<poul::evaluate::Evaluation, _> = serde_json::from_str(&stored);
                promised(read.is_ok_and(|read| read == evaluation), || {
                    "an evaluation changes on its way through JSON".to_owned()
                })?;
                Ok(Ended::Accepted)
            }
        }
    }

    /// The policies, in one order or the other; the set is the same.
    fn policy_set(&self, reversed: bool) -> poul::Result<PolicySet> {
        let mut rows = Vec::new();
        for policy in 0..self.policies {
            for context in 0..self.contexts {
                // Every policy is another combination as long as there are enough contexts.
                let action =
                    if policy == 0 { 0 } else { (policy >> context) & 1 | usize::from(policy > 3) << 1 };
                rows.push((format!("p{policy}"), format!("c{context}"), format!("a{action}")));
            }
        }
        if reversed {
            rows.reverse();
        }
        let mut builder = PolicySet::builder();
        for (policy, context, action) in &rows {
            builder.add(policy, context, action, 1.0);
        }
        builder.build()
    }

    fn batch(&self) -> RecordBatch {
        let mut random = Random::new(self.seed);
        let n_rows = self.rows;
        let policy: Vec<usize> = (0..n_rows)
            .map(|row| match self.quirk {
                Quirk::OneRowArms => {
                    if row < self.policies {
                        row
                    } else {
                        0
                    }
                }
                Quirk::NearlyAllControl => {
                    if row == 1 {
                        1
                    } else {
                        0
                    }
                }
                _ if row < 2 * self.policies => row % self.policies,
                _ => random.below(self.policies),
            })
            .collect();
        let size = 10_f64.powi(self.feature_size);
        let first: Vec<f64> = (0..n_rows).map(|_| random.normal()).collect();
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        let users: Vec<String> = (0..n_rows).map(|row| format!("u{row}")).collect();
        columns.push(("user".into(), Arc::new(StringArray::from(users))));
        let names: Vec<String> = policy.iter().map(|policy| format!("p{policy}")).collect();
        columns.push(("policy".into(), Arc::new(StringArray::from(names))));
        for outcome in 0..self.outcomes {
            let unit = 10_f64.powi(self.outcome_size);
            let value = |row: usize, noise: f64| match self.quirk {
                Quirk::ConstantOutcome => unit,
                Quirk::OutcomeIsPolicy => unit * policy[row] as f64,
                Quirk::Outlier if row == 0 => unit * 1e12,
                _ => unit * (first[row] * (1.0 + policy[row] as f64) + outcome as f64 + noise),
            };
            let values: Vec<f64> = (0..n_rows).map(|row| value(row, random.normal())).collect();
            columns.push((format!("y{outcome}"), Arc::new(Float64Array::from(values))));
        }
        for number in 0..self.numbers {
            let value = |row: usize, noise: f64| match self.quirk {
                Quirk::ConstantFeatures => Some(size),
                Quirk::MissingFeatures => None,
                Quirk::SameFeatures => Some(size * first[row]),
                Quirk::FeatureIsPolicy if number == 0 => Some(size * policy[row] as f64 + noise * 1e-3),
                _ if row % 9 == 4 => None,
                _ => Some(size * if number == 0 { first[row] } else { noise }),
            };
            let values: Vec<Option<f64>> = (0..n_rows).map(|row| value(row, random.normal())).collect();
            columns.push((format!("x{number}"), Arc::new(Float64Array::from(values))));
        }
        let cities: Vec<Option<&str>> = (0..n_rows)
            .map(|row| {
                (row % 8 != 5 || self.design == Design::Stratified).then(|| ["Rome", "Oslo"][random.below(2)])
            })
            .collect();
        columns.push(("city".into(), Arc::new(StringArray::from(cities))));
        columns.push((
            "core".into(),
            Arc::new(BooleanArray::from((0..n_rows).map(|_| random.once_in(2)).collect::<Vec<_>>())),
        ));
        let weight = |row: usize, share: f64| match self.quirk {
            Quirk::WeightsOfZero => {
                if row.is_multiple_of(3) {
                    0.0
                } else {
                    1.0
                }
            }
            Quirk::HugeWeights => {
                if row == 0 {
                    1e30
                } else {
                    1.0
                }
            }
            _ => 0.5 + share as f32,
        };
        columns.push((
            "w".into(),
            Arc::new(Float32Array::from(
                (0..n_rows).map(|row| weight(row, random.unit())).collect::<Vec<_>>(),
            )),
        ));
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .expect("columns of one length");
        if self.quirk == Quirk::DuplicateRows {
            let indices = UInt32Array::from((0..n_rows as u32).map(|row| row / 3).collect::<Vec<_>>());
            let columns =
                batch.columns().iter().map(|column| arrow_select::take::take(column, &indices, None));
            let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>().expect("indices of rows");
            return RecordBatch::try_new(batch.schema(), columns).expect("columns of one length");
        }
        batch
    }
}

/// By column, in the order of the table.
type Effects = BTreeMap<String, Vec<f64>>;

fn source(batch: &RecordBatch) -> Result<Source, String> {
    Source::from_batches(batch.schema(), vec![batch.clone()]).map_err(|error| error.to_string())
}

/// The effects of every policy on every row.
fn effects(model: &Model, batch: &RecordBatch) -> poul::Result<Effects> {
    let source = Source::from_batches(batch.schema(), vec![batch.clone()])?;
    let roles = Roles { id: vec!["user".into()], treatment: Some("policy".into()), ..Roles::default() };
    let columns = model.columns(&source, &roles, Need::SCORE)?;
    let manifest = model.manifest();
    let answer = model.ask(&manifest.policies, &Question::default(), true)?;
    let names = answer.names();
    let table = EffectTable {
        encoder: &manifest.encoder,
        columns: &columns,
        exposure: manifest.exposure.as_ref(),
        scorer: answer.scorer.as_ref(),
        outcomes: model.effects().outcomes(),
        policies: &names,
        against: answer.against(),
        interval: answer.scorer.has_spread().then_some(0.9),
        unseen_share: None,
        support: None,
        wide: false,
    };
    let (schema, batches) = table.collect(&source, &Silent)?;
    let mut effects: Effects = BTreeMap::new();
    for (idx, field) in schema.fields().iter().enumerate() {
        for batch in &batches {
            if let Some(values) = poul::data::numbers(batch.column(idx)) {
                effects.entry(field.name().clone()).or_default().extend(values);
            }
        }
    }
    effects.retain(|name, _| {
        name.starts_with("effect_") || name.starts_with("lower_") || name.starts_with("upper_")
    });
    Ok(effects)
}

/// Training may diverge on numbers of any size; whoever trains is told so.
fn refused_or_diverged(error: &Error) -> Result<Ended, String> {
    let is_told = error.kind() == Kind::Other && error.to_string().contains("training diverged");
    if is_told { Ok(Ended::Refused) } else { refused(error) }
}

/// What stands before a place in a text, and a little of what follows.
fn start_of(text: &str, at: usize) -> String {
    let start = (0..=at.saturating_sub(60)).rev().find(|idx| text.is_char_boundary(*idx)).unwrap_or(0);
    text[start..].chars().take(72).collect()
}
