//! Public experiments, read from `../shared/data`, and how well effects explain them out of sample.
//!
//! Each third of the people, or of the policies, is scored by a model that was fitted on the others.

use std::path::Path;

use poul::data::{Budget, Dataset, EncoderParams, Need, Roles, Source};
use poul::effect::{EffectModel, OutcomeColumn, Settings, TrainingData};
use poul::model::learner;
use poul::net::{DenseRows, RowSource};
use poul::nuisance::{Folds, OutcomeLoss, OutcomeParams, OutcomeProblem, fit_outcome};
use poul::policy::{Assigner, PolicySet};
use poul::{Result, Run, Seed, Silent};
use rand::RngExt;

/// Policies drawn from the shares for E[τ(x; T)].
const SAMPLE: usize = 64;
const BLOCK_ROWS: usize = 128;
const PARTS: usize = 3;
const DRAWS: usize = 400;

/// Who is held out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldOut {
    People,
    /// Policies as a whole; people of control are dealt.
    Policies,
}

pub(crate) struct Experiment {
    x: Vec<f32>,
    width: usize,
    policies: PolicySet,
    policy: Vec<u32>,
    control: Option<usize>,
    outcome: Vec<f64>,
    /// An outcome that is there to teach.
    auxiliary: Option<Vec<f64>>,
    cluster: Vec<u32>,
    /// y − m̂(x), out of fold.
    residual: Vec<f64>,
    /// What one effect for every policy but control explains of it, at its best.
    pub(crate) constant: Vec<f64>,
}

impl Experiment {
    /// Of the first outcome; a second one teaches.
    fn new(data: &Dataset, policies: PolicySet, policy: Vec<u32>, control: Option<usize>) -> Result<Self> {
        let width = data.x.width();
        let x = data.x.rows(0..data.n_rows()).to_vec();
        let outcome = data.outcomes[0].clone();
        let cluster = data.cluster.clone().unwrap_or_else(|| (0..data.n_rows() as u32).collect());
        let folds = Folds::deal(data.n_rows(), Some(&cluster), 3, Seed::new(1));
        let values: Vec<f32> = outcome.iter().map(|value| *value as f32).collect();
        let source = DenseRows::new(&x, width)?;
        let problem = OutcomeProblem {
            cluster: Some(&cluster),
            ..OutcomeProblem::new(&source, &values, &[OutcomeLoss::Squared])
        };
        let params = OutcomeParams { members: 1, hidden: vec![32], ..OutcomeParams::default() };
        let m = fit_outcome(&problem, &folds, &params.check()?, Run::new(Seed::new(2), &Silent))?;
        let residual: Vec<f64> = outcome.iter().zip(&m.predicted).map(|(y, m)| y - f64::from(*m)).collect();
        let treated: Vec<f64> =
            policy.iter().map(|policy| f64::from(u8::from(Some(*policy as usize) != control))).collect();
        let share = treated.iter().sum::<f64>() / treated.len() as f64;
        let centred: Vec<f64> = treated.iter().map(|treated| treated - share).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let effect = dot(&residual, &centred) / dot(&centred, &centred).max(f64::MIN_POSITIVE);
        let constant = centred.iter().map(|value| effect * value).collect();
        let auxiliary = data.outcomes.get(1).cloned();
        Ok(Self { x, width, policies, policy, control, outcome, auxiliary, cluster, residual, constant })
    }

    /// τ(x; T) − E τ(x; T) of every row, by a model of the other parts.
    pub(crate) fn contrasts(&self, name: &str, settings: &Settings, held_out: HeldOut) -> Result<Vec<f64>> {
        let parts = self.parts(held_out);
        let mut contrasts = vec![0.0; self.policy.len()];
        for part in 0..PARTS {
            let rows = parts.rest(part);
            let x: Vec<f32> = rows.iter().flat_map(|row| self.row(*row).to_vec()).collect();
            let x = DenseRows::new(&x, self.width)?;
            let policy: Vec<u32> = rows.iter().map(|row| self.policy[*row as usize]).collect();
            let of_rows =
                |all: &Vec<f64>| -> Vec<f64> { rows.iter().map(|row| all[*row as usize]).collect() };
            let (values, teaching) = (of_rows(&self.outcome), self.auxiliary.as_ref().map(of_rows));
            let cluster: Vec<u32> = rows.iter().map(|row| self.cluster[*row as usize]).collect();
            let column = |name, values| OutcomeColumn { name, values, prediction: None };
            let mut data = TrainingData {
                cluster: Some(&cluster),
                control: self.control,
                ..TrainingData::new(&x, &self.policies, &policy, vec![column("y", &values)])
            };
            data.auxiliary = teaching.iter().map(|values| column("teaching", values)).collect();
            let trained =
                (learner(name)?.train)(&data.check()?, settings, Run::new(Seed::new(3407), &Silent))?;
            self.score(&*trained.effects, &parts.rows(part), &mut contrasts)?;
        }
        Ok(contrasts)
    }

