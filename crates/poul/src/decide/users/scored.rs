//! Users with what every policy would do for them, block after block in the order of the table: never all at once.

use arrow_array::ArrayRef;

use super::candidates::Candidates;
use crate::data::{ColumnKind, Columns, Encoder, Feature, Filter, Labels, RowReader, Source, Unseen};
use crate::effect::{ExposedRows, Scores};
use crate::model::Model;
use crate::net::DenseRows;
use crate::policy::{Exposure, ExposureRows};
use crate::{Error, Progress, Result};

/// Pairs of user and policy that are scored together, about; bounds memory whatever the number of policies.
const BLOCK_PAIRS: usize = 1 << 19;
/// Fewer users than this would waste the matrix products.
const FEWEST_USERS: usize = 64;

/// Goes through the users once.
pub(super) struct ScoredUsers<'a> {
    encoder: &'a Encoder,
    exposure: Option<&'a Exposure>,
    candidates: &'a Candidates<'a>,
    reader: RowReader,
    n_features: usize,
    has_group: bool,
    spread: bool,
    block_users: usize,
    batch: Read,
    next: usize,
    unseen: Unseen,
    n_unexposed: usize,
    /// The groups met so far.
    pub(super) groups: Labels,
}

/// The rows that were read last, as numbers.
#[derive(Default)]
struct Read {
    rows: Vec<u64>,
    ids: Vec<ArrayRef>,
    encoded: Vec<f32>,
    exposed: Option<ExposureRows>,
    masks: Vec<Vec<bool>>,
    group: Vec<u32>,
}

/// Some users, scored.
pub(super) struct Block {
    /// The number of each row in the table.
    pub(super) rows: Vec<u64>,
    /// The id columns.
    pub(super) ids: Vec<ArrayRef>,
    /// Effects of all options but the control.
    pub(super) scores: Scores,
    /// For each expression of [`find_columns`], whether it holds.
    pub(super) masks: Vec<Vec<bool>>,
    /// The group of each user; empty without groups.
    pub(super) group: Vec<u32>,
    n_scored: usize,
}

impl Block {
    /// A block of users whose scores are at hand.
    #[cfg(test)]
    pub(super) fn of_scores(scores: Scores, n_users: usize, masks: Vec<Vec<bool>>, group: Vec<u32>) -> Self {
        let n_scored = scores.mean[0].len() / n_users;
        Self { rows: (0..n_users as u64).collect(), ids: Vec::new(), scores, masks, group, n_scored }
    }

    pub(super) fn n_users(&self) -> usize {
        self.rows.len()
    }

    /// The predicted effect of an option.
    #[inline]
    pub(super) fn effect(&self, outcome: usize, user: usize, option: usize) -> f64 {
        self.at(&self.scores.mean, outcome, user, option)
    }

    /// How far it may be off; 0 where that was not asked for.
    #[inline]
    pub(super) fn spread(&self, outcome: usize, user: usize, option: usize) -> f64 {
        self.at(&self.scores.spread, outcome, user, option)
    }

    #[inline]
    fn at(&self, numbers: &[Vec<f32>], outcome: usize, user: usize, option: usize) -> f64 {
        match (option, numbers.get(outcome)) {
            (0, _) | (_, None) => 0.0,
            (option, Some(numbers)) => f64::from(numbers[user * self.n_scored + option - 1]),
        }
    }
}

/// The columns of users: the model's features, then the group; expressions as populations.
pub(super) fn find_columns(
    source: &Source,
    mut columns: Columns,
    expressions: &[&str],
    group: Option<&str>,
) -> Result<Columns> {
    if let Some(group) = group {
        let field = source.schema().field_with_name(group);
        let field = field.map_err(|_| Error::missing_column(group, source.column_names()).at("‹group›"))?;
        let kind = ColumnKind::of(field.data_type()).ok_or_else(|| {
            Error::input(format!("column `{group}` has type {}", field.data_type()))
                .at("‹group›")
                .hint("groups are numbers or text")
        })?;
        columns.features.push(Feature { name: group.to_owned(), kind });
    }
    let filters = expressions
        .iter()
        .map(|text| Filter::parse(text, source.schema()).map_err(|error| error.within("‹eligible›")));
    columns.populations = filters.collect::<Result<_>>()?;
    Ok(columns)
}

