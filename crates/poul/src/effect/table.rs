//! The effects of a whole table, streamed from file to file: one row for each row and policy, input order first.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

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
}

/// Rows that were scored and are to be written.
struct Piece {
    rows: Vec<u64>,
    ids: Vec<ArrayRef>,
    scores: Scores,
}

impl EffectTable<'_> {
    /// Scores every row of `source` and writes the effects to `path`, `.parquet` or `.csv`; returns the rows written.
    ///
    /// Decoding, scoring and writing overlap; memory is bounded. The columns are the id columns (without any: `row`,
    /// from 0), `policy`, `against`, `effect_<outcome>` for each outcome, `lower_<outcome>` and `upper_<outcome>` with
    /// an interval, `unseen_share` and `support` where they are asked for. Categories that training never saw are told as a warning.
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

fn piece_rows(n_policies: usize) -> usize {
    (PIECE_PAIRS / n_policies.max(1)).max(MIN_PIECE_ROWS)
}

/// The columns of the output, and the parts of them that repeat.
struct Layout {
    schema: SchemaRef,
    n_policies: usize,
    /// Columns that are the same in every piece, as long as the longest piece.
    policy: ArrayRef,
    against: ArrayRef,
    /// `unseen_share` and `support`, those that are asked for.
    shares: Vec<ArrayRef>,
}

impl Layout {
    fn new(table: &EffectTable<'_>, source: &Source) -> Result<Self> {
        let mut fields: Vec<Field> = Vec::new();
        for id in &table.columns.ids {
            let field = source.schema().field_with_name(id);
            let field = field.map_err(|_| Error::missing_column(id, source.column_names()).at("id"))?;
            fields.push(field.clone());
        }
        if fields.is_empty() {
            fields.push(Field::new("row", DataType::Int64, false));
        }
        fields.push(Field::new("policy", DataType::Utf8, false));
        fields.push(Field::new("against", DataType::Utf8, false));
        let number = |name: String| Field::new(name, DataType::Float32, false);
        fields.extend(table.outcomes.iter().map(|outcome| number(format!("effect_{outcome}"))));
        if table.interval.is_some() {
            for outcome in table.outcomes {
                fields.push(number(format!("lower_{outcome}")));
                fields.push(number(format!("upper_{outcome}")));
            }
        }
        if table.unseen_share.is_some() {
            fields.push(Field::new("unseen_share", DataType::Float64, false));
        }
        if table.support.is_some() {
            fields.push(Field::new("support", DataType::Float64, false));
        }
        let mut names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let error = Error::usage(format!("two columns of the effects are called `{}`", pair[0]));
            return Err(error.hint("rename the id column, or name others: ‹id=COL›"));
        }
        let n_policies = table.policies.len();
        let n_pairs = piece_rows(n_policies) * n_policies;
        let names = table.policies.iter().map(String::as_str).cycle().take(n_pairs);
        let repeated = |shares: &[f64]| {
            let shares = shares.iter().copied().cycle().take(n_pairs);
            Arc::new(Float64Array::from_iter_values(shares)) as ArrayRef
        };
        let shares = table.unseen_share.into_iter().chain(table.support).map(repeated).collect();
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            n_policies,
            policy: Arc::new(StringArray::from_iter_values(names)),
            against: Arc::new(StringArray::from_iter_values(std::iter::repeat_n(table.against, n_pairs))),
            shares,
        })
    }

    fn batch(&self, piece: Piece, z: Option<f32>) -> Result<RecordBatch> {
        let Piece { rows, ids, scores } = piece;
        let n_pairs = rows.len() * self.n_policies;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if ids.is_empty() {
            let numbers = rows.iter().flat_map(|row| std::iter::repeat_n(*row as i64, self.n_policies));
            arrays.push(Arc::new(Int64Array::from_iter_values(numbers)));
        } else {
            let each = (0..rows.len() as u32).flat_map(|row| std::iter::repeat_n(row, self.n_policies));
            let each = UInt32Array::from_iter_values(each);
            for id in &ids {
                let repeated = arrow_select::take::take(id, &each, None);
                arrays.push(repeated.map_err(|error| Error::other(format!("cannot repeat ids: {error}")))?);
            }
        }
        arrays.push(self.policy.slice(0, n_pairs));
        arrays.push(self.against.slice(0, n_pairs));
        let mut bounds: Vec<ArrayRef> = Vec::new();
        if let Some(z) = z {
            for (mean, spread) in scores.mean.iter().zip(&scores.spread) {
                for sign in [-1.0, 1.0] {
                    let bound = mean.iter().zip(spread).map(|(mean, spread)| mean + sign * z * spread);
                    bounds.push(Arc::new(Float32Array::from_iter_values(bound)));
                }
            }
        }
        arrays.extend(scores.mean.into_iter().map(|mean| Arc::new(Float32Array::from(mean)) as ArrayRef));
        arrays.extend(bounds);
        arrays.extend(self.shares.iter().map(|shares| shares.slice(0, n_pairs)));
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|error| Error::other(format!("cannot assemble effects: {error}")).source(error))
    }
}
