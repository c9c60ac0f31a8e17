//! Exposures of rows, from a table to effects: closer to the truth, averages as they are said, nothing where nothing is met,
//! the same on any number of threads and after a detour through the file.

use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use poul::data::{ExposureRole, ExposureScale, Need};
use poul::effect::{EffectTable, ExposedRows, Question, Settings};
use poul::model::CertificateParams;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Error, Experiment, Model, Result, Roles, Seed, Silent, Source};
use rand::RngExt;

const N_ROWS: usize = 1600;
const ZONES: usize = 3;
const DAYPARTS: usize = 2;
const N_CONTEXTS: usize = ZONES * DAYPARTS;
/// The last two are never run.
const N_POLICIES: usize = 10;

fn context(number: usize) -> String {
    format!("z{}_d{}", number / DAYPARTS, number % DAYPARTS)
}

/// What policy `t` does in a context: 0 or 1; control does nothing. Policy 1 acts in the first zone alone.
fn acts(policy: usize, context: usize) -> bool {
    match policy {
        0 => false,
        1 => context < DAYPARTS,
        _ => Seed::new(77).index((policy * N_CONTEXTS + context) as u64).rng().random_bool(0.5),
    }
}

fn policies() -> PolicySet {
    let mut builder = PolicySet::builder();
    for policy in 0..N_POLICIES {
        for place in 0..N_CONTEXTS {
            let action = if acts(policy, place) { "offer" } else { "none" };
            builder.add(&name(policy), &context(place), action, 1.0);
        }
    }
    builder.build().unwrap()
}

fn name(policy: usize) -> String {
    if policy == 0 { "control".to_owned() } else { format!("t{policy}") }
}

/// Rows of one zone each, their trips, and what a policy does for each.
struct World {
    source: Source,
    trips: Vec<[f64; N_CONTEXTS]>,
    zone: Vec<usize>,
}

