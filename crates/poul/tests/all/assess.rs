//! Whole evaluations, by model and by columns: where the table lies, how it is cut and who works on it do not matter; what
//! was not asked for is not there; what is wrong is told.

use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use poul::data::{Budget, Need};
use poul::effect::{EffectTable, Question};
use poul::evaluate::run::{EffectColumn, EvaluationRequest, evaluate_columns, evaluate_model, fitted_roles};
use poul::evaluate::{BY_PREDICTED_EFFECT, Evaluation, PolicyResult};
use poul::{Experiment, Kind, Model, Progress, Result, Roles, Silent, Source};

const POLICIES: [&str; 3] = ["T1", "T2", "control"];
const CITIES: [&str; 3] = ["Lima", "Oslo", "Rome"];
const N_ROWS: usize = 600;

/// Effects of T1 grow with `x`, those of T2 do twice as much; `tau` is a noisy guess of T1's.
fn table() -> RecordBatch {
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let (mut texts, mut numbers) = (vec![Vec::new(); 2], vec![Vec::new(); 5]);
    for _ in 0..N_ROWS {
        let (policy, city) = ((3.0 * random()) as usize, (3.0 * random()) as usize);
        let (x, strength) = (random(), [1.0, 2.0, 0.0][policy]);
        texts[0].push(POLICIES[policy]);
        texts[1].push(CITIES[city]);
        let gmv = 2.0 * x + strength * (0.5 + x) + random();
        let row = [gmv, strength * (1.0 + random()), x, 0.5 + random(), x + 0.5 * random()];
        numbers.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    let texts = texts.into_iter().map(|cells| Arc::new(StringArray::from(cells)) as ArrayRef);
    let numbers = numbers.into_iter().map(|cells| Arc::new(Float64Array::from(cells)) as ArrayRef);
    let names = ["policy", "city", "gmv", "cost", "x", "w", "tau"];
    RecordBatch::try_from_iter(names.into_iter().zip(texts.chain(numbers))).unwrap()
}

fn in_memory(table: &RecordBatch, n_batches: usize) -> Source {
    let n = table.num_rows().div_ceil(n_batches);
    let cut = |start: usize| table.slice(start, n.min(table.num_rows() - start));
    let batches: Vec<RecordBatch> = (0..table.num_rows()).step_by(n).map(cut).collect();
    Source::from_batches(table.schema(), batches).unwrap()
}

fn without(table: &RecordBatch, name: &str) -> RecordBatch {
    let kept = (0..table.num_columns()).filter(|column| table.schema().field(*column).name() != name);
    table.project(&kept.collect::<Vec<usize>>()).unwrap()
}

fn fitted(source: &Source, weight: Option<&str>) -> Model {
    let roles = Roles {
        outcome: vec!["gmv".to_owned(), "cost".to_owned()],
        features: vec!["x".to_owned(), "city".to_owned()],
        weight: weight.map(str::to_owned),
        ..Roles::default()
    };
    let experiment = Experiment::open(source, &roles, None, &Silent).unwrap();
    let command = ["poul", "fit", "my data.csv"].map(String::from).to_vec();
    Model::fit(&experiment).learner("ridge").command(command).run(&Silent).unwrap()
}

fn by_model(model: &Model, source: &Source, request: EvaluationRequest) -> Result<Evaluation> {
    let roles = fitted_roles(model, source, &Silent);
    evaluate_model(model, None, source, &EvaluationRequest { roles, ..request }.check()?, &Silent)
}

fn of_columns(effects: &[(&str, Option<&str>)]) -> EvaluationRequest {
    let column = |(column, policy): &(&str, Option<&str>)| EffectColumn {
        column: (*column).to_owned(),
        policy: policy.map(str::to_owned),
        outcome: Some("gmv".to_owned()),
    };
    let roles = Roles { outcome: vec!["gmv".to_owned()], ..Roles::default() };
    EvaluationRequest { roles, effects: effects.iter().map(column).collect(), ..EvaluationRequest::default() }
}

fn quick() -> EvaluationRequest {
    EvaluationRequest { draws: 20, by: vec!["city".to_owned()], ..EvaluationRequest::default() }
}

/// What was found, without where the rows lay.
fn found(evaluation: Result<Evaluation>) -> Evaluation {
    Evaluation { provenance: None, ..evaluation.unwrap() }
}

#[test]
fn a_table_in_memory_in_pieces_or_in_a_file_is_the_same_table() {
    let table = table();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.parquet");
    let mut writer = poul::data::TableWriter::create(&path, table.schema()).unwrap();
    writer.write(&table).unwrap();
    writer.finish().unwrap();
    let whole = in_memory(&table, 1);
    let model = fitted(&whole, None);
    let (of_model, of_columns) = (quick(), EvaluationRequest { draws: 20, ..of_columns(&[("tau", None)]) });
    let (one, two) = (by_model(&model, &whole, of_model.clone()), of_columns.clone().check().unwrap());
    let (one, two) = (found(one), found(evaluate_columns(&whole, &two, &Silent)));
    let elsewhere = [in_memory(&table, 7), Source::open(&path.to_string_lossy()).unwrap()];
    for source in &elsewhere {
        assert_eq!(found(by_model(&model, source, of_model.clone())), one);
        let request = of_columns.clone().check().unwrap();
        assert_eq!(found(evaluate_columns(source, &request, &Silent)), two);
    }
    for n_threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        assert_eq!(pool.install(|| found(by_model(&model, &whole, of_model.clone()))), one);
    }
    let command = "poul evaluate m.poul data.parquet".to_owned();
    let recorded = EvaluationRequest { command: command.clone(), checks: false, ..quick() };
    let recorded = by_model(&model, &elsewhere[1], recorded);
    let provenance = recorded.unwrap().provenance.unwrap();
    assert_eq!((provenance.command, provenance.learner.as_deref()), (command, Some("ridge")));
    assert_eq!(provenance.fit_command.as_deref(), Some("poul fit 'my data.csv'"));
    let files: Vec<&str> = provenance.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(files, ["a table in memory (training)", "data.parquet (test)"]);

    let missing = EvaluationRequest { by: vec!["cty".to_owned()], ..quick() };
    let [in_memory, in_file] = [&elsewhere[0], &elsewhere[1]]
        .map(|source| by_model(&model, source, missing.clone()).unwrap_err().to_string());
    assert_eq!(in_memory, "`by`: there is no column `cty`");
    assert_eq!(in_file, format!("{}: {in_memory}", path.display()));
}

