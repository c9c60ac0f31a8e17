//! The paper's AUUC (appendix "Evaluation Metrics") and the Qini area, both free of the order of tied rows.

use super::definition::{About, Better, Definition, Shown};
use super::ranked::{Rows, Totals};
use super::registry::Metric;

pub(super) const AUUC: Definition = Definition {
    evaluated: Shown::INTERVAL,
    reported: Shown::INTERVAL,
    compared: Shown::ALL,
    in_comparisons: true,
    notes: |told| {
        let is_missing = [Metric::Auuc, Metric::Qini].iter().any(|own| told.metrics[*own].value.is_none());
        let note = "auuc, qini: the average effect is zero, so that gains have no scale";
        is_missing.then(|| note.to_owned()).into_iter().collect()
    },
    ..Definition::new("auuc", "AUUC", About::Ranking, |pass| pass.gain.auuc(&pass.totals))
};

pub(super) const RANDOM_AUUC: Definition = Definition {
    better: Better::Neither,
    has_interval: false,
    notes: |told| {
        let is_negative = told.metrics[Metric::RandomAuuc].value.is_some_and(|random| random < 0.0);
        let note = "the average effect is negative: a random ranking has auuc -0.5";
        is_negative.then(|| note.to_owned()).into_iter().collect()
    },
    ..Definition::new("random_auuc", "random AUUC", About::Ranking, |pass| random_area(&pass.totals))
};

pub(super) const QINI: Definition = Definition {
    evaluated: Shown::VALUE,
    reported: Shown::VALUE,
    compared: Shown::VALUE,
    in_comparisons: true,
    notes: |told| {
        let may_be_zero = |[low, high]: [f64; 2]| low <= 0.0 && high >= 0.0;
        let is_uncertain = told.metrics[Metric::Ate].interval.is_some_and(may_be_zero);
        let note = "the average effect may be zero: auuc, qini and mape divide by it and are unstable";
        is_uncertain.then(|| note.to_owned()).into_iter().collect()
    },
    ..Definition::new("qini", "Qini", About::Ranking, |pass| pass.qini.qini(&pass.totals))
};

/// The paper's normalised AUUC: the mean over k = 1…n of G(k)/|G(n)|, G(k) = k·Lift(k).
///
/// Lift is taken at distinct scores. Where an arm is still empty it rises linearly in k from Lift(0) = 0 to the first
/// value known; G is linear in k between distinct scores. A random ranking gives [`random_auuc`].
/// `None` where the average effect is exactly zero or an arm is empty.
pub fn auuc<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    let mut area = GainArea::default();
    let mut totals = Totals::default();
    rows.into().for_each_cut(|before, after| {
        area.add(before, after);
        totals = *after;
    });
    area.auuc(&totals)
}

/// The AUUC of a random ranking: 0.5, or −0.5 where the average effect is negative. `None` where it is zero.
pub fn random_auuc<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    random_area(&rows.into().totals())
}

fn random_area(totals: &Totals) -> Option<f64> {
    let lift = totals.lift()?;
    (lift != 0.0).then_some(0.5_f64.copysign(lift))
}

/// Area between the Qini curve Q(k) = Y_T − Y_C·N_T/N_C and the straight line, over |Q(n)|.
///
/// The normalisation is causalml's (mean over the n + 1 points 0…n), and without ties so is the value; Q is taken at
/// distinct scores and linear between them, so that the order of tied rows cannot matter.
pub fn qini<'a>(rows: impl Into<Rows<'a>>) -> Option<f64> {
    let mut area = QiniArea::default();
    let mut totals = Totals::default();
    rows.into().for_each_cut(|before, after| {
        area.add(before, after);
        totals = *after;
    });
    area.qini(&totals)
}

/// Twice the area under G, cut by cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GainArea {
    known: bool,
    gain: f64,
    twice_area: f64,
}

impl GainArea {
    #[inline(always)]
    pub(super) fn add(&mut self, before: &Totals, after: &Totals) {
        let (k_before, k) = (before.k(), after.k());
        let Some(lift) = after.lift() else {
            // While an arm is empty, Lift(k) = slope·k and G(k) = slope·k²; the slope is 1 until it is known.
            self.gain = k * k;
            self.twice_area += (k - k_before) * (k_before * k_before + k * k);
            return;
        };
        if !self.known {
            let slope = lift / k;
            self.gain *= slope;
            self.twice_area *= slope;
            self.known = true;
        }
        let gain = k * lift;
        self.twice_area += (k - k_before) * (self.gain + gain);
        self.gain = gain;
    }

