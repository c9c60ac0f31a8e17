//! Normalised PEHE by tier on simulated worlds: `quality SEEDS METHODS [key=value …]`.
use std::collections::BTreeMap;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use poul::learner::{Centring, Embedding, Params, Problem, fit};
use poul::net::DenseRows;
use poul::nuisance::{Folds, OutcomeParams, Propensity, cross_fit};
use poul::policy::PolicySet;
use poul::simulate::{Simulation, run};
use poul::{Seed, Silent};
use std::path::Path;

const TEST: usize = 3000;
fn read(path: &Path) -> Vec<arrow_array::RecordBatch> {
    ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap().with_batch_size(1 << 20).build().unwrap().map(|b| b.unwrap()).collect()
}
struct Table { x: Vec<f32>, p: usize, policy: Vec<u32>, y: Vec<f64> }
fn table(path: &Path, set: &PolicySet) -> Table {
    use arrow_array::Array;
    let (mut x, mut policy, mut y) = (vec![], vec![], vec![]);
    let mut p = 0;
    for b in read(path) {
        let cols: Vec<_> = b.schema().fields().iter().enumerate().filter(|(_, f)| f.name().starts_with('f') && f.name()[1..].parse::<u32>().is_ok()).map(|(i, _)| b.column(i).as_primitive::<Float32Type>().clone()).collect();
        p = cols.len();
        for r in 0..b.num_rows() { for c in &cols { x.push(if c.is_null(r) { f32::NAN } else { c.value(r) }) } }
        let t = b.column_by_name("policy").unwrap().as_string::<i32>().clone();
        policy.extend((0..b.num_rows()).map(|r| set.index(t.value(r)).unwrap() as u32));
        y.extend(b.column_by_name("y").unwrap().as_primitive::<Float64Type>().values().iter().copied());
    }
    Table { x, p, policy, y }
}
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seeds: Vec<u64> = args[0].split(',').map(|s| s.parse().unwrap()).collect();
    let methods: Vec<&str> = args[1].split(',').collect();
    let mut o: BTreeMap<&str, &str> = BTreeMap::new();
    for a in &args[2..] { let (k, v) = a.split_once('=').unwrap(); o.insert(k, v); }
    let get = |k: &str, d: f64| o.get(k).map_or(d, |v| v.parse().unwrap());
    let scenario = o.get("scenario").unwrap_or(&"long-tail").to_string();
    let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for seed in seeds {
        let dir = std::env::temp_dir().join(format!("poul-quality-{seed}-{scenario}-{}", std::process::id()));
        let sim = Simulation { scenario: scenario.clone(), rows: get("rows", 40000.0) as u64, test_rows: Some(TEST as u64), features: Some(get("features", 40.0) as usize), policies: Some(get("policies", 60.0) as usize), contexts: Some(get("contexts", 12.0) as usize), actions: Some(get("actions", 5.0) as usize), noise: Some(get("noise", 2.0)), seed, ..Default::default() };
        run(&sim.check().unwrap(), &dir, &Silent).unwrap();
        let set = PolicySet::read(&dir.join("policies.toml"), None).unwrap();
        let control = set.index("control").unwrap();
        let nt = set.len();
        let mut train = table(&dir.join("train.parquet"), &set);
        let mut test = table(&dir.join("test.parquet"), &set);
        let p = train.p;
        let n = train.policy.len();
        for j in 0..p {
            let ok: Vec<f64> = (0..n).map(|i| train.x[i * p + j] as f64).filter(|v| !v.is_nan()).collect();
            let m = ok.iter().sum::<f64>() / ok.len() as f64;
            let s = (ok.iter().map(|v| (v - m).powi(2)).sum::<f64>() / ok.len() as f64).sqrt().max(1e-9);
            for t in [&mut train, &mut test] { for i in 0..t.policy.len() { let v = &mut t.x[i * p + j]; *v = if v.is_nan() { 0.0 } else { ((*v as f64 - m) / s).clamp(-5.0, 5.0) as f32 } } }
        }
        let m = train.y.iter().sum::<f64>() / n as f64;
        let s = (train.y.iter().map(|y| (y - m).powi(2)).sum::<f64>() / n as f64).sqrt();
        let y: Vec<f32> = train.y.iter().map(|y| ((y - m) / s) as f32).collect();
        let mut truth = vec![0.0f64; TEST * nt];
        for b in read(&dir.join("truth.parquet")) {
            let pol = b.column_by_name("policy").unwrap().as_string::<i32>().clone();
            let e = b.column_by_name("effect_y").unwrap().as_primitive::<Float64Type>().clone();
            let row = b.column_by_name("row").unwrap();
            let row: Vec<u64> = if let Some(r) = row.as_primitive_opt::<arrow_array::types::UInt64Type>() { r.values().to_vec() } else { row.as_primitive::<arrow_array::types::Int64Type>().values().iter().map(|v| *v as u64).collect() };
            for i in 0..b.num_rows() { truth[row[i] as usize * nt + set.index(pol.value(i)).unwrap()] = e.value(i) }
        }
        std::fs::remove_dir_all(&dir).unwrap();
        let mut counts = vec![0usize; nt];
        for t in &train.policy { counts[*t as usize] += 1 }
        let mut seen: Vec<usize> = (0..nt).filter(|i| *i != control && counts[*i] > 0).collect();
        seen.sort_by_key(|i| std::cmp::Reverse(counts[*i]));
        let mut tier = vec![2; nt]; tier[control] = 9;
        for (r, i) in seen.iter().enumerate() { tier[*i] = usize::from(r >= seen.len().div_ceil(3)) }
        let all: Vec<f64> = truth.iter().enumerate().filter(|(i, _)| i % nt != control).map(|(_, v)| *v).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let sd = (all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / all.len() as f64).sqrt();
        let score = |effects: &[f32]| [0, 1, 2].map(|t| { let (mut e, mut k) = (0.0, 0.0); for (i, (h, tr)) in effects.iter().zip(&truth).enumerate() { if tier[i % nt] == t { e += (*h as f64 * s - tr).powi(2); k += 1.0 } } (e / k as f64).sqrt() / sd });
        let x = DenseRows::new(&train.x, p).unwrap();
        let xt = DenseRows::new(&test.x, p).unwrap();
        let root = Seed::new(3407);
        let t0 = std::time::Instant::now();
        let folds = Folds::deal(n, None, 3, root);
        let (mh, _) = cross_fit(&x, &y, None, None, &folds, &OutcomeParams { members: get("m_members", 2.0) as usize, ..Default::default() }, root.child("m"), &Silent).unwrap();
        let residual: Vec<f32> = y.iter().zip(&mh).map(|(y, m)| y - m).collect();
        let v = residual.iter().map(|r| (*r as f64).powi(2)).sum::<f64>() / n as f64;
        println!("m: residual variance {v:.4} (noise alone {:.4}, sd of y {s:.2}), {:.1} s", (get("noise", 2.0) / s).powi(2), t0.elapsed().as_secs_f64());
        for method in &methods {
            let t0 = std::time::Instant::now();
            let effects = match *method {
                "ridge" => { let r = poul::baseline::fit_ridge(&train.x, p, &set, &train.policy, &residual, root).unwrap(); print!("penalty {} ", r.penalty); r.effects(&test.x, &set, control) }
                "s" => poul::baseline::fit_s_learner(&train.x, p, &set, &train.policy, &y, get("s_members", 6.0) as usize, root, &Silent).unwrap().effects(&test.x, &set, control).unwrap(),
                name => {
                    let mut params = Params { dropout: get("dropout", 0.2) as f32, gate_penalty: get("gate", 1e-3) as f32, members: get("members", 6.0) as usize, decay_g: get("dg", 0.05) as f32, decay_rho: get("dr", 0.05) as f32, decay_phi: get("dp", 0.05) as f32, decay_delta: get("dd", 0.5) as f32, delta_start: get("ds", 0.3) as f32, average: get("average", 0.999) as f32, embedding_dim: get("r", 16.0) as usize, effect_dim: get("d", 16.0) as usize, rho_hidden: get("rh", 32.0) as usize, rho_skip: get("skip", 1.0) > 0.0, learning_rate: get("lr", 2e-3) as f32, ..Default::default() };
                    if let Some(h) = o.get("hidden") { params.hidden = h.split('-').map(|v| v.parse().unwrap()).collect() }
                    params.schedule.patience = get("patience", 8.0) as usize;
                    params.schedule.epochs = get("epochs", 60.0) as usize;
                    if name == "lookup" || name == "id" { params.embedding = Embedding::Lookup }
                    if name == "additive" { params.embedding = Embedding::Additive }
                    if name == "uncentred" { params.centring = Centring::None }
                    let (spec, map): (PolicySet, Vec<usize>) = if name == "id" {
                        let mut b = PolicySet::builder();
                        for i in 0..nt { if counts[i] > 0 { b.add(set.name(i), "policy", set.name(i), 1.0); } }
                        let ids = b.build().unwrap();
                        let map = (0..nt).map(|i| if counts[i] > 0 { ids.index(set.name(i)).unwrap() } else { let d = set.distances(i); let j = (0..nt).filter(|j| counts[*j] > 0).min_by(|a, b| d[*a].total_cmp(&d[*b])).unwrap(); ids.index(set.name(j)).unwrap() }).collect();
                        (ids, map)
                    } else { (set.clone(), (0..nt).collect()) };
                    let policy: Vec<u32> = train.policy.iter().map(|t| map[*t as usize] as u32).collect();
                    let prop = Propensity::shares(&policy, None, spec.len());
                    let f = fit(&Problem { x: &x, policies: &spec, policy: &policy, residual: &residual, weight: None, cluster: None, propensity: &prop }, &params, root.child("fit"), &Silent).unwrap();
                    print!("epochs {} best {} val {:.5} ", f.history.len(), f.best, f.history[f.best].validation.unwrap());
                    let e = f.effects(&xt, &spec, map[control], 0).unwrap();
                    (0..TEST * nt).map(|i| e[i / nt * spec.len() + map[i % nt]]).collect()
                }
            };
            let r = score(&effects);
            println!("[{:.1} s] seed {seed} {method:12} {:.3} {:.3} {:.3}", t0.elapsed().as_secs_f64(), r[0], r[1], r[2]);
            sums.entry(method.to_string()).or_default().extend(r);
        }
    }
    for (k, v) in sums { let n = v.len() / 3; let f = |t: usize| (0..n).map(|i| v[i * 3 + t]).sum::<f64>() / n as f64; println!("MEAN {k:12} {:.3} {:.3} {:.3}", f(0), f(1), f(2)); }
}
