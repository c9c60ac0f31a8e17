//! An experiment made ready once for any number of learners: rows to train on, rows to validate on, the nuisances that
//! all are judged by, and rows to test on.

use serde_json::json;

use super::part::{EncodedTable, Part, Setting, in_file};
use super::validation::Validation;
use crate::check::screen;
use crate::data::{Budget, Columns, Encoder, Filter, Roles, Source, ValidEncoderParams};
use crate::effect::{Settings, Trained};
use crate::model::Learner;
use crate::nuisance::StratumTable;
use crate::policy::PolicySet;
use crate::{Error, Progress, Result, Seed};

/// The data that learners are trained and judged on.
#[derive(Clone, Copy)]
pub struct Experiment<'a> {
    /// The table.
    pub source: &'a Source,
    /// The roles as given.
    pub roles: &'a Roles,
    /// The roles as found in it.
    pub columns: &'a Columns,
    /// The policies of this table and of the test table.
    pub policies: &'a PolicySet,
    /// The policy that others are compared with.
    pub control: &'a str,
    /// π(t | stratum) as it was designed. Without it, shares within each stratum.
    pub strata_table: Option<&'a Source>,
    /// The encoder's settings.
    pub encoder: &'a ValidEncoderParams,
    /// Memory for encoded rows.
    pub budget: &'a Budget,
    /// The root of all random streams.
    pub seed: u64,
    /// Share of the training units (clusters, or rows) held out for the validation R-loss. Default 0.1; in [0, 0.5];
    /// 0: no R-loss.
    pub validation_share: f64,
}

/// Which rows are tested on.
#[derive(Clone, Copy)]
pub enum Split<'a> {
    /// Those of another table, whose roles are these.
    Table(&'a Source, &'a Columns),
    /// Those for which the second expression holds; those for which the first does are trained on.
    Filters(&'a Filter, &'a Filter),
    /// A share of the units, at random; above 0, below 1.
    Share(f64),
}

/// An experiment that was read.
pub(crate) struct Prepared<'a> {
    pub(crate) table: EncodedTable,
    pub(crate) setting: Setting<'a>,
    pub(crate) train: Part,
    pub(crate) validation: Option<Validation>,
    pub(crate) encoder: Encoder,
}

impl<'a> Experiment<'a> {
    /// Reads and encodes the training rows, holds validation rows out and fits the nuisances. With [`Split::Share`] the
    /// test rows are of the same table, and come back as their numbers.
    ///
    /// `populations` are expressions that training asks for, or that test rows are told apart by.
    pub(crate) fn prepare(
        &self,
        split: Option<Split<'_>>,
        populations: &[&str],
        progress: &dyn Progress,
    ) -> Result<(Prepared<'a>, Vec<u32>)> {
        self.check(split)?;
        let strata_table =
            self.strata_table.map(|source| StratumTable::from_source(source, self.policies.names()));
        let setting = Setting {
            policies: self.policies,
            control: self.policies.require(self.control).map_err(|error| error.at("control"))?,
            design: self.columns.design,
            strata_table: strata_table.transpose()?,
        };
        let populations = populations.iter().copied();
        let columns = self.columns.clone().with_populations(populations, self.source.schema())?;
        let mut columns = columns.with_contexts(self.policies, self.source.schema())?;
        if let Some(Split::Filters(train, _)) = split {
            columns.population = Some(train.clone());
        }
        screen::refuse_by_name(&columns).map_err(|error| in_file(error, self.source))?;
        let encoder = Encoder::fit(self.source, &columns, self.encoder, progress);
        let encoder = encoder.map_err(|error| in_file(error, self.source))?;
        encoder.notes().iter().for_each(|note| progress.warn(note));
        let table =
            EncodedTable::read(self.source, &columns, &encoder, self.policies, None, self.budget, progress)?;
        let (dataset, policy) = (&table.dataset, &table.dataset.policy);
        let screened =
            screen::screen_training(self.source, &columns, dataset, &encoder, self.policies, policy);
        let screened = screened.map_err(|error| in_file(error, self.source))?;
        screened.iter().for_each(|warning| progress.warn(warning));
        let all: Vec<u32> = (0..table.n_rows() as u32).collect();
        let seed = Seed::new(self.seed).child("compare");
        let (test, rest) = match split {
            Some(Split::Share(share)) => {
                let is_test = table.draw_units(&all, share, seed.child("test"));
                all.into_iter().partition(|row| is_test[*row as usize])
            }
            _ => (Vec::new(), all),
        };
        let is_held = table.draw_units(&rest, self.validation_share, seed.child("validation"));
        let marked = || rest.iter().zip(&is_held);
        let held: Vec<u32> = marked().filter(|(_, held)| **held).map(|(row, _)| *row).collect();
        let kept: Vec<u32> = marked().filter(|(_, held)| !**held).map(|(row, _)| *row).collect();
        let train = table.part(kept);
        let validation = match held.is_empty() {
            true => None,
            false => Some(Validation::new(&table, &train, table.part(held), &setting, seed, progress)?),
        };
        Ok((Prepared { table, setting, train, validation, encoder }, test))
    }

    /// Everything about the data that decides a result, by name.
    pub(crate) fn work(&self) -> Result<serde_json::Value> {
        let failed = |error| Error::other(format!("cannot describe the work: {error}")).source(error);
        let policies = serde_json::to_vec(self.policies).map_err(failed)?;
        Ok(json!({
            "poul": env!("CARGO_PKG_VERSION"),
            "data": self.source.fingerprint()?,
            "roles": serde_json::to_value(self.roles).map_err(failed)?,
            "policies": format!("{:016x}", crate::checkpoint::hash(&policies)),
            "control": self.control,
            "strata_table": self.strata_table.map(Source::fingerprint).transpose()?,
            "encoder": serde_json::to_value(&**self.encoder).map_err(failed)?,
            "seed": self.seed,
            "validation_share": self.validation_share,
        }))
    }

    fn check(&self, split: Option<Split<'_>>) -> Result<()> {
        if !(0.0..=0.5).contains(&self.validation_share) {
            let error = Error::usage(format!("a validation share of {}", self.validation_share));
            return Err(error.hint("use 0 to 0.5; 0 goes without the validation R-loss"));
        }
        match split {
            Some(Split::Share(share)) if !(share > 0.0 && share < 1.0) => {
                let error = Error::usage(format!("a test share of {share}"));
                Err(error.hint("it lies above 0 and below 1, such as 0.3"))
            }
            _ => Ok(()),
        }
    }
}

impl Prepared<'_> {
    /// Trains a learner on `part` of the rows, by settings that were settled.
    pub(crate) fn train(
        &self,
        part: &Part,
        learner: &Learner,
        settings: &Settings,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Trained> {
        let takes_exposure = learner.takes_exposure();
        let all = if takes_exposure { self.table.x() } else { self.table.features() };
        let x = part.x(all);
        let data = part.training_data(&x, &self.setting)?.check()?;
        let mut trained = (learner.train)(&data, settings, Seed::new(seed), progress)?;
        if self.table.exposure.is_some() && !takes_exposure {
            trained.notes.push(learner.exposure_note());
        }
        Ok(trained)
    }
}
