//! Experiments in which nearly every row has a policy of its own: evaluated, compared and reported all the same.

use serde_json::Value;

use crate::harness::Folder;

const ROLES: [&str; 8] = [
    "--treatment-columns",
    "job,origin,plans,tongue",
    "--outcome",
    "chosen",
    "--cluster",
    "person",
    "--features",
    "age",
];

/// A conjoint of 6⁴ profiles, the same at every run: jobs and plans matter, jobs more to the old.
fn conjoint(n_rows: usize, seed: u64) -> String {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let mut text = String::from("person,site,age,job,origin,plans,tongue,chosen\n");
    let mut age = 0.0;
    for row in 0..n_rows {
        if row % 2 == 0 {
            age = (100.0 * random()).round() / 100.0;
        }
        let [job, origin, plans, tongue] = [0; 4].map(|_: u8| (6.0 * random()) as u32);
        let y = 0.3 * f64::from(job) * (0.5 + age) + 0.2 * f64::from(plans) + age + 2.0 * random();
        text.push_str(&format!(
            "{seed}-{},s{},{age},j{job},o{origin},p{plans},t{tongue},{y:.3}\n",
            row / 2,
            row / 2 % 6
        ));
    }
    text
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("train.csv", conjoint(900, 1)).write("test.csv", conjoint(600, 2));
    folder
}

fn fitted() -> Folder {
    let folder = folder();
    let fit = ["fit", "train.csv", "--learner", "ridge", "--out", "model.poul", "--quiet"];
    folder.succeeds(&[&fit[..], &ROLES].concat());
    folder
}

fn entry<'v>(evaluation: &'v Value, policies: &str) -> &'v Value {
    let entries = evaluation["assigned"].as_array().expect("entries");
    entries
        .iter()
        .find(|own| own["policies"] == policies)
        .unwrap_or_else(|| panic!("no {policies}: {entries:?}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_row_is_measured_by_its_own_policy() {
    let folder = fitted();
    let evaluate = ["evaluate", "model.poul", "test.csv", "--json", "-"];
    let found = folder.json(&evaluate);
    assert_eq!((&found["thin_arms"], found["results"].as_array().map(Vec::len)), (&true.into(), Some(0)));
    let (all, seen, new) = (entry(&found, "all"), entry(&found, "seen"), entry(&found, "new"));
    assert_eq!((number(&all["rows"]), number(&all["n_clusters"])), (600.0, 300.0));
    assert_eq!(number(&seen["rows"]) + number(&new["rows"]), 600.0);
    for own in [all, new] {
        assert!(number(&own["r_score"]) > 0.1, "{own}");
        // A ridge of 900 rows shrinks what it says.
        assert!((0.8..1.6).contains(&number(&own["slope"])), "{own}");
        assert!(number(&own["rank_gain_interval"][0]) > 0.0, "{own}");
    }
    // Threads and the policy compared with change nothing that is shown.
    assert_eq!(folder.json(&[&evaluate[..], &["--threads", "1"]].concat())["assigned"], found["assigned"]);
    let against = ["--against", "job=j3, origin=o1, plans=p0, tongue=t5"];
    let other = folder.json(&[&evaluate[..], &against].concat());
    for name in ["r_score", "slope", "rank_gain"] {
        let (a, b) = (number(&all[name]), number(&entry(&other, "all")[name]));
        assert!((a - b).abs() < 1e-3 * a.abs(), "{name}: {a} {b}");
    }
}

#[test]
fn what_a_person_sees() {
    let folder = fitted();
    let run = folder.run(&["evaluate", "model.poul", "test.csv", "--no-checks", "--report", "report.html"]);
    run.snapshot("thin_arms");
    let page = String::from_utf8(folder.read("report.html")).expect("UTF-8");
    for text in ["Each row by its own policy", "rank rows better than chance", "seen in training"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("What the policies do"), "no table is empty");
}

#[test]
fn a_few_clusters_and_a_random_learner_are_told() {
    let folder = folder();
    let fit = ["fit", "train.csv", "--learner", "random", "--out", "model.poul", "--quiet"];
    folder.succeeds(&[&fit[..], &ROLES].concat());
    let evaluate = ["evaluate", "model.poul", "test.csv", "--no-checks", "--json", "-"];
    let found = folder.json(&evaluate);
    let all = entry(&found, "all");
    assert!(
        number(&all["rank_gain_interval"][0]) < 0.0 && number(&all["rank_gain_interval"][1]) > 0.0,
        "{all}"
    );
    let found = folder.json(&[&evaluate[..], &["--cluster", "site"]].concat());
    assert!(
        entry(&found, "all")["notes"][0].as_str().is_some_and(|note| note.starts_with("only 6 clusters"))
    );
}

#[test]
fn learners_are_compared() {
    let folder = folder();
    let control = ["--control", "job=j0, origin=o0, plans=p0, tongue=t0"];
    let compare =
        ["compare", "train.csv", "--test", "test.csv", "--learner", "ridge,random", "--reference", "ridge"];
    let args =
        [&compare[..], &ROLES, &control, &["--json", "compared.json", "--markdown", "compared.md"]].concat();
    let run = folder.run(&args);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    let found: Value = serde_json::from_slice(&folder.read("compared.json")).expect("JSON");
    let learners = found["learners"].as_array().expect("learners");
    let estimate = |learner: usize, metric: usize| &learners[learner]["assigned"][0]["metrics"][metric];
    assert_eq!(
        (&estimate(0, 0)["metric"], &estimate(0, 2)["metric"]),
        (&"r_score".into(), &"rank_gain".into())
    );
    for metric in [0, 2] {
        assert!(number(&estimate(0, metric)["interval"][0]) > 0.0, "{}", estimate(0, metric));
        assert!(number(&estimate(1, metric)["difference_interval"][1]) < 0.0, "{}", estimate(1, metric));
    }
    let markdown = String::from_utf8(folder.read("compared.md")).expect("UTF-8");
    assert!(markdown.contains("### Every row by its own policy"), "{markdown}");
    let text = folder.succeeds(&[&compare[..], &ROLES, &control].concat());
    assert!(text.contains("every row by its own policy") && text.contains("vs ridge"), "{text}");
}
