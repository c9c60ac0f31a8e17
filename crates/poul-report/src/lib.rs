//! Reports: an evaluation, or a comparison of learners, as one HTML file that opens offline.
//!
//! A section is a file and a function of the [`Evaluation`] alone; it is `None` where the evaluation has nothing for it.
//! Charts are plotly figures written as JSON (`chart`); `page.js` draws them in the colours of the page and lets the
//! reader choose among their variants.

mod allocation;
mod assigned;
mod atoms;
mod calibration;
mod chart;
mod checks;
mod comparison;
mod cost;
mod curves;
#[cfg(test)]
mod fixture;
mod map;
mod markup;
pub mod number;
mod page;
mod policies;
mod provenance;
mod summary;
mod target;
#[cfg(test)]
mod tests;
mod training;
mod who_gains;
mod words;

use poul::Result;
use poul::compare::Comparison;
use poul::decide::users::Allocation;
use poul::evaluate::{Evaluation, PolicyResult};

use self::page::Page;
pub use self::target::ReportTarget;
pub use self::words::policies_name;

/// Fewer rows in an arm than this, and a comparison is shown in grey and without intervals.
const FEWEST_ROWS: usize = 30;

/// Policies whose curves a page carries for each outcome; of more, those with the most rows.
const MOST_POLICIES: usize = 100;

/// The report of an evaluation.
pub fn of_evaluation(evaluation: &Evaluation) -> Result<String> {
    let sections = [
        summary::section(evaluation),
        checks::section(evaluation),
        policies::section(evaluation),
        assigned::section(evaluation),
        curves::section(evaluation),
        cost::section(evaluation),
        calibration::section(evaluation),
        who_gains::section(evaluation),
        map::section(evaluation),
        atoms::section(evaluation),
        training::section(evaluation),
        provenance::section(evaluation),
    ];
    let title = match evaluation.results.first() {
        Some(result) => format!("Policies against {}", result.against),
        None => "Policies against what was assigned on average".to_owned(),
    };
    Page { title, sections: sections.into_iter().flatten().collect() }.render()
}

/// The report of an allocation.
pub fn of_allocation(allocation: &Allocation) -> Result<String> {
    let title = format!("Who gets what, for {}", allocation.maximize);
    Page { title, sections: allocation::sections(allocation) }.render()
}

/// The report of a comparison; `command` is what was typed.
pub fn of_comparison(comparison: &Comparison, command: &str) -> Result<String> {
    let title = "Learners side by side".to_owned();
    Page { title, sections: comparison::sections(comparison, command) }.render()
}

/// Whether a comparison rests on too few rows for its intervals to mean anything.
fn is_thin(n_treated: usize, n_control: usize) -> bool {
    n_treated.min(n_control) < FEWEST_ROWS
}

/// The results whose curves are shown, and how many are left out.
fn shown_results(evaluation: &Evaluation) -> (Vec<&PolicyResult>, usize) {
    let mut shown = Vec::new();
    for outcome in outcomes(evaluation) {
        let mut own: Vec<(usize, &PolicyResult)> =
            evaluation.results.iter().enumerate().filter(|(_, result)| result.outcome == outcome).collect();
        if own.len() > MOST_POLICIES {
            own.sort_by_key(|(place, result)| (std::cmp::Reverse(result.metrics.n_treated), *place));
            own.truncate(MOST_POLICIES);
            own.sort_by_key(|(place, _)| *place);
        }
        shown.extend(own.into_iter().map(|(_, result)| result));
    }
    let left_out = evaluation.results.len() - shown.len();
    (shown, left_out)
}

/// What is said where results are left out.
fn left_out_sentence(n: usize) -> String {
    match n {
        0 => String::new(),
        _ => format!(
            " Only the {MOST_POLICIES} policies with the most rows are shown for each outcome; the JSON has the others."
        ),
    }
}

/// The outcomes, in their order.
fn outcomes(evaluation: &Evaluation) -> Vec<&str> {
    let mut outcomes: Vec<&str> = Vec::new();
    for result in &evaluation.results {
        if !outcomes.contains(&result.outcome.as_str()) {
            outcomes.push(&result.outcome);
        }
    }
    outcomes
}
