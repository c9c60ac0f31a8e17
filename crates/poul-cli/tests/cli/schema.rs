//! `poul schema`: the schemas accept what the book shows, and know the settings that learners know, no more and no fewer.

use std::collections::BTreeSet;
use std::path::Path;

use poul::effect::Settings;
use poul::model::{LEARNERS, Learner};
use serde_json::{Map, Value, json};

use crate::harness::Folder;

/// Examples that show a mistake which a schema can see.
const WRONG: [&str; 2] = ["typo.toml", "negative.toml"];

#[test]
fn examples_of_the_book_are_valid_and_mistakes_are_not() {
    let folder = Folder::new();
    let [config, policies] = ["config", "policies"].map(|kind| folder.json(&["schema", kind]));
    assert_eq!(config["$schema"], "http://json-schema.org/draft-04/schema#");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = std::fs::read_dir(root.join("book")).expect("the book").flatten().map(|entry| entry.path());
    let (mut n_right, mut wrong) = (0, BTreeSet::new());
    for page in pages.chain([root.join("README.md")]).filter(|path| path.extension() == Some("md".as_ref())) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for block in text.split("\n```toml").skip(1) {
            let (name, rest) = block.split_once('\n').expect("a block");
            let content = rest.split("\n```").next().expect("an end");
            let file: Value = toml::from_str(content).unwrap_or_else(|error| panic!("{content}: {error}"));
            let is_policy = ["contexts", "policies", "attributes"].iter().any(|key| file.get(key).is_some());
            let schema = if is_policy { &policies } else { &config };
            match problem(schema, schema, &file) {
                None => n_right += 1,
                Some(problem) => {
                    assert!(WRONG.contains(&name.trim()), "{}: {name}: {problem}", page.display());
                    wrong.insert(name.trim().to_owned());
                }
            }
        }
    }
    assert!(n_right >= 10, "{n_right} examples");
    assert_eq!(wrong.len(), WRONG.len(), "{wrong:?}");
}

#[test]
fn files_that_commands_write_are_valid() {
    let folder = Folder::new();
    let policies = folder.json(&["schema", "policies"]);
    folder.succeeds(&["simulate", "--out", "s", "--rows", "200", "--quiet"]);
    let text = String::from_utf8(folder.read("s/policies.toml")).expect("UTF-8");
    let file: Value = toml::from_str(&text).expect("TOML");
    assert_eq!(problem(&policies, &policies, &file), None);
}

#[test]
fn settings_of_learners_are_those_of_the_schema() {
    let config = Folder::new().json(&["schema", "config"]);
    for learner in LEARNERS {
        let own = &config["definitions"][learner.name];
        for table in ["model", "training"] {
            let properties = object(&own["properties"][table]["properties"]);
            let message =
                refusal(learner, table, "no_such_setting", json!(1)).expect("an unknown name is refused");
            assert!(message.contains("unknown setting `no_such_setting`"), "{message}");
            let settled = (learner.settle)(&Settings::default()).expect("defaults");
            let settled = if table == "model" { settled.model } else { settled.training };
            let known: BTreeSet<String> = settled.keys().cloned().collect();
            let listed: BTreeSet<String> = properties.keys().cloned().collect();
            assert_eq!(listed, known, "[{table}] of {}: {message}", learner.name);
            for (name, form) in &properties {
                let any = &config["properties"][table]["properties"][name];
                // Draft 4 ignores what stands beside a reference.
                assert_eq!(
                    form.get("default").is_some(),
                    form.get("$ref").is_none(),
                    "{}: {name}",
                    learner.name
                );
                if let Some(default) = form.get("default") {
                    assert_eq!(problem(&config, form, default), None, "{}: {name}", learner.name);
                    assert_eq!(problem(&config, any, default), None, "[{table}]: {name}");
                }
                // The variants of the method have its settings, one of them fixed.
                if !learner.name.starts_with("poul-") {
                    same_values(&config, learner, table, name, form);
                }
            }
        }
        let has_preset = own["properties"].get("preset").is_some();
        let settings = Settings { preset: Some("paper".into()), ..Settings::default() };
        assert_eq!((learner.settle)(&settings).is_ok(), has_preset, "{}", learner.name);
    }
}

