//! Files of a project that would never end or never begin: every command answers all the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::RunInTime;

use crate::support::Place;

#[test]
fn every_command_answers_whatever_a_project_holds() {
    let commands: [&[&str]; 5] = [
        &["doctor"],
        &["policy", "check", "--", "ls"],
        &["debug", "prompt"],
        &["exec", "--provider", "offline", "say hello"],
        &["trust"],
    ];
    for place_in_project in [".codex/config.toml", ".git", "AGENTS.md", ".codex/skills/s/SKILL.md"] {
        for kind in ["pipe", "/dev/zero"] {
            let place = Place::new();
            fs::remove_dir(place.folder().join(".git")).expect("removed");
            let path = place.folder().join(place_in_project);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            match kind {
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().expect("run").success()),
                device => symlink(device, &path).expect("linked"),
            }
            for arguments in commands {
                let began = Instant::now();
                // Half a gigabyte of address space for data: reading without end would end it.
                let mut limited = Command::new("prlimit");
                let plain = place.command(arguments);
                limited.args(["--data=536870912"]).arg(plain.get_program()).args(plain.get_args());
                limited.current_dir(place.folder()).stdin(std::process::Stdio::null());
                limited.env_clear().envs(std::env::vars()).env_remove("OPENAI_API_KEY");
                limited.env("OARLOCK_HOME", place.home()).env("HOME", place.root());
                let ran = limited.output_in_time();
                assert!(ran.status.code().is_some(), "{place_in_project} {kind} {arguments:?}: {ran:?}");
                assert!(began.elapsed() < Duration::from_secs(20), "{place_in_project} {kind} {arguments:?}");
            }
        }
    }
}
