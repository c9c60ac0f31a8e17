//! The treatment net: an action that was never run is scored by its attributes, forms of ρ keep what they promise, and
//! the stored form is canonical.

use poul::effect::{EffectModel, OutcomeColumn, Settings, TrainingData};
use poul::learn::poul::{Poul, train};
use poul::net::DenseRows;
use poul::policy::{AttributeValue, Attributes, PolicySet};
use poul::{Run, Seed, Silent};
use rand::RngExt;

const N_FEATURES: usize = 5;
const CONTEXTS: [(&str, f64); 3] = [("night", 0.5), ("noon", 0.3), ("rush", 0.2)];
const DISCOUNTS: [u32; 5] = [0, 5, 10, 15, 20];

/// Discounts by context; no row has a policy with a discount of 15.
struct World {
    x: Vec<f32>,
    y: Vec<f64>,
    policy: Vec<u32>,
    policies: PolicySet,
    /// The discount of each policy in each context.
    discounts: Vec<[u32; 3]>,
}

fn effect(x: &[f32], discounts: [u32; 3]) -> f64 {
    let gain = |discount: u32| 3.0 * (1.0 - (-f64::from(discount) / 12.0).exp());
    let by_context = CONTEXTS.iter().zip(discounts).enumerate();
    by_context.map(|(s, ((_, weight), discount))| weight * (1.0 + f64::from(x[s])) * gain(discount)).sum()
}

impl World {
    fn new(n_rows: usize, with_attributes: bool) -> Self {
        let mut rng = Seed::new(11).rng();
        let mut chosen: Vec<[u32; 3]> = vec![[0; 3]];
        while chosen.len() < 40 {
            let policy = [0; 3].map(|_: u32| DISCOUNTS[rng.random_range(0..5)]);
            if !chosen.contains(&policy) {
                chosen.push(policy);
            }
        }
        let mut builder = PolicySet::builder();
        for (context, weight) in CONTEXTS {
            builder.weight(context, weight);
        }
        for (number, policy) in chosen.iter().enumerate() {
            for ((context, _), discount) in CONTEXTS.iter().zip(policy) {
                builder.add(&format!("t{number:02}"), context, &format!("d{discount}"), 1.0);
            }
        }
        if with_attributes {
            let discount =
                |own: u32| [("discount".to_owned(), AttributeValue::Number(f64::from(own)))].into();
            let actions = DISCOUNTS.iter().map(|own| (format!("d{own}"), discount(*own))).collect();
            builder.attributes(Attributes { actions, ..Attributes::default() });
        }
        let run: Vec<u32> = (0..40_u32).filter(|policy| !chosen[*policy as usize].contains(&15)).collect();
        let (mut x, mut y, mut policy) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n_rows {
            let features: Vec<f32> = (0..N_FEATURES).map(|_| rng.random_range(-1.7_f32..1.7)).collect();
            let own = run[rng.random_range(0..run.len())];
            let noise: f64 = (0..4).map(|_| rng.random_range(-1.0_f64..1.0)).sum();
            y.push(f64::from(features[3]) + effect(&features, chosen[own as usize]) + noise);
            x.extend(features);
            policy.push(own);
        }
        Self { x, y, policy, policies: builder.build().unwrap(), discounts: chosen }
    }

    fn train(&self, model: &[(&str, serde_json::Value)]) -> Poul {
        let x = DenseRows::new(&self.x, N_FEATURES).unwrap();
        let data = TrainingData {
            control: Some(0),
            ..TrainingData::new(
                &x,
                &self.policies,
                &self.policy,
                vec![OutcomeColumn { name: "y", values: &self.y, prediction: None }],
            )
        };
        let mut settings = Settings::default();
        settings.model.insert("members".into(), 2.into());
        settings.training.insert("epochs".into(), 20.into());
        for (name, value) in model {
            settings.model.insert((*name).into(), value.clone());
        }
        let trained = train(&data.check().unwrap(), &settings, Run::new(Seed::new(3407), &Silent)).unwrap();
        stored(&*trained.effects)
    }

    /// Normalised errors over the policies that were run, and over those with a discount of 15.
    fn errors(&self, poul: &Poul) -> [f64; 2] {
        let n = self.policies.len();
        let targets: Vec<usize> = (0..n).collect();
        let rows = &self.x[..500 * N_FEATURES];
        let x = DenseRows::new(rows, N_FEATURES).unwrap();
        let scorer = poul.prepare(&self.policies, &targets, 0).unwrap();
        let scores = scorer.score(&x, false).unwrap().mean.remove(0);
        let (mut squares, mut power) = ([0.0; 2], [0.0; 2]);
        for (place, score) in scores.iter().enumerate() {
            let discounts = self.discounts[place % n];
            let truth = effect(&rows[place / n * N_FEATURES..][..N_FEATURES], discounts);
            let tier = usize::from(discounts.contains(&15));
            squares[tier] += (f64::from(*score) - truth).powi(2);
            power[tier] += truth * truth;
        }
        [0, 1].map(|tier| (squares[tier] / power[tier]).sqrt())
    }
}

/// The model after a detour through its stored form.
fn stored(model: &dyn EffectModel) -> Poul {
    let mut tensors = poul::effect::Tensors::default();
    for tensor in model.tensors() {
        tensors.insert(tensor.name, tensor.shape, tensor.values.to_vec());
    }
    Poul::from_parts(&model.manifest().unwrap(), &mut tensors).unwrap()
}

