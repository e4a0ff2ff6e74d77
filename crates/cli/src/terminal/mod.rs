//! How work looks to a person: what is said to whom, in which colour. Knows neither threads nor files.

mod items;
mod paint;
mod view;

pub(crate) use items::describe;
pub(crate) use paint::{Color, Paint, Style, clean};
pub(crate) use view::{Heading, View};
