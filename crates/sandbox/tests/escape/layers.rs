//! Without a layer some attempt succeeds. Otherwise a missing layer would go unnoticed.

use oarlock_sandbox::testing::SandboxLayer;

use super::attempts::{ATTEMPTS, Way};
use super::{as_normal_user, escaped};

/// A layer that is left out, and attempts that must then succeed.
const WITHOUT: &[(&[SandboxLayer], &[&str])] = &[
    (&[SandboxLayer::Mounts], &["read a hidden file", "reach the host by /dev/shm"]),
    (&[SandboxLayer::Mounts, SandboxLayer::Names], &["create .codex"]),
    (
        &[SandboxLayer::Mounts, SandboxLayer::Landlock, SandboxLayer::Names],
        &["create outside", "write through a link to a folder", "move out"],
    ),
    (&[SandboxLayer::ProcessNamespace], &["see a process outside", "share the process namespace"]),
    (&[SandboxLayer::NetworkNamespace], &["share the network namespace", "see the host's interfaces"]),
    (&[SandboxLayer::NetworkNamespace, SandboxLayer::Seccomp], &["a service on the host by its path"]),
    (
        &[SandboxLayer::NetworkNamespace, SandboxLayer::Seccomp, SandboxLayer::Landlock],
        &["a TCP connection to the host", "a service on the host by its abstract name"],
    ),
    (&[SandboxLayer::IpcNamespace], &["share the ipc namespace"]),
    (&[SandboxLayer::Landlock], &["signal the first process"]),
    (
        &[SandboxLayer::Seccomp],
        &["bpf", "keyctl", "io_uring_setup", "a TCP socket", "a call of the 32-bit kind"],
    ),
    (&[SandboxLayer::Privileges], &["be root", "have capabilities", "read what rights forbid"]),
    (&[SandboxLayer::ProtectedNames], &["write .git/config", "write behind the .git file"]),
    (&[SandboxLayer::ProtectedNames, SandboxLayer::Names], &["create .codex"]),
    (&[SandboxLayer::HiddenPaths], &["read a hidden file", "read a hidden file in the workspace"]),
];

/// Only root can access the kernel's own files.
const WITHOUT_AS_ROOT: &[(&[SandboxLayer], &[&str])] = &[
    (
        &[SandboxLayer::ProcessNamespace, SandboxLayer::Landlock, SandboxLayer::OwnUser],
        &["signal a process outside"],
    ),
    (&[SandboxLayer::ProcMasks, SandboxLayer::OwnUser], &["read the timer list"]),
    (
        &[SandboxLayer::ProcMasks, SandboxLayer::Landlock, SandboxLayer::OwnUser],
        &["set core_pattern", "set memory overcommit"],
    ),
    (&[SandboxLayer::HiddenPaths, SandboxLayer::OwnUser], &["read what only root may read"]),
];

const WITHOUT_AS_USER: &[(&[SandboxLayer], &[&str])] =
    &[(&[SandboxLayer::ProcessNamespace, SandboxLayer::Landlock], &["signal a process outside"])];

fn missed(table: &[(&[SandboxLayer], &[&str])]) -> Vec<String> {
    let mut missed = Vec::new();
    for (without, names) in table {
        let tried: Vec<(&str, Way)> =
            ATTEMPTS.iter().filter(|(name, _)| names.contains(name)).copied().collect();
        assert_eq!(tried.len(), names.len(), "a name in {names:?} is not an attempt");
        let found = escaped(&tried, without);
        for name in *names {
            if !found.iter().any(|found| found.starts_with(&format!("{name}: "))) {
                missed.push(format!("{name} does not need {without:?}"));
            }
        }
        let unstarted = found.into_iter().filter(|found| found.contains("was never started"));
        missed.extend(unstarted);
    }
    missed
}

#[test]
fn every_layer_is_needed() {
    let mut found = missed(WITHOUT);
    let as_root = rustix::process::geteuid().is_root();
    found.extend(missed(if as_root { WITHOUT_AS_ROOT } else { WITHOUT_AS_USER }));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_layer_is_needed_for_a_normal_user() {
    as_normal_user("layers::every_layer_is_needed");
}
