//! What every learner does with numbers as they should not be: effects that are finite, or an error that says what is wrong; and
//! where something is lost, a warning.

use std::fmt::Write as _;
use std::sync::Mutex;

use poul::data::{Budget, Dataset, Design, EncoderParams, Need, Roles, Source};
use poul::model::{LEARNERS, Learner};
use poul::{Experiment, Model, Progress, Result};

use crate::short::Short;

const ROWS: usize = 48;

/// Remembers what it is warned of.
#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl Progress for Listener {
    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// A table: rows of policy, outcome, weight, and features.
struct Case {
    name: &'static str,
    roles: Roles,
    text: String,
    /// What the error says; none where effects are finite.
    refused: Option<&'static str>,
    /// What is warned of, if anything must be.
    warned: Option<&'static str>,
}

/// One row: the policy's number, the outcome, the weight, and features.
type Row = (usize, f64, f64, Vec<String>);

fn plain(row: usize) -> Row {
    let (policy, age) = (row % 3, ((row * 37) % 41) as f64);
    let y = age * policy as f64 / 20.0 + ((row * 29) % 17) as f64 / 17.0;
    (policy, y, 1.0, vec![age.to_string(), ["Rome", "Oslo", ""][row / 3 % 3].to_owned()])
}

fn case(
    name: &'static str,
    n_rows: usize,
    refused: Option<&'static str>,
    warned: Option<&'static str>,
    change: impl Fn(usize, &mut Row),
) -> Case {
    let mut text = String::new();
    for row in 0..n_rows {
        let mut cells = plain(row);
        change(row, &mut cells);
        let (policy, y, w, features) = cells;
        if row == 0 {
            let names: Vec<String> = (0..features.len()).map(|feature| format!("x{feature}")).collect();
            writeln!(text, "policy,y,w,m,{}", names.join(",")).unwrap();
        }
        writeln!(text, "t{policy},{y:e},{w:e},0,{}", features.join(",")).unwrap();
    }
    let roles = Roles {
        outcome: vec!["y".into()],
        weight: Some("w".into()),
        exclude: vec!["m".into()],
        ..Roles::default()
    };
    Case { name, roles, text, refused, warned }
}

fn cases() -> Vec<Case> {
    let large = Some("too large to calculate with");
    let mut cases = vec![
        case("outcomes of 1e300", ROWS, large, None, |_, row| row.1 *= 1e300),
        case("outcomes of 1e155", ROWS, large, None, |_, row| row.1 *= 1e155),
        case("outcomes of 1e39", ROWS, large, None, |_, row| row.1 *= 1e39),
        case("outcomes of 1e-300", ROWS, Some("too little to calculate with"), None, |_, row| {
            row.1 *= 1e-300;
        }),
        case("an outcome of NaN", ROWS, Some("is null or NaN"), None, |row, cells| {
            cells.1 = if row == 7 { f64::NAN } else { cells.1 };
        }),
        case("an outcome that does not vary", ROWS, Some("is 4 in every row"), None, |_, row| row.1 = 4.0),
        case("a cell of the largest number", ROWS, large, None, |row, cells| {
            if row == 7 {
                cells.3[0] = "1.7976931348623157e308".into();
            }
        }),
        case("weights of 1e300", ROWS, large, None, |row, cells| {
            cells.2 = if row == 7 { 1e300 } else { 1.0 }
        }),
        case("weights of 0 throughout", ROWS, Some("weight"), None, |_, row| row.2 = 0.0),
        case("the largest there may be", ROWS, None, Some("missing in every row"), |row, cells| {
            cells.1 *= 1e29;
            cells.2 = [0.0, 1e29, 1.0][row / 3 % 3];
            let age: f64 = cells.3[0].parse().unwrap();
            // Collinear ones, of all sizes; one that does not vary, one that is missing throughout.
            cells.3.extend((1..=20).map(|times| (age * f64::from(times)).to_string()));
            cells.3.extend([format!("{age}e28"), format!("{age}e-300"), "7".into(), String::new()]);
        }),
        case("the smallest there may be", ROWS, None, Some("is constant"), |_, row| {
            row.1 *= 1e-29;
            row.2 = 1e-29;
            row.3[1] = "Rome".into();
        }),
        case("one row in each arm", 12, None, Some("fewer than 5 rows"), |row, cells| cells.0 = row),
        case("all rows but one are control", ROWS, None, Some("`t1` (1)"), |row, cells| {
            cells.0 = usize::from(row == 31);
        }),
        case("assignment by a feature", ROWS, None, None, |_, row| {
            let age: f64 = row.3[0].parse().unwrap();
            row.0 = usize::from(age > 20.0);
        }),
    ];
    cases.last_mut().unwrap().roles.design = Design::Observational;
    cases
}

