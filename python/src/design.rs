//! The policies to run next: the same steps as `poul design`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use poul::decide::design::{Design, DesignParams, Effect, Proposal, Users};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::capsule::arrow_error;
use crate::frame::Frame;
use crate::model::{Model, to_json};
use crate::policies::PolicySet;
use crate::work;

/// What is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DesignRequest {
    params: DesignParams,
    population: Option<String>,
    threads: Option<usize>,
}

/// What is known of the proposals, the policies themselves, and a table of them.
pub(crate) type Designed = (String, Option<PolicySet>, Option<Frame>);

pub(crate) fn design(
    py: Python<'_>,
    model: &Model,
    request: &DesignRequest,
    users: Option<&Frame>,
    listener: &Bound<'_, PyAny>,
) -> PyResult<Designed> {
    let model = &*model.model;
    let found = work::run(py, request.threads, listener, |progress| {
        let params = request.params.clone().check()?;
        let Some(frame) = users else {
            return poul::decide::design::design(model, &params, None, progress);
        };
        let users = Users::read(model, &frame.source, request.population.as_deref(), progress);
        let users = users.map_err(|error| frame.locate(error))?;
        poul::decide::design::design(model, &params, Some(users), progress)
    })?;
    let text = crate::failure::guarded(py, || to_json(&found))?;
    let table = match found.proposals.is_empty() {
        true => None,
        false => {
            let batch = table(&found).map_err(arrow_error(py))?;
            Some(Frame::of(py, batch.schema(), vec![batch])?)
        }
    };
    Ok((text, found.policies.map(|set| PolicySet { set }), table))
}

fn table(found: &Design) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let own = &found.proposals;
    let texts = |of: &dyn Fn(&Proposal) -> Option<String>| -> ArrayRef {
        Arc::new(own.iter().map(of).collect::<StringArray>())
    };
    let numbers = |of: &dyn Fn(&Proposal) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(own.iter().map(of)))
    };
    let counts = |of: &dyn Fn(&Proposal) -> Option<u64>| -> ArrayRef {
        Arc::new(own.iter().map(|one| of(one).map(|count| count as i64)).collect::<Int64Array>())
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("policy".to_owned(), texts(&|one| Some(one.policy.clone()))),
        ("changes".to_owned(), texts(&|one| Some(one.words.join("; ")))),
    ];
    for (place, noise) in found.noise.iter().enumerate() {
        let effect = |name: &str, of: &dyn Fn(&Effect) -> f64| {
            (format!("{name}_{}", noise.outcome), numbers(&|one| of(&one.effects[place])))
        };
        columns.push(effect("effect", &|one| one.effect));
        columns.push(effect("lower", &|one| one.interval[0]));
        columns.push(effect("upper", &|one| one.interval[1]));
    }
    let maximized =
        found.noise.iter().position(|own| Some(&own.outcome) == found.maximize.as_ref()).unwrap_or(0);
    let rest: [(&str, ArrayRef); 9] = [
        ("value", numbers(&|one| one.value)),
        ("improvement", numbers(&|one| one.improvement.value)),
        ("chance", numbers(&|one| one.improvement.chance)),
        ("nearest", texts(&|one| one.nearest.clone())),
        ("distance", numbers(&|one| one.distance)),
        ("fewest_rows", counts(&|one| Some(one.fewest_rows))),
        ("users_needed", counts(&|one| one.effects[maximized].users_needed)),
        ("users_needed_over_base", counts(&|one| one.improvement.users_needed)),
        ("verdict", texts(&|one| Some(one.verdict.clone()))),
    ];
    columns.extend(rest.map(|(name, values)| (name.to_owned(), values)));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))
}
