//! The bound of a certificate for 0/1 outcomes, whose effects are differences of probabilities.

use poul::effect::{OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Run, Seed, Silent};
use rand::RngExt;

const N_ROWS: usize = 600;

#[test]
fn differences_of_probabilities_stay_within_the_bound() {
    let mut rng = Seed::new(2).rng();
    let mut builder = PolicySet::builder();
    for policy in 0..12 {
        for context in ["a", "b"] {
            builder.add(&format!("t{policy:02}"), context, &format!("x{}", rng.random_range(0..3)), 1.0);
        }
    }
    let policies = builder.build().unwrap();
    let x: Vec<f32> = (0..N_ROWS * 2).map(|_| rng.random_range(-1.0..1.0)).collect();
    let policy: Vec<u32> = (0..N_ROWS).map(|_| rng.random_range(0..10)).collect();
    let outcome = |row: usize| {
        let logit = 2.0 * x[2 * row] * if policy[row].is_multiple_of(2) { 1.0 } else { -1.0 };
        f64::from(u8::from(rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-logit).exp())))
    };
    let values: Vec<f64> = (0..N_ROWS).map(outcome).collect();
    let rows = DenseRows::new(&x, 2).unwrap();
    let outcomes = vec![OutcomeColumn { name: "y", values: &values, prediction: None }];
    let data = TrainingData::new(&rows, &policies, &policy, outcomes).check().unwrap();
    let mut settings = Settings::default();
    settings.model.insert("loss".into(), "logistic".into());
    settings.model.insert("members".into(), 2.into());
    settings.training.insert("epochs".into(), 4.into());
    settings.training.insert("folds".into(), 2.into());
    // Four epochs are too few for held-out rows to bear anything out.
    settings.training.insert("calibrate".into(), false.into());
    let poul = learner("poul").unwrap();
    let settings = (poul.settle)(&settings).unwrap();
    let trained = (poul.train)(&data, &settings, Run::new(Seed::new(1), &Silent)).unwrap();

    let net = trained.effects.policy_embedding().unwrap();
    let (gains, slope) = (net.gains(0), net.link_slope());
    assert_eq!((gains.len(), slope), (2, 0.25));
    let mut reached = 0.0_f64;
    for (t, other) in (0..12).flat_map(|t| (0..10).map(move |other| (t, other))).filter(|(t, o)| t != o) {
        let h = net.embeddings(&policies, &[t, other], 0).unwrap();
        let constants = net.constants(&policies, &[t, other], 0).unwrap();
        let distance = policies.distance(t, other);
        let (mut by_embedding, mut by_distance) = (0.0, 0.0);
        for (member, h) in h.iter().enumerate() {
            let (a, b) = h.split_at(h.len() / 2);
            let moved = gains[member].moved(a, b);
            let own = constants[member];
            let most = slope * gains[member].most[9] / 2.0;
            by_embedding += most * moved;
            by_distance += most * own.lipschitz.unwrap() * own.embedding_bound * distance;
        }
        assert!(by_embedding <= by_distance * (1.0 + 1e-4));
        let scorer = trained.effects.prepare(&policies, &[t], other).unwrap();
        let effects = scorer.score(&rows, false).unwrap().mean.remove(0);
        let most = effects.iter().fold(0.0_f64, |most, effect| most.max(f64::from(effect.abs())));
        assert!(most <= by_embedding * (1.0 + 1e-4) + 1e-6, "{most} of {by_embedding}");
        if by_embedding > 1e-6 {
            reached = reached.max(most / by_embedding);
        }
    }
    assert!(reached > 0.2, "{reached}");
}
