//! An experiment made ready once for any number of learners: rows to train on, rows to validate on, the nuisances that
//! all are judged by, and rows to test on.

use serde_json::json;

use super::part::{EncodedTable, Part, Setting, in_file};
use super::split::Split;
use super::validation::Validation;
use crate::check::screen;
use crate::data::{Budget, Encoder, Source, ValidEncoderParams};
use crate::effect::{Settings, Trained};
use crate::experiment::Experiment;
use crate::model::Learner;
use crate::{Error, Progress, Result, Run, Seed};

/// How an experiment is made ready for learners.
#[derive(Clone)]
pub struct Preparation<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The encoder's settings.
    pub encoder: ValidEncoderParams,
    /// Memory for encoded rows.
    pub budget: Budget,
    /// The root of all random streams.
    pub seed: u64,
    /// Share of the training units (clusters, or rows) held out for the validation R-loss. Default 0.1; in [0, 0.5];
    /// 0: no R-loss.
    pub validation_share: f64,
}

/// An experiment that was read.
pub(crate) struct Prepared {
    pub(crate) table: EncodedTable,
    pub(crate) setting: Setting,
    pub(crate) train: Part,
    pub(crate) validation: Option<Validation>,
    pub(crate) encoder: Encoder,
}

impl<'a> Preparation<'a> {
    /// With all defaults.
    pub fn new(experiment: &'a Experiment) -> Self {
        let (encoder, budget) = (ValidEncoderParams::default(), Budget::default());
        Self { experiment, encoder, budget, seed: 3407, validation_share: 0.1 }
    }
}

impl Preparation<'_> {
    /// Reads and encodes the training rows, holds validation rows out and fits the nuisances. With [`Split::Share`] the
    /// test rows are of the same table, and come back as their numbers.
    ///
    /// `populations` are expressions that training asks for, or that test rows are told apart by.
    pub(crate) fn prepare(
        &self,
        split: Option<&Split>,
        populations: &[&str],
        progress: &dyn Progress,
    ) -> Result<(Prepared, Vec<u32>)> {
        self.check(split)?;
        let experiment = self.experiment;
        let (policies, control) = experiment.with_control()?;
        let strata_table = experiment.designed_strata(&policies)?;
        let setting = Setting { policies, control, design: experiment.design(), strata_table };
        let (source, policies) = (experiment.source(), &setting.policies);
        let populations = populations.iter().copied();
        let mut columns = experiment.columns().clone().with_populations(populations, source.schema())?;
        if let Some(Split::Filters { train, .. }) = split {
            columns.population = Some(train.clone());
        }
        screen::refuse_by_name(&columns).map_err(|error| in_file(error, source))?;
        let encoder = Encoder::fit(source, &columns, &self.encoder, progress);
        let encoder = encoder.map_err(|error| in_file(error, source))?;
        encoder.notes().iter().for_each(|note| progress.warn(note));
        let table = EncodedTable::read(source, &columns, &encoder, policies, None, &self.budget, progress)?;
        let (dataset, policy) = (&table.dataset, &table.dataset.policy);
        let screened = screen::screen_training(source, &columns, dataset, &encoder, policies, policy);
        let screened = screened.map_err(|error| in_file(error, source))?;
        screened.iter().for_each(|warning| progress.warn(warning));
        let all: Vec<u32> = (0..table.n_rows() as u32).collect();
        let seed = Seed::new(self.seed).child("compare");
        let (test, rest) = match split {
            Some(Split::Share(share)) => {
                let is_test = table.draw_units(&all, *share, seed.child("test"));
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
            false => {
                Some(Validation::new(&table, &train, table.part(held), &setting, Run::new(seed, progress))?)
            }
        };
        Ok((Prepared { table, setting, train, validation, encoder }, test))
    }

    /// Everything about the data that decides a result, by name.
    pub(crate) fn work(&self) -> Result<serde_json::Value> {
        let failed = |error| Error::other(format!("cannot describe the work: {error}")).source(error);
        let experiment = self.experiment;
        let (policies, control) = experiment.with_control()?;
        let control = policies.name(control);
        let policies = serde_json::to_vec(&policies).map_err(failed)?;
        Ok(json!({
            "poul": env!("CARGO_PKG_VERSION"),
            "data": experiment.fingerprint()?,
            "roles": serde_json::to_value(experiment.roles()).map_err(failed)?,
            "policies": format!("{:016x}", crate::checkpoint::hash(&policies)),
            "control": control,
            "strata_table": experiment.strata_source().map(Source::fingerprint).transpose()?,
            "encoder": serde_json::to_value(&*self.encoder).map_err(failed)?,
            "seed": self.seed,
            "validation_share": self.validation_share,
        }))
    }

    fn check(&self, split: Option<&Split>) -> Result<()> {
        if !(0.0..=0.5).contains(&self.validation_share) {
            let error = Error::usage(format!("a validation share of {}", self.validation_share));
            return Err(error.hint("use 0 to 0.5; 0 goes without the validation R-loss"));
        }
        match split {
            Some(Split::Share(share)) if !(*share > 0.0 && *share < 1.0) => {
                let error = Error::usage(format!("a test share of {share}"));
                Err(error.hint("it lies above 0 and below 1, such as 0.3"))
            }
            _ => Ok(()),
        }
    }
}

impl Prepared {
    /// Trains a learner on `part` of the rows, by settings that were settled.
    pub(crate) fn train(
        &self,
        part: &Part,
        learner: &Learner,
        settings: &Settings,
        run: Run<'_>,
    ) -> Result<Trained> {
        let takes_exposure = learner.takes_exposure();
        let all = if takes_exposure { self.table.x() } else { self.table.features() };
        let x = part.x(all);
        let data = part.training_data(&x, &self.setting)?.check()?;
        let mut trained = (learner.train)(&data, settings, run)?;
        if self.table.exposure.is_some() && !takes_exposure {
            trained.notes.push(learner.exposure_note());
        }
        Ok(trained)
    }
}