/// What the schema refuses the learner refuses, and what it accepts at its bounds the learner accepts.
fn same_values(config: &Value, learner: &Learner, table: &str, name: &str, form: &Value) {
    let place = format!("{}: {table}.{name}", learner.name);
    if let Some(names) = form.get("enum") {
        let message = refusal(learner, table, name, json!("no-such-value")).expect("refused");
        let listed =
            names.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name").to_owned());
        let (_, choices) = message.split_once(": must be ").expect("the choices");
        assert_eq!(listed.collect::<BTreeSet<_>>(), quoted(choices, "no-such-value"), "{place}: {message}");
    }
    let whole = form["type"] == "integer";
    let mut tried =
        vec![json!("text"), json!(true), json!(-1), json!(-0.5), json!([]), json!([0]), json!([4])];
    for bound in ["minimum", "maximum"].iter().filter_map(|key| form[*key].as_f64()) {
        for step in [-1.0, 0.0, 1.0] {
            tried.push(match whole {
                true => json!((bound + step) as i64),
                // Settings are single precision.
                false => json!(bound + step * 1e-3 * bound.abs().max(1.0)),
            });
        }
    }
    // A share above one half needs single trees, and hundreds of thousands of draws are a matter of taste.
    tried.retain(|value| {
        name != "sample_fraction" || value.as_f64().is_none_or(|share| share <= 0.5 || share > 1.0)
    });
    for value in tried.into_iter().filter(|value| !(value.is_array() && ["of", "phases"].contains(&name))) {
        let by_schema = problem(config, form, &value);
        let by_learner = refusal(learner, table, name, value.clone());
        assert_eq!(
            by_schema.is_none(),
            by_learner.is_none(),
            "{place} = {value}: {by_schema:?}, {by_learner:?}"
        );
    }
}

