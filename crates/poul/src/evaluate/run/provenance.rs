//! Where the numbers of an evaluation come from: commands, seeds, fingerprints, and how training went.

use super::EvaluationRequest;
use crate::data::Source;
use crate::evaluate::{Provenance, TrainingPoint};
use crate::model::{DataRecord, DataUse, Model};
use crate::{Result, command_line};

/// Of effects that were read from columns.
pub(super) fn of_columns(source: &Source, request: &EvaluationRequest) -> Result<Provenance> {
    Ok(Provenance {
        poul: env!("CARGO_PKG_VERSION").to_owned(),
        command: request.command.clone(),
        seeds: vec![("evaluation".to_owned(), request.seed)],
        files: vec![(tested(source), source.fingerprint()?)],
        ..Provenance::default()
    })
}

/// Of effects that a model predicted.
pub(super) fn of_model(model: &Model, source: &Source, request: &EvaluationRequest) -> Result<Provenance> {
    let manifest = model.manifest();
    let mut provenance = of_columns(source, request)?;
    provenance.seeds.insert(0, ("fit".to_owned(), manifest.seed));
    let trained = manifest.data.iter().map(|data| (trained_on(data), data.fingerprint.clone()));
    provenance.files = trained.chain(provenance.files).collect();
    provenance.fit_command = (!manifest.command.is_empty()).then(|| command_line(&manifest.command));
    provenance.learner = Some(manifest.learner.clone());
    provenance.design = Some(manifest.roles.design.name().to_owned());
    provenance.fit_notes.clone_from(&manifest.notes);
    for phase in &manifest.history {
        let points = phase.epochs.iter().enumerate().map(|(place, epoch)| TrainingPoint {
            phase: phase.name.clone(),
            epoch: place + 1,
            loss: epoch.loss,
            validation: epoch.validation,
        });
        provenance.history.extend(points);
    }
    Ok(provenance)
}

/// The files without folders: the same data elsewhere are the same data.
fn tested(source: &Source) -> String {
    let name = |path: &&std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let names: Vec<String> = source.files().iter().filter_map(name).collect();
    format!("{} (test)", several(&names))
}

fn trained_on(data: &DataRecord) -> String {
    let used_for = match data.used_for {
        DataUse::Experiment => "training",
        DataUse::Baseline => "baseline",
    };
    format!("{} ({used_for})", several(&data.files))
}

fn several(names: &[String]) -> String {
    match names {
        [] => "a table in memory".to_owned(),
        [name] => name.clone(),
        [name, rest @ ..] => format!("{name} and {} more", rest.len()),
    }
}
