//! `poul evaluate`: score predicted effects, a model's or columns that anyone predicted.

mod averages;
mod by_column;
mod by_model;
mod nuisances;
mod provenance;
mod rows;
mod sampled;
mod trust;

use std::collections::BTreeMap;

use poul::data::{Columns, Need, Roles, Source};
use poul::evaluate::{
    Bootstrap, CostPair, Effects, Evaluation, Metrics, Outcome, Params, Scored, ValidParams,
};
use poul::policy::PolicySet;
use poul::{Error, Result, Seed};

use self::nuisances::Nuisances;
use self::rows::Rows;
use crate::args::{Common, Evaluate, PolicyArgs};
use crate::commands::{JsonTarget, about_data};
use crate::number::{count, optional};
use crate::progress::Terminal;
use crate::report::{self, ReportTarget};
use crate::settings::DataSettings;
use crate::specs::{Specs, itself};
use crate::table::{Table, shortened};

pub(crate) fn run(args: &Evaluate, typed: &[String], common: &Common, terminal: &Terminal) -> Result<()> {
    match (args.paths.as_slice(), args.effects.is_empty()) {
        ([data], false) => by_columns(args, data, typed, common, terminal),
        ([model, data], true) => by_model::run(args, [model, data], typed, common, terminal),
        (_, true) => Err(Error::usage("what is to be evaluated?")
            .hint("give a model before the data, or columns of effects: --effects COL")),
        (_, false) => Err(Error::usage("a model and --effects exclude each other")
            .hint("give the model and the data, or the data with --effects COL")),
    }
}

fn by_columns(
    args: &Evaluate,
    data: &str,
    typed: &[String],
    common: &Common,
    terminal: &Terminal,
) -> Result<()> {
    trust::refuse_without_model(&args.checks)?;
    let PolicyArgs { policies: None, contexts: None, exposure_log: None, .. } = &args.policy_files else {
        return Err(Error::usage("columns of effects need no policy file")
            .hint("leave --policies out; the policies are those that the data name"));
    };
    let settings = DataSettings::load(&args.roles, &PolicyArgs::default())?;
    let effects = Specs::parse(&args.effects, "--effects")?;
    let truth = Specs::parse(&args.truth, "--truth")?;
    let params = params(args, common, &settings.roles)?;
    let score_columns: Vec<String> = effects.columns().chain(truth.columns()).map(String::from).collect();
    let json = JsonTarget::open(args.json.as_deref())?;
    let page = ReportTarget::open(args.report.as_deref())?;
    let source = Source::open(data)?;
    for specs in [&effects, &truth] {
        specs.check(&source, &settings.roles).map_err(|error| about_data(error, data))?;
    }
    let mut roles = settings.roles.clone();
    // The scores are read as the features of the table; the table's own features are not needed.
    roles.features = score_columns;
    roles.exclude.clear();
    let columns = roles.check(source.schema(), Need::FIT);
    let mut columns = columns.map_err(|error| about_data(explain_outcome(error, &roles), data))?;
    let by = by_column::features(&args.by, &source, &columns).map_err(|error| about_data(error, data))?;
    let n_by = by.len();
    columns.features.extend(by);
    let policies = PolicySet::from_data(&source, &columns, None, terminal)?;
    let against = against(args, &settings, &policies).map_err(|error| about_data(error, data))?;
    let chosen = chosen_policies(args, &policies, against).map_err(|error| about_data(error, data))?;
    let table = Rows::read(&source, &columns, &policies, 0, n_by, |_| Ok(()), terminal);
    let table = table.map_err(|error| about_data(error, data))?;
    let seed = Seed::new(common.seed);
    let nuisances = Nuisances::of(&table, &columns, &policies, None, seed, terminal);
    let nuisances = nuisances.map_err(|error| about_data(error, data))?;

    let assigned = effects.assign(&columns, &policies, against, &chosen)?;
    let truths = truth.assign(&columns, &policies, against, &chosen)?;
    let effects: Vec<Effects<'_>> = assigned
        .iter()
        .map(|(&(policy, outcome), column)| Effects {
            policy,
            outcome: Some(outcome),
            values: &table.scores[*column],
            truth: truths.get(&(policy, outcome)).map(|column| table.scores[*column].as_slice()),
        })
        .collect();
    let evaluation = measure(&table, &columns, &policies, against, &effects, &nuisances, &params, terminal);
    let mut evaluation = evaluation.map_err(|error| about_data(error, data))?;
    evaluation.provenance = Some(provenance::of_columns(&source, typed, common)?);
    page.write(|| report::of_evaluation(&evaluation))?;
    json.write(&evaluation, || summary(&evaluation))
}

