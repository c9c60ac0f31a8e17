//! Outcomes that learn from each other: a noisy one takes from a plain one who responds, one that has nothing to do with
//! it takes nothing, and neither the order of outcomes nor who asks for their effects changes anything.

use poul::effect::{EffectModel, OutcomeColumn, Settings, Trained, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

const FEATURES: usize = 4;
/// Enough for a noisy outcome to learn from a plain one.
const ROWS: usize = 6_000;

/// Three policies over two contexts, and three outcomes: `plain`, `noisy` with the same users who respond, and `other`.
struct World {
    policies: PolicySet,
    policy: Vec<u32>,
    x: Vec<f32>,
    outcomes: [(&'static str, Vec<f64>); 3],
}

/// What a policy does to a row in units of `plain`, and in those of `other`.
fn effects(x: &[f32], policy: u32) -> [f64; 2] {
    let strength = [0.0, 1.0, 0.6][policy as usize];
    let [a, c] = [f64::from(x[0]), f64::from(x[2])];
    [strength * (0.5 + a.max(0.0)), strength * (1.0 - c)]
}

impl World {
    fn new(seed: u64, n_rows: usize) -> Self {
        let mut builder = PolicySet::builder();
        for (policy, day, night) in
            [("control", "none", "none"), ("t1", "mail", "mail"), ("t2", "mail", "none")]
        {
            builder.add(policy, "day", day, 1.0).add(policy, "night", night, 1.0);
        }
        let mut rng = Seed::new(seed).rng();
        let (mut policy, mut x) = (Vec::new(), Vec::new());
        let mut values = [const { Vec::new() }; 3];
        for _ in 0..n_rows {
            let own: [f32; FEATURES] = std::array::from_fn(|_| rng.sample(StandardNormal));
            let arm = rng.random_range(0..3);
            let [same, other] = effects(&own, arm);
            let mut noise = || rng.sample::<f64, _>(StandardNormal);
            let level = f64::from(own[1]);
            for (values, value) in values.iter_mut().zip([
                level + same + 0.5 * noise(),
                4.0 * level + 3.0 * same + 12.0 * noise(),
                level + other + 0.5 * noise(),
            ]) {
                values.push(value);
            }
            policy.push(arm);
            x.extend(own);
        }
        let [plain, noisy, other] = values;
        let policies = builder.build().unwrap();
        Self { policies, policy, x, outcomes: [("plain", plain), ("noisy", noisy), ("other", other)] }
    }

    fn column(&self, name: &str) -> OutcomeColumn<'_> {
        let (name, values) = self.outcomes.iter().find(|(own, _)| *own == name).unwrap();
        OutcomeColumn { name, values, prediction: None }
    }

    fn fit(
        &self,
        outcomes: &[&str],
        auxiliary: &[&str],
        settings: &[(&str, serde_json::Value)],
    ) -> Result<Trained> {
        let x = DenseRows::new(&self.x, FEATURES)?;
        let columns = |names: &[&str]| names.iter().map(|name| self.column(name)).collect::<Vec<_>>();
        let mut data = TrainingData::new(&x, &self.policies, &self.policy, columns(outcomes));
        data.auxiliary = columns(auxiliary);
        let mut given = Settings::default();
        given.model.insert("members".into(), 2.into());
        given.model.insert("hidden".into(), vec![32].into());
        given.model.insert("outcome_hidden".into(), vec![32].into());
        given.training.insert("epochs".into(), 20.into());
        // Each of the two members holds out one half, so that all rows bear witness.
        given.training.insert("validation_share".into(), 0.5.into());
        settings.iter().for_each(|(key, value)| {
            given.model.insert((*key).to_owned(), value.clone());
        });
        (learner("poul")?.train)(&data.check()?, &given, Run::new(Seed::new(3407), &Silent))
    }

    /// Effects of `t1` on the outcomes of a model, row after row.
    fn scores(&self, model: &dyn EffectModel) -> Vec<Vec<f32>> {
        let x = DenseRows::new(&self.x, FEATURES).unwrap();
        model.prepare(&self.policies, &[1], 0).unwrap().score(&x, false).unwrap().mean
    }

    /// Root mean squared error of what sets rows apart in the effects of `t1`, against `true_effect`.
    fn error(&self, scores: &[f32], true_effect: impl Fn(&[f32]) -> f64) -> f64 {
        let truth: Vec<f64> = self.x.chunks(FEATURES).map(true_effect).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / self.policy.len() as f64;
        let of_truth = mean(&mut truth.iter().copied());
        let of_scores = mean(&mut scores.iter().map(|score| f64::from(*score)));
        let errors = scores.iter().zip(&truth);
        let square =
            |(score, truth): (&f32, &f64)| (f64::from(*score) - of_scores - truth + of_truth).powi(2);
        (errors.map(square).sum::<f64>() / self.policy.len() as f64).sqrt()
    }
}

fn loadings(trained: &Trained) -> Vec<Vec<f64>> {
    let manifest = trained.effects.manifest().unwrap();
    serde_json::from_value(manifest["shared"]["loadings"].clone()).unwrap()
}

#[test]
fn a_noisy_outcome_takes_from_a_plain_one_who_responds() {
    let world = World::new(1, ROWS);
    let noisy = |x: &[f32]| 3.0 * effects(x, 1)[0];
    let error = |shared: bool| {
        let trained = world.fit(&["plain", "noisy"], &[], &[("shared_gain", shared.into())]).unwrap();
        if shared {
            // In the order of names: the noisy outcome teaches the plain one nothing.
            let taken = loadings(&trained);
            assert!(taken[0][1] != 0.0 && taken[1][0] == 0.0, "{taken:?}");
        }
        let scores = world.scores(&*trained.effects);
        [world.error(&scores[1], noisy), world.error(&scores[0], |x| effects(x, 1)[0])]
    };
    let (alone, together) = (error(false), error(true));
    assert!(together[0] < 0.85 * alone[0], "{} beside {}", together[0], alone[0]);
    assert!(together[1] < 1.1 * alone[1], "{} beside {}", together[1], alone[1]);
}

#[test]
fn outcomes_that_share_nothing_take_nothing() {
    let world = World::new(2, ROWS);
    let trained = world.fit(&["plain", "other"], &[], &[]).unwrap();
    let taken = loadings(&trained);
    // In the order of names, `other` comes before `plain`.
    assert!(taken[0][0].abs() < 0.05 && taken[1][1].abs() < 0.05, "{taken:?}");
    assert!(taken[0][1] > 0.8 && taken[1][0] > 0.8, "{taken:?}");
}

#[test]
fn neither_the_order_of_outcomes_nor_who_asks_for_them_changes_anything() {
    let world = World::new(3, ROWS);
    let both = world.scores(&*world.fit(&["plain", "noisy"], &[], &[]).unwrap().effects);
    let turned = world.scores(&*world.fit(&["noisy", "plain"], &[], &[]).unwrap().effects);
    assert!(both[0] == turned[1] && both[1] == turned[0]);
    let trained = world.fit(&["noisy"], &["plain"], &[]).unwrap();
    assert_eq!(trained.effects.outcomes(), ["noisy"]);
    // But for rounding: axes are turned by the outcomes that are told.
    let far = |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0_f32, |far, (a, b)| far.max((a - b).abs()));
    let scores = world.scores(&*trained.effects);
    assert!(far(&scores[0], &both[1]) < 1e-3, "{}", far(&scores[0], &both[1]));
    assert!(trained.notes.iter().any(|note| note.contains("`plain`")), "{:?}", trained.notes);
    // And so it is in a model that was stored.
    let mut tensors = poul::effect::Tensors::default();
    for tensor in trained.effects.tensors() {
        tensors.insert(tensor.name, tensor.shape, tensor.values.into_owned());
    }
    let read = (learner("poul").unwrap().load)(&trained.effects.manifest().unwrap(), &mut tensors).unwrap();
    assert!(world.scores(&*read) == scores);
}

#[test]
fn what_cannot_teach_is_refused() {
    let world = World::new(4, 600);
    let error = world.fit(&["noisy"], &["plain"], &[("shared_treatment_net", false.into())]).err().unwrap();
    assert!(error.to_string().contains("auxiliary outcomes"), "{error}");
}
