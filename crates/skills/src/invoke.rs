//! Adds mentioned skills and plugins to the model's input.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use config::SkillSelector;
use engine::{PluginText, SkillText};
use protocol::{ConfigWarningNotification, UserInput};
use workspace::{ReadError, Reader};

use super::cache::{SkillChoices, Skills};
use super::mentions::{Mention, mentions, plugins};
use super::of_plugins;
use super::roots::reader;
use super::{MAX_FILE_BYTES, Skill};

/// Limit of all skills of one message.
const MAX_ALL_BYTES: usize = 4 << 20;

/// Limit of an id in a warning, in characters.
const MAX_SHOWN_ID: usize = 100;

/// Limit of warnings.
const MAX_WARNINGS: usize = 8;

/// The skills and plugins that a message mentions, with problems.
#[derive(Debug, Default)]
pub struct Invoked {
    pub skills: Vec<SkillText>,
    pub plugins: Vec<PluginText>,
    /// For the user. The message is sent without what failed.
    pub warnings: Vec<ConfigWarningNotification>,
}

impl Invoked {
    fn warn(&mut self, path: Option<&Path>, summary: String) {
        if self.warnings.len() < MAX_WARNINGS {
            let path = path.map(|path| path.to_string_lossy().into_owned());
            self.warnings.push(ConfigWarningNotification { summary, details: None, path, range: None });
        }
    }
}

impl Skills {
    /// The skills that a message mentions, each once. Reads files; those of a project only if `limits` allow it.
    pub fn invoke(
        &self,
        input: &[UserInput],
        cwd: &Path,
        choices: &SkillChoices,
        limits: Option<&Reader>,
    ) -> Invoked {
        let (mentions, asked) = (mentions(input), plugins(input));
        if mentions.is_empty() && asked.is_empty() {
            return Invoked::default();
        }
        let directory = self.fresh(cwd);
        let mut known = directory.skills(choices);
        if let Some(limits) = limits {
            known.retain(|(skill, _)| skill.project.is_none() || limits.allows(&skill.path));
        }
        let mut invoked = Invoked::default();
        for id in asked {
            match directory.plugins.iter().find(|plugin| plugin.id.to_string() == id) {
                Some(plugin) => {
                    let prefix = format!("{}:", plugin.name());
                    let has_skills =
                        known.iter().any(|(skill, is_on)| *is_on && skill.name.starts_with(&prefix));
                    invoked.plugins.push(of_plugins::text(plugin, has_skills));
                }
                None => {
                    let id: String = id.chars().take(MAX_SHOWN_ID).collect();
                    let problem = "is not installed, or switched off; the message is sent without it.";
                    invoked.warn(None, format!("The plugin {id} {problem}"));
                }
            }
        }
        let picked = pick(&mentions, &known, cwd, &mut invoked);
        read(picked, &mut invoked);
        invoked
    }
}

/// A skill mentioned by path is not replaced by another of the same name.
fn pick<'a>(
    mentions: &[Mention],
    known: &'a [(Skill, bool)],
    cwd: &Path,
    invoked: &mut Invoked,
) -> Vec<&'a Skill> {
    let mut picked: Vec<&Skill> = Vec::new();
    let mut blocked = HashSet::new();
    for mention in mentions {
        let skill = match mention {
            Mention::Path { name, path } => {
                let path = real(&cwd.join(path));
                match known.iter().find(|(skill, _)| skill.path == path) {
                    Some((skill, true)) => Some(skill),
                    found => {
                        blocked.insert(name.as_str());
                        let problem = match found {
                            Some(_) => "is switched off",
                            None => "was not found",
                        };
                        invoked.warn(
                            Some(&path),
                            format!("The skill {name} {problem}; the message is sent without it."),
                        );
                        None
                    }
                }
            }
            Mention::Name(name) if blocked.contains(name.as_str()) => None,
            // Punctuation at the end is not part of a name.
            Mention::Name(name) => {
                only(known, name).or_else(|| only(known, name.trim_end_matches([':', '-'])))
            }
        };
        if let Some(skill) = skill
            && picked.iter().all(|other| other.path != skill.path)
        {
            picked.push(skill);
        }
    }
    picked
}

fn real(path: &Path) -> PathBuf {
    match SkillSelector::path(path) {
        SkillSelector::Path(path) => path,
        SkillSelector::Name(_) => path.to_owned(),
    }
}

/// The only enabled skill of this name. Two of the same name are ambiguous.
fn only<'a>(known: &'a [(Skill, bool)], name: &str) -> Option<&'a Skill> {
    let mut named = known.iter().filter(|(skill, enabled)| *enabled && skill.name == name);
    named.next().filter(|_| named.next().is_none()).map(|(skill, _)| skill)
}

