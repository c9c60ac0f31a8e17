//! The effect among the share of rows ranked highest (scikit-uplift's `uplift_at_k`).

use super::ranked::{Rows, Totals};

/// Which rows the top share is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The top k share of all rows together.
    Overall,
    /// The top k share of each arm separately.
    ByGroup,
}

/// Difference of the arms' mean outcomes in the top `share` (above 0, at most 1) of the ranking.
///
/// Rows are counted down to ⌊share·n⌋, as scikit-uplift does; weights that are not whole numbers are cut exactly. A
/// tie group across the cut enters in proportion, so that the order of tied rows cannot matter. `None` where the
/// share is out of range or leaves an arm empty.
pub fn uplift_at_k<'a>(rows: impl Into<Rows<'a>>, share: f64, strategy: Strategy) -> Option<f64> {
    let rows = rows.into();
    let mut top = TopSums::new(rows, &rows.totals(), share)?;
    rows.for_each_cut(|before, after| top.add(before, after));
    match strategy {
        Strategy::Overall => top.overall(),
        Strategy::ByGroup => top.by_group(),
    }
}

/// Sums over the top share, overall and by arm, gathered cut by cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct TopSums {
    target: f64,
    treated_target: f64,
    control_target: f64,
    overall: Totals,
    treated_sum: f64,
    control_sum: f64,
}

impl TopSums {
    pub(super) fn new(rows: Rows<'_>, totals: &Totals, share: f64) -> Option<Self> {
        if !(share > 0.0 && share <= 1.0) {
            return None;
        }
        let cut = |n: f64| if rows.ranked.has_whole_weights() { (n * share).floor() } else { n * share };
        Some(Self {
            target: cut(totals.k()),
            treated_target: cut(totals.n_treated),
            control_target: cut(totals.n_control),
            overall: Totals::default(),
            treated_sum: 0.0,
            control_sum: 0.0,
        })
    }

    #[inline(always)]
    pub(super) fn add(&mut self, before: &Totals, after: &Totals) {
        if before.k() < self.target {
            self.overall = before.toward(after, reach(before.k(), after.k(), self.target));
        }
        if before.n_treated < self.treated_target {
            let share = reach(before.n_treated, after.n_treated, self.treated_target);
            self.treated_sum = before.y_treated + (after.y_treated - before.y_treated) * share;
        }
        if before.n_control < self.control_target {
            let share = reach(before.n_control, after.n_control, self.control_target);
            self.control_sum = before.y_control + (after.y_control - before.y_control) * share;
        }
    }

    pub(super) fn overall(&self) -> Option<f64> {
        self.overall.lift()
    }

    pub(super) fn by_group(&self) -> Option<f64> {
        (self.treated_target > 0.0 && self.control_target > 0.0)
            .then(|| self.treated_sum / self.treated_target - self.control_sum / self.control_target)
    }
}

/// How much of the step from `before` to `after` lies below `target`.
fn reach(before: f64, after: f64, target: f64) -> f64 {
    if after <= target { 1.0 } else { (target - before) / (after - before) }
}
