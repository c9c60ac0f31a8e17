//! What one piece of work has fitted and another may ask for again, under a fingerprint of all that decides it.
//!
//! Where many learners are trained on the same rows, several start from the same first stage: the second to ask is given
//! the very bits that it would have computed.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Results by fingerprint. It grows with every result that is kept, so it should live as long as the rows do.
#[derive(Debug, Default)]
pub struct Memory {
    kept: Mutex<Vec<(Fingerprint, Arc<dyn Any + Send + Sync>)>>,
}

impl Memory {
    /// The result of this fingerprint, if it is of this type and was kept.
    pub(crate) fn recall<T: Any + Send + Sync>(&self, fingerprint: Fingerprint) -> Option<Arc<T>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, value) = kept.iter().find(|(own, value)| *own == fingerprint && value.is::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// Keeps a result.
    pub(crate) fn keep<T: Any + Send + Sync>(&self, fingerprint: Fingerprint, value: Arc<T>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push((fingerprint, value));
    }
}

/// 128 bits of everything that decides a result, in the order in which it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint([u64; 2]);

impl Fingerprint {
    pub(crate) fn new() -> Self {
        Self([0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03])
    }

    /// Adds numbers, and how many they are.
    pub(crate) fn add<T: bytemuck::NoUninit>(&mut self, values: &[T]) {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }

    /// Adds numbers where there are any; nothing is told apart from no numbers.
    pub(crate) fn add_optional<T: bytemuck::NoUninit>(&mut self, values: Option<&[T]>) {
        self.word(u64::from(values.is_some()));
        self.add(values.unwrap_or_default());
    }

    /// Two chains of different rules: each step is one-to-one in the word and in what was before.
    fn word(&mut self, word: u64) {
        let [a, b] = self.0;
        let a = (a ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
        let b = b.rotate_left(31).wrapping_add(word).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        self.0 = [a ^ (a >> 32), b ^ (b >> 29)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_by_all_that_was_added() {
        let of = |parts: &[Option<&[f32]>]| {
            let mut fingerprint = Fingerprint::new();
            parts.iter().for_each(|part| fingerprint.add_optional(*part));
            fingerprint
        };
        let all = [
            of(&[Some(&[1.0, 2.0, 3.0]), None]),
            of(&[None, Some(&[1.0, 2.0, 3.0])]),
            of(&[Some(&[1.0, 2.0]), Some(&[3.0])]),
            of(&[Some(&[1.0, 3.0, 2.0]), None]),
            of(&[Some(&[1.0, 2.0, 3.0]), Some(&[])]),
            of(&[Some(&[1.0, 2.0, -3.0]), None]),
        ];
        let memory = Memory::default();
        for (number, fingerprint) in all.iter().enumerate() {
            assert!(memory.recall::<usize>(*fingerprint).is_none(), "{number} is taken for another");
            memory.keep(*fingerprint, Arc::new(number));
        }
        for (number, fingerprint) in all.iter().enumerate() {
            assert_eq!(memory.recall::<usize>(*fingerprint).as_deref(), Some(&number));
            assert!(memory.recall::<u8>(*fingerprint).is_none());
        }
    }
}
