//! Times the paper's AUUC, its bootstrap and scikit-uplift's Qini AUC on one thread, on rows that `tests/metrics/bench.py` can be given too.
//!
//! `cargo run --release -p benches --bin bench_metrics -- [ROWS] [FOLDER]`: with a folder, the rows are read from its
//! little-endian `score.f64`, `outcome.f64` and `treated.u8`, as bench.py writes them. With `--all`, every metric of
//! an evaluation is also timed.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use poul::evaluate::{
    Bootstrap, Effects, Outcome, Params, Ranked, Sample, Scored, auuc, evaluate, qini_auc_sklift,
};
use poul::{Seed, Silent};
use rand::RngExt;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = arguments.iter().any(|argument| argument == "--all");
    arguments.retain(|argument| argument != "--all");
    let n_rows: usize = arguments.first().map_or(Ok(5_000_000), |rows| rows.parse())?;
    let (score, outcome, treated) = match arguments.get(1) {
        Some(folder) => read_rows(Path::new(folder))?,
        None => draw_rows(n_rows),
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;

    let started = Instant::now();
    let sample = Sample::new(&score, &outcome, &treated)?;
    let ranked = Ranked::new(&sample);
    let sorted = started.elapsed().as_secs_f64();
    let value = auuc(&ranked);
    let auuc_seconds = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let qini = qini_auc_sklift(&Ranked::new(&Sample::new(&score, &outcome, &treated)?), true);
    let qini_seconds = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let interval = Bootstrap::default().interval(&ranked, &Silent, |rows| auuc(rows))?;
    let bootstrap_seconds = started.elapsed().as_secs_f64();
    let mut report = json!({
        "rows": score.len(),
        "auuc": value,
        "auuc_interval": interval,
        "sort_seconds": sorted,
        "auuc_seconds": auuc_seconds,
        "qini_auc_sklift": qini,
        "qini_auc_sklift_seconds": qini_seconds,
        "bootstrap_200_seconds": bootstrap_seconds,
    });
    if all {
        let started = Instant::now();
        let arm: Vec<u32> = treated.iter().map(|treated| u32::from(*treated)).collect();
        let table = Scored {
            outcomes: &[Outcome { name: "y", values: &outcome, prediction: None }],
            policies: &["control".to_owned(), "treated".to_owned()],
            arm: &arm,
            against: 0,
            effects: &[Effects { policy: 1, outcome: None, values: &score, truth: None }],
            weight: None,
            cluster: None,
            propensity: None,
        };
        let draws = 20;
        let bootstrap = Bootstrap { draws, ..Bootstrap::default() };
        evaluate(&table, &Params { bootstrap, ..Params::default() }.check()?, &Silent)?;
        report["evaluate_20_draws_seconds"] = json!(started.elapsed().as_secs_f64());
    }
    println!("{report:#}");
    Ok(())
}

type Columns = (Vec<f64>, Vec<f64>, Vec<bool>);

fn draw_rows(n_rows: usize) -> Columns {
    let mut rng = Seed::new(3407).child("bench").rng();
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n_rows {
        let score: f64 = rng.random_range(-0.05..0.1);
        let treated = rng.random_range(0..2) == 1;
        let level = 0.1 + if treated { score } else { 0.0 };
        columns.0.push(score);
        columns.1.push(f64::from(u8::from(rng.random_range(0.0..1.0) < level)));
        columns.2.push(treated);
    }
    columns
}

fn read_rows(folder: &Path) -> Result<Columns, Box<dyn Error>> {
    let numbers = |name: &str| -> Result<Vec<f64>, Box<dyn Error>> {
        let bytes = std::fs::read(folder.join(name))?;
        let (chunks, _) = bytes.as_chunks::<8>();
        Ok(chunks.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
    };
    let treated = std::fs::read(folder.join("treated.u8"))?.into_iter().map(|flag| flag != 0).collect();
    Ok((numbers("score.f64")?, numbers("outcome.f64")?, treated))
}
