//! Average effects of policies that were run and of policies that were not: errors, intervals, components.
//!
//! Averages rest on the first stage alone, so that stage 2 is cut short and many worlds can be seen.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use poul::data::{Budget, Dataset, Design, EncoderParams, Need, Roles, Source};
use poul::effect::{AverageEstimate, OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::nuisance::{ObservedRows, evaluated_nuisances};
use poul::policy::{Assigner, PolicySet};
use poul::simulate::{Simulation, run};
use poul::{Result, Run, Seed, Silent};

const LEVEL: f64 = 0.9;

/// What worlds are made of.
#[derive(Clone)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) scenario: &'static str,
    pub(super) rows: u64,
    pub(super) features: usize,
    /// Policies, contexts and actions of a made-up world; those of the scenario otherwise.
    pub(super) sizes: Option<(usize, usize, usize)>,
    pub(super) noise: Option<f64>,
    pub(super) design: Design,
}

/// Prints a table of shapes × outcomes × (run, rare, never run, components).
pub(super) fn table(shapes: &[Shape], seeds: std::ops::RangeInclusive<u64>, whole: bool) -> Result<()> {
    println!(
        "shape                     outcome  policies     n   error   plain     dr  bias  spread  covered  width"
    );
    for shape in shapes {
        let mut found: BTreeMap<(String, &'static str), Tally> = BTreeMap::new();
        for seed in seeds.clone() {
            world(shape, seed, whole, &mut found)?;
        }
        for ((outcome, tier), tally) in &found {
            println!("{:24}  {outcome:7}  {tier:10} {}", shape.name, tally.line());
        }
    }
    Ok(())
}

/// Errors of averages, in standard deviations of the true averages over policies.
#[derive(Default)]
struct Tally {
    n: f64,
    squares: f64,
    /// The same for the difference of mean outcomes, and for the doubly robust one, of mean residuals of a cross-fitted ridge.
    simple: [f64; 2],
    n_simple: f64,
    z: f64,
    z_squares: f64,
    covered: f64,
    width: f64,
}

impl Tally {
    fn add(&mut self, estimate: &AverageEstimate, simple: Option<[f64; 2]>, truth: f64, unit: f64) {
        let error = estimate.effect - truth;
        let [low, high] = estimate.interval(LEVEL);
        self.n += 1.0;
        self.squares += (error / unit).powi(2);
        if let Some(simple) = simple {
            for (sum, simple) in self.simple.iter_mut().zip(simple) {
                *sum += ((simple - truth) / unit).powi(2);
            }
            self.n_simple += 1.0;
        }
        self.z += error / estimate.se;
        self.z_squares += (error / estimate.se).powi(2);
        self.covered += f64::from(u8::from(low <= truth && truth <= high));
        self.width += (high - low) / unit;
    }

    fn line(&self) -> String {
        let n = self.n.max(1.0);
        let bias = self.z / n;
        let simple = self.simple.map(|sum| match self.n_simple > 0.0 {
            true => format!("{:6.3}", (sum / self.n_simple).sqrt()),
            false => "     –".to_owned(),
        });
        let simple = simple.join("  ");
        format!(
            "{:4.0}  {:6.3}  {simple}  {:+.2}  {:6.2}  {:7.3}  {:5.2}",
            self.n,
            (self.squares / n).sqrt(),
            bias,
            (self.z_squares / n - bias * bias).max(0.0).sqrt(),
            self.covered / n,
            self.width / n
        )
    }
}

fn world(
    shape: &Shape,
    seed: u64,
    whole: bool,
    found: &mut BTreeMap<(String, &'static str), Tally>,
) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("poul-averages-{}", std::process::id()));
    let simulation = Simulation {
        scenario: shape.scenario.to_owned(),
        rows: shape.rows,
        test_rows: Some(1),
        truth_rows: Some(1),
        features: Some(shape.features),
        policies: shape.sizes.map(|sizes| sizes.0),
        contexts: shape.sizes.map(|sizes| sizes.1),
        actions: shape.sizes.map(|sizes| sizes.2),
        noise: shape.noise,
        seed,
    };
    run(&simulation.check()?, &folder, &Silent)?;
    let result = measure(shape, &folder, whole, found);
    std::fs::remove_dir_all(&folder).map_err(|error| poul::Error::output(&folder, error))?;
    result
}