#[test]
fn other_tables_are_those_of_the_schema() {
    let folder = Folder::new();
    let config = folder.json(&["schema", "config"]);
    let keys = |form: &Value| object(&form["properties"]).keys().cloned().collect::<BTreeSet<_>>();
    let unknown = || json!({ "no_such_setting": 1 });
    let message = serde_json::from_value::<poul::data::Roles>(unknown()).expect_err("refused").to_string();
    let beside =
        ["policies", "contexts", "exposure_log", "context_column", "shares", "baseline_data", "strata_table"];
    let mut roles = quoted(&message, "no_such_setting");
    for name in beside.iter().chain(&["encoder"]) {
        roles.insert((*name).to_owned());
        roles.insert(name.replace('_', "-"));
    }
    assert_eq!(keys(&config["properties"]["data"]), roles);
    // Every one of them is read, in both spellings.
    folder.write("data.csv", crate::harness::experiment(20));
    for name in keys(&config["properties"]["data"]) {
        folder.write("poul.toml", format!("[data]\n{name} = 1.5\n"));
        let run = folder.run(&["check", "data.csv", "--config", "poul.toml"]);
        assert!(!run.stderr.contains("unknown setting"), "{}", run.transcript());
    }
    let message =
        serde_json::from_value::<poul::data::EncoderParams>(unknown()).expect_err("refused").to_string();
    let encoder = &config["properties"]["data"]["properties"]["encoder"];
    assert_eq!(keys(encoder), quoted(&message, "no_such_setting"));
    folder.write("poul.toml", "[data]\noutcome = 'gmv'\n[compare]\nno_such_setting = 1\n");
    let run = folder.run(&["compare", "data.csv", "--config", "poul.toml"]);
    let known = quoted(run.stderr.lines().next().expect("an error"), "no_such_setting");
    assert_eq!(keys(&config["properties"]["compare"]), known, "{}", run.transcript());
    let phases = json!([{ "no_such_setting": 1 }]);
    let message = refusal(&LEARNERS[0], "training", "phases", phases).expect("refused");
    let phase = &config["definitions"]["poul"]["properties"]["training"]["properties"]["phases"]["items"];
    let (_, about) = message.split_once(": ").expect("the name of the setting first");
    assert_eq!(keys(phase), quoted(about, "no_such_setting"));
    folder.write("poul.toml", "[no_such_table]\n");
    let run = folder.run(&["check", "data.csv", "--config", "poul.toml"]);
    let hinted = quoted(run.stderr.split("hint:").last().expect("a hint"), "no_such_table");
    assert_eq!(keys(&config), hinted, "{}", run.transcript());
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.succeeds(&["completions", shell]);
        for word in ["quickstart", "certify", "completions", "learning-rate"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let page = folder.succeeds(&["man"]);
    assert!(page.contains("poul\\-fit(1)"), "{page}");
    assert!(folder.succeeds(&["man", "policy", "diff"]).contains("poul policy diff T1 T2"));
    folder.succeeds(&["man", "--out", "pages", "--quiet"]);
    let pages = folder.listing();
    for name in ["pages/poul.1", "pages/poul-fit.1", "pages/poul-policy-diff.1", "pages/poul-man.1"] {
        assert!(pages.iter().any(|page| page == name), "{pages:?}");
    }
    folder.fails("man_unknown_command", 2, &["man", "fitt"]);
    folder.fails("completions_unknown_shell", 2, &["completions", "tcsh"]);
    folder.fails("schema_unknown_kind", 2, &["schema", "model"]);
}

/// What a learner says against a value, if it does.
fn refusal(learner: &Learner, table: &str, name: &str, value: Value) -> Option<String> {
    let mut settings = Settings::default();
    let entries = if table == "model" { &mut settings.model } else { &mut settings.training };
    entries.insert(name.to_owned(), value);
    (learner.settle)(&settings).err().map(|error| error.to_string())
}

/// The names in backquotes of a message, but for the one that was tried.
fn quoted(message: &str, tried: &str) -> BTreeSet<String> {
    message.split('`').skip(1).step_by(2).filter(|name| *name != tried).map(str::to_owned).collect()
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// What is wrong with a value by the rules of draft 4, for the keywords that the schemas use; others fail the test.
fn problem(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(target) = schema.get("$ref") {
        let pointer = target.as_str().and_then(|target| target.strip_prefix('#')).expect("a local reference");
        return problem(root, root.pointer(pointer).expect("a definition"), value);
    }
    let number = value.as_f64();
    let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let size = |limit: &Value, size: Option<usize>| {
        size.is_none_or(|size| size as u64 >= limit.as_u64().expect("a count"))
    };
    for (key, rule) in schema.as_object().expect("a schema") {
        let holds = match key.as_str() {
            "$schema" | "title" | "description" | "default" | "definitions" | "exclusiveMinimum"
            | "exclusiveMaximum" => true,
            "type" => {
                let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                kinds.iter().any(|kind| is_of(kind.as_str().expect("a type"), value))
            }
            "enum" => {
                let known = rule.as_array().expect("a list");
                known.contains(value)
                    || known.iter().any(|known| number.is_some() && known.as_f64() == number)
            }
            "minimum" => number.is_none_or(|number| {
                let bound = rule.as_f64().expect("a bound");
                if flag("exclusiveMinimum") { number > bound } else { number >= bound }
            }),
            "maximum" => number.is_none_or(|number| {
                let bound = rule.as_f64().expect("a bound");
                if flag("exclusiveMaximum") { number < bound } else { number <= bound }
            }),
            "minLength" => size(rule, value.as_str().map(|text| text.chars().count())),
            "minItems" => size(rule, value.as_array().map(Vec::len)),
            "minProperties" => size(rule, value.as_object().map(Map::len)),
            "uniqueItems" => value.as_array().is_none_or(|items| {
                items.iter().enumerate().all(|(place, item)| !items[..place].contains(item))
            }),
            "items" => {
                if let Some(wrong) =
                    value.as_array().into_iter().flatten().find_map(|item| problem(root, rule, item))
                {
                    return Some(wrong);
                }
                true
            }
            "required" => value.as_object().is_none_or(|entries| {
                rule.as_array()
                    .expect("names")
                    .iter()
                    .all(|name| entries.contains_key(name.as_str().expect("a name")))
            }),
            "anyOf" => {
                rule.as_array().expect("forms").iter().any(|form| problem(root, form, value).is_none())
            }
            "properties" | "patternProperties" | "additionalProperties" => {
                if let Some(wrong) = wrong_entry(root, schema, value) {
                    return Some(wrong);
                }
                true
            }
            unknown => panic!("the keyword `{unknown}` is not known here"),
        };
        if !holds {
            return Some(format!("{value} breaks `{key}`: {rule}"));
        }
    }
    None
}

fn wrong_entry(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    for (name, entry) in value.as_object()? {
        // The one pattern there is.
        let matches = |pattern: &str| {
            assert_eq!(pattern, r"^(model|training)\..+");
            ["model.", "training."]
                .iter()
                .any(|table| name.strip_prefix(table).is_some_and(|rest| !rest.is_empty()))
        };
        let patterns = object(&schema["patternProperties"]);
        let form = schema["properties"].get(name).cloned();
        let form =
            form.or_else(|| patterns.into_iter().find(|(pattern, _)| matches(pattern)).map(|(_, form)| form));
        let wrong = match form.or_else(|| schema.get("additionalProperties").cloned()) {
            Some(Value::Bool(false)) => Some("is not known".to_owned()),
            None | Some(Value::Bool(true)) => None,
            Some(form) => problem(root, &form, entry),
        };
        if let Some(wrong) = wrong {
            return Some(format!("{name}: {wrong}"));
        }
    }
    None
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("no type is called `{other}`"),
    }
}
