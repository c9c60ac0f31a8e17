//! What one piece of work has fitted and another may ask for again, under a digest of all that decides it.
//!
//! Where many learners are trained on the same rows, several start from the same first stage: the second to ask is given
//! the very bits that it would have computed.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Results by digest. It grows with every result that is kept, so it should live as long as the rows do.
#[derive(Debug, Default)]
pub struct Memory {
    kept: Mutex<Vec<(u128, Arc<dyn Any + Send + Sync>)>>,
}

impl Memory {
    /// The result of this digest, if it is of this type and was kept.
    pub(crate) fn recall<T: Any + Send + Sync>(&self, digest: u128) -> Option<Arc<T>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, value) = kept.iter().find(|(own, value)| *own == digest && value.is::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// Keeps a result.
    pub(crate) fn keep<T: Any + Send + Sync>(&self, digest: u128, value: Arc<T>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push((digest, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_by_its_digest_and_type() {
        let memory = Memory::default();
        for digest in [3, 1 << 100] {
            assert!(memory.recall::<u128>(digest).is_none());
            memory.keep(digest, Arc::new(digest));
        }
        for digest in [3, 1 << 100] {
            assert_eq!(memory.recall::<u128>(digest).as_deref(), Some(&digest));
            assert!(memory.recall::<u8>(digest).is_none());
        }
    }
}
