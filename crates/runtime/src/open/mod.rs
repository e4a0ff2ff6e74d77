//! Opening a thread: new, resumed, forked, with a history from the host, or as a child agent. Each way is converted
//! into an `OpenRequest`, which `open` carries out.

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
