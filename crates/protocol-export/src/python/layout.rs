//! Where Python code breaks its lines: the layout `ruff format` would choose, so that nobody reformats the package.

use serde_json::Value;

/// Also stated in `pyproject.toml`.
pub(super) const WIDTH: usize = 120;

/// A string literal.
pub(super) fn string(text: &str) -> String {
    // JSON's escapes are all Python's too.
    Value::from(text).to_string()
}

/// A docstring, wrapped, with its line end.
pub(super) fn docstring(indent: usize, text: &str) -> String {
    let margin = " ".repeat(indent);
    let text = text.trim().replace('\\', "\\\\").replace("\"\"\"", "'''");
    let gap = if text.ends_with('"') { " " } else { "" };
    let line = format!("{margin}\"\"\"{text}{gap}\"\"\"\n");
    if !text.contains('\n') && fits(line.trim_end()) {
        return line;
    }
    let lines = wrapped(&text, WIDTH - indent - 3);
    let body: Vec<String> = lines
        .iter()
        .map(|line| if line.is_empty() { String::new() } else { format!("{margin}{line}") })
        .collect();
    format!("{margin}\"\"\"{}\n{margin}\"\"\"\n", body.join("\n").trim_start())
}

/// A string that may be longer than a line, as the value of a keyword argument.
pub(super) fn argument(indent: usize, name: &str, text: &str) -> String {
    let margin = " ".repeat(indent);
    let line = format!("{margin}{name}={},", string(text));
    if fits(&line) {
        return line + "\n";
    }
    let piece = |text: &str| format!("{margin}    {}\n", string(text));
    let pieces = if fits(piece(text).trim_end()) {
        piece(text)
    } else {
        // Four more columns of margin, two quotes and the space between two pieces.
        let lines = wrapped(text, WIDTH - indent - 7);
        let (last, others) =
            lines.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
        others.iter().map(|line| piece(&format!("{line} "))).collect::<String>() + &piece(last)
    };
    format!("{margin}{name}=(\n{pieces}{margin}),\n")
}

/// `HEAD[ITEMS]TAIL` with its line end.
pub(super) fn subscript(indent: usize, head: &str, items: &[String], tail: &str) -> String {
    let margin = " ".repeat(indent);
    let items = items.join(", ");
    let line = format!("{margin}{head}[{items}]{tail}\n");
    if fits(line.trim_end()) {
        return line;
    }
    format!("{margin}{head}[\n{margin}    {items}\n{margin}]{tail}\n")
}

/// `NAME: TypeAlias = FORM[ITEMS]`. With several members, the first item is their union.
pub(super) fn alias(name: &str, form: &str, members: &[String], rest: &[&str]) -> String {
    let start = format!("{name}: TypeAlias = {form}[");
    let union = members.join(" | ");
    let items: Vec<&str> = std::iter::once(union.as_str()).chain(rest.iter().copied()).collect();
    let line = format!("{start}{}]\n", items.join(", "));
    if fits(line.trim_end()) {
        return line;
    }
    let first = if fits(&format!("    {union},")) { union } else { members.join("\n    | ") };
    let rest: String = rest.iter().map(|item| format!("    {item},\n")).collect();
    format!("{start}\n    {first},\n{rest}]\n")
}

/// `NAME: TypeAlias = Open[Literal[VALUES]]`.
pub(super) fn literals(name: &str, open: bool, values: &[String]) -> String {
    let (start, end) = if open { ("Open[", "]") } else { ("", "") };
    let literal = format!("Literal[{}]", values.join(", "));
    let line = format!("{name}: TypeAlias = {start}{literal}{end}\n");
    if fits(line.trim_end()) {
        return line;
    }
    let items =
        |margin: &str| -> String { values.iter().map(|value| format!("{margin}    {value},\n")).collect() };
    if !open {
        format!("{name}: TypeAlias = Literal[\n{}]\n", items(""))
    } else if fits(&format!("    {literal}")) {
        format!("{name}: TypeAlias = {start}\n    {literal}\n{end}\n")
    } else {
        format!("{name}: TypeAlias = {start}\n    Literal[\n{}    ]\n{end}\n", items("    "))
    }
}

/// A list of items, each on its own line.
pub(super) fn lines(start: &str, items: impl Iterator<Item = String>, end: &str) -> String {
    let items: String = items.map(|item| format!("    {item},\n")).collect();
    format!("{start}\n{items}{end}\n")
}

fn fits(line: &str) -> bool {
    line.chars().count() <= WIDTH
}

/// The text in lines of at most `width`; line breaks of its own stay.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}
