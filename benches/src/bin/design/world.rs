//! A simulated world that policies are run in, round after round.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use poul::effect::Settings;
use poul::policy::PolicySet;
use poul::simulate::{Again, Simulation, run, run_again};
use poul::{Error, Experiment, Model, Result, Roles, Silent, Source};

/// Users that true averages are over.
const TRUTH_ROWS: u64 = 4096;
/// Steps of the climb on the truth.
const CLIMB: usize = 12;

/// The size of worlds.
pub(super) struct Shape {
    pub(super) rows: u64,
    pub(super) round_rows: u64,
    pub(super) policies: usize,
    pub(super) features: usize,
    pub(super) epochs: u64,
}

/// A world on disk, and what was run in it.
pub(super) struct World<'a> {
    shape: &'a Shape,
    folder: PathBuf,
    pub(super) policies: PolicySet,
}

impl<'a> World<'a> {
    pub(super) fn new(shape: &'a Shape, seed: u64) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("poul-design-{}", std::process::id()));
        // What an earlier world left would be read as rounds of this one.
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|error| Error::output(&folder, error))?;
        }
        let simulation = Simulation {
            scenario: "long-tail".to_owned(),
            rows: shape.rows,
            test_rows: Some(1),
            truth_rows: Some(1),
            features: Some(shape.features),
            policies: Some(shape.policies),
            seed,
            ..Simulation::default()
        };
        run(&simulation.check()?, &folder.join("world"), &Silent)?;
        let world =
            Self { shape, policies: PolicySet::read(&folder.join("world/policies.toml"), None)?, folder };
        world.keep("world", "round_0")?;
        Ok(world)
    }

    /// Fits all rounds so far.
    pub(super) fn fit(&self) -> Result<Model> {
        let source = Source::open(&self.folder.join("data").to_string_lossy())?;
        let roles = Roles { outcome: vec!["y".to_owned()], ..Roles::default() };
        let mut settings = Settings::default();
        settings.training.insert("epochs".to_owned(), self.shape.epochs.into());
        settings.model.insert("members".to_owned(), 2.into());
        let experiment = Experiment::open(&source, &roles, self.policies.clone(), &Silent)?;
        Model::fit(&experiment).settings(&settings).run(&Silent)
    }

    /// Runs policies beside control on new users.
    pub(super) fn run(&mut self, policies: &PolicySet, round: u64) -> Result<()> {
        self.again(policies, "round", self.shape.round_rows, round)?;
        self.policies = self.policies.union(policies)?;
        self.keep("round", &format!("round_{round}"))
    }

    /// The true average of every policy of a set, over the same users.
    pub(super) fn truth(&self, policies: &PolicySet) -> Result<BTreeMap<String, f64>> {
        self.again(policies, "truth", TRUTH_ROWS, 999)?;
        let path = self.folder.join("truth/averages.csv");
        let text = std::fs::read_to_string(&path).map_err(|error| Error::read(&path, error))?;
        let cell = |line: &str| -> Option<(String, f64)> {
            let mut cells = line.split(',');
            Some((cells.next()?.to_owned(), cells.nth(1)?.parse().ok()?))
        };
        Ok(text.lines().skip(1).filter_map(cell).collect())
    }

    /// The best true average that changing one context at a time to a single action reaches from a policy.
    pub(super) fn climb(&self, from: &str) -> Result<f64> {
        let mut here: Vec<Vec<(String, f64)>> = owned(&self.policies, self.policies.require(from)?);
        let mut best = self.truth(&self.policies)?[from];
        for _ in 0..CLIMB {
            let mut builder = PolicySet::builder();
            let mut moves = BTreeMap::new();
            for context in 0..here.len() {
                for action in self.policies.actions() {
                    let mut there = here.clone();
                    there[context] = vec![(action.clone(), 1.0)];
                    let name = format!("move {context} {action}");
                    for (context, actions) in self.policies.contexts().iter().zip(&there) {
                        for (action, probability) in actions {
                            builder.add(&name, context, action, *probability);
                        }
                    }
                    moves.insert(name, there);
                }
            }
            let truth = self.truth(&builder.build()?)?;
            let next = moves
                .into_iter()
                .map(|(name, there)| (truth[&name], there))
                .max_by(|a, b| a.0.total_cmp(&b.0));
            match next {
                Some((value, there)) if value > best => (best, here) = (value, there),
                _ => break,
            }
        }
        Ok(best)
    }

    pub(super) fn run_policies(&self, model: &Model) -> Vec<String> {
        super::run_names(model)
    }

    /// The mean outcome and the rows of every policy, as the tables have them.
    pub(super) fn means(&self) -> Result<BTreeMap<String, (f64, f64)>> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::Float64Type;
        let source = Source::open(&self.folder.join("data").to_string_lossy())?;
        let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for batch in source.batches(&["policy", "y"], 1 << 16)? {
            let batch = batch?;
            let (name, y) =
                (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Float64Type>());
            for row in 0..batch.num_rows() {
                let own = sums.entry(name.value(row).to_owned()).or_default();
                own.0 += y.value(row);
                own.1 += 1.0;
            }
        }
        sums.values_mut().for_each(|own| own.0 /= own.1);
        Ok(sums)
    }

    fn again(&self, policies: &PolicySet, name: &str, rows: u64, seed: u64) -> Result<()> {
        let file = self.folder.join("next.toml");
        // The weights of contexts are the world's own.
        let text = policies.to_toml();
        let text =
            text.split_once("\n[policies").map_or(text.clone(), |(_, rest)| format!("[policies{rest}"));
        std::fs::write(&file, text).map_err(|error| Error::output(&file, error))?;
        let request = Again {
            world: self.folder.join("world"),
            policies: file,
            rows: Some(rows),
            test_rows: Some(1),
            truth_rows: Some(1),
            seed,
        };
        run_again(&request, &self.folder.join(name), &Silent)?;
        Ok(())
    }

    fn keep(&self, from: &str, name: &str) -> Result<()> {
        let data = self.folder.join("data");
        std::fs::create_dir_all(&data).map_err(|error| Error::output(&data, error))?;
        let to = data.join(format!("{name}.parquet"));
        let from: &Path = &self.folder.join(from).join("train.parquet");
        std::fs::copy(from, &to).map_err(|error| Error::output(&to, error))?;
        Ok(())
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        // A folder for temporary files is cleaned up by others, if need be.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a policy does in every context.
pub(super) fn owned(policies: &PolicySet, policy: usize) -> Vec<Vec<(String, f64)>> {
    let by_context = policies.by_context(policy);
    by_context.into_iter().map(|own| own.into_iter().map(|(a, p)| (a.to_owned(), p)).collect()).collect()
}
