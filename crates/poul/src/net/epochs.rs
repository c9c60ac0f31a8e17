//! The training loop: shuffled passes over the rows, validation after each epoch, the best state kept.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::batch::{Network, RowSource};
use super::resume::{Best, Standing, State};
use super::schedule::Schedule;
use super::trainer::Trainer;
use super::window::{self, Windows};
use crate::{Error, Progress, Result, Run, Seed};

/// One epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
///
/// With a checkpoint, a run that was stopped goes on where it was, to the same bits, and one that was over gives back what
/// came out: go on from the weights that are returned, not from the trainer. The run's seed is its name there.
pub fn train(
    trainer: &mut Trainer,
    source: &dyn RowSource,
    rows: &[u32],
    network: &dyn Network,
    schedule: &Schedule,
    validate: &mut dyn FnMut(&Trainer) -> Result<Option<f64>>,
    run: Run<'_>,
) -> Result<Trained> {
    schedule.check()?;
    if rows.is_empty() {
        return Err(Error::input("there are no rows to train on").hint("fewer folds, or more rows"));
    }
    trainer.optimizer.decay_factor = schedule.decay_factor(rows.len());
    let mut state = State::new(trainer, rows, schedule, run);
    if let Some(trained) = state.finished(trainer)? {
        run.progress.remark("done before, from the checkpoint");
        return Ok(trained);
    }
    let trained = match source.window_rows() {
        None => {
            let mut feed = Feed::Whole { source, order: Order::new(rows, None, run.seed) };
            run_epochs(trainer, &mut feed, rows.len(), network, schedule, validate, &mut state, run.progress)
        }
        Some(window_rows) => std::thread::scope(|scope| {
            // A batch lies in one window.
            let window_rows = (window_rows / schedule.batch_rows).max(1) * schedule.batch_rows;
            let order = Order::new(rows, Some(window_rows), run.seed);
            let mut feed = Feed::Windows { windows: Windows::start(scope, source), order, window_rows };
            run_epochs(trainer, &mut feed, rows.len(), network, schedule, validate, &mut state, run.progress)
        }),
    };
    // What a row that could not be read does to a loss is not worth telling.
    match source.failure() {
        Some(failure) => Err(failure),
        None => trained,
    }
}

#[expect(clippy::too_many_arguments, reason = "each is a different thing that only the caller has")]
fn run_epochs(
    trainer: &mut Trainer,
    feed: &mut Feed<'_>,
    n_rows: usize,
    network: &dyn Network,
    schedule: &Schedule,
    validate: &mut dyn FnMut(&Trainer) -> Result<Option<f64>>,
    state: &mut State<'_>,
    progress: &dyn Progress,
) -> Result<Trained> {
    let (n_passes, n_steps) = (schedule.passes(n_rows), schedule.steps(n_rows));
    let mut at = state.resume(trainer)?.unwrap_or_default();
    progress.advance(schedule.rows_until(&at, n_rows));
    while at.epoch < schedule.epochs {
        while at.n_steps < n_passes * n_steps {
            let pass = at.epoch * n_passes + at.n_steps / n_steps;
            let (source, batch) = feed.batch(pass, at.n_steps % n_steps, schedule.batch_rows)?;
            if let Some(loss) = trainer.try_step(source, batch, network)? {
                let what = format!("the loss is {loss} in epoch {}, step {}", at.epoch + 1, at.n_steps + 1);
                return Err(state.diverged(trainer, at, &what));
            }
            let losses = trainer.losses();
            at.total += losses.iter().sum::<f64>() / losses.len() as f64;
            at.n_steps += 1;
            progress.advance(batch.len() as u64);
            if progress.cancelled() {
                state.save(trainer, &at)?;
                return Err(Error::cancelled());
            }
            state.save_if_due(trainer, &at);
        }
        let validation = validate(trainer)?;
        if let Some(loss) = validation.filter(|loss| !loss.is_finite()) {
            let what = format!("the validation loss is {loss} after epoch {}", at.epoch + 1);
            return Err(state.diverged(trainer, at, &what));
        }
        at.history.push(Epoch { loss: at.total / (n_passes * n_steps) as f64, validation });
        if let Some(loss) = validation.filter(|_| schedule.patience > 0)
            && at.best.as_ref().is_none_or(|best| loss < best.loss)
        {
            at.best = Some(Best { epoch: at.epoch, loss, weights: averaged(trainer) });
        }
        progress.remark(&remark(at.epoch, at.history.last(), at.best.as_ref().map(|best| best.loss)));
        if at.best.as_ref().is_some_and(|best| at.epoch - best.epoch >= schedule.patience) {
            break;
        }
        at = Standing { epoch: at.epoch + 1, n_steps: 0, total: 0.0, ..at };
    }
    let last = at.history.len().saturating_sub(1);
    let trained = match at.best {
        Some(best) => Trained { weights: best.weights, history: at.history, best: best.epoch },
        None => Trained { weights: averaged(trainer), history: at.history, best: last },
    };
    state.finish(&trained);
    Ok(trained)
}

