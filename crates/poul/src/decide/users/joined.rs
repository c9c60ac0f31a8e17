//! What an allocation in a file is worth on rows with outcomes, which are found by their ids.

use std::collections::{BTreeSet, HashMap};

use super::inputs::{is_trained_on, training_table};
use super::result::AllocationWorth;
use super::worth::{Predicted, Valuing};
use crate::data::{Budget, Labels, Roles, Source, numbers};
use crate::evaluate::run::ValuedSource;
use crate::model::Model;
use crate::policy::PolicySet;
use crate::{Error, Progress, Result, Seed};

/// What is asked of an allocation that was made before.
pub struct WorthRequest<'a> {
    /// A table as [`allocate`](super::allocate) writes it.
    pub allocation: &'a Source,
    /// Rows of an experiment, with the allocation's users among its ids.
    pub data: &'a Source,
    /// Which column of the data is what.
    pub roles: Roles,
    /// The model whose effects sharpen the value, and its policies; arms speak for themselves without.
    pub model: Option<(&'a Model, &'a PolicySet)>,
    /// The outcome that is to be large. Default: the first.
    pub maximize: Option<String>,
    /// Level of intervals, between 0 and 1.
    pub level: f64,
    /// Whether the table that the model was fitted on may be used.
    pub force: bool,
    /// Whether policies on atoms that no training row carried may be scored.
    pub allow_unseen: bool,
    /// Memory for encoded rows and their effects.
    pub budget: Budget,
    /// The root of all random streams.
    pub seed: u64,
}

/// What the allocation is worth on the rows of the data, each of which must be in it.
pub fn value_allocation(request: &WorthRequest<'_>, progress: &dyn Progress) -> Result<AllocationWorth> {
    if !(request.level > 0.0 && request.level < 1.0) {
        return Err(Error::usage(format!("intervals of level {}", request.level))
            .hint("a level lies between 0 and 1, such as 0.9"));
    }
    let trained = request.model.map(|(model, _)| is_trained_on(model, request.data)).transpose()?;
    if trained == Some(true) && !request.force {
        return Err(request.data.locate(training_table()));
    }
    let (maximize, spent) = match (&request.maximize, request.roles.outcome.as_slice()) {
        (_, []) => return Err(Error::usage("no outcome is named").hint("name one: ‹outcome=COL›")),
        (None, [first, rest @ ..]) => (first.clone(), rest.first().cloned()),
        (Some(own), all) => (own.clone(), all.iter().find(|name| *name != own).cloned()),
    };
    let control = request.roles.control.clone().unwrap_or_else(|| "control".to_owned());
    let joined = Joined::read(request.allocation, request.data)?;
    let names: Vec<String> = std::iter::once(control.clone())
        .chain(joined.policies.iter().filter(|name| **name != control).cloned())
        .collect();
    let source = ValuedSource {
        source: request.data,
        roles: &request.roles,
        candidates: &names[1..],
        against: &control,
        allow_unseen: request.allow_unseen,
        budget: &request.budget,
        seed: Seed::new(request.seed).child("allocation"),
    };
    if names.len() == 1 {
        return Err(request.allocation.locate(
            Error::input(format!(
                "the allocation gives everybody the control, `{control}`: it is worth nothing"
            ))
            .hint("name the control if it is another: ‹control=NAME›"),
        ));
    }
    let value = |rows: &crate::evaluate::run::ValuedRows<'_>| {
        let given = joined.options(rows.number, &names)?;
        let (maximize, spent) = (maximize.as_str(), spent.as_deref());
        let seed = Seed::new(request.seed).child("allocation");
        let valuing = Valuing { rows, names: &names, maximize, spent, level: request.level, seed };
        let predicted = if request.model.is_some() { Predicted::Effects } else { Predicted::Nothing };
        valuing.worth(&given, predicted)
    };
    let mut worth = match request.model {
        Some((model, policies)) => source.by_model(model, policies, progress, value)?,
        None => source.without_model(progress, value)?,
    };
    match trained {
        Some(true) => worth.notes.push("the model was fitted on these rows: all this flatters it".to_owned()),
        Some(false) => {}
        None => worth.notes.push(
            "without a model it is not known whether it was fitted on these rows, which would flatter it"
                .to_owned(),
        ),
    }
    Ok(worth)
}

/// The policy that each row of a table gets by a file.
struct Joined {
    /// In the order of their names.
    policies: Vec<String>,
    /// By row of the data: the place of its policy; none where the file does not have it.
    of_row: Vec<Option<u16>>,
}

