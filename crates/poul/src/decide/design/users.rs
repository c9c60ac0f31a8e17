//! The users that averages are taken over, where they are not those of training.
//!
//! τ_i differs from user to user, so that its mean over other users is another average: that of training plus what the model
//! says these users differ by. How sure it is stays what it was, as in evaluations. While policies are searched the mean is
//! that of some users, evenly spaced; what is proposed is told for all.

use crate::data::{Columns, Need, Roles, RowReader, Source, Unseen};
use crate::effect::{ExposedRows, Scorer};
use crate::model::Model;
use crate::net::DenseRows;
use crate::policy::{ExposureRows, PolicySet};
use crate::{Error, Progress, Result};

/// Users that are kept for the search.
const KEPT: usize = 1024;
/// Pairs of a user and a policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;

/// A table of users.
pub struct Users<'a> {
    source: &'a Source,
    columns: Columns,
    /// Encoded features of those that are kept.
    kept: Vec<f32>,
    exposed: Option<ExposureRows>,
    n_users: usize,
}

impl<'a> Users<'a> {
    /// Reads the users once: the rows of a table for which the expression `population` holds, or all.
    pub fn read(
        model: &Model,
        source: &'a Source,
        population: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let fitted = &model.manifest().roles;
        let roles = Roles {
            population: population.map(str::to_owned),
            treatment: fitted.treatment.clone(),
            treatment_columns: fitted.treatment_columns.clone(),
            ..Roles::default()
        };
        let columns = model.columns(source, &roles, Need::SCORE)?;
        let width = model.manifest().encoder.width();
        let mut users = Self { source, columns, kept: Vec::new(), exposed: None, n_users: 0 };
        let (mut step, mut unseen) = (1, Unseen::default());
        progress.start("Users", "rows", source.n_rows());
        users.each(model, &mut unseen, |users, encoded, exposed| {
            let n_rows = encoded.len() / width;
            let chosen: Vec<usize> =
                (0..n_rows).filter(|row| (users.n_users + row).is_multiple_of(step)).collect();
            for row in &chosen {
                users.kept.extend_from_slice(&encoded[row * width..][..width]);
            }
            if let Some(exposed) = exposed {
                users.exposed.get_or_insert_default().append(&exposed.some(&chosen));
            }
            users.n_users += n_rows;
            // Twice as many as are wanted: every other one is enough.
            while users.kept.len() / width >= 2 * KEPT {
                let every_other: Vec<usize> = (0..users.kept.len() / width).step_by(2).collect();
                users.kept =
                    every_other.iter().flat_map(|row| users.kept[row * width..][..width].to_vec()).collect();
                users.exposed = users.exposed.take().map(|own| own.some(&every_other));
                step *= 2;
            }
            progress.advance(n_rows as u64);
            if progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
        })?;
        progress.finish();
        unseen.notes(&model.manifest().encoder).iter().for_each(|note| progress.warn(note));
        if users.n_users == 0 {
            return Err(Error::input("there are no users").hint("give a table with rows, or leave it out"));
        }
        Ok(users)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.n_users
    }

    /// Whether there are none; never true of users that were read.
    pub fn is_empty(&self) -> bool {
        self.n_users == 0
    }

    /// By outcome, the mean effects of some policies over the users that are kept.
    pub(super) fn means(
        &self,
        model: &Model,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Vec<Vec<f64>>> {
        let scorer = model.effects().prepare(policies, targets, against)?;
        let mut sums = Sums::new(model, targets.len());
        sums.add(scorer.as_ref(), model, &self.kept, self.exposed.as_ref())?;
        Ok(sums.means())
    }

    /// The same over all users.
    pub(super) fn means_of_all(
        &mut self,
        model: &Model,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Vec<Vec<f64>>> {
        let scorer = model.effects().prepare(policies, targets, against)?;
        let mut sums = Sums::new(model, targets.len());
        self.each(model, &mut Unseen::default(), |_, encoded, exposed| {
            sums.add(scorer.as_ref(), model, encoded, exposed)
        })?;
        Ok(sums.means())
    }

    /// Hands the encoded rows on, batch after batch.
    fn each(
        &mut self,
        model: &Model,
        unseen: &mut Unseen,
        mut act: impl FnMut(&mut Self, &[f32], Option<&ExposureRows>) -> Result<()>,
    ) -> Result<()> {
        let (encoder, exposure) = (&model.manifest().encoder, model.manifest().exposure.as_ref());
        let mut reader = RowReader::new(self.source, &self.columns)?;
        let mut encoded = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            encoded.resize(batch.n_rows() * encoder.width(), 0.0);
            encoder.encode_counting(&batch.features, &mut encoded, unseen)?;
            let exposed = exposure.map(|own| own.rows(&batch.exposure));
            act(self, &encoded, exposed.as_ref())?;
        }
        Ok(())
    }
}

/// Sums of effects by outcome and target.
struct Sums {
    values: Vec<Vec<f64>>,
    n_rows: usize,
}

impl Sums {
    fn new(model: &Model, n_targets: usize) -> Self {
        Self { values: vec![vec![0.0; n_targets]; model.effects().outcomes().len()], n_rows: 0 }
    }

    fn add(
        &mut self,
        scorer: &dyn Scorer,
        model: &Model,
        encoded: &[f32],
        exposed: Option<&ExposureRows>,
    ) -> Result<()> {
        let width = model.manifest().encoder.width();
        let n_targets = self.values.first().map_or(0, Vec::len);
        let block_rows = (BLOCK_PAIRS / n_targets.max(1)).max(64);
        for (number, block) in encoded.chunks(block_rows * width).enumerate() {
            let x = DenseRows::new(block, width)?;
            let (first, n_rows) = (number * block_rows, block.len() / width);
            let exposed = exposed.map(|rows| rows.part(first, first + n_rows));
            let scores = scorer.score(&ExposedRows { x: &x, exposure: exposed.as_ref() }, false)?;
            for (sums, mean) in self.values.iter_mut().zip(&scores.mean) {
                for row in mean.chunks_exact(n_targets) {
                    sums.iter_mut().zip(row).for_each(|(sum, effect)| *sum += f64::from(*effect));
                }
            }
            self.n_rows += n_rows;
        }
        Ok(())
    }

    fn means(self) -> Vec<Vec<f64>> {
        let n_rows = self.n_rows.max(1) as f64;
        self.values.into_iter().map(|sums| sums.into_iter().map(|sum| sum / n_rows).collect()).collect()
    }
}
