//! `poul effect`: what a policy would have done for each row, by a fitted model.

mod components;

use poul::data::{Need, Roles, Source};
use poul::effect::{EffectTable, Question};
use poul::model::{Answer, Model};
use poul::policy::PolicySet;
use poul::{Progress, Result};
use poul_report::number::{count, optional, percent};

use crate::args::{Effect, PolicyArgs};
use crate::commands::{about_data, print};
use crate::progress::Terminal;
use crate::settings::PolicySource;
use crate::table::Table;

pub(crate) fn run(args: &Effect, terminal: &Terminal) -> Result<()> {
    let model = Model::load(&args.model)?;
    let (Some(data), Some(out)) = (&args.data, &args.out) else {
        return components::run(args, &model, terminal);
    };
    let source = Source::open_path(data)?;
    let columns = model.columns(&source, &roles(args, &model, &source), Need::SCORE);
    let columns = columns.map_err(|error| about_data(error, data))?;
    let (policies, added) = policies(&model, &args.policy_files)?;
    let question = Question {
        policies: if args.policy.is_empty() && !args.all { added } else { args.policy.clone() },
        against: args.against.clone(),
    };
    let answer = model.ask(&policies, &question, args.allow_unseen)?;
    answer.scorer.notes().iter().for_each(|note| terminal.warn(note));
    let names = answer.names();
    let shares = model.supported_shares(&answer.asked.policies, &answer.asked.targets, args.min_rows);
    let table = EffectTable {
        encoder: &model.manifest().encoder,
        columns: &columns,
        exposure: model.manifest().exposure.as_ref(),
        scorer: answer.scorer.as_ref(),
        outcomes: model.effects().outcomes(),
        policies: &names,
        against: answer.against(),
        interval: args.interval,
        unseen_share: (args.allow_unseen || args.support).then_some(answer.unseen_share.as_slice()),
        support: args.support.then_some(shares.as_slice()),
        wide: args.wide,
    };
    let n_rows = table.write(&source, out, terminal)?;
    let (out, against) = (out.display(), answer.against());
    let policies = match names.as_slice() {
        [only] => only.clone(),
        several => format!("{} policies", several.len()),
    };
    terminal.say(format!("{policies} against {against}: {} rows in {out}", count(n_rows)));
    if args.support { print(support(&answer, &shares)) } else { Ok(()) }
}

/// The ids asked for; or those of the training data, if the table has them.
fn roles(args: &Effect, model: &Model, source: &Source) -> Roles {
    let mut roles = Roles { id: args.id.clone(), population: args.population.clone(), ..Roles::default() };
    if roles.id.is_empty() {
        let trained = &model.manifest().roles.id;
        let known = source.column_names();
        if trained.iter().all(|id| known.contains(&id.as_str())) {
            roles.id.clone_from(trained);
        }
    }
    // Its default would collide with an id column of that name; rows are scored whatever was done to them.
    roles.treatment.clone_from(&model.manifest().roles.treatment);
    roles.treatment_columns.clone_from(&model.manifest().roles.treatment_columns);
    roles
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
fn support(answer: &Answer<'_>, shares: &[f64]) -> String {
    let mut table =
        Table::new(["policy", "nearest run", "distance", "training rows", "seen enough", "unseen"]).left(2);
    for (policy, share) in answer.support.iter().zip(shares) {
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
