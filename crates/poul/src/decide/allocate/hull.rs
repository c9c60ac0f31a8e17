//! The upper convex hull of one user's options, from the least load upwards.
//!
//! At a price p of the load a user takes the option with the greatest value − p·load. Those that are best at some p ≥ 0 are the
//! corners of the hull; along it load and value grow and the slope falls.

/// The corners of one user's hull, kept between users so that nothing is allocated for each.
#[derive(Default)]
pub(super) struct Hull {
    corners: Vec<Corner>,
    /// From the last corner to every option.
    slopes: Vec<f64>,
}

struct Corner {
    option: usize,
    /// Of the step that leads here; infinite for the first.
    slope: f64,
}

impl Hull {
    /// The options on the hull, in the order of their loads. Of options with the same value and load the first counts.
    pub(super) fn of(&mut self, values: &[f32], loads: &[f32]) -> impl Iterator<Item = usize> + '_ {
        self.corners.clear();
        if let Some(first) = cheapest(values, loads) {
            self.corners.push(Corner { option: first, slope: f64::INFINITY });
            let greatest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut last = first;
            while values[last] < greatest
                && let Some((next, slope)) = self.steepest(values, loads, last)
            {
                self.push(values, loads, next, slope);
                last = next;
            }
        }
        self.corners.iter().map(|corner| corner.option)
    }

    /// Adds a corner, at the end of a slope from the last, and takes back those before it that are not above the line to it:
    /// slopes fall as they are computed, whatever rounding does.
    fn push(&mut self, values: &[f32], loads: &[f32], option: usize, from_last: f64) {
        let mut own = from_last;
        while let Some(last) = self.corners.last()
            && own >= last.slope
        {
            self.corners.pop();
            if let Some(last) = self.corners.last() {
                own = slope(values[last.option], loads[last.option], values[option], loads[option]);
            }
        }
        self.corners.push(Corner { option, slope: own });
    }

    /// The option to which the line from `last` is steepest, of those with a greater load and value.
    fn steepest(&mut self, values: &[f32], loads: &[f32], last: usize) -> Option<(usize, f64)> {
        let (value, load) = (f64::from(values[last]), f64::from(loads[last]));
        // All slopes first and the greatest of them then: loops without branches, over several options at once.
        self.slopes.clear();
        self.slopes.extend(values.iter().zip(loads).map(|(own_value, own_load)| {
            let more = f64::from(*own_load) - load;
            let slope = (f64::from(*own_value) - value) / more;
            if more > 0.0 { slope } else { 0.0 }
        }));
        let best = self.slopes.iter().fold(0.0, |best: f64, slope| if *slope > best { *slope } else { best });
        let at = if best > 0.0 { self.slopes.iter().position(|slope| *slope == best) } else { None };
        at.map(|at| (at, best))
    }
}

/// What a unit of load gains from one option to another that has more of both.
pub(super) fn slope(value: f32, load: f32, next_value: f32, next_load: f32) -> f64 {
    (f64::from(next_value) - f64::from(value)) / (f64::from(next_load) - f64::from(load))
}

/// The option with the least load, the best of those.
fn cheapest(values: &[f32], loads: &[f32]) -> Option<usize> {
    let least = loads.iter().copied().fold(f32::INFINITY, f32::min);
    let cheap = (0..loads.len()).filter(|k| loads[*k] == least);
    cheap.reduce(|best, k| if values[k] > values[best] { k } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hull(values: &[f32], loads: &[f32]) -> Vec<usize> {
        Hull::default().of(values, loads).collect()
    }

    #[test]
    fn corners_rise_with_falling_slopes() {
        // Control, a bargain, one below the line, one above it, one that costs more and gives less.
        assert_eq!(hull(&[0.0, 2.0, 2.4, 3.0, 2.9], &[0.0, 1.0, 2.0, 3.0, 4.0]), [0, 1, 3]);
        assert_eq!(hull(&[0.0, -1.0], &[0.0, 1.0]), [0]);
    }

    #[test]
    fn options_on_a_line_and_equal_options_are_dropped() {
        assert_eq!(hull(&[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0]), [0, 2]);
        assert_eq!(hull(&[0.0, 2.0, 1.0, 2.0], &[0.0, 2.0, 1.0, 2.0]), [0, 1]);
    }

    #[test]
    fn free_and_negative_loads_come_first() {
        assert_eq!(hull(&[0.0, 1.0, 3.0], &[0.0, 0.0, 1.0]), [1, 2]);
        assert_eq!(hull(&[0.0, -1.0, 3.0], &[0.0, -2.0, 1.0]), [1, 2]);
        assert_eq!(hull(&[0.0, 1.0], &[0.0, -1.0]), [1]);
    }
}
