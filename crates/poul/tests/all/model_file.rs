//! The model file: it survives, it is the same for the same fit, old ones load, and damage is told.

use std::path::{Path, PathBuf};

use poul::effect::Question;
use poul::model::FORMAT;
use poul::net::DenseRows;
use poul::policy::PolicySet;
use poul::{Experiment, Kind, Model, Roles, Silent, Source};
use proptest::prelude::*;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

fn roles() -> Roles {
    Roles {
        outcome: vec!["gmv".into(), "cost".into()],
        id: vec!["user".into()],
        weight: Some("w".into()),
        ..Roles::default()
    }
}

/// Fits the data of the golden model anew.
fn fitted(change: impl FnOnce(&mut Roles)) -> poul::Result<Model> {
    let source = Source::open(&golden("model_v1.csv").to_string_lossy())?;
    let mut roles = roles();
    change(&mut roles);
    let policies = PolicySet::read(&golden("model_v1.toml"), None)?;
    let experiment = Experiment::open(&source, &roles, policies, &Silent)?;
    Model::fit(&experiment).learner("constant").command(vec!["poul".into(), "fit".into()]).run(&Silent)
}

fn bytes_of(model: &Model) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.poul");
    model.save(&path).unwrap();
    std::fs::read(path).unwrap()
}

/// Effects of T1 and T2 on gmv for one row.
fn effects(model: &Model) -> Vec<f32> {
    let policies = &model.manifest().policies;
    let question = Question { policies: vec!["T1".into(), "T2".into()], against: None };
    let answer = model.ask(policies, &question, false).unwrap();
    let width = model.manifest().encoder.width();
    let x = vec![0.0; width];
    answer.scorer.score(&DenseRows::new(&x, width).unwrap(), true).unwrap().mean[0].clone()
}

#[test]
fn the_same_fit_gives_the_same_bytes_and_they_read_back() {
    let fits = [1, 3].map(|n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| fitted(|_| ()).unwrap())
    });
    let bytes = bytes_of(&fits[0]);
    assert!(bytes == bytes_of(&fits[1]), "threads show in the model");
    let read = Model::from_bytes(&bytes).unwrap();
    assert_eq!(read.manifest(), fits[0].manifest());
    assert_eq!(effects(&read), effects(&fits[0]));
    assert!(bytes_of(&read) == bytes, "a model that is read and saved changes");
}

// Made once by poul 0.1.0, in its folder: `poul fit model_v1.csv --policies model_v1.toml --outcome gmv,cost
// --id user --weight w --learner constant --out model_v1.poul`. It is never made again: files like it are out there.
#[test]
fn a_model_of_format_1_loads_and_gives_what_it_gave() {
    let model = Model::load(golden("model_v1.poul")).unwrap();
    let manifest = model.manifest();
    assert_eq!(
        (manifest.format, manifest.poul.as_str(), manifest.learner.as_str()),
        (1, "0.1.0", "constant")
    );
    assert_eq!(manifest.policies.names(), ["T1", "T2", "control", "planned"]);
    assert_eq!(manifest.policy_rows, [20, 20, 20, 0]);
    assert_eq!(manifest.control.as_deref(), Some("control"));
    assert_eq!(manifest.roles, roles());
    assert_eq!(manifest.data[0].files, ["model_v1.csv"]);
    assert_eq!(manifest.command[..3], ["poul", "fit", "model_v1.csv"]);
    assert_eq!(manifest.encoder.features().count(), 2);
    assert_eq!(manifest.outcomes[1].name, "cost");
    let expected = effects(&fitted(|_| ()).unwrap());
    for (found, expected) in effects(&model).iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn what_cannot_be_learned_from_is_told() {
    let error = fitted(|roles| roles.population = Some("policy = 'T1'".into())).err().unwrap();
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Input, "every row has the policy `T1`"));
    let error = fitted(|roles| roles.treatment = Some("city".into())).err().unwrap();
    assert!(error.to_string().contains("unknown policy"), "{error}");
}

#[test]
fn a_policy_on_atoms_never_seen_is_refused_unless_allowed() {
    let model = fitted(|_| ()).unwrap();
    let policies = &model.manifest().policies;
    let question = Question { policies: vec!["planned".into()], against: None };
    let error = model.ask(policies, &question, false).err().unwrap();
    assert_eq!(
        error.to_string(),
        "policy `planned`: 100.0 % of the policy is on atoms that no training row carried: `off_peak:taxi`, `peak:taxi`"
    );
    let answer = model.ask(policies, &question, true).unwrap();
    assert_eq!((answer.unseen_share.as_slice(), answer.against()), (&[1.0][..], "control"));
    assert!(answer.scorer.notes()[0].contains("stands in"), "{:?}", answer.scorer.notes());
    let reversed = Question { policies: vec!["T1".into()], against: Some("planned".into()) };
    assert!(model.ask(policies, &reversed, false).is_err());
    assert_eq!(model.ask(policies, &reversed, true).unwrap().unseen_share, [1.0]);
}

/// The golden file with its header as text, taken apart.
fn taken_apart() -> (String, Vec<u8>) {
    let bytes = std::fs::read(golden("model_v1.poul")).unwrap();
    let n_header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (String::from_utf8(bytes[8..8 + n_header].to_vec()).unwrap(), bytes[8 + n_header..].to_vec())
}

fn put_together(header: &str, tensors: &[u8]) -> Vec<u8> {
    let header = format!("{header}{}", " ".repeat(header.len().next_multiple_of(8) - header.len()));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), tensors].concat()
}