    fn parts(&self, held_out: HeldOut) -> Folds {
        let n_rows = self.policy.len();
        let deal = |cluster: &[u32]| Folds::deal(n_rows, Some(cluster), PARTS, Seed::new(3));
        match held_out {
            HeldOut::People => deal(&self.cluster),
            HeldOut::Policies => {
                let first_free = self.policies.len() as u32;
                let own = |(row, policy): (usize, &u32)| {
                    let is_control = Some(*policy as usize) == self.control;
                    if is_control { first_free + row as u32 } else { *policy }
                };
                deal(&self.policy.iter().enumerate().map(own).collect::<Vec<_>>())
            }
        }
    }

    fn row(&self, row: u32) -> &[f32] {
        &self.x[row as usize * self.width..][..self.width]
    }

    fn score(&self, model: &dyn EffectModel, rows: &[u32], contrasts: &mut [f64]) -> Result<()> {
        let mut rng = Seed::new(4).rng();
        let sample: Vec<usize> =
            (0..SAMPLE).map(|_| self.policy[rng.random_range(0..self.policy.len())] as usize).collect();
        for rows in rows.chunks(BLOCK_ROWS) {
            let own = rows.iter().map(|row| self.policy[*row as usize] as usize);
            let targets: Vec<usize> = sample.iter().copied().chain(own).collect();
            let scorer = model.prepare(&self.policies, &targets, sample[0])?;
            let x: Vec<f32> = rows.iter().flat_map(|row| self.row(*row).to_vec()).collect();
            let x = DenseRows::new(&x, self.width)?;
            let scores = scorer.score(&x, false)?.mean.remove(0);
            for (i, (row, scores)) in rows.iter().zip(scores.chunks(targets.len())).enumerate() {
                let mean =
                    scores[..SAMPLE].iter().map(|value| f64::from(*value)).sum::<f64>() / SAMPLE as f64;
                contrasts[*row as usize] = f64::from(scores[SAMPLE + i]) - mean;
            }
            assert_eq!(x.n_rows(), rows.len());
        }
        Ok(())
    }

    /// Squared errors of residuals against contrasts, summed by cluster.
    fn losses(&self, contrasts: &[f64]) -> Vec<f64> {
        let mut losses = vec![0.0; self.cluster.iter().max().map_or(0, |last| *last as usize + 1)];
        for ((cluster, residual), contrast) in self.cluster.iter().zip(&self.residual).zip(contrasts) {
            losses[*cluster as usize] += (residual - contrast).powi(2);
        }
        losses
    }

