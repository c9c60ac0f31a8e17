//! Which policy each user should have: the library's `decide::users`, as `poul allocate` calls it.

use std::path::PathBuf;

use poul::decide::users::{
    Allocated, AllocationInputs, AllocationRequest, Prices, Target, allocate as solve, allocate_by_prices,
};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::frame::Frame;
use crate::model::{Model, to_json};
use crate::policies::PolicySet;
use crate::settings::budget;
use crate::work;

/// What is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllocationSettings {
    request: AllocationRequest,
    /// Whether what other budgets bring is wanted.
    curve: bool,
    memory: Option<String>,
    threads: Option<usize>,
}

/// What else is read and written beside the users.
#[derive(Default)]
pub(crate) struct Beside<'a> {
    pub(crate) policies: Option<&'a PolicySet>,
    pub(crate) group_budgets: Option<&'a Frame>,
    /// Prices that were found before, as JSON.
    pub(crate) prices: Option<String>,
    pub(crate) out: Option<PathBuf>,
}

/// The allocation and the prices as JSON, and the table unless it was written to a file.
pub(crate) fn allocate(
    py: Python<'_>,
    model: &Model,
    users: &Frame,
    settings: &AllocationSettings,
    beside: Beside<'_>,
    listener: &Bound<'_, PyAny>,
) -> PyResult<(String, String, Option<Frame>)> {
    let (model, source) = (&*model.model, &users.source);
    let Beside { policies, group_budgets, prices, out } = beside;
    let (policies, group_budgets) =
        (policies.map(|policies| &policies.set), group_budgets.map(|frame| &frame.source));
    let found = work::run(py, settings.threads, listener, |progress| {
        let request =
            AllocationRequest { memory: budget(settings.memory.as_deref())?, ..settings.request.clone() };
        let inputs = AllocationInputs {
            model,
            policies: policies.unwrap_or(&model.manifest().policies),
            users: source,
            group_budgets,
        };
        let target = out.as_deref().map_or(Target::Memory, Target::File);
        let found = match prices {
            Some(text) => {
                let prices = Prices::parse(&text)?;
                allocate_by_prices(&inputs, &prices, &request, target, progress)?
            }
            None => solve(&inputs, &request.check()?, settings.curve, target, progress)?,
        };
        let Allocated { allocation, prices, table } = found;
        Ok((to_json(&allocation)?, to_json(&prices)?, table))
    })?;
    let (allocation, prices, table) = found;
    let table = table.map(|(schema, batches)| Frame::of(py, schema, batches)).transpose()?;
    Ok((allocation, prices, table))
}
