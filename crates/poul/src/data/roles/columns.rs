//! Roles that are known to fit a table.

use arrow_schema::Schema;
use serde::{Deserialize, Serialize};

use super::{Design, ExposureScale};
use crate::Result;
use crate::data::{ColumnKind, Filter};

/// The columns of a table by role: every name exists, has a fitting type and plays one part.
///
/// Made by [`Roles::check`](super::Roles::check).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Columns {
    /// One column of policy names, or the columns of the factorial form; empty where no treatment is needed.
    pub treatment: Vec<String>,
    /// Whether each treatment column is a context of its own.
    pub factorial: bool,
    /// The control's name, if given.
    pub control: Option<String>,
    /// The outcomes, in the order given.
    pub outcomes: Vec<String>,
    /// The outcomes that are only there to teach, in the order given.
    pub auxiliary: Vec<String>,
    /// The features, in the order of the table.
    pub features: Vec<Feature>,
    /// Sample weights.
    pub weight: Option<String>,
    /// Clusters.
    pub cluster: Option<String>,
    /// Strata.
    pub stratum: Option<String>,
    /// The user's own propensities, in the order of the table.
    pub propensity: Vec<Propensity>,
    /// The user's own predictions of outcomes.
    pub predictions: Vec<Prediction>,
    /// How much rows meet contexts, by context.
    pub exposure: Vec<ExposureColumn>,
    /// What the numbers of a row are divided by.
    pub exposure_scale: ExposureScale,
    /// Which rows count.
    pub population: Option<Filter>,
    /// Parts of those rows that are told apart: see `with_populations`.
    pub populations: Vec<Filter>,
    /// Effects that were predicted, or are known to be true: given by whoever evaluates, none by [`Roles`](super::Roles).
    pub effects: Vec<String>,
    /// What rows are grouped by, likewise.
    pub by: Vec<Feature>,
    /// When rows were observed.
    pub time: Option<String>,
    /// What identifies a row.
    pub ids: Vec<String>,
    /// How assignment happened.
    pub design: Design,
}

/// A column that is a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// The column's name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
}

/// A column with the probability of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Propensity {
    /// The column's name.
    pub column: String,
    /// What `*` stands for in it: the policy's name.
    pub policy: String,
}

/// A column with a prediction of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The outcome's place in [`Columns::outcomes`].
    pub outcome_idx: usize,
    /// The column's name.
    pub column: String,
}

/// A column with how much each row meets a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposureColumn {
    /// The context's name.
    pub context: String,
    /// The column's name.
    pub column: String,
}

impl Columns {
    /// Every column to read, each once.
    pub fn needed(&self) -> Vec<&str> {
        let mut needed: Vec<&str> = Vec::new();
        let names = self.features.iter().map(|feature| feature.name.as_str());
        let names = names.chain(self.effects.iter().map(String::as_str));
        let names = names.chain(self.by.iter().map(|feature| feature.name.as_str()));
        let names = names.chain(self.treatment.iter().map(String::as_str));
        let names = names.chain(self.outcomes.iter().chain(&self.auxiliary).map(String::as_str));
        let names = names.chain(
            [&self.weight, &self.cluster, &self.stratum, &self.time]
                .into_iter()
                .flatten()
                .map(String::as_str),
        );
        let names = names.chain(self.propensity.iter().map(|propensity| propensity.column.as_str()));
        let names = names.chain(self.predictions.iter().map(|prediction| prediction.column.as_str()));
        let names = names.chain(self.exposure.iter().map(|exposure| exposure.column.as_str()));
        let names = names.chain(self.ids.iter().map(String::as_str));
        let filters = self.population.iter().chain(&self.populations);
        let names = names.chain(filters.flat_map(Filter::columns).map(String::as_str));
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            if seen.insert(name) {
                needed.push(name);
            }
        }
        needed
    }

    /// Tells parts of the rows apart, by expressions like that of the population: what the phases of training ask for.
    pub(crate) fn with_populations<'t>(
        mut self,
        expressions: impl IntoIterator<Item = &'t str>,
        schema: &Schema,
    ) -> Result<Self> {
        let filters = expressions.into_iter().map(|text| Filter::parse(text, schema));
        self.populations = filters.collect::<Result<_>>()?;
        Ok(self)
    }

    /// The names of the features.
    pub fn feature_names(&self) -> Vec<&str> {
        self.features.iter().map(|feature| feature.name.as_str()).collect()
    }
}
