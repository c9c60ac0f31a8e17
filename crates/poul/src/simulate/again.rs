//! Other policies in a world that was simulated before: the same truth, new users.
//!
//! The settings of a world stand in its folder, and its seed draws the same world again. What is new are the policies, which
//! are assigned at random in equal shares beside control, and the users.

use std::path::{Path, PathBuf};

use super::params::{Simulation, Valid};
use super::policies::{PolicyTable, Rules};
use super::run::{Output, Summary};
use super::scenario::Task;
use super::world::World;
use crate::policy::PolicySet;
use crate::{Error, Kind, Progress, Result, Seed, quoted_word};

/// A further round in a world.
#[derive(Clone, Debug)]
pub struct Again {
    /// The folder of the world.
    pub world: PathBuf,
    /// The policies, as a file.
    pub policies: PathBuf,
    /// Rows of the training table; as many as the world's.
    pub rows: Option<u64>,
    /// Rows of the test table; a quarter of `rows`.
    pub test_rows: Option<u64>,
    /// Test rows whose true effects are written; all, within what is affordable.
    pub truth_rows: Option<u64>,
    /// Which users: another number draws others. Those of the world itself are never drawn again.
    pub seed: u64,
}

/// Draws the users of a round and writes what [`run`](super::run) does to `folder`.
pub fn run_again(request: &Again, folder: &Path, progress: &dyn Progress) -> Result<Summary> {
    let world = read(&request.world)?;
    let params = world.check().map_err(|error| error.file(request.world.join("world.toml")))?;
    let world_seed = Seed::new(params.seed).child("simulate").child("world");
    let round = Round { request, settings: &world, folder, progress };
    (params.scenario.draw)(&params, world_seed, Task::Again(round))
}

/// A round that is to be run in a world.
pub(super) struct Round<'a> {
    request: &'a Again,
    /// The settings of the world.
    settings: &'a Simulation,
    folder: &'a Path,
    progress: &'a dyn Progress,
}

impl Round<'_> {
    /// Runs the policies in the world.
    pub(super) fn write<W: World>(self, world: W) -> Result<Summary> {
        let Self { request, settings, folder, progress } = self;
        let table = policies(&world.setting().policies, &request.policies)?;
        let n_policies = table.names.len();
        let round = Simulation {
            rows: request.rows.unwrap_or(settings.rows),
            test_rows: request.test_rows,
            truth_rows: request.truth_rows,
            ..settings.clone()
        };
        let params = Valid { n_policies, ..round.check()? };
        let world = world.with_policies(table, vec![1.0 / n_policies as f64; n_policies]);
        let made_by = format!(
            "poul simulate --world {} --policies {} --rows {} --test-rows {} --truth-rows {} --seed {} --out .",
            quoted_word(&request.world.display().to_string()),
            quoted_word(&request.policies.display().to_string()),
            params.n_train,
            params.n_test,
            params.n_truth,
            request.seed,
        );
        std::fs::create_dir_all(folder).map_err(|error| Error::output(folder, error))?;
        let seed = Seed::new(params.seed).child("simulate").child("again").index(request.seed);
        let output = Output {
            params: &params,
            world: settings,
            folder,
            progress,
            seed,
            files: Vec::new(),
            made_by: Some(made_by),
        };
        output.write(&world, false)
    }
}

/// The settings of the world in a folder.
fn read(folder: &Path) -> Result<Simulation> {
    let path = folder.join("world.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let error = Error::read(&path, error);
        match missing {
            true => error.hint("a world is a folder that `poul simulate` of this version wrote"),
            false => error,
        }
    })?;
    toml::from_str(&text).map_err(|error| {
        Error::input(format!("not the settings of a world: {}", error.message()))
            .file(&path)
            .hint("simulate the world again")
    })
}

/// The policies of a file beside the world's control, in the terms of the world.
fn policies(world: &PolicyTable, path: &Path) -> Result<PolicyTable> {
    let control =
        PolicyTable { names: world.names[..1].to_vec(), rules: world.rules[..1].to_vec(), ..world.clone() };
    let control = PolicySet::from_toml(&control.to_toml(), Path::new("policies.toml"))?;
    let found = control.read_beside(path, None)?;
    let mut table = PolicyTable { names: Vec::new(), rules: Vec::new(), ..world.clone() };
    let first = found.require(&world.names[0])?;
    for policy in std::iter::once(first).chain((0..found.len()).filter(|policy| *policy != first)) {
        table.rules.push(rules(world, &found, policy).map_err(|error| error.file(path))?);
        table.names.push(found.name(policy).to_owned());
    }
    if table.names.len() < 2 {
        return Err(Error::input("there is no policy but the control")
            .file(path)
            .hint("name the policies to run"));
    }
    Ok(table)
}

/// Whole percentages of a policy.
fn rules(world: &PolicyTable, found: &PolicySet, policy: usize) -> Result<Rules> {
    let by_context = found.by_context(policy);
    let mut rules = Vec::with_capacity(world.contexts.len() * world.actions.len());
    for context in &world.contexts {
        let mut cell = vec![0_u8; world.actions.len()];
        let place = found.contexts().iter().position(|own| own == context);
        for (action, probability) in place.map(|place| by_context[place].as_slice()).unwrap_or_default() {
            let at = |error: Error| error.at(format!("policy `{}`, context `{context}`", found.name(policy)));
            let action_place = world.actions.iter().position(|own| own == action).ok_or_else(|| {
                let known = world.actions.iter().map(String::as_str);
                at(Error::unknown(Kind::Input, "action", action, "actions of the world", known))
            })?;
            let percent = (100.0 * probability).round();
            if (percent - 100.0 * probability).abs() > 1e-6 {
                let what = format!("the probability {probability} of `{action}` is not a whole percentage");
                return Err(at(Error::input(what).hint("simulated worlds know whole percentages only")));
            }
            cell[action_place] = percent as u8;
        }
        rules.extend(cell);
    }
    Ok(rules)
}
