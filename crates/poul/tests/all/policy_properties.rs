//! What holds of every policy set, and that no bytes make a reader panic.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use poul::policy::{ContextWeights, PolicySet};
use proptest::prelude::*;
use proptest::sample::Index;

type Row = (String, String, String, f64);

/// A context and its `action: probability` pairs as text.
type Actions<'a> = (&'a str, Vec<String>);

/// Rows of a valid long table, and the weights of its contexts.
#[derive(Clone, Debug)]
struct World {
    rows: Vec<Row>,
    weights: BTreeMap<String, f64>,
}

impl World {
    fn set(&self) -> PolicySet {
        let mut builder = PolicySet::builder();
        for (context, weight) in &self.weights {
            builder.weight(context, *weight);
        }
        for (policy, context, action, probability) in &self.rows {
            builder.add(policy, context, action, *probability);
        }
        builder.build().unwrap()
    }

    fn to_csv(&self) -> String {
        let lines = self.rows.iter().map(|(p, c, a, q)| format!("{p},{c},{a},{q}\n"));
        format!("policy,context,action,probability\n{}", lines.collect::<String>())
    }

    /// The human form with tables in the order of the rows.
    fn to_json(&self) -> String {
        let mut policies: Vec<(&str, Vec<Actions<'_>>)> = Vec::new();
        for (policy, context, action, probability) in &self.rows {
            let at = policies.iter().position(|(name, _)| name == policy).unwrap_or(policies.len());
            if at == policies.len() {
                policies.push((policy, Vec::new()));
            }
            let contexts = &mut policies[at].1;
            let within = contexts.iter().position(|(name, _)| name == context).unwrap_or(contexts.len());
            if within == contexts.len() {
                contexts.push((context, Vec::new()));
            }
            contexts[within].1.push(format!("\"{action}\": {probability}"));
        }
        let table = |entries: Vec<String>| format!("{{{}}}", entries.join(", "));
        let policies = policies.into_iter().map(|(policy, contexts)| {
            let contexts =
                contexts.into_iter().map(|(context, actions)| format!("\"{context}\": {}", table(actions)));
            format!("\"{policy}\": {}", table(contexts.collect()))
        });
        let weights = self.weights.iter().map(|(context, weight)| format!("\"{context}\": {weight}"));
        format!(
            "{{\"policies\": {}, \"contexts\": {}}}",
            table(policies.collect()),
            table(weights.rev().collect())
        )
    }

    /// The same tree in TOML: a dotted key for every probability, in the order of the rows.
    fn to_toml(&self) -> String {
        let weights =
            self.weights.iter().rev().map(|(context, weight)| format!("contexts.{context} = {weight:?}\n"));
        let rows = self.rows.iter().map(|(p, c, a, q)| format!("policies.{p}.{c}.{a} = {q:?}\n"));
        weights.chain(rows).collect()
    }

    fn to_parquet(&self) -> Vec<u8> {
        let strings =
            |pick: fn(&Row) -> &String| Arc::new(StringArray::from_iter_values(self.rows.iter().map(pick)));
        let batch = RecordBatch::try_from_iter([
            ("policy", strings(|row| &row.0) as ArrayRef),
            ("context", strings(|row| &row.1)),
            ("action", strings(|row| &row.2)),
            ("probability", Arc::new(Float64Array::from_iter_values(self.rows.iter().map(|row| row.3)))),
        ])
        .unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes
    }
}

/// 1 to 5 policies over 1 to 4 contexts and 4 actions; zeros and equal policies are likely.
fn world() -> impl Strategy<Value = World> {
    (1..5_usize, 1..4_usize).prop_flat_map(|(n_policies, n_contexts)| {
        let shares = prop::collection::vec(prop_oneof![Just(0.0), 0.001..1.0, Just(1.0)], 4);
        let shares = shares.prop_filter("some action", |shares| shares.iter().sum::<f64>() > 0.0);
        let shares = prop::collection::vec(shares, n_policies * n_contexts);
        let weights = prop::collection::vec(prop_oneof![Just(0.0), 0.001..9.0], n_contexts - 1);
        (shares, weights, 0.01..9.0).prop_map(move |(shares, mut weights, last)| {
            weights.push(last);
            let weights =
                weights.into_iter().enumerate().map(|(c, weight)| (format!("c{c}"), weight)).collect();
            let mut rows = Vec::new();
            for (cell, shares) in shares.into_iter().enumerate() {
                let sum: f64 = shares.iter().sum();
                for (a, share) in shares.into_iter().enumerate() {
                    let (policy, context) =
                        (format!("p{}", cell / n_contexts), format!("c{}", cell % n_contexts));
                    rows.push((policy, context, format!("a{a}"), share / sum));
                }
            }
            World { rows, weights }
        })
    })
}

/// Π_t(a|s)w(s) straight from the rows, by name, without the library.
fn dense(world: &World) -> BTreeMap<&str, BTreeMap<(&str, &str), f64>> {
    let total: f64 = world.weights.values().sum();
    let mut mixtures: BTreeMap<&str, BTreeMap<(&str, &str), f64>> = BTreeMap::new();
    for (policy, context, action, probability) in &world.rows {
        let mass = world.weights[context] / total * probability;
        mixtures.entry(policy).or_default().insert((context, action), mass);
    }
    mixtures
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn read_all_forms(bytes: &[u8]) {
    let path = Path::new("p");
    let text = String::from_utf8_lossy(bytes);
    let _ = PolicySet::from_toml(&text, path);
    let _ = PolicySet::from_json(&text, path);
    let _ = PolicySet::from_csv(bytes, path, None);
    let _ = PolicySet::from_parquet(file_of(bytes), path, None);
}

fn mutate(bytes: &mut Vec<u8>, edits: &[(Index, u8, u8)]) {
    for (at, kind, byte) in edits {
        if bytes.is_empty() {
            return;
        }
        let at = at.index(bytes.len());
        match kind % 5 {
            0 => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 => {
                bytes.remove(at);
            }
            3 => bytes[at] ^= 1 << (byte % 8),
            _ => bytes.truncate(at + 1),
        }
    }
}

proptest! {
    #[test]
    fn distance_is_the_l1_distance_of_dense_mixtures(world in world()) {
        let (set, mixtures) = (world.set(), dense(&world));
        for i in 0..set.len() {
            prop_assert!((set.mixture(i).mass.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let distances = set.distances(i);
            for j in 0..set.len() {
                let (a, b) = (&mixtures[set.name(i)], &mixtures[set.name(j)]);
                let l1: f64 = a.iter().map(|(atom, mass)| (mass - b[atom]).abs()).sum();
                prop_assert!((set.distance(i, j) - l1).abs() < 1e-12);
                prop_assert_eq!(distances[j], set.distance(i, j));
            }
        }
    }

    #[test]
    fn distance_is_a_metric(world in world()) {
        let set = world.set();
        for i in 0..set.len() {
            for j in 0..set.len() {
                prop_assert_eq!(set.distance(i, j), set.distance(j, i));
                let dense = |idx: usize| -> BTreeMap<u32, f64> {
                    let mixture = set.mixture(idx);
                    let pairs = mixture.atoms.iter().copied().zip(mixture.mass.iter().copied());
                    pairs.filter(|(_, mass)| *mass > 0.0).collect()
                };
                prop_assert_eq!(set.distance(i, j) == 0.0, dense(i) == dense(j));
                for k in 0..set.len() {
                    prop_assert!(set.distance(i, j) <= set.distance(i, k) + set.distance(k, j) + 1e-15);
                }
            }
        }
    }

    #[test]
    fn nearest_and_diff_and_aliases_agree_with_distance(world in world()) {
        let set = world.set();
        let aliases = set.aliases();
        let group = |idx: usize| aliases.iter().position(|group| group.contains(&idx));
        for i in 0..set.len() {
            let mut expected: Vec<(usize, f64)> =
                (0..set.len()).filter(|j| *j != i).map(|j| (j, set.distance(i, j))).collect();
            expected.sort_by(|a, b| a.1.total_cmp(&b.1));
            for k in 0..=set.len() {
                prop_assert_eq!(&set.nearest(i, k), &expected[..k.min(expected.len())]);
            }
            for j in (0..set.len()).filter(|j| *j != i) {
                let diff = set.diff(i, j);
                let moved: f64 = diff.contexts.iter().map(|change| change.mass_moved).sum();
                prop_assert!((moved - set.distance(i, j) / 2.0).abs() < 1e-12);
                let alias = group(i).is_some() && group(i) == group(j);
                prop_assert_eq!(alias, set.distance(i, j) < 1e-12);
            }
        }
    }

    #[test]
    fn order_never_matters_in_any_form(world in world(), shuffle in any::<prop::sample::Selector>()) {
        let expected = world.set().canonical_bytes();
        let mut shuffled = world.clone();
        let n_rows = shuffled.rows.len();
        for i in (1..n_rows).rev() {
            let j = *shuffle.select(&(0..=i).collect::<Vec<_>>());
            shuffled.rows.swap(i, j);
        }
        shuffled.rows.rotate_left(n_rows / 3);
        let weights = ContextWeights::from_map(&world.weights);
        let path = Path::new("p");
        for world in [&world, &shuffled] {
            prop_assert_eq!(&world.set().canonical_bytes(), &expected);
            let csv = PolicySet::from_csv(world.to_csv().as_bytes(), path, Some(&weights)).unwrap();
            prop_assert_eq!(&csv.canonical_bytes(), &expected);
            let toml = PolicySet::from_toml(&world.to_toml(), path).unwrap();
            prop_assert_eq!(&toml.canonical_bytes(), &expected);
            let json = PolicySet::from_json(&world.to_json(), path).unwrap();
            prop_assert_eq!(&json.canonical_bytes(), &expected);
            let parquet = PolicySet::from_parquet(file_of(&world.to_parquet()), path, Some(&weights)).unwrap();
            prop_assert_eq!(&parquet.canonical_bytes(), &expected);
            for i in 0..json.len() {
                prop_assert_eq!(parquet.distances(i), toml.distances(i));
            }
        }
    }

    #[test]
    fn round_trips_keep_the_bytes(world in world()) {
        let set = world.set();
        let bytes = set.canonical_bytes();
        let toml = PolicySet::from_toml(&set.to_toml(), Path::new("p")).unwrap();
        prop_assert_eq!(&toml.canonical_bytes(), &bytes);
        let json = PolicySet::from_json(&set.to_json_value().to_string(), Path::new("p")).unwrap();
        prop_assert_eq!(&json.canonical_bytes(), &bytes);
        let manifest: PolicySet = serde_json::from_str(&serde_json::to_string(&set).unwrap()).unwrap();
        prop_assert_eq!(&manifest.canonical_bytes(), &bytes);
        prop_assert_eq!(&set.union(&set).unwrap().canonical_bytes(), &bytes);
    }

    #[test]
    fn names_of_any_characters_survive(names in prop::collection::btree_set("\\PC{1,6}", 3), flag: bool) {
        let names: Vec<&String> = names.iter().collect();
        prop_assume!(names.iter().all(|name| !name.trim().is_empty() && *name != "*"));
        let mut builder = PolicySet::builder();
        builder.add(names[0], names[1], names[2], if flag { 0.25 } else { 1.0 });
        if flag {
            builder.add(names[0], names[1], names[0], 0.75);
        }
        let set = builder.build().unwrap();
        prop_assert_eq!(&PolicySet::from_toml(&set.to_toml(), Path::new("p")).unwrap(), &set);
        let json = set.to_json_value().to_string();
        prop_assert_eq!(&PolicySet::from_json(&json, Path::new("p")).unwrap(), &set);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".{0,100}") {
        read_all_forms(&bytes);
        read_all_forms(text.as_bytes());
        let mut framed = b"PAR1".to_vec();
        framed.extend(&bytes);
        framed.extend((bytes.len() as u32).to_le_bytes());
        framed.extend(b"PAR1");
        let _ = PolicySet::from_parquet(file_of(&framed), Path::new("p"), None);
    }

    #[test]
    fn damaged_files_never_panic(
        world in world(),
        edits in prop::collection::vec((any::<Index>(), any::<u8>(), any::<u8>()), 1..6),
    ) {
        let forms = [world.to_toml().into_bytes(), world.to_json().into_bytes(), world.to_csv().into_bytes(), world.to_parquet()];
        for mut bytes in forms {
            mutate(&mut bytes, &edits);
            read_all_forms(&bytes);
        }
    }
}

/// The Parquet decoder itself panics on some of these files; the reader must not.
#[test]
fn a_flipped_bit_anywhere_in_parquet_is_an_error_or_harmless() {
    let row = |context: &str, action: &str| ("T".to_owned(), context.to_owned(), action.to_owned(), 1.0);
    let world = World { rows: vec![row("a", "x"), row("b", "y")], weights: BTreeMap::new() };
    let whole = world.to_parquet();
    let mut n_errors = 0;
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            n_errors += usize::from(PolicySet::from_parquet(file_of(&bytes), Path::new("p"), None).is_err());
        }
    }
    assert!(n_errors > whole.len() / 2, "{n_errors} errors in {} bytes", whole.len());
}
