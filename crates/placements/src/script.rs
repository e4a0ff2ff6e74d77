//! The few lines of POSIX shell that run in a placement. They arrive as the first line of stdin, so that neither a
//! secret nor an odd character passes through an argument list or the quoting of another shell on the way.

use std::fmt::Write as _;

/// Reads its program from the first line of stdin, byte by byte as POSIX asks of `read` on a pipe, and leaves the rest of
/// stdin to that program. Without newlines, `!` or quotes inside quotes, so that every login shell passes it on unchanged.
pub(crate) const BOOTSTRAP: &str = r#"IFS= read -r l; eval "$l""#;

/// Longest program line: arguments and environment of one process.
pub(crate) const MAX_LINE: usize = 512 << 10;

/// Starts the messages that a process's shell sends over its stderr. No text that a command prints has the random id after it.
pub(crate) const MESSAGE: &str = "\x1eoarlock ";

/// Processes of a spawn are found again by this text in their environment or command line. Ids have no `:`.
pub(crate) fn mark(placement: &str, spawn: &str) -> String {
    format!("oarlock:{placement}:{spawn}")
}

/// A word for `sh`, as one piece of the program line. `$n` holds a newline there.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''").replace('\n', r#"'"$n"'"#))
}

/// The same for a login shell, which has no `$n` and is given no newlines.
pub(crate) fn quote_for_login_shell(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// One process as its shell there gets it.
#[derive(Debug)]
pub(crate) struct ProcessLine<'a> {
    /// Makes the messages of this process unlike everything else.
    pub(crate) spawn: &'a str,
    pub(crate) mark: &'a str,
    pub(crate) argv: &'a [String],
    pub(crate) env: &'a [(&'a str, &'a str)],
    pub(crate) cwd: &'a str,
    /// Used where `cwd` does not exist.
    pub(crate) root: &'a str,
}

/// The shell stays as the parent: it reports the start (pid, start time, whether `cwd` was there) and the exit code, so that
/// a command's end is told from the end of a connection. `exec` in a subshell, because `"$@"` alone would also run builtins.
const RUN: &str = r#"
c=1; cd "$d" 2>/dev/null || { c=0; cd "$r" 2>/dev/null || c=2; };
t=; { IFS= read -r t < /proc/$$/stat; } 2>/dev/null;
t=${t##*) }; set -- $t; s=${20:-0};
[ "$c" = 2 ] && { printf 'the workspace %s does not exist there\n' "$r" >&2; exit 125; };
printf '%sstart %s %s %s\n' "$m" "$$" "$s" "$c" >&2;
trap : TERM INT HUP QUIT;
"#;

pub(crate) fn process_line(process: &ProcessLine) -> String {
    let mut line = String::from(r"n=$(printf '\nx'); n=${n%x}; ");
    let _ = write!(line, "export OARLOCK_SPAWN={}; ", quote(process.mark));
    for (name, value) in process.env {
        let _ = write!(line, "export {name}={}; ", quote(value));
    }
    let _ = write!(line, r"m=$(printf '\036')'oarlock {} '; ", process.spawn);
    let _ = write!(line, "d={}; r={}; {}", quote(process.cwd), quote(process.root), one_line(RUN));
    line.push_str("set --");
    for word in process.argv {
        let _ = write!(line, " {}", quote(word));
    }
    line.push_str(r#"; unset l; (exec "$@"); x=$?; printf '%send %s\n' "$m" "$x" >&2; exit "$x""#);
    line.push('\n');
    line
}

/// Finds the processes of a mark: by environment and command line, then their descendants, then the group and session
/// of the leader while it is there: afterwards its number may be that of somebody else's group. A process that is not
/// dumpable hides its environment from its own user, hence the other ways.
/// `$m` is the mark, `$l` and `$s` the leader's pid and start time, or 0. With `$w` = `tree` only the leader's descendants.
/// Never the shell that looks: in a process namespace of its own it has the number of the leader, and with some haste the
/// same start time, which has a grain of a hundredth of a second.
/// One `cat` reads all processes, because `read` would take a system call for every byte.
const FIND: &str = r#"
n=$(printf '\nx'); n=${n%x}; set -f;
find() {
  a=; g=0; k=' ';
  IFS=$n;
  for t in $(set +f; cat /proc/[0-9]*/stat 2>/dev/null); do
    IFS=' '; p=${t%% *}; [ "$p" = "$$" ] && continue; set -- ${t##*) };
    if [ "$p" = "$l" ] && [ "${20}" = "$s" ]; then g=$l; fi;
    case "$1" in Z|X) continue;; esac;
    a="$a$p $2 $3 $4$n"; [ "$g" = "$p" ] && k=" $p ";
  done;
  if [ "$w" = tree ]; then g=0; else
    IFS=$n;
    for f in $(set +f; grep -lszF -e "$m" /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null); do
      f=${f#/proc/}; f=${f%/*};
      case "$k" in *" $f "*) continue;; esac;
      case "$n$a" in *"$n$f "*) k="$k$f ";; esac;
    done;
  fi;
  o=;
  while [ "$o" != "$k" ]; do o=$k; IFS=$n;
    for t in $a; do
      IFS=' '; set -- $t; case "$k" in *" $1 "*) continue;; esac;
      case "$k" in *" $2 "*) k="$k$1 "; continue;; esac;
      if [ "$g" != 0 ] && { [ "$3" = "$g" ] || [ "$4" = "$g" ]; }; then k="$k$1 "; fi;
    done;
  done;
  IFS=' ';
};
"#;

