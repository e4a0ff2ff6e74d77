//! Opening a thread: new, resumed, forked, with a history that a host brings, or as the child of another. Each way is a
//! conversion into one `OpenRequest`, and `open` carries it out.

pub(crate) mod checks;
pub(crate) mod close;
pub(crate) mod config_request;
pub(crate) mod copy;
pub(crate) mod import;
pub(crate) mod memories;
pub(crate) mod opened;
pub(crate) mod pipeline;
pub(crate) mod request;
pub(crate) mod resume;

pub(crate) use pipeline::open;
pub(crate) use request::OpenRequest;
