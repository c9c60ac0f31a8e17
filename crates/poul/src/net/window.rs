//! Training on rows that are not all in memory: windows of shuffled blocks, the next one read while one is used.
//!
//! Rows that lie together are read together. A pass shuffles blocks of neighbouring rows, takes as many as a window holds,
//! and shuffles the rows of the window: the longer the window, the closer to a shuffle of all rows.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use rand::seq::SliceRandom;

use super::batch::RowSource;
use crate::data::gather_rows;
use crate::{Error, Result, Rng};

/// Rows that are always read together: about a megabyte of many features.
const BLOCK_ROWS: usize = 256;
/// Rows that are copied by one call.
const COPIED_ROWS: usize = 1 << 14;

/// Shuffles ascending rows by blocks, then within each window.
pub(super) fn shuffle(rows: &[u32], window_rows: usize, shuffled: &mut Vec<u32>, rng: &mut Rng) {
    let mut blocks: Vec<&[u32]> = rows.chunks(BLOCK_ROWS).collect();
    blocks.shuffle(rng);
    shuffled.clear();
    blocks.iter().for_each(|block| shuffled.extend_from_slice(block));
    shuffled.chunks_mut(window_rows).for_each(|window| window.shuffle(rng));
}

/// The rows of one window, in memory, under their own numbers.
pub(super) struct Window {
    n_rows: usize,
    n_cols: usize,
    /// Where each row lies in `values`; meaningless for rows of other windows.
    places: Vec<u32>,
    values: Vec<f32>,
}

impl RowSource for Window {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn copy_rows(&self, rows: &[u32], out: &mut [f32]) {
        let place = |row: u32| self.places[row as usize] as usize;
        gather_rows(&self.values, self.n_cols, rows, place, out);
    }
}

/// What a reader is asked for, and what it answers.
struct Reading {
    /// Ascending.
    rows: Vec<u32>,
    values: Vec<f32>,
}

/// Reads windows ahead of their use, on a thread of its own.
pub(super) struct Windows {
    window: Window,
    /// The rows that the window holds, ascending.
    held: Vec<u32>,
    /// The rows that are being read.
    coming: Option<Vec<u32>>,
    orders: SyncSender<Reading>,
    readings: Receiver<Reading>,
    spare: Vec<f32>,
}

impl Windows {
    /// Starts the reader; it ends when this is dropped.
    pub(super) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        source: &'env dyn RowSource,
    ) -> Self {
        let (orders, asked) = sync_channel::<Reading>(1);
        let (answers, readings) = sync_channel(1);
        scope.spawn(move || {
            for Reading { rows, mut values } in asked {
                let n_cols = source.n_cols();
                values.resize(rows.len() * n_cols, 0.0);
                let parts = values.chunks_mut((COPIED_ROWS * n_cols).max(1));
                rows.chunks(COPIED_ROWS).zip(parts).for_each(|(rows, out)| source.copy_rows(rows, out));
                if answers.send(Reading { rows, values }).is_err() {
                    break;
                }
            }
        });
        let (n_rows, n_cols) = (source.n_rows(), source.n_cols());
        let window = Window { n_rows, n_cols, places: vec![0; n_rows], values: Vec::new() };
        Self { window, held: Vec::new(), coming: None, orders, readings, spare: Vec::new() }
    }

    /// The window with these rows. Those of `next` are read meanwhile.
    pub(super) fn hold(&mut self, rows: &[u32], next: Option<&[u32]>) -> Result<&Window> {
        let rows = ascending(rows);
        if rows != self.held {
            let known = self.coming.take();
            let mut reading = known.is_some().then(|| self.receive()).transpose()?;
            if known.as_ref() != Some(&rows) {
                let values = reading.take().map_or_else(|| std::mem::take(&mut self.spare), |old| old.values);
                self.ask(rows, values)?;
                reading = Some(self.receive()?);
            }
            if let Some(Reading { rows, values }) = reading {
                self.spare = std::mem::replace(&mut self.window.values, values);
                for (place, row) in rows.iter().enumerate() {
                    self.window.places[*row as usize] = place as u32;
                }
                self.held = rows;
            }
        }
        if let (Some(next), None) = (next, &self.coming) {
            let (next, values) = (ascending(next), std::mem::take(&mut self.spare));
            self.coming = Some(next.clone());
            self.ask(next, values)?;
        }
        Ok(&self.window)
    }

    /// The window that was held last.
    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    fn ask(&self, rows: Vec<u32>, values: Vec<f32>) -> Result<()> {
        self.orders.send(Reading { rows, values }).map_err(|_| ended())
    }

    fn receive(&self) -> Result<Reading> {
        self.readings.recv().map_err(|_| ended())
    }
}

fn ascending(rows: &[u32]) -> Vec<u32> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows
}

fn ended() -> Error {
    Error::other("the thread that reads rows has ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use crate::net::DenseRows;

    #[test]
    fn a_pass_visits_every_row_once_and_windows_are_made_of_blocks() {
        let rows: Vec<u32> = (0..10_000).filter(|row| row % 3 != 0).collect();
        let mut shuffled = Vec::new();
        shuffle(&rows, 1024, &mut shuffled, &mut Seed::new(1).rng());
        assert_ne!(shuffled, rows);
        assert_eq!(ascending(&shuffled), rows);
        for window in shuffled.chunks(1024) {
            let sorted = ascending(window);
            let breaks = sorted.windows(2).filter(|pair| pair[1] - pair[0] > 2).count();
            assert!(breaks <= 5, "{breaks} places to read for one window");
        }
    }

    #[test]
    fn a_window_gives_the_rows_of_its_source() {
        let values: Vec<f32> = (0..3000).map(|value| value as f32).collect();
        let source = DenseRows::new(&values, 3).unwrap();
        std::thread::scope(|scope| {
            let mut windows = Windows::start(scope, &source);
            let parts: [&[u32]; 4] = [&[999, 1, 5], &[7, 3], &[0, 2, 998], &[4]];
            // In turn, with a jump such as a resumed run makes, and the same one again.
            for (now, next) in [(0, Some(1)), (1, Some(2)), (3, Some(0)), (0, None), (0, Some(2)), (2, None)]
            {
                let window = windows.hold(parts[now], next.map(|next| parts[next])).unwrap();
                let (mut out, mut own) = (vec![0.0; 3 * parts[now].len()], vec![0.0; 3 * parts[now].len()]);
                window.copy_rows(parts[now], &mut out);
                source.copy_rows(parts[now], &mut own);
                assert_eq!(out, own);
            }
        });
    }
}