impl World {
    fn new(change: impl Fn(usize, &mut [f64; N_CONTEXTS])) -> Self {
        let mut rng = Seed::new(3).rng();
        let (mut trips, mut zone, mut x, mut y, mut policy) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for row in 0..N_ROWS {
            let home = rng.random_range(0..ZONES);
            let mut own = [0.0; N_CONTEXTS];
            for daypart in 0..DAYPARTS {
                own[home * DAYPARTS + daypart] = f64::from(rng.random_range(1..6_u32));
            }
            let (feature, noise) = (rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
            let assigned = rng.random_range(0..N_POLICIES - 2);
            y.push(f64::from(home as u32) + feature + effect(&own, feature, assigned) + noise);
            change(row, &mut own);
            trips.push(own);
            zone.push(home);
            x.push(feature);
            policy.push(name(assigned));
        }
        let mut columns: Vec<(String, ArrayRef)> = (0..N_CONTEXTS)
            .map(|place| {
                let values = Float64Array::from_iter_values(trips.iter().map(|own| own[place]));
                (format!("trips_{}", context(place)), Arc::new(values) as ArrayRef)
            })
            .collect();
        columns.push(("x".into(), Arc::new(Float64Array::from(x))));
        columns.push(("y".into(), Arc::new(Float64Array::from(y))));
        columns.push(("policy".into(), Arc::new(StringArray::from(policy))));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        Self { source: Source::from_batches(batch.schema(), vec![batch]).unwrap(), trips, zone }
    }

    fn fit(&self, learner: &str, exposure: &[&str], scale: ExposureScale) -> Result<Model> {
        let exposure = ExposureRole::from_entries(exposure)?;
        let roles = Roles {
            outcome: vec!["y".into()],
            exposure,
            exposure_scale: scale,
            control: Some("control".into()),
            ..Roles::default()
        };
        let mut settings = Settings::default();
        if learner.starts_with("poul") {
            settings.model.insert("members".into(), 2.into());
            settings.training.insert("epochs".into(), 15.into());
        }
        let experiment = Experiment::open(&self.source, &roles, policies(), &Silent)?;
        Model::fit(&experiment).learner(learner).settings(&settings).seed(1).run(&Silent)
    }

    /// Effects of all policies against control, rows × policies.
    fn effects(&self, model: &Model) -> Result<Vec<f32>> {
        let columns = model.columns(&self.source, &Roles::default(), Need::SCORE)?;
        let question = Question { policies: (1..N_POLICIES).map(name).collect(), against: None };
        let answer = model.ask(&model.manifest().policies, &question, true)?;
        let names = answer.names();
        let table = EffectTable {
            encoder: &model.manifest().encoder,
            columns: &columns,
            exposure: model.manifest().exposure.as_ref(),
            scorer: answer.scorer.as_ref(),
            outcomes: model.effects().outcomes(),
            policies: &names,
            against: answer.against(),
            interval: None,
            unseen_share: None,
            support: None,
            wide: false,
        };
        let (_, batches) = table.collect(&self.source, &Silent)?;
        let column = |batch: &RecordBatch| {
            let effects = batch.column_by_name("effect_y").unwrap();
            poul::data::numbers(effects).unwrap().into_iter().map(|value| value as f32).collect::<Vec<_>>()
        };
        let effects: Vec<f32> = batches.iter().flat_map(column).collect();
        // Control has none against itself.
        Ok(effects.chunks(N_POLICIES - 1).flat_map(|row| [&[0.0], row].concat()).collect())
    }
}

/// An offer is worth more in the first zone and to rows with a large x.
fn effect(trips: &[f64; N_CONTEXTS], x: f64, policy: usize) -> f64 {
    let total: f64 = trips.iter().sum();
    let worth =
        |place: usize| [4.0, -2.0, 3.0, 1.0, -3.0, 2.0][place] * f64::from(u8::from(acts(policy, place)));
    (0..N_CONTEXTS).map(|place| trips[place] / total * worth(place)).sum::<f64>() * (1.0 + 0.5 * x)
}

/// A world that several tests read, and a model of it.
static SHARES: LazyLock<(World, Model)> = LazyLock::new(|| {
    let world = World::new(|_, _| ());
    let model = share(&world);
    (world, model)
});

fn share(world: &World) -> Model {
    world.fit("poul", &["trips_*"], ExposureScale::Share).unwrap()
}

#[test]
fn effects_follow_what_a_row_meets_and_average_to_what_is_said() {
    let (world, model) = &*SHARES;
    let effects = world.effects(model).unwrap();
    // Policy 1 acts in the first zone alone: who lives elsewhere has no effect of it, to the last bit.
    for (row, zone) in world.zone.iter().enumerate() {
        let own = effects[row * N_POLICIES + 1];
        assert!(*zone == 0 || own == 0.0, "{row}: {own}");
    }
    let question = Question { policies: (1..N_POLICIES).map(name).collect(), against: None };
    let averages = model.averages(&model.manifest().policies, &question, 0.9, true).unwrap();
    for (policy, average) in (1..N_POLICIES).zip(&averages) {
        let own = (0..N_ROWS).map(|row| f64::from(effects[row * N_POLICIES + policy]));
        let mean = own.sum::<f64>() / N_ROWS as f64;
        assert!((mean - average.effect).abs() < 1e-4, "{policy}: {mean} {}", average.effect);
    }
    let plain = world.fit("poul", &[], ExposureScale::Share).unwrap();
    let x = poul::data::numbers(&column(&world.source, "x")).unwrap();
    let error = |effects: &[f32]| {
        let truth = |place: usize| {
            effect(&world.trips[place / N_POLICIES], x[place / N_POLICIES], place % N_POLICIES)
        };
        let pairs = effects.iter().enumerate().map(|(place, own)| (f64::from(*own), truth(place)));
        let (square, power) =
            pairs.fold((0.0, 0.0), |(s, p), (own, truth)| (s + (own - truth).powi(2), p + truth * truth));
        f64::sqrt(square / power)
    };
    let (with, without) = (error(&effects), error(&world.effects(&plain).unwrap()));
    assert!(with < 0.45 && with < 0.7 * without, "{with} with own exposure, {without} without");
    assert!(plain.manifest().exposure.is_none());
}

fn column(source: &Source, name: &str) -> ArrayRef {
    let batch = source.batches(&[name], 1 << 16).unwrap().next().unwrap().unwrap();
    Arc::clone(batch.column(0))
}

#[test]
fn the_model_is_the_same_on_any_threads_and_from_its_file() {
    let (world, model) = &*SHARES;
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| share(world).to_bytes().unwrap())
    };
    let bytes = on(1);
    assert!(bytes == on(3), "bytes differ between threads");
    let read = Model::from_bytes(&bytes).unwrap();
    assert!(read.to_bytes().unwrap() == bytes);
    let effects = world.effects(&read).unwrap();
    assert!(effects == world.effects(model).unwrap());
    // One row alone has the bits that it has among others.
    let scorer = read.effects().prepare(&policies(), &[1, 2, 3], 0).unwrap();
    let columns = read.columns(&world.source, &Roles::default(), Need::SCORE).unwrap();
    let encoder = &read.manifest().encoder;
    let batch = poul::data::RowReader::new(&world.source, &columns).unwrap().next_batch().unwrap().unwrap();
    let mut x = vec![0.0; batch.n_rows() * encoder.width()];
    encoder.encode(&batch.features, &mut x).unwrap();
    let exposure = read.manifest().exposure.as_ref().unwrap().rows(&batch.exposure);
    let all = DenseRows::new(&x, encoder.width()).unwrap();
    let all = scorer.score(&ExposedRows { x: &all, exposure: Some(&exposure) }, true).unwrap();
    for (first, end) in [(5, 6), (100, 107), (300, 600)] {
        let part =
            DenseRows::new(&x[first * encoder.width()..end * encoder.width()], encoder.width()).unwrap();
        let own = exposure.part(first, end);
        let some = scorer.score(&ExposedRows { x: &part, exposure: Some(&own) }, true).unwrap();
        assert!(some.mean[0] == all.mean[0][first * 3..end * 3], "{first}");
        assert!(some.spread[0] == all.spread[0][first * 3..end * 3], "{first}");
    }
    let plain = DenseRows::new(&x, encoder.width()).unwrap();
    let error = scorer.score(&plain, false).unwrap_err();
    assert!(error.to_string().contains("how much each row meets"), "{error}");
}

