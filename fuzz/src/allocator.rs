//! Memory counted, and limited while an execution lasts.
//!
//! What goes past the limit is refused as a full machine would refuse it: code that asks beforehand (`try_reserve`) goes on, all else
//! aborts. Both count as failures. Memory that C libraries take (zstd) is not seen here; the limit of addresses holds for it.

#![allow(unsafe_code, reason = "an allocator cannot be written without; it only counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are taken.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Bytes that may be taken.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The largest number of bytes taken since the execution began.
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// The largest allocation refused, 0 for none.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every pointer comes from `System` and goes back to it with the layout it was asked for with, since both methods
// pass their arguments on as they are; what they do besides is arithmetic on atomics, which neither allocates nor unwinds.
// Null for an allocation that is refused is what the trait asks for, and a block that `realloc` refuses to change stays as it
// was. `alloc_zeroed` is the trait's own: `alloc`, and zeros where that is not null.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise about `layout` is passed on.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() {
            LIVE.fetch_sub(layout.size(), Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `System` with this layout, by the caller's promise.
        unsafe { System.dealloc(block, layout) };
        LIVE.fetch_sub(layout.size(), Relaxed);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !take(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as in `dealloc`; that `new_size` is not 0 and does not overflow is the caller's promise too.
        let moved = unsafe { System.realloc(block, layout, new_size) };
        LIVE.fetch_sub(if moved.is_null() { new_size } else { layout.size() }, Relaxed);
        moved
    }
}

/// Counts an allocation, unless it is beyond the limit.
fn take(n_bytes: usize) -> bool {
    let live = LIVE.fetch_add(n_bytes, Relaxed).saturating_add(n_bytes);
    if live > LIMIT.load(Relaxed) {
        LIVE.fetch_sub(n_bytes, Relaxed);
        REFUSED.fetch_max(n_bytes, Relaxed);
        return false;
    }
    if live > PEAK.load(Relaxed) {
        PEAK.fetch_max(live, Relaxed);
    }
    true
}

/// What an execution took.
pub(crate) struct Taken {
    /// The most bytes at once, beyond those taken before.
    pub(crate) peak: usize,
    /// The largest allocation refused, if any was.
    pub(crate) refused: Option<usize>,
}

/// Runs `work` with so many bytes to take.
pub(crate) fn limited<T>(n_bytes: usize, work: impl FnOnce() -> T) -> (T, Taken) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    REFUSED.store(0, Relaxed);
    LIMIT.store(before.saturating_add(n_bytes), Relaxed);
    let result = work();
    LIMIT.store(usize::MAX, Relaxed);
    let refused = Some(REFUSED.load(Relaxed)).filter(|refused| *refused > 0);
    (result, Taken { peak: PEAK.load(Relaxed).saturating_sub(before), refused })
}
