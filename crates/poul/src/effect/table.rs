//! The effects of a whole table, streamed from file to file, input order first.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::layout::Layout;
use super::{ExposedRows, Scorer, Scores};
use crate::data::{Columns, Encoder, RowReader, Source, TableWriter, Unseen};
use crate::net::DenseRows;
use crate::policy::{Exposure, ExposureRows};
use crate::stats::{normal_quantile, student_quantile};
use crate::{Error, Progress, Result};

/// Pairs of row and policy that are scored and written together, about; bounds memory whatever the number of policies.
const PIECE_PAIRS: usize = 1 << 19;
/// Fewer rows than this would waste the matrix products.
const MIN_PIECE_ROWS: usize = 64;

/// What is asked of every row of a table.
pub struct EffectTable<'a> {
    /// How features become numbers.
    pub encoder: &'a Encoder,
    /// The features of the encoder and the id columns; see [`Encoder::columns_for`].
    pub columns: &'a Columns,
    /// How the exposure columns become each row's weights of contexts, where the scorer goes by them. Default: none.
    pub exposure: Option<&'a Exposure>,
    /// The effects.
    pub scorer: &'a dyn Scorer,
    /// The outcomes, in the order of the scorer.
    pub outcomes: &'a [String],
    /// The names of the policies, in the order of the scorer.
    pub policies: &'a [String],
    /// The name of the policy compared with.
    pub against: &'a str,
    /// The level of an interval from the ensemble: mean ± z·sd over members. It speaks of how far training could have
    /// come out otherwise, not of noise that all members share. Default: none.
    pub interval: Option<f64>,
    /// For each policy, the share of the comparison on atoms never seen, as a column. Default: none.
    pub unseen_share: Option<&'a [f64]>,
    /// For each policy, the share of its mixture on atoms with enough training rows, as a column. Default: none.
    pub support: Option<&'a [f64]>,
    /// Whether there is one row for each input row, with a column for each outcome and policy: `effect_<outcome>_<policy>`.
    /// Default: one row for each input row and policy.
    pub wide: bool,
}

/// Rows that were scored and are to be written.
pub(super) struct Piece {
    pub(super) rows: Vec<u64>,
    pub(super) ids: Vec<ArrayRef>,
    /// By outcome, row after row the effects of all policies.
    pub(super) scores: Scores,
}

impl EffectTable<'_> {
    /// Scores every row of `source` and writes the effects to `path`, `.parquet` or `.csv`; returns the rows written.
    ///
    /// Decoding, scoring and writing overlap; memory is bounded. The columns are the id columns (without any: `row`,
    /// from 0), `policy`, `against`, `effect_<outcome>` for each outcome, `lower_<outcome>` and `upper_<outcome>` with
    /// an interval, `unseen_share` and `support` where they are asked for. Of a wide table, the id columns, and the others with
    /// `_<policy>` after their names. Categories that training never saw are told as a warning.
    pub fn write(&self, source: &Source, path: &Path, progress: &dyn Progress) -> Result<u64> {
        let z = self.interval.map(|level| self.half_width(level)).transpose()?;
        let layout = Layout::new(self, source)?;
        let mut writer = TableWriter::create(path, Arc::clone(&layout.schema))?;
        self.each(source, &layout, z, progress, |batch| writer.write(&batch))?;
        let n_rows = writer.finish()?;
        progress.finish();
        Ok(n_rows)
    }

    /// As [`write`](Self::write), to memory.
    pub fn collect(&self, source: &Source, progress: &dyn Progress) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let z = self.interval.map(|level| self.half_width(level)).transpose()?;
        let layout = Layout::new(self, source)?;
        let mut batches = Vec::new();
        self.each(source, &layout, z, progress, |batch| {
            batches.push(batch);
            Ok(())
        })?;
        progress.finish();
        Ok((layout.schema, batches))
    }

    /// Scores the rows and hands the effects to `sink`, batch after batch.
    fn each(
        &self,
        source: &Source,
        layout: &Layout,
        z: Option<f32>,
        progress: &dyn Progress,
        mut sink: impl FnMut(RecordBatch) -> Result<()> + Send,
    ) -> Result<()> {
        // Nothing to score is no mistake here: whoever scores every day has a day without rows.
        if source.n_rows() == Some(0) {
            return Ok(());
        }
        let mut pieces = Pieces::new(self, source, z.is_some())?;
        progress.start("Scoring", "rows", source.n_rows());
        let mut ready: Option<Piece> = None;
        loop {
            let written = ready.take();
            let n_written = written.as_ref().map_or(0, |piece| piece.rows.len());
            // One thread writes what was scored while the others score what comes next.
            let (wrote, next) = rayon::join(
                || written.map_or(Ok(()), |piece| sink(layout.batch(piece, z)?)),
                || pieces.next_piece(),
            );
            wrote?;
            progress.advance(n_written as u64);
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            ready = next?;
            if ready.is_none() {
                break;
            }
        }
        pieces.unseen.notes(self.encoder).iter().for_each(|note| progress.warn(note));
        let note = self.exposure.and_then(|exposure| exposure.note(pieces.n_unexposed));
        note.iter().for_each(|note| progress.warn(note));
        Ok(())
    }

    fn half_width(&self, level: f64) -> Result<f32> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::usage(format!("an interval of level {level}"))
                .hint("a level lies between 0 and 1, such as 0.9"));
        }
        if !self.scorer.has_spread() {
            let error = Error::usage("the model has one member, so its effects have no interval");
            return Err(error.hint("fit it with several members: ‹members=6›"));
        }
        let p = 0.5 + level / 2.0;
        let quantile = self
            .scorer
            .spread_freedom()
            .map_or_else(|| normal_quantile(p), |degrees| student_quantile(p, degrees));
        Ok(quantile as f32)
    }
}

