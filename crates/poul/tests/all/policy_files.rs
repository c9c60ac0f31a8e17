//! The forms of a policy file: the same set from each, whatever the order, there and back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use parquet::arrow::ArrowWriter;
use poul::policy::{Atom, AttributeValue, ContextWeights, PolicySet, exposure_weights};

const TOML: &str = r#"
[contexts]
peak_beijing = 3
offpeak_shanghai = 1
[policies.control]
"*" = "none"
[policies.T2]
"*" = "none"
peak_beijing = "upgrade"
offpeak_shanghai = { upgrade = 0.5, none = 0.5 }
"#;

const JSON: &str = r#"{
  "policies": {
    "T2": {"offpeak_shanghai": {"none": 0.5, "upgrade": 0.5}, "peak_beijing": {"upgrade": 1, "none": 0}},
    "control": {"*": {"none": 1.0}}
  },
  "contexts": {"offpeak_shanghai": 0.25, "peak_beijing": 0.75}
}"#;

const ROWS: [(&str, &str, &str, f64); 5] = [
    ("T2", "offpeak_shanghai", "upgrade", 0.5),
    ("control", "peak_beijing", "none", 1.0),
    ("T2", "peak_beijing", "upgrade", 1.0),
    ("T2", "offpeak_shanghai", "none", 0.5),
    ("control", "offpeak_shanghai", "none", 1.0),
];

const WEIGHTS: &str = "weight,context\n30,peak_beijing\n10,offpeak_shanghai\n";

fn long_csv(rows: &[(&str, &str, &str, f64)]) -> String {
    let lines = rows.iter().map(|(p, c, a, q)| format!("{a},{q},{p},{c}\n"));
    format!("action,probability,policy,context\n{}", lines.collect::<String>())
}

fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn strings<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn write_long_parquet(path: &Path, rows: &[(&str, &str, &str, f64)]) {
    let contexts: DictionaryArray<Int32Type> = rows.iter().map(|row| row.1).collect();
    let columns = vec![
        ("policy", strings(rows.iter().map(|row| row.0))),
        ("context", Arc::new(contexts) as ArrayRef),
        ("action", strings(rows.iter().map(|row| row.2))),
        ("probability", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.3)))),
    ];
    write_parquet(path, columns);
}

fn weights() -> ContextWeights {
    ContextWeights::from_map(&BTreeMap::from([
        ("peak_beijing".to_owned(), 3.0),
        ("offpeak_shanghai".to_owned(), 1.0),
    ]))
}

fn folder() -> (tempfile::TempDir, impl Fn(&str, &[u8]) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_path_buf();
    let write = move |name: &str, bytes: &[u8]| {
        let path = root.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    (folder, write)
}

fn toml(text: &str) -> PolicySet {
    PolicySet::from_toml(text, Path::new("p.toml")).unwrap()
}

#[test]
fn the_example_of_the_design_is_read_as_meant() {
    let set = toml(TOML);
    assert_eq!(set.names(), ["T2", "control"]);
    assert_eq!(set.contexts(), ["offpeak_shanghai", "peak_beijing"]);
    assert_eq!(set.weights(), [0.25, 0.75]);
    assert_eq!(set.actions(), ["none", "upgrade"]);
    let atoms: Vec<String> = (0..set.atoms().len()).map(|atom| set.atom_name(atom)).collect();
    assert_eq!(
        atoms,
        ["offpeak_shanghai:none", "offpeak_shanghai:upgrade", "peak_beijing:none", "peak_beijing:upgrade"]
    );
    assert_eq!(set.atoms()[2], Atom { context: 1, action: 0 });
    assert_eq!(set.atom_index("peak_beijing", "none"), Some(2));
    let t2 = set.mixture(set.index("T2").unwrap());
    assert_eq!((t2.atoms, t2.mass), ([0, 1, 3].as_slice(), [0.125, 0.125, 0.75].as_slice()));
    assert_eq!(set.conditional(0), [0.5, 0.5, 1.0]);
    assert_eq!(set.distance(0, 1), 0.75 * 2.0 + 0.25);
    assert_eq!(set.nearest(0, 5), [(1, 1.75)]);
    let error = set.require("contrl").unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.hint_text()),
        ("unknown policy `contrl`", Some("did you mean `control`?"))
    );
}

