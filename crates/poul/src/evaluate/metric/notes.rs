//! Why numbers of a comparison are missing or doubtful, in words for the reader of a report.

use super::definition::Told;
use super::metrics::Metrics;
use super::params::ValidParams;
use super::ranked::Ranked;
use super::registry::Metric;

/// One sentence for each reason: what metrics say of themselves, and what is true of several.
pub(super) fn of(metrics: &Metrics, ranked: &Ranked, params: &ValidParams) -> Vec<String> {
    let told = Told { metrics, ranked, params };
    let mut notes: Vec<String> =
        Metric::ARMS.iter().flat_map(|metric| (metric.definition().notes)(&told)).collect();
    for top in &metrics.uplift_at_k {
        if top.overall.is_none() || top.by_group.is_none() {
            notes.push(format!("uplift_at_k: the top {} leaves an arm empty", top.share));
        }
    }
    let auuc = &metrics[Metric::Auuc];
    if params.bootstrap.draws == 0 {
        notes.push("intervals: no bootstrap draws were asked for".to_owned());
    } else if auuc.value.is_some() && auuc.interval.is_none() {
        notes.push("intervals: too many draws left an arm empty".to_owned());
    }
    notes
}
