//! Model files: read, asked, scored, certified, and written again.

use std::path::Path;

use poul::effect::Question;
use poul::model::{CertificateParams, Model};
use poul::net::DenseRows;

use super::Target;
use crate::execution::{Ended, judged, promised};
use crate::random::Random;
use crate::{front_door, mutate};

/// Rows that are scored.
const ROWS: usize = 3;
/// A model may say that it has more features than anyone would score here.
const MOST_FEATURES: usize = 1 << 12;

pub(crate) fn open(_: &Path) -> Result<Box<dyn Target>, String> {
    Ok(Box::new(Models { seeds: front_door::models() }))
}

struct Models {
    seeds: Vec<Vec<u8>>,
}

impl Target for Models {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let (seed, other) = (random.pick(&self.seeds), random.pick(&self.seeds));
        if !random.once_in(4)
            && let Some(changed) = mutate::model(random, seed, other)
        {
            return changed;
        }
        let mut input = seed.clone();
        mutate::bytes(random, &mut input, other);
        input
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        let Some(model) = judged(Model::from_bytes(input))? else { return Ok(Ended::Refused) };
        let stored =
            model.to_bytes().map_err(|error| format!("a model that was read cannot be written: {error}"))?;
        let again =
            Model::from_bytes(&stored).map_err(|error| format!("what was written is refused: {error}"))?;
        let twice =
            again.to_bytes().map_err(|error| format!("what was written cannot be written again: {error}"))?;
        promised(twice == stored, || "a model changes when it is read and written".to_owned())?;
        use_it(&model)?;
        Ok(Ended::Accepted)
    }
}

/// Whatever was read may be asked anything.
fn use_it(model: &Model) -> Result<(), String> {
    let policies = &model.manifest().policies;
    let first = policies.names().first().cloned();
    let question = Question { policies: Vec::new(), against: model.manifest().control.clone().or(first) };
    judged(model.averages(policies, &question, 0.9, true))?;
    let params = CertificateParams { min_rows: 2, ..CertificateParams::default() };
    let params = params.check().map_err(|error| error.to_string())?;
    for policy in 0..policies.len().min(3) {
        judged(model.certify(policies, policy, &params))?;
    }
    let _ = model.is_factorial();
    let Some(answer) = judged(model.ask(policies, &question, true))? else { return Ok(()) };
    let width = model.manifest().encoder.width();
    if width > MOST_FEATURES {
        return Ok(());
    }
    let x: Vec<f32> = (0..ROWS * width).map(|idx| (idx % 5) as f32 / 2.0 - 1.0).collect();
    let Some(rows) = judged(DenseRows::new(&x, width))? else { return Ok(()) };
    let scores = judged(answer.scorer.score(&rows, answer.scorer.has_spread()))?;
    if let Some(scores) = scores {
        let n_targets = answer.asked.targets.len();
        let whole = width == 0 || scores.mean.iter().all(|mean| mean.len() == ROWS * n_targets);
        promised(whole, || "scores of another number of rows or policies".to_owned())?;
    }
    Ok(())
}
