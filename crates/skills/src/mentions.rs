//! Finds the skills that a message mentions.

use std::path::{Path, PathBuf};

use protocol::UserInput;

use super::FILE;

/// Common variable names, which are no mentions.
const VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "SHELL", "PWD", "TMPDIR", "TEMP", "TMP", "LANG", "TERM", "XDG_CONFIG_HOME"];

/// Limit of looked up paths per message.
const MAX_PATHS: usize = 64;

/// Limit of looked up plugins per message.
const MAX_PLUGINS: usize = 16;
const PLUGIN: &str = "plugin://";

/// One mention of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mention {
    /// By its path.
    Path { name: String, path: PathBuf },
    /// By its name in a text.
    Name(String),
}

/// Whether a search for mentions is worthwhile.
pub fn may_mention(input: &[UserInput]) -> bool {
    input.iter().any(|part| match part {
        UserInput::Skill { .. } | UserInput::Mention { .. } => true,
        UserInput::Text { text, .. } => text.contains('$') || text.contains(PLUGIN),
        UserInput::Image { .. } | UserInput::LocalImage { .. } => false,
    })
}

/// The client's choices come first, then the mentions in texts.
pub(super) fn mentions(input: &[UserInput]) -> Vec<Mention> {
    let mut found = Mentions::default();
    for part in input {
        match part {
            UserInput::Skill { name, path } => found.path(name, skill_path(path)),
            UserInput::Mention { name, path } if is_skill(path) => found.path(name, skill_path(path)),
            _ => {}
        }
    }
    for part in input {
        if let UserInput::Text { text, .. } = part {
            found.text(text);
        }
    }
    found.all
}

/// The ids of plugins that a message asks for: those the client chose, and links such as `[@name](plugin://id)`.
pub(super) fn plugins(input: &[UserInput]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |id: &str| {
        if found.len() < MAX_PLUGINS && !found.iter().any(|known| known == id) {
            found.push(id.to_owned());
        }
    };
    for part in input {
        match part {
            UserInput::Mention { path, .. } => path.strip_prefix(PLUGIN).into_iter().for_each(&mut add),
            UserInput::Text { text, .. } => {
                for (at, _) in text.match_indices("[@") {
                    let target = text[at..].find(']').and_then(|end| link(&text[at + end..]));
                    target.and_then(|(path, _)| path.strip_prefix(PLUGIN)).into_iter().for_each(&mut add);
                }
            }
            _ => {}
        }
    }
    found
}

#[derive(Default)]
struct Mentions {
    all: Vec<Mention>,
    paths: usize,
}

impl Mentions {
    fn path(&mut self, name: &str, path: &str) {
        let mention = Mention::Path { name: name.to_owned(), path: PathBuf::from(path) };
        if self.paths < MAX_PATHS && !self.all.contains(&mention) {
            self.paths += 1;
            self.all.push(mention);
        }
    }

    /// `$name` and `[$name](path)`.
    fn text(&mut self, text: &str) {
        let mut rest = text;
        let mut names = std::collections::HashSet::new();
        while let Some(at) = rest.find('$') {
            let is_linked = rest[..at].ends_with('[');
            rest = &rest[at + 1..];
            let name = &rest[..rest.find(|letter| !is_name(letter)).unwrap_or(rest.len())];
            rest = &rest[name.len()..];
            if name.is_empty() {
                continue;
            }
            match link(rest).filter(|_| is_linked) {
                Some((path, after)) => {
                    rest = after;
                    if is_skill(path) {
                        self.path(name, skill_path(path));
                    }
                }
                None if !is_variable(name) && names.insert(name) => {
                    self.all.push(Mention::Name(name.to_owned()));
                }
                None => {}
            }
        }
    }
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ':')
}

fn is_variable(name: &str) -> bool {
    VARIABLES.iter().any(|variable| name.eq_ignore_ascii_case(variable))
}

/// The target of a link whose text just ended, and what comes after it.
fn link(rest: &str) -> Option<(&str, &str)> {
    let target = rest.strip_prefix(']')?.trim_start_matches(' ').strip_prefix('(')?;
    let (path, after) = target.split_once(')')?;
    let path = path.trim();
    (!path.is_empty() && !path.contains('\n')).then_some((path, after))
}