#[test]
fn an_action_never_run_is_scored_by_its_attributes() {
    let (with, without) = (World::new(6000, true), World::new(6000, false));
    assert_eq!((&with.y, &with.policy), (&without.y, &without.policy));
    let (described, nameless) = (with.train(&[]), without.train(&[]));
    let (described_errors, nameless_errors) = (with.errors(&described), without.errors(&nameless));
    println!("run and new: with attributes {described_errors:?}, without {nameless_errors:?}");
    assert!(described_errors[1] < 0.3, "{described_errors:?}");
    assert!(described_errors[1] < 0.75 * nameless_errors[1], "{described_errors:?} {nameless_errors:?}");
    // What was run is known as well as without them.
    assert!(described_errors[0] < 1.1 * nameless_errors[0], "{described_errors:?} {nameless_errors:?}");

    let known = with.policies.attributes();
    assert!(described.embeds("noon", "d15", known) && !described.embeds("noon", "d17", known));
    assert!(!described.embeds("dawn", "d15", known));
    assert!(!nameless.embeds("noon", "d15", known));
    let lookup = with.train(&[("embedding", "lookup".into()), ("members", 1.into())]);
    assert!(!lookup.embeds("noon", "d15", known));
}

#[test]
fn what_lies_beyond_training_is_told() {
    let world = World::new(600, true);
    let poul = world.train(&[("members", 1.into())]);
    let mut beside = PolicySet::builder();
    for (context, weight) in CONTEXTS {
        beside.weight(context, weight).add("bold", context, "d50", 1.0).add("bold2", context, "d15", 1.0);
    }
    let bold = [("discount".to_owned(), AttributeValue::Number(50.0))].into();
    beside.attributes(Attributes { actions: [("d50".to_owned(), bold)].into(), ..Attributes::default() });
    let all = world.policies.union(&beside.build().unwrap()).unwrap();
    let of = |name: &str| all.index(name).unwrap();
    let scorer = poul.prepare(&all, &[of("bold"), of("bold2")], of("t00")).unwrap();
    assert_eq!(
        scorer.notes(),
        [
            "attribute `discount` of action `d50` is 50, where training knew 0 to 20: its effect is extrapolated"
        ]
    );
}

#[test]
fn the_constant_of_a_bounded_rho_is_known() {
    let world = World::new(3000, true);
    let free = world.train(&[]);
    // A bound that does not bind changes the axes of h alone.
    let loose = world.train(&[("lipschitz", 1e5.into())]);
    let bound = 0.5 * loose.geometry().iter().filter_map(|own| own.lipschitz).fold(f64::MAX, f64::min);
    let bounded = world.train(&[("lipschitz", bound.into())]);
    let all: Vec<usize> = (0..world.policies.len()).collect();
    for poul in [&free, &loose, &bounded] {
        let embeddings = poul.embeddings(&world.policies, &all, 0).unwrap();
        for (h, geometry) in embeddings.iter().zip(poul.geometry()) {
            let lipschitz = geometry.lipschitz.unwrap();
            let d = h.len() / all.len();
            // Proposition 3: ‖h(t) − h(t′)‖ ≤ L_ρ·B_φ·d_Π(t, t′), among policies whose atoms were seen.
            let is_run = |policy: usize| !world.discounts[policy].contains(&15);
            for (a, b) in all.iter().flat_map(|a| (0..*a).map(move |b| (*a, b))) {
                if !is_run(a) || !is_run(b) {
                    continue;
                }
                let square = |(x, y): (&f32, &f32)| f64::from(x - y).powi(2);
                let far = h[a * d..][..d].iter().zip(&h[b * d..][..d]).map(square).sum::<f64>().sqrt();
                let most = lipschitz * geometry.embedding_bound * world.policies.distance(a, b);
                assert!(far <= most * 1.000_01, "{far} > {most}");
            }
        }
    }
    assert!(bounded.geometry().iter().all(|own| own.lipschitz.unwrap() <= bound * 1.000_001));
    let [free, loose, bounded] = [&free, &loose, &bounded].map(|poul| world.errors(poul));
    println!("errors: free {free:?}, loose {loose:?}, bounded {bounded:?}");
    assert!((free[0] - loose[0]).abs() < 1e-5 && (free[1] - loose[1]).abs() < 1e-5, "{free:?} {loose:?}");
    assert_ne!(loose, bounded, "the bound does not bind");
    assert!(bounded[0] < 0.5, "{bounded:?}");
}

#[test]
fn a_normalised_rho_learns_too() {
    let world = World::new(3000, true);
    let poul = world.train(&[("layer_norm", true.into())]);
    assert!(poul.geometry().iter().all(|own| own.lipschitz.is_none()));
    let errors = world.errors(&poul);
    println!("errors: {errors:?}");
    assert!(errors[0] < 0.5 && errors[1] < 0.5, "{errors:?}");
}

#[test]
fn models_from_before_these_settings_load() {
    let world = World::new(600, false);
    let poul = world.train(&[("members", 1.into())]);
    let mut manifest = poul.manifest().unwrap();
    manifest.as_object_mut().unwrap().remove("geometry").unwrap();
    for setting in ["layer_norm", "lipschitz"] {
        manifest["model"].as_object_mut().unwrap().remove(setting).unwrap();
    }
    // Without attributes nothing of them is stored.
    assert_eq!(manifest["space"].as_object().unwrap().len(), 5);
    let mut tensors = poul::effect::Tensors::default();
    for tensor in poul.tensors() {
        tensors.insert(tensor.name, tensor.shape, tensor.values.to_vec());
    }
    let old = Poul::from_parts(&manifest, &mut tensors).unwrap();
    assert!(old.geometry().is_empty());
    assert_eq!(world.errors(&old), world.errors(&poul));
}