#[test]
fn totals_treat_who_meets_more_and_leave_alone_who_meets_nothing() {
    let world = World::new(|row, trips| {
        if row % 50 == 0 {
            *trips = [0.0; N_CONTEXTS];
        }
    });
    let model = world.fit("poul", &["trips_*"], ExposureScale::Total).unwrap();
    let effects = world.effects(&model).unwrap();
    assert!(
        (0..N_ROWS)
            .step_by(50)
            .all(|row| effects[row * N_POLICIES..][..N_POLICIES].iter().all(|e| *e == 0.0))
    );
    assert!(effects.iter().any(|effect| effect.abs() > 0.5));
    let notes = &model.manifest().notes;
    assert!(notes.iter().any(|note| note.contains("32 rows have no exposure")), "{notes:?}");
    let shares = world.fit("poul", &["trips_*"], ExposureScale::Share).unwrap();
    assert!(shares.manifest().notes.iter().any(|note| note.contains("do on average")));
}

#[test]
fn distances_and_certificates_are_by_mean_exposure() {
    let (world, model) = &*SHARES;
    let own = &model.manifest().policies;
    assert!(
        (own.weights()[0] - 1.0 / N_CONTEXTS as f64).abs() < 1e-12,
        "the file's weights stay as they are"
    );
    let support = model.support(own, &[own.require("t9").unwrap()]);
    let certificate = model
        .certify(own, own.require("t9").unwrap(), &CertificateParams::default().check().unwrap())
        .unwrap();
    assert_eq!(Some(certificate.nearest[0].distance), support[0].distance);
    let total: f64 = world.trips.iter().map(|trips| trips[0] / trips.iter().sum::<f64>()).sum();
    let weighted = model.manifest().exposure.as_ref().unwrap().weighted(own);
    assert!((weighted.weights()[0] - total / N_ROWS as f64).abs() < 1e-6);
    let nearest = own.require(&certificate.nearest[0].policy).unwrap();
    assert_eq!(certificate.nearest[0].distance, weighted.distance(own.require("t9").unwrap(), nearest));
    // A bound for the rows that the model keeps holds for these.
    let against = own.require(certificate.against.as_deref().unwrap()).unwrap();
    let most = certificate.bounds[0].deciles.last().unwrap();
    let effects = world.effects(model).unwrap();
    for row in effects.chunks(N_POLICIES) {
        // `effects` are in the order of `name`, sets in that of names; both begin with control.
        let place =
            |policy: usize| (0..N_POLICIES).position(|other| name(other) == own.name(policy)).unwrap();
        let apart = f64::from(row[place(own.require("t9").unwrap())] - row[place(against)]).abs();
        assert!(apart <= most.by_embedding + 1e-4, "{apart} {}", most.by_embedding);
        assert!(most.by_distance.unwrap() >= most.by_embedding);
    }
}

