//! What a simulated folder holds, and that it does not depend on the number of threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use poul::Silent;
use poul::policy::PolicySet;
use poul::simulate::{Again, Simulation, Summary, run, run_again, scenarios};

fn small(scenario: &str) -> Simulation {
    Simulation {
        scenario: scenario.into(),
        rows: 9_000,
        test_rows: Some(4_500),
        features: Some(30),
        policies: Some(10),
        ..Simulation::default()
    }
}

fn simulate(simulation: &Simulation, folder: &Path) -> Summary {
    run(&simulation.check().unwrap(), folder, &Silent).unwrap()
}

fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

fn read(folder: &Path, name: &str) -> RecordBatch {
    let file = std::fs::File::open(folder.join(name)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(|batch| batch.unwrap()).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = batch.column_by_name(name).unwrap().as_string::<i32>();
    column.iter().map(|value| value.unwrap().to_string()).collect()
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<f64> {
    batch.column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for (scenario, _) in scenarios() {
        let written = [1, 2].map(|n_threads| {
            let folder = tempfile::tempdir().unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| simulate(&small(scenario), folder.path()));
            bytes(folder.path())
        });
        assert!(written[0] == written[1], "{scenario}");
        let folder = tempfile::tempdir().unwrap();
        simulate(&Simulation { seed: 1, ..small(scenario) }, folder.path());
        let other = bytes(folder.path());
        for name in ["train.parquet", "test.parquet", "truth.parquet"] {
            assert!(other[name] != written[0][name], "{scenario} {name}");
        }
    }
}

#[test]
fn a_longer_table_begins_with_the_shorter_one() {
    let [short, long] = [500, 9_000].map(|rows| {
        let folder = tempfile::tempdir().unwrap();
        simulate(&Simulation { rows, ..small("ride-hailing") }, folder.path());
        read(folder.path(), "train.parquet")
    });
    assert_eq!(short, long.slice(0, 500));
}

#[test]
fn every_scenario_writes_its_files() {
    for (scenario, _) in scenarios() {
        let folder = tempfile::tempdir().unwrap();
        let summary = simulate(&small(scenario), folder.path());
        let mut expected: BTreeSet<&str> = [
            "README.md",
            "averages.csv",
            "policies.toml",
            "test.parquet",
            "tiers.csv",
            "train.parquet",
            "truth.parquet",
            "world.toml",
        ]
        .into();
        match scenario {
            "stratified" => expected.insert("strata.csv"),
            "observational" => expected.insert("truth_propensity.parquet"),
            _ => false,
        };
        let written = bytes(folder.path());
        assert_eq!(written.keys().map(String::as_str).collect::<BTreeSet<_>>(), expected);
        let listed: BTreeSet<_> =
            summary.files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(listed, expected);

        let train = read(folder.path(), "train.parquet");
        let test = read(folder.path(), "test.parquet");
        assert_eq!((train.num_rows(), test.num_rows()), (9_000, 4_500));
        assert_eq!(train.schema(), test.schema());
        let roles: &[&str] = match scenario {
            "ride-hailing" => &["core", "month", "policy", "gmv", "cost"],
            "stratified" => &["stratum", "policy", "y"],
            "delivery" => &["policy", "spend"],
            _ => &["policy", "y"],
        };
        let names: Vec<&str> =
            train.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(&names[30..], roles);
        let fields = train.schema_ref().fields();
        assert!(fields.iter().filter(|field| field.data_type() == &DataType::Float32).count() >= 26);
    }
}

#[test]
fn policies_are_in_the_human_form() {
    for (scenario, _) in scenarios() {
        let folder = tempfile::tempdir().unwrap();
        let summary = simulate(&small(scenario), folder.path());
        let text = std::fs::read_to_string(folder.path().join("policies.toml")).unwrap();
        let tree: toml::Table = text.parse().unwrap();
        let contexts = tree["contexts"].as_table().unwrap();
        let policies = tree["policies"].as_table().unwrap();
        assert_eq!(
            policies.keys().collect::<BTreeSet<_>>(),
            summary.policies.iter().collect::<BTreeSet<_>>()
        );
        for rules in policies.values() {
            let rules = rules.as_table().unwrap();
            assert!(rules.contains_key("*") || contexts.keys().all(|context| rules.contains_key(context)));
            for (context, rule) in rules {
                assert!(context == "*" || contexts.contains_key(context));
                if let Some(mixed) = rule.as_table() {
                    let sum: f64 = mixed.values().map(|probability| probability.as_float().unwrap()).sum();
                    assert!((sum - 1.0).abs() < 1e-12);
                }
            }
        }
    }
}

#[test]
fn truth_covers_every_policy_and_control_is_zero() {
    let folder = tempfile::tempdir().unwrap();
    let summary = simulate(&Simulation { truth_rows: Some(4_200), ..small("long-tail") }, folder.path());
    let truth = read(folder.path(), "truth.parquet");
    assert_eq!(truth.num_rows(), 42_000);
    let rows = truth.column_by_name("row").unwrap().as_primitive::<Int64Type>();
    assert!(rows.values().iter().enumerate().all(|(idx, &row)| row == idx as i64 / 10));
    let (policies, effects) = (texts(&truth, "policy"), numbers(&truth, "effect_y"));
    assert_eq!(policies[41_990..], summary.policies);
    for (policy, effect) in policies.iter().zip(&effects) {
        assert_eq!(policy == "control", *effect == 0.0);
    }
}

#[test]
fn held_out_policies_are_in_the_truth_and_never_in_the_tables() {
    for scenario in ["long-tail", "stratified", "observational"] {
        let folder = tempfile::tempdir().unwrap();
        let summary = simulate(&small(scenario), folder.path());
        assert_eq!(summary.held_out.len(), 2);
        let tiers = std::fs::read_to_string(folder.path().join("tiers.csv")).unwrap();
        let readme = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
        let names = |file: &str| -> BTreeSet<String> {
            texts(&read(folder.path(), file), "policy").into_iter().collect()
        };
        let truth = names("truth.parquet");
        for name in &summary.held_out {
            assert!(truth.contains(name));
            assert!(tiers.contains(&format!("{name},unseen,0\n")));
            assert!(readme.contains(&format!("`{name}`")));
        }
        for table in ["train.parquet", "test.parquet"] {
            let seen = names(table);
            assert!(summary.held_out.iter().all(|name| !seen.contains(name)));
            assert_eq!(seen.len(), 8);
        }
    }
}

#[test]
fn shares_are_as_said() {
    for (scenario, _) in scenarios() {
        let folder = tempfile::tempdir().unwrap();
        simulate(&Simulation { rows: 40_000, ..small(scenario) }, folder.path());
        let assigned = texts(&read(folder.path(), "train.parquet"), "policy");
        let tiers = std::fs::read_to_string(folder.path().join("tiers.csv")).unwrap();
        for line in tiers.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let share: f64 = cells[2].parse().unwrap();
            let seen = assigned.iter().filter(|name| *name == cells[0]).count() as f64 / 40_000.0;
            // Five standard errors, and what the calibration of the average propensity leaves.
            let allowed = 5.0 * (share * (1.0 - share) / 40_000.0).sqrt() + 0.02 * share;
            assert!((seen - share).abs() <= allowed, "{scenario} {line}: {seen}");
        }
    }
}