#[test]
fn every_form_gives_the_same_bytes() {
    let expected = toml(TOML).canonical_bytes();
    let (folder, write) = folder();
    let contexts_csv = write("weights.csv", WEIGHTS.as_bytes());
    let csv = write("p.csv", long_csv(&ROWS).as_bytes());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(long_csv(&ROWS).as_bytes()).unwrap();
    let gz = write("p.csv.gz", &gzip.finish().unwrap());
    let parquet = folder.path().join("p.parquet");
    write_long_parquet(&parquet, &ROWS);
    let contexts_parquet = folder.path().join("weights.parquet");
    let columns = vec![
        ("context", strings(["peak_beijing", "offpeak_shanghai"])),
        ("weight", Arc::new(Float32Array::from(vec![1.5, 0.5])) as ArrayRef),
    ];
    write_parquet(&contexts_parquet, columns);

    let read =
        |path: &Path, contexts: Option<&Path>| PolicySet::read(path, contexts).unwrap().canonical_bytes();
    assert_eq!(read(&write("p.toml", TOML.as_bytes()), None), expected);
    assert_eq!(read(&write("P.JSON", JSON.as_bytes()), None), expected);
    assert_eq!(read(&csv, Some(&contexts_csv)), expected);
    assert_eq!(read(&gz, Some(&contexts_parquet)), expected);
    assert_eq!(read(&parquet, Some(&contexts_csv)), expected);
    let from_bytes = PolicySet::from_csv(long_csv(&ROWS).as_bytes(), Path::new("p.csv"), Some(&weights()));
    assert_eq!(from_bytes.unwrap().canonical_bytes(), expected);
    let from_file =
        PolicySet::from_parquet(File::open(&parquet).unwrap(), &parquet, Some(&weights())).unwrap();
    assert_eq!(from_file, toml(TOML));
}

#[test]
fn probability_may_be_left_out_and_stars_work_in_the_long_form() {
    let csv =
        b"\xef\xbb\xbfpolicy,context,action\r\nT1,*,none\r\nT1,a,up\r\n\r\n\"T0\",*,none\r\nT0,b,none\r\n";
    let set = PolicySet::from_csv(csv, Path::new("p.csv"), None).unwrap();
    let same = toml("policies.T1 = {'*' = 'none', a = 'up'}\npolicies.T0 = {'*' = 'none', b = 'none'}");
    assert_eq!(set, same);
    assert!(!set.weights_declared());
    assert_eq!(set.weights(), [0.5, 0.5]);
}

#[test]
fn integer_names_are_the_same_in_csv_and_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    let columns = vec![
        ("policy", Arc::new(Int64Array::from(vec![7, -8])) as ArrayRef),
        ("context", strings(["a", "a"])),
        ("action", Arc::new(Int64Array::from(vec![0, 1]))),
    ];
    write_parquet(&path, columns);
    let csv =
        PolicySet::from_csv(b"policy,context,action\n7,a,0\n-8,a,1\n", Path::new("p.csv"), None).unwrap();
    assert_eq!(PolicySet::read(&path, None).unwrap(), csv);
}

#[test]
fn zero_probabilities_are_dropped_and_contexts_of_weight_zero_kept() {
    let set = toml("contexts = {a = 1, b = 0}\n[policies.T]\na = {x = 1, never = 0}\nb = 'only_here'");
    assert_eq!(set.actions(), ["only_here", "x"]);
    assert_eq!(set.atoms().len(), 2);
    assert_eq!(set.mixture(0).mass, [1.0, 0.0]);
    assert_eq!(set.conditional(0), [1.0, 1.0]);
}

#[test]
fn extreme_weights_still_sum_to_one() {
    for weights in
        ["{a = 1e308, b = 1e308, c = 1e308}", "{a = 5e-324, b = 5e-324, c = 0}", "{a = 1e308, b = 1e-308}"]
    {
        let set = toml(&format!("contexts = {weights}\npolicies.T = {{'*' = 'x'}}"));
        assert!((set.weights().iter().sum::<f64>() - 1.0).abs() < 1e-15, "{weights}: {:?}", set.weights());
    }
}

