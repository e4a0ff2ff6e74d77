//! Adapts texts for another agent to this one.

/// Replacements in the texts, longest first, case-insensitive.
const WORDS: &[(&str, &str)] = &[
    ("claude.md", "AGENTS.md"),
    ("claude code", "Oarlock"),
    ("claude-code", "Oarlock"),
    ("claude_code", "Oarlock"),
    ("claudecode", "Oarlock"),
    ("claude", "Oarlock"),
];

/// Replaces the product's and the file's names by ours, if they are separate words. Parts of a path, an address or a
/// longer name stay, because they would no longer be valid.
pub(super) fn rewritten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let found = WORDS.iter().find(|(word, _)| begins_with(rest, word));
        match found {
            Some((word, ours)) if may_end(out.chars().next_back()) && may_begin(&rest[word.len()..]) => {
                out.push_str(ours);
                rest = &rest[word.len()..];
            }
            _ => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn begins_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// Whether a word can follow this character.
fn may_end(before: Option<char>) -> bool {
    before.is_none_or(|c| !c.is_alphanumeric() && !"._-/\\@$".contains(c))
}

/// Whether this can follow a word.
fn may_begin(after: &str) -> bool {
    let mut chars = after.chars();
    match chars.next() {
        None => true,
        // The end of a sentence, and not the dot in a name.
        Some('.') => chars.next().is_none_or(|c| !c.is_alphanumeric()),
        Some(c) => !c.is_alphanumeric() && !"_-/\\@".contains(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_rewritten_and_parts_of_words_are_not() {
        for (text, expected) in [
            ("", ""),
            ("Claude reads CLAUDE.md.", "Oarlock reads AGENTS.md."),
            ("Ask claude code, or Claude-Code!", "Ask Oarlock, or Oarlock!"),
            ("(Claude's) **Claude**", "(Oarlock's) **Oarlock**"),
            ("claude", "Oarlock"),
            (
                "See .claude/skills and claude.ai, claude-3, my_claude",
                "See .claude/skills and claude.ai, claude-3, my_claude",
            ),
            ("docs/CLAUDE.md claudette Éclaude", "docs/CLAUDE.md claudette Éclaude"),
            ("CLAUDE.mdx", "CLAUDE.mdx"),
            ("né é claude é", "né é Oarlock é"),
        ] {
            assert_eq!(rewritten(text), expected, "{text}");
        }
    }
}
