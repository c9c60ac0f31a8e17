//! The grid of a space, and random points of it, each once.

use serde::{Deserialize, Serialize};

use super::space::{Point, Space};
use crate::{Error, Result, Seed};

/// Most points of a grid that is run whole.
const MOST_POINTS: usize = 10_000;
/// Draws without a new point before the space counts as exhausted.
const MOST_REPEATS: usize = 1000;

/// How points are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// The grid where there are only choices and no more points than trials; random points otherwise.
    #[default]
    Auto,
    /// Every point of the grid.
    Grid,
    /// Random points.
    Random,
}

/// The points to try.
pub(super) fn points(space: &Space, search: Search, trials: usize, seed: Seed) -> Result<Vec<Point>> {
    if trials == 0 {
        return Err(Error::usage("no trials").hint("ask for at least one: ‹trials=1›"));
    }
    let n_grid = space.grid_points();
    let whole = search == Search::Grid || (search == Search::Auto && space.is_discrete() && n_grid <= trials);
    if !whole {
        return Ok(random(space, trials, seed));
    }
    if n_grid > MOST_POINTS {
        let error = Error::usage(format!("the grid has {n_grid} points"));
        return Err(error.hint(format!("search at random, or leave values out: at most {MOST_POINTS}")));
    }
    let mut points = vec![Point::new()];
    for (name, dimension) in &space.0 {
        let values = dimension.grid();
        let with = |point: &Point, value: &serde_json::Value| {
            let mut point = point.clone();
            point.insert(name.clone(), value.clone());
            point
        };
        points = points.iter().flat_map(|point| values.iter().map(|value| with(point, value))).collect();
    }
    Ok(points)
}

/// Up to so many different points.
fn random(space: &Space, trials: usize, seed: Seed) -> Vec<Point> {
    let mut rng = seed.child("points").rng();
    let mut points: Vec<Point> = Vec::with_capacity(trials.min(MOST_POINTS));
    let mut n_repeats = 0;
    while points.len() < trials && n_repeats < MOST_REPEATS {
        let draw = |(name, dimension): (&String, &super::Dimension)| (name.clone(), dimension.draw(&mut rng));
        let point: Point = space.0.iter().map(draw).collect();
        if points.contains(&point) {
            n_repeats += 1;
        } else {
            points.push(point);
            n_repeats = 0;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_grid_is_whole_and_random_points_differ() {
        let table = json!({ "model.a": [1, 2, 3], "training.b": [true, false] });
        let space = Space::parse(table.as_object().unwrap()).unwrap();
        let of = |search, trials| points(&space, search, trials, Seed::new(1)).unwrap();
        let grid = of(Search::Auto, 6);
        assert_eq!(grid.len(), 6);
        assert_eq!(grid[1], Point::from([("model.a".into(), json!(1)), ("training.b".into(), json!(false))]));
        assert_eq!(of(Search::Grid, 1), grid);
        let some = of(Search::Auto, 4);
        assert_eq!(some.len(), 4);
        assert!(some.iter().all(|point| grid.contains(point)));
        assert!((0..4).all(|index| !some[..index].contains(&some[index])));
        // There are no more than six.
        assert_eq!(of(Search::Random, 50).len(), 6);
    }
}
