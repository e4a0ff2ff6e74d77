//! The picture of a session in the README, drawn from a screen of docs/command-line.md that a test has captured.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::workspace;

const PAGE: &str = "docs/command-line.md";
/// Two screens, one after the other: a session until its patch is allowed, and the question that follows.
const FIRST: &str = "patch";
const THEN: &str = "command";
/// Columns of the terminal that the screens were captured in.
const COLUMNS: usize = 80;
const CHARACTER: f64 = 8.4;
const LINE: f64 = 19.0;
const MARGIN: f64 = 18.0;
/// The bar above the text.
const BAR: f64 = 30.0;

pub(crate) fn svg() -> Result<String> {
    let page = workspace::read_text(PAGE)?;
    Ok(draw(&session(&screen(&page, FIRST)?, &screen(&page, THEN)?)))
}

/// The lines of one captured screen.
fn screen<'a>(page: &'a str, name: &str) -> Result<Vec<&'a str>> {
    let missing = || format!("{PAGE} has no screen {name}");
    let (_, rest) = page.split_once(&format!("<!-- screen: {name} -->\n```text\n")).with_context(missing)?;
    let (block, _) = rest.split_once("```\n<!-- end of screen -->").with_context(missing)?;
    Ok(block.lines().collect())
}

/// The first screen up to the line where the second goes on, without the blank lines around.
fn session<'a>(first: &[&'a str], then: &[&'a str]) -> Vec<&'a str> {
    let beginning = then.iter().find(|line| !line.is_empty()).copied();
    let shared = first.iter().position(|line| Some(*line) == beginning).unwrap_or(first.len());
    let lines = first[..shared].iter().copied().skip_while(|line| line.is_empty());
    let rest = then.iter().copied().skip_while(|line| line.is_empty());
    let mut lines: Vec<&str> = lines.chain(rest).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

#[expect(clippy::cast_precision_loss, reason = "a screen has few lines and columns")]
fn draw(lines: &[&str]) -> String {
    let width = COLUMNS as f64 * CHARACTER + 2.0 * MARGIN;
    let height = BAR + lines.len() as f64 * LINE + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"A session of oarlock in a terminal\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    for (at, color) in ["#e0645c", "#e0b34c", "#5fb35f"].into_iter().enumerate() {
        let x = MARGIN + 4.0 + 18.0 * at as f64;
        let _ = writeln!(svg, "<circle cx=\"{x:.0}\" cy=\"18\" r=\"5.5\" fill=\"{color}\"/>");
    }
    svg.push_str(
        "<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\">\n",
    );
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let words = line.trim_start();
        // Browsers drop spaces at the beginning.
        let x = MARGIN + CHARACTER * (line.len() - words.len()) as f64;
        let y = BAR + MARGIN + (at as f64 + 0.5) * LINE;
        let (fill, words) = (color(line), escaped(words));
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{fill}\">{words}</text>");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// As the session colours it, by what the line begins with.
fn color(line: &str) -> &'static str {
    let words = line.trim_start();
    let is_indented = words.len() < line.len();
    match words.chars().next() {
        Some('✓') => "#7cc77c",
        Some('✗') => "#e0645c",
        Some('›') => "#8ab4f8",
        Some('?') => "#e8c268",
        Some('+') if is_indented => "#7cc77c",
        Some('-') if is_indented => "#e58a84",
        Some('@') => "#6fb7c9",
        _ if words.contains(" · ") => "#8a909c",
        _ => "#d7dae0",
    }
}

fn escaped(line: &str) -> String {
    line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "<!-- screen: a -->\n```text\n\none\n✓ two\n```\n<!-- end of screen -->\n";

    #[test]
    fn a_screen_is_found_by_its_name() {
        assert_eq!(screen(TEXT, "a").expect("there"), ["", "one", "✓ two"]);
        assert_eq!(
            screen(TEXT, "b").expect_err("not there").to_string(),
            "docs/command-line.md has no screen b"
        );
    }

    #[test]
    fn the_second_screen_goes_on_where_the_first_has_its_first_line() {
        let lines = session(&["", "one", "two", "three"], &["", "two", "four", ""]);
        assert_eq!(lines, ["one", "two", "four"]);
    }

    #[test]
    fn a_line_keeps_its_signs_and_has_its_color() {
        let svg = draw(&["", "  +a < b"]);
        assert!(svg.contains("<text x=\"34.8\" y=\"76.5\" fill=\"#7cc77c\">+a &lt; b</text>"), "{svg}");
        assert_eq!(svg.matches("<text").count(), 1);
    }
}
