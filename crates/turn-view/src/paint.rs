//! Colours.

use std::fmt::Display;

use clap::ValueEnum;

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// Puts colours around text, or leaves them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    is_on: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Careful,
    Busy,
}

impl Paint {
    /// Whether this output gets colours. `NO_COLOR` and a dumb terminal count unless colours are asked for.
    pub fn choose(color: Color, is_terminal: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self::decide(color, is_terminal && !is_set("NO_COLOR") && !is_dumb)
    }

    pub fn decide(color: Color, is_fit: bool) -> Self {
        let is_on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_fit,
        };
        Self { is_on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    pub fn text(self, style: TextStyle, text: impl Display) -> String {
        let code = match style {
            _ if !self.is_on => return text.to_string(),
            TextStyle::Plain => return text.to_string(),
            TextStyle::Strong => "1",
            TextStyle::Faint => "2",
            TextStyle::Good => "32",
            TextStyle::Bad => "31",
            TextStyle::Careful => "33",
            TextStyle::Busy => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Every code that [`Paint`] writes.
pub(crate) const CODES: [&str; 7] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_by_choice_or_by_terminal() {
        let red = |color, is_fit| Paint::decide(color, is_fit).text(TextStyle::Bad, "x");
        assert_eq!(red(Color::Auto, true), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(red(Color::Always, false), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(red(Color::Auto, false), "x");
        assert_eq!(red(Color::Never, true), "x");
    }

    #[test]
    fn every_colour_is_in_the_list() {
        let styles = [
            TextStyle::Strong,
            TextStyle::Faint,
            TextStyle::Good,
            TextStyle::Bad,
            TextStyle::Careful,
            TextStyle::Busy,
        ];
        for style in styles {
            let text = Paint::decide(Color::Always, true).text(style, "x");
            let (code, end) = text.split_once('x').expect("a text");
            assert!(CODES.contains(&code) && CODES.contains(&end), "{text:?}");
        }
    }
}
