//! Room on the heap, taken a lot at a time.

use std::hint::black_box;

/// Small enough that no allocator maps it apart, or gives it back to the system at once.
const ROOM: usize = 60 * 1024;

/// The usual allocator lets the heap of any thread but the first grow page by page, with a call to the system for
/// each. Memory that was asked for and given back at once stays there, for the many small things that follow.
pub(crate) fn make_room() {
    drop(black_box(Vec::<u8>::with_capacity(ROOM)));
}
