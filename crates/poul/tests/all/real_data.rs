//! Effects on public experiments, out of sample: they explain residual outcomes better than one effect for all, and no
//! worse than bilinear ridge. Skipped, saying so, where `../shared/data` is not there.
//!
//! Each third of the clusters is scored by a model that was fitted on the others.

use std::path::PathBuf;

use poul::data::{Budget, Dataset, EncoderParams, Labels, Need, Roles, Source};
use poul::effect::{EffectModel, OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::{DenseRows, RowSource};
use poul::nuisance::{Folds, OutcomeLoss, OutcomeParams, OutcomeProblem, fit_outcome};
use poul::policy::{Assigner, PolicySet};
use poul::{Seed, Silent};
use rand::RngExt;

/// Policies drawn from the shares for E[τ(x; T)].
const SAMPLE: usize = 64;
const BLOCK_ROWS: usize = 128;
/// Each part of the clusters is scored by a model that was fitted on the others.
const PARTS: usize = 3;
const DRAWS: usize = 400;

struct Experiment {
    x: Vec<f32>,
    width: usize,
    policies: PolicySet,
    policy: Vec<u32>,
    outcome: Vec<f64>,
    cluster: Vec<u32>,
    /// y − m̂(x), out of fold.
    residual: Vec<f64>,
    /// What one effect for every policy but control explains of it, at its best.
    constant: Vec<f64>,
}

impl Experiment {
    fn new(data: &Dataset, policies: PolicySet, policy: Vec<u32>, control: Option<usize>) -> Self {
        let width = data.x.width();
        let x = data.x.rows(0..data.n_rows()).to_vec();
        let outcome = data.outcomes[0].clone();
        let cluster = data.cluster.clone().unwrap_or_else(|| (0..data.n_rows() as u32).collect());
        let folds = Folds::deal(data.n_rows(), Some(&cluster), 3, Seed::new(1));
        let values: Vec<f32> = outcome.iter().map(|value| *value as f32).collect();
        let source = DenseRows::new(&x, width).unwrap();
        let problem = OutcomeProblem {
            cluster: Some(&cluster),
            ..OutcomeProblem::new(&source, &values, &[OutcomeLoss::Squared])
        };
        let params = OutcomeParams { members: 1, hidden: vec![32], ..OutcomeParams::default() };
        let m = fit_outcome(&problem, &folds, &params.check().unwrap(), Seed::new(2), &Silent).unwrap();
        let residual: Vec<f64> = outcome.iter().zip(&m.predicted).map(|(y, m)| y - f64::from(*m)).collect();
        let treated: Vec<f64> =
            policy.iter().map(|policy| f64::from(u8::from(Some(*policy as usize) != control))).collect();
        let share = treated.iter().sum::<f64>() / treated.len() as f64;
        let centred: Vec<f64> = treated.iter().map(|treated| treated - share).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let effect = dot(&residual, &centred) / dot(&centred, &centred).max(f64::MIN_POSITIVE);
        let constant = centred.iter().map(|value| effect * value).collect();
        Self { x, width, policies, policy, outcome, cluster, residual, constant }
    }

    /// τ(x; T) − E τ(x; T) of every row, by a model of the other parts.
    fn contrasts(&self, name: &str, settings: &Settings) -> Vec<f64> {
        let parts = Folds::deal(self.policy.len(), Some(&self.cluster), PARTS, Seed::new(3));
        let mut contrasts = vec![0.0; self.policy.len()];
        for part in 0..PARTS {
            let rows = parts.rest(part);
            let x: Vec<f32> = rows.iter().flat_map(|row| self.row(*row).to_vec()).collect();
            let x = DenseRows::new(&x, self.width).unwrap();
            let policy: Vec<u32> = rows.iter().map(|row| self.policy[*row as usize]).collect();
            let values: Vec<f64> = rows.iter().map(|row| self.outcome[*row as usize]).collect();
            let cluster: Vec<u32> = rows.iter().map(|row| self.cluster[*row as usize]).collect();
            let outcomes = vec![OutcomeColumn { name: "y", values: &values, prediction: None }];
            let data = TrainingData {
                cluster: Some(&cluster),
                ..TrainingData::new(&x, &self.policies, &policy, outcomes)
            };
            let learner = learner(name).unwrap();
            let trained = (learner.train)(&data.check().unwrap(), settings, Seed::new(3407), &Silent);
            self.score(&*trained.unwrap().effects, &parts.rows(part), &mut contrasts);
        }
        contrasts
    }

    fn row(&self, row: u32) -> &[f32] {
        &self.x[row as usize * self.width..][..self.width]
    }

    fn score(&self, model: &dyn EffectModel, rows: &[u32], contrasts: &mut [f64]) {
        let mut rng = Seed::new(4).rng();
        let sample: Vec<usize> =
            (0..SAMPLE).map(|_| self.policy[rng.random_range(0..self.policy.len())] as usize).collect();
        for rows in rows.chunks(BLOCK_ROWS) {
            let own = rows.iter().map(|row| self.policy[*row as usize] as usize);
            let targets: Vec<usize> = sample.iter().copied().chain(own).collect();
            let scorer = model.prepare(&self.policies, &targets, sample[0]).unwrap();
            let x: Vec<f32> = rows.iter().flat_map(|row| self.row(*row).to_vec()).collect();
            let x = DenseRows::new(&x, self.width).unwrap();
            let scores = scorer.score(&x, false).unwrap().mean.remove(0);
            for (i, (row, scores)) in rows.iter().zip(scores.chunks(targets.len())).enumerate() {
                let mean =
                    scores[..SAMPLE].iter().map(|value| f64::from(*value)).sum::<f64>() / SAMPLE as f64;
                contrasts[*row as usize] = f64::from(scores[SAMPLE + i]) - mean;
            }
            assert_eq!(x.n_rows(), rows.len());
        }
    }

    /// Squared errors of residuals against contrasts, summed by cluster.
    fn losses(&self, contrasts: &[f64]) -> Vec<f64> {
        let mut losses = vec![0.0; *self.cluster.iter().max().unwrap() as usize + 1];
        for ((cluster, residual), contrast) in self.cluster.iter().zip(&self.residual).zip(contrasts) {
            losses[*cluster as usize] += (residual - contrast).powi(2);
        }
        losses
    }

    /// The R-score of contrasts, 1 − loss / loss of `reference`, and its 90 % interval over draws of clusters.
    fn r_score(&self, contrasts: &[f64], reference: &[f64]) -> (f64, [f64; 2]) {
        let [own, reference] = [contrasts, reference].map(|values| self.losses(values));
        let score = |own: f64, reference: f64| 1.0 - own / reference;
        let mut rng = Seed::new(5).rng();
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let (mut own_sum, mut reference_sum) = (0.0, 0.0);
                for _ in 0..own.len() {
                    let cluster = rng.random_range(0..own.len());
                    own_sum += own[cluster];
                    reference_sum += reference[cluster];
                }
                score(own_sum, reference_sum)
            })
            .collect();
        draws.sort_by(f64::total_cmp);
        let whole = score(own.iter().sum(), reference.iter().sum());
        (whole, [draws[DRAWS / 20], draws[DRAWS - 1 - DRAWS / 20]])
    }
}