fn read(picked: Vec<&Skill>, invoked: &mut Invoked) {
    let mut left = MAX_ALL_BYTES;
    for skill in picked {
        let text = reader(skill.project.as_deref())
            .and_then(|reader| reader.read_whole(&skill.path, MAX_FILE_BYTES))
            .map_err(|error: ReadError| error.problem.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()))
            .and_then(|text| match left.checked_sub(text.len()) {
                Some(rest) => {
                    left = rest;
                    Ok(text)
                }
                None => Err(format!("the skills of one message may have {} MiB", MAX_ALL_BYTES >> 20)),
            });
        match text {
            Ok(text) => invoked.skills.push(SkillText {
                name: skill.name.clone(),
                path: skill.path.to_string_lossy().into_owned(),
                text,
            }),
            Err(problem) => {
                let name = &skill.name;
                invoked.warn(
                    Some(&skill.path),
                    format!("The skill {name} cannot be read: {problem}. The message is sent without it."),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use protocol::SkillScope;

    use super::*;
    use crate::roots::SkillRoot;
    use crate::scan::scan;

    /// Skills by folder, and whether each is enabled.
    fn check(skills: &[(&str, bool)], input: &[UserInput], expected: &[&str], warnings: &[&str]) {
        let dir = tempfile::tempdir().expect("a directory");
        let top = fs::canonicalize(dir.path()).expect("there");
        for (path, _) in skills {
            fs::create_dir_all(top.join(path)).expect("made");
            fs::write(top.join(path).join("SKILL.md"), format!("---\ndescription: x\n---\n{path}"))
                .expect("written");
        }
        let found = scan(&[SkillRoot::new(&top, SkillScope::User)]).skills;
        let known: Vec<(Skill, bool)> = found
            .into_iter()
            .map(|skill| {
                let folder =
                    skill.path.parent().expect("a folder").strip_prefix(&top).expect("below").to_owned();
                let enabled = skills.iter().any(|(path, on)| Path::new(path) == folder && *on);
                (skill, enabled)
            })
            .collect();
        let mut invoked = Invoked::default();
        let picked = pick(&mentions(input), &known, &top, &mut invoked);
        read(picked, &mut invoked);
        let texts: Vec<&str> =
            invoked.skills.iter().map(|skill| skill.text.lines().last().expect("a line")).collect();
        assert_eq!(texts, expected, "{input:?}");
        let told: Vec<&str> = invoked.warnings.iter().map(|warning| warning.summary.as_str()).collect();
        assert_eq!(told.len(), warnings.len(), "{told:?}");
        assert!(told.iter().zip(warnings).all(|(told, part)| told.contains(part)), "{told:?}");
    }

    fn text(text: &str) -> UserInput {
        UserInput::Text { text: text.to_owned(), text_elements: Vec::new() }
    }

    fn skill(name: &str, path: &str) -> UserInput {
        UserInput::Skill { name: name.to_owned(), path: path.to_owned() }
    }

    #[test]
    fn names_mean_one_skill_that_is_on() {
        let skills = [("a", true), ("x/b", true), ("y/b", true), ("c", false), ("x/d", false), ("y/d", true)];
        check(&skills, &[text("$a and $a")], &["a"], &[]);
        check(&skills, &[text("$a: go")], &["a"], &[]);
        check(&skills, &[text("$b $c $nothing")], &[], &[]);
        check(&skills, &[text("$d $a")], &["y/d", "a"], &[]);
    }

    #[test]
    fn places_are_exact() {
        let skills = [("a", true), ("x/b", true), ("y/b", true), ("c", false)];
        check(&skills, &[skill("b", "y/b/SKILL.md"), text("$b $a")], &["y/b", "a"], &[]);
        check(&skills, &[text("[$b](x/./b/SKILL.md) [$b](y/b/SKILL.md)")], &["x/b", "y/b"], &[]);
        check(&skills, &[skill("a", "a")], &["a"], &[]);
        check(&skills, &[skill("c", "c/SKILL.md")], &[], &["c is switched off"]);
        check(&skills, &[skill("a", "gone/SKILL.md"), text("$a")], &[], &["a was not found"]);
    }

    #[test]
    fn unreadable_skills_give_a_warning_and_the_rest_is_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let top = fs::canonicalize(dir.path()).expect("there");
        let file = |name: &str| top.join(name).join("SKILL.md");
        for name in ["a", "b", "c"] {
            fs::create_dir(top.join(name)).expect("made");
            fs::write(file(name), "---\ndescription: x\n---\n").expect("written");
        }
        let found = scan(&[SkillRoot::new(&top, SkillScope::User)]).skills;
        fs::remove_file(file("a")).expect("removed");
        fs::write(file("b"), b"---\ndescription: x\n---\n\xff").expect("written");
        let mut invoked = Invoked::default();
        read(found.iter().collect(), &mut invoked);
        let names: Vec<&str> = invoked.skills.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, ["c"]);
        let told: Vec<&str> = invoked.warnings.iter().map(|warning| warning.summary.as_str()).collect();
        assert!(
            told[0].contains("a cannot be read: No such file")
                && told[1].contains("b cannot be read: it is not UTF-8"),
            "{told:?}"
        );
    }
}
