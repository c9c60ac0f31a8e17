//! What a training run leaves in a checkpoint: where it stands and, once it is over, what came out.
//!
//! A run is named by its random stream, which no other run has. A shuffle depends on the number of its pass alone and
//! dropout on the number of the step, so a run that goes on from any step gives the same bits as one that never stopped.

use super::checkpoint::{Reader, fingerprint};
use super::epochs::{Epoch, Trained};
use super::schedule::Schedule;
use super::trainer::Trainer;
use crate::checkpoint::{NOT_KEPT, hash};
use crate::{Checkpoint, Error, Progress, Result, Run};

/// Where training stands, besides the state of the trainer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// The epoch under way, from 0.
    pub(super) epoch: usize,
    /// The steps of it that are done.
    pub(super) n_steps: usize,
    /// The sum of their losses.
    pub(super) total: f64,
    /// The epochs that are over.
    pub(super) history: Vec<Epoch>,
    pub(super) best: Option<Best>,
}

/// The best state so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    pub(super) epoch: usize,
    pub(super) loss: f64,
    pub(super) weights: Vec<Vec<f32>>,
}

/// What a training run leaves behind, if it has a checkpoint.
pub(super) struct State<'c> {
    checkpoint: Option<&'c Checkpoint>,
    progress: &'c dyn Progress,
    name: String,
    /// Rows, schedule and network: a run of the same name with others is another run.
    fingerprint: u64,
    n_steps_at_last: u64,
    /// Epochs there are, and steps of each: a state that is further along is none.
    most: [usize; 2],
}

impl<'c> State<'c> {
    pub(super) fn new(trainer: &Trainer, rows: &[u32], schedule: &Schedule, run: Run<'c>) -> Self {
        Self {
            checkpoint: run.checkpoint,
            progress: run.progress,
            name: format!("{:016x}", run.seed.value()),
            fingerprint: run.checkpoint.map_or(0, |_| fingerprint_of(trainer, rows, schedule)),
            n_steps_at_last: trainer.n_steps(),
            most: [schedule.epochs, schedule.passes(rows.len()).saturating_mul(schedule.steps(rows.len()))],
        }
    }

    /// What came out, if the run was over before.
    pub(super) fn finished(&self, trainer: &Trainer) -> Result<Option<Trained>> {
        let Some((checkpoint, bytes)) = self.read("done")? else { return Ok(None) };
        let decode = |bytes: &[u8]| {
            let mut reader = Reader { rest: bytes };
            self.check_header(&mut reader)?;
            let history = read_history(&mut reader)?;
            let best = reader.number()? as usize;
            let weights = read_weights(&mut reader, trainer)?;
            whole(&reader).map(|()| Trained { weights, history, best })
        };
        decode(&bytes).map(Some).map_err(|error| checkpoint.damaged_entry(&self.entry("done")).source(error))
    }

    /// Where the run stood when it was stopped; the trainer takes up its state.
    pub(super) fn resume(&mut self, trainer: &mut Trainer) -> Result<Option<Standing>> {
        let Some((checkpoint, bytes)) = self.read("state")? else { return Ok(None) };
        let mut decode = |bytes: &[u8]| {
            let mut reader = Reader { rest: bytes };
            self.check_header(&mut reader)?;
            let (epoch, n_steps) = (reader.number()? as usize, reader.number()? as usize);
            let total = f64::from_bits(reader.number()?);
            let history = read_history(&mut reader)?;
            let best = match reader.number()? {
                0 => None,
                _ => Some(Best {
                    epoch: reader.number()? as usize,
                    loss: f64::from_bits(reader.number()?),
                    weights: read_weights(&mut reader, trainer)?,
                }),
            };
            let is_possible = epoch <= self.most[0]
                && n_steps <= self.most[1]
                && best.as_ref().is_none_or(|best: &Best| best.epoch <= epoch);
            if !is_possible {
                return Err(Error::input("it says that training is further along than there is to train"));
            }
            trainer.import(reader.rest)?;
            Ok(Standing { epoch, n_steps, total, history, best })
        };
        let standing = decode(&bytes)
            .map_err(|error: Error| checkpoint.damaged_entry(&self.entry("state")).source(error))?;
        self.n_steps_at_last = trainer.n_steps();
        Ok(Some(standing))
    }

    /// Writes the state down if enough steps were taken since the last time. A disk that is full does not end a run
    /// that goes well: it is told once and no more is written.
    pub(super) fn save_if_due(&mut self, trainer: &Trainer, standing: &Standing) {
        let is_due = |checkpoint: &&Checkpoint| {
            trainer.n_steps().saturating_sub(self.n_steps_at_last) >= checkpoint.n_steps_between()
        };
        if self.checkpoint.as_ref().is_none_or(|checkpoint| !is_due(checkpoint)) {
            return;
        }
        if let Err(error) = self.save(trainer, standing) {
            self.progress.warn(&format!("{error}; training goes on without a checkpoint"));
            self.checkpoint = None;
        }
    }

