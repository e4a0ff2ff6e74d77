//! Custom prompts: the user's texts in `<home>/prompts`, one file each, which clients offer by name.

use std::fs;
use std::path::Path;

use super::front_matter::{MAX_DESCRIPTION, split};
use super::one_line;
use super::yaml::{self, Yaml};

/// In the configuration folder.
const FOLDER: &str = "prompts";
const MOST_PROMPTS: usize = 200;
const MAX_PROMPT_BYTES: u64 = 256 << 10;

/// One prompt, from its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomPrompt {
    /// The name of its file, without the extension.
    pub name: String,
    pub description: Option<String>,
    /// The expected arguments, in the user's words: `FILE [BRANCH]`.
    pub argument_hint: Option<String>,
    pub body: String,
}

/// The prompts of a configuration folder, by name. Ignores subfolders, and files that are too long, no text, or have a
/// space in their name.
pub fn custom_prompts(home: &Path) -> Vec<CustomPrompt> {
    let Ok(entries) = fs::read_dir(home.join(FOLDER)) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths.iter().filter_map(|path| read(path)).take(MOST_PROMPTS).collect()
}

fn read(path: &Path) -> Option<CustomPrompt> {
    path.extension().filter(|ending| *ending == "md")?;
    let name = path.file_stem()?.to_str()?;
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    if name.is_empty() || !name.chars().all(is_plain) {
        return None;
    }
    let text = String::from_utf8(support::read_plain(path, MAX_PROMPT_BYTES).ok()?).ok()?;
    let (head, body) = match split(&text) {
        Some((head, body)) => (yaml::read(head).unwrap_or(Yaml::Null), body),
        None => (Yaml::Null, text.as_str()),
    };
    let line = |key: &str| {
        let line = one_line(head.get(key)?.as_str()?);
        Some(line.chars().take(MAX_DESCRIPTION).collect()).filter(|line: &String| !line.is_empty())
    };
    Some(CustomPrompt {
        name: name.to_owned(),
        description: line("description"),
        argument_hint: line("argument-hint").or_else(|| line("argument_hint")),
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn prompt(name: &str, description: Option<&str>, hint: Option<&str>, body: &str) -> CustomPrompt {
        CustomPrompt {
            name: name.to_owned(),
            description: description.map(str::to_owned),
            argument_hint: hint.map(str::to_owned),
            body: body.to_owned(),
        }
    }

    #[test]
    fn texts_are_read_by_name_with_what_their_heads_say() {
        let home = tempfile::tempdir().expect("a folder");
        assert_eq!(custom_prompts(home.path()), []);
        let folder = home.path().join(FOLDER);
        fs::create_dir_all(folder.join("folder.md")).expect("made");
        for (name, text) in [
            ("review.md", "---\ndescription: \"Look at\\na file\"\nargument-hint: FILE\n---\nLook at $1.\n"),
            ("also.md", "---\nargument_hint: X\n---\r\nBody"),
            ("plain.md", "Just text.\n---\n"),
            ("open.md", "---\ndescription: never closed\n"),
            ("broken.md", "---\ndescription: [\n---\nBody"),
            ("two words.md", "no"),
            ("note.txt", "no"),
            ("folder.md/inside.md", "no"),
        ] {
            fs::write(folder.join(name), text).expect("written");
        }
        fs::write(folder.join("bytes.md"), [0xff, 0xfe]).expect("written");
        fs::write(folder.join("long.md"), vec![b'x'; 300 << 10]).expect("written");
        symlink(folder.join("plain.md"), folder.join("link.md")).expect("linked");
        symlink("/dev/zero", folder.join("zero.md")).expect("linked");
        let expected = [
            prompt("also", None, Some("X"), "Body"),
            prompt("broken", None, None, "Body"),
            prompt("link", None, None, "Just text.\n---\n"),
            prompt("open", None, None, "---\ndescription: never closed\n"),
            prompt("plain", None, None, "Just text.\n---\n"),
            prompt("review", Some("Look at a file"), Some("FILE"), "Look at $1.\n"),
        ];
        assert_eq!(custom_prompts(home.path()), expected);
    }
}
