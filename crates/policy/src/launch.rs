//! Commands that start other commands: the commands inside `sudo`, `env`, `timeout`, `xargs`, `find -exec` and shells.

use crate::argv::base_name;
use crate::script::read_script;

/// A program that runs the words after its own options.
struct Launcher {
    name: &'static str,
    /// Short options that take a value: the next word, or the rest of their own.
    short: &'static str,
    /// Long options that take the next word as their value, unless it is attached.
    long: &'static [&'static str],
    /// The number of operands before the command.
    operands: usize,
}

const fn plain(name: &'static str) -> Launcher {
    with(name, "", &[], 0)
}

const fn with(
    name: &'static str,
    short: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Launcher {
    Launcher { name, short, long, operands }
}

const LAUNCHERS: &[Launcher] = &[
    plain("builtin"),
    plain("busybox"),
    plain("caffeinate"),
    with("chroot", "", &["--groups", "--userspec"], 1),
    with("chrt", "TPD", &["--sched-runtime", "--sched-period", "--sched-deadline"], 1),
    plain("command"),
    with("doas", "uCa", &[], 0),
    with("env", "uCS", &["--unset", "--chdir", "--split-string"], 0),
    with("exec", "a", &[], 0),
    plain("fakeroot"),
    with("flock", "wEc", &["--timeout", "--wait", "--conflict-exit-code", "--command"], 1),
    with("ionice", "cnpPu", &["--class", "--classdata"], 0),
    with("ltrace", "aAeFlnopsuwxX", &["--output"], 0),
    with("nice", "n", &["--adjustment"], 0),
    plain("nohup"),
    with("nsenter", "tSG", &["--target", "--setuid", "--setgid"], 0),
    with("parallel", "jIaPnNLdCE", &["--jobs", "--arg-file", "--colsep", "--delimiter"], 0),
    with("pkexec", "", &["--user"], 0),
    with("runuser", "ugGcs", &["--user", "--group", "--command", "--shell"], 0),
    with("setpriv", "", &["--reuid", "--regid", "--groups"], 0),
    plain("setsid"),
    with("stdbuf", "ioe", &["--input", "--output", "--error"], 0),
    with("strace", "aAbeEIoOpPsSuUX", &["--output", "--trace"], 0),
    with("sudo", "ugrtpCDhRTU", &["--user", "--group", "--prompt", "--chdir", "--host", "--chroot"], 0),
    with("systemd-run", "pEtu", &["--property", "--setenv", "--unit", "--slice"], 0),
    with("taskset", "", &[], 1),
    with("time", "fo", &["--format", "--output"], 0),
    with("timeout", "ks", &["--kill-after", "--signal"], 1),
    plain("toybox"),
    plain("unbuffer"),
    with("unshare", "RSGw", &["--root", "--wd", "--setuid", "--setgid"], 0),
    with("watch", "nq", &["--interval"], 0),
    with("xargs", "aEIdLnPs", &["--arg-file", "--delimiter", "--max-args", "--max-procs", "--replace"], 0),
];

/// Shells whose scripts are parsed like those of bash.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"];

/// Options of `find` that run the words up to `;` or `+`.
const FIND_RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Limit of nested launchers.
const MAX_DEPTH: usize = 8;

/// The command itself and every nested command, as far as it can be parsed.
pub(crate) fn with_inner(words: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    look_into(words.to_vec(), 0, &mut found);
    found
}

fn look_into(words: Vec<String>, depth: usize, found: &mut Vec<Vec<String>>) {
    let Some((program, arguments)) = words.split_first() else { return };
    if depth < MAX_DEPTH {
        for inner in inner(base_name(program), arguments) {
            look_into(inner, depth + 1, found);
        }
    }
    found.push(words);
}

fn inner(name: &str, arguments: &[String]) -> Vec<Vec<String>> {
    if SHELLS.contains(&name) {
        return script_of_shell(arguments).map_or_else(Vec::new, commands_in);
    }
    match name {
        "eval" => return commands_in(&arguments.join(" ")),
        "find" => return found_files(arguments),
        "su" => {
            return value_of(arguments, 'c', "--command")
                .map_or_else(Vec::new, |script| commands_in(&script));
        }
        "ssh" => return after(arguments, &with("ssh", "bcDEeFIiJLlmOopQRSWw", &[], 1)).into_iter().collect(),
        _ => {}
    }
    let Some(launcher) = LAUNCHERS.iter().find(|launcher| launcher.name == name) else { return Vec::new() };
    let mut list: Vec<Vec<String>> = after(arguments, launcher).into_iter().collect();
    if name == "env"
        && let Some(line) = value_of(arguments, 'S', "--split-string")
    {
        list.extend(commands_in(&line));
    }
    if matches!(name, "flock" | "runuser")
        && let Some(script) = value_of(arguments, 'c', "--command")
    {
        list.extend(commands_in(&script));
    }
    // One word with spaces in it is a shell script.
    if matches!(name, "watch" | "parallel") {
        let lines: Vec<_> = list.iter().flat_map(|words| commands_in(&words.join(" "))).collect();
        list.extend(lines);
    }
    list
}

/// The words after the launcher's own.
fn after(mut arguments: &[String], launcher: &Launcher) -> Option<Vec<String>> {
    while let Some((word, rest)) = arguments.split_first() {
        if word == "--" {
            arguments = rest;
            break;
        } else if launcher.long.contains(&word.as_str()) || takes_next(word, launcher.short) {
            arguments = rest.get(1..).unwrap_or_default();
        } else if word.starts_with('-') || is_assignment(word) {
            arguments = rest;
        } else {
            break;
        }
    }
    let mut command = arguments.get(launcher.operands..)?;
    while let [word, rest @ ..] = command
        && is_assignment(word)
    {
        command = rest;
    }
    (!command.is_empty()).then(|| command.to_vec())
}

/// Whether a cluster of short options ends in one whose value is the next word.
fn takes_next(word: &str, short: &str) -> bool {
    let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { return false };
    let first = cluster.find(|c| short.contains(c));
    first.is_some_and(|at| cluster[at..].chars().count() == 1)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// The value of an option, in the same word or the next.
fn value_of(arguments: &[String], short: char, long: &str) -> Option<String> {
    for (index, word) in arguments.iter().enumerate() {
        if let Some(rest) = word.strip_prefix(long) {
            return match rest.strip_prefix('=') {
                Some(value) => Some(value.to_owned()),
                None => arguments.get(index + 1).cloned(),
            };
        }
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        if let Some((_, value)) = cluster.and_then(|cluster| cluster.split_once(short)) {
            return if value.is_empty() { arguments.get(index + 1).cloned() } else { Some(value.to_owned()) };
        }
    }
    None
}

/// The script of `bash -c SCRIPT`, also among other options.
fn script_of_shell(arguments: &[String]) -> Option<&str> {
    let is_option = |word: &&String| word.starts_with(['-', '+']);
    let options = arguments.iter().take_while(is_option).count();
    let told = |word: &String| !word.starts_with("--") && word.starts_with('-') && word.contains('c');
    let runs = arguments[..options].iter().any(told);
    runs.then(|| arguments.get(options).map(String::as_str)).flatten()
}

/// The commands of a script; for an unparsable one, the words in command positions.
pub(crate) fn commands_in(script: &str) -> Vec<Vec<String>> {
    match read_script(script) {
        Some(script) => {
            let texts = |words: Vec<crate::script::Word>| words.into_iter().map(|word| word.text).collect();
            script.commands.into_iter().map(texts).collect()
        }
        None => loose_commands(script),
    }
}

/// Longer scripts are cut.
const MAX_LOOSE: usize = 64 * 1024;

/// The commands that an unparsable script seems to run: without quotes, split wherever a command may start.
fn loose_commands(script: &str) -> Vec<Vec<String>> {
    let end = (0..=script.len().min(MAX_LOOSE)).rev().find(|at| script.is_char_boundary(*at));
    let script = script[..end.unwrap_or_default()].replace("\\\n", "");
    let parts = script.split(['\n', ';', '|', '&', '(', ')', '`', '{', '}']);
    let mut commands = Vec::new();
    for part in parts {
        let words = part.split_whitespace().map(|word| word.replace(['\'', '"', '\\'], ""));
        let begins = |word: &String| {
            const BEFORE: &[&str] = &["!", "then", "do", "else", "elif", "if", "while", "until", "time"];
            BEFORE.contains(&word.as_str()) || is_assignment(word) || word.starts_with(['<', '>'])
        };
        let words: Vec<String> = words.filter(|word| !word.is_empty()).skip_while(begins).collect();
        if !words.is_empty() {
            commands.push(words);
        }
    }
    commands
}

/// The commands that `find` runs for each file.
fn found_files(arguments: &[String]) -> Vec<Vec<String>> {
    let starts = arguments.iter().enumerate().filter(|(_, word)| FIND_RUNS.contains(&word.as_str()));
    let command = |(index, _): (usize, &String)| -> Vec<String> {
        let words = arguments[index + 1..].iter();
        words.take_while(|word| !matches!(word.as_str(), ";" | "+")).cloned().collect()
    };
    starts.map(command).filter(|words| !words.is_empty()).collect()
}
