//! The tree as ARCHITECTURE has it: which room may import from which, and that the library knows no flags.

use std::fs;
use std::path::{Path, PathBuf};

/// A room imports from those before it alone, so that there are no cycles. Nothing imports `simulate`. What measures effects
/// (`evaluate`) comes before all learners; what takes a model for that comes after it.
const ROOMS: [&str; 21] = [
    "stats",
    "data",
    "policy",
    "check",
    "net",
    "tree",
    "nuisance",
    "effect",
    "experiment",
    "average",
    "evaluate/metric",
    "evaluate/average",
    "evaluate",
    "learn",
    "model",
    "evaluate/trust",
    "evaluate/run",
    "compare",
    "tune",
    "decide",
    "simulate",
];

/// What the rooms of an evaluation fill: data without arithmetic, which all of them know.
const RESULTS: [&str; 2] = ["evaluate/result", "evaluate/reasons"];

/// Files that write commands down for people to type.
const WRITE_COMMANDS: [&str; 3] = ["simulate/readme.rs", "simulate/again.rs", "command_line.rs"];

#[test]
fn rooms_import_along_the_arrows() {
    let root = root();
    let folders =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        assert!(ROOMS.contains(&name.as_str()), "`{name}` has no place among the rooms: see ARCHITECTURE.md");
    }
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let short = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let Some(own) = room(&short) else { continue };
        for other in imported(&fs::read_to_string(&path).unwrap()) {
            if !RESULTS.contains(&other.as_str()) && room(&other).is_some_and(|other| other > own) {
                wrong.push(format!("{short} imports from {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_library_knows_no_flags() {
    let root = root();
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let short = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        if WRITE_COMMANDS.contains(&short.as_str()) {
            continue;
        }
        for (number, line) in code(&fs::read_to_string(&path).unwrap()).enumerate() {
            if has_flag(line) {
                wrong.push(format!("{short}, line {}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "settings are written ‹name=VALUE›, and each front end spells them: {wrong:#?}"
    );
}

#[test]
fn what_is_looked_for_is_found() {
    assert_eq!(
        imported("use crate::data::Source;\nuse crate::{Error, net::Tape, stats};\n"),
        ["data/Source", "Error", "net/Tape", "stats"]
    );
    assert_eq!(
        imported("use crate::evaluate::{Effects, run::Nuisances};"),
        ["evaluate/Effects", "evaluate/run"]
    );
    assert!(room("evaluate/trust/mod.rs") > room("model/mod.rs") && room("evaluate/Effects") < room("model"));
    assert!(imported("pub(in crate::evaluate) fn f() {}").is_empty());
    assert!(imported("// crate::data\n/// [`x`](crate::net::X)\n").is_empty());
    assert!(imported("#[cfg(test)]\nmod tests { use crate::simulate::run; }").is_empty());
    assert!(has_flag("Error::usage(\"x\").hint(\"name it: --stratum COL\")"));
    assert!(has_flag("\"leave some out with `--exclude`\""));
    assert!(!has_flag("let x = a - -b; // --x\n") && !has_flag("\"a -- b\""));
}

/// The place of the room that a path of a file or an import leads to.
fn room(path: &str) -> Option<usize> {
    let folder: String = path.split('/').take(2).collect::<Vec<_>>().join("/");
    let place = |room: &str| ROOMS.iter().position(|own| *own == room);
    place(&folder).or_else(|| place(path.split('/').next()?))
}

/// What a user calls first, and the file it is in.
const FRONT_DOORS: [(&str, &str); 5] = [
    ("pub struct Experiment", "experiment/mod.rs"),
    ("pub fn fit(", "model/fit.rs"),
    ("pub fn effect<'a>(", "model/effects.rs"),
    ("pub fn evaluate(", "evaluate/run/of_model.rs"),
    ("pub fn spelled(", "spelling.rs"),
];

#[test]
fn front_doors_have_examples() {
    for (item, file) in FRONT_DOORS {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let (before, _) = text.split_once(item).unwrap_or_else(|| panic!("{file} has no `{item}`"));
        let lines = before.lines().rev().map(str::trim).filter(|line| !line.starts_with("#["));
        let docs: Vec<&str> =
            lines.skip_while(|line| line.is_empty()).take_while(|line| line.starts_with("///")).collect();
        assert!(docs.iter().any(|line| line.starts_with("/// ```")), "`{item}` of {file} has no example");
    }
}

#[test]
fn the_readme_has_the_example_that_runs() {
    let text = fs::read_to_string(root().join("lib.rs")).unwrap();
    let example = text.split("//! ```").nth(1).unwrap();
    let shown = example.lines().skip(1).filter(|line| !line.starts_with("//! #"));
    let shown: Vec<&str> = shown.map(|line| line.trim_start_matches("//!").trim_start()).collect();
    let readme = fs::read_to_string(root().join("../../../README.md")).unwrap();
    let readme = readme.split("```rust\n").nth(1).and_then(|after| after.split("```").next()).unwrap();
    let readme: Vec<&str> = readme.lines().map(str::trim_start).collect();
    assert_eq!(readme.join("\n").trim(), shown.join("\n").trim());
}

/// More pages than that nobody reads; ARCHITECTURE says what is left out of them.
const MOST_DOCUMENTED: usize = 300;

#[test]
fn what_users_do_not_call_is_not_in_the_pages() {
    let found = documented(&root(), "lib.rs");
    assert!(found.len() < MOST_DOCUMENTED, "{} items are documented: hide some", found.len());
    // What is looked for is found: here, behind a module, and in a list; and what is hidden is not.
    for item in ["Experiment", "FitRequest", "Proposal", "Metric", "PRESETS", "Learner", "Simulation"] {
        assert!(found.iter().any(|own| own == item), "`{item}` is not among {found:?}");
    }
    for hidden in ["Tape", "FirstStage", "Assigner", "EffectModel", "AtomicFile"] {
        assert!(!found.iter().any(|own| own == hidden), "`{hidden}` is documented");
    }
}

/// The names that a module and the public modules below it show, but for those that are hidden from the documentation.
fn documented(folder: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let code: Vec<&str> = code(&text).collect();
    let (code, mut found) = (code.join("\n"), Vec::new());
    for (at, _) in code.match_indices("\npub ") {
        let item = &code[at + "\npub ".len()..];
        let attributes = code[..at].rsplit("\n\n").next().unwrap_or_default();
        let attributes = attributes.rsplit([';', '}']).next().unwrap_or_default();
        if attributes.contains("#[doc(hidden)]") {
            continue;
        }
        let (kind, rest) = item.split_once(' ').unwrap_or((item, ""));
        let rest = rest.trim_start_matches("fn ");
        let name = paths(rest, 1).pop().unwrap_or_default();
        match kind {
            "use" => found
                .extend(paths(rest, 9).iter().filter_map(|path| Some(path.rsplit('/').next()?.to_owned()))),
            "mod" => found.extend(documented(&folder.join(&name), "mod.rs")),
            _ => found.push(name),
        }
    }
    found
}

/// The code of a file without its tests; comments are empty lines.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line })
}

/// What stands after `crate::`, alone or in braces: a room, and what follows it.
fn imported(text: &str) -> Vec<String> {
    let code: Vec<&str> = code(text).collect();
    // Who may see an item is no import.
    let code = code.join("\n").replace("pub(in crate::", "pub(in ");
    code.split("crate::").skip(1).flat_map(|after| paths(after, 2)).collect()
}

/// The paths that a text begins with, each of so many parts at most.
fn paths(text: &str, n_parts: usize) -> Vec<String> {
    if let Some(inside) = text.strip_prefix('{') {
        return parts(inside).iter().flat_map(|part| paths(part.trim(), n_parts)).collect();
    }
    let first: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    match text[first.len()..].strip_prefix("::") {
        _ if first.is_empty() => Vec::new(),
        Some(rest) if n_parts > 1 => {
            let rest = paths(rest, n_parts - 1);
            if rest.is_empty() {
                vec![first]
            } else {
                rest.iter().map(|own| format!("{first}/{own}")).collect()
            }
        }
        _ => vec![first],
    }
}

/// What is between commas, up to the brace that closes.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&text[start..at]);
                return found;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Whether a string of the line has a flag in it.
fn has_flag(line: &str) -> bool {
    let line = line.split(" // ").next().unwrap_or_default();
    line.split('"').skip(1).step_by(2).any(|inside| {
        let mut flags = inside.match_indices("--");
        flags.any(|(at, _)| {
            let before = inside[..at].chars().next_back();
            let after = inside[at + 2..].chars().next();
            before.is_none_or(|c| " `(".contains(c)) && after.is_some_and(|c| c.is_ascii_lowercase())
        })
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../src")
}

/// Every source file below a folder, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
