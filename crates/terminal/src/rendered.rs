//! Markdown for other screens than that of the session.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::markdown::MarkdownStream;
use crate::rows::ScreenRow;

/// Markdown that grows, as lines that fit so many columns. Holds nothing that a terminal obeys but our own colours.
#[derive(Debug)]
pub struct RenderedMarkdown {
    stream: MarkdownStream,
    columns: usize,
    has_colours: bool,
}

impl RenderedMarkdown {
    pub fn new(columns: usize, has_colours: bool) -> Self {
        Self { stream: MarkdownStream::default(), columns, has_colours }
    }

    /// More text; the lines that are whole now.
    pub fn push(&mut self, text: &str) -> Vec<String> {
        let rows = self.stream.push(text);
        self.lines(&rows)
    }

    /// The rest, and nothing more follows.
    pub fn finish(&mut self) -> Vec<String> {
        let rows = self.stream.finish();
        self.lines(&rows)
    }

    /// The line that is being written.
    pub fn unfinished(&self) -> Vec<String> {
        self.stream.unfinished().map(|row| self.lines(&[row])).unwrap_or_default()
    }

    fn lines(&self, rows: &[ScreenRow]) -> Vec<String> {
        let wrapped = rows.iter().flat_map(|row| row.wrapped(self.columns));
        let painted = wrapped.map(|row| {
            let mut line = String::new();
            row.paint(self.has_colours, &mut line);
            line
        });
        painted.collect()
    }
}

/// Text in lines that fit so many columns, broken at spaces alone, so that an id or a command can be copied. What follows
/// from breaking a line is moved in by `hang`.
pub fn wrapped_text(text: &str, columns: usize, hang: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrapped_line(&line.replace('\t', " "), columns.max(1), hang)).collect()
}

fn wrapped_line(line: &str, columns: usize, hang: usize) -> Vec<String> {
    if line.width() <= columns {
        return vec![line.to_owned()];
    }
    let margin = " ".repeat(hang.min(columns / 2));
    let mut lines = Vec::new();
    let mut open = String::new();
    for word in line.split_inclusive(' ') {
        let needed = word.trim_end().width();
        if open.width() + needed > columns && !open.trim().is_empty() {
            lines.push(std::mem::replace(&mut open, margin.clone()));
        }
        if open.width() + needed <= columns {
            open.push_str(word);
            continue;
        }
        // Longer than a line by itself.
        for cluster in word.graphemes(true) {
            if open.width() + cluster.width() > columns && !open.trim().is_empty() {
                lines.push(std::mem::replace(&mut open, margin.clone()));
            }
            open.push_str(cluster);
        }
    }
    lines.push(open);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{RenderedMarkdown, wrapped_text};

    #[test]
    fn texts_are_broken_between_words() {
        let text = "the quick brown\n\nfox jumps over";
        assert_eq!(wrapped_text(text, 9, 2), ["the quick", "  brown", "", "fox jumps", "  over"]);
        assert_eq!(wrapped_text("    -> see ab-cd-ef", 16, 7), ["    -> see", "       ab-cd-ef"]);
        assert_eq!(wrapped_text("x 漢字漢字漢字", 6, 2), ["x", "  漢字", "  漢字", "  漢字"]);
        assert_eq!(wrapped_text("abc", 0, 9), ["a", "b", "c"]);
    }

    #[test]
    fn lines_come_when_they_are_whole_and_fit() {
        let mut text = RenderedMarkdown::new(20, false);
        assert_eq!(text.push("# Head\n\nThe quick **brown** fox"), ["Head"]);
        assert_eq!(text.unfinished(), ["The quick brown fox"]);
        assert_eq!(text.push(" jumps over\n- a\n"), ["", "The quick brown fox", "jumps over", "- a"]);
        assert_eq!(text.push("```\nlet x = 1;\n```\nend\u{1b}[2J"), ["  let x = 1;"]);
        assert_eq!(text.finish(), ["end"]);
    }
}
