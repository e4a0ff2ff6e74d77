//! How tools read files and format them for the model.

pub(crate) mod access;
pub(crate) mod lines;
pub(crate) mod look;
pub(crate) mod shown;
