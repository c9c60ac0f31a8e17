//! One pass over the rows to learn how to encode them.

use arrow_array::{Array, ArrayRef};
use rayon::prelude::*;

use super::cells::Cells;
use super::levels::LevelFit;
use super::number::NumberFit;
use super::params::ValidEncoderParams;
use super::sample::HashOrder;
use super::{Code, Encoder, FeatureEncoder};
use crate::data::ColumnKind;
use crate::data::roles::Feature;
use crate::{Error, Result};

/// An encoder under way: add batches in the order of rows, then finish.
pub struct EncoderFit {
    params: ValidEncoderParams,
    features: Vec<(Feature, FeatureFit)>,
}

enum FeatureFit {
    Number(Box<NumberFit>),
    Levels(LevelFit),
}

impl EncoderFit {
    /// Starts with no rows.
    pub fn new(features: &[Feature], params: &ValidEncoderParams) -> Self {
        let fit = |feature: &Feature| match feature.kind {
            ColumnKind::Text => FeatureFit::Levels(LevelFit::default()),
            _ => FeatureFit::Number(Box::new(NumberFit::new())),
        };
        let features = features.iter().map(|feature| (feature.clone(), fit(feature))).collect();
        Self { params: params.clone(), features }
    }

    /// Adds rows: their numbers in the source, and the features' columns in order.
    pub fn add(&mut self, rows: &[u64], columns: &[ArrayRef]) -> Result<()> {
        if columns.len() != self.features.len() || columns.iter().any(|column| column.len() != rows.len()) {
            return Err(Error::other("the columns do not match the features"));
        }
        let order = HashOrder::new(rows);
        self.features.par_iter_mut().zip(columns).try_for_each(|((feature, fit), column)| {
            let added = match fit {
                FeatureFit::Number(fit) => Cells::of(column).map(|cells| fit.add(&cells, &order)),
                FeatureFit::Levels(fit) => fit.add(column),
            };
            added.ok_or_else(|| {
                let what = format!("is {}, which is not {}", column.data_type(), feature.kind.words());
                Error::input(what).at(format!("column `{}`", feature.name))
            })
        })
    }

    /// The encoder.
    pub fn finish(self) -> Result<Encoder> {
        let mut notes = Vec::new();
        let mut features = Vec::with_capacity(self.features.len());
        for (feature, fit) in self.features {
            let (code, note) = match fit {
                FeatureFit::Number(fit) => {
                    let (code, note) = fit.finish(feature.kind == ColumnKind::Boolean, &self.params);
                    (Code::Number(code), note.map(str::to_owned))
                }
                FeatureFit::Levels(fit) => {
                    let (code, note) = fit.finish(&self.params);
                    (Code::Levels(code), note)
                }
            };
            let mut encoder = FeatureEncoder { feature, code };
            let dropped = encoder.parts().is_empty();
            if dropped {
                encoder.code = Code::Dropped;
            }
            if let Some(note) = note {
                let dropped = if dropped { ": dropped" } else { "" };
                notes.push(format!("feature `{}` {note}{dropped}", encoder.feature.name));
            }
            features.push(encoder);
        }
        if features.iter().all(|feature| feature.code == Code::Dropped) {
            let error = Error::input("no feature varies: there is nothing to learn from");
            return Err(
                error.hint(notes.first().cloned().unwrap_or_else(|| "name features with ‹features›".into()))
            );
        }
        Ok(Encoder { features, notes })
    }
}
