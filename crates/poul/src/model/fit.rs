//! From a table to a model: read, encode, assign policies, learn, and record how.

use super::Model;
use super::manifest::{DataRecord, FORMAT, Manifest, OutcomeRecord};
use super::registry::learner;
use crate::data::{Budget, Columns, Dataset, Labels, Roles, Source, ValidEncoderParams};
use crate::effect::{Settings, TrainingData, ValidTrainingData};
use crate::net::DenseRows;
use crate::policy::{Assigner, PolicySet};
use crate::{Progress, Result, Seed};

/// What to fit, on what.
pub struct FitRequest<'a> {
    /// The training table.
    pub source: &'a Source,
    /// The roles as given, which the model keeps.
    pub roles: &'a Roles,
    /// The roles as found in the table.
    pub columns: &'a Columns,
    /// The policies that the treatment columns name.
    pub policies: &'a PolicySet,
    /// The policy that others are compared with, if there is one.
    pub control: Option<&'a str>,
    /// The learner's name.
    pub learner: &'a str,
    /// The learner's settings.
    pub settings: &'a Settings,
    /// The encoder's settings.
    pub encoder: &'a ValidEncoderParams,
    /// Memory for encoded rows.
    pub budget: &'a Budget,
    /// The root of all random streams.
    pub seed: u64,
    /// The command, for the record.
    pub command: Vec<String>,
}

/// Fits a model. What is wrong with the settings is told before any row is read.
pub fn fit(request: &FitRequest<'_>, progress: &dyn Progress) -> Result<Model> {
    let learner = learner(request.learner)?;
    let settings = (learner.settle)(request.settings)?;
    let FitRequest { source, columns, policies, .. } = request;
    let control = request.control.map(|name| policies.require(name)).transpose();
    let control = control.map_err(|error| error.at("control"))?;
    let (dataset, encoder) =
        Dataset::read_and_fit(source, columns, request.encoder, request.budget, progress)?;
    let policy = {
        let labels: Vec<&Labels> = dataset.treatment_labels.iter().collect();
        Assigner::new(policies, columns).assign(&dataset.treatment, &labels, &dataset.rows)?
    };
    let x = DenseRows::new(dataset.x.values(), dataset.x.width())?;
    let data = TrainingData::of(&dataset, &x, policies, &policy, columns.design, control)?.check()?;
    let trained = (learner.train)(&data, &settings, Seed::new(request.seed), progress)?;
    trained.notes.iter().for_each(|note| progress.warn(note));
    let manifest = Manifest {
        format: FORMAT,
        poul: env!("CARGO_PKG_VERSION").to_owned(),
        learner: learner.name.to_owned(),
        outcomes: outcomes(&data),
        control: request.control.map(str::to_owned),
        roles: request.roles.clone(),
        settings,
        seed: request.seed,
        data: vec![DataRecord {
            files: file_names(source),
            rows: data.n_rows() as u64,
            fingerprint: source.fingerprint()?,
        }],
        command: request.command.clone(),
        notes: encoder.notes().iter().cloned().chain(trained.notes).collect(),
        history: trained.history,
        policy_rows: data.policy_rows().to_vec(),
        policies: (*policies).clone(),
        encoder,
        model: trained.effects.manifest()?,
    };
    Model::new(manifest, trained.effects)
}

fn outcomes(data: &ValidTrainingData<'_>) -> Vec<OutcomeRecord> {
    let record = |outcome: &crate::effect::OutcomeColumn<'_>| {
        let weight = |row: usize| data.weight.map_or(1.0, |weight| weight[row]);
        let mass: f64 = (0..data.n_rows()).map(weight).sum();
        let mean_of = |value: &dyn Fn(f64) -> f64| {
            let terms = outcome.values.iter().enumerate().map(|(row, y)| weight(row) * value(*y));
            terms.sum::<f64>() / mass
        };
        let mean = mean_of(&|y| y);
        let sd = mean_of(&|y| (y - mean).powi(2)).sqrt();
        OutcomeRecord { name: outcome.name.to_owned(), mean, sd }
    };
    data.outcomes.iter().map(record).collect()
}

/// Names without folders: where a file lay does not matter to the model.
fn file_names(source: &Source) -> Vec<String> {
    let name = |path: &std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    source.files().into_iter().filter_map(name).collect()
}
