//! The training loop: shuffled epochs, validation after each, the best state kept.

use rand::seq::SliceRandom;

use super::batch::{Network, RowSource};
use super::trainer::Trainer;
use crate::{Error, Progress, Result, Seed};

/// How long to train.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Rows of a batch. Default 512; at least 1.
    pub batch_rows: usize,
    /// Most passes over the rows. Default 60; at least 1.
    pub epochs: usize,
    /// Epochs without a better validation loss before training ends. Default 8; 0: all epochs are run and the last
    /// state is kept.
    pub patience: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { batch_rows: 512, epochs: 60, patience: 8 }
    }
}

/// One epoch.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Epoch {
    /// Mean training loss over members and steps, with dropout on.
    pub loss: f64,
    /// Loss on the validation rows, by the averaged weights.
    pub validation: Option<f64>,
}

/// The averaged weights of every member at the best epoch, and how training went.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Weights of each member.
    pub weights: Vec<Vec<f32>>,
    /// Every epoch that was run.
    pub history: Vec<Epoch>,
    /// The epoch whose weights these are, from 0.
    pub best: usize,
}

/// Trains on `rows`; `validate` gives the loss on held-out rows, or `None` where there are none.
pub fn train(
    trainer: &mut Trainer,
    source: &dyn RowSource,
    rows: &[u32],
    network: &dyn Network,
    schedule: &Schedule,
    validate: &mut dyn FnMut(&Trainer) -> Result<Option<f64>>,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Trained> {
    let mut order = rows.to_vec();
    let mut history: Vec<Epoch> = Vec::new();
    let mut best: Option<(usize, f64, Vec<Vec<f32>>)> = None;
    for epoch in 0..schedule.epochs {
        // From the same order each time, so that an epoch's shuffle depends on its number alone.
        order.copy_from_slice(rows);
        order.shuffle(&mut seed.child("epoch").index(epoch as u64).rng());
        let (mut total, mut n_steps) = (0.0, 0);
        for batch in order.chunks(schedule.batch_rows) {
            // A remnant of a few rows would be a step of pure noise.
            if batch.len() * 4 < schedule.batch_rows && n_steps > 0 {
                continue;
            }
            let losses = trainer.step(source, batch, network)?;
            total += losses.iter().sum::<f64>() / losses.len() as f64;
            n_steps += 1;
            progress.advance(batch.len() as u64);
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        let validation = validate(trainer)?;
        history.push(Epoch { loss: total / n_steps.max(1) as f64, validation });
        progress.remark(&remark(epoch, history.last(), best.as_ref().map(|best| best.1)));
        let Some(loss) = validation.filter(|_| schedule.patience > 0) else {
            continue;
        };
        match &best {
            Some((_, least, _)) if loss >= *least => {}
            _ => best = Some((epoch, loss, averaged(trainer))),
        }
        if best.as_ref().is_some_and(|best| epoch - best.0 >= schedule.patience) {
            break;
        }
    }
    let last = history.len().saturating_sub(1);
    Ok(match best {
        Some((best, _, weights)) => Trained { weights, history, best },
        None => Trained { weights: averaged(trainer), history, best: last },
    })
}

fn averaged(trainer: &Trainer) -> Vec<Vec<f32>> {
    (0..trainer.n_members()).map(|member| trainer.averaged_weights(member).to_vec()).collect()
}

fn remark(epoch: usize, last: Option<&Epoch>, least: Option<f64>) -> String {
    let Some(Epoch { loss, validation }) = last else {
        return String::new();
    };
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_string(), |value| format!("{value:.5}"));
    format!("epoch {}, loss {loss:.5}, validation {} (best {})", epoch + 1, number(*validation), number(least))
}
