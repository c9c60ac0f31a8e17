//! The hot kernels, each run a given number of times on one thread: what the instruction guard counts.
//!
//! `hot_kernels KERNEL TIMES`, where KERNEL is `train` (a step of training at 64 features, four shards), `score` (256 rows
//! for 20 policies by an ensemble) or `measure` (a bootstrap draw of every metric on 4,000 rows). What a kernel costs is the
//! difference between two numbers of times, so that setting up counts for nothing.

use poul::effect::{OutcomeColumn, Settings, TrainingData};
use poul::evaluate::{Bootstrap, Effects, Outcome, Params, Scored, evaluate};
use poul::model::learner;
use poul::net::{
    Activation, AdamParams, Batch, DenseRows, Init, Layout, Mlp, Network, Tape, Trainer, TrainerParams, Var,
};
use poul::policy::PolicySet;
use poul::{Error, Result, Run, Seed, Silent};
use rand::RngExt;

const N_FEATURES: usize = 64;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wrong = || Error::usage("which kernel, and how often?").hint("hot_kernels train|score|measure TIMES");
    let [kernel, times] = args.as_slice() else { return Err(wrong()) };
    let times: usize = times.parse().map_err(|_| wrong())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| Error::other(error.to_string()))?;
    pool.install(|| match kernel.as_str() {
        "train" => train(times),
        "score" => score(times),
        "measure" => measure(times),
        _ => Err(wrong()),
    })
}

struct Regression<'d> {
    mlp: Mlp,
    outcome: &'d [f32],
}

impl Network for Regression<'_> {
    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let x = tape.features();
        let prediction = self.mlp.forward(tape, x);
        let outcome = tape.column(batch.pick(self.outcome));
        tape.squared_loss(prediction, outcome, None, batch.scale())
    }
}

fn train(times: usize) -> Result<()> {
    let (x, outcome) = numbers(512);
    let mut layout = Layout::builder();
    let group = layout.group("m");
    let widths = [N_FEATURES, 128, 64, 1];
    let mlp = Mlp::new(&mut layout, "m", &widths, Activation::Elu, Init::Uniform, group).dropout(0.2);
    let shape = TrainerParams::default();
    let adam = AdamParams::default().check()?;
    let mut trainer = Trainer::new(layout.finish()?, adam, shape, Seed::new(1))?;
    let network = Regression { mlp, outcome: &outcome };
    let rows: Vec<u32> = (0..512).collect();
    let source = DenseRows::new(&x, N_FEATURES)?;
    for _ in 0..times {
        trainer.step(&source, &rows, &network)?;
    }
    Ok(())
}

fn score(times: usize) -> Result<()> {
    let (x, outcome) = numbers(256);
    let mut policies = PolicySet::builder();
    for policy in 0..20 {
        for context in 0..6 {
            let action = format!("a{}", (policy * (context + 3) + policy / 4) % 5);
            policies.add(&format!("p{policy:02}"), &format!("s{context}"), &action, 1.0);
        }
    }
    let policies = policies.build()?;
    // A model of few rows scores as fast as any other.
    let policy: Vec<u32> = (0..40).map(|row| row % 20).collect();
    let outcome: Vec<f64> = outcome[..40].iter().map(|value| f64::from(*value)).collect();
    let source = DenseRows::new(&x, N_FEATURES)?;
    let few = DenseRows::new(&x[..40 * N_FEATURES], N_FEATURES)?;
    let outcomes = vec![OutcomeColumn { name: "y", values: &outcome, prediction: Some(&outcome) }];
    let data = TrainingData::new(&few, &policies, &policy, outcomes).check()?;
    let mut settings = Settings::default();
    settings.model.insert("members".to_owned(), 2.into());
    settings.training.insert("epochs".to_owned(), 1.into());
    let trained = (learner("poul")?.train)(&data, &settings, Run::new(Seed::new(1), &Silent))?;
    let targets: Vec<usize> = (0..20).collect();
    let scorer = trained.effects.prepare(&policies, &targets, 0)?;
    for _ in 0..times {
        std::hint::black_box(scorer.score(&source, false)?);
    }
    Ok(())
}

fn measure(times: usize) -> Result<()> {
    let (x, outcome) = numbers(4000);
    let column = |at: usize| x.chunks(N_FEATURES).map(|row| f64::from(row[at])).collect::<Vec<f64>>();
    let arm: Vec<u32> = column(0).iter().map(|value| u32::from(*value > 0.0)).collect();
    let outcome: Vec<f64> = outcome.iter().map(|value| f64::from(*value)).collect();
    let effects = column(1);
    let table = Scored {
        outcomes: &[Outcome { name: "y", values: &outcome, prediction: None }],
        policies: &["control".to_owned(), "t".to_owned()],
        arm: &arm,
        against: 0,
        effects: &[Effects { policy: 1, outcome: None, values: &effects, truth: None }],
        weight: None,
        cluster: None,
        propensity: None,
    };
    let bootstrap = Bootstrap { draws: times, level: 0.9, seed: Seed::new(1) };
    std::hint::black_box(evaluate(&table, &Params { bootstrap, ..Params::default() }.check()?, &Silent)?);
    Ok(())
}

/// Rows of features, and an outcome.
fn numbers(n_rows: usize) -> (Vec<f32>, Vec<f32>) {
    let mut rng = Seed::new(7).rng();
    let x: Vec<f32> = (0..n_rows * N_FEATURES).map(|_| rng.random_range(-1.7_f32..1.7)).collect();
    let outcome = x.chunks(N_FEATURES).map(|row| row[0] * row[1] + row[2]).collect();
    (x, outcome)
}
