//! The upper convex hull of one user's options, from the least load upwards.
//!
//! At a price p of the load a user takes the option with the greatest value − p·load. Those that are best at some p ≥ 0 are the
//! corners of the hull; along it load and value grow and the slope falls.

/// The corners of one user's hull, kept between users so that nothing is allocated for each.
#[derive(Default)]
pub(super) struct Hull {
    corners: Vec<Corner>,
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
        let better =
            |a: usize, b: usize| loads[a] < loads[b] || (loads[a] == loads[b] && values[a] > values[b]);
        if let Some(first) = (0..values.len()).reduce(|best, k| if better(k, best) { k } else { best }) {
            self.corners.push(Corner { option: first, slope: f64::INFINITY });
            let mut last = first;
            while let Some(next) = steepest(values, loads, last) {
                self.push(values, loads, next);
                last = next;
            }
        }
        self.corners.iter().map(|corner| corner.option)
    }

    /// Adds a corner and takes back those before it that are not above the line to it: slopes fall as they are computed,
    /// whatever rounding does.
    fn push(&mut self, values: &[f32], loads: &[f32], option: usize) {
        while let Some(last) = self.corners.last() {
            let slope = slope(values[last.option], loads[last.option], values[option], loads[option]);
            if slope < last.slope {
                self.corners.push(Corner { option, slope });
                return;
            }
            self.corners.pop();
        }
    }
}

/// What a unit of load gains from one option to another that has more of both.
pub(super) fn slope(value: f32, load: f32, next_value: f32, next_load: f32) -> f64 {
    (f64::from(next_value) - f64::from(value)) / (f64::from(next_load) - f64::from(load))
}

/// The option to which the line from `last` is steepest, of those with a greater load and value.
fn steepest(values: &[f32], loads: &[f32], last: usize) -> Option<usize> {
    let (value, load) = (f64::from(values[last]), f64::from(loads[last]));
    let mut best = (0.0, None);
    for (k, (own_value, own_load)) in values.iter().zip(loads).enumerate() {
        let more = f64::from(*own_load) - load;
        let slope = if more > 0.0 { (f64::from(*own_value) - value) / more } else { 0.0 };
        if slope > best.0 {
            best = (slope, Some(k));
        }
    }
    best.1
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
