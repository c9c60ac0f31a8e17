//! How far a step can go, and what it ends at.

use super::basis::{Basis, Head};
use super::columns::Columns;

/// Slower than this, nothing ends a step.
const SLOW: f64 = 1e-9;
/// Ends within this of each other are the same end.
const SAME: f64 = 1e-12;

/// What leaves the basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// What stands in a place.
    Place(usize),
    /// The key of a user.
    Key(usize),
}

/// Finds the end of steps; holds room for sums by user.
pub(super) struct Ratio {
    /// What a user's options beside its key have together, and lose by a unit of the step.
    share: Vec<f64>,
    speed: Vec<f64>,
    touched: Vec<usize>,
}

struct End {
    leaving: Leaving,
    length: f64,
    speed: f64,
    /// The number of what leaves among all that may.
    index: usize,
}

impl Ratio {
    pub(super) fn new(n_users: usize) -> Self {
        Self { share: vec![0.0; n_users], speed: vec![0.0; n_users], touched: Vec::new() }
    }

    /// The end of a step: what leaves, and the length. `direction` is what a unit takes from every place of the basis, `entering`
    /// the user whose option enters. Slacks below −`tolerance` of their limit may fall further, and end a step where they rise to
    /// zero. Of ends that are the same the firmest counts, or with `is_careful` that of the first in number, which keeps steps
    /// without length from going in a circle.
    pub(super) fn end(
        &mut self,
        columns: &Columns,
        (basis, keys): (&Basis, &[u32]),
        direction: &[f64],
        entering: Option<usize>,
        (tolerance, is_careful): (&[f64], bool),
    ) -> Option<(Leaving, f64)> {
        let m = direction.len();
        let mut ends: Vec<End> = Vec::new();
        if let Some(user) = entering {
            self.touch(user);
            self.speed[user] -= 1.0;
        }
        for (place, (head, speed)) in basis.heads.iter().zip(direction).enumerate() {
            let (value, speed) = (basis.values[place], *speed);
            let (is_short, index) = match *head {
                Head::Slack(limit) => (value < -tolerance[limit], limit),
                Head::Option(option) => {
                    let user = columns.user(option);
                    self.touch(user);
                    self.share[user] += value;
                    self.speed[user] += speed;
                    (false, m + option)
                }
            };
            let leaving = Leaving::Place(place);
            if is_short && speed < -SLOW {
                ends.push(End { leaving, length: value / speed, speed: -speed, index });
            } else if !is_short && speed > SLOW {
                ends.push(End { leaving, length: value.max(0.0) / speed, speed, index });
            }
        }
        for user in std::mem::take(&mut self.touched) {
            let (left, speed) = (1.0 - self.share[user], -self.speed[user]);
            if speed > SLOW {
                let index = m + keys[user] as usize;
                ends.push(End { leaving: Leaving::Key(user), length: left.max(0.0) / speed, speed, index });
            }
            self.share[user] = 0.0;
            self.speed[user] = 0.0;
        }
        let shortest = ends.iter().map(|end| end.length).reduce(f64::min)?;
        let same = ends.iter().filter(|end| end.length <= shortest + SAME * (1.0 + shortest));
        let end = if is_careful {
            same.min_by_key(|end| end.index)
        } else {
            same.max_by(|a, b| a.speed.total_cmp(&b.speed).then(b.index.cmp(&a.index)))
        };
        end.map(|end| (end.leaving, end.length))
    }

    fn touch(&mut self, user: usize) {
        if !self.touched.contains(&user) {
            self.touched.push(user);
        }
    }
}
