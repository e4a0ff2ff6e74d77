//! Settings of projects by the hundred, the same ones in each run: none gets beyond what the user's own say.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oarlock_config::fuzzing;

const ROUNDS: usize = 400;

const SEEDS: &[&str] = &[
    "sandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\nnotify = [\"x\"]\n",
    "profile = \"p\"\n[profiles.p]\nsandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n",
    "[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = [\"/\"]\n[features]\nuse_legacy_landlock = true\n",
    "model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nname = \"p\"\nbase_url = \"http://x\"\n[mcp_servers.s]\ncommand = \"x\"\n",
    "[shell_environment_policy]\ninherit = \"all\"\nset = { PATH = \"/x\" }\n[projects.\"/\"]\ntrust_level = \"trusted\"\n",
    "model = \"m\"\n\u{1}prefix_rule(pattern=[\"rm\"], decision=\"allow\")\n",
];

const PIECES: &[&str] = &[
    "\n",
    "=",
    "\"",
    "'",
    "[",
    "]",
    ".",
    "{",
    "}",
    "sandbox_mode",
    "approval_policy",
    "\"never\"",
    "profiles.p.",
    "features.",
    "use_legacy_landlock = true\n",
    "sandbox_mode = \"danger-full-access\"\n",
    "[profiles.p]\n",
    "profile = \"p\"\n",
    "mcp_servers.x.command = \"y\"\n",
    "\u{1}",
    "\u{0}",
    "\u{feff}",
    "#",
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

fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    match random.below(6) {
        0 if at < text.len() => text[at] ^= 1 << random.below(8),
        1 => text.truncate(at),
        2 => drop(text.drain(at..(at + random.below(8)).min(text.len()))),
        3 => {
            let seed = SEEDS[random.below(SEEDS.len())].as_bytes();
            text.splice(at..at, seed.iter().copied());
        }
        _ => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
    }
}

fn run(text: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    fuzzing::project(text, folder.path());
}

#[test]
fn broken_and_hostile_settings() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    SEEDS.iter().for_each(|seed| run(seed.as_bytes()));
    for _ in 0..ROUNDS {
        let mut text = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            mutate(&mut text, &mut random);
        }
        run(&text);
    }
}
