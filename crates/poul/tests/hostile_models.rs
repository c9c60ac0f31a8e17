//! A model file from a stranger: whatever its numbers say, it loads or is refused, and what loads can be asked. No panic, no abort,
//! and no allocation beyond what a file of its size can need.

#![allow(clippy::unwrap_used, reason = "what helps a test fails it")]

#[path = "all/short.rs"]
mod short;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use poul::effect::{EffectModel, Tensors};
use poul::model::{CertificateParams, LEARNERS, Learner, learner};
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Experiment, Model, Roles, Silent, Source};
use serde_json::{Value, json};
use short::Short;

struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// The files are of some hundred kilobytes.
const MOST_BYTES: usize = 64 << 20;

#[allow(unsafe_code, reason = "a global allocator is an unsafe trait")]
// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// A model of a learner, small and quickly fitted.
fn fitted(learner: &Learner) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    let mut text = String::from("policy,y,age,city\n");
    for row in 0..120_u32 {
        let (policy, age) = (row % 3, row * 37 % 41);
        let y = f64::from(age * policy) / 20.0 + f64::from(row * 29 % 17) / 17.0;
        let city = ["Rome", "Oslo", ""][(row / 3 % 3) as usize];
        writeln!(text, "{},{y},{age},{city}", ["control", "t1", "t2"][policy as usize]).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let source = Source::open(path.to_str().unwrap()).unwrap();
    let roles = Roles { outcome: vec!["y".into()], ..Roles::default() };
    let mut policies = PolicySet::builder();
    for (name, up, down) in [("control", "no", "no"), ("t1", "yes", "no"), ("t2", "yes", "yes")] {
        policies.add(name, "up", up, 1.0).add(name, "down", down, 1.0);
    }
    let experiment = Experiment::open(&source, &roles, policies.build().unwrap(), &Silent).unwrap();
    Model::fit(&experiment)
        .learner(learner.name)
        .settings(&SHORT.settings(learner))
        .seed(1)
        .run(&Silent)
        .unwrap()
}

/// As few steps as there can be.
const SHORT: Short = Short {
    trees: 4,
    min_arm_rows: 10,
    widths: &[6, 4],
    of: &["constant", "poul"],
    epochs: 1,
    batch_rows: 256,
};

/// Where the numbers of a document are; of a list its first, its second and its last.
fn numbers(at: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Number(_) => found.push((at.to_owned(), value.clone())),
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                numbers(&format!("{at}/{name}"), value, found);
            }
        }
        Value::Array(items) => {
            let last = items.len().saturating_sub(1);
            for (place, value) in items.iter().enumerate().filter(|(place, _)| *place < 2 || *place == last) {
                numbers(&format!("{at}/{place}"), value, found);
            }
        }
        _ => {}
    }
}

/// Where lists are, those in lists told by the first.
fn lists(at: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| lists(&format!("{at}/{name}"), value, found));
        }
        Value::Array(items) if !items.is_empty() => {
            found.push(at.to_owned());
            lists(&format!("{at}/0"), &items[0], found);
        }
        _ => {}
    }
}

fn hostile(number: &Value) -> Vec<Value> {
    if number.is_f64() {
        return vec![json!(0.0), json!(-1.0), json!(1e300), Value::Null];
    }
    let sizes = [0, 1, 1 << 31, u64::from(u32::MAX), 1 << 62, u64::MAX];
    sizes.map(|size| json!(size)).into_iter().chain([json!(-1), json!(1e300), Value::Null]).collect()
}

fn tensors_of(effects: &dyn EffectModel) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    effects.tensors().into_iter().map(|own| (own.name, own.shape, own.values.to_vec())).collect()
}

/// What did not end as it must.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    /// Runs what must end without a panic and without a large allocation; says whether it gave something.
    fn endures(&mut self, what: &dyn Fn() -> String, run: impl FnOnce() -> bool) -> bool {
        LARGEST.store(0, Ordering::Relaxed);
        let ended = catch_unwind(AssertUnwindSafe(run));
        let largest = LARGEST.load(Ordering::Relaxed);
        if ended.is_err() {
            self.0.push(format!("{}: a panic", what()));
        } else if largest >= MOST_BYTES {
            self.0.push(format!("{}: {largest} bytes at once", what()));
        }
        ended.unwrap_or(false)
    }
}

impl Drop for Failures {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{} failures:\n{}", self.0.len(), self.0.join("\n"));
        }
    }
}