    /// The R-score of contrasts, 1 − loss / loss of `reference`, and its 90 % interval over draws of clusters.
    pub(crate) fn r_score(&self, contrasts: &[f64], reference: &[f64]) -> (f64, [f64; 2]) {
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

/// The table and where it came from; none, saying so, where it is not there.
fn dataset(name: &str, roles: &Roles) -> Result<Option<(Dataset, Source)>> {
    // Beside the repository, however deep in it the crate is that reads them.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let Some(path) = above.map(|dir| dir.join("shared/data").join(name)).find(|path| path.exists()) else {
        eprintln!("SKIPPED: {name} is not in ../shared/data");
        return Ok(None);
    };
    let source = Source::open(&path.to_string_lossy())?;
    let columns = roles.check(source.schema(), Need::FIT)?;
    let params = EncoderParams::default().check()?;
    let (data, _) = Dataset::read_and_fit(&source, &columns, &params, &Budget::default(), &Silent)?;
    Ok(Some((data, source)))
}

fn strings(names: &str) -> Vec<String> {
    names.split(',').map(|name| name.trim().to_owned()).collect()
}

/// Hainmueller and Hopkins 2015: nine attributes of an immigrant, each a context; people are respondents.
pub(crate) fn conjoint() -> Result<Option<Experiment>> {
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
    let Some((data, source)) = dataset("conjoint_immigration_hh2015.csv.gz", &roles)? else {
        return Ok(None);
    };
    let columns = roles.check(source.schema(), Need::FIT)?;
    let policies = PolicySet::from_data(&source, &columns, None, &Silent)?;
    let policy = Assigner::new(&policies, &columns).assign_table(&data)?;
    Experiment::new(&data, policies, policy, None).map(Some)
}

/// Karlan and List 2007: the ratio and the size of a matching grant and the suggested amount, three contexts; who gave.
pub(crate) fn charity_mail() -> Result<Option<Experiment>> {
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
    let Some((data, _)) = dataset("charitable_karlan_list2007.csv.gz", &roles)? else { return Ok(None) };
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
    let policies = builder.build()?;
    let number = |[ratio, size, ask]: &[&str; 3]| policies.require(&format!("{ratio}/{size}/{ask}"));
    let policy = names.iter().map(|names| number(names).map(|number| number as u32));
    let policy = policy.collect::<Result<Vec<u32>>>()?;
    let control = number(&["none"; 3])?;
    Experiment::new(&data, policies, policy, Some(control)).map(Some)
}

/// Gerber, Green and Larimer 2008: mailers before an election, each with the messages of the one before; who voted.
pub(crate) fn social_pressure() -> Result<Option<Experiment>> {
    const MESSAGES: [&str; 4] = ["duty", "watched", "own record", "neighbours' records"];
    const MAILERS: [&str; 5] = ["Control", "Civic Duty", "Hawthorne", "Self", "Neighbors"];
    let roles = Roles {
        // Who voted is a word, too: it is read beside the treatment, and stands in for the household's size below.
        treatment_columns: strings("treatment,voted"),
        outcome: strings("hh_size"),
        features: strings("sex,yob,g2000,g2002,p2000,p2002,p2004,numberofnames,p2004_mean,g2004_mean"),
        cluster: Some("hh_id".into()),
        ..Roles::default()
    };
    let Some((mut data, _)) = dataset("gotv_social_pressure2008.csv.gz", &roles)? else { return Ok(None) };
    let label = |column: usize, row: usize| {
        data.treatment_labels[column].names()[data.treatment[column][row] as usize].trim()
    };
    let mailer = |row: usize| MAILERS.iter().position(|name| *name == label(0, row)).unwrap_or(0) as u32;
    let voted: Vec<f64> = (0..data.n_rows()).map(|row| f64::from(u8::from(label(1, row) == "Yes"))).collect();
    let policy: Vec<u32> = (0..data.n_rows()).map(mailer).collect();
    let mut builder = PolicySet::builder();
    for (number, mailer) in MAILERS.iter().enumerate() {
        for (place, message) in MESSAGES.iter().enumerate() {
            builder.add(mailer, message, if place < number { "said" } else { "not said" }, 1.0);
        }
    }
    data.table.outcomes = vec![voted];
    of_arms(&data, &builder.build()?, &MAILERS, &policy)
}

/// Hillstrom's e-mail test: one outcome, or one and another that teaches.
pub(crate) fn hillstrom(outcomes: &str) -> Result<Option<Experiment>> {
    const ARMS: [&str; 3] = ["No E-Mail", "Mens E-Mail", "Womens E-Mail"];
    let roles = Roles {
        treatment_columns: strings("segment"),
        outcome: strings(outcomes),
        features: strings("recency,history,mens,womens,zip_code,newbie,channel"),
        ..Roles::default()
    };
    let Some((data, _)) = dataset("hillstrom.csv.gz", &roles)? else { return Ok(None) };
    let names = data.treatment_labels[0].names();
    let arm = |code: &u32| ARMS.iter().position(|name| **name == *names[*code as usize]).unwrap_or(0) as u32;
    let policy: Vec<u32> = data.treatment[0].iter().map(arm).collect();
    let mut builder = PolicySet::builder();
    ARMS.iter().for_each(|name| {
        builder.add(name, "mail", name, 1.0);
    });
    of_arms(&data, &builder.build()?, &ARMS, &policy)
}

/// Rows whose policies are numbers of `arms`, the first of which is control.
fn of_arms(data: &Dataset, policies: &PolicySet, arms: &[&str], arm: &[u32]) -> Result<Option<Experiment>> {
    let place: Vec<usize> = arms.iter().filter_map(|name| policies.index(name)).collect();
    let policy = arm.iter().map(|arm| place[*arm as usize] as u32).collect();
    Experiment::new(data, policies.clone(), policy, Some(place[0])).map(Some)
}
