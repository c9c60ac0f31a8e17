//! The rows that learners are tested on: which policies are compared, and how a learner's effects do on them.

use super::assigned::{AssignedReadings, AssignedTest};
use super::part::{EncodedTable, Part, Setting};
use super::result::Population;
use super::truth::Truth;
use crate::data::{Source, pick};
use crate::effect::{EffectModel, Support};
use crate::evaluate::{Effects, Metric, Outcome, Readings, Scored, ValidParams, arms_are_thin, readings};
use crate::nuisance::SomeRows;
use crate::policy::PolicySet;
use crate::{Error, Progress, Result, Run, Seed, counted};

/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;
/// Fewer rows of a policy cannot be measured.
const FEWEST_ROWS: u64 = 2;
/// The same where arms are thin: a comparison on fewer rows says nothing, and there may be thousands of them.
const FEWEST_THIN_ROWS: u64 = 10;

/// Test rows, ready to be scored by any learner.
pub(crate) struct TestRows<'a> {
    table: &'a EncodedTable,
    part: Part,
    /// The policies that are compared, as indices into the setting's.
    pub(crate) targets: Vec<usize>,
    truth: Option<Truth>,
    /// Each row by its own policy, where that can be measured.
    assigned: Option<AssignedTest>,
    /// Whether most rows have a policy with too few rows to be compared on its own.
    pub(crate) thin_arms: bool,
    /// The populations: their names, and their rows by place in `part`.
    populations: Vec<(Population, Vec<u32>)>,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
}

/// What is asked of the test rows.
pub(crate) struct TestQuestion<'a> {
    /// Policies by name; all that were run on test rows where there is none.
    pub(crate) policies: &'a [String],
    /// Whether policies on atoms that no training row carried are scored.
    pub(crate) allow_unseen: bool,
    /// The expression of the core population.
    pub(crate) core: Option<&'a str>,
    pub(crate) truth: Option<&'a Source>,
    /// Most bytes of effects in memory.
    pub(crate) bytes: u64,
    /// The root of the nuisances' random streams.
    pub(crate) seed: Seed,
}

/// How a learner does on the test rows.
pub(crate) struct TestReadings {
    /// Policies one by one and all together, by population.
    pub(crate) readings: Vec<Vec<Readings>>,
    /// Each row by its own policy, by population.
    pub(crate) assigned: Vec<Vec<AssignedReadings>>,
    /// What the scorer says of the policies.
    pub(crate) notes: Vec<String>,
}

impl<'a> TestRows<'a> {
    /// Chooses the policies and reads the truth. `train` are the rows that learners saw.
    pub(crate) fn new(
        table: &'a EncodedTable,
        rows: Vec<u32>,
        train: &Part,
        setting: &Setting,
        question: &TestQuestion<'_>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let part = table.part(rows);
        let mut notes = Vec::new();
        let tested = part.policy_rows(setting.policies.len());
        let thin_arms = arms_are_thin(&tested, Some(setting.control));
        let targets = targets((&tested, thin_arms), train, setting, question, &mut notes)?;
        let n_columns = targets.len() * part.outcomes.len();
        let needed = (part.n_rows() as u64).saturating_mul(n_columns as u64).saturating_mul(8);
        if needed > question.bytes {
            let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
            let what =
                format!("the effects to compare take {:.1} GiB of {:.1}", gib(needed), gib(question.bytes));
            return Err(Error::usage(what).hint("choose policies with ‹policy›, or raise ‹memory›"));
        }
        let outcomes = &table.dataset.outcome_names;
        let (policies, against) = (&setting.policies, setting.control);
        let truth = question
            .truth
            .map(|source| Truth::read(source, policies, &targets, against, outcomes, &part.table.rows));
        let populations = populations(&part, question.core)?;
        let how = (question.allow_unseen, thin_arms);
        let assigned =
            AssignedTest::new(table, &part, train, setting, how, Run::new(question.seed, progress))?;
        let truth = truth.transpose()?;
        Ok(Self { table, targets, truth, assigned, thin_arms, populations, notes, part })
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.part.n_rows()
    }

    pub(crate) fn populations(&self) -> Vec<Population> {
        self.populations.iter().map(|(population, _)| population.clone()).collect()
    }