/// Asks a model that loaded for the effects of all policies on two rows.
fn ask(effects: &dyn EffectModel, policies: &PolicySet) {
    let all: Vec<usize> = (0..policies.len()).collect();
    let width = effects.n_features();
    // A learner that needs no weights may say what it likes of its features: the front door compares it with the encoder.
    if width > 1000 {
        return;
    }
    let rows = vec![0.5; 2 * width.max(1)];
    if let (Ok(scorer), Ok(x)) = (effects.prepare(policies, &all, 0), DenseRows::new(&rows, width.max(1))) {
        let _ = scorer.score(&x, true);
    }
}

#[test]
fn every_number_of_every_learner_may_be_wrong() {
    let mut failures = Failures::default();
    let (mut n_cases, mut n_loaded) = (0, 0);
    for own in LEARNERS {
        let model = fitted(own);
        let (manifest, tensors) = (&model.manifest().model, tensors_of(model.effects()));
        let policies = &model.manifest().policies;
        let load = |manifest: &Value| {
            let mut all = Tensors::default();
            for (name, shape, values) in &tensors {
                all.insert(name, shape.clone(), values.clone());
            }
            let Ok(effects) = (own.load)(manifest, &mut all) else { return false };
            ask(&*effects, policies);
            true
        };
        assert!(load(manifest), "{} does not load as it is", own.name);
        let mut places = Vec::new();
        numbers("", manifest, &mut places);
        for (at, number) in &places {
            for wrong in hostile(number) {
                let mut changed = manifest.clone();
                *changed.pointer_mut(at).unwrap() = wrong.clone();
                let what = || format!("{}: {at} = {wrong} instead of {number}", own.name);
                n_cases += 1;
                n_loaded += usize::from(failures.endures(&what, || load(&changed)));
            }
        }
        let mut places = Vec::new();
        lists("", manifest, &mut places);
        for at in &places {
            for n_left in [0, 1, 2] {
                let mut changed = manifest.clone();
                let list = changed.pointer_mut(at).unwrap().as_array_mut().unwrap();
                let n_items = list.len();
                list.truncate(if n_left == 2 { n_items - 1 } else { n_left });
                let what = || format!("{}: {at} with {n_left} of {n_items}", own.name);
                n_cases += 1;
                n_loaded += usize::from(failures.endures(&what, || load(&changed)));
            }
        }
    }
    assert!(n_cases > 2000 && n_loaded > 100 && n_loaded < n_cases, "{n_loaded} of {n_cases}");
}

#[test]
fn every_tensor_may_have_another_shape_or_be_missing() {
    let mut failures = Failures::default();
    for own in LEARNERS {
        let model = fitted(own);
        let (manifest, tensors) = (&model.manifest().model, tensors_of(model.effects()));
        let mut kinds = std::collections::BTreeSet::new();
        for (place, (name, shape, values)) in tensors.iter().enumerate() {
            // Members, folds and trees have the same under other numbers.
            let kind: String = name.chars().filter(|character| !character.is_ascii_digit()).collect();
            if !kinds.insert(kind) {
                continue;
            }
            let n = values.len();
            let shapes = [
                (shape.iter().rev().copied().collect::<Vec<_>>(), n),
                (vec![n], n),
                (vec![1, n], n),
                (vec![n - 1, 1], n - 1),
                (vec![0, usize::MAX], 0),
                (Vec::new(), 1),
            ];
            for (wrong, n_values) in
                shapes.iter().filter(|(wrong, n_values)| (wrong, *n_values) != (shape, n))
            {
                let what = || format!("{}: `{name}` of shape {wrong:?} instead of {shape:?}", own.name);
                failures.endures(&what, || {
                    let mut all = Tensors::default();
                    for (other, (name, shape, values)) in tensors.iter().enumerate() {
                        match other == place {
                            true => all.insert(name, wrong.clone(), values[..*n_values].to_vec()),
                            false => all.insert(name, shape.clone(), values.clone()),
                        }
                    }
                    let Ok(effects) = (own.load)(manifest, &mut all) else { return false };
                    ask(&*effects, &model.manifest().policies);
                    true
                });
            }
            let what = || format!("{}: without `{name}`", own.name);
            let loaded = failures.endures(&what, || {
                let mut all = Tensors::default();
                let others = tensors.iter().enumerate().filter(|(other, _)| *other != place);
                others.for_each(|(_, (name, shape, values))| all.insert(name, shape.clone(), values.clone()));
                (own.load)(manifest, &mut all).is_ok()
            });
            assert!(!loaded, "{}", what());
        }
    }
}

