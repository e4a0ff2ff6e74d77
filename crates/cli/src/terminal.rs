//! How work looks to a person, as the commands use it.

pub(crate) use turn_view::{
    Color, Heading, Paint, TextStyle, View, clean, clean_line, describe, escaped_json, screened,
};