/// Where batches come from.
enum Feed<'a> {
    /// All rows are at hand.
    Whole { source: &'a dyn RowSource, order: Order },
    /// Some of the rows are, the next being read.
    Windows { windows: Windows, order: Order, window_rows: usize },
}

impl Feed<'_> {
    /// The rows of a step of a pass, and where to find them.
    fn batch(&mut self, pass: usize, step: usize, batch_rows: usize) -> Result<(&dyn RowSource, &[u32])> {
        let first = step * batch_rows;
        match self {
            Feed::Whole { source, order } => {
                let rows = order.of_pass(pass);
                Ok((*source, &rows[first..rows.len().min(first + batch_rows)]))
            }
            Feed::Windows { windows, order, window_rows } => {
                let n_rows = order.rows.len();
                let start = first / *window_rows * *window_rows;
                let end = n_rows.min(start + *window_rows);
                if first == start || !order.holds(pass) {
                    let own = order.of_pass(pass)[start..end].to_vec();
                    let next = match end < n_rows {
                        true => order.of_pass(pass)[end..n_rows.min(end + *window_rows)].to_vec(),
                        false => order.of_pass(pass + 1)[..n_rows.min(*window_rows)].to_vec(),
                    };
                    windows.hold(&own, Some(&next))?;
                }
                let rows = order.of_pass(pass);
                Ok((windows.window(), &rows[first..n_rows.min(first + batch_rows)]))
            }
        }
    }
}

/// The rows in the order of a pass.
struct Order {
    rows: Vec<u32>,
    /// Rows of a window, where not all are in memory.
    window_rows: Option<usize>,
    /// This pass and the next, which may be read already.
    shuffled: [(Option<usize>, Vec<u32>); 2],
    seed: Seed,
}

impl Order {
    fn new(rows: &[u32], window_rows: Option<usize>, seed: Seed) -> Self {
        let mut rows = rows.to_vec();
        if window_rows.is_some() {
            rows.sort_unstable();
        }
        Self { rows, window_rows, shuffled: Default::default(), seed }
    }

    fn holds(&self, pass: usize) -> bool {
        self.shuffled[pass % 2].0 == Some(pass)
    }

    /// From the same order each time, so that a pass's shuffle depends on its number alone.
    fn of_pass(&mut self, pass: usize) -> &[u32] {
        let (known, shuffled) = &mut self.shuffled[pass % 2];
        if *known != Some(pass) {
            let mut rng = self.seed.child("epoch").index(pass as u64).rng();
            match self.window_rows {
                Some(window_rows) => window::shuffle(&self.rows, window_rows, shuffled, &mut rng),
                None => {
                    shuffled.clone_from(&self.rows);
                    shuffled.shuffle(&mut rng);
                }
            }
            *known = Some(pass);
        }
        shuffled
    }
}

fn averaged(trainer: &Trainer) -> Vec<Vec<f32>> {
    (0..trainer.n_members()).map(|member| trainer.averaged_weights(member).to_vec()).collect()
}

