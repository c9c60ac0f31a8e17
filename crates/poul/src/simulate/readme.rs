//! The README of a simulated folder: what the data are, what the columns mean, what to try.

use super::params::Valid;
use super::world::Setting;

/// The text of `README.md`.
pub(super) fn text(params: &Valid, setting: &Setting, made_by: Option<&str>) -> String {
    let name = params.scenario.name;
    let sections = [
        format!("# Simulated experiment: {name}\n\n{}\n", params.scenario.readme.story),
        format!("Made by\n\n```\n{}\n```\n", made_by.map_or_else(|| command(params), str::to_owned)),
        files(params),
        columns(params),
        held_out(setting),
        format!("## Try\n\n```\n{}\n```\n", examples(params, setting)),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn command(params: &Valid) -> String {
    let shape = match params.scenario.fixed {
        Some(_) => String::new(),
        None => format!(" --contexts {} --actions {}", params.n_contexts, params.n_actions),
    };
    format!(
        "poul simulate --scenario {} --rows {} --test-rows {} --features {} --policies {}{shape} --noise {} \
         --truth-rows {} --seed {} --out .",
        params.scenario.name,
        params.n_train,
        params.n_test,
        params.n_features,
        params.n_policies,
        params.noise,
        params.n_truth,
        params.seed,
    )
}

fn files(params: &Valid) -> String {
    let mut rows = vec![
        ("train.parquet", format!("{} rows to learn from", params.n_train)),
        ("test.parquet", format!("{} rows to be judged on", params.n_test)),
        ("policies.toml", format!("{} policies: what each does in each context", params.n_policies)),
        (
            "truth.parquet",
            format!(
                "the true effect, against `control`, of every policy on {} of the test rows: `row` (from 0), \
                 `policy`, `effect_<outcome>`",
                if params.n_truth == params.n_test { "all".to_string() } else { format!("the first {}", params.n_truth) },
            ),
        ),
        (
            "averages.csv",
            "the true average effect of every `policy` on every `outcome`, over the `train` rows and over the `test` rows"
                .to_string(),
        ),
        (
            "world.toml",
            "the settings of the world: `poul simulate --world DIR --policies FILE` runs other policies in it, on new users"
                .to_string(),
        ),
        (
            "tiers.csv",
            "`policy`, `tier` (`control`; `frequent`: the most exposed third of the others; `rare`: the rest of \
             those that are run; `unseen`), expected `share` of the rows"
                .to_string(),
        ),
    ];
    rows.extend(params.scenario.readme.files.iter().map(|(file, what)| (*file, (*what).to_owned())));
    table("## Files", ["file", "what"], rows.iter().map(|(file, what)| (*file, what.as_str())))
}

fn columns(params: &Valid) -> String {
    let readme = &params.scenario.readme;
    table("## Columns", ["column", "what"], readme.columns.iter().copied()) + &(readme.formula)(params.noise)
}

fn held_out(setting: &Setting) -> String {
    let names: Vec<String> =
        setting.held_out().into_iter().map(|idx| format!("`{}`", setting.policies.names[idx])).collect();
    if names.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = names.chunks(16).map(|names| names.join(", ")).collect();
    format!(
        "## Held out\n\nIn `policies.toml` and `truth.parquet`, never in the tables (`unseen` in `tiers.csv`):\n{}.\n",
        lines.join(",\n")
    )
}

fn examples(params: &Valid, setting: &Setting) -> String {
    let readme = &params.scenario.readme;
    let policy = match (readme.policy, setting.held_out().first()) {
        (Some(name), _) => name,
        (None, Some(&idx)) => &setting.policies.names[idx],
        (None, None) => &setting.policies.names[1],
    };
    let roles = flags(readme.roles);
    let roles = format!("--policies policies.toml --control control {roles}");
    let mut commands = vec![
        format!("poul check train.parquet {roles}"),
        format!("poul fit train.parquet {roles} --out model.poul"),
        format!(
            "poul effect model.poul test.parquet --policy {policy} --against control --out effects.parquet"
        ),
        "poul evaluate model.poul test.parquet --json metrics.json --report report.html".to_string(),
        format!("poul policy nearest {policy} --policies policies.toml"),
    ];
    if !readme.more.is_empty() {
        commands.insert(4, format!("poul evaluate model.poul test.parquet {}", flags(readme.more)));
    }
    commands.join("\n")
}

fn flags(settings: &[(&str, &str)]) -> String {
    let flags: Vec<String> = settings.iter().map(|(name, value)| format!("--{name} {value}")).collect();
    flags.join(" ")
}

fn table<'a>(title: &str, head: [&str; 2], rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = format!("{title}\n\n| {} | {} |\n|---|---|\n", head[0], head[1]);
    for (name, what) in rows {
        let names: Vec<String> = name.split(", ").map(code).collect();
        text.push_str(&format!("| {} | {what} |\n", names.join(", ")));
    }
    text
}

/// `` `a` … `b` `` for a range of names.
fn code(name: &str) -> String {
    let ends: Vec<String> =
        name.split(" …").map(str::trim).filter(|end| !end.is_empty()).map(|end| format!("`{end}`")).collect();
    if name.contains('…') {
        format!("{} … {}", ends[0], ends[1..].concat()).trim_end().to_string()
    } else {
        ends.concat()
    }
}
