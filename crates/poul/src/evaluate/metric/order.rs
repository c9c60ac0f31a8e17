//! Descending order of scores, stable in input order: a radix sort on the leading bits, then a repair of the rest.

/// Row numbers by descending score, and the scores in that order. Equal scores keep their input order; −0 equals 0.
///
/// A score becomes an unsigned key that sorts the same way. Three counting passes order the 32 leading bits of the
/// keys' range; rows that agree on those are few and adjacent, and are put right by comparing whole scores.
pub(super) fn descending(score: &[f64]) -> (Vec<u32>, Vec<f64>) {
    let Some((smallest, largest)) = key_range(score) else {
        return (Vec::new(), Vec::new());
    };
    let n_bits = 64 - (largest - smallest).leading_zeros();
    let dropped_bits = n_bits.saturating_sub(32);
    let mut packed: Vec<u64> = score
        .iter()
        .enumerate()
        .map(|(row, score)| (((key(*score) - smallest) >> dropped_bits) << 32) | row as u64)
        .collect();
    if packed.len() < RADIX_ROWS {
        // The row number in the low bits makes this stable.
        packed.sort_unstable();
    } else {
        radix_sort_high_half(&mut packed);
    }

    let mut order: Vec<u32> = packed.iter().map(|packed| *packed as u32).collect();
    let mut sorted: Vec<f64> = order.iter().map(|row| score[*row as usize] + 0.0).collect();
    if dropped_bits > 0 {
        let mut start = 0;
        for run in packed.chunk_by(|a, b| a >> 32 == b >> 32) {
            let end = start + run.len();
            if run.len() > 1 {
                sort_run(&mut sorted[start..end], &mut order[start..end]);
            }
            start = end;
        }
    }
    (order, sorted)
}

/// Below this the comparison sort is as quick.
const RADIX_ROWS: usize = 4096;

/// Runs longer than this leave insertion sort behind.
const INSERTION_ROWS: usize = 32;

/// An unsigned number that is smaller where the score is larger.
#[inline]
fn key(score: f64) -> u64 {
    // Adding zero turns −0 into 0, which must tie with it.
    let bits = (score + 0.0).to_bits();
    let ascending = bits ^ (((bits as i64) >> 63) as u64 | (1 << 63));
    !ascending
}

/// The score that a key stands for.
fn score_of(key: u64) -> f64 {
    let ascending = !key;
    f64::from_bits(if ascending >> 63 == 1 { ascending ^ (1 << 63) } else { !ascending })
}

fn key_range(score: &[f64]) -> Option<(u64, u64)> {
    let first = key(*score.first()?);
    Some(score.iter().fold((first, first), |(smallest, largest), score| {
        let key = key(*score);
        (smallest.min(key), largest.max(key))
    }))
}

/// Sorts by the upper 32 bits, stably, in passes of 11, 11 and 10 bits.
fn radix_sort_high_half(packed: &mut Vec<u64>) {
    const SHIFTS: [u32; 3] = [32, 43, 54];
    const BUCKETS: usize = 1 << 11;
    let digit = |value: u64, shift: u32| (value >> shift) as usize & (BUCKETS - 1);

    let mut counts = vec![[0_u32; BUCKETS]; SHIFTS.len()];
    for value in packed.iter() {
        for (counts, shift) in counts.iter_mut().zip(SHIFTS) {
            counts[digit(*value, shift)] += 1;
        }
    }
    let mut other = vec![0_u64; packed.len()];
    for (counts, shift) in counts.iter_mut().zip(SHIFTS) {
        if counts.iter().any(|count| *count as usize == packed.len()) {
            continue;
        }
        let mut offset = 0;
        for count in counts.iter_mut() {
            (*count, offset) = (offset, offset + *count);
        }
        for value in packed.iter() {
            let slot = &mut counts[digit(*value, shift)];
            other[*slot as usize] = *value;
            *slot += 1;
        }
        std::mem::swap(packed, &mut other);
    }
}

/// Sorts one run of rows by descending score, stably.
fn sort_run(score: &mut [f64], order: &mut [u32]) {
    if score.len() > INSERTION_ROWS {
        let mut pairs: Vec<(u64, u32)> = score.iter().zip(&*order).map(|(s, row)| (key(*s), *row)).collect();
        pairs.sort_unstable();
        for ((score, row), (key, sorted_row)) in score.iter_mut().zip(order).zip(pairs) {
            *score = score_of(key);
            *row = sorted_row;
        }
        return;
    }
    for end in 1..score.len() {
        let (moved_score, moved_row) = (score[end], order[end]);
        let mut slot = end;
        while slot > 0 && score[slot - 1] < moved_score {
            score[slot] = score[slot - 1];
            order[slot] = order[slot - 1];
            slot -= 1;
        }
        score[slot] = moved_score;
        order[slot] = moved_row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    fn check(score: &[f64]) {
        let mut expected: Vec<u32> = (0..score.len() as u32).collect();
        expected.sort_by(|a, b| score[*b as usize].partial_cmp(&score[*a as usize]).unwrap());
        let (order, sorted) = descending(score);
        assert_eq!(order, expected);
        assert!(order.iter().zip(&sorted).all(|(row, sorted)| score[*row as usize] == *sorted));
    }

    #[test]
    fn agrees_with_a_stable_comparison_sort() {
        let mut rng = Seed::new(1).child("order").rng();
        for n in [0, 1, 2, 100, RADIX_ROWS, 20_000] {
            let wide: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
            check(&wide);
            check(&wide.iter().map(|x| x * 1e-200).collect::<Vec<_>>());
            check(&wide.iter().map(|x| (x * 10.0).round() / 10.0).collect::<Vec<_>>());
            // One cell of the leading bits holds nearly all rows.
            check(
                &wide
                    .iter()
                    .enumerate()
                    .map(|(i, x)| if i == 7 { -1e300 } else { 1.0 + x * 1e-9 })
                    .collect::<Vec<_>>(),
            );
        }
    }

    #[test]
    fn zeros_of_either_sign_tie() {
        check(&[0.0, -0.0, 0.0, 1.0, -0.0]);
        check(&[f64::MAX, f64::MIN, f64::MIN_POSITIVE, 0.0, -f64::MIN_POSITIVE]);
    }
}