/// As few steps as there can be.
const SHORT: Short = Short {
    trees: 4,
    min_arm_rows: 10,
    widths: &[4],
    of: &["constant", "ridge"],
    epochs: 1,
    batch_rows: 256,
};

/// Fits, stores, loads, and scores the rows that were trained on.
fn effects(case: &Case, learner: &Learner, source: &Source, progress: &Listener) -> Result<Vec<f32>> {
    let mut roles = case.roles.clone();
    // Rivals share the outcome models that the method has: no time goes into those again.
    if learner.name != "poul" {
        roles.exclude.clear();
        roles.prediction.insert("y".into(), "m".into());
    }
    let budget = Budget::default();
    let experiment =
        Experiment::open(source, &Roles { control: Some("t0".into()), ..roles }, None, progress)?;
    let fitted = Model::fit(&experiment)
        .learner(learner.name)
        .settings(&SHORT.settings(learner))
        .seed(1)
        .run(progress)?;
    let bytes = fitted.to_bytes()?;
    let model = Model::from_bytes(&bytes)?;
    let manifest = model.manifest();
    let rows = Dataset::read(
        source,
        &model.columns(source, &case.roles, Need::SCORE)?,
        &manifest.encoder,
        &budget,
        progress,
    )?;
    let all: Vec<usize> = (0..manifest.policies.len()).collect();
    let control = manifest.policies.require("t0")?;
    let scores = model.effects().prepare(&manifest.policies, &all, control)?.score(&rows.x, true)?;
    Ok(scores.mean.into_iter().flatten().collect())
}

#[test]
fn numbers_as_they_should_not_be_give_finite_effects_or_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    for case in cases() {
        std::fs::write(&path, &case.text).unwrap();
        let source = Source::open(path.to_str().unwrap()).unwrap();
        for learner in LEARNERS {
            let at = format!("{}, {}", case.name, learner.name);
            let listener = Listener::default();
            match (effects(&case, learner, &source, &listener), case.refused) {
                (Ok(effects), None) => {
                    assert!(effects.iter().all(|effect| effect.is_finite()), "{at}: {effects:?}");
                    let warnings = listener.0.into_inner().unwrap();
                    let is_warned = |wanted: &str| warnings.iter().any(|warning| warning.contains(wanted));
                    assert!(case.warned.is_none_or(is_warned), "{at}: {warnings:?}");
                }
                (Err(error), Some(wanted)) => {
                    assert!(error.to_string().contains(wanted), "{at}: {error}");
                    // Where it is about one cell, that cell is named.
                    if wanted == "too large to calculate with" {
                        let said = error.to_string();
                        assert!(said.contains("row") && said.contains("column `"), "{at}: {error}");
                    }
                    assert!(error.hint_text().is_some(), "{at}: {error}");
                }
                // What a learner cannot do with such a table it may refuse, if it says why.
                (Err(error), None) => {
                    assert!(
                        error.hint_text().is_some() && error.kind() != poul::Kind::Other,
                        "{at}: {error}"
                    );
                }
                (Ok(_), Some(wanted)) => panic!("{at}: not refused: {wanted}"),
            }
        }
    }
}

#[test]
fn a_cell_too_large_to_calculate_with_stops_scoring_with_its_column_and_row() {
    let case = case("plain", ROWS, None, None, |_, _| ());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, &case.text).unwrap();
    let source = Source::open(path.to_str().unwrap()).unwrap();
    let columns = case.roles.check(source.schema(), Need::FIT).unwrap();
    let (params, budget) = (EncoderParams::default().check().unwrap(), Budget::default());
    let (_, encoder) = Dataset::read_and_fit(&source, &columns, &params, &budget, &poul::Silent).unwrap();
    let mut lines: Vec<String> = case.text.lines().map(str::to_owned).collect();
    lines[5] = "t1,1,1,0,-1.7e308,Rome".into();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let source = Source::open(path.to_str().unwrap()).unwrap();
    let error = Dataset::read(&source, &columns, &encoder, &budget, &poul::Silent).err().unwrap();
    let said = error.to_string();
    assert!(said.contains("row 4") && said.contains("column `x0`") && said.contains("-1.7e308"), "{said}");
    assert!(error.hint_text().unwrap().contains("leave the cell empty"));
    // What is infinite counts as missing, as the pages say.
    lines[5] = "t1,1,1,0,inf,Rome".into();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let source = Source::open(path.to_str().unwrap()).unwrap();
    let rows = Dataset::read(&source, &columns, &encoder, &budget, &poul::Silent).unwrap();
    assert!(rows.x.values().iter().all(|value| value.is_finite()));
}