/// Apps, plugins and web pages are no skills.
fn is_skill(path: &str) -> bool {
    path.starts_with("skill://")
        || (!path.contains("://") && Path::new(path).file_name() == Some(FILE.as_ref()))
}

fn skill_path(path: &str) -> &str {
    path.strip_prefix("skill://").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> UserInput {
        UserInput::Text { text: text.to_owned(), text_elements: Vec::new() }
    }

    fn words(input: &[UserInput]) -> Vec<String> {
        let word = |mention: &Mention| match mention {
            Mention::Path { name, path } => format!("{name}@{}", path.display()),
            Mention::Name(name) => name.clone(),
        };
        mentions(input).iter().map(word).collect()
    }

    #[test]
    fn texts_name_skills() {
        let cases: &[(&str, &[&str])] = &[
            ("no skill", &[]),
            ("$greet bob", &["greet"]),
            ("use $a-b_c:d9, and $x.", &["a-b_c:d9", "x"]),
            ("$a $a $b $a", &["a", "b"]),
            ("$PATH $home ${HOME} $ $$x costs $5", &["x", "5"]),
            ("[$greet](/s/greet/SKILL.md) now", &["greet@/s/greet/SKILL.md"]),
            ("[$greet] (skill:///s/greet/SKILL.md)", &["greet@/s/greet/SKILL.md"]),
            ("[$greet](skill://rel/any)", &["greet@rel/any"]),
            ("[$cal](app://cal) [$p](plugin://p@m) [$w](https://w/SKILL.md)", &[]),
            ("[$greet](/s/readme.md) $x", &["x"]),
            ("[$greet](", &["greet"]),
            ("[$greet]()", &["greet"]),
            ("[see $greet](/s/greet/SKILL.md)", &["greet"]),
            ("é$ü$é$a", &["a"]),
        ];
        for (said, expected) in cases {
            assert_eq!(words(&[text(said)]), *expected, "{said}");
        }
    }

    #[test]
    fn plugins_are_asked_for_by_links_and_by_choice() {
        let mention = |path: &str| UserInput::Mention { name: "x".into(), path: path.into() };
        let said = text(
            "use [@p](plugin://p@m), [@q] (plugin://q@m) [@p](plugin://p@m) [see](plugin://no) [@a](app://a) [@",
        );
        let input = [said, mention("plugin://chosen@m"), mention("app://x"), mention("/s/SKILL.md")];
        assert_eq!(plugins(&input), ["p@m", "q@m", "chosen@m"]);
        assert!(may_mention(&[text("[@p](plugin://p@m)")]) && !may_mention(&[text("mail me@example.org")]));
        let many = Vec::from_iter((0..99).map(|n| mention(&format!("plugin://p{n}@m"))));
        assert_eq!(plugins(&many).len(), MAX_PLUGINS);
    }

    #[test]
    fn what_the_client_chose_comes_first() {
        let skill = |name: &str, path: &str| UserInput::Skill { name: name.into(), path: path.into() };
        let mention = |name: &str, path: &str| UserInput::Mention { name: name.into(), path: path.into() };
        let input = [
            text("$late"),
            skill("a", "/s/a/SKILL.md"),
            mention("app", "app://x"),
            mention("b", "skill:///s/b/SKILL.md"),
            mention("c", "/s/c/SKILL.md"),
            skill("a", "/s/a/SKILL.md"),
        ];
        assert_eq!(words(&input), ["a@/s/a/SKILL.md", "b@/s/b/SKILL.md", "c@/s/c/SKILL.md", "late"]);
        assert!(may_mention(&input) && may_mention(&input[2..3]) && !may_mention(&[text("plain")]));
    }

    #[test]
    fn a_flood_of_links_is_cut() {
        let links: String = (0..1_000).map(|at| format!("[$a](/{at}/SKILL.md)")).collect();
        assert_eq!(mentions(&[text(&links)]).len(), MAX_PATHS);
    }
}