    /// Writes the state down.
    pub(super) fn save(&mut self, trainer: &Trainer, standing: &Standing) -> Result<()> {
        let Some(checkpoint) = self.checkpoint else { return Ok(()) };
        let Standing { epoch, n_steps, total, history, best } = standing;
        let mut bytes = self.fingerprint.to_le_bytes().to_vec();
        write_numbers(&mut bytes, &[*epoch as u64, *n_steps as u64, total.to_bits()]);
        write_history(&mut bytes, history);
        bytes.extend(u64::from(best.is_some()).to_le_bytes());
        if let Some(Best { epoch, loss, weights }) = best {
            write_numbers(&mut bytes, &[*epoch as u64, loss.to_bits()]);
            write_weights(&mut bytes, weights);
        }
        bytes.extend(trainer.export());
        self.n_steps_at_last = trainer.n_steps();
        checkpoint.put(&self.entry("state"), &bytes)
    }

    /// Writes down what came out; the state is no longer needed. What cannot be written is told and has to be trained again
    /// after a stop: that is no reason to lose what was trained.
    pub(super) fn finish(&self, trained: &Trained) {
        let Some(checkpoint) = self.checkpoint else { return };
        let mut bytes = self.fingerprint.to_le_bytes().to_vec();
        write_history(&mut bytes, &trained.history);
        bytes.extend((trained.best as u64).to_le_bytes());
        write_weights(&mut bytes, &trained.weights);
        let kept = checkpoint.put(&self.entry("done"), &bytes);
        if let Err(error) = kept.and_then(|()| checkpoint.delete(&self.entry("state"))) {
            self.progress.warn(&format!("{error}; the work goes on, and {NOT_KEPT}"));
        }
    }

    /// The loss is not finite: the best state so far is what the run may go on from, or its start where there is none.
    pub(super) fn diverged(&mut self, trainer: &mut Trainer, mut standing: Standing, what: &str) -> Error {
        let message = format!("training diverged: {what}");
        let error = Error::other(&message);
        let advice =
            "lower the learning rate (`learning_rate`), or look for extreme values in features and outcomes";
        let Some(checkpoint) = self.checkpoint else { return error.hint(advice) };
        let kept = match &standing.best {
            None => checkpoint.delete(&self.entry("state")),
            Some(best) => {
                (standing.n_steps, standing.total) = (0, 0.0);
                let weights = best.weights.clone();
                trainer.start_from(&weights).and_then(|()| self.save(trainer, &standing))
            }
        };
        match kept.and_then(|()| checkpoint.set_diverged(&message)) {
            Ok(()) => {
                error.hint(format!("{advice}; ‹resume› with a lower rate goes on from the last good state"))
            }
            Err(failed) => error.hint(format!("{advice}; the last good state could not be kept: {failed}")),
        }
    }

    fn entry(&self, part: &str) -> String {
        format!("{}.{part}", self.name)
    }

    fn read(&self, part: &str) -> Result<Option<(&'c Checkpoint, Vec<u8>)>> {
        let Some(checkpoint) = self.checkpoint else { return Ok(None) };
        Ok(checkpoint.get(&self.entry(part))?.map(|bytes| (checkpoint, bytes)))
    }

    fn check_header(&self, reader: &mut Reader<'_>) -> Result<()> {
        match reader.number()? == self.fingerprint {
            true => Ok(()),
            false => Err(Error::input("it is of a run on other rows, or by another schedule or network")),
        }
    }
}

fn fingerprint_of(trainer: &Trainer, rows: &[u32], schedule: &Schedule) -> u64 {
    let Schedule { batch_rows, epochs, patience, min_steps } = *schedule;
    let mut bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
    let numbers = [batch_rows, epochs, patience, min_steps, trainer.n_members()];
    write_numbers(&mut bytes, &numbers.map(|number| number as u64));
    write_numbers(&mut bytes, &[fingerprint(trainer.layout())]);
    hash(&bytes)
}

fn write_numbers(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
}

fn write_history(bytes: &mut Vec<u8>, history: &[Epoch]) {
    bytes.extend((history.len() as u64).to_le_bytes());
    for Epoch { loss, validation } in history {
        let (is_some, value) = (validation.is_some(), validation.unwrap_or(0.0));
        write_numbers(bytes, &[loss.to_bits(), u64::from(is_some), value.to_bits()]);
    }
}

fn read_history(reader: &mut Reader<'_>) -> Result<Vec<Epoch>> {
    let n_epochs = reader.number()?;
    let mut history = Vec::new();
    for _ in 0..n_epochs {
        let [loss, is_some, validation] = [reader.number()?, reader.number()?, reader.number()?];
        let validation = (is_some != 0).then_some(f64::from_bits(validation));
        history.push(Epoch { loss: f64::from_bits(loss), validation });
    }
    Ok(history)
}

fn write_weights(bytes: &mut Vec<u8>, members: &[Vec<f32>]) {
    members.iter().flatten().for_each(|weight| bytes.extend(weight.to_le_bytes()));
}

fn read_weights(reader: &mut Reader<'_>, trainer: &Trainer) -> Result<Vec<Vec<f32>>> {
    let n_values = trainer.layout().n_values();
    let member = |_| {
        let (numbers, _) = reader.take(4 * n_values)?.as_chunks::<4>();
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    };
    (0..trainer.n_members()).map(member).collect()
}

fn whole(reader: &Reader<'_>) -> Result<()> {
    if reader.rest.is_empty() { Ok(()) } else { Err(Error::input("something was added to it")) }
}
