//! Writes a world to a folder: blocks of rows drawn in parallel, each from its own stream, written in order.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rand::RngExt;
use rayon::prelude::*;
use serde::Serialize;

use super::averages::AverageTruth;
use super::params::{Simulation, TRUTH_PAIRS, Valid};
use super::readme;
use super::scenario::Task;
use super::truth::TruthWriter;
use super::world::{Part, Setting, World};
use crate::data::TableWriter;
use crate::{AtomicFile, Error, Progress, Result, Seed};

/// Rows that share a random stream. Part of what a seed means: another number gives other tables.
const BLOCK_ROWS: usize = 4096;
/// Bytes of drawn rows that wait to be written.
const WAITING_BYTES: usize = 256 << 20;

/// What was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Rows of `train.parquet`.
    pub train_rows: u64,
    /// Rows of `test.parquet`.
    pub test_rows: u64,
    /// Rows of `test.parquet`, from the first, whose effects are in `truth.parquet`.
    pub truth_rows: u64,
    /// Features of a unit.
    pub features: usize,
    /// Names of the policies, control first.
    pub policies: Vec<String>,
    /// Policies that no row was assigned to.
    pub held_out: Vec<String>,
    /// Names of the outcomes.
    pub outcomes: Vec<String>,
    /// The files, in the order written.
    pub files: Vec<PathBuf>,
}

/// Draws the world of `params` and writes it to `folder`, which is created where it is missing.
///
/// Each file appears whole or not at all; `README.md` is written last.
pub fn run(params: &Valid, folder: &Path, progress: &dyn Progress) -> Result<Summary> {
    let seed = Seed::new(params.seed).child("simulate");
    let world_seed = seed.child("world");
    std::fs::create_dir_all(folder).map_err(|error| Error::output(folder, error))?;
    let output = Output {
        params,
        world: &params.settings(),
        folder,
        progress,
        seed,
        files: Vec::new(),
        made_by: None,
    };
    (params.scenario.draw)(params, world_seed, Task::First(output))
}

pub(super) struct Output<'a> {
    pub(super) params: &'a Valid,
    /// The settings of the world, which further rounds go by.
    pub(super) world: &'a Simulation,
    pub(super) folder: &'a Path,
    pub(super) progress: &'a dyn Progress,
    /// The root of what is drawn of units.
    pub(super) seed: Seed,
    pub(super) files: Vec<PathBuf>,
    /// The command, where it is not that of a world.
    pub(super) made_by: Option<String>,
}

impl Output<'_> {
    pub(super) fn file(&mut self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        self.files.push(path.clone());
        path
    }

    pub(super) fn write<W: World>(mut self, world: &W, with_propensities: bool) -> Result<Summary> {
        let (params, setting) = (self.params, world.setting());
        write_text(&self.file("policies.toml"), &setting.policies.to_toml())?;
        write_text(&self.file("tiers.csv"), &tiers_csv(setting))?;
        let train = self.file("train.parquet");
        let mut averages = AverageTruth::new(setting);
        self.write_part(world, Part::Train, &train, &mut averages, None)?;
        let test = self.file("test.parquet");
        let truth = self.file("truth.parquet");
        let propensities = with_propensities.then(|| self.file("truth_propensity.parquet"));
        let mut truth = TruthWriter::create(&truth, propensities.as_deref(), setting)?;
        self.write_part(world, Part::Test, &test, &mut averages, Some(&mut truth))?;
        truth.finish()?;
        write_text(&self.file("averages.csv"), &averages.csv(setting))?;
        let settings = toml::to_string(self.world)
            .map_err(|error| Error::other(format!("cannot write the world's settings: {error}")))?;
        write_text(&self.file("world.toml"), &settings)?;
        let made_by = self.made_by.take();
        write_text(&self.file("README.md"), &readme::text(params, setting, made_by.as_deref()))?;
        let named = |idx: usize| setting.policies.names[idx].clone();
        Ok(Summary {
            scenario: params.scenario.name.to_string(),
            seed: params.seed,
            train_rows: params.n_train,
            test_rows: params.n_test,
            truth_rows: params.n_truth,
            features: params.n_features,
            policies: setting.policies.names.clone(),
            held_out: setting.held_out().into_iter().map(named).collect(),
            outcomes: setting.outcomes.iter().map(ToString::to_string).collect(),
            files: self.files,
        })
    }

    fn write_part<W: World>(
        &self,
        world: &W,
        part: Part,
        path: &Path,
        averages: &mut AverageTruth,
        mut truth: Option<&mut TruthWriter>,
    ) -> Result<()> {
        // Enough rows for an average, whatever the number of policies.
        let n_averaged = (TRUTH_PAIRS / self.params.n_policies.max(1) as u64).max(1);
        let n_rows = if part == Part::Train { self.params.n_train } else { self.params.n_test };
        let seed = self.seed.child(part.name());
        let schema = schema(world.setting());
        let mut writer = TableWriter::create(path, Arc::clone(&schema))?;
        let block_bytes = BLOCK_ROWS * 4 * schema.fields().len();
        let n_waiting = (WAITING_BYTES / block_bytes).clamp(1, 2 * rayon::current_num_threads()) as u64;
        let n_blocks = n_rows.div_ceil(BLOCK_ROWS as u64);
        self.progress.start(part.name(), "rows", Some(n_rows));
        for first in (0..n_blocks).step_by(n_waiting as usize) {
            if self.progress.cancelled() {
                return Err(Error::cancelled());
            }
            let blocks: Vec<Block<W>> = (first..n_blocks.min(first + n_waiting))
                .into_par_iter()
                .map(|block| Block::draw(world, part, &schema, seed.index(block)))
                .collect::<Result<_>>()?;
            for (block_idx, block) in (first..).zip(blocks) {
                let start = block_idx * BLOCK_ROWS as u64;
                let within = |limit: u64| limit.saturating_sub(start).min(BLOCK_ROWS as u64) as usize;
                writer.write(&block.batch.slice(0, within(n_rows)))?;
                averages.add(world, part, &block.units, within(n_rows.min(n_averaged)));
                if let Some(truth) = truth.as_deref_mut() {
                    truth.write(world, &block.units, start, within(self.params.n_truth))?;
                }
                self.progress.advance(within(n_rows) as u64);
            }
        }
        writer.finish()?;
        self.progress.finish();
        Ok(())
    }
}