    /// The readings of each population.
    pub(crate) fn readings(
        &self,
        effects: &dyn EffectModel,
        setting: &Setting,
        params: &ValidParams,
        progress: &dyn Progress,
    ) -> Result<TestReadings> {
        let (columns, notes) = match self.targets.is_empty() {
            true => (Vec::new(), Vec::new()),
            false => self.scored(effects, setting, progress)?,
        };
        let of_population = |(_, rows): &(Population, Vec<u32>)| match columns.is_empty() {
            true => Ok(Vec::new()),
            false => self.read_population(rows, &columns, setting, params, progress),
        };
        let readings = self.populations.iter().map(of_population).collect::<Result<_>>()?;
        let assigned = match &self.assigned {
            None => Vec::new(),
            Some(assigned) => {
                let rows = (self.table, &self.part, setting);
                let at_hand = (self.targets.as_slice(), columns.as_slice());
                assigned.readings(effects, rows, at_hand, &self.populations, params, progress)?
            }
        };
        Ok(TestReadings { readings, assigned, notes })
    }

    /// For each outcome and target a column of effects, and what the scorer says of the policies.
    fn scored(
        &self,
        effects: &dyn EffectModel,
        setting: &Setting,
        progress: &dyn Progress,
    ) -> Result<(Vec<Vec<f64>>, Vec<String>)> {
        let scorer = effects.prepare(&setting.policies, &self.targets, setting.control)?;
        let (n_targets, n_outcomes) = (self.targets.len(), self.part.outcomes.len());
        let mut columns = vec![Vec::with_capacity(self.n_rows()); n_targets * n_outcomes];
        let all = self.table.x();
        progress.start("Scoring", "rows", Some(self.n_rows() as u64));
        for rows in self.part.rows.chunks((BLOCK_PAIRS / n_targets.max(1)).max(64)) {
            let scores = scorer.score(&SomeRows { x: all, rows }, false)?;
            for (mean, columns) in scores.mean.iter().zip(columns.chunks_mut(n_targets)) {
                for (target, column) in columns.iter_mut().enumerate() {
                    column
                        .extend(mean.iter().skip(target).step_by(n_targets).map(|effect| f64::from(*effect)));
                }
            }
            progress.advance(rows.len() as u64);
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        progress.finish();
        Ok((columns, scorer.notes().to_vec()))
    }

    fn read_population(
        &self,
        rows: &[u32],
        columns: &[Vec<f64>],
        setting: &Setting,
        params: &ValidParams,
        progress: &dyn Progress,
    ) -> Result<Vec<Readings>> {
        let part = &self.part;
        let outcomes: Vec<Vec<f64>> = part.outcomes.iter().map(|values| pick(values, rows)).collect();
        let outcomes: Vec<Outcome<'_>> = outcomes
            .iter()
            .zip(&self.table.dataset.outcome_names)
            .map(|(values, name)| Outcome { name, values, prediction: None })
            .collect();
        let arm = pick(&part.policy, rows);
        let mut values = Vec::with_capacity(columns.len());
        for (place, column) in columns.iter().enumerate() {
            let (outcome, target) = (place / self.targets.len(), place % self.targets.len());
            let counts =
                |row: &usize| [self.targets[target], setting.control].contains(&(arm[*row] as usize));
            let truth = self.truth.as_ref().map(|truth| pick(truth.of(outcome, target), rows));
            // A row without a truth leaves no distance to it: then the comparison goes without.
            let truth =
                truth.filter(|truth| (0..rows.len()).filter(counts).all(|row| truth[row].is_finite()));
            values.push((outcome, self.targets[target], pick(column, rows), truth));
        }
        let effects: Vec<Effects<'_>> = values
            .iter()
            .map(|(outcome, policy, values, truth)| Effects {
                policy: *policy,
                outcome: Some(*outcome),
                values,
                truth: truth.as_deref(),
            })
            .collect();
        let weight = part.weight.as_ref().map(|weight| pick(weight, rows));
        // Row numbers as clusters give every learner the same draws.
        let cluster = part.cluster.as_ref().map_or_else(|| rows.to_vec(), |cluster| pick(cluster, rows));
        let scored = Scored {
            outcomes: &outcomes,
            policies: setting.policies.names(),
            arm: &arm,
            against: setting.control,
            effects: &effects,
            weight: weight.as_deref(),
            cluster: Some(&cluster),
            propensity: None,
        };
        let mut read = readings(&scored, params, progress)?;
        let has_truth = self.truth.is_some();
        for own in read.iter_mut().filter(|own| own.policy.is_some() && own.note.is_none()) {
            let pehe = Metric::compared().position(|metric| metric == Metric::Pehe);
            if has_truth && pehe.is_some_and(|pehe| own.values[pehe].is_none()) {
                own.note = Some("the truth lacks some of the rows: no PEHE".to_owned());
            }
        }
        Ok(read)
    }
}

/// All rows, and the core where there is one.
fn populations(part: &Part, core: Option<&str>) -> Result<Vec<(Population, Vec<u32>)>> {
    let all: Vec<u32> = (0..part.n_rows() as u32).collect();
    let global = Population { name: "global".to_owned(), expression: None, rows: all.len() };
    let mut populations = vec![(global, all)];
    if let Some(text) = core {
        let mask = part.populations.iter().find(|(own, _)| own == text).map(|(_, mask)| mask);
        let Some(mask) = mask else {
            return Err(Error::other(format!("the rows of the population `{text}` were not marked")));
        };
        let rows: Vec<u32> = (0..part.n_rows() as u32).filter(|row| mask[*row as usize]).collect();
        if rows.is_empty() {
            let error = Error::input(format!("no test row belongs to the core population `{text}`"));
            return Err(error.hint("correct ‹core›, or leave it out"));
        }
        let expression = Some(text.to_owned());
        populations.push((Population { name: "core".to_owned(), expression, rows: rows.len() }, rows));
    }
    Ok(populations)
}

/// The policies to compare one by one: those asked for, or those that test rows have. What is left out is told. None only
/// where arms are thin.
fn targets(
    (tested, thin_arms): (&[u64], bool),
    train: &Part,
    setting: &Setting,
    question: &TestQuestion<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<usize>> {
    let policies: &PolicySet = &setting.policies;
    let trained = train.policy_rows(policies.len());
    let together = "policies are measured together, each row by its own policy";
    if tested[setting.control] < FEWEST_ROWS {
        let name = policies.name(setting.control);
        if thin_arms && question.policies.is_empty() {
            notes.push(format!("fewer than 2 test rows have the policy `{name}`: {together}"));
            return Ok(Vec::new());
        }
        let error = Error::input(format!("fewer than 2 test rows have the policy `{name}`"));
        return Err(
            error.hint("others are compared with it: name another one, ‹control=NAME›, or test on more rows")
        );
    }
    let asked: Vec<usize> = match question.policies {
        [] => {
            (0..policies.len()).filter(|policy| *policy != setting.control && tested[*policy] > 0).collect()
        }
        names => names
            .iter()
            .map(|name| policies.require(name).map_err(|error| error.at("‹policy›")))
            .collect::<Result<_>>()?,
    };
    if asked.contains(&setting.control) {
        let name = policies.name(setting.control);
        return Err(Error::usage(format!("`{name}` is compared with itself")).hint("choose another ‹policy›"));
    }
    let fewest = if thin_arms && question.policies.is_empty() { FEWEST_THIN_ROWS } else { FEWEST_ROWS };
    let support = Support::new(policies, &trained);
    let mut targets = Vec::with_capacity(asked.len());
    let mut n_few = 0;
    for policy in asked {
        if tested[policy] < fewest {
            n_few += 1;
            continue;
        }
        match support.of(policies, policy, |_, _| false).require_seen() {
            Err(error) if !question.allow_unseen => notes.push(format!("left out: {error}")),
            _ if !targets.contains(&policy) => targets.push(policy),
            _ => {}
        }
    }
    match n_few {
        0 => {}
        n if fewest > FEWEST_ROWS => {
            let policies = counted(n, "policy has", "policies have");
            notes.push(format!("{policies} fewer than {fewest} test rows: these {together}"));
        }
        n => {
            notes.push(format!("left out: {} with fewer than 2 test rows", counted(n, "policy", "policies")));
        }
    }
    if targets.is_empty() && !thin_arms {
        return Err(Error::input("the test rows have no policy that can be compared")
            .hint("an effect needs two policies; check the treatment column, or see ‹allow_unseen›"));
    }
    targets.sort_unstable();
    Ok(targets)
}
