//! What a fit that was stopped left behind: damaged or forged, and gone on from.
//!
//! An input is the number of the moment at which the fit was stopped, the name of a file of its checkpoint, and what is in its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_array::RecordBatch;
use poul::data::{Design, Roles};
use poul::effect::Settings;
use poul::model::Model;
use poul::policy::PolicySet;
use poul::{Checkpoint, Error, Kind, Progress, Silent};
use serde_json::json;

use super::Target;
use crate::execution::{Ended, promised, refused};
use crate::front_door::{self, Fitting};
use crate::random::Random;
use crate::{corpus, mutate};

/// Steps between two writes of the state.
const STEPS_BETWEEN: u64 = 3;
/// Moments at which the fit is stopped.
const STOPS: u64 = 6;

pub(crate) fn open(folder: &Path) -> Result<Box<dyn Target>, String> {
    let training = json!({ "folds": 2, "epochs": 2, "batch_rows": 16 });
    let network = json!({ "members": 2, "hidden": [4] });
    let boosted = json!({ "members": 1, "hidden": [4], "outcome_model": "boosted" });
    let forest = json!({ "trees": 24, "min_arm_rows": 2, "nuisance_trees": 60 });
    let works = [
        ("poul", json!({ "model": network, "training": training })),
        ("poul", json!({ "model": boosted, "training": training })),
        ("causal-forest", json!({ "model": forest })),
    ];
    let mut target = Checkpoints {
        folder: Checkpoint::beside(folder.join("m.poul")),
        batch: corpus::table(48, 4),
        roles: Roles { design: Design::Observational, ..front_door::roles() },
        policies: front_door::policies(),
        works: Vec::new(),
        moments: Vec::new(),
    };
    for (learner, settings) in works {
        target.add(learner, serde_json::from_value(settings).map_err(|error| error.to_string())?)?;
    }
    Ok(Box::new(target))
}

struct Checkpoints {
    folder: PathBuf,
    batch: RecordBatch,
    roles: Roles,
    policies: PolicySet,
    works: Vec<Work>,
    /// What was left, and of which work.
    moments: Vec<(usize, BTreeMap<String, Vec<u8>>)>,
}

/// A fit that is stopped.
struct Work {
    learner: &'static str,
    settings: Settings,
    /// The model of a fit that was not stopped.
    whole: Vec<u8>,
}

/// Asks to stop after so many steps.
struct Stop {
    after: u64,
    n_steps: AtomicU64,
}

impl Progress for Stop {
    fn advance(&self, _: u64) {
        self.n_steps.fetch_add(1, Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.n_steps.load(Relaxed) >= self.after
    }
}

impl Checkpoints {
    /// Adds a work, and what is left of it at some moments.
    fn add(&mut self, learner: &'static str, settings: Settings) -> Result<(), String> {
        let failed = |error: Error| format!("the seed cannot be fitted: {error}");
        let counter = Stop { after: u64::MAX, n_steps: AtomicU64::new(0) };
        let mut work = Work { learner, settings, whole: Vec::new() };
        work.whole = self.fit(&work, false, &counter).and_then(|model| model.to_bytes()).map_err(failed)?;
        // What is left of work that was over, too: every part is finished.
        let mut left = vec![files(&self.folder)?];
        let n_steps = counter.n_steps.into_inner();
        for stop in 1..=STOPS {
            let listener = Stop { after: n_steps * stop / (STOPS + 1), n_steps: AtomicU64::new(0) };
            match self.fit(&work, false, &listener) {
                Err(error) if error.kind() == Kind::Cancelled => left.push(files(&self.folder)?),
                Err(error) => return Err(failed(error)),
                Ok(_) => {}
            }
        }
        left.retain(|files| !files.is_empty());
        if left.is_empty() {
            return Err(format!("no stop of `{learner}` left a checkpoint"));
        }
        self.moments.extend(left.into_iter().map(|files| (self.works.len(), files)));
        self.works.push(work);
        Ok(())
    }

    fn fit(&self, work: &Work, resume: bool, progress: &dyn Progress) -> poul::Result<Model> {
        let fitting = Fitting {
            batch: &self.batch,
            roles: &self.roles,
            policies: &self.policies,
            control: Some("control"),
            learner: work.learner,
            settings: &work.settings,
            seed: 5,
            checkpoint: Some((&self.folder, resume, STEPS_BETWEEN)),
        };
        fitting.fit(progress)
    }
}

fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        files.insert(name, std::fs::read(path).map_err(failed)?);
    }
    Ok(files)
}

impl Target for Checkpoints {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let moment = random.below(self.moments.len());
        let files = &self.moments[moment].1;
        let names: Vec<&String> = files.keys().collect();
        let name = names[random.below(names.len())];
        let (file, other) = (&files[name], &files[names[random.below(names.len())]]);
        let changed = match serde_json::from_slice(file) {
            Ok(mut tree) if !random.once_in(4) => {
                mutate::json(random, &mut tree);
                Some(tree.to_string().into_bytes())
            }
            _ if random.once_in(4) => None,
            _ => mutate::checkpoint_entry(random, file, other),
        };
        let changed = changed.unwrap_or_else(|| {
            let mut bytes = file.clone();
            mutate::bytes(random, &mut bytes, other);
            bytes
        });
        [format!("{moment}\n{name}\n").as_bytes(), &changed].concat()
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        let mut parts = input.splitn(3, |byte| *byte == b'\n');
        let mut part = || parts.next().unwrap_or_default();
        let (moment, name, content) = (part(), part(), part());
        let moment = String::from_utf8_lossy(moment).parse().ok();
        let Some((work, files)) = moment.and_then(|moment: usize| self.moments.get(moment)) else {
            return Ok(Ended::Refused);
        };
        let work = &self.works[*work];
        let name = String::from_utf8_lossy(name).into_owned();
        let Some(original) = files.get(&name) else { return Ok(Ended::Refused) };
        let failed = |error: std::io::Error| error.to_string();
        let _ = std::fs::remove_dir_all(&self.folder);
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        for (other, bytes) in files {
            let bytes = if *other == name { content } else { bytes };
            std::fs::write(self.folder.join(other), bytes).map_err(failed)?;
        }
        match self.fit(work, true, &Silent).and_then(|model| model.to_bytes()) {
            Err(error) => refused_or_diverged(&error),
            Ok(model) => {
                // Damage without a right checksum must not change the model.
                let body = content.len().saturating_sub(8);
                let is_forged = content[body..] == mutate::checksum(&content[..body]).to_le_bytes();
                let may_differ = is_forged || !name.ends_with(".part");
                promised(may_differ || model == work.whole, || {
                    format!("damage of {name} went into the model")
                })?;
                promised(content != original || model == work.whole, || {
                    "going on gives another model".to_owned()
                })?;
                Ok(Ended::Accepted)
            }
        }
    }
}

/// A forged state may hold weights from which training diverges, and is told so.
fn refused_or_diverged(error: &Error) -> Result<Ended, String> {
    let text = error.to_string();
    let is_forged =
        ["training diverged", "not finite", "cannot store the model"].iter().any(|said| text.contains(said));
    if is_forged { Ok(Ended::Refused) } else { refused(error) }
}
