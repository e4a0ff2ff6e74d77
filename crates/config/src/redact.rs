//! Removes credentials from text that leaves this machine or is passed on.

use crate::mask::{is_secret, without_secrets};

const HIDDEN: &str = "***";
/// Prefixes of the tokens of well-known services.
const PREFIXES: [&str; 18] = [
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "pypi-",
    "hf_",
    "eyJ",
];
/// Shorter words with such a prefix are not tokens.
const SHORTEST_TOKEN: usize = 16;
const KEY_BEGIN: &str = "-----BEGIN";
const KEY_END: &str = "-----END";

/// Removes credentials from a text, line by line: passwords in addresses, tokens of known services, values after names
/// such as `api_key` or after `Bearer`, and private keys.
#[derive(Debug, Default)]
pub struct CredentialFilter {
    is_in_key: bool,
}

impl CredentialFilter {
    pub fn line(&mut self, line: &str) -> String {
        let (line, rest) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let mut shown = words_hidden(&self.keys_hidden(line));
        shown.push_str(rest);
        shown
    }

    /// A private key may span several lines, or be inside one.
    fn keys_hidden(&mut self, line: &str) -> String {
        let mut shown = String::with_capacity(line.len());
        let mut rest = line;
        loop {
            if self.is_in_key {
                let Some(end) = rest.find(KEY_END) else {
                    shown.push_str(HIDDEN);
                    return shown;
                };
                shown.push_str(HIDDEN);
                rest = &rest[end..];
                self.is_in_key = false;
            }
            // A certificate may come first in the same line.
            let begin = rest.match_indices(KEY_BEGIN).map(|(at, _)| at).find(|at| {
                let heading = rest[*at + KEY_BEGIN.len()..].split("-----").next().unwrap_or_default();
                heading.contains("PRIVATE KEY")
            });
            let Some(begin) = begin else {
                shown.push_str(rest);
                return shown;
            };
            shown.push_str(&rest[..begin + KEY_BEGIN.len()]);
            rest = &rest[begin + KEY_BEGIN.len()..];
            self.is_in_key = true;
        }
    }
}

fn words_hidden(line: &str) -> String {
    let line = without_secrets(line);
    let mut shown = String::with_capacity(line.len());
    let mut rest = &*line;
    while let Some(begin) = rest.find(is_word) {
        let (before, after) = rest.split_at(begin);
        let (word, after) = after.split_at(after.find(|c: char| !is_word(c)).unwrap_or(after.len()));
        shown.push_str(before);
        shown.push_str(if is_token(word) { HIDDEN } else { word });
        rest = after;
        if let Some((between, value, after)) = value_of(word, rest) {
            shown.push_str(between);
            shown.push_str(if is_harmless(word, value) { value } else { HIDDEN });
            rest = after;
        }
    }
    shown.push_str(rest);
    shown
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn is_token(word: &str) -> bool {
    word.len() >= SHORTEST_TOKEN && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// The text between a name and its value, the value, and the rest. `None` if this is no name of a secret.
fn value_of<'a>(word: &str, rest: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
    let is_scheme = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
    let is_name = is_secret(word);
    if !is_scheme && !is_name {
        return None;
    }
    let begin = rest.find(|c: char| !matches!(c, ' ' | '\t' | '"' | '\'' | '\\' | ':' | '='))?;
    let (between, after) = rest.split_at(begin);
    let is_followed = is_scheme && between.starts_with(' ');
    if !is_followed && !between.contains([':', '=']) {
        return None;
    }
    let (value, after) = after.split_at(value_len(between, after));
    // `Authorization: Bearer …`: the secret is the next word.
    let is_next_scheme = value.eq_ignore_ascii_case("bearer") || value.eq_ignore_ascii_case("basic");
    (!value.is_empty() && !is_next_scheme).then_some((between, value, after))
}

/// A quoted value ends with its quote, including spaces and commas.
fn value_len(before: &str, text: &str) -> usize {
    let Some(quote) = before.chars().next_back().filter(|last| matches!(last, '"' | '\'')) else {
        return text.find(|c: char| c.is_whitespace() || "\"'\\,;&}])".contains(c)).unwrap_or(text.len());
    };
    // Inside a quoted text the quotes themselves are escaped.
    if before.strip_suffix(quote).is_some_and(|before| before.ends_with('\\')) {
        return text.find(&format!("\\{quote}")).unwrap_or(text.len());
    }
    let mut is_escaped = false;
    let is_end = |c: char| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    };
    text.find(is_end).unwrap_or(text.len())
}

/// An empty value is not secret, and neither are token counts.
fn is_harmless(name: &str, value: &str) -> bool {
    let is_count = || name.to_ascii_lowercase().contains("token") && value.parse::<f64>().is_ok();
    matches!(value, "null" | "true" | "false" | "{" | "[") || is_count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out_and_the_rest_stays() {
        for (text, expected) in [
            ("plain words, a/path.rs:12 and x=1", "plain words, a/path.rs:12 and x=1"),
            ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
            ("api_key=hunter2&x=1", "api_key=***&x=1"),
            (r#"{"apiKey":"hunter2","n":1}"#, r#"{"apiKey":"***","n":1}"#),
            (r#"{\"password\": \"a b\"}"#, r#"{\"password\": \"***\"}"#),
            (r#"{"passphrase": "a, b c", "n": 1}"#, r#"{"passphrase": "***", "n": 1}"#),
            (r#"{"secret": "a\"b\\", "n": 1}"#, r#"{"secret": "***", "n": 1}"#),
            ("password=12345678 n=2", "password=*** n=2"),
            ("with sk-proj-0123456789abcdef inside", "with *** inside"),
            ("ghp_0123456789abcdefghij!", "***!"),
            ("skip sk-short", "skip sk-short"),
            (r#""total_tokens":123,"x""#, r#""total_tokens":123,"x""#),
            ("https://me:pw@host/x?token=1", "https://***@host/x?token=***"),
        ] {
            assert_eq!(CredentialFilter::default().line(text), expected, "{text}");
        }
    }

    #[test]
    fn a_private_key_of_several_lines_is_taken_out() {
        let mut filter = CredentialFilter::default();
        let lines =
            ["a\n", "-----BEGIN RSA PRIVATE KEY-----\n", "MIIB\n", "-----END RSA PRIVATE KEY-----\n", "b\n"];
        let shown: String = lines.iter().map(|line| filter.line(line)).collect();
        assert!(!shown.contains("MIIB") && shown.starts_with("a\n") && shown.ends_with("b\n"), "{shown}");
        for before in ["", r"-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n"] {
            let line = format!(r"{before}-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY----- after");
            let shown = CredentialFilter::default().line(&line);
            assert!(!shown.contains("MIIB") && shown.ends_with("after"), "{shown}");
        }
    }
}