#[test]
fn what_cannot_be_had_is_told() {
    let told = |error: Error, what: &str| assert!(error.to_string().contains(what), "{error}");
    let fails = |change: fn(usize, &mut [f64; N_CONTEXTS])| {
        World::new(change).fit("poul", &["trips_*"], ExposureScale::Share).err().unwrap()
    };
    told(
        fails(|row, trips| trips[0] = if row == 7 { -1.0 } else { trips[0] }),
        "the exposure is negative: -1",
    );
    told(
        fails(|row, trips| trips[1] = if row == 7 { f64::NAN } else { trips[1] }),
        "the exposure is null or NaN",
    );
    told(
        fails(|row, trips| trips[1] = if row == 7 { f64::INFINITY } else { trips[1] }),
        "the exposure is infinite",
    );
    told(fails(|_, trips| *trips = [0.0; N_CONTEXTS]), "no row has any exposure");
    let (world, model) = &*SHARES;
    let fails = |entries: &[&str]| world.fit("poul", entries, ExposureScale::Share).err().unwrap();
    told(fails(&["z0_d0=trips_z0_d0"]), "have no exposure column");
    told(fails(&["z9_d9=trips_z0_d0"]), "unknown context `z9_d9`");
    told(fails(&["z0_d0=trips_z0"]), "there is no column `trips_z0`");
    // A rival keeps one weight for all rows, says so, and scores tables without the columns' being exposures.
    let ridge = world.fit("ridge", &["trips_*"], ExposureScale::Share).unwrap();
    assert!(ridge.manifest().exposure.is_none());
    assert!(ridge.manifest().notes.iter().any(|note| note.contains("`ridge` weighs contexts the same")));
    // One running mean for all rows is no centre of any.
    let running = world.fit("poul-running-mean", &["trips_*"], ExposureScale::Share).unwrap();
    assert!(running.manifest().exposure.is_none());
    // A table without a column that the model goes by.
    let batch = world.source.batches(&["x"], 1 << 16).unwrap().next().unwrap().unwrap();
    let without = Source::from_batches(batch.schema(), vec![batch]).unwrap();
    let error = model.columns(&without, &Roles::default(), Need::SCORE).err().unwrap();
    told(error, "there is no column `trips_z0_d0`");
    let other = Roles { exposure: Some(ExposureRole::Pattern("x*".into())), ..Roles::default() };
    let error = model.columns(&world.source, &other, Need::EVALUATE).err().unwrap();
    assert!(error.to_string().contains("outcome") || error.to_string().contains("other exposure"), "{error}");
}