fn measure(
    shape: &Shape,
    folder: &Path,
    whole: bool,
    found: &mut BTreeMap<(String, &'static str), Tally>,
) -> Result<()> {
    let open = |name: &str| Source::open(&folder.join(name).to_string_lossy());
    let policies = PolicySet::read(&folder.join("policies.toml"), None)?;
    let (source, truth) = (open("train.parquet")?, open("truth.parquet")?);
    let outcomes: Vec<String> = truth
        .column_names()
        .iter()
        .filter_map(|name| name.strip_prefix("effect_").map(str::to_owned))
        .collect();
    let names = source.column_names();
    let named = |name: &str| names.contains(&name).then(|| name.to_owned());
    let roles = Roles {
        outcome: outcomes.clone(),
        stratum: named("stratum"),
        time: named("month"),
        design: shape.design,
        ..Roles::default()
    };
    let columns = roles.check(source.schema(), Need::FIT)?;
    let (encoder, budget) = (EncoderParams::default().check()?, Budget::default());
    let (train, _) = Dataset::read_and_fit(&source, &columns, &encoder, &budget, &Silent)?;
    let policy = Assigner::new(&policies, &columns).assign_table(&train)?;
    let mut rows = vec![0_u64; policies.len()];
    policy.iter().for_each(|policy| rows[*policy as usize] += 1);
    let control = policies.require("control")?;

    let mut settings = Settings::default();
    if !whole {
        settings.training.insert("epochs".to_owned(), 1.into());
        settings.model.insert("members".to_owned(), 2.into());
    }
    let data =
        TrainingData::of(&train, &train.x, &policies, &policy, shape.design, Some(control))?.check()?;
    let trained = (learner("poul")?.train)(&data, &settings, Run::new(Seed::new(3407), &Silent))?;
    let targets: Vec<usize> = (0..policies.len()).filter(|policy| *policy != control).collect();
    let Some(averages) = trained.effects.averages(&policies, &targets, control, false)? else {
        return Err(poul::Error::other("no averages"));
    };
    let names: Vec<String> = policies.names().to_vec();
    let observed = ObservedRows {
        x: Some(&train.x),
        outcomes: outcomes
            .iter()
            .zip(&train.outcomes)
            .map(|(name, values)| OutcomeColumn { name, values, prediction: None })
            .collect(),
        ..ObservedRows::new(&names, &policy)
    };
    let nuisances = evaluated_nuisances(&observed, Run::new(Seed::new(3407), &Silent))?;
    let mut run_order: Vec<usize> = targets.iter().copied().filter(|policy| rows[*policy] > 0).collect();
    run_order.sort_by_key(|policy| std::cmp::Reverse(rows[*policy]));
    let n_frequent = run_order.len().div_ceil(3);
    for (outcome, name) in outcomes.iter().enumerate() {
        let truth = true_means(folder, name, &policies)?;
        let y = &train.outcomes[outcome];
        let residuals: Option<Vec<f64>> = nuisances.predictions[outcome]
            .as_ref()
            .map(|predicted| y.iter().zip(predicted).map(|(y, predicted)| y - predicted).collect());
        let plain = arm_means(&policy, y, policies.len());
        let robust = arm_means(&policy, residuals.as_deref().unwrap_or(y), policies.len());
        let mean = targets.iter().map(|policy| truth[*policy]).sum::<f64>() / targets.len() as f64;
        let unit = targets.iter().map(|policy| (truth[*policy] - mean).powi(2)).sum::<f64>();
        let unit = (unit / targets.len() as f64).sqrt();
        for (place, target) in targets.iter().enumerate() {
            let tier = match run_order.iter().position(|other| other == target) {
                None => "never run",
                Some(rank) if rank < n_frequent => "frequent",
                Some(_) => "rare",
            };
            let simple = (rows[*target] > 0 && shape.design == Design::Randomized)
                .then(|| [&plain, &robust].map(|means| means[*target] - means[control]));
            let estimate = averages[outcome].estimates[place];
            found.entry((name.clone(), tier)).or_default().add(&estimate, simple, truth[*target], unit);
        }
    }
    Ok(())
}

fn arm_means(policy: &[u32], values: &[f64], n_policies: usize) -> Vec<f64> {
    let (mut sums, mut counts) = (vec![0.0; n_policies], vec![0.0; n_policies]);
    policy.iter().zip(values).for_each(|(policy, value)| {
        sums[*policy as usize] += value;
        counts[*policy as usize] += 1.0;
    });
    sums.iter().zip(counts).map(|(sum, count)| sum / count).collect()
}

/// The mean true effect of every policy over the training rows.
fn true_means(folder: &Path, outcome: &str, policies: &PolicySet) -> Result<Vec<f64>> {
    let source = Source::open(&folder.join("averages.csv").to_string_lossy())?;
    let mut means = vec![0.0; policies.len()];
    for batch in source.batches(&["policy", "outcome", "train"], 1 << 16)? {
        let batch = batch?;
        let (name, of) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        let mean = batch.column(2).as_primitive::<Float64Type>();
        for row in (0..batch.num_rows()).filter(|row| of.value(*row) == outcome) {
            means[policies.require(name.value(row))?] = mean.value(row);
        }
    }
    Ok(means)
}