    /// A sum over k = 1…n of a piecewise linear G is the area plus half of G(n), whole steps or not.
    pub(super) fn auuc(&self, totals: &Totals) -> Option<f64> {
        if !self.known || self.gain == 0.0 {
            return None;
        }
        Some((self.twice_area + self.gain) / (2.0 * totals.k() * self.gain.abs()))
    }
}

/// Twice the area under Q, cut by cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QiniArea {
    q: f64,
    twice_area: f64,
}

impl QiniArea {
    #[inline(always)]
    pub(super) fn add(&mut self, before: &Totals, after: &Totals) {
        if after.n_control == 0.0 {
            return;
        }
        // Until control rows are seen Q is a line from the origin to its first value: one step that starts at 0.
        let k_before = if before.n_control == 0.0 { 0.0 } else { before.k() };
        let q = after.y_treated - after.y_control * after.n_treated / after.n_control;
        self.twice_area += (after.k() - k_before) * (self.q + q);
        self.q = q;
    }

    pub(super) fn qini(&self, totals: &Totals) -> Option<f64> {
        if totals.n_control == 0.0 || totals.n_treated == 0.0 || self.q == 0.0 {
            return None;
        }
        let mean = (self.twice_area + self.q) / (2.0 * (totals.k() + 1.0));
        Some((mean - self.q / 2.0) / self.q.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ranked, Sample};
    use super::*;

    fn ranked(score: &[f64], outcome: &[f64], treated: &[bool]) -> Ranked {
        Ranked::new(&Sample::new(score, outcome, treated).unwrap())
    }

    #[test]
    fn a_curve_worked_by_hand() {
        // Scores 3 | 2 2 | 1. The top row is treated, so that Lift(1) lies on the line to Lift(3) = 5 − 1: it is 4/3.
        // G is 4/3 and 12 at k = 1 and 3, half way between them at k = 2, and 4·(12/3 − 1) at the end.
        let ranked = ranked(&[3.0, 2.0, 2.0, 1.0], &[6.0, 4.0, 1.0, 2.0], &[true, true, false, true]);
        let end = 4.0 * (12.0 / 3.0 - 1.0);
        let expected = (4.0 / 3.0 + (4.0 / 3.0 + 12.0) / 2.0 + 12.0 + end) / (4.0 * end);
        assert!((auuc(&ranked).unwrap() - expected).abs() < 1e-14);
    }

    #[test]
    fn constant_scores_are_as_good_as_random_up_to_the_step() {
        let outcome: Vec<f64> = (0..1000).map(|i| f64::from(i % 7)).collect();
        let treated: Vec<bool> = (0..1000).map(|i| i % 3 == 0).collect();
        let constant = ranked(&[0.5; 1000], &outcome, &treated);
        let random = random_auuc(&constant).unwrap();
        assert!((auuc(&constant).unwrap() - random - random / 1000.0).abs() < 1e-12);
        assert!((qini(&constant).unwrap()).abs() < 1e-3);
    }

    #[test]
    fn a_negative_average_effect_keeps_its_sign() {
        let treated: Vec<bool> = (0..1000).map(|i| i % 2 == 0).collect();
        let outcome: Vec<f64> = treated.iter().map(|treated| if *treated { -1.0 } else { 0.0 }).collect();
        let score: Vec<f64> = (0..1000).map(|i| f64::from(i % 2)).collect();
        let ranked = ranked(&score, &outcome, &treated);
        assert_eq!(random_auuc(&ranked), Some(-0.5));
        assert!(auuc(&ranked).unwrap() < 0.0);
    }

    #[test]
    fn no_average_effect_no_value() {
        let ranked = ranked(&[2.0, 1.0], &[1.0, 1.0], &[true, false]);
        assert_eq!((auuc(&ranked), random_auuc(&ranked), qini(&ranked)), (None, None, None));
    }
}