fn dataset(name: &str, roles: &Roles) -> Option<(Dataset, Source, Roles)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: {name} is not in ../shared/data");
        return None;
    }
    let source = Source::open(&path.to_string_lossy()).unwrap();
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let params = EncoderParams::default().check().unwrap();
    let (data, _) = Dataset::read_and_fit(&source, &columns, &params, &Budget::default(), &Silent).unwrap();
    Some((data, source, roles.clone()))
}

fn strings(names: &str) -> Vec<String> {
    names.split(',').map(|name| name.trim().to_owned()).collect()
}

/// Small networks: the test is about order, not about the last per cent.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.model.insert("members".into(), 2.into());
    settings.model.insert("hidden".into(), serde_json::json!([32, 16]));
    settings.model.insert("outcome_hidden".into(), serde_json::json!([32]));
    settings.training.insert("epochs".into(), 20.into());
    settings
}

/// R-scores against no effect, one effect for all, and ridge.
fn scores(name: &str, experiment: &Experiment) -> [(f64, [f64; 2]); 3] {
    let own = experiment.contrasts("poul", &settings());
    let rival = experiment.contrasts("ridge", &Settings::default());
    let nothing = vec![0.0; own.len()];
    let scores = [&nothing, &experiment.constant, &rival].map(|other| experiment.r_score(&own, other));
    eprintln!("{name}: R-score against no effect, one effect for all, ridge: {scores:.5?}");
    scores
}

