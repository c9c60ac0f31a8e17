//! Average effects as a table: a row for each outcome, policy and group.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use poul::evaluate::{AverageEffect, Interval};
use pyo3::prelude::*;

use crate::capsule::arrow_error;
use crate::failure::guarded;
use crate::frame::Frame;
use crate::settings::parse;

/// The averages of an evaluation, given as its JSON has them.
#[pyfunction]
pub(crate) fn averages(py: Python<'_>, text: &str) -> PyResult<Frame> {
    let averages: Vec<AverageEffect> = guarded(py, || parse(text))?;
    let batch = table(&averages).map_err(arrow_error(py))?;
    Frame::of(py, batch.schema(), vec![batch])
}

fn table(averages: &[AverageEffect]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let texts = |of: fn(&AverageEffect) -> Option<&str>| -> ArrayRef {
        Arc::new(averages.iter().map(of).collect::<StringArray>())
    };
    let counts = |of: fn(&AverageEffect) -> usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(averages.iter().map(|own| of(own) as i64)))
    };
    let numbers = |of: fn(&AverageEffect) -> Option<f64>| -> ArrayRef {
        Arc::new(averages.iter().map(of).collect::<Float64Array>())
    };
    let outside = averages.iter().map(|own| Some(own.outside_band));
    let notes = averages.iter().map(|own| Some(own.notes.join("; ")));
    RecordBatch::try_from_iter_with_nullable([
        ("outcome", texts(|own| Some(&own.outcome)), false),
        ("policy", texts(|own| Some(&own.policy)), false),
        ("against", texts(|own| Some(&own.against)), false),
        ("by", texts(|own| own.by.as_deref()), true),
        ("group", texts(|own| own.group.as_deref()), true),
        ("rows", counts(|own| own.rows), false),
        ("n_treated", counts(|own| own.n_treated), false),
        ("n_control", counts(|own| own.n_control), false),
        ("effect", numbers(|own| own.effect), true),
        ("se", numbers(|own| own.se), true),
        ("lower", numbers(|own| lower(own.interval)), true),
        ("upper", numbers(|own| upper(own.interval)), true),
        ("band_lower", numbers(|own| lower(own.band)), true),
        ("band_upper", numbers(|own| upper(own.band)), true),
        ("p_value", numbers(|own| own.p_value), true),
        ("q_value", numbers(|own| own.q_value), true),
        ("predicted", numbers(|own| own.predicted), true),
        ("predicted_lower", numbers(|own| lower(own.predicted_interval)), true),
        ("predicted_upper", numbers(|own| upper(own.predicted_interval)), true),
        ("outside_band", Arc::new(outside.collect::<BooleanArray>()) as ArrayRef, false),
        ("population", texts(|own| own.population.as_deref()), true),
        ("share_without_overlap", numbers(|own| own.share_without_overlap), true),
        ("effective_rows", numbers(|own| own.effective_rows), true),
        ("vanishes_at", numbers(|own| own.hidden.as_ref().map(|hidden| hidden.vanishes_at)), true),
        ("notes", Arc::new(notes.collect::<StringArray>()) as ArrayRef, false),
    ])
}

fn lower(interval: Option<Interval>) -> Option<f64> {
    interval.map(|[lower, _]| lower)
}

fn upper(interval: Option<Interval>) -> Option<f64> {
    interval.map(|[_, upper]| upper)
}
