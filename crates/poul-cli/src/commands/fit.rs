//! `poul fit`: learn effects from a table and write them to a model file.

use poul::Result;
use poul::data::{Need, Source};
use poul::effect::Question;
use poul::model::{DEFAULT_LEARNER, FitRequest, Model, learner};

use crate::args::{Common, Fit};
use crate::commands::{about_data, check};
use crate::number::count;
use crate::progress::Terminal;
use crate::settings::{self, DataSettings};

pub(crate) fn run(args: &Fit, typed: &[String], common: &Common, terminal: &Terminal) -> Result<()> {
    let mut data = DataSettings::load(&args.roles, &args.policy)?;
    let (name, settings) = settings::learner(args, &data.learner)?;
    let learner = learner(name.as_deref().unwrap_or(DEFAULT_LEARNER))?;
    // Wrong settings and a file that cannot be written are told before hours of work, not after.
    (learner.settle)(&settings).map_err(|error| match &args.roles.config {
        Some(config) => error.file(config),
        None => error,
    })?;
    drop(poul::AtomicFile::create(&args.out)?);
    let encoder = std::mem::take(&mut data.encoder).check()?;
    let source = Source::open(&args.data)?;
    let (baseline, strata_table) = data.nuisance_tables(&args.nuisance)?;
    let columns = data.roles.check(source.schema(), Need::FIT);
    let columns = columns.map_err(|error| about_data(error, &args.data))?;
    let policies = check::policies(&data, &source, &columns, terminal)?;
    let control = match &data.roles.control {
        // A combination may be written in any order.
        Some(name) if columns.factorial && policies.index(name).is_none() => {
            let question = Question { policies: Vec::new(), against: Some(name.clone()) };
            let asked = question.ask(&policies, true).map_err(|error| error.at("control"))?;
            Some(asked.policies.name(asked.against).to_owned())
        }
        _ => check::control(&data, &policies)?,
    };
    let request = FitRequest {
        source: &source,
        roles: &data.roles,
        columns: &columns,
        policies: &policies,
        control: control.as_deref(),
        baseline: &baseline,
        strata_table: strata_table.as_ref(),
        learner: learner.name,
        settings: &settings,
        encoder: &encoder,
        budget: &settings::budget(common)?,
        seed: common.seed,
        command: command(typed.iter().cloned()),
    };
    let model = poul::model::fit(&request, terminal).map_err(|error| about_data(error, &args.data))?;
    model.save(&args.out)?;
    describe(&model, args, terminal);
    Ok(())
}

fn describe(model: &Model, args: &Fit, terminal: &Terminal) {
    let manifest = model.manifest();
    let rows = manifest.policy_rows.iter().sum();
    let run = manifest.policy_rows.iter().filter(|rows| **rows > 0).count();
    let (out, data) = (args.out.display(), &args.data);
    terminal.say(format!("{}: {} rows, {run} policies; wrote {out}", manifest.learner, count(rows)));
    terminal.say(format!("next: poul effect {out} {data} --out effects.parquet, or poul show {out}"));
}

/// The command as typed, without the flags that do not matter to the model: the same fit is the same file.
fn command(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    const WITH_VALUE: [&str; 3] = ["--out", "--threads", "--memory"];
    const ALONE: [&str; 2] = ["--quiet", "-q"];
    let mut command = vec!["poul".to_owned()];
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if WITH_VALUE.contains(&argument.as_str()) {
            arguments.next();
        } else if !ALONE.contains(&argument.as_str())
            && !WITH_VALUE
                .iter()
                .any(|flag| argument.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
        {
            command.push(argument);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_not_recorded() {
        let typed = "fit d.csv --threads 2 --outcome y --out m.poul -q --memory=1GiB --seed 7 --quiet";
        let recorded = command(typed.split(' ').map(String::from));
        assert_eq!(recorded.join(" "), "poul fit d.csv --outcome y --seed 7");
    }
}
