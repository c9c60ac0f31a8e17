//! w_i(s): how much each row meets each context, from columns of the data.
//!
//! With shares w_i(s) = e_i(s) / Σ_s e_i(s), with totals w_i(s) = e_i(s) / mean_j Σ_s e_j(s). Either way the mean of w_i over
//! the training population, w̄(s), sums to 1 and takes the place of w(s) where no row is meant: d_Π under w̄ is the mean of
//! the rows' own distances. A row that met nothing has no shares: it is taken to meet contexts as the population does, and
//! told; with totals it is not treated at all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::set::PolicySet;
use crate::data::{Columns, ExposureColumn, ExposureScale};
use crate::{Error, Kind, Result};

/// How exposure columns become weights of contexts, as training found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// The contexts, sorted, each with its column.
    columns: Vec<(String, String)>,
    scale: ExposureScale,
    /// The mean sum of a row's exposures.
    unit: f64,
    /// w̄(s), in the order of the contexts.
    weights: Vec<f64>,
}

/// w_i(s) of some rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExposureRows {
    /// Row after row, in the order of the contexts.
    values: Vec<f32>,
    n_contexts: usize,
    /// Rows without any exposure.
    n_unexposed: usize,
}

impl Columns {
    /// The exposure columns in the order of the contexts of `policies`: as the roles name them, or else the policy file.
    /// Every context has one, or none has.
    pub fn with_contexts(mut self, policies: &PolicySet, schema: &arrow_schema::Schema) -> Result<Self> {
        if self.exposure.is_empty() && !policies.exposure().is_empty() {
            let role = crate::data::ExposureRole::Columns(policies.exposure().clone());
            self.exposure = role.find(schema)?;
        }
        if self.exposure.is_empty() {
            return Ok(self);
        }
        let contexts = policies.contexts();
        let mut found: BTreeMap<&str, &ExposureColumn> = BTreeMap::new();
        for own in &self.exposure {
            if contexts.binary_search(&own.context).is_err() {
                let known = contexts.iter().map(String::as_str);
                let error = Error::unknown(Kind::Input, "context", &own.context, "contexts", known);
                return Err(error.at(format!("exposure column `{}`", own.column)));
            }
            if let Some(other) = found.insert(&own.context, own) {
                let (context, first, second) = (&own.context, &other.column, &own.column);
                let what = format!("context `{context}` has two exposure columns, `{first}` and `{second}`");
                return Err(Error::input(what).hint("name the one that counts"));
            }
        }
        let missing: Vec<String> = contexts
            .iter()
            .filter(|context| !found.contains_key(context.as_str()))
            .map(|context| format!("`{context}`"))
            .collect();
        if !missing.is_empty() {
            let what = match missing.as_slice() {
                [only] => format!("context {only} has no exposure column"),
                several => format!("contexts {} have no exposure column", shortened(several)),
            };
            let hint = "name a column for every context; where nobody meets it, one that is 0";
            return Err(Error::input(what).hint(hint));
        }
        let sorted = found.into_values().cloned().collect();
        self.exposure = sorted;
        Ok(self)
    }
}

impl Exposure {
    /// Learns what exposures are divided by, and their mean, from the rows of training. `values` are those of
    /// `columns.exposure`, which are [in the order of the contexts](Columns::with_contexts); none where there are none.
    pub fn fit(columns: &Columns, values: &[Vec<f32>], weight: Option<&[f64]>) -> Result<Option<Self>> {
        if columns.exposure.is_empty() {
            return Ok(None);
        }
        let n_rows = values.first().map_or(0, Vec::len);
        let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
        let (mut mass, mut exposed, mut total) = (0.0, 0.0, 0.0);
        let mut shares = vec![0.0; values.len()];
        let mut totals = vec![0.0; values.len()];
        for row in 0..n_rows {
            let (own, weight) = (sum_of(values, row), weight_of(row));
            mass += weight;
            total += weight * own;
            if own > 0.0 {
                exposed += weight;
                for (context, values) in values.iter().enumerate() {
                    let value = f64::from(values[row]);
                    shares[context] += weight * value / own;
                    totals[context] += weight * value;
                }
            }
        }
        if !(total > 0.0 && mass > 0.0) {
            let error = Error::input("no row has any exposure").at("exposure");
            return Err(error.hint("are these the right columns?"));
        }
        let weights = match columns.exposure_scale {
            ExposureScale::Share => shares.iter().map(|share| share / exposed).collect(),
            ExposureScale::Total => totals.iter().map(|own| own / total).collect(),
        };
        let pairs = columns.exposure.iter().map(|own| (own.context.clone(), own.column.clone()));
        let scale = columns.exposure_scale;
        Ok(Some(Self { columns: pairs.collect(), scale, unit: total / mass, weights }))
    }

