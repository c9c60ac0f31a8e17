//! Why numbers of a comparison are missing or doubtful, in words for the reader of a report.

use super::params::ValidParams;
use super::ranked::Ranked;
use crate::evaluate::result::Metrics;

/// One sentence for each reason.
pub(super) fn of(metrics: &Metrics, ranked: &Ranked, params: &ValidParams) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String| {
        if applies {
            notes.push(text);
        }
    };
    note(
        metrics.auuc.is_none() || metrics.qini.is_none(),
        "auuc, qini: the average effect is zero, so that gains have no scale".to_owned(),
    );
    note(
        metrics.random_auuc.is_some_and(|random| random < 0.0),
        "the average effect is negative: a random ranking has auuc -0.5".to_owned(),
    );
    let uncertain = metrics.ate_interval.is_some_and(|[low, high]| low <= 0.0 && high >= 0.0);
    note(
        uncertain,
        "the average effect may be zero: auuc, qini and mape divide by it and are unstable".to_owned(),
    );
    let sklift_missing = metrics.uplift_auc_sklift.is_none() || metrics.qini_auc_sklift.is_none();
    note(
        sklift_missing && !ranked.is_binary(),
        "uplift_auc_sklift, qini_auc_sklift: defined for 0/1 outcomes only".to_owned(),
    );
    note(
        sklift_missing && ranked.is_binary(),
        "uplift_auc_sklift, qini_auc_sklift: there is no perfect ranking to compare with".to_owned(),
    );
    let n_empty = metrics.calibration.iter().filter(|bin| bin.observed.is_none()).count();
    note(n_empty > 0, format!("mape, wmape: {n_empty} of {} bins lack an arm and are left out", params.bins));
    note(
        metrics.mape.is_none() && n_empty < metrics.calibration.len(),
        "mape: an observed effect is exactly zero".to_owned(),
    );
    note(
        metrics.mape_flagged_bins > 0,
        format!(
            "mape: in {} of {} bins the observed effect is smaller than its standard error",
            metrics.mape_flagged_bins, params.bins
        ),
    );
    note(
        metrics.calibration_slope.is_none(),
        "calibration_slope: the predicted effects of an arm do not vary".to_owned(),
    );
    for top in &metrics.uplift_at_k {
        note(
            top.overall.is_none() || top.by_group.is_none(),
            format!("uplift_at_k: the top {} leaves an arm empty", top.share),
        );
    }
    note(params.bootstrap.draws == 0, "intervals: no bootstrap draws were asked for".to_owned());
    note(
        params.bootstrap.draws > 0 && metrics.auuc.is_some() && metrics.auuc_interval.is_none(),
        "intervals: too many draws left an arm empty".to_owned(),
    );
    notes
}
