//! A small machine: trusted programs in one folder, planted ones in the workspace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use oarlock_policy::{CommandQuestion, Escalation, Executables, PolicyVerdict, Rules, decide};
use protocol::{AskForApproval, NetworkAccess, ReadOnlyAccess, SandboxPolicy};
use tempfile::TempDir;

const PROGRAMS: &[&str] = &[
    "awk", "base64", "bash", "bat", "cat", "cp", "curl", "cut", "date", "docker", "echo", "env", "file",
    "find", "git", "grep", "head", "less", "ls", "make", "man", "nice", "npm", "pwd", "python3", "rg", "rm",
    "sed", "sh", "sort", "ssh", "stat", "sudo", "tail", "tar", "timeout", "touch", "tree", "true", "uniq",
    "wc", "which", "xargs", "xxd", "zgrep", "zsh",
];

/// Programs that are not known to be harmless.
const OTHERS: &str =
    "apt-get docker-credential-x gh gnuplot hyperfine latexmk ld-linux-x86-64.so.2 pandoc setarch valgrind";

pub(crate) struct Machine {
    folder: TempDir,
    pub(crate) rules: Rules,
    pub(crate) env: BTreeMap<String, String>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine =
            Self { folder: tempfile::tempdir().unwrap(), rules: Rules::default(), env: BTreeMap::new() };
        fs::create_dir(machine.workspace()).unwrap();
        fs::create_dir(machine.bin()).unwrap();
        for name in PROGRAMS.iter().copied().chain(OTHERS.split(' ')) {
            plant(&machine.bin().join(name));
        }
        for name in ["cat", "ls", "bash", "git", "tool"] {
            plant(&machine.workspace().join(name));
        }
        machine
    }

    pub(crate) fn with_rules(text: &str) -> Self {
        Self { rules: Rules::parse("home.rules", text).unwrap(), ..Self::new() }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    pub(crate) fn executables(&self) -> Executables {
        self.executables_on(&[&self.bin()])
    }

    pub(crate) fn executables_on(&self, path: &[&Path]) -> Executables {
        let path: OsString = std::env::join_paths(path).unwrap();
        Executables::new(&path, &self.workspace(), &[self.workspace()])
            .trusting([self.bin().as_path()])
            .with_environment(&self.env)
    }

    pub(crate) fn decide(
        &self,
        argv: &[String],
        approval: &AskForApproval,
        sandbox: &SandboxPolicy,
    ) -> PolicyVerdict {
        self.ask(argv, approval, sandbox, Escalation::Default, None)
    }

    pub(crate) fn ask(
        &self,
        argv: &[String],
        approval: &AskForApproval,
        sandbox: &SandboxPolicy,
        escalation: Escalation,
        prefix_rule: Option<&[String]>,
    ) -> PolicyVerdict {
        let (rules, executables) = (&self.rules, &self.executables());
        decide(&CommandQuestion { argv, approval, sandbox, escalation, prefix_rule, rules, executables })
    }

    /// A script for the machine's own shell.
    pub(crate) fn shell(&self, script: &str) -> Vec<String> {
        crate::words(&["bash", "-lc", script])
    }
}

pub(crate) fn plant(file: &Path) {
    fs::write(file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn granular(sandbox_approval: bool, rules: bool) -> AskForApproval {
    AskForApproval::Granular {
        sandbox_approval,
        rules,
        skill_approval: true,
        request_permissions: true,
        mcp_elicitations: true,
    }
}

pub(crate) fn approvals() -> Vec<AskForApproval> {
    vec![
        AskForApproval::Untrusted,
        AskForApproval::OnFailure,
        AskForApproval::OnRequest,
        AskForApproval::Never,
        granular(true, true),
        granular(false, true),
        granular(true, false),
    ]
}

pub(crate) fn read_only() -> SandboxPolicy {
    SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false }
}

pub(crate) fn workspace_write() -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite {
        network_access: true,
        writable_roots: Vec::new(),
        read_only_access: ReadOnlyAccess::FullAccess,
        exclude_tmpdir_env_var: false,
        exclude_slash_tmp: false,
    }
}

pub(crate) fn external() -> SandboxPolicy {
    SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted }
}

/// A verdict in one word per part.
pub(crate) fn brief(verdict: &PolicyVerdict) -> String {
    match verdict {
        PolicyVerdict::Run { sandbox, .. } => format!("run {sandbox:?}"),
        PolicyVerdict::Ask { sandbox, .. } => format!("ask {sandbox:?}"),
        PolicyVerdict::Forbid { .. } => "forbid".to_owned(),
    }
}