/// Stops all before it ends any: a process whose parent died while the list was made would not be found again.
const END: &str = r#"
i=0;
while [ "$i" -lt 40 ]; do
  find; [ "$k" = ' ' ] && exit 0;
  b=; while [ "$b" != "$k" ]; do b=$k; kill -s STOP $k 2>/dev/null; find; done;
  kill -s KILL $k 2>/dev/null;
  [ "$i" -gt 2 ] && { sleep 0.05 2>/dev/null || sleep 1; };
  i=$((i+1));
done;
echo "still there:$k" >&2; exit 1;
"#;

/// Ends every process with the mark, and exits with 0 when none is left.
pub(crate) fn end_line(mark: &str, leader: Leader) -> String {
    format!(
        "m={}; w=all; l={}; s={}; {}{}\n",
        quote(mark),
        leader.pid,
        leader.started,
        one_line(FIND),
        one_line(END)
    )
}

/// Sends a signal to what the leader started. The leader is our own shell, which has to report the end.
pub(crate) fn signal_line(signal: &str, leader: Leader) -> String {
    // The shell may not have started the process yet. One that ends meanwhile must not make the whole a failure.
    let send = r#"i=0; find; while [ "$k" = " $l " ] && [ "$i" -lt 20 ]; do i=$((i+1)); sleep 0.05 2>/dev/null || sleep 1; find; done; k=${k# }; k=${k#"$l"}; [ -n "${k# }" ] || exit 1; kill -s "$S" $k 2>/dev/null; exit 0"#;
    let setting = format!("w=tree; l={}; s={}; S={};", leader.pid, leader.started, quote(signal));
    format!("{setting} {} {send}\n", one_line(FIND))
}

/// The shell of a spawned process, by pid and start time as `/proc` has them there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) pid: u32,
    pub(crate) started: u64,
}

impl Leader {
    pub(crate) const UNKNOWN: Self = Self { pid: 0, started: 0 };
}

/// A script with its parameters, as a program line.
pub(crate) fn short_line(script: &str, parameters: &[&str]) -> String {
    let mut line = String::from(r"n=$(printf '\nx'); n=${n%x}; set --");
    for parameter in parameters {
        let _ = write!(line, " {}", quote(parameter));
    }
    format!("{line}; {}\n", one_line(script))
}

/// Every statement of the scripts ends with `;` or a keyword, so that a space may stand for each newline.
fn one_line(script: &str) -> String {
    script.split('\n').map(str::trim).filter(|line| !line.is_empty()).flat_map(|line| [line, " "]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(line: &str) -> (String, i32) {
        let mut child = std::process::Command::new("sh")
            .args(["-c", BOOTSTRAP])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), line.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    }

    #[test]
    fn odd_words_arrive_unchanged() {
        for text in ["", "a b", "it's", "two\nlines\n", "$HOME `id` \\ \" * ! é", "-n", "'\n'"] {
            let line = short_line(r#"printf '%s' "$1""#, &[text]);
            assert_eq!(sh(&line), (text.to_owned(), 0), "{text:?}");
        }
    }

    #[test]
    fn the_rest_of_stdin_belongs_to_the_program() {
        let line = short_line("cat", &[]) + "first\nsecond";
        assert_eq!(sh(&line).0, "first\nsecond");
    }

    #[test]
    fn builtins_are_not_run_in_place_of_commands() {
        let argv = ["exit".to_owned(), "3".to_owned()];
        let process = ProcessLine { spawn: "s", mark: "m", argv: &argv, env: &[], cwd: "/", root: "/" };
        assert_eq!(sh(&process_line(&process)).1, 127);
    }

    #[test]
    fn ending_nothing_succeeds() {
        assert_eq!(sh(&end_line("oarlock:nobody:has-this", Leader::UNKNOWN)).1, 0);
    }
}
