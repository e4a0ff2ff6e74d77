//! Grows the heap in one step.

use std::hint::black_box;

/// Small enough that no allocator maps it separately, or returns it to the system at once.
const ROOM: usize = 60 * 1024;

/// The default allocator grows the heaps of secondary threads page by page, with a system call each. Memory that was
/// allocated and freed once stays available for small allocations.
pub(crate) fn make_room() {
    drop(black_box(Vec::<u8>::with_capacity(ROOM)));
}
