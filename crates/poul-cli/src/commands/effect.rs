//! `poul effect`: what a policy would have done for each row, by a fitted model.

mod components;

use poul::effect::Question;
use poul::model::Scored;
use poul::policy::PolicySet;
use poul::{Model, Result, Source};
use poul_report::number::{count, optional, percent};

use crate::args::{Effect, PolicyArgs};
use crate::commands::print;
use crate::config::PolicySource;
use crate::progress::Terminal;
use crate::table::Table;

pub(crate) fn run(args: &Effect, terminal: &Terminal) -> Result<()> {
    let model = Model::load(&args.model)?;
    let (Some(data), Some(out)) = (&args.data, &args.out) else {
        return components::run(args, &model, terminal);
    };
    let source = Source::open_path(data)?;
    let (policies, added) = policies(&model, &args.policy_files)?;
    let asked = if args.policy.is_empty() && !args.all { added } else { args.policy.clone() };
    let request = model
        .effect(&source)
        .policies(&policies)
        .policy(asked)
        .against(args.against.clone())
        .interval(args.interval)
        .allow_unseen(args.allow_unseen)
        .support(args.support)
        .min_rows(args.min_rows)
        .wide(args.wide)
        .id((!args.id.is_empty()).then(|| args.id.clone()))
        .population(args.population.clone());
    let scored = request.write(out, terminal)?;
    let (out, against) = (out.display(), &scored.against);
    let policies = match scored.policies.as_slice() {
        [only] => only.clone(),
        several => format!("{} policies", several.len()),
    };
    terminal.say(format!("{policies} against {against}: {} rows in {out}", count(scored.rows)));
    if args.support { print(support(&scored)) } else { Ok(()) }
}

/// The model's policies with those of a new file, and the names of the new ones.
pub(crate) fn policies(model: &Model, files: &PolicyArgs) -> Result<(PolicySet, Vec<String>)> {
    let own = &model.manifest().policies;
    let Some(policies) = PolicySource::from_args(files).read_beside(own)? else {
        return Ok((own.clone(), Vec::new()));
    };
    let added = policies.names().iter().filter(|name| own.index(name).is_none()).cloned().collect();
    Ok((policies, added))
}

/// The policy by name, or a combination of the factorial columns that nobody had.
pub(crate) fn find(model: &Model, policies: &PolicySet, name: &str) -> Result<(PolicySet, usize)> {
    if policies.index(name).is_some() || !model.is_factorial() {
        return Ok((policies.clone(), policies.require(name)?));
    }
    // Any other policy will do to compare with: the combination is what is asked for.
    let ask = |against: Option<&String>| {
        Question { policies: vec![name.to_owned()], against: against.cloned() }.ask(policies, true)
    };
    let asked = ask(policies.names().first()).or_else(|_| ask(policies.names().last()))?;
    let policy = asked.targets.first().copied().unwrap_or(asked.against);
    Ok((asked.policies, policy))
}

/// How well the training data support each policy, for a person.
fn support(scored: &Scored) -> String {
    let mut table =
        Table::new(["policy", "nearest run", "distance", "training rows", "seen enough", "unseen"]).left(2);
    for (policy, share) in scored.support.iter().zip(&scored.supported_shares) {
        table.row([
            policy.policy.clone(),
            policy.nearest.clone().unwrap_or_default(),
            optional(policy.distance),
            count(policy.rows),
            percent(*share),
            percent(policy.unseen_share),
        ]);
    }
    table.to_string()
}