fn message(bytes: &[u8]) -> String {
    let error = Model::from_bytes(bytes).err().expect("an error");
    assert_eq!(error.kind(), Kind::Input, "{error}");
    assert!(error.hint_text().is_some(), "{error}");
    error.to_string()
}

#[test]
fn damage_is_told_from_other_files_and_newer_versions() {
    let (header, tensors) = taken_apart();
    let whole = put_together(&header, &tensors);
    assert!(Model::from_bytes(&whole).is_ok());
    for n_bytes in [9, 200, whole.len() - 1] {
        assert!(message(&whole[..n_bytes]).contains("cut short"), "{n_bytes}");
    }
    assert!(message(&[&whole[..], b"more"].concat()).contains("cut short"));
    assert!(message(b"").contains("not a model"));
    assert!(message(b"PAR1 and so on, and on").contains("not a model"));
    assert!(message(&put_together("{}", b"")).contains("some other program"));
    let newer = header.replace(&format!(r#"\"format\":{FORMAT}"#), r#"\"format\":9999"#);
    let newer = newer.replace(r#"\"poul\":\"0.1.0\""#, r#"\"poul\":\"7.2.0\""#);
    assert_eq!(
        message(&put_together(&newer, &tensors)),
        format!(
            "the model is of format 9999, written by poul 7.2.0; this version reads formats up to {FORMAT}"
        )
    );
    let renamed = header.replace(r#""mean":{"dtype""#, r#""meen":{"dtype""#);
    assert_eq!(message(&put_together(&renamed, &tensors)), "tensor `mean`: is missing");
    let reshaped = header.replacen("\"shape\":[2,3]", "\"shape\":[3,2]", 1);
    assert!(message(&put_together(&reshaped, &tensors)).contains("has shape [3, 2] instead of [2, 3]"));
    let mut not_finite = tensors.clone();
    not_finite[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(message(&put_together(&header, &not_finite)).contains("holds NaN"));
    let learner = header.replace(r#"\"learner\":\"constant\""#, r#"\"learner\":\"stump\""#);
    let error = Model::from_bytes(&put_together(&learner, &tensors)).err().unwrap();
    assert!(error.to_string().contains("unknown learner `stump`"), "{error}");
    let fewer = header.replace(r#"\"policy_rows\":[20,20,20,0]"#, r#"\"policy_rows\":[20,20,20]"#);
    assert!(message(&put_together(&fewer, &tensors)).contains("contradict"));
}

#[test]
fn offsets_that_overflow_are_only_damage() {
    let size = 1_u64 << 60;
    let entry = |i: u64, size: u64| {
        let (start, end) = (i << 60, (i << 60) + size);
        format!(r#""t{i}":{{"dtype":"F32","shape":[{}],"data_offsets":[{start},{end}]}}"#, size / 4)
    };
    let mut entries: Vec<String> = (0..15).map(|i| entry(i, size)).collect();
    entries.push(entry(15, size - 16));
    let header = format!(r#"{{"__metadata__":{{"poul":"{{}}"}},{}}}"#, entries.join(","));
    let error = message(&put_together(&header, b""));
    assert!(error.contains("damaged") || error.contains("cut short"), "{error}");
}

#[test]
fn a_file_that_is_not_there_or_a_folder_is_told() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Model::load(folder.path().join("none.poul")).err().unwrap().kind(), Kind::Input);
    assert_eq!(Model::load(folder.path()).err().unwrap().kind(), Kind::Input);
    let model = fitted(|_| ()).unwrap();
    assert_eq!(model.save(folder.path().join("no/m.poul")).unwrap_err().kind(), Kind::Output);
}

/// Whatever was read, asking it must not panic either.
fn use_it(bytes: &[u8]) {
    if let Ok(model) = Model::from_bytes(bytes) {
        let policies = &model.manifest().policies;
        if let Ok(answer) = model.ask(policies, &Question::default(), true) {
            let width = model.manifest().encoder.width();
            let x = vec![0.5; 3 * width];
            let _ = answer.scorer.score(&DenseRows::new(&x, width).unwrap(), true);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        use_it(&bytes);
        let header: String = bytes.iter().map(|byte| char::from(byte % 96 + 32)).collect();
        use_it(&put_together(&format!("{{{header}"), &bytes));
    }

    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = std::fs::read(golden("model_v1.poul")).unwrap();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        use_it(&bytes);
    }

    #[test]
    fn changed_numbers_never_panic(place in any::<prop::sample::Index>(), digits in "[0-9]{1,20}") {
        // Numbers in the header, which the reader and the manifest count and index by.
        let (header, tensors) = taken_apart();
        let starts: Vec<usize> = header
            .match_indices(|c: char| c.is_ascii_digit())
            .map(|(at, _)| at)
            .filter(|at| !header.as_bytes()[at - 1].is_ascii_digit())
            .collect();
        let start = starts[place.index(starts.len())];
        let length = header[start..].find(|c: char| !c.is_ascii_digit()).unwrap();
        let changed = format!("{}{digits}{}", &header[..start], &header[start + length..]);
        use_it(&put_together(&changed, &tensors));
    }

    #[test]
    fn pieces_cut_out_never_panic(from in any::<prop::sample::Index>(), n in 1_usize..400) {
        let mut bytes = std::fs::read(golden("model_v1.poul")).unwrap();
        let from = from.index(bytes.len());
        bytes.drain(from..(from + n).min(bytes.len()));
        use_it(&bytes);
    }
}