impl<'a> ScoredUsers<'a> {
    /// Starts reading. `spread` asks for how far effects may be off.
    pub(super) fn start(
        model: &'a Model,
        candidates: &'a Candidates<'a>,
        source: &Source,
        columns: &Columns,
        has_group: bool,
        spread: bool,
    ) -> Result<Self> {
        let n_scored = candidates.names.len() - 1;
        Ok(Self {
            encoder: &model.manifest().encoder,
            exposure: model.manifest().exposure.as_ref(),
            candidates,
            reader: RowReader::new(source, columns)?,
            n_features: columns.features.len() - usize::from(has_group),
            has_group,
            spread,
            block_users: (BLOCK_PAIRS / n_scored.max(1)).max(FEWEST_USERS),
            batch: Read::default(),
            next: 0,
            unseen: Unseen::default(),
            n_unexposed: 0,
            groups: Labels::new(),
        })
    }

    /// Hands every block to `act`, in order; scoring of the next goes on meanwhile.
    pub(super) fn each(
        mut self,
        (stage, n_rows): (&str, Option<u64>),
        progress: &dyn Progress,
        mut act: impl FnMut(Block, &Labels) -> Result<()> + Send,
    ) -> Result<Labels> {
        progress.start(stage, "users", n_rows);
        let mut ready: Option<(Block, Labels)> = None;
        loop {
            let acted = ready.take();
            let n_acted = acted.as_ref().map_or(0, |(block, _)| block.n_users());
            let (done, next) = rayon::join(
                || acted.map_or(Ok(()), |(block, groups)| act(block, &groups)),
                || self.next_block(),
            );
            done?;
            progress.advance(n_acted as u64);
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let Some(block) = next? else { break };
            ready = Some((block, self.groups.clone()));
        }
        progress.finish();
        self.unseen.notes(self.encoder).iter().for_each(|note| progress.warn(note));
        let note = self.exposure.and_then(|exposure| exposure.note(self.n_unexposed));
        note.iter().for_each(|note| progress.warn(note));
        Ok(self.groups)
    }

    fn next_block(&mut self) -> Result<Option<Block>> {
        let width = self.encoder.width();
        if self.next == self.batch.rows.len() && !self.read()? {
            return Ok(None);
        }
        let (first, end) = (self.next, self.batch.rows.len().min(self.next + self.block_users));
        let x = DenseRows::new(&self.batch.encoded[first * width..end * width], width)?;
        let exposed = self.batch.exposed.as_ref().map(|rows| rows.part(first, end));
        let x = ExposedRows { x: &x, exposure: exposed.as_ref() };
        let scores = self.candidates.scorer.score(&x, self.spread)?;
        self.next = end;
        if let Some(place) = scores.mean.iter().flatten().position(|effect| !effect.is_finite()) {
            return Err(Error::input(format!("a predicted effect is not finite (number {place})"))
                .hint("the model was not fitted well: look at its effects with `poul effect`"));
        }
        let group = match self.batch.group.is_empty() {
            true => Vec::new(),
            false => self.batch.group[first..end].to_vec(),
        };
        Ok(Some(Block {
            rows: self.batch.rows[first..end].to_vec(),
            ids: self.batch.ids.iter().map(|ids| ids.slice(first, end - first)).collect(),
            masks: self.batch.masks.iter().map(|mask| mask[first..end].to_vec()).collect(),
            group,
            n_scored: self.candidates.names.len() - 1,
            scores,
        }))
    }

    /// Reads the next rows; false after the last.
    fn read(&mut self) -> Result<bool> {
        let Some(batch) = self.reader.next_batch()? else { return Ok(false) };
        let read = &mut self.batch;
        read.encoded.resize(batch.n_rows() * self.encoder.width(), 0.0);
        let features = &batch.features[..self.n_features];
        self.encoder.encode_counting(features, &mut read.encoded, &mut self.unseen)?;
        read.exposed = self.exposure.map(|exposure| exposure.rows(&batch.exposure));
        self.n_unexposed += read.exposed.as_ref().map_or(0, ExposureRows::n_unexposed);
        read.group.clear();
        if self.has_group {
            let codes = self.groups.codes_of(&batch.features[self.n_features]);
            read.group = codes.map_err(|row| {
                Error::input("the group is null")
                    .at(format!("row {}", batch.rows[row] + 1))
                    .hint("leave such rows out: ‹population=COL is not null›")
            })?;
        }
        (read.rows, read.ids, read.masks, self.next) = (batch.rows, batch.ids, batch.populations, 0);
        Ok(true)
    }
}
