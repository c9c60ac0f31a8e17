//! The layout of the paper's tables: rows of learners, columns of population × policy × metric, a panel for each outcome.

use poul::compare::{Comparison, Estimate, LearnerResult};
use poul::evaluate::{Better, Metric};

/// More policies than this are shown together only.
const MOST_POLICIES: usize = 4;

/// A pair of columns: AUUC and MAPE of a policy on a population.
pub(super) struct Group {
    pub(super) population: String,
    /// All together where there is none.
    pub(super) policy: Option<String>,
}

/// What the tables show of a comparison.
pub(super) struct Layout<'a> {
    comparison: &'a Comparison,
    pub(super) outcomes: Vec<String>,
    /// Populations outermost.
    pub(super) groups: Vec<Group>,
}

/// The metrics of the paper's tables.
pub(super) const METRICS: [Metric; 2] = [Metric::Auuc, Metric::Mape];

impl<'a> Layout<'a> {
    pub(super) fn new(comparison: &'a Comparison) -> Self {
        let cells = comparison.learners.first().map_or(&[][..], |learner| &learner.cells);
        let mut outcomes: Vec<String> = Vec::new();
        let mut policies: Vec<Option<String>> = Vec::new();
        for cell in cells {
            if !outcomes.contains(&cell.outcome) {
                outcomes.push(cell.outcome.clone());
            }
            if cell.policy.is_some() && !policies.contains(&cell.policy) {
                policies.push(cell.policy.clone());
            }
        }
        if policies.len() > MOST_POLICIES {
            policies = vec![None];
        }
        let of = |population: &poul::compare::Population| {
            let name = population.name.clone();
            policies.iter().map(move |policy| Group { population: name.clone(), policy: policy.clone() })
        };
        let groups = comparison.populations.iter().flat_map(of).collect();
        Self { comparison, outcomes, groups }
    }

    /// How many policies each population shows.
    pub(super) fn n_policies(&self) -> usize {
        self.groups.len() / self.comparison.populations.len().max(1)
    }

    /// The rows of Table 1: each learner once, at its least validation R-loss.
    pub(super) fn selected(&self) -> Vec<&'a LearnerResult> {
        self.comparison.learners.iter().filter(|learner| learner.selected).collect()
    }

    /// Whether a learner takes part under several settings.
    pub(super) fn has_details(&self) -> bool {
        self.comparison.learners.iter().any(|learner| learner.schedule.is_some())
    }

    pub(super) fn estimate(
        &self,
        learner: &'a LearnerResult,
        outcome: &str,
        group: &Group,
        metric: Metric,
    ) -> Option<&'a Estimate> {
        learner.cell(&group.population, outcome, group.policy.as_deref())?.metric(metric)
    }

    /// Whether a value is the best of its column among `rows`.
    pub(super) fn is_best(
        &self,
        rows: &[&'a LearnerResult],
        value: f64,
        outcome: &str,
        group: &Group,
        metric: Metric,
    ) -> bool {
        let others = rows.iter().filter_map(|row| self.estimate(row, outcome, group, metric));
        let better = |other: f64| if is_better_large(metric) { other > value } else { other < value };
        !others.map(|estimate| estimate.value).any(better)
    }
}

/// What a column of a policy is headed by.
pub(super) fn policy_name(policy: Option<&str>) -> String {
    policy.map_or_else(|| "all policies".to_owned(), str::to_owned)
}

/// Whether the largest of a column is its best.
pub(super) fn is_better_large(metric: Metric) -> bool {
    metric.definition().better == Better::More
}
