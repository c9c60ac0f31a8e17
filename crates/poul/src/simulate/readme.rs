//! The README of a simulated folder: what the data are, what the columns mean, what to try.

use super::params::{Scenario, Valid};
use super::world::Setting;

/// The text of `README.md`.
pub(super) fn text(params: &Valid, setting: &Setting, made_by: Option<&str>) -> String {
    let name = params.scenario.name();
    let sections = [
        format!("# Simulated experiment: {name}\n\n{}\n", story(params)),
        format!("Made by\n\n```\n{}\n```\n", made_by.map_or_else(|| command(params), str::to_owned)),
        files(params),
        columns(params),
        held_out(setting),
        format!("## Try\n\n```\n{}\n```\n", examples(params, setting)),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn story(params: &Valid) -> &'static str {
    match params.scenario {
        Scenario::RideHailing => {
            "Users of a ride-hailing platform are assigned at random, with unequal shares, to a policy for a month. A \
             policy says for each context\n(city tier × hour band × request class) whether a request is upgraded: \
             Economy to Express, or Discount to Economy. `T1` does the\nfirst, `T2` does both, variants are limited \
             to some tiers or hours or to a percentage of requests. Assignment is recorded for all (intention\nto \
             treat), but an upgrade happens only to users who opted in and have requests in that context; all others \
             have an effect of exactly 0.\nTraining rows are of March and test rows of June: users have shifted and \
             the effects have drifted a little."
        }
        Scenario::LongTail => {
            "Policies are assigned at random with Zipf shares: a few are frequent, most are rare. Half of the policies are\nnear-copies \
             of others, with one to three contexts changed."
        }
        Scenario::Stratified => {
            "Policies are assigned at random within five strata, with probabilities that differ between strata \
             (`strata.csv`). Strata are cut from a score\nthat also drives the outcome, so arms are not comparable \
             without them. Test rows are assigned in the same way."
        }
        Scenario::Delivery => {
            "Users of a food-delivery platform are assigned at random to a policy, which says for each context (zone × \
             part of the day) what is offered:\nnothing, a discount or free delivery. A user orders in one zone, in \
             its parts of the day as it is used to, and meets the offers of those contexts\nalone, by the share of \
             its orders there. How often it ordered in each before the experiment stands in the columns `trips_*`."
        }
        Scenario::Observational => {
            "Nobody randomised: the probability of a policy depends on features that also drive the outcome, so raw \
             differences between arms are biased.\nOverlap holds: every policy that is run has a propensity of at \
             least 0.2 / (number of policies) for every unit. Test rows are assigned\nin the same way; their true \
             propensities are in `truth_propensity.parquet`."
        }
    }
}

fn command(params: &Valid) -> String {
    let shape = match params.scenario {
        Scenario::RideHailing | Scenario::Delivery => String::new(),
        _ => format!(" --contexts {} --actions {}", params.n_contexts, params.n_actions),
    };
    format!(
        "poul simulate --scenario {} --rows {} --test-rows {} --features {} --policies {}{shape} --noise {} \
         --truth-rows {} --seed {} --out .",
        params.scenario.name(),
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
    match params.scenario {
        Scenario::Stratified => {
            rows.push(("strata.csv", "`stratum`, `policy`, `probability` of assignment".to_string()));
        }
        Scenario::Observational => {
            let what =
                "the true `propensity` of every policy that is run, for the same test rows as the truth";
            rows.push(("truth_propensity.parquet", what.to_string()));
        }
        Scenario::RideHailing | Scenario::LongTail | Scenario::Delivery => {}
    }
    table("## Files", ["file", "what"], rows.iter().map(|(file, what)| (*file, what.as_str())))
}

fn columns(params: &Valid) -> String {
    let rows: &[(&str, &str)] = match params.scenario {
        Scenario::RideHailing => &[
            ("opt_in", "whether the user agreed to upgrades; without it nothing happens"),
            ("city, app_version, os", "categories; `os` has missing values"),
            ("requests_economy, requests_discount", "last month's requests by class"),
            ("requests_tier1 … requests_tier3", "the same requests by tier of the city they were made in"),
            ("share_peak, share_night", "shares of them in the peak and at night; missing without requests"),
            (
                "gmv_last_month, gmv_quarter, avg_fare",
                "past spending; `avg_fare` is missing without requests",
            ),
            (
                "tenure_days, days_since_last",
                "since sign-up and since the last ride (missing without requests)",
            ),
            ("age, coupon_rate, wait_minutes, rating", "`age` and `rating` have missing values"),
            ("wallet_balance, cancel_rate", "`wallet_balance` is heavy-tailed"),
            ("f001 …", "correlated numbers, some with missing values; no effect depends on them"),
            ("core", "core eligible: opted in and spent enough last month; 23.5 % of the users in March"),
            ("month", "`2025-03` (train) or `2025-06` (test)"),
            ("policy", "the policy assigned"),
            ("gmv", "the month's GMV: zero for the inactive, heavy-tailed for the others"),
            ("cost", "what upgrades cost that month; 0 where none happened, always 0 under `control`"),
        ],
        Scenario::Delivery => &[
            ("zone", "where the user orders"),
            ("trips_airport_breakfast … trips_west_night", "orders in each context before the experiment"),
            ("coupon_rate", "share of past orders with a coupon"),
            ("basket", "usual size of an order"),
            ("tenure_days, wait_minutes", "since sign-up; usual wait for an order"),
            ("f001 …", "correlated numbers, some with missing values; no effect depends on them"),
            ("policy", "the policy assigned"),
            ("spend", "what an order of the month brought on average"),
        ],
        Scenario::Stratified => &[
            ("f001 …", "features: correlated numbers of several shapes, some with missing values"),
            ("stratum", "`s1` to `s5`, a function of the features"),
            ("policy", "the policy assigned"),
            ("y", "the outcome"),
        ],
        Scenario::LongTail | Scenario::Observational => &[
            ("f001 …", "features: correlated numbers of several shapes, some with missing values"),
            ("policy", "the policy assigned"),
            ("y", "the outcome"),
        ],
    };
    let mut text = table("## Columns", ["column", "what"], rows.iter().copied());
    if params.scenario == Scenario::Delivery {
        text.push_str(&format!(
            "\n`spend` = m(x) + Σ w(s)·(what the policy offers in s)·v(s, offer)·q(x, offer) + noise, summed over contexts s, \
             w(s) being the share of the user's\norders in s. Over users and policies other than control the effect \
             has standard deviation 1; the noise is normal with standard deviation {}.\n",
            params.noise
        ));
    } else if params.scenario != Scenario::RideHailing {
        text.push_str(&format!(
            "\n`y` = m(x) + g(x)ᵀ(F(μ) − F(μ_control)) + noise, with m and g smooth and non-linear in at most 12 of \
             the features, and F non-linear in\nthe policy's mixture μ over contexts and actions. Over units and \
             policies other than control the effect has standard deviation 1; the noise\nis normal with standard \
             deviation {}; m has 2.\n",
            params.noise
        ));
    }
    text
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
    let roles = match params.scenario {
        Scenario::RideHailing => "--outcome gmv --outcome cost --time month",
        Scenario::LongTail => "--outcome y",
        Scenario::Stratified => "--outcome y --design stratified --stratum stratum",
        Scenario::Observational => "--outcome y --design observational",
        Scenario::Delivery => "--outcome spend --exposure 'trips_*'",
    };
    let policy = match (params.scenario, setting.held_out().first()) {
        (Scenario::RideHailing, _) => "T2",
        (_, Some(&idx)) => &setting.policies.names[idx],
        (_, None) => &setting.policies.names[1],
    };
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
    if params.scenario == Scenario::RideHailing {
        commands.insert(4, "poul evaluate model.poul test.parquet --population core --policy T2".to_string());
    }
    commands.join("\n")
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