    /// w_i(s) of rows, whose exposures are in the order of the contexts.
    pub fn rows(&self, values: &[Vec<f32>]) -> ExposureRows {
        let n_rows = values.first().map_or(0, Vec::len);
        let mut rows = ExposureRows { n_contexts: self.weights.len(), ..ExposureRows::default() };
        rows.values.reserve(n_rows * self.weights.len());
        for row in 0..n_rows {
            let own = sum_of(values, row);
            rows.n_unexposed += usize::from(own <= 0.0);
            match self.scale {
                ExposureScale::Share if own <= 0.0 => {
                    rows.values.extend(self.weights.iter().map(|weight| *weight as f32));
                }
                scale => {
                    let unit = if scale == ExposureScale::Share { own } else { self.unit };
                    rows.values.extend(values.iter().map(|values| (f64::from(values[row]) / unit) as f32));
                }
            }
        }
        rows
    }

    /// The exposure columns, by context.
    pub fn columns(&self) -> impl Iterator<Item = ExposureColumn> + '_ {
        let column = |(context, column): &(String, String)| ExposureColumn {
            context: context.clone(),
            column: column.clone(),
        };
        self.columns.iter().map(column)
    }

    /// What the exposures of a row are divided by.
    pub fn scale(&self) -> ExposureScale {
        self.scale
    }

    /// Policies over the same contexts under the mean exposure w̄(s).
    pub fn weighted(&self, policies: &PolicySet) -> PolicySet {
        policies.under_weights(&self.weights)
    }

    /// What the user should know of rows without any exposure, if there are such rows.
    pub(crate) fn note(&self, n_unexposed: usize) -> Option<String> {
        let rows = match n_unexposed {
            0 => return None,
            1 => "1 row has".to_owned(),
            n => format!("{n} rows have"),
        };
        Some(match self.scale {
            ExposureScale::Share => format!(
                "{rows} no exposure to any context: taken to meet contexts as the rows of training do on average"
            ),
            ExposureScale::Total => {
                format!("{rows} no exposure to any context, and so no effect of any policy")
            }
        })
    }

    /// Whether the parts fit together and are those of `policies`, as they are unless a file was damaged.
    pub(crate) fn is_consistent(&self, policies: &PolicySet) -> bool {
        self.columns.iter().map(|(context, _)| context).eq(policies.contexts())
            && self.weights.len() == self.columns.len()
            && self.weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
            && self.unit.is_finite()
            && self.unit > 0.0
    }
}

impl ExposureRows {
    /// w_i(s) of one row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.n_contexts..][..self.n_contexts]
    }

    /// The rows from one up to, and without, another.
    pub fn part(&self, first: usize, end: usize) -> Self {
        let values = self.values[first * self.n_contexts..end * self.n_contexts].to_vec();
        Self { values, n_contexts: self.n_contexts, n_unexposed: 0 }
    }

    /// Some of the rows.
    pub(crate) fn some(&self, rows: &[usize]) -> Self {
        let values = rows.iter().flat_map(|row| self.row(*row).to_vec()).collect();
        Self { values, n_contexts: self.n_contexts, n_unexposed: 0 }
    }

    /// Puts other rows below these.
    pub(crate) fn append(&mut self, other: &Self) {
        self.n_contexts = other.n_contexts;
        self.values.extend_from_slice(&other.values);
        self.n_unexposed += other.n_unexposed;
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.n_contexts.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many rows have no exposure to any context.
    pub(crate) fn n_unexposed(&self) -> usize {
        self.n_unexposed
    }
}

fn sum_of(values: &[Vec<f32>], row: usize) -> f64 {
    values.iter().map(|values| f64::from(values[row])).sum()
}

