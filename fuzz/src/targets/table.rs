//! Tables in every format: opened, checked, read, and encoded as a fit encodes them.

use std::path::{Path, PathBuf};

use poul::Silent;
use poul::data::{Budget, Dataset, EncoderParams, Need, Roles, RowReader, Source, ValidEncoderParams};

use super::Target;
use crate::corpus;
use crate::execution::{Ended, judged, promised};
use crate::mutate;
use crate::random::Random;

const ROWS: usize = 20;

pub(crate) fn parquet(folder: &Path) -> Result<Box<dyn Target>, String> {
    open(folder, "t.parquet", corpus::parquet(&corpus::table(ROWS, 3)))
}

pub(crate) fn arrow_file(folder: &Path) -> Result<Box<dyn Target>, String> {
    open(folder, "t.arrow", corpus::arrow(&corpus::table(ROWS, 3), true))
}

pub(crate) fn arrow_stream(folder: &Path) -> Result<Box<dyn Target>, String> {
    open(folder, "s.arrow", corpus::arrow(&corpus::table(ROWS, 3), false))
}

pub(crate) fn csv(folder: &Path) -> Result<Box<dyn Target>, String> {
    let quoted = "policy,y,\"a \"\"b\"\"\",\"c,d\"\ncontrol,1,\"x\ny\",2\nT1,2,,3\nT2,3,\"z\",\n";
    open(folder, "t.csv", vec![corpus::csv(ROWS, 3).into_bytes(), quoted.into()])
}

pub(crate) fn csv_gz(folder: &Path) -> Result<Box<dyn Target>, String> {
    let text = corpus::csv(ROWS, 3);
    let two = [corpus::gzip(&text.as_bytes()[..100]), corpus::gzip(&text.as_bytes()[100..])].concat();
    open(folder, "t.csv.gz", vec![corpus::gzip(text.as_bytes()), two])
}

fn open(folder: &Path, name: &str, seeds: Vec<Vec<u8>>) -> Result<Box<dyn Target>, String> {
    let roles = Roles { outcome: vec!["y".into()], id: Vec::new(), ..Roles::default() };
    let encoder = EncoderParams { min_level_rows: 1, ..EncoderParams::default() };
    let encoder = encoder.check().map_err(|error| error.to_string())?;
    let budget = Budget { scratch_folder: folder.to_path_buf(), ..Budget::of(1 << 28) };
    Ok(Box::new(Tables {
        path: folder.join(name),
        seeds,
        text: corpus::csv(ROWS, 3),
        roles,
        encoder,
        budget,
    }))
}

struct Tables {
    path: PathBuf,
    seeds: Vec<Vec<u8>>,
    text: String,
    roles: Roles,
    encoder: ValidEncoderParams,
    budget: Budget,
}

impl Target for Tables {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let name = self.path.to_string_lossy();
        let is_gzip = name.ends_with(".gz");
        if (is_gzip || name.ends_with(".csv")) && !random.once_in(3) {
            let text = mutate::csv(random, &self.text).into_bytes();
            return if is_gzip { corpus::gzip(&text) } else { text };
        }
        let mut input = random.pick(&self.seeds).clone();
        let other = random.pick(&self.seeds);
        mutate::bytes(random, &mut input, other);
        input
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        std::fs::write(&self.path, input).map_err(|error| error.to_string())?;
        let Some(source) = judged(Source::open(&self.path.to_string_lossy()))? else {
            return Ok(Ended::Refused);
        };
        judged(source.fingerprint())?;
        // Whatever it holds, the rows are read; as an experiment only where it is one.
        let every = Roles { treatment: None, outcome: Vec::new(), ..self.roles.clone() };
        let none = Need { treatment: false, outcome: false, features: false };
        if let Some(columns) = judged(every.check(source.schema(), none))? {
            let Some(mut reader) = judged(RowReader::new(&source, &columns))? else {
                return Ok(Ended::Refused);
            };
            let mut n_rows = 0;
            while let Some(Some(batch)) = judged(reader.next_batch())? {
                n_rows += batch.n_rows();
                let same = batch.features.iter().all(|column| column.len() == batch.n_rows());
                promised(same, || "columns of one batch have other lengths than it".to_owned())?;
            }
            promised(n_rows as u64 <= source.n_rows().unwrap_or(u64::MAX), || {
                format!("{n_rows} rows, more than said")
            })?;
        }
        let Some(columns) = judged(self.roles.check(source.schema(), Need::FIT))? else {
            return Ok(Ended::Refused);
        };
        let read = Dataset::read_and_fit(&source, &columns, &self.encoder, &self.budget, &Silent);
        let Some((dataset, encoder)) = judged(read)? else { return Ok(Ended::Refused) };
        promised(dataset.x.values().iter().all(|value| value.is_finite()), || {
            "encoded features are not finite".to_owned()
        })?;
        promised(dataset.x.width() == encoder.names().len(), || {
            "names are not those of the encoded columns".to_owned()
        })?;
        let finite = dataset.table.outcomes.iter().flatten().all(|value| value.is_finite());
        promised(finite, || "outcomes are not finite".to_owned())?;
        Ok(Ended::Accepted)
    }
}
