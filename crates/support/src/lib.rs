//! Owns small pieces of asynchronous code that several crates need: a responder that is called once, and blocking work
//! that does not hold up other tasks. Must not know anything of the product.

mod blocking;
mod responder;

pub use blocking::{Panicked, blocking, off_worker};
pub use responder::Responder;