#[test]
fn effects_written_to_columns_measure_as_the_model_that_wrote_them() {
    let table = table();
    let source = in_memory(&table, 1);
    let model = fitted(&source, None);
    let own = by_model(&model, &source, EvaluationRequest { draws: 0, ..quick() }).unwrap();

    let roles = Roles { treatment: Some("policy".to_owned()), ..Roles::default() };
    let columns = model.columns(&source, &roles, Need::SCORE).unwrap();
    let question = Question { policies: vec!["T1".into(), "T2".into()], against: None };
    let answer = model.ask(&model.manifest().policies, &question, false).unwrap();
    let effects = EffectTable {
        encoder: &model.manifest().encoder,
        columns: &columns,
        exposure: None,
        scorer: answer.scorer.as_ref(),
        outcomes: model.effects().outcomes(),
        policies: &answer.names(),
        against: answer.against(),
        interval: None,
        unseen_share: None,
        support: None,
        wide: false,
    };
    let (_, batches) = effects.collect(&source, &Silent).unwrap();
    let all: Vec<f64> = batches
        .iter()
        .flat_map(|batch| {
            batch.column_by_name("effect_gmv").unwrap().as_primitive::<Float32Type>().values().iter()
        })
        .map(|effect| f64::from(*effect))
        .collect();
    let of_policy = |policy: usize| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(all.iter().copied().skip(policy).step_by(2)))
    };
    let names = table.schema();
    let names = names.fields().iter().map(|field| field.name().as_str());
    let written = names.zip(table.columns().iter().cloned()).map(|(name, cells)| (name.to_owned(), cells));
    let added = [("of_t1".to_owned(), of_policy(0)), ("of_t2".to_owned(), of_policy(1))];
    let scored = RecordBatch::try_from_iter(written.chain(added)).unwrap();
    let request = of_columns(&[("of_t1", Some("T1")), ("of_t2", Some("T2"))]);
    let request = EvaluationRequest { draws: 0, by: vec!["city".to_owned()], ..request };
    let theirs = evaluate_columns(&in_memory(&scored, 3), &request.check().unwrap(), &Silent).unwrap();
    let gmv: Vec<&PolicyResult> = own.results.iter().filter(|result| result.outcome == "gmv").collect();
    assert_eq!(gmv, theirs.results.iter().collect::<Vec<_>>());
    // Averages of a model lean on m̂ of the features, which columns do not have: the same estimand, a smaller error.
    let averages = own.averages.iter().filter(|own| own.outcome == "gmv");
    assert_eq!(averages.clone().count(), theirs.averages.len());
    for (own, theirs) in averages.zip(&theirs.averages) {
        assert_eq!((&own.policy, &own.by, &own.group), (&theirs.policy, &theirs.by, &theirs.group));
        assert_eq!((own.rows, own.predicted), (theirs.rows, theirs.predicted));
        if own.by.is_none() {
            assert!(own.se.unwrap() < theirs.se.unwrap());
            assert!((own.effect.unwrap() - theirs.effect.unwrap()).abs() < 3.0 * theirs.se.unwrap());
        }
    }
    assert!(theirs.who_gains.is_empty() && theirs.validation.is_none() && theirs.atoms.is_empty());
}

