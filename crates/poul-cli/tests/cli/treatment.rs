//! What policies are made of: new actions by their attributes, and files whose order and name do not matter.

use crate::harness::Folder;

/// Discounts of 0, 10, 20 and 30 in two contexts; the more, the higher the outcome.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut text = String::from("policy,gmv,age,visits\n");
    let mut state = 11_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let policies = [("control", 0.0), ("T10", 10.0), ("T20", 20.0), ("T30", 30.0), ("peak30", 22.5)];
    for _ in 0..1500 {
        let (policy, discount) = policies[(random() * 5.0) as usize];
        let (age, visits) = (18.0 + (random() * 50.0).floor(), (random() * 9.0).floor());
        let gmv = 5.0 + age / 20.0 + discount * (0.1 + 0.01 * visits) + 2.0 * random();
        text.push_str(&format!("{policy},{gmv:.3},{age},{visits}\n"));
    }
    folder.write("data.csv", text);
    folder.write("poul.toml", "[model]\nmembers = 2\n[training]\nepochs = 8\n");
    folder
}

const POLICIES: &str = "\
[contexts]
peak = 3
off_peak = 1
[policies.control]
\"*\" = \"none\"
[policies.T10]
\"*\" = \"d10\"
[policies.T20]
\"*\" = \"d20\"
[policies.T30]
\"*\" = \"d30\"
[policies.peak30]
peak = \"d30\"
off_peak = \"none\"
[attributes.actions.none]
discount = 0
[attributes.actions.d10]
discount = 10
[attributes.actions.d20]
discount = 20
[attributes.actions.d30]
discount = 30
";

fn fit(folder: &Folder, policies: &[&str], out: &str) {
    let args = ["fit", "data.csv", "--outcome", "gmv", "--config", "poul.toml", "--control", "control", "-q"];
    folder.succeeds(&[&args[..], &["--out", out, "--policies"], policies].concat());
}

/// The mean effect of each policy of a file of effects.
fn means(folder: &Folder, name: &str, policy: &str) -> f64 {
    let text = String::from_utf8(folder.read(name)).expect("UTF-8");
    let effects = text.lines().filter(|line| line.contains(&format!(",{policy},")));
    let effects: Vec<f64> =
        effects.filter_map(|line| line.split(',').nth(3)).filter_map(|cell| cell.parse().ok()).collect();
    assert_eq!(effects.len(), 1500, "{policy}");
    effects.iter().sum::<f64>() / 1500.0
}

#[test]
fn a_new_action_is_scored_by_its_attributes() {
    let folder = folder();
    folder.write("policies.toml", POLICIES);
    fit(&folder, &["policies.toml"], "m.poul");
    let new = "[policies.T25]\n\"*\" = \"d25\"\n[attributes.actions.d25]\ndiscount = 25\n";
    folder.write("new.toml", new);
    let effect = |policies: &'static str, out: &'static str| {
        ["effect", "m.poul", "data.csv", "--policies", policies, "--all", "--support", "--out", out]
    };
    let run = folder.run(&effect("new.toml", "e.csv"));
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    let [low, new, high] = ["T20", "T25", "T30"].map(|policy| means(&folder, "e.csv", policy));
    assert!(low < new && new < high, "{low} {new} {high}");
    assert!((new - 3.5).abs() < 0.7, "{new}");

    // Beyond what was tried: scored, with a warning.
    folder.write("bold.toml", "[policies.T60]\n\"*\" = \"d60\"\n[attributes.actions.d60]\ndiscount = 60\n");
    let run = folder.run(&effect("bold.toml", "bold.csv"));
    let warning = "attribute `discount` of action `d60` is 60, where training knew 0 to 30";
    assert!(run.code == Some(0) && run.stderr.contains(warning), "{}", run.transcript());

    // Without an attribute that training knew: an error that lists the atoms.
    folder.write("taxi.toml", "[policies.taxi]\n\"*\" = \"taxi\"\n[attributes.actions.taxi]\nseats = 4\n");
    let run = folder.run(&effect("taxi.toml", "taxi.csv"));
    assert!(run.code == Some(3) && run.stderr.contains("`peak:taxi`"), "{}", run.transcript());
}

#[test]
fn a_model_tells_the_axes_of_its_embedding() {
    let folder = folder();
    folder.write("policies.toml", POLICIES);
    fit(&folder, &["policies.toml"], "m.poul");
    let shown = folder.succeeds(&["show", "m.poul"]);
    for part in [
        "\n  axes  ",
        " % of the variance of effects\n",
        "\n  Lipschitz constant  ",
        "\n  largest action vector  ",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn the_order_and_the_name_of_policy_files_do_not_matter() {
    let folder = folder();
    // Tables of the file in reverse, and the same policies as long rows with weights beside them.
    let mut tables: Vec<&str> = POLICIES.split_inclusive('\n').collect();
    let starts: Vec<usize> = (0..tables.len()).filter(|line| tables[*line].starts_with('[')).collect();
    let blocks: Vec<String> = starts
        .iter()
        .enumerate()
        .map(|(block, start)| tables[*start..starts.get(block + 1).copied().unwrap_or(tables.len())].concat())
        .collect();
    tables.clear();
    let shuffled: String = blocks.iter().rev().map(String::as_str).collect();
    folder.write("policies.toml", POLICIES).write("other/name.toml", shuffled);
    let plain = POLICIES.split("[attributes").next().unwrap_or_default();
    folder.write("plain.toml", plain);
    let mut long: Vec<String> = Vec::new();
    for (policy, peak, off_peak) in [
        ("peak30", "d30", "none"),
        ("T30", "d30", "d30"),
        ("T20", "d20", "d20"),
        ("control", "none", "none"),
        ("T10", "d10", "d10"),
    ] {
        long.push(format!("{peak},{policy},peak"));
        long.insert(0, format!("{off_peak},{policy},off_peak"));
    }
    folder.write("long.csv", format!("action,policy,context\n{}\n", long.join("\n")));
    folder.write("weights.csv", "weight,context\n0.75,peak\n0.25,off_peak\n");
    let effects = |policies: &[&str]| {
        fit(&folder, policies, "m.poul");
        folder.succeeds(&["effect", "m.poul", "data.csv", "--interval", "0.9", "--out", "e.csv"]);
        folder.read("e.csv")
    };
    assert!(effects(&["policies.toml"]) == effects(&["other/name.toml"]), "the order of tables shows");
    let plain = effects(&["plain.toml"]);
    assert!(plain == effects(&["long.csv", "--contexts", "weights.csv"]), "the form of the file shows");
    assert!(plain != effects(&["policies.toml"]), "attributes do not show");
}
