//! Settings of projects by the hundred, the same ones in each run: none gets beyond what the user's own say.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use broken_input::BrokenInput;
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

fn run(text: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    fuzzing::project(text, folder.path());
}

#[test]
fn broken_and_hostile_settings() {
    BrokenInput { seeds: SEEDS, pieces: PIECES, most_changes: 5 }.each(ROUNDS, run);
}
