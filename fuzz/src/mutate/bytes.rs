//! Changes that know nothing of what the bytes mean.

use super::{NUMBERS, WORDS};
use crate::random::Random;

/// A piece that is cut, doubled or put in is at most this long.
const MOST_PIECE: usize = 256;
/// An input grows no longer than this.
const MOST_BYTES: usize = 1 << 16;

/// Changes `input` in a few places. `other` is another valid input, for pieces of it.
pub(crate) fn bytes(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    // Most files break at the first change; one in four is changed a lot.
    let n_changes = if random.once_in(4) { 1 + random.below(16) } else { 1 + random.below(2) };
    for _ in 0..n_changes {
        change(random, input, other);
    }
    input.truncate(MOST_BYTES.max(other.len()));
}

fn change(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    if input.is_empty() {
        input.push(random.next() as u8);
        return;
    }
    let at = place(random, input.len());
    let end = (at + 1 + random.below(MOST_PIECE)).min(input.len());
    match random.below(13) {
        0 | 1 => input[at] ^= 1 << random.below(8),
        2 => input[at] = random.next() as u8,
        3 => input[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'0', b'"', b'\n', b' ']),
        4 | 5 => overwrite(input, at, &number(random)),
        6 => {
            input.drain(at..end);
        }
        7 => {
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        8 => {
            let word = random.pick(WORDS).as_bytes().to_vec();
            input.splice(at..at, word);
        }
        9 => {
            let word = random.pick(WORDS).as_bytes().to_vec();
            overwrite(input, at, &word);
        }
        10 => digits(random, input, at),
        11 if !other.is_empty() => {
            let from = random.below(other.len());
            let piece = &other[from..(from + 1 + random.below(MOST_PIECE)).min(other.len())];
            match random.once_in(2) {
                true => overwrite(input, at, piece),
                false => drop(input.splice(at..end, piece.iter().copied())),
            }
        }
        _ if random.once_in(6) => input.truncate(at),
        _ => {
            let from = random.below(input.len());
            let piece = input[from..(from + end - at).min(input.len())].to_vec();
            overwrite(input, at, &piece);
        }
    }
}

/// Anywhere; often near the start or the end, where headers and footers are.
fn place(random: &mut Random, length: usize) -> usize {
    let near = random.below(length.min(96));
    match random.below(4) {
        0 => near,
        1 => length - 1 - near,
        _ => random.below(length),
    }
}

/// A number of one to eight bytes, in either order.
fn number(random: &mut Random) -> Vec<u8> {
    let width = *random.pick(&[1, 2, 4, 8]);
    let value = match random.once_in(4) {
        true => random.next() >> random.below(64),
        false => *random.pick(NUMBERS),
    };
    let mut bytes = value.to_le_bytes()[..width].to_vec();
    if random.once_in(3) {
        bytes.reverse();
    }
    bytes
}

fn overwrite(input: &mut [u8], at: usize, piece: &[u8]) {
    for (byte, new) in input[at..].iter_mut().zip(piece) {
        *byte = *new;
    }
}

/// Puts another number in the place of the next one that is written in digits.
fn digits(random: &mut Random, input: &mut Vec<u8>, at: usize) {
    let Some(start) = (at..input.len()).find(|place| input[*place].is_ascii_digit()) else { return };
    let end = (start..input.len()).find(|place| !input[*place].is_ascii_digit()).unwrap_or(input.len());
    let text = match random.below(3) {
        0 => random.pick(NUMBERS).to_string(),
        1 => format!("{}e{}", random.below(10), random.below(700) as i64 - 350),
        _ => format!("-{}", random.pick(NUMBERS)),
    };
    input.splice(start..end, text.into_bytes());
}
