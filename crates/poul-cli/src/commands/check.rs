//! `poul check`: validate and profile a data set.

use poul::check::{Level, Params, Profile};
use poul::{Error, Experiment, Policies, Result, Source};
use poul_report::number::{count, counted, percent, significant};

use crate::args::{Check, Common};
use crate::commands::JsonTarget;
use crate::config::DataSettings;
use crate::progress::Terminal;
use crate::spelling::flag;
use crate::table::{Table, shortened, shortened_beside};

pub(crate) fn run(args: &Check, common: &Common, terminal: &Terminal) -> Result<()> {
    let mut settings = DataSettings::load(&args.roles, &args.policy)?;
    settings.declare_shares(&args.shares)?;
    if settings.roles.outcome.is_empty() {
        return Err(Error::usage("no outcome is named").hint("name one: ‹outcome=COL›"));
    }
    let json = JsonTarget::open(args.json.as_deref())?;
    let source = Source::open_path(&args.data)?;
    let experiment = experiment(&settings, &source, terminal)?;
    let params = Params {
        shares: settings.shares,
        permutations: args.permutations,
        seed: common.seed,
        ..Params::default()
    };
    let mut profile = experiment.profile(&params, terminal)?;
    profile.findings.iter_mut().for_each(|finding| finding.spell(flag));
    json.write(&profile, || summary(&profile))
}

/// The experiment that flags and files describe.
pub(crate) fn experiment(
    settings: &DataSettings,
    source: &Source,
    terminal: &Terminal,
) -> Result<Experiment> {
    Experiment::open(source, &settings.roles, policies(settings)?, terminal)
}

/// The policies of the file, or those that the data speak of.
pub(crate) fn policies(settings: &DataSettings) -> Result<Policies<'static>> {
    Ok(match settings.policies.read()? {
        Some(policies) => policies.into(),
        None => Policies::of_rows(settings.policies.weights()?),
    })
}

/// The profile, for a person.
pub(crate) fn summary(profile: &Profile) -> String {
    let mut text = String::new();
    let kind = |kind: &str, n: usize| match n {
        1 => format!("1 {}", kind.trim_end_matches('s')),
        n => format!("{n} {kind}"),
    };
    let features: Vec<String> = profile.features.iter().map(|(name, n)| kind(name, *n)).collect();
    text.push_str(&format!("{} rows", count(profile.rows)));
    if profile.units != profile.rows {
        text.push_str(&format!(" in {}", counted(profile.units as usize, "cluster", "clusters")));
    }
    text.push_str(&format!(
        ", features: {} ({} encoded columns)\n\n",
        features.join(", "),
        profile.encoded_columns
    ));
    text.push_str(&outcomes(profile));
    text.push_str(&arms(profile));
    if let Some(ratio) = &profile.sample_ratio {
        text.push_str(&format!(
            "Sample ratio against declared shares: χ²({}) = {:.2}, p = {}\n\n",
            ratio.degrees,
            ratio.statistic,
            significant(ratio.p_value)
        ));
    }
    text.push_str(&balance(profile));
    text.push_str(&atoms(profile));
    text.push_str(&findings(profile));
    text
}

fn outcomes(profile: &Profile) -> String {
    let mut table = Table::new(["outcome", "mean", "sd", "min", "max", "zeros", "kind"]);
    for outcome in &profile.outcomes {
        table.row([
            outcome.outcome.clone(),
            significant(outcome.mean),
            significant(outcome.sd),
            significant(outcome.min),
            significant(outcome.max),
            percent(outcome.zeros),
            if outcome.binary { "0/1" } else { "number" }.to_string(),
        ]);
    }
    format!("{table}\n")
}

fn arms(profile: &Profile) -> String {
    const SHOWN: usize = 15;
    let mut arms: Vec<_> = profile.arms.iter().collect();
    arms.sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| a.policy.cmp(&b.policy)));
    let means = profile.outcomes.iter().map(|outcome| format!("mean {}", outcome.outcome));
    let mut table = Table::new(["policy", "rows", "share", "declared"]).with(means);
    let against = profile.control.as_deref().unwrap_or_default();
    for arm in arms.iter().take(SHOWN) {
        let control = profile.control.as_ref() == Some(&arm.policy);
        let cells = [
            match control {
                true => format!("{} *", shortened(&arm.policy)),
                false => shortened_beside(&arm.policy, against),
            },
            count(arm.rows),
            percent(arm.share),
            arm.declared.map_or_else(|| "–".to_string(), percent),
        ];
        table.row_with(cells, arm.outcome_means.iter().map(|mean| significant(*mean)));
    }
    let more = arms.len().saturating_sub(SHOWN);
    let rest = if more > 0 {
        format!("and {}\n", counted(more, "more policy", "more policies"))
    } else {
        String::new()
    };
    let star = if profile.control.is_some() { "* control\n" } else { "" };
    format!("{table}{rest}{star}\n")
}

fn balance(profile: &Profile) -> String {
    let mut text = String::new();
    if let Some(test) = &profile.balance {
        text.push_str(&format!(
            "Balance: permutation test p = {:.3} ({} permutations of {} rows)\n",
            test.p_value,
            test.permutations,
            count(test.rows as u64)
        ));
    }
    let mut table = Table::new(["largest differences", "policy", "in sd"]).left(2);
    for imbalance in profile.imbalances.iter().take(5) {
        table.row([
            imbalance.column.clone(),
            shortened_beside(&imbalance.group, profile.control.as_deref().unwrap_or_default()),
            format!("{:+.3}", imbalance.difference),
        ]);
    }
    if !table.is_empty() {
        text.push_str(&table.to_string());
    }
    text + "\n"
}

fn atoms(profile: &Profile) -> String {
    const SHOWN: usize = 8;
    let mut atoms: Vec<_> = profile.atoms.iter().collect();
    atoms.sort_by(|a, b| (a.rows, &a.context, &a.action).cmp(&(b.rows, &b.context, &b.action)));
    let mut table = Table::new(["least covered atoms", "rows", "policies", "share"]);
    for atom in atoms.iter().take(SHOWN) {
        table.row([
            format!("{}:{}", atom.context, atom.action),
            count(atom.rows),
            count(atom.policies as u64),
            percent(atom.share),
        ]);
    }
    format!("{}\n{table}\n", counted(profile.atoms.len(), "atom", "atoms"))
}

fn findings(profile: &Profile) -> String {
    if profile.findings.is_empty() {
        return "Nothing to worry about.\n".to_string();
    }
    let mut text = String::new();
    for finding in &profile.findings {
        let level = match finding.level {
            Level::Problem => "PROBLEM",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        text.push_str(&format!("{level}: {}\n    {}\n", finding.what, finding.hint));
    }
    text
}
