//! Whether the effects of a model can be trusted: checks, places of policies, effects of atoms.

use poul::data::{Design, Need, Roles, Source};
use poul::effect::Asked;
use poul::evaluate::{Evaluation, Verdict};
use poul::model::Model;
use poul::net::DenseRows;
use poul::validate::{
    SampleRows, Trial, ValidValidationParams, ValidationParams, atom_effects, places, validate,
};
use poul::{Error, Kind, Progress, Result, Seed};

use crate::args::{CheckArgs, Common};
use crate::progress::Terminal;

/// What to find out.
pub(super) struct Trust {
    params: Option<ValidValidationParams>,
    min_rows: u64,
}

/// The flags are about a model.
pub(super) fn refuse_without_model(args: &CheckArgs) -> Result<()> {
    match args.placebo {
        0 => Ok(()),
        _ => Err(Error::usage("a placebo needs a model, whose learner is fitted again")
            .hint("give a model before the data, or leave --placebo out")),
    }
}

impl Trust {
    /// Checks the flags before data are read.
    pub(super) fn new(args: &CheckArgs, level: f64, common: &Common) -> Result<Self> {
        if args.min_rows == 0 {
            return Err(Error::usage("--min-rows must be at least 1"));
        }
        let params = ValidationParams {
            placebo: args.placebo,
            level,
            seed: Seed::new(common.seed),
            ..ValidationParams::default()
        };
        let params = (!args.no_checks).then(|| params.check()).transpose()?;
        Ok(Self { params, min_rows: args.min_rows })
    }

    /// Adds what is found to the evaluation of the rows that `roles` describe.
    pub(super) fn add(
        &self,
        evaluation: &mut Evaluation,
        model: &Model,
        source: &Source,
        roles: &Roles,
        asked: &Asked,
        terminal: &Terminal,
    ) -> Result<()> {
        let Some(params) = &self.params else { return Ok(()) };
        let (policies, manifest) = (&asked.policies, model.manifest());
        let is_run = |policy: usize| {
            let own = manifest.policies.index(policies.name(policy));
            own.is_some_and(|own| manifest.policy_rows[own] > 0)
        };
        let mut is_shown: Vec<bool> = (0..policies.len()).map(is_run).collect();
        asked.targets.iter().chain([&asked.against]).for_each(|policy| is_shown[*policy] = true);
        let shown: Vec<usize> = (0..policies.len()).filter(|policy| is_shown[*policy]).collect();
        evaluation.policies = places(model, policies, &shown, self.min_rows)?;
        let roles = with_design(model, source, roles, terminal);
        let columns = model.columns(source, &roles, Need::EVALUATE)?;
        let columns = columns.with_populations(manifest.settings.populations(), source.schema())?;
        let rows = SampleRows::read(source, &columns, &manifest.encoder, policies, terminal)?;
        let x = DenseRows::new(&rows.x, rows.width)?;
        let atoms = atom_effects(model, policies, asked.against, &x, rows.weight.as_deref())?;
        atoms.notes.iter().for_each(|note| terminal.warn(note));
        evaluation.atoms = atoms.atoms;
        let trial = Trial { model, rows: &rows, policies, targets: &asked.targets, against: asked.against };
        match validate(&trial, params, terminal) {
            Ok(validation) => evaluation.validation = Some(validation),
            // Metrics were computed: rows that cannot be checked are told, not fatal.
            Err(error) if error.kind() == Kind::Input => {
                terminal.warn(&format!("the assumptions could not be checked: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The roles with the design that the model was fitted under, as far as the table has its columns.
fn with_design(model: &Model, source: &Source, roles: &Roles, terminal: &Terminal) -> Roles {
    let fitted = &model.manifest().roles;
    let mut roles = roles.clone();
    if roles.design != Design::Randomized || roles.stratum.is_some() || roles.propensity.is_some() {
        return roles;
    }
    let known = source.column_names();
    roles.design = fitted.design;
    roles.stratum = fitted.stratum.clone().filter(|name| known.contains(&name.as_str()));
    // A pattern that no column matches is an error to `check`.
    let with_propensity = Roles { propensity: fitted.propensity.clone(), ..roles.clone() };
    if fitted.propensity.is_some() && model.columns(source, &with_propensity, Need::EVALUATE).is_ok() {
        roles = with_propensity;
    }
    if roles.design == Design::Stratified && roles.stratum.is_none() && roles.propensity.is_none() {
        terminal.warn("the data have no strata: the checks take the assignment for randomized");
        roles.design = Design::Randomized;
    }
    roles
}

/// The checks, a line each.
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
