//! Tens of thousands of broken scripts and rule files, the same in each run: nothing panics, and what is parsed can be
//! written and parsed again.

use broken_input::BrokenInput;
use oarlock_policy::fuzzing;

const ROUNDS: usize = 30_000;

const SCRIPTS: &[&str] = &[
    "ls -la sub && cat 'a b' | head -n 5; cd x\nrg \"foo|bar$\" src",
    "python3 - <<'EOF'\nprint(\"$x\")\nEOF\n",
    "bash -lc \"bash -c 'find . -name \\\"*.rs\\\" -exec rm {} +'\"",
    "git -C x log --format=%G? || sudo rm -rf / & echo $(id) `id` ${x} $'a' {a,b}",
    "sed -n '1,5p' \u{202e}\u{a0}file \\\n --x=~/y",
];

const RULES: &[&str] = &[
    "X = [\"git\"]\nprefix_rule(pattern = X + [[\"push\", 'fetch']], decision=\"prompt\", match=[\"git push\"])\n",
    "network_rule(host=\"example.com\", protocol=\"https\", decision=\"deny\", justification=r'a\\b')\n",
    "host_executable(name='git', paths=['/usr/bin/git',])  # comment\n",
    "prefix_rule([\"\"\"a\nb\"\"\", \"\\x41\\u0041\\101\\n\"], \"forbidden\", not_match=[[\"x\"]], justification=(\"a\" + \"b\"))",
];

const PIECES: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\n",
    " ",
    "&&",
    "||",
    "|",
    ";",
    "&",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    "<<",
    "<",
    ">",
    "*",
    "~",
    "=",
    "#",
    "[",
    "]",
    ",",
    "+",
    "\"\"\"",
    "r'",
    "\\x",
    "\\u",
    "\r",
    "\u{1f600}",
    "\u{202e}",
    "\0",
    "EOF",
    "bash -c ",
    "prefix_rule(",
    "None",
    "cd ",
    "xargs ",
    "sed -n ",
    "awk ",
    "-",
    "--",
];

fn run(seeds: &[&str], target: fn(&[u8])) {
    BrokenInput { seeds, pieces: PIECES, most_changes: 9 }.each(ROUNDS, target);
}

#[test]
fn broken_scripts() {
    run(SCRIPTS, fuzzing::command_line);
}

#[test]
fn broken_rule_files() {
    run(RULES, fuzzing::rule_file);
}
