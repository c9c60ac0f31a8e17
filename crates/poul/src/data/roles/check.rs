//! Finds roles in a table: names exist, types fit, no column plays two parts.

use std::collections::BTreeMap;

use arrow_schema::Schema;

use super::table::Table;
use super::{Columns, Design, ExposureColumn, ExposureRole, Feature, Need, Prediction, Roles};
use crate::data::wildcard::{is_pattern, matches};
use crate::data::{ColumnKind, Filter};
use crate::{Error, Result};

const DEFAULT_TREATMENT: &str = "policy";

impl Roles {
    /// Finds the columns in `schema`. Roles that `need` does not ask for may be missing from the table, and the
    /// columns they name are never features.
    #[doc(hidden)]
    pub fn check(&self, schema: &Schema, need: Need) -> Result<Columns> {
        let table = Table { schema };
        self.check_parts()?;
        let assigned = need.treatment || need.outcome;
        let optional = |role, name: &Option<String>, wanted: bool| match name {
            Some(name) if wanted => table.require(role, name).map(|()| Some(name.clone())),
            _ => Ok(None),
        };
        let treatment = if need.treatment { self.checked_treatment(&table)? } else { Vec::new() };
        let outcomes = if need.outcome { self.checked_outcomes(&table)? } else { Vec::new() };
        let auxiliary = if need == Need::FIT { self.auxiliary.clone() } else { Vec::new() };
        auxiliary.iter().try_for_each(|name| table.require_numeric("auxiliary", name))?;
        let weight = optional("weight", &self.weight, assigned)?;
        if let Some(name) = &weight {
            table.require_numeric("weight", name)?;
        }
        for name in &self.id {
            table.require("id", name)?;
        }
        let propensity = match &self.propensity {
            Some(pattern) if need.treatment => table.propensities(pattern)?,
            _ => Vec::new(),
        };
        let predictions =
            if need.outcome { self.checked_predictions(&table, &outcomes)? } else { Vec::new() };
        if need.treatment
            && self.design == Design::Stratified
            && self.stratum.is_none()
            && propensity.is_empty()
        {
            let error = Error::usage("a stratified design needs a stratum or propensities");
            return Err(
                error.hint("name the column, ‹stratum=COL›, or columns of probabilities, ‹propensity=GLOB›")
            );
        }
        let exposure = match &self.exposure {
            Some(role) if need.treatment => self.checked_exposure(&table, role)?,
            _ => Vec::new(),
        };
        let population = self.population.as_ref().map(|text| Filter::parse(text, schema)).transpose()?;
        let features = self.checked_features(&table, need)?;
        Ok(Columns {
            treatment,
            factorial: !self.treatment_columns.is_empty(),
            control: self.control.clone(),
            outcomes,
            auxiliary,
            features,
            weight,
            cluster: optional("cluster", &self.cluster, assigned)?,
            stratum: optional("stratum", &self.stratum, assigned)?,
            propensity,
            predictions,
            exposure,
            exposure_scale: self.exposure_scale,
            population,
            populations: Vec::new(),
            effects: Vec::new(),
            by: Vec::new(),
            time: optional("time", &self.time, assigned)?,
            ids: self.id.clone(),
            design: self.design,
        })
    }

    /// The treatment columns, by name or by default.
    fn treatment_names(&self) -> Vec<&str> {
        if self.treatment_columns.is_empty() {
            vec![self.treatment.as_deref().unwrap_or(DEFAULT_TREATMENT)]
        } else {
            self.treatment_columns.iter().map(String::as_str).collect()
        }
    }

