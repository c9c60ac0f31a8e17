//! What an allocation is worth by outcomes: beside everybody the control, the best single policy, chance at the same cost, and no
//! limits at all.

use super::candidates::Candidates;
use super::curve::AtBudget;
use super::inputs::AllocationInputs;
use super::request::AllocationRequest;
use super::result::{Allocation, AllocationWorth, plain};
use crate::data::Roles;
use crate::evaluate::run::{ValuedRows, ValuedSource, fitted_roles};
use crate::evaluate::{Choice, Rule, RuleWorth, WorthParams, worth, worth_band};
use crate::{Error, Kind, Progress, Result, Seed};

/// Users who have outcomes, to value an allocation of them.
pub(super) struct Valuation<'a> {
    inputs: AllocationInputs<'a>,
    request: &'a AllocationRequest,
    roles: Roles,
    is_trained: bool,
}

impl<'a> Valuation<'a> {
    /// None where users have no outcomes or no policies, or no value is asked for.
    pub(super) fn find(
        inputs: &AllocationInputs<'a>,
        request: &'a AllocationRequest,
        is_trained: bool,
        progress: &dyn Progress,
    ) -> Option<Self> {
        let fitted = &inputs.model.manifest().roles;
        let known = inputs.users.column_names();
        let treatment: Vec<&str> = match (&fitted.treatment, fitted.treatment_columns.as_slice()) {
            (Some(one), _) => vec![one],
            (None, []) => vec!["policy"],
            (None, several) => several.iter().map(String::as_str).collect(),
        };
        let outcomes = inputs.model.effects().outcomes().iter().map(String::as_str);
        if !request.worth || !treatment.into_iter().chain(outcomes).all(|name| known.contains(&name)) {
            return None;
        }
        let roles = fitted_roles(inputs.model, inputs.users, progress);
        let roles = Roles {
            outcome: inputs.model.effects().outcomes().to_vec(),
            population: request.population.clone(),
            control: None,
            ..roles
        };
        Some(Self { inputs: *inputs, request, roles, is_trained })
    }