/// The manifest of a file, and what changes it there.
fn taken_apart(bytes: &[u8]) -> (Value, impl Fn(&Value) -> Vec<u8>) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let manifest = serde_json::from_str(header["__metadata__"]["poul"].as_str().unwrap()).unwrap();
    let tensors = bytes[8 + length..].to_vec();
    let put_together = move |manifest: &Value| {
        let mut header = header.clone();
        header["__metadata__"]["poul"] = Value::String(manifest.to_string());
        let header = header.to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &tensors].concat()
    };
    (manifest, put_together)
}

#[test]
fn every_number_around_the_learner_may_be_wrong() {
    let mut failures = Failures::default();
    let bytes = fitted(learner("constant").unwrap()).to_bytes().unwrap();
    let (manifest, put_together) = taken_apart(&bytes);
    assert!(Model::from_bytes(&put_together(&manifest)).is_ok());
    let (mut places, mut shortened) = (Vec::new(), Vec::new());
    numbers("", &manifest, &mut places);
    lists("", &manifest, &mut shortened);
    let load = |changed: &Value| {
        let Ok(model) = Model::from_bytes(&put_together(changed)) else { return false };
        ask(model.effects(), &model.manifest().policies);
        true
    };
    for (at, number) in &places {
        for wrong in hostile(number) {
            let mut changed = manifest.clone();
            *changed.pointer_mut(at).unwrap() = wrong.clone();
            failures.endures(&|| format!("{at} = {wrong} instead of {number}"), || load(&changed));
        }
    }
    for at in &shortened {
        let mut changed = manifest.clone();
        changed.pointer_mut(at).unwrap().as_array_mut().unwrap().pop();
        failures.endures(&|| format!("{at} is shorter"), || load(&changed));
    }
}

#[test]
fn numbers_that_only_double_precision_holds_are_the_files_fault() {
    let model = fitted(learner("poul").unwrap());
    let bytes = model.to_bytes().unwrap();
    let (whole, packed) = taken_apart(&bytes);
    let mut places = Vec::new();
    numbers("", &whole, &mut places);
    let mut n_refused = 0;
    for (at, number) in places.iter().filter(|(at, number)| at.starts_with("/model/") && number.is_f64()) {
        let mut changed = whole.clone();
        *changed.pointer_mut(at).unwrap() = json!(3.5e38);
        let all: Vec<usize> = (0..model.manifest().policies.len()).collect();
        let prepared = Model::from_bytes(&packed(&changed))
            .and_then(|model| model.effects().prepare(&model.manifest().policies, &all, 0).map(|_| ()));
        if let Err(error) = prepared {
            assert_eq!(error.kind(), poul::Kind::Input, "{at} = 3.5e38 instead of {number}: {error}");
            n_refused += 1;
        }
    }
    assert!(n_refused > 0);
}

#[test]
fn a_certificate_of_a_model_with_fewer_deciles_is_refused_or_right() {
    let mut failures = Failures::default();
    let bytes = fitted(learner("poul").unwrap()).to_bytes().unwrap();
    let (manifest, put_together) = taken_apart(&bytes);
    let params = CertificateParams::default().check().unwrap();
    let mut places = Vec::new();
    lists("/model/gains", &manifest["model"]["gains"], &mut places);
    assert!(places.len() >= 4, "{places:?}");
    for at in places {
        for n_left in [0, 1] {
            let mut changed = manifest.clone();
            changed.pointer_mut(&at).unwrap().as_array_mut().unwrap().truncate(n_left);
            failures.endures(&|| format!("{at} cut to {n_left}"), || {
                let Ok(model) = Model::from_bytes(&put_together(&changed)) else { return false };
                let policies = &model.manifest().policies;
                (0..policies.len()).all(|policy| model.certify(policies, policy, &params).is_ok())
            });
        }
    }
}

#[test]
fn numbers_that_are_none_are_damage() {
    let mut bytes = fitted(learner("ridge").unwrap()).to_bytes().unwrap();
    let n_bytes = bytes.len();
    bytes[n_bytes - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = Model::from_bytes(&bytes).err().unwrap();
    assert!(error.to_string().contains("damaged"), "{error}");
}
