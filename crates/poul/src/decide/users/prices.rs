//! Prices of limits as a file: what a server needs to decide each user alone, as the whole was decided.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::limits::AskedLimit;
use crate::{AtomicFile, Error, Result};

/// The version of the format that is written. Every older one is read.
const FORMAT: u32 = 1;

/// What one more unit of each limit would bring, and all else that decides a user: give it the policy with the greatest value less
/// what it adds to each limit times the price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// The version of the format.
    pub format: u32,
    /// The version of the library that wrote it.
    pub poul: String,
    /// The outcome that is to be large.
    pub maximize: String,
    /// The policy that costs and brings nothing, which everybody may have.
    pub control: String,
    /// The other policies to choose from.
    pub policies: Vec<String>,
    /// The quantile that effects are decided by, where not as they are predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<f64>,
    /// For a policy, the expression that holds for users who may get it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub eligible: BTreeMap<String, String>,
    /// The column whose groups have prices of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The groups that were decided, with limits or without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The limits.
    pub prices: Vec<Price>,
    /// Fingerprints of the tables that the model was fitted on: prices are in the units of its effects.
    pub trained_on: Vec<String>,
}

/// The price of a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// The limit.
    #[serde(flatten)]
    pub limit: AskedLimit,
    /// The group it is about; all users where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_group: Option<String>,
    /// What one more unit of it would bring: of an outcome that is spent, or of users who may have or need not have a policy.
    pub price: f64,
}

impl Prices {
    /// The prices with the version of this library.
    pub(super) fn of(self) -> Self {
        Self { format: FORMAT, poul: env!("CARGO_PKG_VERSION").to_owned(), ..self }
    }

    /// Writes the file, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write(AtomicFile::create(path)?)
    }

    /// Writes to a file that is open.
    #[doc(hidden)]
    pub fn write(&self, mut file: AtomicFile) -> Result<()> {
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|error| Error::other(format!("cannot write prices: {error}")))?;
        file.write_all((text + "\n").as_bytes()).map_err(|error| Error::output(file.path(), error))?;
        file.commit()
    }

    /// Reads a file of this version or any older one.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| Error::read(path, error))?;
        Self::parse(&text).map_err(|error| error.file(path))
    }

    /// As [`load`](Self::load), from the content of a file.
    pub fn parse(text: &str) -> Result<Self> {
        let prices: Self = serde_json::from_str(text).map_err(|error| {
            Error::input(format!("these are no prices: {error}"))
                .hint("write them with an allocation: ‹budget=cost=AMOUNT› together with ‹prices=FILE›")
        })?;
        if prices.format > FORMAT {
            let Self { format, poul, .. } = prices;
            let what =
                format!("the prices are of format {format}; this version reads formats up to {FORMAT}");
            return Err(Error::input(what).hint(format!("use poul {poul} or newer")));
        }
        if let Some(wrong) = prices.prices.iter().find(|own| !own.price.is_finite()) {
            return Err(Error::input(format!("the price of `{}` is {}", wrong.limit.name(), wrong.price)));
        }
        Ok(prices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_survive_and_damage_is_told() {
        let cap = AskedLimit::Cap { policy: "T2".to_owned(), share: 0.3 };
        let rate = AskedLimit::Rate { cost: "cost".to_owned(), value: "gmv".to_owned(), rate: 0.2 };
        let prices = Prices {
            format: 0,
            poul: String::new(),
            maximize: "gmv".to_owned(),
            control: "control".to_owned(),
            policies: vec!["T2".to_owned()],
            risk: Some(0.1),
            eligible: BTreeMap::from([("T2".to_owned(), "age > 30".to_owned())]),
            group: Some("city".to_owned()),
            groups: vec!["Oslo".to_owned(), "Rome".to_owned()],
            prices: vec![
                Price { limit: cap, of_group: Some("Rome".to_owned()), price: 2.5 },
                Price { limit: rate, of_group: None, price: 0.1 },
            ],
            trained_on: Vec::new(),
        }
        .of();
        let text = serde_json::to_string(&prices).unwrap();
        assert_eq!(Prices::parse(&text).unwrap(), prices);
        assert!(Prices::parse(&text.replace("\"format\":1", "\"format\":9")).is_err());
        assert!(Prices::parse("{}").unwrap_err().hint_text().is_some());
    }
}
