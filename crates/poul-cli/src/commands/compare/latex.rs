//! The paper's tables as LaTeX (needs `booktabs` and `multirow`): Table 1 with a panel for each outcome, and a detailed
//! table for each outcome where a learner takes part by several schedules.

use poul::compare::{Comparison, LearnerResult};
use poul::evaluate::Metric;
use poul_report::policies_name;

use super::layout::{Layout, METRICS, is_better_large, policy_name};

pub(super) fn tables(comparison: &Comparison) -> String {
    let layout = Layout::new(comparison);
    let n_columns = layout.groups.len() * METRICS.len();
    let mut text = format!(
        "% Written by poul {}. Needs \\usepackage{{booktabs,multirow}}.\n\\begin{{table*}}[t]\n\\centering\n\
         \\caption{{AUUC ($\\uparrow$) and MAPE ($\\downarrow$) on {} test rows, effects against {}. Best results are \
         \\textbf{{bold}}.}}\n\\begin{{small}}\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
        comparison.poul,
        comparison.test_rows,
        escaped(&comparison.against),
        "c".repeat(n_columns)
    );
    text += &heading(comparison, &layout, 0);
    let panels = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars();
    for (outcome, panel) in layout.outcomes.iter().zip(panels) {
        text += &format!(
            "\\midrule\n\\multicolumn{{{}}}{{c}}{{\\textbf{{Panel {panel}: {}}}}} \\\\\n\\midrule\n",
            n_columns + 1,
            escaped(outcome)
        );
        let rows = layout.selected();
        for row in &rows {
            text += &format!("{}{} \\\\\n", escaped(&row.learner), cells(&layout, outcome, &rows, row));
        }
    }
    text += "\\bottomrule\n\\end{tabular}\n\\end{small}\n\\end{table*}\n";
    if layout.has_details() {
        layout.outcomes.iter().for_each(|outcome| text += &detailed(comparison, &layout, outcome));
    }
    text + &assigned(comparison)
}

/// Each row by its own policy, where arms are too thin to compare policies one by one.
fn assigned(comparison: &Comparison) -> String {
    let Some(first) =
        comparison.learners.first().filter(|own| comparison.thin_arms && !own.assigned.is_empty())
    else {
        return String::new();
    };
    let mut text = "\n\\begin{table*}[t]\n\\centering\n\\caption{Every row by its own policy, against what was assigned on \
                    average.}\n\\begin{small}\n\\begin{tabular}{llllccc}\n\\toprule\nOutcome & Population & Policies & \
                    Learner"
        .to_owned();
    Metric::ASSIGNED.iter().for_each(|metric| text += &format!(" & {}", metric.title()));
    text += " \\\\\n\\midrule\n";
    for (place, cell) in first.assigned.iter().enumerate() {
        for learner in &comparison.learners {
            let Some(own) = learner.assigned.get(place) else { continue };
            let names = [&cell.outcome, &cell.population, policies_name(own.policies), &learner.label];
            text += &names.map(|name: &str| escaped(name)).join(" & ");
            for metric in Metric::ASSIGNED {
                text += &match own.metric(metric) {
                    None => " & --".to_owned(),
                    Some(estimate) => {
                        let ends = estimate.interval.map(|[low, high]| format!(" [{low:.3}, {high:.3}]"));
                        format!(" & {:.3}{}", estimate.value, ends.unwrap_or_default())
                    }
                };
            }
            text += " \\\\\n";
        }
    }
    text + "\\bottomrule\n\\end{tabular}\n\\end{small}\n\\end{table*}\n"
}

/// All entries of an outcome, with their training configuration.
fn detailed(comparison: &Comparison, layout: &Layout<'_>, outcome: &str) -> String {
    let n_columns = layout.groups.len() * METRICS.len();
    let mut text = format!(
        "\n\\begin{{table}}[ht]\n\\centering\n\\caption{{{} by training schedule: epochs on all rows and on the core \
         population.}}\n\\resizebox{{\\textwidth}}{{!}}{{\n\\begin{{tabular}}{{lc{}}}\n\\toprule\n",
        escaped(outcome),
        "c".repeat(n_columns)
    );
    text += &heading(comparison, layout, 1);
    text += "\\midrule\n";
    for learner in layout.selected() {
        let all = comparison.learners.iter();
        let rows: Vec<&LearnerResult> = all.filter(|row| row.learner == learner.learner).collect();
        for (index, row) in rows.iter().enumerate() {
            if index == 0 {
                text += &format!("\\multirow{{{}}}{{*}}{{{}}}", rows.len(), escaped(&row.learner));
            }
            let schedule = row.schedule.map_or_else(|| "---".to_owned(), |schedule| format!("${schedule}$"));
            text += &format!(" & {schedule}{} \\\\\n", cells(layout, outcome, &rows, row));
        }
        text += "\\midrule\n";
    }
    text.truncate(text.len() - "\\midrule\n".len());
    text + "\\bottomrule\n\\end{tabular}\n}\n\\end{table}\n"
}

/// Three lines: populations, policies, metrics; after the learner come `more` columns.
fn heading(comparison: &Comparison, layout: &Layout<'_>, more: usize) -> String {
    let before = " ".to_owned() + &"& ".repeat(more);
    let width = layout.n_policies() * METRICS.len();
    let (mut populations, mut policies, mut metrics, mut rules) =
        (format!("Population{before}"), before.clone(), format!("Learner{before}"), String::new());
    if more > 0 {
        metrics = "Learner & Training".to_owned();
    }
    for (index, population) in comparison.populations.iter().enumerate() {
        let name = if population.name == "core" { "Core" } else { "Global" };
        populations += &format!("& \\multicolumn{{{width}}}{{c}}{{{name}}} ");
        let first = 2 + more + index * width;
        rules += &format!("\\cmidrule(lr){{{first}-{}}} ", first + width - 1);
    }
    for group in &layout.groups {
        let name = escaped(&policy_name(group.policy.as_deref()));
        policies += &format!("& \\multicolumn{{{}}}{{c}}{{{name}}} ", METRICS.len());
        for metric in METRICS {
            let arrow = if is_better_large(metric) { "uparrow" } else { "downarrow" };
            metrics += &format!(" & {} $\\{arrow}$", metric.title());
        }
    }
    format!("{populations}\\\\\n{}\n{policies}\\\\\n{metrics} \\\\\n", rules.trim_end())
}

fn cells(layout: &Layout<'_>, outcome: &str, rows: &[&LearnerResult], row: &LearnerResult) -> String {
    let mut text = String::new();
    for group in &layout.groups {
        for metric in METRICS {
            let estimate = row.cell(&group.population, outcome, group.policy.as_deref());
            let value = estimate.and_then(|cell| cell.metric(metric)).map(|estimate| estimate.value);
            text += &match value {
                None => " & --".to_owned(),
                Some(value) if layout.is_best(rows, value, outcome, group, metric) => {
                    format!(" & \\textbf{{{value:.3}}}")
                }
                Some(value) => format!(" & {value:.3}"),
            };
        }
    }
    text
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', letter]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_latex() {
        assert_eq!(escaped("50%_off & more\\"), "50\\%\\_off \\& more\\textbackslash{}");
    }
}