#[test]
fn text_and_manifest_round_trips_keep_the_bytes() {
    let sets = [
        toml(TOML),
        toml("[contexts]\na = 1\nb = 1\nc = 1\n'd.e \"f\"' = 4\n[policies.'p q']\n'*' = {x = 0.3333333, y = 0.6666666}\n\
              'd.e \"f\"' = {'' = 0, 'é\\' = 0.1, z = 0.7, w = 0.2}\n[attributes.contexts.a]\nn = 0.1\nflag = true\n\
              name = 'tab\tand \"quotes\"'\n[attributes.actions.future]\nprice = 3\nsmall = 1.2345678901234567e-300"
            .replace("'' = 0, ", "").as_str()),
    ];
    for set in sets {
        let bytes = set.canonical_bytes();
        assert_eq!(toml(&set.to_toml()).canonical_bytes(), bytes, "{}", set.to_toml());
        let json = serde_json::to_string_pretty(&set.to_json_value()).unwrap();
        assert_eq!(
            PolicySet::from_json(&json, Path::new("p.json")).unwrap().canonical_bytes(),
            bytes,
            "{json}"
        );
        let manifest = serde_json::to_string(&set).unwrap();
        let restored: PolicySet = serde_json::from_str(&manifest).unwrap();
        assert_eq!(restored.canonical_bytes(), bytes, "{manifest}");
        assert_eq!(restored.weights_declared(), set.weights_declared());
    }
}

#[test]
fn a_damaged_manifest_is_refused() {
    let manifest = serde_json::to_value(toml(TOML)).unwrap();
    type Damage = fn(&mut serde_json::Value);
    let damages: [Damage; 8] = [
        |v| v["entry_atoms"][0] = 99.into(),
        |v| v["atoms"][0] = vec![9, 9].into(),
        |v| v["atoms"].as_array_mut().unwrap().swap(0, 1),
        |v| v["n_entries"][0] = 2.into(),
        |v| v["probabilities"][0] = 0.75.into(),
        |v| v["probabilities"][0] = "x".into(),
        |v| v["weights"].as_array_mut().unwrap().truncate(1),
        |v| v["policies"].as_array_mut().unwrap().swap(0, 1),
    ];
    for (i, damage) in damages.into_iter().enumerate() {
        let mut value = manifest.clone();
        damage(&mut value);
        assert!(serde_json::from_value::<PolicySet>(value).is_err(), "damage {i}");
    }
}

#[test]
fn attributes_are_kept_even_for_names_to_come() {
    let set = toml("policies.T.a = 'x'\n[attributes.actions.y]\nprice = 12\nvip = true\ncolour = 'red'");
    let known = &set.attributes().actions["y"];
    assert_eq!(known["price"], AttributeValue::Number(12.0));
    assert_eq!(known["vip"], AttributeValue::Flag(true));
    assert_eq!(known["colour"], AttributeValue::Text("red".to_owned()));
    assert!(set.attributes().contexts.is_empty());
}

#[test]
fn diff_lists_what_moves() {
    let set = toml(TOML);
    let diff = set.diff(1, 0);
    assert_eq!((diff.from.as_str(), diff.to.as_str()), ("control", "T2"));
    assert_eq!((diff.distance, diff.mass_moved), (1.75, 0.875));
    assert_eq!(diff.contexts.iter().map(|change| change.mass_moved).sum::<f64>(), diff.mass_moved);
    let json = serde_json::to_value(&diff).unwrap();
    assert_eq!(json["contexts"][0]["context"], "offpeak_shanghai");
    assert_eq!(json["contexts"][0]["to"], serde_json::json!({"none": 0.5, "upgrade": 0.5}));
    assert!(set.diff(0, 0).contexts.is_empty());
}

#[test]
fn union_takes_our_contexts_and_expands_stars_over_them() {
    let ours = toml(TOML);
    let (_folder, write) = folder();
    let new = "policies.T9 = {'*' = 'none', peak_beijing = 'gift'}\nattributes.actions.gift.price = 1";
    let both = ours.union(&toml(new)).unwrap();
    assert_eq!(both.names(), ["T2", "T9", "control"]);
    assert_eq!(both.weights(), ours.weights());
    assert_eq!(both.distance(1, 2), 1.5);
    assert_eq!(both.attributes().actions["gift"]["price"], AttributeValue::Number(1.0));
    assert_eq!(ours.read_beside(&write("new.toml", new.as_bytes()), None).unwrap(), both);

    let stars = write("stars.toml", b"[policies.all]\n'*' = 'gift'");
    assert_eq!(ours.read_beside(&stars, None).unwrap().names(), ["T2", "all", "control"]);
    assert_eq!(ours.union(&ours).unwrap(), ours);
    let again =
        toml(&TOML.replace("peak_beijing = 3", "peak_beijing = 6").replace("shanghai = 1", "shanghai = 2"));
    assert_eq!(ours.union(&again).unwrap(), ours);
}