#[expect(clippy::too_many_arguments, reason = "each is a different thing that only the caller has")]
fn measure(
    table: &Rows,
    columns: &Columns,
    policies: &PolicySet,
    against: usize,
    effects: &[Effects<'_>],
    nuisances: &Nuisances<'_>,
    params: &ValidParams,
    terminal: &Terminal,
) -> Result<Evaluation> {
    let outcomes: Vec<Outcome<'_>> = columns
        .outcomes
        .iter()
        .zip(&table.outcomes)
        .enumerate()
        .map(|(idx, (name, values))| Outcome { name, values, prediction: table.prediction(idx) })
        .collect();
    let scored = Scored {
        outcomes: &outcomes,
        policies: policies.names(),
        arm: &table.arm,
        against,
        effects,
        weight: table.weight.as_deref(),
        cluster: table.cluster.as_deref(),
        propensity: None,
    };
    let averages = match &nuisances.propensity {
        Some(propensity) => {
            // Metrics keep to what the user gave; averages are sharpened by what was fitted too.
            let mut outcomes = outcomes.clone();
            for (outcome, fitted) in outcomes.iter_mut().zip(&nuisances.predictions) {
                outcome.prediction = outcome.prediction.or(fitted.as_deref());
            }
            let scored = Scored { outcomes: &outcomes, ..scored };
            poul::evaluate::average_effects(&scored, propensity, nuisances.x, &table.by, params)?
        }
        None => Vec::new(),
    };
    let mut evaluation = poul::evaluate::evaluate(&scored, params, terminal)?;
    evaluation.averages = averages;
    Ok(evaluation)
}

fn params(args: &Evaluate, common: &Common, roles: &Roles) -> Result<ValidParams> {
    let params = Params {
        bootstrap: Bootstrap { draws: args.draws, level: args.level, seed: Seed::new(common.seed) },
        cost: args.cost_curve.as_deref().map(|text| cost_pair(text, roles)).transpose()?,
        ..Params::default()
    };
    params.check()
}

/// The policy compared with: `--against`, or the control.
fn against(args: &Evaluate, settings: &DataSettings, policies: &PolicySet) -> Result<usize> {
    let name = args.against.as_deref().unwrap_or(settings.control());
    policies.require(name).map_err(|error| match (&args.against, &settings.roles.control) {
        (Some(_), _) => error.at("--against"),
        (None, Some(_)) => error.at("--control"),
        (None, None) => {
            let known = error.hint_text().unwrap_or_default();
            let hint = format!("name the one to compare with by --against; {known}");
            Error::input("no policy is called `control`").hint(hint)
        }
    })
}

fn chosen_policies(args: &Evaluate, policies: &PolicySet, against: usize) -> Result<Vec<usize>> {
    if !args.policy.is_empty() {
        let chosen: Result<Vec<usize>> = args.policy.iter().map(|name| policies.require(name)).collect();
        let chosen = chosen.map_err(|error| error.at("--policy"))?;
        if chosen.contains(&against) {
            return Err(itself(policies.name(against)));
        }
        return Ok(chosen);
    }
    let chosen: Vec<usize> = (0..policies.len()).filter(|policy| *policy != against).collect();
    if chosen.is_empty() {
        let name = policies.name(against);
        return Err(Error::input(format!("every row has the policy `{name}`"))
            .hint("an effect needs two policies; check the treatment column and the population filter"));
    }
    Ok(chosen)
}

fn explain_outcome(error: Error, roles: &Roles) -> Error {
    match roles.outcome.is_empty() {
        true => Error::usage("no outcome is named").hint("name one: --outcome COL"),
        false => error,
    }
}

fn cost_pair(text: &str, roles: &Roles) -> Result<CostPair> {
    let (value, cost) = text.split_once(',').ok_or_else(|| {
        Error::usage(format!("--cost-curve: `{text}` is not of the form VALUE,COST"))
            .hint("write --cost-curve gmv,cost")
    })?;
    let is_outcome = |name: &str| roles.outcome.iter().any(|outcome| outcome == name.trim());
    if let Some(name) = [value, cost].into_iter().find(|name| !is_outcome(name)) {
        return Err(Error::usage(format!("--cost-curve: `{}` is not an outcome", name.trim()))
            .hint(format!("name it as one too: --outcome {}", name.trim())));
    }
    Ok(CostPair { value: value.trim().to_string(), cost: cost.trim().to_string() })
}

/// The main numbers, for a person.
pub(crate) fn summary(evaluation: &Evaluation) -> String {
    let mut table = Table::new([
        "outcome",
        "policy",
        "treated",
        "control",
        "effect",
        "interval",
        "predicted",
        "AUUC",
        "interval",
        "Qini",
        "MAPE",
        "slope",
        "nPEHE",
    ])
    .left(2);
    let interval = |ends: Option<[f64; 2]>| {
        ends.map_or_else(
            || "–".to_string(),
            |[low, high]| format!("{} … {}", optional(Some(low)), optional(Some(high))),
        )
    };
    let mut row = |outcome: &str, policy: String, metrics: &Metrics| {
        table.row([
            outcome.to_string(),
            policy,
            count(metrics.n_treated as u64),
            count(metrics.n_control as u64),
            optional(metrics.ate),
            interval(metrics.ate_interval),
            optional(metrics.ate_predicted),
            optional(metrics.auuc),
            interval(metrics.auuc_interval),
            optional(metrics.qini),
            optional(metrics.mape),
            optional(metrics.calibration_slope),
            optional(metrics.normalised_pehe),
        ]);
    };
    for result in &evaluation.results {
        row(&result.outcome, shortened(&result.policy), &result.metrics);
    }
    for pooled in evaluation.pooled.iter().filter(|pooled| pooled.policies.len() > 1) {
        row(&pooled.outcome, format!("all {}", pooled.policies.len()), &pooled.metrics);
    }
    let against = evaluation.results.first().map_or("", |result| &result.against);
    let mut text = table.to_string();
    text.push_str(&format!(
        "\nEffects are against {against}; intervals at {:.0} %. A random ranking has AUUC 0.5 (−0.5 where the effect is \
         negative) and Qini 0.\n",
        100.0 * evaluation.level
    ));
    for cost in &evaluation.cost_curves {
        text.push_str(&format!(
            "{}: area under the cost curve ({} against {}) {} {}\n",
            cost.policy,
            cost.value,
            cost.cost,
            optional(cost.aucc),
            interval(cost.aucc_interval),
        ));
    }
    text + &averages::summary(evaluation) + &trust::summary(evaluation) + &notes(evaluation)
}

/// Each note once, with the comparisons it is about. That 0/1 metrics do not apply is left to the JSON.
fn notes(evaluation: &Evaluation) -> String {
    const SHOWN: usize = 5;
    let many = evaluation.results.len() > SHOWN;
    let mut about: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for result in &evaluation.results {
        for note in &result.metrics.notes {
            // With many policies most bins are noisy; the table says enough.
            if note.contains("0/1 outcomes only") || (many && note.starts_with("mape: in ")) {
                continue;
            }
            about.entry(note).or_default().push(format!("{} of {}", result.outcome, result.policy));
        }
    }
    let line = |(note, about): (&&str, &Vec<String>)| {
        let shown = about.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        match about.len().saturating_sub(SHOWN) {
            0 => format!("note: {shown}: {note}\n"),
            more => format!("note: {shown} and {more} more: {note}\n"),
        }
    };
    about.iter().map(line).collect()
}