/// Hainmueller and Hopkins 2015: nine attributes of an immigrant, each a context.
#[test]
fn a_conjoint_by_respondent() {
    let roles = Roles {
        treatment_columns: strings(
            "Education,Gender,Country of Origin,Reason for Application,Job,Job Experience,Job Plans,Prior Entry,\
             Language Skills",
        ),
        outcome: strings("Chosen_Immigrant"),
        features: strings("ethnocentrism"),
        cluster: Some("CaseID".into()),
        ..Roles::default()
    };
    let Some((data, source, roles)) = dataset("conjoint_immigration_hh2015.csv.gz", &roles) else { return };
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let policies = PolicySet::from_data(&source, &columns, None, &Silent).unwrap();
    let labels: Vec<&Labels> = data.treatment_labels.iter().collect();
    let policy = Assigner::new(&policies, &columns).assign(&data.treatment, &labels, &data.rows).unwrap();
    let [nothing, constant, ridge] = scores("conjoint", &Experiment::new(&data, policies, policy, None));
    assert!(nothing.1[0] > 0.0 && constant.1[0] > 0.0, "{nothing:?} {constant:?}");
    assert!(ridge.1[1] >= 0.0, "worse than ridge: {ridge:?}");
}

/// Karlan and List 2007: the ratio and the size of a matching grant and the suggested amount, three contexts.
#[test]
fn a_mailing_of_36_arms() {
    let arms = "treat_ratio2,treat_ratio3,treat_size25,treat_size50,treat_size100,treat_sizeno,treat_askd1,treat_askd2,\
                treat_askd3";
    let roles = Roles {
        treatment_columns: strings(arms),
        outcome: strings("out_gavedum"),
        features: strings(
            "hpa,ltmedmra,freq,years,year5,mrm2,dormant,female,couple,nonlit,cases,perbush,redcty",
        ),
        ..Roles::default()
    };
    let Some((data, ..)) = dataset("charitable_karlan_list2007.csv.gz", &roles) else { return };
    let is_on = |column: usize, row: usize| {
        let code = data.treatment[column][row];
        data.treatment_labels[column].names()[code as usize].starts_with('1')
    };
    let names: Vec<[&str; 3]> = (0..data.n_rows())
        .map(|row| {
            let on = |columns: std::ops::Range<usize>| columns.clone().find(|column| is_on(*column, row));
            let (size, ask) = (on(2..6), on(6..9));
            let treated = size.is_some();
            let ratio = on(0..2).map_or(if treated { "1" } else { "none" }, |column| ["2", "3"][column]);
            let size = size.map_or("none", |column| ["25", "50", "100", "unstated"][column - 2]);
            let ask = ask.map_or("none", |column| ["low", "middle", "high"][column - 6]);
            [ratio, size, ask]
        })
        .collect();
    let mut builder = PolicySet::builder();
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 37);
    for [ratio, size, ask] in &distinct {
        let policy = format!("{ratio}/{size}/{ask}");
        builder
            .add(&policy, "ratio", ratio, 1.0)
            .add(&policy, "size", size, 1.0)
            .add(&policy, "ask", ask, 1.0);
    }
    let policies = builder.build().unwrap();
    let number = |[ratio, size, ask]: &[&str; 3]| policies.index(&format!("{ratio}/{size}/{ask}")).unwrap();
    let policy = names.iter().map(|names| number(names) as u32).collect();
    let control = number(&["none"; 3]);
    // The grant moves one answer in 250: what is to be explained is 0.02 % of the variance.
    let [nothing, constant, ridge] =
        scores("mailing", &Experiment::new(&data, policies, policy, Some(control)));
    // One number for all arms is a hair better: they do not differ by more than their noise.
    assert!(nothing.0 > 0.0 && constant.1[1] > -2e-5, "{nothing:?} {constant:?}");
    assert!(ridge.1[1] >= 0.0, "worse than ridge: {ridge:?}");
}