#[test]
fn union_refuses_what_does_not_fit() {
    let ours = toml(TOML);
    let fail = |new: &str| {
        let error = ours.union(&toml(new)).unwrap_err();
        (error.to_string(), error.hint_text().unwrap().to_owned())
    };
    let (what, hint) = fail("policies.T9.peak_bejing = 'none'");
    assert_eq!(
        (what.as_str(), hint.as_str()),
        ("unknown context `peak_bejing`", "did you mean `peak_beijing`?")
    );
    let (what, _) = fail("policies.T9.peak_beijing = 'none'");
    assert_eq!(what, "policy `T9`: the policy leaves out context `offpeak_shanghai`");
    let (what, _) = fail("contexts.peak_beijing = 1\npolicies.T9.peak_beijing = 'none'");
    assert!(what.contains("`offpeak_shanghai` of the policies that were run is missing"), "{what}");
    let (what, _) = fail("contexts = {peak_beijing = 1, offpeak_shanghai = 1}\npolicies.T9.'*' = 'none'");
    assert!(what.contains("`offpeak_shanghai` weighs 0.5 here and 0.25"), "{what}");
    let (what, _) = fail("policies.control = {'*' = 'none', peak_beijing = 'upgrade'}");
    assert!(what.starts_with("policy `control`: the policy differs in context `peak_beijing`"), "{what}");
    let mut priced =
        toml("policies.T9 = {'*' = 'none', peak_beijing = 'gift'}\nattributes.actions.gift.price = 1");
    priced = ours.union(&priced).unwrap();
    let other =
        toml("policies.T8 = {'*' = 'none', peak_beijing = 'gift'}\nattributes.actions.gift.price = 2");
    assert!(
        priced.union(&other).unwrap_err().to_string().contains("attribute `price` of action `gift` differs")
    );
}

#[test]
fn other_weights_change_masses_only() {
    let set = toml(TOML);
    let weights = BTreeMap::from([("peak_beijing".to_owned(), 1.0), ("offpeak_shanghai".to_owned(), 1.0)]);
    let even = set.with_weights(&ContextWeights::from_map(&weights)).unwrap();
    assert_eq!(even.conditional(0), set.conditional(0));
    assert_eq!(even.distance(0, 1), 1.5);
    let one = ContextWeights::from_map(&BTreeMap::from([("peak_beijing".to_owned(), 1.0)]));
    assert!(set.with_weights(&one).unwrap_err().to_string().contains("`offpeak_shanghai` has no weight"));
}

#[test]
fn aliases_are_grouped_whatever_their_names() {
    let set = toml(
        "contexts = {a = 1, b = 0}\n[policies]\nz = {a = 'x', b = 'x'}\ny = {a = {x = 0.5, y = 0.5}, b = 'x'}\n\
         c = {'*' = 'x'}\nd = {a = {x = 0.5000000000000001, y = 0.4999999999999999}, b = 'y'}\n\
         e = {a = 'x', b = 'y'}\nf = {a = 'y', b = 'y'}",
    );
    let groups: Vec<Vec<&str>> =
        set.aliases().into_iter().map(|group| group.into_iter().map(|idx| set.name(idx)).collect()).collect();
    assert_eq!(groups, [vec!["c", "e", "z"], vec!["d", "y"]]);
}

#[test]
fn exposure_logs_are_counted() {
    let (folder, write) = folder();
    let expected = BTreeMap::from([("a".to_owned(), 3.0), ("b".to_owned(), 1.0)]);
    let log = write("log.csv", b"user,city\n1,a\n2,b\n3,a\n4,a\n");
    assert_eq!(exposure_weights(&log, Some("city")).unwrap(), expected);
    let plain = write("plain.csv", b"context\na\nb\na\na\n");
    assert_eq!(exposure_weights(&plain, None).unwrap(), expected);
    let counts = write("counts.csv", b"day,context,count\n1,a,1\n1,b,1\n2,a,2\n");
    assert_eq!(ContextWeights::read(&counts).unwrap().to_map(), expected);
    let parquet = folder.path().join("log.parquet");
    write_parquet(&parquet, vec![("city", strings(["a", "b", "a", "a"]))]);
    assert_eq!(exposure_weights(&parquet, Some("city")).unwrap(), expected);
    let error = exposure_weights(&log, Some("cty")).unwrap_err();
    assert!(error.to_string().ends_with("there is no column `cty`"), "{error}");
    assert_eq!(error.hint_text(), Some("did you mean `city`?"));
}
