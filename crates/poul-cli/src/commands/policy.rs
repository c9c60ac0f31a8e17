//! `poul policy`: look at policy files.

mod certify;
mod diff;

use std::path::Path;

use poul::model::Model;
use poul::policy::PolicySet;
use poul::{Progress, Result};
use poul_report::number::{counted, percent, significant};
use serde_json::json;

use crate::args::{Policy, PolicyFile, PolicyNearest, PolicyPair, PolicyShow};
use crate::commands::{print, print_json};
use crate::config::PolicySource;
use crate::progress::Terminal;
use crate::table::Table;

pub(crate) fn run(command: &Policy, terminal: &Terminal) -> Result<()> {
    match command {
        Policy::Show(args) => show(args),
        Policy::Diff(args) => diff::run(args, terminal),
        Policy::Distance(args) => distance(args, terminal),
        Policy::Nearest(args) => nearest(args, terminal),
        Policy::Certify(args) => certify::run(args, terminal),
    }
}

/// The policies of a file, or those of a model.
fn read(file: &PolicyFile) -> Result<PolicySet> {
    match &file.policy.policies {
        Some(path) if is_model(path) => Ok(Model::load(path)?.manifest().policies.clone()),
        _ => PolicySource::from_args(&file.policy).require(),
    }
}

fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "poul")
}

/// As [`read`]; distances depend on the weights of contexts, so that it is told where there are none.
fn read_weighted(file: &PolicyFile, terminal: &Terminal) -> Result<PolicySet> {
    let set = read(file)?;
    let weights = set.weights();
    if weights.len() > 1 && weights.iter().all(|weight| (weight - weights[0]).abs() < 1e-12) {
        let hint = "name weights under [contexts], or with --contexts FILE, where some are met more often";
        terminal.warn(&format!("the {} contexts have equal weights; {hint}", weights.len()));
    }
    Ok(set)
}

/// The policy called `name`, or an error that says where it was looked for.
fn find(set: &PolicySet, name: &str, file: &PolicyFile) -> Result<usize> {
    set.require(name).map_err(|error| match &file.policy.policies {
        Some(path) => error.file(path),
        None => error,
    })
}

fn show(args: &PolicyShow) -> Result<()> {
    let set = read(&args.file)?;
    let chosen: Vec<usize> = match args.names.is_empty() {
        true => (0..set.len()).collect(),
        false => args.names.iter().map(|name| find(&set, name, &args.file)).collect::<Result<_>>()?,
    };
    let aliases: Vec<Vec<&str>> =
        set.aliases().iter().map(|group| group.iter().map(|&policy| set.name(policy)).collect()).collect();
    if args.file.json {
        let policies: serde_json::Map<String, serde_json::Value> = chosen
            .iter()
            .map(|&policy| {
                let mut contexts = serde_json::Map::new();
                for (context, actions) in by_context(&set, policy) {
                    let actions: serde_json::Map<_, _> =
                        actions.into_iter().map(|(action, p)| (action.to_string(), json!(p))).collect();
                    contexts.insert(context.to_string(), actions.into());
                }
                (set.name(policy).to_string(), contexts.into())
            })
            .collect();
        let weights: serde_json::Map<_, _> =
            set.contexts().iter().cloned().zip(set.weights().iter().map(|w| json!(w))).collect();
        return print_json(&json!({
            "contexts": weights, "actions": set.actions(), "atoms": set.atoms().len(),
            "policies": policies, "aliases": aliases,
        }));
    }
    print(format!("{} over {}\n", counted(set.len(), "policy", "policies"), extent(&set)))?;
    let mut table = Table::new(["policy", "context", "weight", "actions"]).left(2);
    for policy in chosen {
        for (context, actions) in by_context(&set, policy) {
            let weight = set.weights()[set.contexts().iter().position(|name| name == context).unwrap_or(0)];
            table.row([set.name(policy).into(), context.into(), percent(weight), distribution(&actions)]);
        }
    }
    print(table.to_string())?;
    for group in aliases {
        print(format!("The same mixture under different names: {}\n", group.join(", ")))?;
    }
    Ok(())
}

/// `2 contexts and 2 actions (4 atoms)`.
pub(crate) fn extent(set: &PolicySet) -> String {
    format!(
        "{} and {} ({})",
        counted(set.contexts().len(), "context", "contexts"),
        counted(set.actions().len(), "action", "actions"),
        counted(set.atoms().len(), "atom", "atoms"),
    )
}

/// What a policy does in every context.
fn by_context(set: &PolicySet, policy: usize) -> Vec<(&str, Vec<(&str, f64)>)> {
    let mut contexts: Vec<(&str, Vec<(&str, f64)>)> = Vec::new();
    for (&atom, &probability) in set.mixture(policy).atoms.iter().zip(set.conditional(policy)) {
        let atom = set.atoms()[atom as usize];
        let context = set.contexts()[atom.context as usize].as_str();
        let action = (set.actions()[atom.action as usize].as_str(), probability);
        match contexts.last_mut() {
            Some((last, actions)) if *last == context => actions.push(action),
            _ => contexts.push((context, vec![action])),
        }
    }
    contexts
}

fn distribution<S: AsRef<str>>(actions: &[(S, f64)]) -> String {
    match actions {
        [(action, _)] => action.as_ref().to_string(),
        [] => "(none)".to_string(),
        _ => {
            let parts: Vec<String> =
                actions.iter().map(|(action, p)| format!("{} {}", action.as_ref(), percent(*p))).collect();
            parts.join(", ")
        }
    }
}

fn distance(args: &PolicyPair, terminal: &Terminal) -> Result<()> {
    let set = read_weighted(&args.file, terminal)?;
    let distance = set.distance(find(&set, &args.a, &args.file)?, find(&set, &args.b, &args.file)?);
    match args.file.json {
        true => print_json(&json!({ "a": args.a, "b": args.b, "distance": distance })),
        false => print(format!("{distance}\n")),
    }
}

fn nearest(args: &PolicyNearest, terminal: &Terminal) -> Result<()> {
    let set = read_weighted(&args.file, terminal)?;
    let found = set.nearest(find(&set, &args.name, &args.file)?, args.count);
    if args.file.json {
        let nearest: Vec<_> =
            found.iter().map(|(policy, d)| json!({ "policy": set.name(*policy), "distance": d })).collect();
        return print_json(&json!({ "policy": args.name, "nearest": nearest }));
    }
    let mut table = Table::new(["policy", "distance"]);
    for (policy, distance) in found {
        table.row([set.name(policy).into(), significant(distance)]);
    }
    print(table.to_string())
}
