//! The signs that stand before lines.

/// In ASCII where the terminal may not have others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Glyphs {
    pub(crate) prompt: &'static str,
    pub(crate) good: &'static str,
    pub(crate) bad: &'static str,
    pub(crate) busy: &'static str,
    pub(crate) ask: &'static str,
    pub(crate) open_step: &'static str,
    pub(crate) between: &'static str,
    pub(crate) cut: &'static str,
    pub(crate) chosen: &'static str,
    pub(crate) output: &'static str,
}

impl Glyphs {
    pub(crate) fn new(is_ascii: bool) -> Self {
        if is_ascii {
            return Self {
                prompt: ">",
                good: "ok",
                bad: "x",
                busy: "*",
                ask: "?",
                open_step: "[ ]",
                between: " | ",
                cut: "...",
                chosen: ">",
                output: "|",
            };
        }
        Self {
            prompt: "›",
            good: "✓",
            bad: "✗",
            busy: "•",
            ask: "?",
            open_step: "☐",
            between: " · ",
            cut: "…",
            chosen: "›",
            output: "│",
        }
    }
}
