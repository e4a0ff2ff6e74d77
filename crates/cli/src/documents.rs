//! Every command that a document shows is one that the program understands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::Cli;

/// Lines that a program prints, and commands with a part left out.
const NOT_COMMANDS: &[&str] = &["oarlock app-server (WebSockets)", "oarlock 0.", "oarlock host 0."];

#[test]
fn every_command_of_the_documents_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> =
        fs::read_dir(root.join("docs")).expect("the documents").flatten().map(|entry| entry.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.extend(["README.md", "console/README.md", "bench/README.md"].map(|page| root.join(page)));
    let mut seen = 0;
    let mut wrong = Vec::new();
    for page in pages {
        let Ok(text) = fs::read_to_string(&page) else { continue };
        for command in commands(&text) {
            seen += 1;
            if let Err(error) = Cli::try_parse_from(words(&command))
                && error.use_stderr()
            {
                let why = error.to_string().lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{}: {command}\n    {why}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 120, "only {seen} commands were found");
}

/// The commands in blocks of code, each from its name on.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in text.replace("\\\n", " ").lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let Some(code) = line.strip_prefix("    ").or_else(|| is_fenced.then_some(line)) else { continue };
        let code = code.trim_start_matches("$ ").trim_start_matches("sudo -u oarlock ");
        // Variables may be set before a command, and something piped into it.
        let named = code.match_indices("oarlock ").map(|(at, _)| code.split_at(at));
        let command =
            named.filter(|(before, _)| before.is_empty() || before.ends_with(' ')).find(|(before, _)| {
                let before = before.trim_end();
                before.is_empty() || before.ends_with('|') || before.split(' ').all(|word| word.contains('='))
            });
        if let Some((_, command)) = command
            && !NOT_COMMANDS.iter().any(|printed| command.starts_with(printed))
        {
            found.push(command.to_owned());
        }
    }
    found
}

/// The words up to the end of the command, as a shell reads them.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in command.chars() {
        let last = words.last_mut().expect("there is always one");
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => last.push(letter),
            (None, '"' | '\'') => quote = Some(letter),
            (None, '|' | '>' | '<' | '&' | ';' | ')') => break,
            (None, '#') if last.is_empty() => break,
            (None, ' ') if last.is_empty() => {}
            (None, ' ') => words.push(String::new()),
            (None, letter) => last.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
