//! `poul evaluate --allocation FILE`: what an allocation is worth on rows of an experiment.

use std::path::Path;

use poul::data::Source;
use poul::decide::users::{WorthRequest, value_allocation};
use poul::evaluate::run::fitted_roles;
use poul::model::Model;
use poul::{Error, Result};

use crate::args::{Common, Evaluate};
use crate::commands::allocate::worth_summary;
use crate::commands::{JsonTarget, effect};
use crate::config::DataSettings;
use crate::progress::Terminal;
use crate::settings::budget;

pub(super) fn run(args: &Evaluate, allocation: &Path, common: &Common, terminal: &Terminal) -> Result<()> {
    if !args.effects.is_empty() || args.report.is_some() || args.cost_curve.is_some() || !args.by.is_empty() {
        return Err(Error::usage(
            "--allocation is valued alone: --effects, --report, --cost-curve and --by do not go with it",
        )
        .hint("leave them out, or evaluate effects in a run of its own"));
    }
    let (model, data) = match args.paths.as_slice() {
        [data] => (None, data),
        [model, data] => (Some(Model::load(model)?), data),
        _ => return Err(Error::usage("where are the rows?").hint("give the data after the flags")),
    };
    let json = JsonTarget::open(args.json.as_deref())?;
    let (allocation, source) = (Source::open_path(allocation)?, Source::open_path(data)?);
    let defaults = model.as_ref().map(|model| fitted_roles(model, &source, terminal)).unwrap_or_default();
    let settings = DataSettings::load_over(defaults, &args.roles, &args.policy_files)?;
    let policies = model.as_ref().map(|model| effect::policies(model, &args.policy_files)).transpose()?;
    let request = WorthRequest {
        allocation: &allocation,
        data: &source,
        roles: settings.roles,
        model: model.as_ref().zip(policies.as_ref().map(|(policies, _)| policies)),
        maximize: args.maximize.clone(),
        level: args.level,
        force: args.force,
        allow_unseen: args.allow_unseen,
        budget: budget(common)?,
        seed: common.seed,
    };
    let worth = value_allocation(&request, terminal)?;
    json.write(&worth, || worth_summary(&worth))
}
