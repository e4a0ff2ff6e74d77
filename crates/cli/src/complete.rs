//! `oarlock complete`: the words that fit at the end of a command line, for the scripts of `oarlock completions`. Asks nobody
//! but the disk and, for the names of its tasks, the host that runs on this machine. Makes nothing.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use runtime::Catalogue;
use runtime::config::{LoadRequest, ResolvedConfig};
use tracing_subscriber::filter::LevelFilter;

use crate::flags::Flags;
use crate::host::chosen::{HostWord, host_words};
use crate::host::client::HostChoice;
use crate::terminal::clean_line;
use crate::threads::thread_words;

#[derive(Debug, Args)]
pub(crate) struct CompleteOptions {
    /// The words after `oarlock`; the last is the one that is being typed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The kinds of names that the last word can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedWord {
    Model,
    Provider,
    Profile,
    Thread,
    OfHost(HostWord),
}

/// Where a thread is named, by the words before it.
const THREAD_VERBS: &[&str] = &["show", "rename", "archive", "unarchive", "delete", "export"];

/// Options whose value is the next word, which is no word of a command.
const WITH_VALUE: &[&str] = &[
    "-c",
    "--config",
    "-C",
    "--cd",
    "-s",
    "--sandbox",
    "-o",
    "-i",
    "--enable",
    "--disable",
    "--host",
    "--store",
    "--message",
    "--on-behalf-of",
    "--command",
    "--arguments",
    "--days",
    "--by",
];

/// Options whose value is one of the words that are known.
const WITH_KNOWN_VALUE: &[(&str, WantedWord)] = &[
    ("-m", WantedWord::Model),
    ("--model", WantedWord::Model),
    ("--provider", WantedWord::Provider),
    ("-p", WantedWord::Profile),
    ("--profile", WantedWord::Profile),
    ("--thread", WantedWord::Thread),
    ("--task", WantedWord::OfHost(HostWord::Task)),
];

fn wanted(words: &[String]) -> Option<WantedWord> {
    let (typed, before) = words.split_last()?;
    let known =
        |word: &str| WITH_KNOWN_VALUE.iter().find(|(flag, _)| *flag == word).map(|(_, wanted)| *wanted);
    match before.last().map(String::as_str) {
        Some(word) if WITH_VALUE.contains(&word) => return None,
        Some(word) if known(word).is_some() => return known(word),
        _ => {}
    }
    let mut commands = Vec::new();
    let mut is_value = false;
    for word in before {
        if !is_value && !word.starts_with('-') {
            commands.push(word.as_str());
        }
        is_value = WITH_VALUE.contains(&word.as_str()) || known(word).is_some();
    }
    match commands.as_slice() {
        _ if typed.starts_with('-') => None,
        ["resume"] | ["exec", "resume"] => Some(WantedWord::Thread),
        // Several may be given to most of them.
        ["threads", verb, ..] if THREAD_VERBS.contains(verb) => Some(WantedWord::Thread),
        ["task", "show" | "suspend" | "resume" | "delete"] => Some(WantedWord::OfHost(HostWord::Task)),
        ["placements", "snapshot" | "suspend" | "abandon" | "delete"] => {
            Some(WantedWord::OfHost(HostWord::Placement))
        }
        ["approve" | "reject" | "respond" | "retry"] => Some(WantedWord::OfHost(HostWord::Code)),
        _ => None,
    }
}

pub(crate) fn run(options: &CompleteOptions, root: &Flags) -> Result<ExitCode> {
    service::init_logging(LevelFilter::OFF);
    let typed = options.words.last().map(String::as_str).unwrap_or_default();
    let Some(wanted) = wanted(&options.words) else { return Ok(ExitCode::SUCCESS) };
    let loader = root.loader()?;
    let words = match wanted {
        WantedWord::OfHost(word) => host_words(&HostChoice::of_words(&options.words), word),
        WantedWord::Thread => thread_words(loader.home())?,
        _ => {
            let request = LoadRequest { cwd: std::env::current_dir().ok(), ..LoadRequest::default() };
            of_config(wanted, &loader.load(&request)?)
        }
    };
    let mut text = String::new();
    for word in words.iter().filter(|word| word.starts_with(typed)) {
        text.push_str(&clean_line(word));
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes()).context("the words cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

fn of_config(wanted: WantedWord, config: &ResolvedConfig) -> Vec<String> {
    let words: BTreeSet<String> = match wanted {
        WantedWord::Provider => config.providers.keys().cloned().collect(),
        WantedWord::Profile => {
            let profiles = config.merged.get("profiles").and_then(|profiles| profiles.as_table());
            profiles.into_iter().flat_map(|profiles| profiles.keys().cloned()).collect()
        }
        WantedWord::Model | WantedWord::Thread | WantedWord::OfHost(_) => {
            let catalogue = Catalogue::bundled();
            let page = catalogue.page(None, None, false).map(|page| page.data).unwrap_or_default();
            let own = [config.model.name.clone(), config.provider.default_model.clone()];
            page.into_iter().map(|model| model.model).chain(own.into_iter().flatten()).collect()
        }
    };
    words.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_before_say_what_is_wanted() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, expected) in [
            ("exec -m ", Some(WantedWord::Model)),
            ("exec --provider off", Some(WantedWord::Provider)),
            ("-p ", Some(WantedWord::Profile)),
            ("resume ", Some(WantedWord::Thread)),
            ("exec -m x resume 01", Some(WantedWord::Thread)),
            ("exec -c a=b resume ", Some(WantedWord::Thread)),
            ("threads show ", Some(WantedWord::Thread)),
            ("threads archive one two ", Some(WantedWord::Thread)),
            ("threads list ", None),
            ("task show ", Some(WantedWord::OfHost(HostWord::Task))),
            ("task --host unix:///x suspend 01", Some(WantedWord::OfHost(HostWord::Task))),
            ("task ", None),
            ("usage --task ", Some(WantedWord::OfHost(HostWord::Task))),
            ("placements delete ", Some(WantedWord::OfHost(HostWord::Placement))),
            ("approve --store sqlite:x ", Some(WantedWord::OfHost(HostWord::Code))),
            ("reject 3f9a01c2 --message ", None),
            ("respond 3f9a01c2 ", None),
            ("debug prompt --thread ", Some(WantedWord::Thread)),
            ("resume --la", None),
            ("exec -C ", None),
            ("", None),
        ] {
            assert_eq!(wanted(&words(line)), expected, "{line}");
        }
    }
}
