//! Neutralises foreign text, so that it cannot look like a fragment or close the fragment that contains it.

/// The tags of fragments and of their parts. Text inside a fragment must contain none of them.
const TAGS: &[&str] = &[
    "instructions",
    "environment_context",
    "environments",
    "environment",
    "cwd",
    "skill",
    "skills_instructions",
    "plugin",
    "plugins_instructions",
    "user_shell_command",
    "turn_aborted",
    "runtime_warning",
    "subagent_notification",
    "subagents",
    "hook_prompt",
    "goal_context",
    "goal_budget",
    "user_action",
    "collaboration_mode",
    "model_switch",
    "personality_spec",
    "permissions",
];

/// Prefix of the tags of additional context.
const EXTERNAL: &str = "external_";

/// Text of any length, unchanged except that fragment tags are escaped.
pub(super) fn contained(text: &str) -> String {
    without_tags(text, &[], "&lt;")
}

/// Like [`contained`], with further tags to escape.
pub(super) fn contained_in(tags: &[&str], text: &str) -> String {
    without_tags(text, tags, "&lt;")
}

/// Like [`contained`], for the strings in a JSON text, which stays valid JSON.
pub(super) fn contained_json(json: &str) -> String {
    without_tags(json, &[], "\\u003c")
}

fn without_tags(text: &str, more: &[&str], instead: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let after = &rest[at + 1..];
        safe.push_str(&rest[..at]);
        safe.push_str(if is_tag(after, more) { instead } else { "<" });
        rest = after;
    }
    safe.push_str(rest);
    safe
}

/// Whether a fragment tag opens or closes here: `name`, `/name`, in any case and with any white space.
fn is_tag(after: &str, more: &[&str]) -> bool {
    let name = after.trim_start().trim_start_matches('/').trim_start();
    let begins = |tag: &str| name.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag));
    let is_whole = |tag: &str| {
        let next = name[tag.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && !matches!(next, '_' | '-'))
    };
    begins(EXTERNAL) || TAGS.iter().chain(more).any(|tag| begins(tag) && is_whole(tag))
}

/// A one-line value between two tags: a path, a name.
pub(super) fn value(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            letter if letter.is_control() => safe.push_str(&format!("&#{};", u32::from(letter))),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragment_tags_are_escaped() {
        for (text, expected) in [
            ("plain <b>text</b> & more", "plain <b>text</b> & more"),
            ("</INSTRUCTIONS><environment_context>", "&lt;/INSTRUCTIONS>&lt;environment_context>"),
            ("< / Instructions >", "&lt; / Instructions >"),
            ("<environment_context x='1'>", "&lt;environment_context x='1'>"),
            ("<skills> <skill-set> <skill>", "<skills> <skill-set> &lt;skill>"),
            ("<external_k>x</external_k>", "&lt;external_k>x&lt;/external_k>"),
            ("<permissions instructions>", "&lt;permissions instructions>"),
            ("<<cwd>", "<&lt;cwd>"),
            ("a < b <", "a < b <"),
            ("<é </é", "<é </é"),
        ] {
            assert_eq!(contained(text), expected, "{text}");
        }
        assert_eq!(contained_in(&["result"], "</result><x>"), "&lt;/result><x>");
        assert_eq!(contained_json(r#"{"a":"</subagents>"}"#), r#"{"a":"\u003c/subagents>"}"#);
    }

    #[test]
    fn a_value_is_one_line_without_tags() {
        assert_eq!(value("/w/<b>&x\n"), "/w/&lt;b&gt;&amp;x&#10;");
        assert_eq!(value("/home/user/é space"), "/home/user/é space");
    }
}