    /// Adds to `allocation` what it is worth and the band of its curve, from what every user gets, what it would get without
    /// limits, and what it gets at other budgets.
    pub(super) fn add(
        self,
        allocation: &mut Allocation,
        candidates: &Candidates<'_>,
        [given, unlimited]: [Vec<u16>; 2],
        (budgets, spent): (&[AtBudget], Option<&str>),
        seed: Seed,
        progress: &dyn Progress,
    ) -> Result<()> {
        let source = ValuedSource {
            source: self.inputs.users,
            roles: &self.roles,
            candidates: &candidates.names[1..],
            against: &candidates.names[0],
            allow_unseen: self.request.allow_unseen,
            budget: &self.request.memory,
            seed,
        };
        let names = &candidates.names;
        let valued = source.by_model(self.inputs.model, &candidates.policies, progress, |rows| {
            let valuing = Valuing {
                rows,
                names,
                maximize: &allocation.maximize,
                spent,
                level: self.request.level,
                seed,
            };
            let worth = valuing.worth(&given, Predicted::With(&unlimited))?;
            let band = valuing.band(budgets.iter().map(|own| own.policies.as_slice()))?;
            Ok((worth, band))
        });
        let (mut worth, band) = match valued {
            Ok(valued) => valued,
            // The allocation stands without; that its value is not known is said.
            Err(error) if matches!(error.kind(), Kind::Input | Kind::Usage) => {
                let note = format!("what it is worth by outcomes is not known: {error}");
                progress.warn(&note);
                allocation.notes.push(note);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.is_trained {
            worth.notes.push("the model was fitted on these rows: all this flatters it".to_owned());
        }
        for (point, (value, [lower, upper])) in allocation.curve.iter_mut().zip(band) {
            (point.value, point.lower, point.upper) = (value, Some(lower), Some(upper));
        }
        allocation.summary = format!("{} {}", allocation.summary, in_words(&worth)?);
        allocation.evaluation = Some(worth);
        Ok(())
    }
}

/// What is known of rows before their outcomes speak.
#[derive(Clone, Copy)]
pub(super) enum Predicted<'a> {
    /// Nothing.
    Nothing,
    /// The effects of all policies, which say what is best without limits.
    Effects,
    /// The effects, and what each row would get without limits.
    With(&'a [u16]),
}

/// Rows with outcomes, and what is compared on them.
pub(super) struct Valuing<'a> {
    pub(super) rows: &'a ValuedRows<'a>,
    /// The options, the control first.
    pub(super) names: &'a [String],
    pub(super) maximize: &'a str,
    pub(super) spent: Option<&'a str>,
    pub(super) level: f64,
    pub(super) seed: Seed,
}

impl Valuing<'_> {
    /// What giving every row its option is worth, beside other rules.
    pub(super) fn worth(&self, given: &[u16], predicted: Predicted<'_>) -> Result<AllocationWorth> {
        let table = &self.rows.table;
        let n_rows = table.arm.len();
        let places = self.places()?;
        let outcome = |name: &str| table.outcomes.iter().position(|own| own.name == name);
        let value = outcome(self.maximize).ok_or_else(|| {
            let known = table.outcomes.iter().map(|own| own.name);
            Error::unknown(Kind::Usage, "outcome", self.maximize, "outcomes", known).at("‹maximize›")
        })?;
        let cost = self.spent.and_then(outcome).filter(|cost| *cost != value);
        let all = |policy: u16| Choice::Rows(vec![policy; n_rows]);
        let mut rules = vec![
            rule("this allocation", self.choice(given, &places)?),
            rule(&format!("everybody {}", self.names[0]), all(places[0])),
        ];
        let is_predicted = !matches!(predicted, Predicted::Nothing);
        let best = self.best_single(value, &places, is_predicted)?;
        if let Some((option, name)) = best {
            rules.push(rule(&format!("best single policy: everybody {name}"), all(places[option])));
        }
        let shares = self.at_random(given, cost, &places);
        rules.push(rule("the same policies at random, at the same cost", Choice::Shares(shares)));
        let unlimited = match predicted {
            Predicted::Nothing => None,
            Predicted::Effects => Some(self.choice(&self.best_of_rows(value, &places), &places)?),
            Predicted::With(unlimited) => Some(self.choice(unlimited, &places)?),
        };
        rules.extend(unlimited.map(|choice| rule("the best for each user, without limits", choice)));
        let params =
            WorthParams { level: self.level, ratio: cost.map(|cost| (value, cost)), seed: self.seed };
        let rules = worth(table, self.rows.propensity, &rules, &params)?;
        let mut notes = Vec::new();
        if let Some(share) = rules.first().map(|own| own.predicted_share).filter(|share| *share > 0.0) {
            notes.push(format!(
                "{:.1} % of users get a policy with fewer than 30 rows here: what it does for them is predicted, not measured",
                100.0 * share
            ));
        }
        if !is_predicted {
            notes.push("the best single policy was chosen by these rows, which flatters it".to_owned());
        }
        Ok(AllocationWorth {
            rows: n_rows as u64,
            level: self.level,
            maximize: self.maximize.to_owned(),
            spent: cost.map(|cost| table.outcomes[cost].name.to_owned()),
            against: self.names[0].clone(),
            rules,
            notes,
        })
    }

