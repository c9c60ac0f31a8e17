//! The numbers of one comparison, by metric: what stands in JSON is said by the registry.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::calibration::Bin;
use super::definition::Beside;
use super::registry::Metric;
use crate::evaluate::result::{CurvePoint, Interval, TopShare};

/// The numbers of one comparison: `metrics[Metric::Auuc].value`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Rows that got the policy.
    pub n_treated: usize,
    /// Rows it is compared with.
    pub n_control: usize,
    /// Every metric of two arms.
    #[doc(hidden)]
    pub numbers: Numbers,
    /// Effects among the rows ranked highest.
    pub uplift_at_k: Vec<TopShare>,
    /// Bins whose observed effect is smaller than its standard error: there a relative error says little.
    pub mape_flagged_bins: usize,
    /// Predicted and observed effects by bin.
    pub calibration: Vec<Bin>,
    /// The gain curve.
    pub curve: Vec<CurvePoint>,
    /// Why numbers are missing or doubtful.
    pub notes: Vec<String>,
}

/// A metric of one comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number {
    /// Its value; none where it is not defined.
    pub value: Option<f64>,
    /// Its standard error, where it has one: by cluster where clusters are given.
    pub se: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
}

/// A number for each [`Metric`]; those of every row by its own policy alone are never set.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers(Vec<Number>);

impl Default for Numbers {
    fn default() -> Self {
        Self(vec![Number::default(); Metric::ALL.len()])
    }
}

impl Index<Metric> for Metrics {
    type Output = Number;

    fn index(&self, metric: Metric) -> &Number {
        &self.numbers.0[metric as usize]
    }
}

impl IndexMut<Metric> for Metrics {
    fn index_mut(&mut self, metric: Metric) -> &mut Number {
        &mut self.numbers.0[metric as usize]
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("n_treated", &self.n_treated)?;
        map.serialize_entry("n_control", &self.n_control)?;
        for metric in Metric::ARMS {
            let (own, number) = (metric.definition(), &self[*metric]);
            if !own.needs_truth || number.value.is_some() {
                map.serialize_entry(own.name, &number.value)?;
            }
            if own.se.is_some() {
                map.serialize_entry(&format!("{metric}_se"), &number.se)?;
            }
            if own.has_interval && (!own.needs_truth || number.interval.is_some()) {
                map.serialize_entry(&format!("{metric}_interval"), &number.interval)?;
            }
            match own.beside {
                Some(Beside::TopShares) => map.serialize_entry("uplift_at_k", &self.uplift_at_k)?,
                Some(Beside::FlaggedBins) => {
                    map.serialize_entry("mape_flagged_bins", &self.mape_flagged_bins)?;
                }
                Some(Beside::Bins) => map.serialize_entry("calibration", &self.calibration)?,
                None => {}
            }
        }
        map.serialize_entry("curve", &self.curve)?;
        map.serialize_entry("notes", &self.notes)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

/// Reads metrics by their keys. A document of an earlier version may lack some, one of a later version may have more.
struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Metrics;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metrics of a comparison")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
        let mut metrics = Metrics::default();
        let (mut n_treated, mut n_control) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "n_treated" => n_treated = Some(map.next_value()?),
                "n_control" => n_control = Some(map.next_value()?),
                "uplift_at_k" => metrics.uplift_at_k = map.next_value()?,
                "mape_flagged_bins" => metrics.mape_flagged_bins = map.next_value()?,
                "calibration" => metrics.calibration = map.next_value()?,
                "curve" => metrics.curve = map.next_value()?,
                "notes" => metrics.notes = map.next_value()?,
                key => {
                    let find = |name: &str| Metric::ARMS.iter().copied().find(|metric| metric.name() == name);
                    if let Some(metric) = find(key) {
                        metrics[metric].value = map.next_value()?;
                    } else if let Some(metric) = key.strip_suffix("_se").and_then(find) {
                        metrics[metric].se = map.next_value()?;
                    } else if let Some(metric) = key.strip_suffix("_interval").and_then(find) {
                        metrics[metric].interval = map.next_value()?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
        }
        let missing = <A::Error as serde::de::Error>::missing_field;
        metrics.n_treated = n_treated.ok_or_else(|| missing("n_treated"))?;
        metrics.n_control = n_control.ok_or_else(|| missing("n_control"))?;
        Ok(metrics)
    }
}
