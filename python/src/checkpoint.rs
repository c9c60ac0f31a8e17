//! Where long work leaves what it has done, so that it goes on after it was stopped: `checkpoint` and `resume`.

use std::path::PathBuf;

use poul::model::CheckpointPlan;
use poul::{Checkpoint, OutputLock, Progress, Result};
use serde::Deserialize;

/// A folder of its own, and whether to go on from what is there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointSettings {
    folder: PathBuf,
    resume: bool,
}

impl CheckpointSettings {
    /// Keeps others out of the folder as long as the lock lives.
    pub(crate) fn hold(&self) -> Result<OutputLock> {
        OutputLock::hold(&self.folder)
    }

    /// As the library takes it. Says what becomes of a folder that is there, or that it is not.
    pub(crate) fn plan(&self, progress: &dyn Progress) -> CheckpointPlan<'_> {
        let Self { folder, resume } = self;
        let shown = folder.display();
        match (Checkpoint::exists(folder), resume) {
            (true, false) => progress.warn(&format!(
                "{shown} is left from work that was stopped; this work starts afresh and replaces it, resume=True goes \
                 on from it"
            )),
            (false, true) => {
                progress.warn(&format!("there is nothing in {shown}: starting from the beginning"));
            }
            _ => {}
        }
        CheckpointPlan { folder, resume: *resume, steps_between: None }
    }

    /// The work is done. A folder that stays is a nuisance, not a failure.
    pub(crate) fn remove(&self, progress: &dyn Progress) {
        if let Err(error) = Checkpoint::remove(&self.folder) {
            progress.warn(&error.to_string());
        }
    }
}
