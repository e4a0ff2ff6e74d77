//! No file may name the machine it was written on, or the host a package came from: both mean nothing to the reader
//! of a clone and break there.

use anyhow::Result;

use crate::{Problems, workspace};

/// Beginnings of paths that exist on one machine only. In pieces, so that this file does not break its own rule.
const MACHINE_FOLDERS: &[&str] = &[concat!("/", "root/"), concat!("/", "work/"), concat!("/", "home/")];

/// Names that stand for anybody in an example, as in a home folder of `user`, and the person of the wire fixtures.
const ANYBODY: &[&str] = &["user", "me", "you", "pi", "mira"];

/// Parts of the package hosts' names, and words that give a local copy of one away.
const REGISTRIES: &[&str] =
    &["pypi", "pythonhosted", "crates.io", "registry", "mirror", "artifactory", "nexus"];

pub(crate) fn check() -> Result<Problems> {
    let mut problems = Vec::new();
    for path in workspace::files()? {
        // Pictures and the like hold no words.
        if let Ok(text) = String::from_utf8(workspace::read(&path)?) {
            let found = text.lines().zip(1..).filter_map(|(line, number)| Some((number, complaint(line)?)));
            problems.extend(found.map(|(number, complaint)| format!("{path}:{number}: {complaint}")));
        }
    }
    Ok(problems)
}

fn complaint(line: &str) -> Option<String> {
    if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| holds_path(line, folder)) {
        return Some(format!("names the machine folder {folder}"));
    }
    let mut hosts = line.split("://").skip(1).map(host);
    let registry = hosts.find(|host| REGISTRIES.iter().any(|word| host.contains(word)))?;
    Some(format!("names the package host {registry}"))
}

fn holds_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let (before, rest) = (&line[..at], &line[at + folder.len()..]);
        let name = rest.split(|after: char| !is_name(after)).next().unwrap_or_default();
        is_start(before) && !name.is_empty() && !ANYBODY.contains(&name)
    })
}

/// A path that goes on from something, as `my/work/` or `../work/`, is relative.
fn is_start(before: &str) -> bool {
    before.ends_with("://") || !before.ends_with(|last: char| is_name(last) || "~/}*)".contains(last))
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || "._-".contains(letter)
}

fn host(after_scheme: &str) -> &str {
    after_scheme
        .split(|after: char| !(after.is_alphanumeric() || ".-:@".contains(after)))
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_names_a_machine_or_a_package_host() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    /// `@` stands for the slash that would make this file break the rule it tests.
    fn check_line(line: &str) -> Option<String> {
        complaint(&line.replace('@', "/"))
    }

    #[test]
    fn absolute_machine_paths_are_found() {
        for line in
            ["cd @work/main", "\"@root/.cargo\"", "path=@home/jane/code", "file:@@@home/jane", "@work/x"]
        {
            assert!(check_line(line).is_some(), "{line}");
        }
    }

    #[test]
    fn relative_paths_and_examples_are_fine() {
        for line in [
            "my@work/space",
            "..@work/x",
            "~@work/x",
            "$HOME@work/x",
            "@home/user/repo",
            "a folder @work/ of its own",
            "@homework/x",
            "@workspace/x",
        ] {
            assert_eq!(check_line(line), None, "{line}");
        }
    }

    #[test]
    fn package_hosts_are_found() {
        for (line, host) in [
            ("\"resolved\": \"https:@@registry.npmjs.org@x\"", "registry.npmjs.org"),
            ("index-url = https:@@pypi.org@simple", "pypi.org"),
            ("see https:@@example.com and sparse+https:@@index.crates.io@", "index.crates.io"),
            ("index = \"http:@@npm-mirror.example:8080@x\"", "npm-mirror.example:8080"),
        ] {
            assert_eq!(check_line(line), Some(format!("names the package host {host}")));
        }
    }

    #[test]
    fn other_hosts_are_fine() {
        for line in
            ["https:@@example.com@registry", "registry+https:@@github.com@crates.io", "\"host\":\"pypi.org\""]
        {
            assert_eq!(check_line(line), None, "{line}");
        }
    }
}
