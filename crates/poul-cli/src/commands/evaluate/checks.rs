//! The checks of an evaluation for a person, a line each.

use poul::evaluate::{Evaluation, Verdict};

/// Nothing where nothing was checked.
pub(super) fn summary(evaluation: &Evaluation) -> String {
    let Some(validation) = &evaluation.validation else { return String::new() };
    let mut text = "\nCan it be trusted?\n".to_owned();
    for check in &validation.checks {
        let verdict = match check.verdict {
            Verdict::Pass => "pass ",
            Verdict::Doubt => "doubt",
            Verdict::Fail => "FAIL ",
        };
        text += &format!("{verdict}  {}: {}\n", check.name, check.text);
    }
    text + "\n"
}
