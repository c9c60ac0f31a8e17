//! POUL on names: each policy is one atom of its own, so nothing carries over from policy to policy. A policy that was
//! never run is taken for the nearest that was, by d_Π.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::{
    EffectModel, Scorer, Scores, Settings, Tensor, Tensors, Trained, TrainingData, ValidTrainingData,
};
use crate::learn::Learner;
use crate::learn::poul;
use crate::net::RowSource;
use crate::policy::PolicySet;
use crate::stored::{damaged, read_stored, store};
use crate::{Result, Run};

/// The learner.
pub(crate) const POUL_ID: Learner = Learner {
    name: "poul-id",
    summary: "poul on the names of policies instead of their atoms",
    settle: poul::settle,
    train,
    load,
};

fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    let mass = data.policy_mass();
    let known = (0..mass.len()).filter(|policy| mass[*policy] > 0.0);
    let known: Vec<String> = known.map(|policy| data.policies.name(policy).to_owned()).collect();
    // Sets are in order of names: the same names have the same numbers.
    let names = by_name(data.policies.names())?;
    let data = TrainingData { policies: &names, ..TrainingData::clone(data) }.check()?;
    let Trained { effects, history, notes } = poul::train(&data, settings, run)?;
    Ok(Trained { effects: Box::new(PoulId { poul: effects, run: known }), history, notes })
}

fn load(manifest: &Value, tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    let Manifest { poul, run } = read_stored(manifest)?;
    if run.is_empty() {
        return Err(damaged("the model knows no policies"));
    }
    Ok(Box::new(PoulId { poul: poul::load(&poul, tensors)?, run }))
}

/// Policies whose only atom is their name.
fn by_name(names: &[String]) -> Result<PolicySet> {
    let mut builder = PolicySet::builder();
    for name in names {
        builder.add(name, "policy", name, 1.0);
    }
    builder.build()
}

struct PoulId {
    poul: Box<dyn EffectModel>,
    /// The policies that were run.
    run: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    poul: Value,
    run: Vec<String>,
}

impl EffectModel for PoulId {
    fn outcomes(&self) -> &[String] {
        self.poul.outcomes()
    }

    fn n_features(&self) -> usize {
        self.poul.n_features()
    }

    fn prepare<'m>(
        &'m self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Box<dyn Scorer + 'm>> {
        let run = self.run.iter().map(|name| policies.require(name)).collect::<Result<Vec<usize>>>();
        let run = run.map_err(|error| error.at("a policy of the training data"))?;
        let names = by_name(&self.run)?;
        let mut notes = Vec::new();
        let mut place = |policy: usize| {
            let mut known = policy;
            if !run.contains(&policy)
                && let Some((nearest, distance)) =
                    policies.nearest_among(policy, run.iter().copied(), 1).first()
            {
                let (name, other) = (policies.name(policy), policies.name(*nearest));
                notes.push(format!(
                    "policy `{name}` was never run: `{other}` stands in for it, at distance {distance:.3}"
                ));
                known = *nearest;
            }
            names.require(policies.name(known))
        };
        let against = place(against)?;
        let targets = targets.iter().map(|target| place(*target)).collect::<Result<Vec<usize>>>()?;
        let poul = self.poul.prepare(&names, &targets, against)?;
        notes.extend(poul.notes().iter().cloned());
        Ok(Box::new(IdScorer { poul, notes }))
    }

    fn manifest(&self) -> Result<Value> {
        store(&Manifest { poul: self.poul.manifest()?, run: self.run.clone() })
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        self.poul.tensors()
    }
}

struct IdScorer<'m> {
    poul: Box<dyn Scorer + 'm>,
    notes: Vec<String>,
}

impl Scorer for IdScorer<'_> {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        self.poul.score(x, spread)
    }

    fn has_spread(&self) -> bool {
        self.poul.has_spread()
    }

    fn spread_freedom(&self) -> Option<usize> {
        self.poul.spread_freedom()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
