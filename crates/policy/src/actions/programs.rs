//! The action of a single command, by its program and operands.

use protocol::CommandAction;

use super::beneath;
use super::operands::{operands, short_name, value_of};
use super::quiet::awk_only_prints;
use crate::quote::shell_line;
use crate::safe::{FIND_ACTIONS, RIPGREP_HELPERS, has_option, is_line_range};

const LS_VALUES: &[&str] =
    &["-I", "-w", "--block-size", "--color", "--format", "--quoting-style", "--time-style"];
const EZA_VALUES: &[&str] =
    &["-I", "-L", "--color", "--ignore-glob", "--level", "--sort", "--time", "--time-style"];
const TREE_VALUES: &[&str] = &["-I", "-L", "-P", "--charset", "--filelimit", "--sort"];
const DU_VALUES: &[&str] = &["-B", "-d", "--block-size", "--exclude", "--max-depth", "--time-style"];
const LS_FILES_VALUES: &[&str] = &["--exclude", "--exclude-from", "--pathspec-from-file"];
const RG_VALUES: &[&str] = &[
    "-A",
    "-B",
    "-C",
    "-T",
    "-g",
    "-m",
    "-t",
    "--after-context",
    "--before-context",
    "--context",
    "--glob",
    "--iglob",
    "--max-count",
    "--max-depth",
    "--type",
    "--type-not",
];
const GREP_VALUES: &[&str] =
    &["-A", "-B", "-C", "-m", "--after-context", "--before-context", "--context", "--max-count"];
const AG_VALUES: &[&str] = &["-A", "-B", "-C", "-G", "-g", "-m", "--file-search-regex", "--ignore-dir"];
const FD_VALUES: &[&str] =
    &["-E", "-d", "-e", "-t", "--exclude", "--extension", "--max-depth", "--search-path", "--type"];
const BAT_VALUES: &[&str] =
    &["--language", "--line-range", "--map-syntax", "--style", "--tabs", "--terminal-width", "--theme"];
const LESS_VALUES: &[&str] = &["-P", "-j", "-p", "-x", "-y", "-z", "--pattern", "--prompt", "--tabs"];
const NL_VALUES: &[&str] = &["-b", "-i", "-s", "-v", "-w"];
const AWK_VALUES: &[&str] = &["-F", "-v"];

/// Options with which read-only programs run another program, write, or read further options from a file.
const DOES_MORE: &[(&str, &[&str], &str)] = &[
    ("ack", &["--pager", "--output", "--ackrc", "--create-ackrc"], ""),
    ("ag", &["--pager", "--path-to-ignore"], ""),
    ("bat", BAT_DOES_MORE, ""),
    ("batcat", BAT_DOES_MORE, ""),
    ("fd", &["--exec", "--exec-batch", "--list-details"], "xXl"),
    ("git grep", &["--open-files-in-pager", "--textconv", "--ext-grep"], "O"),
    ("less", LESS_DOES_MORE, "oOkKTtb+"),
    ("more", LESS_DOES_MORE, "oOkKTt+"),
    ("pt", &["--pager"], ""),
    ("rg", RIPGREP_HELPERS, "z"),
    ("tree", &["--output"], "oR"),
];
const BAT_DOES_MORE: &[&str] = &[
    "--pager",
    "--lessopen",
    "--config-file",
    "--generate-config-file",
    "--completion",
    "--build",
    "--clear",
    "--source",
    "--target",
];
const LESS_DOES_MORE: &[&str] = &[
    "--log-file",
    "--LOG-FILE",
    "--lesskey-file",
    "--lesskey-src",
    "--lesskey-content",
    "--tag-file",
    "--cmd",
];

/// The action of one command, `None` if unknown. `folder` is where earlier commands have changed to.
pub(super) fn action(words: &[String], folder: Option<&str>) -> Option<CommandAction> {
    let (program, arguments) = words.split_first()?;
    if does_more(words) {
        return None;
    }
    let does = Does { command: shell_line(words), folder };
    match program.as_str() {
        "ls" => does.list(arguments, LS_VALUES),
        "eza" | "exa" => does.list(arguments, EZA_VALUES),
        "tree" => does.list(arguments, TREE_VALUES),
        "du" => does.list(arguments, DU_VALUES),
        "rg" if arguments.iter().any(|word| word == "--files") => does.list(arguments, RG_VALUES),
        "rg" => does.search(&operands(arguments, RG_VALUES)),
        "ag" | "ack" | "pt" => does.search(&operands(arguments, AG_VALUES)),
        "grep" | "egrep" | "fgrep" => does.grep(arguments),
        "fd" => does.fd(arguments),
        "find" => does.find(arguments),
        "git" => match arguments.split_first() {
            Some((command, arguments)) if command == "grep" => does.grep(arguments),
            Some((command, arguments)) if command == "ls-files" => does.list(arguments, LS_FILES_VALUES),
            _ => None,
        },
        "cat" => does.read_only(&operands(arguments, &[])),
        "bat" | "batcat" => does.read_only(&operands(arguments, BAT_VALUES)),
        "less" | "more" => does.read_only(&operands(arguments, LESS_VALUES)),
        "nl" => does.read(operands(arguments, NL_VALUES).first()?),
        "head" | "tail" => does.read(lines_file(arguments, program == "tail")?),
        "sed" => {
            let sed = sed_parts(arguments)?;
            let prints = sed.quiet && sed.scripts.iter().all(|script| is_line_range(script));
            prints.then(|| does.read(sed.files.first()?)).flatten()
        }
        "awk" if awk_only_prints(arguments) => does.read(awk_file(arguments)?),
        _ => None,
    }
}

