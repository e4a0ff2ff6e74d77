//! Small readers of words, quotes and code, shared by the rules.

use super::clause::{Quoted, starts_with};

/// The rest after any of these beginnings, which must end with a word.
pub(super) fn after<'a>(text: &'a str, starts: &[&str]) -> Option<&'a str> {
    let rests = starts.iter().filter(|start| starts_with(text, start)).map(|start| &text[start.len()..]);
    rests.filter(|rest| ends_word(rest)).min_by_key(|rest| rest.len()).map(str::trim_start)
}

/// A dot ends a word only at the end of a sentence: `a` is no word of `a.txt`.
fn ends_word(rest: &str) -> bool {
    let mut characters = rest.chars();
    match characters.next() {
        Some('.' | '!' | '?') => characters.next().is_none_or(char::is_whitespace),
        Some(character) => character.is_whitespace() || ":,`\"'{".contains(character),
        None => true,
    }
}

/// Without the mark that ends it.
pub(super) fn sentence(text: &str) -> &str {
    text.trim().trim_end_matches(['.', '!', '?', ',', ';', ':'])
}

pub(super) fn looks_like_path(word: &str) -> bool {
    let word = sentence(word);
    word.contains('/') || word.find('.').is_some_and(|dot| dot + 1 < word.len())
}

/// A word, or what stands in quotes, and the rest.
pub(super) fn argument(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next()?;
    if matches!(quote, '`' | '"' | '\'')
        && let Some(end) = text[1..].find(quote)
    {
        return Some((text[1..=end].to_owned(), text[end + 2..].trim()));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    Some((text[..end].to_owned(), text[end..].trim()))
}

pub(super) fn first_path(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some((word, after)) = argument(rest) {
        if looks_like_path(&word) {
            return Some(sentence(&word).to_owned());
        }
        rest = after;
    }
    None
}

pub(super) fn first_code(text: &str) -> Option<String> {
    let quoted = Quoted::read(text);
    let (start, end) = *quoted.parts().iter().find(|(start, _)| text[*start..].starts_with('`'))?;
    whole_code(&text[start..end])
}

/// The inside of text that is all code, in backticks or a fence.
pub(super) fn whole_code(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) {
        // The first line may name the language.
        let (language, code) = inner.split_once('\n')?;
        let is_language = language.chars().all(|c| c.is_alphanumeric() || "+-_".contains(c));
        let code = if is_language { code } else { inner };
        return Some(code.trim_end_matches('\n').to_owned()).filter(|code| !code.is_empty());
    }
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.is_empty() && !inner.contains('`')).then(|| inner.to_owned())
}

/// Without the quotes around it. In double quotes, `\n` is a line break.
pub(super) fn unquoted(text: &str) -> String {
    let text = text.trim();
    if let Some(code) = whole_code(text) {
        return code;
    }
    if Quoted::read(text).parts().first() == Some(&(0, text.len())) && text.starts_with('"') {
        let inner = &text[1..text.len() - 1];
        return serde_json::from_str(text).unwrap_or_else(|_| inner.to_owned());
    }
    let single = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    single.filter(|inner| !inner.contains('\'')).unwrap_or(text).to_owned()
}

pub(super) fn split_first<'a>(text: &'a str, joint: &str) -> Option<(&'a str, &'a str)> {
    let at = places(text, joint).next()?;
    Some((text[..at].trim(), text[at + joint.len()..].trim()))
}

pub(super) fn split_last<'a>(text: &'a str, joint: &str) -> Option<(&'a str, &'a str)> {
    let at = places(text, joint).last()?;
    Some((text[..at].trim(), text[at + joint.len()..].trim()))
}

/// Where the word stands outside of quotes.
fn places(text: &str, joint: &str) -> impl Iterator<Item = usize> {
    let quoted = Quoted::read(text);
    let found = text.char_indices().map(|(at, _)| at).filter(|at| starts_with(&text[*at..], joint));
    found.filter(move |at| quoted.end_of_part(*at).is_none())
}