/// The table cut into pieces.
struct Pieces<'a> {
    table: &'a EffectTable<'a>,
    reader: RowReader,
    spread: bool,
    piece_rows: usize,
    rows: Vec<u64>,
    ids: Vec<ArrayRef>,
    encoded: Vec<f32>,
    exposed: Option<ExposureRows>,
    n_unexposed: usize,
    unseen: Unseen,
    next_row: usize,
}

impl<'a> Pieces<'a> {
    fn new(table: &'a EffectTable<'a>, source: &Source, spread: bool) -> Result<Self> {
        Ok(Self {
            table,
            reader: RowReader::new(source, table.columns)?,
            spread,
            piece_rows: piece_rows(table.policies.len()),
            rows: Vec::new(),
            ids: Vec::new(),
            encoded: Vec::new(),
            exposed: None,
            n_unexposed: 0,
            unseen: Unseen::default(),
            next_row: 0,
        })
    }

    fn next_piece(&mut self) -> Result<Option<Piece>> {
        let width = self.table.encoder.width();
        if self.next_row == self.rows.len() {
            let Some(batch) = self.reader.next_batch()? else { return Ok(None) };
            self.encoded.resize(batch.n_rows() * width, 0.0);
            self.table.encoder.encode_counting(&batch.features, &mut self.encoded, &mut self.unseen)?;
            self.exposed = self.table.exposure.map(|exposure| exposure.rows(&batch.exposure));
            self.n_unexposed += self.exposed.as_ref().map_or(0, ExposureRows::n_unexposed);
            (self.rows, self.ids, self.next_row) = (batch.rows, batch.ids, 0);
        }
        let end = self.rows.len().min(self.next_row + self.piece_rows);
        let (first, n_rows) = (self.next_row, end - self.next_row);
        let x = DenseRows::new(&self.encoded[first * width..end * width], width)?;
        let exposed = self.exposed.as_ref().map(|rows| rows.part(first, end));
        let x = ExposedRows { x: &x, exposure: exposed.as_ref() };
        let scores = self.table.scorer.score(&x, self.spread)?;
        self.next_row = end;
        Ok(Some(Piece {
            rows: self.rows[first..end].to_vec(),
            ids: self.ids.iter().map(|ids| ids.slice(first, n_rows)).collect(),
            scores,
        }))
    }
}

/// How many rows are scored and written together.
pub(super) fn piece_rows(n_policies: usize) -> usize {
    (PIECE_PAIRS / n_policies.max(1)).max(MIN_PIECE_ROWS)
}
