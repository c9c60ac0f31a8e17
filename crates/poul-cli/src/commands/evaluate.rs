//! `poul evaluate`: score predicted effects, a model's or columns that anyone predicted.

mod allocation;
mod assigned;
mod averages;
mod checks;
mod specs;
mod summary;
mod verdicts;

use std::path::Path;

use poul::data::{Roles, Source};
use poul::evaluate::run::{EvaluationRequest, evaluate_columns, evaluate_model, fitted_roles};
use poul::model::Model;
use poul::{Error, Result, command_line};
use poul_report::ReportTarget;

use self::specs::{cost_pair, effect_columns};
use self::summary::summary;
use crate::args::{Common, Evaluate, PolicyArgs};
use crate::commands::{JsonTarget, effect, without_outputs};
use crate::config::DataSettings;
use crate::progress::Terminal;
use crate::settings::budget;

pub(crate) fn run(args: &Evaluate, typed: &[String], common: &Common, terminal: &Terminal) -> Result<()> {
    if let Some(allocation) = &args.allocation {
        return allocation::run(args, allocation, common, terminal);
    }
    match (args.paths.as_slice(), args.effects.is_empty()) {
        ([data], false) => by_columns(args, data, typed, common, terminal),
        ([model, data], true) => by_model(args, [model, data], typed, common, terminal),
        (_, true) => Err(Error::usage("what is to be evaluated?")
            .hint("give a model before the data, or columns of effects: --effects COL")),
        (_, false) => Err(Error::usage("a model and --effects exclude each other")
            .hint("give the model and the data, or the data with --effects COL")),
    }
}

fn by_columns(
    args: &Evaluate,
    data: &Path,
    typed: &[String],
    common: &Common,
    terminal: &Terminal,
) -> Result<()> {
    let PolicyArgs { policies: None, contexts: None, exposure_log: None, .. } = &args.policy_files else {
        return Err(Error::usage("columns of effects need no policy file")
            .hint("leave --policies out; the policies are those that the data name"));
    };
    let settings = DataSettings::load(&args.roles, &PolicyArgs::default())?;
    let request = request(args, settings.roles, typed, common)?.check()?;
    let targets = Targets::open(args)?;
    let source = Source::open_path(data)?;
    targets.write(&evaluate_columns(&source, &request, terminal)?)
}

fn by_model(
    args: &Evaluate,
    [model, data]: [&Path; 2],
    typed: &[String],
    common: &Common,
    terminal: &Terminal,
) -> Result<()> {
    let model = Model::load(model)?;
    let source = Source::open_path(data)?;
    let defaults = fitted_roles(&model, &source, terminal);
    let settings = DataSettings::load_over(defaults, &args.roles, &args.policy_files)?;
    let request = request(args, settings.roles, typed, common)?.check()?;
    let targets = Targets::open(args)?;
    let (policies, _) = effect::policies(&model, &args.policy_files)?;
    targets.write(&evaluate_model(&model, Some(&policies), &source, &request, terminal)?)
}

fn request(args: &Evaluate, roles: Roles, typed: &[String], common: &Common) -> Result<EvaluationRequest> {
    Ok(EvaluationRequest {
        roles,
        effects: effect_columns(&args.effects, "--effects")?,
        truth: effect_columns(&args.truth, "--truth")?,
        policy: args.policy.clone(),
        against: args.against.clone(),
        allow_unseen: args.allow_unseen,
        cost_curve: args.cost_curve.as_deref().map(cost_pair).transpose()?,
        by: args.by.clone(),
        draws: args.draws,
        level: args.level,
        checks: !args.checks.no_checks,
        placebo: args.checks.placebo,
        min_rows: args.checks.min_rows,
        seed: common.seed,
        budget: budget(common)?,
        command: command_line(&without_outputs(typed)),
        ..EvaluationRequest::default()
    })
}

/// Where results go; opened before the work, so that what cannot be written is told at once.
struct Targets {
    json: JsonTarget,
    page: ReportTarget,
}

impl Targets {
    fn open(args: &Evaluate) -> Result<Self> {
        let json = JsonTarget::open_beside(args.json.as_deref(), &[args.report.as_deref()])?;
        Ok(Self { json, page: ReportTarget::open(args.report.as_deref())? })
    }

    fn write(self, evaluation: &poul::evaluate::Evaluation) -> Result<()> {
        self.page.write(|| poul_report::of_evaluation(evaluation))?;
        self.json.write(evaluation, || summary(evaluation))
    }
}
