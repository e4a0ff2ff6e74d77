//! How work looks to a person: what is said to whom, in which colour. Knows neither threads nor files.

mod items;
mod paint;
mod safe;
mod view;

pub(crate) use items::describe;
pub(crate) use paint::{Color, Paint, TextStyle};
pub(crate) use safe::{SafeStderr, clean, clean_line, escaped_json, screened};
pub(crate) use view::{Heading, View};