/// Many names are cut short.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 4;
    match names.len() {
        n if n > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::data::{ExposureRole, Need, Roles};

    fn schema() -> Schema {
        let field = |name: &str, kind: DataType| Field::new(name, kind, true);
        let numbers =
            ["y", "f", "trips_a", "trips_b", "trips_c", "other"].map(|name| field(name, DataType::Float64));
        Schema::new(numbers.into_iter().chain([field("policy", DataType::Utf8)]).collect::<Vec<_>>())
    }

    fn policies(contexts: &str) -> PolicySet {
        let text = format!(
            "{contexts}\n[policies.control]\n\"*\" = \"none\"\n[policies.T]\n\"*\" = \"none\"\na = \"up\""
        );
        PolicySet::from_toml(&text, Path::new("p.toml")).unwrap()
    }

    fn columns(exposure: &[&str], contexts: &str) -> Result<Columns> {
        let exposure = ExposureRole::from_entries(exposure)?;
        let roles = Roles { outcome: vec!["y".into()], exposure, ..Roles::default() };
        roles.check(&schema(), Need::FIT)?.with_contexts(&policies(contexts), &schema())
    }

    const THREE: &str = "[contexts]\na = 1\nb = 1\nc = 2";

    #[test]
    fn columns_are_found_by_pattern_by_name_and_in_the_policy_file() {
        let by_pattern = columns(&["trips_*"], THREE).unwrap();
        assert_eq!(by_pattern.exposure.len(), 3);
        assert!(by_pattern.feature_names().contains(&"trips_a"), "exposures are features too");
        let by_name = columns(&["c=trips_c", "a=trips_a", "b=trips_b"], THREE).unwrap();
        assert_eq!(by_name.exposure, by_pattern.exposure);
        let file = "[contexts.b]\nexposure = 'trips_b'\n[contexts.a]\nexposure = 'trips_a'\n\
                    [contexts.c]\nweight = 2\nexposure = 'trips_c'";
        assert_eq!(columns(&[], file).unwrap().exposure, by_pattern.exposure);
        let set = policies(file);
        assert_eq!(set.weights(), [0.25, 0.25, 0.5]);
        // Flags win over the file, and a set reads as it was written.
        assert_eq!(columns(&["a=other", "b=trips_b", "c=f"], file).unwrap().exposure[0].column, "other");
        assert_eq!(PolicySet::from_toml(&set.to_toml(), Path::new("p.toml")).unwrap(), set);
        let json = set.to_json_value().to_string();
        assert_eq!(PolicySet::from_json(&json, Path::new("p.json")).unwrap(), set);
        let stored = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<PolicySet>(&stored).unwrap(), set);
        assert_ne!(set.canonical_bytes(), policies(THREE).canonical_bytes());
        assert!(columns(&[], THREE).unwrap().exposure.is_empty());
    }

    #[test]
    fn what_is_wrong_with_exposures_is_told() {
        let four = "[contexts]\na = 1\nb = 1\nc = 2\nd = 1\ne = 1";
        for (exposure, contexts, what, hint) in [
            (&["trips_*"][..], four, "contexts `d`, `e` have no exposure column", "every context"),
            (&["a=trips_a", "b=trips_b"], THREE, "context `c` has no exposure column", "every context"),
            (&["a=trips_a", "nowhere=trips_b"], THREE, "unknown context `nowhere`", "`a`, `b`, `c`"),
            (&["a=trips_a", "b=trip_b"], THREE, "there is no column `trip_b`", "trips_b"),
            (&["a=policy"], THREE, "is text, but exposure must be numeric", ""),
            (&["a=y"], THREE, "two roles: outcome and exposure", ""),
            (&["visits_*"], THREE, "no column matches `visits_*`", ""),
            (&["trips"], THREE, "has not one `*`", "PREFIX_*"),
        ] {
            let error = columns(exposure, contexts).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
            assert!(error.hint_text().unwrap_or_default().contains(hint), "{:?}", error.hint_text());
        }
        for (text, what) in [
            ("[contexts.a]\nexposure = 3", "`exposure` is a number, not the name of a column"),
            ("[contexts.a]\nweight = 'x'", "`weight` is a string, not a number"),
            ("[contexts.a]\nexposures = 'x'", "unknown key `exposures`"),
            ("[contexts]\na = 'x'", "the weight of context `a` is a string"),
        ] {
            let error = PolicySet::from_toml(&format!("{text}\n[policies.t]\na = 'n'"), Path::new("p.toml"));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("line"), "{error}");
        }
    }

    #[test]
    fn shares_and_totals_have_a_mean_of_one() {
        let values = vec![vec![2.0, 0.0, 0.0, 6.0], vec![0.0, 0.0, 1.0, 0.0], vec![2.0, 0.0, 1.0, 0.0]];
        let mut columns = columns(&["trips_*"], THREE).unwrap();
        let shares = Exposure::fit(&columns, &values, None).unwrap().unwrap();
        let rows = shares.rows(&values);
        assert_eq!((rows.row(0), rows.row(3)), (&[0.5, 0.0, 0.5][..], &[1.0, 0.0, 0.0][..]));
        // A row that met nothing is as the others are on average, and is told.
        assert_eq!((rows.row(1), rows.n_unexposed(), rows.len()), (&[0.5, 1.0 / 6.0, 1.0 / 3.0][..], 1, 4));
        assert!(shares.note(1).unwrap().contains("1 row has no exposure"));
        assert_eq!(shares.note(0), None);
        assert_eq!(rows.part(2, 4).row(0), rows.row(2));
        let weighted = shares.weighted(&policies(THREE));
        assert!((weighted.distance(0, 1) - 1.0).abs() < 1e-12, "twice the mean exposure to `a`");
        columns.exposure_scale = ExposureScale::Total;
        let totals = Exposure::fit(&columns, &values, None).unwrap().unwrap();
        let rows = totals.rows(&values);
        // The mean sum is 3.
        assert_eq!((rows.row(3), rows.row(1)), (&[2.0, 0.0, 0.0][..], &[0.0; 3][..]));
        let sum: f32 = (0..4).map(|row| rows.row(row).iter().sum::<f32>()).sum();
        assert!((sum / 4.0 - 1.0).abs() < 1e-6);
        assert!(totals.note(2).unwrap().contains("no effect"));
        let none = vec![vec![0.0; 2]; 3];
        assert!(
            Exposure::fit(&columns, &none, None).unwrap_err().to_string().contains("no row has any exposure")
        );
        // Rows of weight 0 do not count.
        let weight = [1.0, 0.0, 1.0, 0.0];
        let counted = Exposure::fit(&columns, &values, Some(&weight)).unwrap().unwrap();
        assert_eq!(counted.weighted(&policies(THREE)).weights()[1], 1.0 / 6.0);
    }
}
