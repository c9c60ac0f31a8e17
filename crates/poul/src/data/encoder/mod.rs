//! Features as numbers: what a network sees of a row.
//!
//! Fitted in one pass over the training rows and stored with the model. Sample weights play no part: an encoder
//! describes the range of the data, not the population they stand for.

mod apply;
mod cells;
mod fit;
mod levels;
mod moments;
mod number;
mod params;
mod sample;
mod unseen;

use arrow_array::ArrayRef;
use arrow_schema::Schema;
use serde::{Deserialize, Serialize};

pub use self::fit::EncoderFit;
use self::levels::LevelCode;
use self::number::NumberCode;
pub use self::params::{EncoderParams, ValidEncoderParams};
pub(crate) use self::unseen::Unseen;
use super::ColumnKind;
use super::reader::RowReader;
use super::roles::{Columns, Feature};
use super::source::{Source, places};
use crate::{Error, Progress, Result};

/// Turns features into rows of numbers of about unit size.
///
/// Numbers and dates are standardised, after an inverse hyperbolic sine where tails are heavy, and held to the range
/// seen in fitting. Booleans are centred. Text is one-hot over the frequent levels, with one column for the rest.
/// What is missing (null, NaN, infinite) is put at the centre and, if any was missing in fitting, marked in a column of
/// its own. Constant features are dropped; [`notes`](Self::notes) say so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    features: Vec<FeatureEncoder>,
    notes: Vec<String>,
}

/// One feature and how it is encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FeatureEncoder {
    #[serde(flatten)]
    feature: Feature,
    code: Code,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Code {
    /// It says nothing: no columns.
    Dropped,
    Number(NumberCode),
    Levels(LevelCode),
}

/// One column of the encoded rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Value,
    Missing,
    Level(u32),
    Other,
}

impl Encoder {
    /// Fits an encoder in one pass over the rows of the population.
    pub fn fit(
        source: &Source,
        columns: &Columns,
        params: &ValidEncoderParams,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut fit = EncoderFit::new(&columns.features, params);
        let mut reader = RowReader::new(source, columns)?;
        progress.start("Reading features", "rows", source.n_rows());
        let mut n_reported = 0;
        while let Some(batch) = reader.next_batch()? {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            fit.add(&batch.rows, &batch.features)?;
            progress.advance(reader.n_read() - n_reported);
            n_reported = reader.n_read();
        }
        progress.finish();
        fit.finish()
    }

    /// How many numbers an encoded row has.
    pub fn width(&self) -> usize {
        self.features.iter().map(|feature| feature.parts().len()).sum()
    }

    /// The names of the encoded columns: `age`, `age (missing)`, `city=Rome`, `city (other)`.
    pub fn names(&self) -> Vec<String> {
        let names = |feature: &FeatureEncoder| {
            let name = &feature.feature.name;
            let parts = feature.parts().into_iter();
            let part_name = |part| match part {
                Part::Value => name.clone(),
                Part::Missing => format!("{name} (missing)"),
                Part::Other => format!("{name} (other)"),
                Part::Level(level) => format!("{name}={}", feature.level(level)),
            };
            parts.map(part_name).collect::<Vec<_>>()
        };
        self.features.iter().flat_map(names).collect()
    }

    /// For each encoded column, the index of the feature it comes from.
    pub fn origins(&self) -> Vec<usize> {
        let origins = self.features.iter().enumerate();
        origins.flat_map(|(idx, feature)| vec![idx; feature.parts().len()]).collect()
    }

    /// The features it takes, in order, dropped ones included.
    pub fn features(&self) -> impl Iterator<Item = &Feature> {
        self.features.iter().map(|feature| &feature.feature)
    }

    /// What the user should know about features that were dropped or cut short.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Encodes features, in the order of [`features`](Self::features), as rows of [`width`](Self::width) numbers.
    ///
    /// `out` holds one row after the other. The numbers do not depend on the number of threads.
    pub fn encode(&self, features: &[ArrayRef], out: &mut [f32]) -> Result<()> {
        apply::encode(&self.features, features, out).map(|_| ())
    }

    /// As [`encode`](Self::encode), and counts categories that fitting never saw.
    pub(crate) fn encode_counting(
        &self,
        features: &[ArrayRef],
        out: &mut [f32],
        unseen: &mut Unseen,
    ) -> Result<()> {
        let counts = apply::encode(&self.features, features, out)?;
        unseen.add(&counts, features.first().map_or(0, |column| column.len()));
        Ok(())
    }

    /// Checks that a table has every feature with the kind seen in fitting. Other columns do not matter.
    pub fn check_schema(&self, schema: &Schema) -> Result<()> {
        let places = places(schema);
        for feature in self.features() {
            let Some(field) = places.get(feature.name.as_str()).map(|place| schema.field(*place)) else {
                let known = schema.fields().iter().map(|field| field.name().as_str());
                return Err(Error::missing_column(&feature.name, known).at("feature"));
            };
            let kind = ColumnKind::of(field.data_type());
            // A column of nulls has no type of its own: all its cells are missing.
            if kind != Some(feature.kind) && !field.data_type().is_null() {
                let found =
                    kind.map_or_else(|| field.data_type().to_string(), |kind| kind.words().to_owned());
                let what = format!("is {found}, but was {} when the model was fitted", feature.kind.words());
                let error = Error::input(what).at(format!("column `{}`", feature.name));
                return Err(error.hint("give the column the type it had in the training data"));
            }
        }
        Ok(())
    }

    /// `columns` with the features of this encoder, which `schema` must have.
    pub fn columns_for(&self, columns: Columns, schema: &Schema) -> Result<Columns> {
        self.check_schema(schema)?;
        Ok(Columns { features: self.features().cloned().collect(), ..columns })
    }
}

impl FeatureEncoder {
    fn parts(&self) -> Vec<Part> {
        match &self.code {
            Code::Dropped => Vec::new(),
            Code::Number(number) => {
                let value = number.value.as_ref().map(|_| Part::Value);
                value.into_iter().chain(number.missing.then_some(Part::Missing)).collect()
            }
            Code::Levels(levels) => {
                let named = (0..levels.levels.len() as u32).map(Part::Level);
                let other = levels.other.then_some(Part::Other);
                named.chain(other).chain(levels.missing.then_some(Part::Missing)).collect()
            }
        }
    }

    fn level(&self, level: u32) -> &str {
        match &self.code {
            Code::Levels(levels) => levels.levels.get(level as usize).map_or("", String::as_str),
            _ => "",
        }
    }
}
