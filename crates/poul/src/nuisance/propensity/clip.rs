//! Clipping: no policy below its floor, every row summing to 1.

use rayon::prelude::*;

/// How often probabilities were lifted to their floor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clipped {
    /// Rows with at least one lifted probability.
    pub(super) n_rows: usize,
    /// Rows whose own policy's probability was lifted.
    pub(super) n_own: usize,
}

/// The floor of each policy: the smaller of `clip` and a tenth of its share; 0 for one that was never run.
pub(super) fn floors(shares: &[f32], clip: f32) -> Vec<f32> {
    shares.iter().map(|share| clip.min(0.1 * share)).collect()
}

/// Lifts probabilities to their floors and scales the others of the row down, until all rows of the table hold.
///
/// `policy` has the policy of each row, to count by; new rows have none.
pub(super) fn clip(table: &mut [f32], floors: &[f32], policy: Option<&[u32]>) -> Clipped {
    let counts = table.par_chunks_mut(floors.len().max(1)).enumerate().map(|(row, probabilities)| {
        let own = policy.map(|policy| policy[row] as usize);
        let own_lifted = own.is_some_and(|own| probabilities[own] < floors[own]);
        let lifted = clip_row(probabilities, floors);
        Clipped { n_rows: usize::from(lifted), n_own: usize::from(own_lifted) }
    });
    counts.reduce(Clipped::default, |a, b| Clipped { n_rows: a.n_rows + b.n_rows, n_own: a.n_own + b.n_own })
}

/// Says whether anything was lifted.
fn clip_row(probabilities: &mut [f32], floors: &[f32]) -> bool {
    if probabilities.iter().zip(floors).all(|(probability, floor)| probability >= floor) {
        return false;
    }
    // Scaling down may push others below their floors, at least one more a round until none is. Floors sum to at most a
    // tenth, so there is always something to scale.
    let mut factor = 1.0_f64;
    for _ in 0..probabilities.len() {
        let (mut lifted, mut rest) = (0.0_f64, 0.0_f64);
        for (probability, floor) in probabilities.iter().zip(floors) {
            match is_lifted(*probability, *floor, factor) {
                true => lifted += f64::from(*floor),
                false => rest += f64::from(*probability),
            }
        }
        let next = (1.0 - lifted) / rest.max(f64::MIN_POSITIVE);
        if next >= factor {
            break;
        }
        factor = next;
    }
    for (probability, floor) in probabilities.iter_mut().zip(floors) {
        *probability = match is_lifted(*probability, *floor, factor) {
            true => *floor,
            false => (f64::from(*probability) * factor) as f32,
        };
    }
    true
}

fn is_lifted(probability: f32, floor: f32, factor: f64) -> bool {
    f64::from(probability) * factor < f64::from(floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_relative_for_rare_policies() {
        assert_eq!(floors(&[0.5, 0.49, 0.01, 0.0], 0.01), [0.01, 0.01, 0.001, 0.0]);
    }

    #[test]
    fn rows_hold_their_floors_and_sum_to_one() {
        let floors = [0.01, 0.01, 0.02, 0.0];
        let mut table = vec![0.5, 0.3, 0.2, 0.0, 0.9899, 0.0101, 0.0, 0.0, 0.004, 0.99, 0.006, 0.0];
        let before = table.clone();
        let clipped = clip(&mut table, &floors, Some(&[0, 1, 0]));
        assert_eq!(clipped, Clipped { n_rows: 2, n_own: 1 });
        assert_eq!(table[..4], before[..4]);
        for row in table.chunks(4) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
            assert!(row.iter().zip(&floors).all(|(probability, floor)| probability >= floor), "{row:?}");
            assert_eq!(row[3], 0.0);
        }
        // The second policy of the second row falls below its floor only once the first lift is paid for.
        assert_eq!(table[4..8], [0.97, 0.01, 0.02, 0.0]);
    }
}
