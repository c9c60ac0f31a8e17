//! How many threads are of use.

/// Threads for each processor that the process may use: more of them wait for each other.
const BY_PROCESSOR: usize = 8;

/// The most threads worth starting here. Results do not depend on how many there are, so that a larger number may be taken for
/// this one.
pub fn most_threads() -> usize {
    BY_PROCESSOR * std::thread::available_parallelism().map_or(1, usize::from)
}
