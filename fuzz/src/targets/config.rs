//! `poul.toml`, read as the command line reads it, and its settings judged by whoever they are for.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use poul::data::Need;
use serde_json::Value;

use super::Target;
use crate::execution::{Ended, judged};
use crate::random::Random;
use crate::{config, corpus, mutate};

pub(crate) fn open(folder: &Path) -> Result<Box<dyn Target>, String> {
    let table: toml::Table = toml::from_str(corpus::CONFIG).map_err(|error| error.to_string())?;
    let tree = serde_json::to_value(&table).map_err(|error| error.to_string())?;
    Ok(Box::new(Config { path: folder.join("poul.toml"), tree, schema: corpus::table(3, 1).schema() }))
}

struct Config {
    path: PathBuf,
    tree: Value,
    schema: SchemaRef,
}

impl Target for Config {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let mut tree = self.tree.clone();
        // One part alone goes deeper: what stands first in a whole file hides what is wrong behind it.
        if let Value::Object(tables) = &mut tree
            && random.once_in(2)
        {
            let keep = tables.keys().nth(random.below(tables.len())).cloned();
            tables.retain(|name, _| Some(name) == keep.as_ref());
        }
        if !random.once_in(3) {
            mutate::json(random, &mut tree);
            if let Ok(text) = toml::to_string(&tree) {
                return text.into_bytes();
            }
        }
        let mut input = corpus::CONFIG.as_bytes().to_vec();
        mutate::bytes(random, &mut input, corpus::POLICIES.as_bytes());
        input
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        std::fs::write(&self.path, input).map_err(|error| error.to_string())?;
        let Some(settings) = judged(config::read(&self.path))? else { return Ok(Ended::Refused) };
        let mut ended = Ended::Accepted;
        let mut note = |fine: bool| ended = if fine { ended } else { Ended::Refused };
        note(judged(settings.roles.check(&self.schema, Need::FIT))?.is_some());
        note(judged(settings.encoder.check())?.is_some());
        let name = settings.learner.model.get("learner").and_then(Value::as_str).unwrap_or("poul").to_owned();
        let mut own = settings.learner.clone();
        own.model.remove("learner");
        if let Some(learner) = judged(poul::model::learner(&name))? {
            note(judged((learner.settle)(&own))?.is_some());
        }
        for (name, own) in &settings.learners {
            if let Some(learner) = judged(poul::model::learner(name))? {
                note(judged((learner.settle)(own))?.is_some());
            }
        }
        let places =
            (&settings.policies.policies, &settings.policies.contexts, &settings.policies.exposure_log);
        std::hint::black_box((
            places,
            &settings.policies.context_column,
            &settings.strata_table,
            &settings.baseline_data,
        ));
        std::hint::black_box((&settings.shares, &settings.compare, &settings.tune));
        Ok(ended)
    }
}