    /// Role and column, for every column that is named outright and that no feature may be, or may be only on request.
    fn named(&self) -> Vec<(&'static str, &str)> {
        let mut named: Vec<(&'static str, &str)> =
            self.treatment_names().into_iter().map(|name| ("treatment", name)).collect();
        named.extend(self.outcome.iter().map(|name| ("outcome", name.as_str())));
        named.extend(self.auxiliary.iter().map(|name| ("auxiliary", name.as_str())));
        named.extend(self.weight.iter().map(|name| ("weight", name.as_str())));
        named.extend(self.prediction.values().map(|name| ("prediction", name.as_str())));
        named.extend(self.cluster.iter().map(|name| ("cluster", name.as_str())));
        named.extend(self.stratum.iter().map(|name| ("stratum", name.as_str())));
        named.extend(self.time.iter().map(|name| ("time", name.as_str())));
        named.extend(self.id.iter().map(|name| ("id", name.as_str())));
        named
    }

    /// What is wrong whatever the table: contradictions and columns with two roles.
    fn check_parts(&self) -> Result<()> {
        if self.treatment.is_some() && !self.treatment_columns.is_empty() {
            let error = Error::usage("`treatment` and `treatment_columns` exclude each other");
            return Err(error.hint("a treatment is one column of policy names, or one column per context"));
        }
        let mut roles: BTreeMap<&str, &'static str> = BTreeMap::new();
        for (role, name) in self.named() {
            match roles.insert(name, role) {
                None => {}
                Some(other) if other == role => {
                    return Err(Error::usage(format!("column `{name}` is named twice as {role}")));
                }
                // What identifies a row may also group rows.
                Some("cluster" | "stratum" | "time") if role == "id" => {}
                Some(other) => return Err(two_roles(name, other, role)),
            }
        }
        for name in self.features.iter().filter(|name| !is_pattern(name)) {
            match roles.get(name.as_str()) {
                // Known before assignment, so it may explain outcomes too; but only on request.
                None | Some(&("stratum" | "time")) => {}
                Some(role) => return Err(two_roles(name, role, "feature")),
            }
        }
        Ok(())
    }

    fn checked_treatment(&self, table: &Table<'_>) -> Result<Vec<String>> {
        let names = self.treatment_names();
        for name in &names {
            let checked = table.require("treatment", name);
            if self.treatment.is_none() && self.treatment_columns.is_empty() {
                let hint = "name the column of policies, ‹treatment=COL›, or the columns of a factorial design, ‹treatment_columns=A,B›";
                checked.map_err(|error| error.hint(hint))?;
            } else {
                checked?;
            }
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn checked_outcomes(&self, table: &Table<'_>) -> Result<Vec<String>> {
        if self.outcome.is_empty() {
            return Err(Error::usage("no outcome is given").hint("name one or more: ‹outcome=COL›"));
        }
        for name in &self.outcome {
            table.require_numeric("outcome", name)?;
        }
        Ok(self.outcome.clone())
    }

    fn checked_predictions(&self, table: &Table<'_>, outcomes: &[String]) -> Result<Vec<Prediction>> {
        let mut predictions = Vec::new();
        for (outcome, column) in &self.prediction {
            let Some(outcome_idx) = outcomes.iter().position(|name| name == outcome) else {
                let known = outcomes.iter().map(String::as_str);
                return Err(Error::unknown(crate::Kind::Usage, "outcome", outcome, "outcomes", known)
                    .at("prediction"));
            };
            table.require_numeric("prediction", column)?;
            predictions.push(Prediction { outcome_idx, column: column.clone() });
        }
        predictions.sort_by_key(|prediction| prediction.outcome_idx);
        Ok(predictions)
    }

    fn checked_exposure(&self, table: &Table<'_>, role: &ExposureRole) -> Result<Vec<ExposureColumn>> {
        let exposure = table.exposures(role)?;
        for ExposureColumn { column, .. } in &exposure {
            // What happened after assignment cannot say what was met before it.
            let clash = self.named().into_iter().find(|(role, name)| {
                ["treatment", "outcome", "prediction", "weight"].contains(role) && name == column
            });
            if let Some((role, name)) = clash {
                return Err(two_roles(name, role, "exposure"));
            }
        }
        Ok(exposure)
    }

    fn checked_features(&self, table: &Table<'_>, need: Need) -> Result<Vec<Feature>> {
        if !need.features {
            return Ok(Vec::new());
        }
        for pattern in self.features.iter().chain(&self.exclude) {
            if !table.names().any(|name| matches(pattern, name)) {
                let role = if self.features.contains(pattern) { "features" } else { "exclude" };
                return Err(match is_pattern(pattern) {
                    true => Error::input(format!("no column matches `{pattern}`")).at(role),
                    false => Error::missing_column(pattern, table.names()).at(role),
                });
            }
        }
        let other_role = |name: &str| {
            self.named().iter().any(|(_, other)| *other == name)
                || self.propensity.as_ref().is_some_and(|pattern| matches(pattern, name))
        };
        let wanted = |name: &str| {
            let named = self.features.iter().any(|feature| feature == name);
            let matched =
                self.features.is_empty() || self.features.iter().any(|pattern| matches(pattern, name));
            let excluded = self.exclude.iter().any(|pattern| matches(pattern, name));
            !excluded && (named || (matched && !other_role(name)))
        };
        let mut features = Vec::new();
        for field in table.schema.fields().iter().filter(|field| wanted(field.name())) {
            let kind = ColumnKind::of(field.data_type()).ok_or_else(|| {
                let what = format!("has type {}, which cannot be a feature", field.data_type());
                let error = Error::input(what).at(format!("column `{}`", field.name()));
                error.hint(format!("leave it out: ‹exclude={}›", field.name()))
            })?;
            features.push(Feature { name: field.name().clone(), kind });
        }
        if features.is_empty() {
            let error = Error::input("no column is left to be a feature");
            return Err(error.hint("every column has another role or is excluded"));
        }
        Ok(features)
    }
}

fn two_roles(name: &str, first: &str, second: &str) -> Error {
    let error = Error::usage(format!("column `{name}` has two roles: {first} and {second}"));
    error.hint("a column plays one part")
}

#[cfg(test)]
mod tests {
    use super::super::Propensity;
    use super::*;
    use arrow_schema::{DataType, Field};

    fn schema() -> Schema {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let number = |name: &str| Field::new(name, DataType::Float64, true);
        let list = DataType::List(std::sync::Arc::new(number("item")));
        Schema::new(vec![
            text("policy"),
            number("gmv"),
            number("cost"),
            text("city"),
            number("age"),
            number("p_T1"),
            number("p_T2"),
            number("w"),
            text("user"),
            Field::new("tags", list, true),
        ])
    }

    fn roles() -> Roles {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Roles { outcome: names(&["gmv", "cost"]), exclude: names(&["tags"]), ..Roles::default() }
    }

    fn error(change: impl FnOnce(&mut Roles)) -> Error {
        let mut roles = roles();
        change(&mut roles);
        roles.check(&schema(), Need::FIT).expect_err("an error")
    }

    #[test]
    fn features_default_to_what_is_left() {
        let mut roles = roles();
        roles.weight = Some("w".into());
        roles.propensity = Some("p_*".into());
        roles.id = vec!["user".into()];
        roles.cluster = Some("user".into());
        roles.population = Some("age > 3 and gmv is not null".into());
        roles.prediction.insert("cost".into(), "age".into());
        let columns = roles.check(&schema(), Need::FIT).unwrap();
        assert_eq!(columns.feature_names(), ["city"]);
        assert_eq!(columns.propensity[1], Propensity { column: "p_T2".into(), policy: "T2".into() });
        assert_eq!(columns.predictions, [Prediction { outcome_idx: 1, column: "age".into() }]);
        let needed = columns.needed();
        assert_eq!(needed, ["city", "policy", "gmv", "cost", "w", "user", "p_T1", "p_T2", "age"]);
    }

    #[test]
    fn patterns_leave_other_roles_alone() {
        let mut roles = roles();
        roles.features = vec!["*".into()];
        roles.exclude = vec!["p_*".into(), "tags".into()];
        let columns = roles.check(&schema(), Need::FIT).unwrap();
        assert_eq!(columns.feature_names(), ["city", "age", "w", "user"]);
        roles.stratum = Some("city".into());
        assert!(!roles.check(&schema(), Need::FIT).unwrap().feature_names().contains(&"city"));
        roles.features.push("city".into());
        assert!(roles.check(&schema(), Need::FIT).unwrap().feature_names().contains(&"city"));
    }

    #[test]
    fn scoring_needs_features_only() {
        let fields = schema()
            .fields()
            .iter()
            .filter(|field| !["policy", "gmv", "w"].contains(&field.name().as_str()))
            .cloned()
            .collect::<Vec<_>>();
        let mut roles = roles();
        roles.weight = Some("w".into());
        let columns = roles.check(&Schema::new(fields), Need::SCORE).unwrap();
        assert_eq!(columns.feature_names(), ["city", "age", "p_T1", "p_T2", "user"]);
        assert!(columns.treatment.is_empty() && columns.outcomes.is_empty() && columns.weight.is_none());
    }

    #[test]
    fn wrong_roles_are_told() {
        let cases: Vec<(Error, &str, &str)> = vec![
            (error(|roles| roles.outcome = vec![]), "no outcome is given", "`outcome = COL`"),
            (
                error(|roles| roles.outcome = vec!["gvm".into()]),
                "outcome: there is no column `gvm`",
                "did you mean `gmv`?",
            ),
            (
                error(|roles| roles.outcome = vec!["city".into()]),
                "column `city`: is text, but outcome must",
                "1 and 0",
            ),
            (error(|roles| roles.outcome.push("gmv".into())), "`gmv` is named twice as outcome", ""),
            (error(|roles| roles.weight = Some("gmv".into())), "two roles: outcome and weight", ""),
            (error(|roles| roles.weight = Some("user".into())), "is text, but weight must", ""),
            (error(|roles| roles.features = vec!["gmv".into()]), "two roles: outcome and feature", ""),
            (error(|roles| roles.features = vec!["zz*".into()]), "features: no column matches `zz*`", ""),
            (error(|roles| roles.features = vec!["aged".into()]), "there is no column `aged`", "`age`"),
            (error(|roles| roles.exclude = vec![]), "column `tags`: has type List", "`exclude = tags`"),
            (error(|roles| roles.exclude = vec!["*".into()]), "no column is left", ""),
            (error(|roles| roles.propensity = Some("q_*".into())), "propensity: no column matches", ""),
            (error(|roles| roles.design = Design::Stratified), "needs a stratum", "`stratum = COL`"),
            (error(|roles| roles.treatment = Some("polcy".into())), "there is no column `polcy`", "`policy`"),
            (error(|roles| roles.treatment_columns = vec!["city".into(), "city".into()]), "named twice", ""),
            (error(|roles| roles.population = Some("agee > 1".into())), "no column `agee`", "`age`"),
            (
                error(|roles| {
                    roles.prediction.insert("gm".into(), "age".into());
                }),
                "prediction: unknown outcome `gm`",
                "gmv",
            ),
            (
                error(|roles| {
                    roles.treatment = Some("city".into());
                    roles.treatment_columns = vec!["policy".into()];
                }),
                "exclude each other",
                "",
            ),
        ];
        for (error, what, hint) in cases {
            assert!(error.to_string().contains(what), "{error}: {what}");
            assert!(error.hint_text().unwrap_or_default().contains(hint), "{error}: {:?}", error.hint_text());
        }
        let only = Schema::new(vec![
            Field::new("gmv", DataType::Float64, true),
            Field::new("x", DataType::Int64, true),
        ]);
        let missing =
            Roles { outcome: vec!["gmv".into()], ..Roles::default() }.check(&only, Need::FIT).err().unwrap();
        assert!(missing.to_string().contains("no column `policy`"));
        assert!(missing.hint_text().unwrap().contains("`treatment_columns = A,B`"));
    }
}