fn remark(epoch: usize, last: Option<&Epoch>, least: Option<f64>) -> String {
    let Some(Epoch { loss, validation }) = last else {
        return String::new();
    };
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_string(), |value| format!("{value:.5}"));
    format!(
        "epoch {}, loss {loss:.5}, validation {} (best {})",
        epoch + 1,
        number(*validation),
        number(least)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::net::{Activation, AdamParams, Batch, DenseRows, Init, Layout, Mlp, Tape, TrainerParams};
    use crate::{Checkpoint, Kind, Silent};

    /// y = 2x on `n_rows` rows by a linear network; gives what `train` gave and the steps it took.
    fn run(
        n_rows: usize,
        schedule: &Schedule,
        validate: &mut dyn FnMut(&Trainer) -> Result<Option<f64>>,
        progress: &dyn Progress,
    ) -> Result<(Trained, u64)> {
        run_on(n_rows, schedule, validate, Run::new(Seed::new(2), progress))
    }

    fn run_on(
        n_rows: usize,
        schedule: &Schedule,
        validate: &mut dyn FnMut(&Trainer) -> Result<Option<f64>>,
        run: Run<'_>,
    ) -> Result<(Trained, u64)> {
        let x: Vec<f32> = (0..n_rows).map(|row| (row % 17) as f32 / 17.0).collect();
        let mut layout = Layout::builder();
        let group = layout.group("m");
        let mlp = Mlp::new(&mut layout, "m", &[1, 1], Activation::Identity, Init::Uniform, group);
        let adam = AdamParams { learning_rate: 1e-2, ..AdamParams::default() }.check()?;
        let mut trainer = Trainer::new(layout.finish()?, adam, TrainerParams::default(), Seed::new(1))?;
        let loss = |tape: &mut Tape<'_>, batch: &Batch<'_>| {
            let input = tape.features();
            let prediction = mlp.forward(tape, input);
            let target = tape.column(batch.pick(&x).map(|x| 2.0 * x));
            tape.squared_loss(prediction, target, None, batch.scale())
        };
        let rows: Vec<u32> = (0..n_rows as u32).collect();
        let source = DenseRows::new(&x, 1)?;
        let trained = train(&mut trainer, &source, &rows, &loss, schedule, validate, run)?;
        Ok((trained, trainer.n_steps()))
    }

    #[test]
    fn the_best_epoch_is_kept_and_patience_ends_training() {
        let schedule = Schedule { batch_rows: 32, epochs: 50, patience: 3, min_steps: 1 };
        let losses = [5.0, 3.0, 4.0, 2.0, 2.5, 2.0, 9.0, 0.0];
        let (mut seen, mut call) = (Vec::new(), 0);
        let mut validate = |trainer: &Trainer| {
            seen.push(trainer.averaged_weights(0).to_vec());
            call += 1;
            Ok(Some(losses[call - 1]))
        };
        let (trained, _) = run(128, &schedule, &mut validate, &Silent).unwrap();
        assert_eq!((trained.best, trained.history.len()), (3, 7));
        assert_eq!(trained.weights, [seen[3].clone()]);
        assert_ne!(seen[3], seen[6]);
        let kept: Vec<f64> = trained.history.iter().filter_map(|epoch| epoch.validation).collect();
        assert_eq!(kept, losses[..7]);
    }

    #[test]
    fn without_validation_every_epoch_is_run_and_the_last_kept() {
        let schedule = Schedule { batch_rows: 32, epochs: 200, patience: 3, min_steps: 1 };
        let (trained, n_steps) = run(128, &schedule, &mut |_| Ok(None), &Silent).unwrap();
        assert_eq!((trained.best, trained.history.len(), n_steps), (199, 200, 800));
        assert!(trained.history[199].loss < 1e-3 * trained.history[0].loss);
        let patience = Schedule { patience: 0, epochs: 5, ..schedule };
        let (trained, _) = run(128, &patience, &mut |_| Ok(Some(1.0)), &Silent).unwrap();
        assert_eq!(trained.best, 4);
    }

    #[test]
    fn a_small_table_gets_as_many_steps_and_a_remnant_is_left_out() {
        let schedule = Schedule { batch_rows: 100, epochs: 2, patience: 0, min_steps: 20 };
        for (n_rows, steps) in [(7, 40), (120, 40), (230, 42), (1900, 76), (2510, 50), (2525, 52)] {
            let (_, n_steps) = run(n_rows, &schedule, &mut |_| Ok(None), &Silent).unwrap();
            assert_eq!(n_steps, steps, "{n_rows} rows");
        }
    }

    #[test]
    fn a_long_pass_shrinks_weights_as_much_whatever_its_length() -> Result<()> {
        // A loss of 0 leaves decay alone.
        let shrunk = |n_rows: usize| -> Result<f32> {
            let mut layout = Layout::builder();
            let group = layout.group("m");
            let mlp = Mlp::new(&mut layout, "m", &[1, 1], Activation::Identity, Init::Uniform, group);
            let adam = AdamParams { weight_decay: 2.0, ..AdamParams::default() }.check()?;
            let mut trainer = Trainer::new(layout.finish()?, adam, TrainerParams::default(), Seed::new(1))?;
            let nothing = |tape: &mut Tape<'_>, _: &Batch<'_>| {
                let input = tape.features();
                let prediction = mlp.forward(tape, input);
                let zero = tape.scale(prediction, 0.0);
                tape.sum(zero)
            };
            let (x, rows): (Vec<f32>, Vec<u32>) = (vec![1.0; n_rows], (0..n_rows as u32).collect());
            let schedule = Schedule { batch_rows: 10, epochs: 1, patience: 0, min_steps: 1 };
            let (source, start) = (DenseRows::new(&x, 1)?, trainer.weights(0)[0]);
            train(
                &mut trainer,
                &source,
                &rows,
                &nothing,
                &schedule,
                &mut |_| Ok(None),
                Run::new(Seed::new(2), &Silent),
            )?;
            Ok(trainer.weights(0)[0] / start)
        };
        let usual = (-2.0 * 1e-3 * 64.0_f32).exp();
        for n_rows in [640, 2560, 20_480] {
            let shrunk = shrunk(n_rows)?;
            assert!((shrunk - usual).abs() < 2e-3, "{n_rows} rows: {shrunk}, not {usual}");
        }
        // A short pass has the decay of its steps.
        let (short, expected) = (shrunk(160)?, (-2.0_f32 * 1e-3 * 16.0).exp());
        assert!((short - expected).abs() < 1e-3, "{short}, not {expected}");
        Ok(())
    }

    #[test]
    fn what_cannot_be_trained_is_an_error() {
        let wrong = Schedule { batch_rows: 0, ..Schedule::default() };
        let error = run(10, &wrong, &mut |_| Ok(None), &Silent).err().unwrap();
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Usage, "`batch_rows` is 0"));
        let error = run(10, &Schedule::default(), &mut |_| Ok(Some(f64::NAN)), &Silent).err().unwrap();
        assert!(error.to_string().contains("diverged"), "{error}");

        struct Impatient(AtomicU64);
        impl Progress for Impatient {
            fn advance(&self, n: u64) {
                self.0.fetch_add(n, Ordering::Relaxed);
            }
            fn cancelled(&self) -> bool {
                self.0.load(Ordering::Relaxed) > 1000
            }
        }
        let impatient = Impatient(AtomicU64::new(0));
        let error = run(512, &Schedule::default(), &mut |_| Ok(None), &impatient).err().unwrap();
        assert_eq!(error.kind(), Kind::Cancelled);
        assert_eq!(impatient.0.into_inner(), 1024);
    }

    #[test]
    fn a_state_beyond_the_end_of_training_is_damage() {
        struct Stop(AtomicU64);
        impl Progress for Stop {
            fn advance(&self, n: u64) {
                self.0.fetch_add(n, Ordering::Relaxed);
            }
            fn cancelled(&self) -> bool {
                self.0.load(Ordering::Relaxed) > 1000
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = Checkpoint::create(folder.path().join("m.partial"), serde_json::json!({}));
        let schedule = Schedule { epochs: 9, ..Schedule::default() };
        let go = |progress: &dyn Progress| {
            let run = Run { checkpoint: Some(&checkpoint), ..Run::new(Seed::new(2), progress) };
            run_on(512, &schedule, &mut |_| Ok(Some(1.0)), run)
        };
        assert_eq!(go(&Stop(AtomicU64::new(0))).err().unwrap().kind(), Kind::Cancelled);
        let name = format!("{:016x}.state", Seed::new(2).value());
        let good = checkpoint.get(&name).unwrap().unwrap();
        // The epoch comes first after the fingerprint, then its steps.
        for place in [8, 16] {
            let mut forged = good.clone();
            forged[place..place + 8].copy_from_slice(&(1_u64 << 60).to_le_bytes());
            checkpoint.put(&name, &forged).unwrap();
            let error = go(&Silent).err().unwrap();
            assert!(error.to_string().ends_with("the checkpoint is damaged"), "{error}");
        }
        checkpoint.put(&name, &good).unwrap();
        assert!(go(&Silent).is_ok());
    }
}
