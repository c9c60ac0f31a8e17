//! The curve itself: lift and gain at evenly spaced shares of the ranking, for plotting.

use super::ranked::{Rows, Totals};
use crate::evaluate::result::CurvePoint;

/// Lift(k) and G(k) = k·Lift(k) at `n_points` evenly spaced k from 0 to n, with the conventions of
/// [`auuc`](super::auuc). Empty where an arm is empty or fewer than two points are asked for.
pub fn gain_curve<'a>(rows: impl Into<Rows<'a>>, n_points: usize) -> Vec<CurvePoint> {
    let rows = rows.into();
    let totals = rows.totals();
    let mut sampler = CurveSampler::new(&totals, n_points);
    rows.for_each_cut(|before, after| sampler.add(before, after));
    sampler
        .gains()
        .iter()
        .enumerate()
        .map(|(point, gain)| {
            let share = point as f64 / (n_points - 1) as f64;
            let k = share * totals.k();
            CurvePoint {
                share,
                k,
                lift: if point == 0 { 0.0 } else { gain / k },
                gain: *gain,
                gain_interval: None,
            }
        })
        .collect()
}

/// Reads G off at fixed values of k while the cuts go by.
#[derive(Clone, Debug)]
pub(super) struct CurveSampler {
    step: f64,
    n_points: usize,
    known: bool,
    gain: f64,
    gains: Vec<f64>,
}

impl CurveSampler {
    pub(super) fn new(totals: &Totals, n_points: usize) -> Self {
        let step = if n_points > 1 { totals.k() / (n_points - 1) as f64 } else { 0.0 };
        Self { step, n_points, known: false, gain: 0.0, gains: Vec::with_capacity(n_points) }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, before: &Totals, after: &Totals) {
        // Nearly every cut falls between two points: leave before the divisions.
        let k = after.k();
        let next = self.step * self.gains.len() as f64;
        let passes = k >= next && self.gains.len() < self.n_points;
        let gain = match after.lift() {
            // As in the area: the slope of Lift is 1 until it is known.
            None => k * k,
            Some(lift) => {
                if !self.known {
                    let slope = lift / k;
                    self.gain *= slope;
                    self.gains.iter_mut().for_each(|gain| *gain *= slope);
                    self.known = true;
                }
                k * lift
            }
        };
        if passes {
            self.read(before.k(), k, gain);
        }
        self.gain = gain;
    }

    fn read(&mut self, k_before: f64, k: f64, gain: f64) {
        while self.gains.len() < self.n_points {
            let target = self.step * self.gains.len() as f64;
            if target > k {
                break;
            }
            let share = if k > k_before { (target - k_before) / (k - k_before) } else { 1.0 };
            self.gains.push(self.gain + (gain - self.gain) * share);
        }
    }

    /// G at every point; empty where an arm was empty.
    pub(super) fn gains(&mut self) -> &[f64] {
        if !self.known || self.step == 0.0 {
            self.gains.clear();
        } else {
            // Rounding may leave the last target a hair above n.
            self.gains.resize(self.n_points, self.gain);
        }
        &self.gains
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ranked, Sample, auuc};
    use super::*;

    #[test]
    fn a_point_for_every_row_averages_to_the_auuc() {
        let score: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 41)).collect();
        let treated: Vec<bool> = (0..60).map(|i| (i * 7) % 5 < 2).collect();
        let outcome: Vec<f64> = (0..60).map(|i| f64::from((i * 13) % 11)).collect();
        let ranked = Ranked::new(&Sample::new(&score, &outcome, &treated).unwrap());
        let curve = gain_curve(&ranked, 61);
        let end = curve[60].gain;
        let mean = curve.iter().map(|point| point.gain).sum::<f64>() / 60.0 / end.abs();
        assert!((mean - auuc(&ranked).unwrap()).abs() < 1e-12);
        assert_eq!((curve[0].gain, curve[0].k, curve[60].k), (0.0, 0.0, 60.0));
        assert!((curve[60].lift * 60.0 - end).abs() < 1e-12);
    }

    #[test]
    fn fewer_points_lie_on_the_same_curve() {
        let score = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0];
        let treated = [true, true, false, true, false, false];
        let outcome = [1.0, 2.0, 0.0, 3.0, 1.0, 1.0];
        let ranked = Ranked::new(&Sample::new(&score, &outcome, &treated).unwrap());
        let (all, some) = (gain_curve(&ranked, 7), gain_curve(&ranked, 3));
        assert!((some[1].gain - all[3].gain).abs() < 1e-12 && (some[2].gain - all[6].gain).abs() < 1e-12);
        assert!(gain_curve(&ranked, 1).is_empty());
    }
}
