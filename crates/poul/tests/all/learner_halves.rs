//! Members on complementary halves of the rows: their spread is the standard error of their mean.

use poul::effect::{EffectModel, OutcomeColumn, Scores, Settings, Tensors, TrainingData};
use poul::learn::poul as learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Run, Seed, Silent};
use rand::RngExt;
use rand_distr::StandardNormal;

const N_ROWS: usize = 800;
const N_X: usize = 3;

struct Rows {
    policies: PolicySet,
    x: Vec<f32>,
    policy: Vec<u32>,
    y: Vec<f64>,
    cluster: Vec<u32>,
}

impl Rows {
    fn draw(seed: u64) -> Self {
        let mut builder = PolicySet::builder();
        for (policy, action) in [("control", "none"), ("T1", "a"), ("T2", "b")] {
            builder.add(policy, "all", action, 1.0);
        }
        let mut rng = Seed::new(seed).rng();
        let x: Vec<f32> = (0..N_ROWS * N_X).map(|_| rng.sample(StandardNormal)).collect();
        let policy: Vec<u32> = (0..N_ROWS).map(|_| rng.random_range(0..3)).collect();
        let y = |row: usize| {
            let first = f64::from(x[row * N_X]);
            first + [0.0, 1.0 + first, -0.5][policy[row] as usize] + rng.sample::<f64, _>(StandardNormal)
        };
        let y = (0..N_ROWS).map(y).collect();
        let cluster = (0..N_ROWS as u32).map(|row| row / 4).collect();
        Self { policies: builder.build().unwrap(), x, policy, y, cluster }
    }

    fn fit(&self, settings: &Settings) -> poul::Result<Box<dyn EffectModel>> {
        let x = DenseRows::new(&self.x, N_X)?;
        let outcomes = vec![OutcomeColumn { name: "y", values: &self.y, prediction: None }];
        let data = TrainingData {
            cluster: Some(&self.cluster),
            ..TrainingData::new(&x, &self.policies, &self.policy, outcomes)
        };
        Ok(learner::train(&data.check()?, settings, Run::new(Seed::new(1), &Silent))?.effects)
    }

    fn score(&self, model: &dyn EffectModel, spread: bool) -> (Scores, Option<usize>) {
        let scorer = model.prepare(&self.policies, &[0, 1], 2).unwrap();
        let x = DenseRows::new(&self.x[..50 * N_X], N_X).unwrap();
        (scorer.score(&x, spread).unwrap(), scorer.spread_freedom())
    }
}

fn settings(members: usize, rows: &str, loss: &str) -> Settings {
    let mut settings = Settings::default();
    let model = [("members", members.into()), ("hidden", vec![8].into()), ("loss", loss.into())];
    settings.model.extend(model.map(|(key, value): (&str, serde_json::Value)| (key.to_owned(), value)));
    settings.training.insert("epochs".to_owned(), 4.into());
    settings.training.insert("member_rows".to_owned(), rows.into());
    settings
}

#[test]
fn the_spread_of_a_pair_is_half_its_difference() {
    let rows = Rows::draw(1);
    // As trained: the error of averages would come on top.
    let mut settings = settings(2, "half", "squared");
    settings.training.insert("calibrate".to_owned(), false.into());
    let model = rows.fit(&settings).unwrap();
    let (scores, freedom) = rows.score(model.as_ref(), true);
    assert_eq!(freedom, Some(1));
    // The same without asking for it, and after a detour through the stored form.
    assert_eq!(rows.score(model.as_ref(), false).0.mean, scores.mean);
    let stored = |half: bool| {
        let mut tensors: Tensors = model.tensors().into_iter().collect();
        let mut manifest = model.manifest().unwrap();
        assert_eq!(manifest["training"]["member_rows"], "half");
        if !half {
            manifest["training"].as_object_mut().unwrap().remove("member_rows");
        }
        rows.score(learner::load(&manifest, &mut tensors).unwrap().as_ref(), true)
    };
    assert_eq!(stored(true), (scores.clone(), freedom));
    // The standard deviation over two members is |a − b|/√2, the standard error of a pair's mean |a − b|/2.
    let (members, freedom) = stored(false);
    assert_eq!((members.mean, freedom), (scores.mean, None));
    for (member, pair) in members.spread[0].iter().zip(&scores.spread[0]) {
        assert!((member / 2.0_f32.sqrt() - pair).abs() <= 1e-4 * member, "{member} {pair}");
    }
    assert!(scores.spread[0].iter().all(|spread| *spread > 0.0));
}

#[test]
fn odd_members_are_refused_and_all_rows_have_no_freedom() {
    let error = learner::settle(&settings(3, "half", "squared")).unwrap_err();
    assert_eq!(error.to_string(), "`model.members` is out of range");
    assert!(error.hint_text().unwrap().contains("even"));
    let rows = Rows::draw(1);
    let model = rows.fit(&settings(3, "all", "squared")).unwrap();
    assert_eq!(rows.score(model.as_ref(), true).1, None);
}

#[test]
fn chances_have_a_spread_too() {
    let mut rows = Rows::draw(2);
    rows.y.iter_mut().for_each(|y| *y = f64::from(u8::from(*y > 0.5)));
    let model = rows.fit(&settings(4, "half", "logistic")).unwrap();
    let (scores, freedom) = rows.score(model.as_ref(), true);
    assert_eq!(freedom, Some(2));
    assert!(scores.spread[0].iter().all(|spread| *spread > 0.0 && *spread < 0.5));
}