#[test]
fn strata_have_the_probabilities_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    simulate(&Simulation { rows: 60_000, ..small("stratified") }, folder.path());
    let train = read(folder.path(), "train.parquet");
    let (strata, assigned) = (texts(&train, "stratum"), texts(&train, "policy"));
    let table = std::fs::read_to_string(folder.path().join("strata.csv")).unwrap();
    let mut n_different = 0;
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let probability: f64 = cells[2].parse().unwrap();
        let units = strata.iter().zip(&assigned);
        let inside: Vec<&String> =
            units.filter(|(stratum, _)| *stratum == cells[0]).map(|(_, name)| name).collect();
        let n_rows = inside.len() as f64;
        let seen = inside.iter().filter(|name| **name == cells[1]).count() as f64 / n_rows;
        let error = (probability * (1.0 - probability) / n_rows).sqrt();
        assert!((seen - probability).abs() < 5.0 * error, "{line}: {seen}");
        let overall = assigned.iter().filter(|name| *name == cells[1]).count() as f64 / 60_000.0;
        n_different += usize::from((probability - overall).abs() > 10.0 * error);
    }
    assert!(n_different >= 5, "{n_different}");
}

#[test]
fn ride_hailing_looks_like_the_platform() {
    let folder = tempfile::tempdir().unwrap();
    let simulation = Simulation { rows: 60_000, policies: Some(3), ..small("ride-hailing") };
    let summary = simulate(&simulation, folder.path());
    assert_eq!(summary.policies, ["control", "T1", "T2"]);
    let (train, test) = (read(folder.path(), "train.parquet"), read(folder.path(), "test.parquet"));
    let core = train.column_by_name("core").unwrap().as_boolean().true_count() as f64 / 60_000.0;
    assert!((core - 897_946.0 / 3_820_637.0).abs() < 0.01, "{core}");
    assert!(texts(&train, "month").iter().all(|month| month == "2025-03"));
    assert!(texts(&test, "month").iter().all(|month| month == "2025-06"));

    let (gmv, cost, policy) = (numbers(&train, "gmv"), numbers(&train, "cost"), texts(&train, "policy"));
    let zeros = gmv.iter().filter(|&&gmv| gmv == 0.0).count() as f64 / 60_000.0;
    assert!((0.1..0.5).contains(&zeros), "{zeros}");
    let mean = gmv.iter().sum::<f64>() / 60_000.0;
    assert!(gmv.iter().any(|&gmv| gmv > 10.0 * mean), "the tail is light");
    let opt_in = train.column_by_name("opt_in").unwrap().as_boolean();
    for row in 0..60_000 {
        assert!(gmv[row] >= 0.0 && cost[row] >= 0.0);
        if policy[row] == "control" || !opt_in.value(row) {
            assert_eq!(cost[row], 0.0);
        }
    }
    assert!(cost.iter().any(|&cost| cost > 0.0));
    for name in ["age", "rating", "days_since_last", "avg_fare", "os"] {
        assert!(train.column_by_name(name).unwrap().null_count() > 0, "{name}");
    }
}

