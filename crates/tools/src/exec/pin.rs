//! Only approved contents run: a command gets the files that it would execute as sealed copies of the checked contents,
//! under names that the workspace cannot change.
//!
//! A script sees that name as its own (`$0`). So a script that locates itself that way, and every binary, gets its real
//! path if no sandboxed process could change the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use policy::shell_script;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use sandbox::pinned_path;

use super::words::{ProgramWord, places};

/// These resolve the real path of their script, which a sealed copy does not have.
const NOT_FROM_A_COPY: &[&str] = &["node", "nodejs", "deno", "bun", "tsx", "ts-node"];
/// Texts by which a script locates files next to itself.
const FINDS_ITSELF: &[&[u8]] = &[
    b"$0",
    b"${0",
    b"BASH_SOURCE",
    b"__file__",
    b"argv[0]",
    b"import ",
    b"require",
    b"FindBin",
    b"__dir__",
    b"$PROGRAM_NAME",
    b"%x",
];

/// Sealed copies, and the command line that names them.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) argv: Vec<String>,
    pub(crate) files: Vec<OwnedFd>,
}

/// `contents` by the words of the command. `always` replaces even scripts that locate themselves.
pub(crate) fn pin(argv: &[String], contents: &BTreeMap<&str, Vec<u8>>, always: bool) -> io::Result<Pinned> {
    let mut pinned = Pinned { argv: argv.to_vec(), files: Vec::new() };
    let mut copies: BTreeMap<&str, usize> = BTreeMap::new();
    let mut copy = |place: &ProgramWord, files: &mut Vec<OwnedFd>| -> io::Result<Option<String>> {
        let Some((name, bytes)) = contents.get_key_value(place.name.as_str()) else { return Ok(None) };
        if place.interpreter.as_deref().is_some_and(is_choosy) || names_choosy(bytes) {
            return Ok(None);
        }
        if !always && finds_itself(bytes) {
            return Ok(None);
        }
        let number = match copies.get(name) {
            Some(number) => *number,
            None => {
                files.push(sealed(bytes)?);
                copies.insert(name, files.len() - 1);
                files.len() - 1
            }
        };
        Ok(Some(pinned_path(number)))
    };
    match shell_script(argv) {
        Some(call) => {
            let mut script = call.script.to_owned();
            // From the end, so that earlier positions stay valid.
            for place in places(call.script).iter().rev() {
                if let Some(path) = copy(place, &mut pinned.files)? {
                    script.replace_range(place.range.clone(), &path);
                }
            }
            pinned.argv[2] = script;
        }
        None => {
            let line = policy::shell_line(argv);
            for place in places(&line) {
                let at = pinned.argv.iter().position(|word| *word == place.name);
                if let (Some(at), Some(path)) = (at, copy(&place, &mut pinned.files)?) {
                    pinned.argv[at] = path;
                }
            }
        }
    }
    Ok(pinned)
}

fn is_choosy(interpreter: &str) -> bool {
    let name = interpreter.rsplit('/').next().unwrap_or(interpreter);
    NOT_FROM_A_COPY.contains(&name)
}

/// Its first line names an interpreter that cannot run a copy.
fn names_choosy(bytes: &[u8]) -> bool {
    let Some(line) = bytes.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next())
    else {
        return false;
    };
    String::from_utf8_lossy(line).split_whitespace().any(is_choosy)
}

fn finds_itself(bytes: &[u8]) -> bool {
    // A binary may look for libraries next to itself.
    let is_text = !bytes.contains(&0);
    !is_text || FINDS_ITSELF.iter().any(|word| bytes.windows(word.len()).any(|window| window == *word))
}

fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("approved", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(script: &str, contents: &[(&'static str, &str)], always: bool) -> (String, usize) {
        let argv = ["bash", "-lc", script].map(str::to_owned);
        let contents = contents.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect();
        let pinned = pin(&argv, &contents, always).expect("there is memory");
        (pinned.argv[2].clone(), pinned.files.len())
    }

    #[test]
    fn executed_files_are_replaced_by_copies() {
        let run = [("./run.sh", "echo hi")];
        let cases = [
            ("./run.sh", "/proc/self/fd/200"),
            ("./run.sh a > ./run.sh.log 2>&1", "/proc/self/fd/200 a > ./run.sh.log 2>&1"),
            ("env A=1 timeout 5 ./run.sh; rm ./run.sh", "env A=1 timeout 5 /proc/self/fd/200; rm ./run.sh"),
            ("bash -x './run.sh' ./run.sh", "bash -x /proc/self/fd/200 ./run.sh"),
            ("if . ./run.sh; then echo; fi", "if . /proc/self/fd/200; then echo; fi"),
            ("sh -c './run.sh a'", "sh -c '/proc/self/fd/200 a'"),
            ("echo ./run.sh", "echo ./run.sh"),
            // Another file of that name.
            ("cd x && ./run.sh", "cd x && ./run.sh"),
            ("cd $X && ./run.sh", "cd $X && ./run.sh"),
            // The previous command may change it on purpose.
            ("git pull && ./run.sh", "git pull && ./run.sh"),
            ("cat <<E\n./run.sh\nE\n", "cat <<E\n./run.sh\nE\n"),
        ];
        for (script, expected) in cases {
            let (script, count) = pinned(script, &run, false);
            assert_eq!((script.as_str(), count), (expected, usize::from(expected.contains("/fd/"))));
        }
    }

    #[test]
    fn cd_changes_the_folder_of_later_names() {
        let run = [("./run.sh", "echo here"), ("x/./run.sh", "echo there")];
        assert_eq!(pinned("cd x && ./run.sh", &run, false), ("cd x && /proc/self/fd/200".to_owned(), 1));
        assert_eq!(pinned("(cd x; ./run.sh)", &run, false), ("(cd x; ./run.sh)".to_owned(), 0));
    }

    #[test]
    fn a_script_that_locates_itself_keeps_its_path_if_it_is_not_writable() {
        for text in ["cd \"$(dirname \"$0\")\"", "import helpers", "\0ELF"] {
            let run = [("./run.sh", text)];
            assert_eq!(pinned("./run.sh", &run, false), ("./run.sh".to_owned(), 0));
            assert_eq!(pinned("./run.sh", &run, true), ("/proc/self/fd/200".to_owned(), 1));
        }
        let node = [("./run.js", "#!/usr/bin/env node\n")];
        assert_eq!(pinned("./run.js", &node, true), ("./run.js".to_owned(), 0));
    }

    #[test]
    fn an_argv_without_a_shell_is_replaced_too() {
        let contents = BTreeMap::from([("build.py", b"print(1)".to_vec())]);
        let argv = ["python3", "-u", "build.py", "x y"].map(str::to_owned);
        let pinned = pin(&argv, &contents, false).expect("there is memory");
        assert_eq!(pinned.argv, ["python3", "-u", "/proc/self/fd/200", "x y"]);
    }
}