    /// What rows are worth in total at other budgets, with a band that holds the whole curve.
    fn band<'c>(&self, choices: impl Iterator<Item = &'c [u16]>) -> Result<Vec<(f64, [f64; 2])>> {
        let places = self.places()?;
        let rules =
            choices.map(|given| Ok(rule("", self.choice(given, &places)?))).collect::<Result<Vec<Rule>>>()?;
        let value = self.rows.table.outcomes.iter().position(|own| own.name == self.maximize);
        let Some(value) = value.filter(|_| !rules.is_empty()) else { return Ok(Vec::new()) };
        let params = WorthParams { level: self.level, ratio: None, seed: self.seed.child("curve") };
        worth_band(&self.rows.table, self.rows.propensity, &rules, value, &params)
    }

    /// The place of each option among the policies of the rows.
    fn places(&self) -> Result<Vec<u16>> {
        let place = |name: &String| {
            let found = self.rows.table.policies.iter().position(|own| own == name);
            let found = found.and_then(|place| u16::try_from(place).ok());
            found.ok_or_else(|| Error::other(format!("the policy `{name}` cannot be valued")))
        };
        self.names.iter().map(place).collect()
    }

    fn choice(&self, given: &[u16], places: &[u16]) -> Result<Choice> {
        if given.len() != self.rows.table.arm.len() {
            return Err(Error::other("an allocation of other rows"));
        }
        Ok(Choice::Rows(given.iter().map(|option| places[usize::from(*option)]).collect()))
    }

    /// The mean predicted effect of each option on an outcome.
    fn predicted(&self, outcome: usize, places: &[u16]) -> Vec<f64> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        self.columns(outcome, places).into_iter().map(|own| own.map_or(0.0, mean)).collect()
    }

    /// The option that is best for everybody: as predicted, or by the rows where nothing was.
    fn best_single(&self, value: usize, places: &[u16], is_predicted: bool) -> Result<Option<(usize, &str)>> {
        let means = match is_predicted {
            true => self.predicted(value, places),
            false => {
                let n_rows = self.rows.table.arm.len();
                let rules: Vec<Rule> =
                    places.iter().map(|place| rule("", Choice::Rows(vec![*place; n_rows]))).collect();
                let params = WorthParams { level: self.level, ratio: None, seed: self.seed };
                let found = worth(&self.rows.table, self.rows.propensity, &rules, &params)?;
                found.iter().map(|own| own.outcomes[value].per_user.estimate).collect()
            }
        };
        let others = means.iter().enumerate().skip(1);
        let best = others.max_by(|a, b| a.1.total_cmp(b.1)).map(|(option, _)| option);
        Ok(best.map(|option| (option, self.names[option].as_str())))
    }

    /// Chances of the policies that cost as much as the allocation does, as predicted, in the proportions in which it gives them.
    fn at_random(&self, given: &[u16], cost: Option<usize>, places: &[u16]) -> Vec<f64> {
        let n_rows = given.len().max(1) as f64;
        let mut shares = vec![0.0; self.names.len()];
        given.iter().for_each(|option| shares[usize::from(*option)] += 1.0 / n_rows);
        let treated: f64 = shares[1..].iter().sum();
        let scale = match cost {
            Some(cost) => {
                let means = self.predicted(cost, places);
                let at_random: f64 = shares.iter().zip(&means).map(|(share, mean)| share * mean).sum();
                let spent = self.predicted_total(cost, given, places) / n_rows;
                if at_random > 0.0 && spent >= 0.0 { spent / at_random } else { 1.0 }
            }
            None => 1.0,
        };
        // Nobody gets more than one policy.
        let scale = if treated > 0.0 { scale.min(1.0 / treated) } else { 1.0 };
        let mut by_policy = vec![0.0; self.rows.table.policies.len()];
        for (share, place) in shares.iter().zip(places).skip(1) {
            by_policy[usize::from(*place)] = share * scale;
        }
        by_policy[usize::from(places[0])] = 1.0 - treated * scale;
        by_policy
    }

    /// The predicted effects of each option on an outcome; none for the control.
    fn columns(&self, outcome: usize, places: &[u16]) -> Vec<Option<&[f64]>> {
        let column = |place: &u16| {
            let is_own = |own: &&crate::evaluate::Effects<'_>| {
                own.policy == usize::from(*place) && own.outcome.is_none_or(|only| only == outcome)
            };
            self.rows.table.effects.iter().find(is_own).map(|own| own.values)
        };
        places.iter().map(column).collect()
    }

    /// The option with the greatest predicted effect of each row; the first of equals.
    fn best_of_rows(&self, value: usize, places: &[u16]) -> Vec<u16> {
        let columns = self.columns(value, places);
        let best = |row: usize| {
            let options = columns.iter().enumerate().filter_map(|(option, own)| Some((option, (*own)?[row])));
            options.fold((0, 0.0), |best, own| if own.1 > best.1 { own } else { best }).0 as u16
        };
        (0..self.rows.table.arm.len()).map(best).collect()
    }

    fn predicted_total(&self, outcome: usize, given: &[u16], places: &[u16]) -> f64 {
        let columns = self.columns(outcome, places);
        let of_row =
            |(row, option): (usize, &u16)| columns[usize::from(*option)].map_or(0.0, |values| values[row]);
        given.iter().enumerate().map(of_row).sum()
    }
}

fn rule(name: &str, choice: Choice) -> Rule {
    Rule { name: name.to_owned(), choice }
}

/// What the first rule is worth, for a sentence.
fn in_words(worth: &AllocationWorth) -> Result<String> {
    let total = |rule: &RuleWorth, name: &str| {
        let own = rule.outcomes.iter().find(|own| own.outcome == name)?;
        Some((plain(own.total), own.total_interval.map(plain)))
    };
    let first = worth.rules.first().ok_or_else(|| Error::other("no rule was valued"))?;
    let Some((value, [low, high])) = total(first, &worth.maximize) else { return Ok(String::new()) };
    let mut text = format!("By the outcomes of these rows: {value} of {} ({low} to {high})", worth.maximize);
    if let Some((cost, _)) = worth.spent.as_deref().and_then(|spent| total(first, spent)) {
        text += &format!(" for {cost} of {}", worth.spent.as_deref().unwrap_or_default());
    }
    Ok(text + ".")
}
