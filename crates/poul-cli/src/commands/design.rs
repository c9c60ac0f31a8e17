//! `poul design`: the policies to run next.

mod summary;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use poul::data::Source;
use poul::decide::design::{By, Design, DesignParams, Users, design};
use poul::model::Model;
use poul::policy::PolicySet;
use poul::{AtomicFile, Error, Progress, Result};

use crate::args::{Common, DesignArgs, JudgedBy};
use crate::commands::{JsonTarget, about_data};
use crate::progress::Terminal;

pub(crate) fn run(args: &DesignArgs, common: &Common, terminal: &Terminal) -> Result<()> {
    let params = params(args, common)?.check()?;
    let json = JsonTarget::open(args.json.as_deref())?;
    let out = args.out.as_deref().map(PolicyFile::create).transpose()?;
    let model = Model::load(&args.model)?;
    let found = match &args.users {
        None => design(&model, &params, None, terminal)?,
        Some(data) => {
            let source = Source::open_path(data)?;
            let users = Users::read(&model, &source, args.population.as_deref(), terminal);
            design(&model, &params, Some(users.map_err(|error| about_data(error, data))?), terminal)?
        }
    };
    found.notes.iter().for_each(|note| terminal.warn(note));
    if let (Some(out), Some(policies)) = (out, &found.policies) {
        out.write(policies)?;
    }
    json.write(&found, || summary::text(&found, args.level))?;
    say(args, &found, terminal);
    Ok(())
}

fn say(args: &DesignArgs, found: &Design, terminal: &Terminal) {
    if let (Some(out), Some(policies)) = (&args.out, &found.policies) {
        terminal.say(format!("wrote {}: {}", out.display(), policies.names().join(", ")));
    }
}

fn params(args: &DesignArgs, common: &Common) -> Result<DesignParams> {
    Ok(DesignParams {
        maximize: args.maximize.clone(),
        price: amounts("--price", &args.price)?,
        budget: amounts("--budget", &args.budget)?,
        from: args.from.clone(),
        edits: args.edits,
        within: args.within,
        min_rows: args.min_rows,
        grid: (!args.grid.is_empty()).then(|| args.grid.clone()),
        allow: allowed(&args.allow)?,
        proposals: args.proposals,
        by: match args.by {
            JudgedBy::Value => By::Value,
            JudgedBy::Lower => By::Lower,
            JudgedBy::Improvement => By::Improvement,
        },
        learn: args.learn,
        batch: args.batch,
        rows: args.rows,
        policy: args.policy.clone(),
        level: args.level,
        seed: common.seed,
    })
}

/// `cost=5`.
fn amounts(flag: &str, entries: &[String]) -> Result<BTreeMap<String, f64>> {
    let mut amounts = BTreeMap::new();
    for entry in entries {
        let pair = entry
            .rsplit_once('=')
            .and_then(|(name, amount)| Some((name.trim(), amount.trim().parse().ok()?)));
        let Some((name, amount)) = pair else {
            return Err(Error::usage(format!("{flag}: `{entry}` is not an outcome and a number"))
                .hint(format!("write {flag} cost=5")));
        };
        if amounts.insert(name.to_owned(), amount).is_some() {
            return Err(Error::usage(format!("{flag} names `{name}` twice")));
        }
    }
    Ok(amounts)
}

/// `peak: none, upgrade`.
fn allowed(entries: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut allowed = BTreeMap::new();
    for entry in entries {
        let (context, actions) = entry.rsplit_once(':').unwrap_or((entry, ""));
        let actions: Vec<String> = actions
            .split(',')
            .map(|action| action.trim().to_owned())
            .filter(|action| !action.is_empty())
            .collect();
        if actions.is_empty() {
            return Err(Error::usage(format!("--allow: `{entry}` names no actions"))
                .hint("write --allow 'CONTEXT: a, b'"));
        }
        let context = context.trim().to_owned();
        if allowed.insert(context.clone(), actions).is_some() {
            return Err(Error::usage(format!("--allow names `{context}` twice")));
        }
    }
    Ok(allowed)
}

/// Users are averaged over whatever was done to them.
/// A policy file that is to be written, begun before the work so that a folder that is not there is told at once.
struct PolicyFile {
    file: AtomicFile,
    is_json: bool,
}

impl PolicyFile {
    fn create(path: &Path) -> Result<Self> {
        let is_json = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => false,
            Some("json") => true,
            _ => {
                return Err(Error::usage(format!("`{}` is not a policy file", path.display()))
                    .hint("its name ends with .toml or .json"));
            }
        };
        Ok(Self { file: AtomicFile::create(path)?, is_json })
    }

    fn write(mut self, policies: &PolicySet) -> Result<()> {
        let text = match self.is_json {
            true => format!("{:#}\n", policies.to_json_value()),
            false => policies.to_toml(),
        };
        self.file.write_all(text.as_bytes()).map_err(|error| Error::output(self.file.path(), error))?;
        self.file.commit()
    }
}