#[test]
fn propensities_belong_to_the_policies_that_are_run() {
    let folder = tempfile::tempdir().unwrap();
    simulate(&Simulation { truth_rows: Some(50), ..small("observational") }, folder.path());
    let table = read(folder.path(), "truth_propensity.parquet");
    assert_eq!(table.num_rows(), 50 * 8);
    for row in numbers(&table, "propensity").chunks(8) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(row.iter().all(|&propensity| propensity >= 0.2 / 10.0));
    }
}

#[test]
fn work_can_be_stopped_and_leaves_no_half_table() {
    struct Stop;
    impl poul::Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let error = run(&small("long-tail").check().unwrap(), folder.path(), &Stop).unwrap_err();
    assert_eq!(error.kind(), poul::Kind::Cancelled);
    let left: Vec<String> = bytes(folder.path()).into_keys().collect();
    assert_eq!(left, ["policies.toml", "tiers.csv"]);
}

#[test]
fn other_policies_run_in_the_same_world_on_new_users() {
    for (scenario, _) in scenarios() {
        let folder = tempfile::tempdir().unwrap();
        let (world, round) = (folder.path().join("world"), folder.path().join("round"));
        let simulation = Simulation { rows: 900, test_rows: Some(900), ..small(scenario) };
        let summary = simulate(&simulation, &world);
        // A policy that was run before, under its name and under another.
        let text = std::fs::read_to_string(world.join("policies.toml")).unwrap();
        let set = PolicySet::from_toml(&text, Path::new("policies.toml")).unwrap();
        let (name, mut builder) = (&summary.policies[1], PolicySet::builder());
        for (context, actions) in set.contexts().iter().zip(set.by_context(set.require(name).unwrap())) {
            for (action, probability) in actions {
                builder.add(name, context, action, probability).add("copy", context, action, probability);
            }
        }
        let file = folder.path().join("next.toml");
        let text = builder.build().unwrap().to_toml();
        // Weights are those of the world.
        let text = text.split_once("\n[policies").map(|(_, rest)| format!("[policies{rest}")).unwrap();
        std::fs::write(&file, text).unwrap();
        let again = Again {
            world: world.clone(),
            policies: file,
            rows: Some(900),
            test_rows: Some(900),
            truth_rows: None,
            seed: 1,
        };
        let again = |seed| Again { seed, ..again.clone() };
        let found = run_again(&again(1), &round, &Silent).unwrap();
        assert_eq!((found.policies[0].as_str(), found.policies.len()), ("control", 3), "{scenario}");
        let truth = |folder: &Path, policy: &str| -> f64 {
            let text = std::fs::read_to_string(folder.join("averages.csv")).unwrap();
            let line = text.lines().find(|line| line.starts_with(&format!("{policy},"))).unwrap();
            line.split(',').nth(2).unwrap().parse().unwrap()
        };
        // The same truth, up to who the users are.
        let (before, after) = (truth(&world, name), truth(&round, name));
        assert!((before - after).abs() < 0.15 * (0.5 + before.abs()), "{scenario}: {before} {after}");
        assert_eq!(after, truth(&round, "copy"));
        let [table, other] = [&world, &round].map(|folder| read(folder, "train.parquet"));
        assert_eq!(table.schema(), other.schema());
        assert!(table.column(0) != other.column(0) || table.column(1) != other.column(1), "{scenario}");
        let (same, others) = (folder.path().join("same"), folder.path().join("others"));
        run_again(&again(1), &same, &Silent).unwrap();
        run_again(&again(2), &others, &Silent).unwrap();
        let train = |folder: &Path| std::fs::read(folder.join("train.parquet")).unwrap();
        assert!(train(&same) == train(&round) && train(&others) != train(&round), "{scenario}");
    }
}

#[test]
fn a_round_that_a_world_cannot_run_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (world, file) = (folder.path().join("world"), folder.path().join("next.toml"));
    simulate(&Simulation { rows: 50, test_rows: Some(50), ..small("long-tail") }, &world);
    let again = Again {
        world: world.clone(),
        policies: file.clone(),
        rows: None,
        test_rows: None,
        truth_rows: None,
        seed: 1,
    };
    for (policy, told) in [
        ("\"*\" = \"gift\"", "unknown action `gift`"),
        ("\"*\" = { none = 0.333, action_1 = 0.667 }", "not a whole percentage"),
        ("\"*\" = \"none\"\nmoon = \"none\"", "moon"),
    ] {
        std::fs::write(&file, format!("[policies.next]\n{policy}\n")).unwrap();
        let error = run_again(&again, &folder.path().join("round"), &Silent).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert!(!folder.path().join("round").exists());
    }
    std::fs::remove_file(world.join("world.toml")).unwrap();
    let error = run_again(&again, &folder.path().join("round"), &Silent).unwrap_err();
    assert!(error.hint_text().unwrap().contains("poul simulate"), "{error}");
}