#[test]
fn parts_are_there_when_asked_for() {
    let source = in_memory(&table(), 1);
    let model = fitted(&source, None);
    let full = EvaluationRequest { draws: 0, placebo: 1, ..quick() };
    let full = by_model(&model, &source, full).unwrap();
    let validation = full.validation.as_ref().unwrap();
    assert!(!validation.placebo.is_empty() && !validation.checks.is_empty());
    assert!(!full.atoms.is_empty() && full.policies.len() == 3);
    assert_eq!(full.who_gains.len(), 4);
    let groupings: Vec<Option<&str>> = [None, Some(BY_PREDICTED_EFFECT), Some("city")].to_vec();
    for by in groupings {
        assert!(full.averages.iter().any(|own| own.by.as_deref() == by), "{by:?}");
    }
    let request = EvaluationRequest { draws: 0, checks: false, ..EvaluationRequest::default() };
    let plain = by_model(&model, &source, request).unwrap();
    assert!(plain.validation.is_none() && plain.atoms.is_empty() && plain.policies.is_empty());
    assert_eq!(plain.results, full.results);
    assert!(plain.averages.iter().all(|own| own.by.as_deref() != Some("city")));
    let policy = vec!["T2".to_owned()];
    let one = EvaluationRequest { policy, draws: 0, checks: false, ..EvaluationRequest::default() };
    let one = by_model(&model, &source, one).unwrap();
    assert!(one.results.iter().all(|result| result.policy == "T2" && result.against == "control"));
}

/// Remembers warnings; asks to stop where told to.
#[derive(Default)]
struct Heard {
    warnings: Mutex<Vec<String>>,
    stop: bool,
}

impl Progress for Heard {
    fn warn(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }

    fn cancelled(&self) -> bool {
        self.stop
    }
}

#[test]
fn what_is_left_out_is_told_and_work_can_be_stopped() {
    let table = table();
    let source = in_memory(&table, 1);
    let model = fitted(&source, Some("w"));
    let unweighted = in_memory(&without(&table, "w"), 1);
    let heard = Heard::default();
    let roles = fitted_roles(&model, &unweighted, &heard);
    assert_eq!(roles.weight, None);
    assert_eq!(*heard.warnings.lock().unwrap(), ["the data have no column `w`: evaluated without a weight"]);
    let of_model = EvaluationRequest { roles, draws: 0, ..EvaluationRequest::default() }.check().unwrap();
    assert!(evaluate_model(&model, None, &unweighted, &of_model, &Silent).is_ok());
    let stop = Heard { stop: true, ..Heard::default() };
    let stopped = evaluate_model(&model, None, &unweighted, &of_model, &stop).unwrap_err();
    assert_eq!(stopped.kind(), Kind::Cancelled);
    let of_columns = of_columns(&[("tau", None)]).check().unwrap();
    assert_eq!(evaluate_columns(&source, &of_columns, &stop).unwrap_err().kind(), Kind::Cancelled);
}

#[test]
fn wrong_requests_are_usage_errors() {
    let source = in_memory(&table(), 1);
    let model = fitted(&source, None);
    let tau = of_columns(&[("tau", None)]);
    let roles = Roles { outcome: vec!["gmv".to_owned()], ..Roles::default() };
    let nothing = EvaluationRequest { roles, ..EvaluationRequest::default() };
    let small = EvaluationRequest { budget: Budget::of(1 << 10), ..EvaluationRequest::default() };
    let itself =
        EvaluationRequest { against: Some("T1".to_owned()), policy: vec!["T1".to_owned()], ..tau.clone() };
    let columns = |request: EvaluationRequest| evaluate_columns(&source, &request.check()?, &Silent);
    for (failed, says) in [
        (by_model(&model, &source, tau), "a model and `effects` exclude each other"),
        (columns(nothing), "what is to be evaluated?"),
        (columns(itself), "`T1` is compared with itself"),
        (columns(of_columns(&[("gmv", None)])), "`effects`: `gmv` is an outcome"),
        (by_model(&model, &source, small), "the effects to measure take"),
    ] {
        let error = failed.unwrap_err();
        assert!(error.kind() == Kind::Usage && error.to_string().starts_with(says), "{error}");
        assert!(error.hint_text().is_some(), "{error}");
    }
}