/// Some rows, with what the truth needs of them.
struct Block<W: World> {
    units: W::Units,
    batch: RecordBatch,
}

impl<W: World> Block<W> {
    /// A block is always drawn whole: the rows of a table do not depend on how many follow.
    fn draw(world: &W, part: Part, schema: &SchemaRef, seed: Seed) -> Result<Self> {
        let setting = world.setting();
        let units = world.units(part, BLOCK_ROWS, seed);
        let mut assignment = seed.child("assignment").rng();
        let mut noise = seed.child("outcomes").rng();
        let mut names = Vec::with_capacity(BLOCK_ROWS);
        let mut outcomes = vec![Vec::with_capacity(BLOCK_ROWS); setting.outcomes.len()];
        let mut drawn = vec![0.0; setting.outcomes.len()];
        for row in 0..BLOCK_ROWS {
            let policy_idx = choose(world.propensities(&units, row), assignment.random());
            world.draw(&units, row, policy_idx, &mut noise, &mut drawn);
            names.push(setting.policies.names[policy_idx].as_str());
            outcomes.iter_mut().zip(&drawn).for_each(|(column, &value)| column.push(value));
        }
        let mut columns = world.columns(&units);
        columns.push(Arc::new(StringArray::from(names)));
        columns.extend(outcomes.into_iter().map(|values| Arc::new(Float64Array::from(values)) as ArrayRef));
        let batch = RecordBatch::try_new(Arc::clone(schema), columns)
            .map_err(|error| Error::other(format!("simulated columns do not fit their schema: {error}")))?;
        Ok(Self { units, batch })
    }
}

/// The index that a uniform number in [0, 1) falls on; never one of probability 0.
pub(super) fn choose(probabilities: &[f64], uniform: f64) -> usize {
    let mut left = uniform;
    let mut chosen = 0;
    for (idx, &probability) in probabilities.iter().enumerate() {
        if probability > 0.0 {
            chosen = idx;
            left -= probability;
            if left < 0.0 {
                break;
            }
        }
    }
    chosen
}

fn schema(setting: &Setting) -> SchemaRef {
    let mut fields = setting.fields.clone();
    fields.push(Field::new("policy", DataType::Utf8, false));
    fields.extend(setting.outcomes.iter().map(|name| Field::new(*name, DataType::Float64, false)));
    Arc::new(Schema::new(fields))
}

fn tiers_csv(setting: &Setting) -> String {
    let mut text = String::from("policy,tier,share\n");
    for ((name, tier), share) in setting.policies.names.iter().zip(setting.tiers()).zip(&setting.shares) {
        text.push_str(&format!("{name},{tier},{share}\n"));
    }
    text
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|error| Error::output(path, error))?;
    file.commit()
}
