//! Decoding ahead: batches are read by threads of their own while earlier ones are worked on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;

use super::batches::Located;
use super::source::Source;
use crate::{Error, Result};

/// Batches kept ready by each thread: with the one at work, three are in memory.
const AHEAD: usize = 1;
/// A thread is worth starting for this many columns.
const MIN_COLUMNS_PER_THREAD: usize = 8;

/// The batches of a source, decoded ahead.
///
/// Columns of Parquet are decoded by several threads, each its share of the columns; the batches are the same however
/// many there are.
pub(crate) struct Prefetch {
    lanes: Vec<Receiver<Result<Option<Located>>>>,
    threads: Vec<JoinHandle<()>>,
    done: bool,
}

impl Prefetch {
    pub(crate) fn start(source: &Source, columns: &[&str], batch_rows: usize) -> Result<Self> {
        let n_lanes = if source.decodes_by_column() {
            (columns.len() / MIN_COLUMNS_PER_THREAD).clamp(1, rayon::current_num_threads())
        } else {
            1
        };
        let mut own =
            Self { lanes: Vec::with_capacity(n_lanes), threads: Vec::with_capacity(n_lanes), done: false };
        for lane in 0..n_lanes {
            // Even shares, so that a block of costly columns is split.
            let share = columns.len() * lane / n_lanes..columns.len() * (lane + 1) / n_lanes;
            let batches = source.located_batches(&columns[share], batch_rows)?;
            let (sender, receiver) = sync_channel(AHEAD);
            let work = move || {
                let mut batches = batches;
                loop {
                    let next = batches.next().transpose();
                    let last = !matches!(next, Ok(Some(_)));
                    // The receiver is gone when the reader was dropped early.
                    if sender.send(next).is_err() || last {
                        return;
                    }
                }
            };
            let thread = thread::Builder::new()
                .name("poul-decode".into())
                .spawn(work)
                .map_err(|error| Error::other(format!("cannot start a thread: {error}")).source(error))?;
            own.lanes.push(receiver);
            own.threads.push(thread);
        }
        Ok(own)
    }

    fn next_batch(&mut self) -> Result<Option<Located>> {
        let stopped = || Error::other("the thread that reads data stopped early");
        let mut parts = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            parts.push(lane.recv().map_err(|_| stopped())??);
        }
        let parts: Vec<Located> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return Ok(None);
        }
        if parts.len() == 1 && self.lanes.len() == 1 {
            return Ok(parts.into_iter().next());
        }
        let n_rows = parts[0].batch.num_rows();
        if parts.len() < self.lanes.len() || parts.iter().any(|part| part.batch.num_rows() != n_rows) {
            return Err(Error::input("columns of one file differ in length"));
        }
        let fields = parts.iter().flat_map(|part| part.batch.schema().fields().to_vec()).collect::<Vec<_>>();
        let arrays = parts.iter().flat_map(|part| part.batch.columns().to_vec()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| Error::other(format!("cannot assemble a batch: {error}")).source(error))?;
        let first = &parts[0];
        Ok(Some(Located {
            batch,
            file_idx: first.file_idx,
            first_row_in_file: first.first_row_in_file,
            first_row: first.first_row,
        }))
    }
}

impl Drop for Prefetch {
    /// Whoever is done with a table may write to it: nobody reads it any more.
    fn drop(&mut self) {
        self.lanes.clear();
        // One that panicked has nothing more to say: its lane ended early, which was told.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Iterator for Prefetch {
    type Item = Result<Located>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_batch().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
