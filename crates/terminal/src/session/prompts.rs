//! Prompts that the user wrote into files: `/prompts:NAME ARGUMENTS` sends the text of one, with its placeholders filled.

use std::collections::BTreeMap;

use super::TerminalState;
use super::popup::{PickAction, PickEntry};

/// The beginning of every command that sends a prompt.
pub(super) const PREFIX: &str = "/prompts:";
/// Stands for all arguments.
const ALL: &str = "ARGUMENTS";

/// A text with placeholders: `$1` to `$9`, `$ARGUMENTS`, or `$NAMES` in capital letters. `$$` is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    pub name: String,
    /// Its description, or how to call it.
    pub about: String,
    pub body: String,
}

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
enum TemplatePiece<'a> {
    Text(&'a str),
    /// From 0 on.
    Position(usize),
    All,
    Named(&'a str),
}

impl PromptTemplate {
    /// The text to send, or what is wrong with the arguments.
    fn fill(&self, arguments: &str) -> Result<String, String> {
        let pieces = pieces(&self.body);
        let words = words(arguments).ok_or_else(|| self.problem("a quotation mark is not closed"))?;
        let names = pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Named(name) => Some(*name),
            _ => None,
        });
        let names: Vec<&str> = names.collect();
        let named = match names.is_empty() {
            true => BTreeMap::new(),
            false => self.named(&names, &words)?,
        };
        let filled = pieces.iter().map(|piece| match piece {
            TemplatePiece::Text(text) => (*text).to_owned(),
            TemplatePiece::Position(at) => words.get(*at).cloned().unwrap_or_default(),
            TemplatePiece::All => words.join(" "),
            TemplatePiece::Named(name) => {
                named.get(name).map(|value| (*value).to_owned()).unwrap_or_default()
            }
        });
        Ok(filled.collect())
    }

    /// The values of named placeholders, all of which are needed.
    fn named<'a>(&self, names: &[&str], words: &'a [String]) -> Result<BTreeMap<&'a str, &'a str>, String> {
        let mut named = BTreeMap::new();
        for word in words {
            let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(self.problem(&format!(
                    "`{word}` is not NAME=value; put a value with spaces into quotation marks"
                )));
            };
            named.insert(name, value);
        }
        let missing: Vec<&str> = names.iter().filter(|name| !named.contains_key(**name)).copied().collect();
        match missing.first() {
            None => Ok(named),
            Some(first) => Err(self.problem(&format!("{first}=value is missing"))),
        }
    }

    fn problem(&self, problem: &str) -> String {
        format!("{PREFIX}{}: {problem}", self.name)
    }
}

impl TerminalState {
    /// Takes `/prompts:NAME ARGUMENTS` for the text of that prompt. `None`: it is reported why there is none.
    pub(super) fn prompt_of(&mut self, line: &str) -> Option<String> {
        let called = line.strip_prefix(PREFIX).unwrap_or(line);
        let (name, arguments) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
        let filled = match self.options.prompts.iter().find(|prompt| prompt.name == name) {
            Some(prompt) => prompt.fill(arguments),
            None => Err(format!(
                "there is no prompt {name}: its text would be prompts/{name}.md in the configuration folder"
            )),
        };
        filled.map_err(|problem| self.trouble(&problem)).ok()
    }

    /// Those whose command begins with what is typed.
    pub(super) fn prompts_for<'a>(&'a self, typed: &'a str) -> impl Iterator<Item = PickEntry> + 'a {
        let entry = |prompt: &PromptTemplate| PickEntry {
            label: format!("{PREFIX}{}", prompt.name),
            detail: prompt.about.clone(),
            action: PickAction::Prompt(prompt.name.clone()),
        };
        self.options.prompts.iter().map(entry).filter(move |entry| entry.label.starts_with(typed))
    }
}

/// A text cut at its placeholders.
fn pieces(body: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let (mut text_from, mut at) = (0, 0);
    while let Some(found) = body[at..].find('$') {
        let sign = at + found;
        let after = &body[sign + 1..];
        let is_letter = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let name = &after[..after.find(|c| !is_letter(c)).unwrap_or(after.len())];
        let (piece, length) = match after.chars().next() {
            Some(digit @ '1'..='9') => (TemplatePiece::Position(usize::from(digit as u8 - b'1')), 1),
            Some('A'..='Z') if name == ALL => (TemplatePiece::All, ALL.len()),
            Some('A'..='Z') => (TemplatePiece::Named(name), name.len()),
            // The second sign begins no placeholder either.
            Some('$') => {
                at = sign + 2;
                continue;
            }
            _ => {
                at = sign + 1;
                continue;
            }
        };
        pieces.push(TemplatePiece::Text(&body[text_from..sign]));
        pieces.push(piece);
        at = sign + 1 + length;
        text_from = at;
    }
    pieces.push(TemplatePiece::Text(&body[text_from..]));
    pieces
}

/// The words as a shell would cut them: quotation marks hold a word together, a backslash takes the next letter as it is.
/// `None`: a quotation mark is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => {
                let next = letters.next()?;
                word.get_or_insert_default().push(next);
            }
            (letter, Some(open)) if letter == open => quote = None,
            (letter, Some(_)) => word.get_or_insert_default().push(letter),
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, None) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::PromptTemplate;

    fn check(body: &str, arguments: &str, expected: Result<&str, &str>) {
        let prompt = PromptTemplate { name: "p".into(), about: String::new(), body: body.into() };
        let filled = prompt.fill(arguments);
        assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{body} with {arguments}");
    }

    #[test]
    fn placeholders_are_filled() {
        check("plain", "and more", Ok("plain"));
        check("$1 and $2.", "a 'b c' d", Ok("a and b c."));
        check("[$9]", "a", Ok("[]"));
        check("look: $ARGUMENTS", "a \"b c\"  d", Ok("look: a b c d"));
        check("$FILE at $LINE_2, $FILE", "LINE_2=7 FILE=\"a b\"", Ok("a b at 7, a b"));
        check("costs $5, $$1, $0, $x, $", "five", Ok("costs , $$1, $0, $x, $"));
        check("$1", "it\\ is \\\"", Ok("it is"));
        // A placeholder in an argument is no placeholder.
        check("$1 $2", "$2 x", Ok("$2 x"));
    }

    #[test]
    fn wrong_arguments_are_explained() {
        check("$1", "'a", Err("/prompts:p: a quotation mark is not closed"));
        check("$FILE", "", Err("/prompts:p: FILE=value is missing"));
        check(
            "$FILE",
            "a.rs",
            Err("/prompts:p: `a.rs` is not NAME=value; put a value with spaces into quotation marks"),
        );
    }
}
