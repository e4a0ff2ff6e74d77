//! Images that a text names by their paths.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::TerminalState;

/// File name endings that are taken for an image.
const ENDINGS: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp"];
/// Characters that may stand before a name, and behind it.
const BEFORE: &[char] = &['(', ',', '[', '<'];
const BEHIND: &[char] = &['"', '\'', '`', ',', ')', ']', '>', '.', ';', ':', '!', '?'];

impl TerminalState {
    /// The input of a turn or of a steer: images before the text. A server elsewhere has files of its own, so it gets the
    /// images themselves.
    pub(super) fn input_of(&mut self, said: &str) -> Value {
        let mut paths = std::mem::take(&mut self.options.images);
        paths.extend(self.images_in(said));
        let mut parts: Vec<Value> = Vec::new();
        for path in paths {
            if self.options.remote.is_none() {
                parts.push(json!({ "type": "localImage", "path": path.to_string_lossy() }));
                continue;
            }
            match (self.options.image_url)(&path) {
                Ok(url) => parts.push(json!({ "type": "image", "url": url })),
                Err(why) => self.trouble(&format!("{} is not sent: {why}", path.display())),
            }
        }
        parts.push(json!({ "type": "text", "text": said, "text_elements": [] }));
        Value::Array(parts)
    }

    /// The images that are named and are there.
    fn images_in(&self, text: &str) -> Vec<PathBuf> {
        // Who types is here: names without a folder are of the user's, not of one on a server elsewhere.
        let folder = match self.options.remote {
            Some(_) => self.options.folder.clone(),
            None => self.folder(),
        };
        let whole = |name: String| match (name.strip_prefix("~/"), &self.options.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => Path::new(&folder).join(name),
        };
        let is_there = |path: &PathBuf| (self.options.is_file)(path);
        image_names(text).into_iter().map(whole).filter(is_there).collect()
    }
}

/// The words that end like an image. Quotation marks and backslashes hold a name with spaces together, as in a shell.
fn image_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() || BEFORE.contains(&first) {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        // An apostrophe begins no name: only what ends like an image counts.
        let quoted = if ['"', '\'', '`'].contains(&first) { rest[1..].split_once(first) } else { None };
        if let Some((inside, after)) = quoted.filter(|(inside, _)| is_image(inside)) {
            names.push(inside.to_owned());
            rest = after;
            continue;
        }
        let (word, length) = word(rest);
        let word = word.trim_start_matches(['"', '\'', '`']).trim_end_matches(BEHIND);
        if is_image(word) {
            names.push(word.to_owned());
        }
        rest = &rest[length..];
    }
    names
}

/// The text up to white space that no backslash stands before, and how long it is with its backslashes.
fn word(text: &str) -> (String, usize) {
    let mut word = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => word.extend(letters.next().map(|(_, next)| next)),
            letter if letter.is_whitespace() => return (word, at),
            letter => word.push(letter),
        }
    }
    (word, text.len())
}

fn is_image(name: &str) -> bool {
    let lower = name.to_lowercase();
    !name.contains('\n') && ENDINGS.iter().any(|ending| lower.ends_with(ending) && lower.len() > ending.len())
}

#[cfg(test)]
mod tests {
    use super::image_names;

    #[test]
    fn names_are_found_as_people_write_them() {
        let cases: [(&str, &[&str]); 8] = [
            ("look at a.png, please", &["a.png"]),
            ("(see ~/b.JPG)", &["~/b.JPG"]),
            ("\"my shots/c d.png\" and 'e f.gif'.", &["my shots/c d.png", "e f.gif"]),
            ("my\\ shots/c\\ d.webp", &["my shots/c d.webp"]),
            ("don't look at g.png, it isn't there", &["g.png"]),
            ("what is in h.jpeg?", &["h.jpeg"]),
            ("'open i.png", &["i.png"]),
            (".png png a.pngx", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(image_names(text), expected, "{text}");
        }
    }
}
