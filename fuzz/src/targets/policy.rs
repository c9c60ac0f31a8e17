//! Policy files in their four forms: read, asked everything, written and read again.

use std::path::Path;

use bytes::Bytes;
use poul::Result as PoulResult;
use poul::policy::{ContextWeights, PolicySet};
use serde_json::Value;

use super::Target;
use crate::corpus;
use crate::execution::{Ended, judged, promised};
use crate::mutate;
use crate::random::Random;

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Toml,
    Json,
    Csv,
    Parquet,
}

pub(crate) fn toml(_: &Path) -> Result<Box<dyn Target>, String> {
    open(Form::Toml)
}

pub(crate) fn json(_: &Path) -> Result<Box<dyn Target>, String> {
    open(Form::Json)
}

pub(crate) fn csv(_: &Path) -> Result<Box<dyn Target>, String> {
    open(Form::Csv)
}

pub(crate) fn parquet(_: &Path) -> Result<Box<dyn Target>, String> {
    open(Form::Parquet)
}

struct PolicyFiles {
    form: Form,
    tree: Value,
    seeds: Vec<Vec<u8>>,
}

fn open(form: Form) -> Result<Box<dyn Target>, String> {
    let table: toml::Table = toml::from_str(corpus::POLICIES).map_err(|error| error.to_string())?;
    let tree = serde_json::to_value(&table).map_err(|error| error.to_string())?;
    let small = "[policies.a]\n\"*\" = \"x\"\n[policies.b]\np = \"y\"\n";
    let seeds = match form {
        Form::Toml => vec![corpus::POLICIES.into(), small.into()],
        Form::Json => {
            vec![tree.to_string().into_bytes(), br#"{"policies":{"a":{"*":"x"},"b":{"p":"y"}}}"#.to_vec()]
        }
        Form::Csv => vec![corpus::LONG_POLICIES.into(), "policy,context,action\na,p,x\nb,p,\"y\"\n".into()],
        Form::Parquet => corpus::parquet(&long_form(corpus::LONG_POLICIES)),
    };
    Ok(Box::new(PolicyFiles { form, tree, seeds }))
}

/// The long form as columns.
fn long_form(text: &str) -> arrow_array::RecordBatch {
    use arrow_array::{ArrayRef, Float64Array, StringArray};
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let words = |idx: usize| -> ArrayRef {
        std::sync::Arc::new(StringArray::from(rows.iter().map(|cells| cells[idx]).collect::<Vec<_>>()))
    };
    let shares = rows.iter().map(|cells| cells[3].parse().unwrap_or(1.0)).collect::<Vec<f64>>();
    let columns: [(&str, ArrayRef); 4] = [
        ("policy", words(0)),
        ("context", words(1)),
        ("action", words(2)),
        ("probability", std::sync::Arc::new(Float64Array::from(shares))),
    ];
    arrow_array::RecordBatch::try_from_iter(columns).expect("columns of one length")
}

impl Target for PolicyFiles {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let by_structure = !random.once_in(3);
        match self.form {
            Form::Toml | Form::Json if by_structure => {
                let mut tree = self.tree.clone();
                mutate::json(random, &mut tree);
                match self.form {
                    Form::Json => return tree.to_string().into_bytes(),
                    // What TOML cannot say (null, a list at the top) is left to bytes.
                    _ => {
                        if let Ok(text) = toml::to_string(&tree) {
                            return text.into_bytes();
                        }
                    }
                }
            }
            Form::Csv if by_structure => {
                return mutate::csv(random, corpus::LONG_POLICIES).into_bytes();
            }
            _ => {}
        }
        let mut input = random.pick(&self.seeds).clone();
        let other = random.pick(&self.seeds);
        mutate::bytes(random, &mut input, other);
        input
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        match judged(read(self.form, input))? {
            None => Ok(Ended::Refused),
            Some(policies) => use_them(&policies).map(|()| Ended::Accepted),
        }
    }
}

fn read(form: Form, input: &[u8]) -> PoulResult<PolicySet> {
    let file = |name: &'static str| Path::new(name);
    // Text that is not UTF-8 is refused by whoever reads the file.
    let text = || String::from_utf8_lossy(input);
    match form {
        Form::Toml => PolicySet::from_toml(&text(), file("p.toml")),
        Form::Json => PolicySet::from_json(&text(), file("p.json")),
        Form::Csv => PolicySet::from_csv(input, file("p.csv"), None),
        Form::Parquet => PolicySet::from_parquet(Bytes::copy_from_slice(input), file("p.parquet"), None),
    }
}

/// Everything that can be asked of policies, and that what is written reads back.
pub(super) fn use_them(policies: &PolicySet) -> Result<(), String> {
    for policy in 0..policies.len() {
        let mass: f64 = policies.mixture(policy).mass.iter().sum();
        promised((mass - 1.0).abs() < 1e-6, || format!("the mixture of policy {policy} sums to {mass}"))?;
        let distances = policies.distances(policy);
        promised(distances.iter().all(|d| (0.0..=2.000_001).contains(d)), || {
            format!("distances {distances:?}")
        })?;
        let _ = (policies.nearest(policy, 3), policies.diff(0, policy), policies.by_context(policy));
    }
    let _ = policies.aliases();
    let canonical = policies.canonical_bytes();
    let again = PolicySet::from_toml(&policies.to_toml(), Path::new("again.toml"));
    let again = again.map_err(|error| format!("what `to_toml` wrote is refused: {error}"))?;
    promised(again.canonical_bytes() == canonical, || {
        "what `to_toml` wrote reads as other policies".to_owned()
    })?;
    let text = policies.to_json_value().to_string();
    let again = PolicySet::from_json(&text, Path::new("again.json"));
    let again = again.map_err(|error| format!("what `to_json_value` wrote is refused: {error}"))?;
    promised(again.canonical_bytes() == canonical, || {
        "what `to_json_value` wrote reads as other policies".to_owned()
    })?;
    let text = serde_json::to_string(policies).map_err(|error| format!("cannot be stored: {error}"))?;
    let again: PolicySet =
        serde_json::from_str(&text).map_err(|error| format!("what was stored is refused: {error}"))?;
    promised(again.canonical_bytes() == canonical, || "what was stored reads as other policies".to_owned())?;
    let union =
        policies.union(policies).map_err(|error| format!("a set cannot be joined with itself: {error}"))?;
    promised(union.len() == policies.len(), || "a set joined with itself has more policies".to_owned())?;
    let weights = policies.contexts().iter().cloned().map(|context| (context, 1.0)).collect();
    let _ = policies.with_weights(&ContextWeights::from_map(&weights));
    Ok(())
}
