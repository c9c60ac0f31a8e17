//! What every learner of the registry promises: the same model from the same data, on any number of threads and after
//! a detour through its stored form; a row's effects depend on that row alone; weights count; policies never run are
//! scored; missing values are values.

use poul::data::{Budget, Dataset, Design, EncoderParams, Need, Roles, Source};
use poul::effect::{EffectModel, Tensors, TrainingData};
use poul::model::{LEARNERS, Learner};
use poul::net::DenseRows;
use poul::policy::{Assigner, PolicySet};
use poul::simulate::{Simulation, run};
use poul::{Run, Seed, Silent};

use crate::short::Short;

const ROWS: usize = 600;
const TEST_ROWS: usize = 100;

/// A small experiment with categories and missing values, and policies that were never run.
struct World {
    train: Dataset,
    test: Dataset,
    policies: PolicySet,
    policy: Vec<u32>,
    control: usize,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let simulation = Simulation {
            scenario: "long-tail".into(),
            rows: ROWS as u64,
            test_rows: Some(TEST_ROWS as u64),
            features: Some(10),
            policies: Some(8),
            contexts: Some(3),
            actions: Some(3),
            noise: Some(0.5),
            seed: 11,
            ..Simulation::default()
        };
        run(&simulation.check().unwrap(), folder.path(), &Silent).unwrap();
        let open = |name: &str| Source::open(folder.path().join(name).to_str().unwrap()).unwrap();
        let policies = PolicySet::read(&folder.path().join("policies.toml"), None).unwrap();
        let source = open("train.parquet");
        let roles = Roles { outcome: vec!["y".into()], ..Roles::default() };
        let columns = roles.check(source.schema(), Need::FIT).unwrap();
        let (params, budget) = (EncoderParams::default().check().unwrap(), Budget::default());
        let (train, encoder) = Dataset::read_and_fit(&source, &columns, &params, &budget, &Silent).unwrap();
        let test = Dataset::read(&open("test.parquet"), &columns, &encoder, &budget, &Silent).unwrap();
        let policy = Assigner::new(&policies, &columns).assign_table(&train).unwrap();
        let control = policies.index("control").unwrap();
        assert!((0..policies.len()).any(|idx| !policy.contains(&(idx as u32))), "all policies were run");
        Self { train, test, policies, policy, control }
    }

    /// A fit that is short, where the learner can be told so.
    fn fit(&self, learner: &Learner) -> Box<dyn EffectModel> {
        self.fit_to(learner, self.outcome(), None, None)
    }

    /// The same with the outcome and weights given, and the user's own m where it is given: no time goes into another.
    fn fit_to(
        &self,
        learner: &Learner,
        outcome: &[f64],
        weight: Option<&[f64]>,
        prediction: Option<&[f64]>,
    ) -> Box<dyn EffectModel> {
        let x = DenseRows::new(self.train.x.rows(0..ROWS), self.train.x.width()).unwrap();
        let (design, control) = (Design::Randomized, Some(self.control));
        let mut data =
            TrainingData::of(&self.train, &x, &self.policies, &self.policy, design, control).unwrap();
        data.outcomes[0].values = outcome;
        data.outcomes[0].prediction = prediction;
        data.weight = weight;
        let settings = SHORT.settings(learner);
        (learner.train)(&data.check().unwrap(), &settings, Run::new(Seed::new(5), &Silent)).unwrap().effects
    }

    fn outcome(&self) -> &[f64] {
        &self.train.outcomes[0]
    }

    /// Effects of every policy against control, rows × policies.
    fn effects(&self, model: &dyn EffectModel, rows: std::ops::Range<usize>) -> Vec<f32> {
        let all: Vec<usize> = (0..self.policies.len()).collect();
        let scorer = model.prepare(&self.policies, &all, self.control).unwrap();
        let x = DenseRows::new(self.test.x.rows(rows), self.test.x.width()).unwrap();
        scorer.score(&x, false).unwrap().mean.remove(0)
    }
}