impl Joined {
    fn read(allocation: &Source, data: &Source) -> Result<Self> {
        let names = allocation.column_names();
        let Some(end) = names.iter().position(|name| *name == "policy") else {
            let error =
                Error::missing_column("policy", names).hint("give a table that `poul allocate` wrote");
            return Err(allocation.locate(error));
        };
        let ids = &names[..end];
        if ids.is_empty() {
            return Err(allocation.locate(
                Error::input("nothing before the column `policy` says which user a row is")
                    .hint("give a table that `poul allocate` wrote"),
            ));
        }
        let by_row = ids == ["row"] && !data.column_names().contains(&"row");
        if let Some(missing) = ids.iter().find(|id| !by_row && !data.column_names().contains(id)) {
            let error = Error::missing_column(missing, data.column_names());
            return Err(data.locate(error.otherwise("allocate again, with ids that these rows have")));
        }
        let mut labels = vec![Labels::new(); ids.len()];
        let (mut policy_labels, mut of_key) = (Labels::new(), HashMap::new());
        let has_share = names.contains(&"share");
        let wanted: Vec<&str> =
            ids.iter().copied().chain(["policy"]).chain(has_share.then_some("share")).collect();
        for batch in allocation.batches(&wanted, 1 << 16)? {
            let batch = batch?;
            let keys = keys(&batch, ids.len(), &mut labels).map_err(|error| allocation.locate(error))?;
            let policies = policy_labels.codes_of(batch.column(ids.len()));
            let policies = policies.map_err(|row| {
                allocation.locate(Error::input("the policy is null").at(format!("row {}", row + 1)))
            })?;
            let shares = has_share.then(|| numbers(batch.column(ids.len() + 1).as_ref())).flatten();
            for (row, (key, policy)) in keys.into_iter().zip(policies).enumerate() {
                let share = shares.as_ref().map_or(1.0, |shares| shares[row]);
                let own = of_key.entry(key).or_insert((policy, 0.0, 0.0));
                own.2 += share;
                // A divided user counts by what it gets most of.
                if share > own.1 {
                    (own.0, own.1) = (policy, share);
                }
            }
        }
        if let Some((_, _, total)) = of_key.values().find(|own| own.2 > 1.0 + 1e-6) {
            return Err(allocation.locate(
                Error::input(format!("a user has shares of {total} together"))
                    .hint("every user may be there once; check the id columns"),
            ));
        }
        let sorted: BTreeSet<&str> = policy_labels.names().iter().map(AsRef::as_ref).collect();
        let policies: Vec<String> = sorted.into_iter().map(str::to_owned).collect();
        let place = |code: u32| {
            let name = policy_labels.name(code)?;
            policies.iter().position(|own| own == name).and_then(|place| u16::try_from(place).ok())
        };
        let places: Vec<Option<u16>> = (0..policy_labels.len() as u32).map(place).collect();
        let mut of_row = Vec::new();
        if by_row {
            for row in 0..data.n_rows().unwrap_or(0) {
                let code = labels[0].code(&row.to_string());
                let found = code.and_then(|code| of_key.get(&vec![code]));
                of_row.push(found.and_then(|own| places[own.0 as usize]));
            }
        } else {
            for batch in data.batches(ids, 1 << 16)? {
                let keys = keys(&batch?, ids.len(), &mut labels).map_err(|error| data.locate(error))?;
                let found = keys.iter().map(|key| of_key.get(key).and_then(|own| places[own.0 as usize]));
                of_row.extend(found);
            }
        }
        Ok(Self { policies, of_row })
    }

    /// The options of some rows, as places in `names`.
    fn options(&self, rows: &[u64], names: &[String]) -> Result<Vec<u16>> {
        let place = |name: &String| {
            let found = names.iter().position(|own| own == name).and_then(|own| u16::try_from(own).ok());
            found.ok_or_else(|| Error::other(format!("the policy `{name}` is no candidate")))
        };
        let places = self.policies.iter().map(place).collect::<Result<Vec<u16>>>()?;
        let of_row =
            |row: &u64| self.of_row.get(*row as usize).copied().flatten().map(|own| places[usize::from(own)]);
        let n_missing = rows.iter().filter(|row| of_row(row).is_none()).count();
        if let Some(first) = rows.iter().find(|row| of_row(row).is_none()) {
            let what = format!("{n_missing} of {} rows are not in the allocation", rows.len());
            return Err(Error::input(what)
                .at(format!("row {}", first + 1))
                .hint("allocate these rows too (with the prices that were found), or leave them out: ‹population=EXPR›"));
        }
        Ok(rows.iter().filter_map(of_row).collect())
    }
}

/// The ids of the rows of a batch, as codes.
fn keys(batch: &arrow_array::RecordBatch, n_ids: usize, labels: &mut [Labels]) -> Result<Vec<Vec<u32>>> {
    let mut keys = vec![Vec::with_capacity(n_ids); batch.num_rows()];
    for (column, labels) in batch.columns()[..n_ids].iter().zip(labels) {
        let codes = labels.codes_of(column);
        let codes = codes.map_err(|row| Error::input("an id is null").at(format!("row {}", row + 1)))?;
        keys.iter_mut().zip(codes).for_each(|(key, code)| key.push(code));
    }
    Ok(keys)
}