/// Whether an option gives a read-only program other effects.
pub(super) fn does_more(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let (name, arguments) = match arguments.split_first() {
        Some((command, rest)) if program == "git" => (format!("git {command}"), rest),
        _ => (program.clone(), arguments),
    };
    // `less +!id` starts with a command.
    let begins =
        matches!(name.as_str(), "less" | "more") && arguments.iter().any(|word| word.starts_with('+'));
    let known = DOES_MORE.iter().find(|(known, _, _)| *known == name);
    begins || known.is_some_and(|(_, long, short)| has_option(arguments, long, short))
}

/// A command to be described.
struct Does<'a> {
    command: String,
    folder: Option<&'a str>,
}

impl Does<'_> {
    fn read(self, file: &str) -> Option<CommandAction> {
        let path = beneath(self.folder, file);
        Some(CommandAction::Read { command: self.command, name: short_name(file), path })
    }

    /// For programs that would run several files together.
    fn read_only(self, files: &[&str]) -> Option<CommandAction> {
        let [file] = files else { return None };
        self.read(file)
    }

    fn list(self, arguments: &[String], with_value: &[&str]) -> Option<CommandAction> {
        let path = operands(arguments, with_value).first().map(|path| short_name(path));
        Some(CommandAction::ListFiles { command: self.command, path })
    }

    fn search(self, operands: &[&str]) -> Option<CommandAction> {
        let query = operands.first().map(|query| (*query).to_owned());
        let path = operands.get(1).map(|path| short_name(path));
        Some(CommandAction::Search { command: self.command, path, query })
    }

    fn grep(self, arguments: &[String]) -> Option<CommandAction> {
        let patterns = ["-e", "--regexp", "-f", "--file"];
        let Some(query) = value_of(arguments, &patterns) else {
            return self.search(&operands(arguments, GREP_VALUES));
        };
        let with_value: Vec<_> = GREP_VALUES.iter().chain(&patterns).copied().collect();
        let mut found = vec![query];
        found.extend(operands(arguments, &with_value));
        self.search(&found)
    }

    fn fd(self, arguments: &[String]) -> Option<CommandAction> {
        let found = operands(arguments, FD_VALUES);
        let only_folder = |path: &str| path.contains('/') || matches!(path, "." | "..");
        match &*found {
            [] => self.list(&[], &[]),
            [path] if only_folder(path) => self.list(&[(*path).to_owned()], &[]),
            _ => self.search(&found),
        }
    }

    fn find(self, arguments: &[String]) -> Option<CommandAction> {
        if arguments.iter().any(|word| FIND_ACTIONS.contains(&word.as_str())) {
            return None;
        }
        let is_path = |word: &&String| !word.starts_with('-') && !matches!(word.as_str(), "!" | "(" | ")");
        let path = arguments.iter().find(is_path).map(|path| short_name(path));
        let query = value_of(arguments, &["-name", "-iname", "-path", "-regex"]);
        Some(match query {
            Some(query) => {
                CommandAction::Search { command: self.command, path, query: Some(query.to_owned()) }
            }
            None => CommandAction::ListFiles { command: self.command, path },
        })
    }
}

/// The file of `head FILE`, `head -n 5 FILE` and `head -n5 FILE`.
fn lines_file(arguments: &[String], is_tail: bool) -> Option<&str> {
    let is_count = |text: &str| {
        let digits = if is_tail { text.strip_prefix('+').unwrap_or(text) } else { text };
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let file = match arguments {
        [flag, count, file, ..] if flag == "-n" && is_count(count) => file,
        [flag, file, ..] if flag.strip_prefix("-n").is_some_and(is_count) => file,
        [file] => file,
        _ => return None,
    };
    (!file.starts_with('-')).then_some(file)
}

/// The parts of a `sed` call that edits nothing in place.
pub(super) struct Sed<'a> {
    pub(super) quiet: bool,
    pub(super) scripts: Vec<&'a str>,
    pub(super) files: Vec<&'a str>,
}

/// `None` with options other than `-n`, `-e` and those for the kind of pattern.
pub(super) fn sed_parts(arguments: &[String]) -> Option<Sed<'_>> {
    let mut sed = Sed { quiet: false, scripts: Vec::new(), files: Vec::new() };
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-n" | "--quiet" | "--silent" => sed.quiet = true,
            "-E" | "-r" => {}
            "-e" => sed.scripts.push(words.next()?),
            _ if word.starts_with('-') => return None,
            _ => sed.files.push(word),
        }
    }
    if sed.scripts.is_empty() {
        if sed.files.is_empty() {
            return None;
        }
        sed.scripts.push(sed.files.remove(0));
    }
    Some(sed)
}

/// The first file of `awk PROGRAM FILE`.
pub(super) fn awk_file(arguments: &[String]) -> Option<&str> {
    operands(arguments, AWK_VALUES).get(1).copied()
}
