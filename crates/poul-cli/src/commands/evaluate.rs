//! `poul evaluate`: score columns of predicted effects, whoever predicted them.

use std::collections::BTreeMap;

use poul::data::{Columns, Labels, Need, Roles, RowReader, Source, numbers};
use poul::evaluate::{
    Bootstrap, CostPair, Effects, Evaluation, Metrics, Outcome, Params, Scored, ValidParams,
};
use poul::policy::{Assigner, PolicySet};
use poul::{Error, Progress, Result, Seed};

use crate::args::{Common, Evaluate, PolicyArgs};
use crate::commands::{JsonTarget, about_data};
use crate::number::{count, optional};
use crate::progress::Terminal;
use crate::settings::DataSettings;
use crate::specs::{Specs, itself};
use crate::table::{Table, shortened};

pub(crate) fn run(args: &Evaluate, common: &Common, terminal: &Terminal) -> Result<()> {
    let settings = DataSettings::load(&args.roles, &PolicyArgs::default())?;
    let effects = Specs::parse(&args.effects, "--effects")?;
    let truth = Specs::parse(&args.truth, "--truth")?;
    let params = params(args, common, &settings.roles)?;
    let score_columns: Vec<String> = effects.columns().chain(truth.columns()).map(String::from).collect();
    let json = JsonTarget::open(args.json.as_deref())?;
    let source = Source::open(&args.data)?;
    for specs in [&effects, &truth] {
        specs.check(&source, &settings.roles).map_err(|error| about_data(error, &args.data))?;
    }
    let mut roles = settings.roles.clone();
    // The scores are read as the features of the table; the table's own features are not needed.
    roles.features = score_columns;
    roles.exclude.clear();
    let columns = roles.check(source.schema(), Need::FIT);
    let columns = columns.map_err(|error| about_data(explain_outcome(error, &roles), &args.data))?;
    let policies = PolicySet::from_data(&source, &columns, None, terminal)?;
    let against = against(args, &settings, &policies).map_err(|error| about_data(error, &args.data))?;
    let chosen = chosen_policies(args, &policies, against).map_err(|error| about_data(error, &args.data))?;
    let table = Rows::read(&source, &columns, &policies, terminal);
    let table = table.map_err(|error| about_data(error, &args.data))?;

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
        effects: &effects,
        weight: table.weight.as_deref(),
        cluster: table.cluster.as_deref(),
        propensity: None,
    };
    let evaluation = poul::evaluate::evaluate(&scored, &params, terminal)?;
    json.write(&evaluation, || summary(&evaluation))
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

/// The table as columns.
struct Rows {
    arm: Vec<u32>,
    outcomes: Vec<Vec<f64>>,
    scores: BTreeMap<String, Vec<f64>>,
    weight: Option<Vec<f64>>,
    cluster: Option<Vec<u32>>,
    predictions: BTreeMap<usize, Vec<f64>>,
}

impl Rows {
    fn read(
        source: &Source,
        columns: &Columns,
        policies: &PolicySet,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut rows = Self {
            arm: Vec::new(),
            outcomes: vec![Vec::new(); columns.outcomes.len()],
            scores: columns.features.iter().map(|feature| (feature.name.clone(), Vec::new())).collect(),
            weight: columns.weight.as_ref().map(|_| Vec::new()),
            cluster: columns.cluster.as_ref().map(|_| Vec::new()),
            predictions: BTreeMap::new(),
        };
        let mut reader = RowReader::new(source, columns)?;
        let mut assigner = Assigner::new(policies, columns);
        progress.start("Reading effects", "rows", source.n_rows());
        while let Some(batch) = reader.next_batch()? {
            let labels: Vec<&Labels> =
                (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
            rows.arm.extend(assigner.assign(&batch.treatment, &labels, &batch.rows)?);
            for (all, values) in rows.outcomes.iter_mut().zip(&batch.outcomes) {
                all.extend_from_slice(values);
            }
            for (feature, array) in columns.features.iter().zip(&batch.features) {
                let Some(values) = numbers(array.as_ref()) else {
                    return Err(
                        Error::input("effects must be numbers").at(format!("column `{}`", feature.name))
                    );
                };
                if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                    return Err(Error::input("the predicted effect is null or not finite")
                        .at(format!("row {}", batch.rows[row] + 1))
                        .at(format!("column `{}`", feature.name))
                        .hint(format!(
                            "leave such rows out with --population '{} is not null'",
                            feature.name
                        )));
                }
                if let Some(all) = rows.scores.get_mut(&feature.name) {
                    all.extend_from_slice(&values);
                }
            }
            if let (Some(all), Some(values)) = (&mut rows.weight, &batch.weight) {
                all.extend_from_slice(values);
            }
            if let (Some(all), Some(values)) = (&mut rows.cluster, &batch.cluster) {
                all.extend_from_slice(values);
            }
            for (outcome, values) in &batch.predictions {
                rows.predictions.entry(*outcome).or_default().extend_from_slice(values);
            }
            progress.advance(batch.n_rows() as u64);
        }
        progress.finish();
        Ok(rows)
    }

    fn prediction(&self, outcome: usize) -> Option<&[f64]> {
        self.predictions.get(&outcome).map(Vec::as_slice)
    }
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
    text + &notes(evaluation)
}

/// Each note once, with the comparisons it is about. That 0/1 metrics do not apply is left to the JSON.
fn notes(evaluation: &Evaluation) -> String {
    let mut about: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for result in &evaluation.results {
        for note in result.metrics.notes.iter().filter(|note| !note.contains("0/1 outcomes only")) {
            about.entry(note).or_default().push(format!("{} of {}", result.outcome, result.policy));
        }
    }
    about.iter().map(|(note, about)| format!("note: {}: {note}\n", about.join(", "))).collect()
}
