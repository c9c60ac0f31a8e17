//! Fails in every way that a campaign should find: its first byte says how.

use std::path::Path;

use super::Target;
use crate::execution::Ended;
use crate::random::Random;

pub(crate) fn open(_: &Path) -> Result<Box<dyn Target>, String> {
    Ok(Box::new(Drill))
}

struct Drill;

impl Target for Drill {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        // Every way comes early; hanging takes ten seconds, so it comes only by a file that asks for it.
        vec![random.below(8) as u8, random.next() as u8]
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        match input.first() {
            Some(0) => panic!("a drill"),
            Some(1) => std::process::abort(),
            Some(2) => Ok(allocate(1 << 30)),
            Some(3) => Ok(refused(1 << 30)),
            Some(4) => Ok(recurse(1)),
            Some(5) => Err("a drill".to_owned()),
            Some(6) => Ok(Ended::Refused),
            Some(255) => loop {
                std::hint::spin_loop();
            },
            _ => Ok(Ended::Accepted),
        }
    }
}

/// More than there is: aborts.
fn allocate(n_bytes: usize) -> Ended {
    let bytes = std::hint::black_box(vec![1_u8; n_bytes]);
    if bytes.len() == n_bytes { Ended::Accepted } else { Ended::Refused }
}

/// The same by code that minds.
fn refused(n_bytes: usize) -> Ended {
    let mut bytes: Vec<u8> = Vec::new();
    if bytes.try_reserve(n_bytes).is_ok() { Ended::Accepted } else { Ended::Refused }
}

#[expect(unconditional_recursion, reason = "that is the drill")]
fn recurse(depth: u64) -> Ended {
    let room = std::hint::black_box([depth; 64]);
    match recurse(room[depth as usize % 64] + 1) {
        Ended::Accepted => Ended::Refused,
        Ended::Refused => Ended::Accepted,
    }
}