/// Few members and epochs, narrow layers; members of a stack of several kinds.
const SHORT: Short = Short {
    trees: 24,
    min_arm_rows: 60,
    widths: &[12, 8],
    of: &["constant", "poul", "s-learner"],
    epochs: 2,
    batch_rows: 256,
};

#[test]
fn fits_repeat_on_any_number_of_threads_and_survive_storage() {
    let world = World::new();
    for learner in LEARNERS {
        let name = learner.name;
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| world.fit(learner))
        };
        let (one, two) = (on(1), on(2));
        let effects = world.effects(&*one, 0..TEST_ROWS);
        assert_eq!(effects.len(), TEST_ROWS * world.policies.len(), "{name}");
        assert!(
            effects.iter().all(|effect| effect.is_finite()),
            "{name}: unseen policies and missing values"
        );
        assert!(
            effects.iter().skip(world.control).step_by(world.policies.len()).all(|e| *e == 0.0),
            "{name}"
        );
        assert_eq!(effects, world.effects(&*two, 0..TEST_ROWS), "{name}: threads");
        let (first, second) = (one.tensors(), two.tensors());
        assert!(first == second, "{name}: threads change what is stored");
        let mut tensors = Tensors::default();
        for tensor in first {
            tensors.insert(tensor.name, tensor.shape, tensor.values.to_vec());
        }
        let manifest = one.manifest().unwrap().to_string();
        let manifest = serde_json::from_str(&manifest).unwrap();
        let stored = (learner.load)(&manifest, &mut tensors).unwrap();
        assert_eq!(tensors.names().count(), 0, "{name}: tensors that nobody takes");
        assert_eq!(effects, world.effects(&*stored, 0..TEST_ROWS), "{name}: storage");
        // A row alone scores as it does among others.
        let n_policies = world.policies.len();
        let few = world.effects(&*one, 40..47);
        assert_eq!(few, effects[40 * n_policies..47 * n_policies], "{name}: subset");
    }
}

#[test]
fn weights_count_rows_without_weight_do_not_and_effects_follow_the_units() {
    let world = World::new();
    let weight: Vec<f64> = (0..ROWS).map(|row| [1.0, 0.0, 2.0, 0.5][row % 4]).collect();
    let outcome = world.outcome();
    let wild = |(value, weight): (&f64, &f64)| if *weight == 0.0 { 1e4 - value } else { *value };
    let wild: Vec<f64> = outcome.iter().zip(&weight).map(wild).collect();
    let scaled: Vec<f64> = outcome.iter().map(|value| 1024.0 * value - 512.0).collect();
    let (prediction, scaled_prediction) = ([0.25; ROWS], [1024.0 * 0.25 - 512.0; ROWS]);
    for learner in LEARNERS.iter().filter(|learner| learner.name != "random") {
        let name = learner.name;
        let effects = |outcome: &[f64], weight: Option<&[f64]>, prediction: &[f64]| {
            let model = world.fit_to(learner, outcome, weight, Some(prediction));
            world.effects(&*model, 0..TEST_ROWS)
        };
        let plain = effects(outcome, None, &prediction);
        let weighted = effects(outcome, Some(&weight), &prediction);
        assert_ne!(plain, weighted, "{name}: weights are not used");
        let with_wild = effects(&wild, Some(&weight), &prediction);
        assert_eq!(weighted, with_wild, "{name}: rows of weight 0 matter");

        let large = effects(&scaled, None, &scaled_prediction);
        let size = plain.iter().map(|effect| effect * effect).sum::<f32>().sqrt();
        let error = plain.iter().zip(&large).map(|(a, b)| (a - b / 1024.0).powi(2)).sum::<f32>().sqrt();
        // Outcomes are put in standard units: only rounding is left, which training lets grow a little.
        assert!(error < 0.02 * size, "{name}: {error} of {size}");
    }
}
