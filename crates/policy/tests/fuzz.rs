//! Broken scripts and rule files by the ten thousand, the same ones in each run: nothing panics, and what is read can
//! be written and read again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

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

/// Xorshift: no more than needed to be different each time and the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }
}

fn mutate(text: &mut Vec<u8>, seeds: &[&str], random: &mut Random) {
    let at = random.below(text.len() + 1);
    match random.below(6) {
        0 if at < text.len() => text[at] ^= 1 << random.below(8),
        1 => text.truncate(at),
        2 => drop(text.drain(at..(at + random.below(8)).min(text.len()))),
        3 => {
            let seed = seeds[random.below(seeds.len())].as_bytes();
            let from = random.below(seed.len());
            text.splice(at..at, seed[from..(from + random.below(20)).min(seed.len())].iter().copied());
        }
        _ => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
    }
}

fn run(seeds: &[&str], rounds: usize, target: fn(&[u8])) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for seed in seeds {
        target(seed.as_bytes());
    }
    for _ in 0..rounds {
        let mut text = seeds[random.below(seeds.len())].as_bytes().to_vec();
        for _ in 0..=random.below(8) {
            mutate(&mut text, seeds, &mut random);
        }
        target(&text);
    }
}

#[test]
fn broken_scripts() {
    run(SCRIPTS, ROUNDS, fuzzing::command_line);
}

#[test]
fn broken_rule_files() {
    run(RULES, ROUNDS, fuzzing::rule_file);
}
