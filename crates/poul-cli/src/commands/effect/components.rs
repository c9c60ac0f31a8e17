//! `poul effect --components`: what switching one context at a time does.

use poul::evaluate::trust::components;
use poul::evaluate::{AtomEffect, Interval};
use poul::model::Model;
use poul::{Error, Progress, Result};
use poul_report::number::{count, optional, percent};

use super::{find, policies};
use crate::args::Effect;
use crate::commands::print;
use crate::progress::Terminal;
use crate::table::{Table, shortened};

/// The level of intervals where none is asked for.
const LEVEL: f64 = 0.9;

pub(super) fn run(args: &Effect, model: &Model, terminal: &Terminal) -> Result<()> {
    let (policies, _) = policies(model, &args.policy_files)?;
    let name = args.against.as_ref().or(model.manifest().control.as_ref()).ok_or_else(|| {
        Error::usage("components are switches of one policy, and the model has no control")
            .hint("name the policy to start from: --against NAME")
    })?;
    let level = args.interval.unwrap_or(LEVEL);
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::usage(format!("an interval of level {level}"))
            .hint("a level lies between 0 and 1, such as 0.9"));
    }
    let (policies, against) = find(model, &policies, name)?;
    let found = components(model, &policies, against, level, None)?;
    found.notes.iter().for_each(|note| terminal.warn(note));
    if let Some(out) = &args.out {
        let n = found.write(out)?;
        terminal.say(format!("{} components in {}", count(n), out.display()));
    }
    let title = format!(
        "Average effect of switching one context of {} to an action, in units of the outcome; interval of each alone and \
         band of all at once at {}\n",
        shortened(name),
        percent(level)
    );
    print(title + &table(&found.atoms))
}

fn table(atoms: &[AtomEffect]) -> String {
    let mut table =
        Table::new(["outcome", "context", "action", "effect", "se", "interval", "band", "training rows"])
            .left(3);
    for own in atoms.iter().filter(|own| !own.control) {
        table.row([
            own.outcome.clone(),
            shortened(&own.context),
            shortened(&own.action),
            optional(own.effect),
            optional(own.se),
            ends(own.interval),
            ends(own.band),
            count(own.rows),
        ]);
    }
    table.to_string()
}

fn ends(ends: Option<Interval>) -> String {
    ends.map_or_else(
        || "–".to_owned(),
        |[low, high]| format!("{} … {}", optional(Some(low)), optional(Some(high))),
    )
}
