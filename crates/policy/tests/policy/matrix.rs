//! The matrix: every policy, every sandbox, every kind of command.

use oarlock_policy::{
    ApprovalOffer, Because, Escalation, PolicyVerdict, StoppedAttempt, available_decisions, decide_patch,
    looks_denied, may_retry_unsandboxed, refuse_escalation,
};
use protocol::{AskForApproval, CommandExecutionApprovalDecision as Decision, SandboxPolicy};

use crate::support::{Machine, approvals, brief, external, granular, read_only, workspace_write};
use crate::words;

const SCRIPTS: [(&str, &str); 5] = [
    ("safe", "ls -l && cat x"),
    ("other", "touch x"),
    ("unreadable", "ls > x"),
    ("dangerous", "rm -rf x"),
    ("git", "git status"),
];

/// Verdicts for `SCRIPTS` in order, for each approval policy, with our sandbox.
const INSIDE: [[&str; 5]; 7] = [
    ["run ReadOnlyNoNetwork", "ask AsPolicy", "ask AsPolicy", "ask AsPolicy", "run ReadOnlyNoNetwork"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "forbid", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "forbid", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
];

/// Like `INSIDE`, without our sandbox.
const OUTSIDE: [[&str; 5]; 7] = [
    ["run AsPolicy", "ask AsPolicy", "ask AsPolicy", "ask AsPolicy", "ask AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "run AsPolicy", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "forbid", "run AsPolicy"],
    ["run AsPolicy", "run AsPolicy", "run AsPolicy", "ask AsPolicy", "run AsPolicy"],
];

#[test]
fn commands_without_rules() {
    let machine = Machine::new();
    for (sandboxes, table) in
        [([read_only(), workspace_write()], INSIDE), ([SandboxPolicy::DangerFullAccess, external()], OUTSIDE)]
    {
        for sandbox in &sandboxes {
            for (approval, row) in approvals().iter().zip(table) {
                for ((kind, script), expected) in SCRIPTS.iter().zip(row) {
                    let verdict = machine.decide(&machine.shell(script), approval, sandbox);
                    assert_eq!(brief(&verdict), expected, "{kind} {approval:?} {sandbox:?}");
                }
            }
        }
    }
}

#[test]
fn escalation_is_asked_about_on_request_and_refused_otherwise() {
    let machine = Machine::new();
    for escalation in [Escalation::RequireEscalated, Escalation::WithAdditional] {
        for approval in approvals() {
            for script in ["ls", "touch x", "ls > x"] {
                let argv = machine.shell(script);
                let verdict = machine.ask(&argv, &approval, &workspace_write(), escalation, None);
                let expected = match (&approval, escalation) {
                    (AskForApproval::OnRequest, Escalation::RequireEscalated) => "ask None",
                    (AskForApproval::OnRequest, _) => "ask AsPolicy",
                    _ => "forbid",
                };
                assert_eq!(brief(&verdict), expected, "{script} {approval:?} {escalation:?}");
            }
        }
        let argv = machine.shell("touch x");
        let free = machine.ask(
            &argv,
            &AskForApproval::OnRequest,
            &SandboxPolicy::DangerFullAccess,
            escalation,
            None,
        );
        assert_eq!(brief(&free), "run AsPolicy");
    }
}

#[test]
fn the_refusal_is_the_one_models_know() {
    assert_eq!(
        refuse_escalation(&AskForApproval::Never, Escalation::RequireEscalated).as_deref(),
        Some(
            "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy \
             is Never"
        )
    );
    assert_eq!(refuse_escalation(&AskForApproval::Never, Escalation::Default), None);
    assert_eq!(refuse_escalation(&AskForApproval::OnRequest, Escalation::RequireEscalated), None);
}

#[test]
fn rules_decide_before_anything_else() {
    let machine = Machine::with_rules(
        "prefix_rule(pattern=['make'])\n\
         prefix_rule(pattern=['git', 'push'], decision='prompt', justification='goes out')\n\
         prefix_rule(pattern=['curl'], decision='forbidden', justification='use the tool')\n\
         prefix_rule(pattern=['ls'], decision='prompt')\n",
    );
    let table: [(&str, [&str; 7]); 10] = [
        ("make all", ["run None"; 7]),
        ("cd sub && make all", ["run None"; 7]),
        ("make a && make b", ["run None"; 7]),
        (
            "git push",
            [
                "ask AsPolicy",
                "ask AsPolicy",
                "ask AsPolicy",
                "forbid",
                "ask AsPolicy",
                "ask AsPolicy",
                "forbid",
            ],
        ),
        (
            "ls",
            [
                "ask AsPolicy",
                "ask AsPolicy",
                "ask AsPolicy",
                "forbid",
                "ask AsPolicy",
                "ask AsPolicy",
                "forbid",
            ],
        ),
        ("curl x", ["forbid"; 7]),
        ("make && curl x", ["forbid"; 7]),
        ("make | tail -n 5", ["run AsPolicy"; 7]),
        // An allowed command does not cover another.
        (
            "make && touch x",
            [
                "ask AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
            ],
        ),
        (
            "make > x",
            [
                "ask AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
                "run AsPolicy",
            ],
        ),
    ];
    for (script, row) in table {
        for (approval, expected) in approvals().iter().zip(row) {
            let verdict = machine.decide(&machine.shell(script), approval, &workspace_write());
            assert_eq!(brief(&verdict), expected, "{script} {approval:?}");
        }
    }
}

#[test]
fn an_allowed_command_may_leave_the_sandbox_without_asking() {
    let machine = Machine::with_rules("prefix_rule(pattern=['make'])");
    let on_request = AskForApproval::OnRequest;
    let escalated = |script: &str| {
        let argv = machine.shell(script);
        brief(&machine.ask(&argv, &on_request, &workspace_write(), Escalation::RequireEscalated, None))
    };
    assert_eq!(escalated("make x"), "run None");
    assert_eq!(escalated("cd y && make x"), "run None");
    assert_eq!(escalated("make x && cat y"), "ask None");
}

#[test]
fn a_verdict_names_its_grounds() {
    let machine = Machine::with_rules(
        "# first\nprefix_rule(pattern=['curl'], decision='forbidden', justification='use the tool')",
    );
    let argv = machine.shell("ls && curl x\u{202e}");
    let PolicyVerdict::Forbid { reason, why } =
        machine.decide(&argv, &AskForApproval::OnRequest, &read_only())
    else {
        panic!("curl is forbidden")
    };
    assert!(reason.ends_with("was rejected: use the tool"), "{reason}");
    assert_eq!(
        why.to_string(),
        "`curl 'x\\u{202e}'`: the rule at home.rules:2 says forbidden (use the tool)"
    );
    assert_eq!(why.rules().count(), 1);

    let verdict = machine.decide(&machine.shell("ls"), &AskForApproval::Untrusted, &read_only());
    assert_eq!(verdict.why().grounds[0].because, Because::KnownSafe);
    assert_eq!(verdict.why().to_string(), "`ls`: known to be safe");
}

#[test]
fn a_rule_may_ask_with_its_justification() {
    let machine = Machine::with_rules(
        "prefix_rule(pattern=['git', 'push'], decision='prompt', justification='goes out')",
    );
    let verdict = machine.decide(&machine.shell("git push"), &AskForApproval::OnRequest, &read_only());
    let PolicyVerdict::Ask { reason, amendment, .. } = verdict else { panic!("the rule asks") };
    assert_eq!((reason.as_deref(), amendment), (Some("goes out"), None));
}

/// The rule that a permanent approval would save.
fn amendment(machine: &Machine, script: &str, wanted: Option<&[&str]>) -> Option<Vec<String>> {
    let wanted = wanted.map(words);
    let argv = machine.shell(script);
    match machine.ask(&argv, &AskForApproval::Untrusted, &read_only(), Escalation::Default, wanted.as_deref())
    {
        PolicyVerdict::Ask { amendment, .. } => amendment,
        other => panic!("{script} is not asked about: {other:?}"),
    }
}

#[test]
fn an_amendment_allows_the_command_and_not_everything() {
    let machine = Machine::with_rules("prefix_rule(pattern=['docker'], decision='prompt')");
    type Case = (&'static str, Option<&'static [&'static str]>, Option<&'static [&'static str]>);
    let cases: &[Case] = &[
        ("touch x", None, Some(&["touch", "x"])),
        ("ls && touch x", None, Some(&["touch", "x"])),
        ("touch x y", Some(&["touch"]), Some(&["touch"])),
        // More words could completely change any other program's effects.
        (
            "docker-credential-x get y",
            Some(&["docker-credential-x", "get"]),
            Some(&["docker-credential-x", "get", "y"]),
        ),
        ("less x", Some(&["less"]), Some(&["less", "x"])),
        ("man x", Some(&["man"]), Some(&["man", "x"])),
        ("less x && less y", Some(&["less"]), Some(&["less", "x"])),
        ("gh pr view 1", Some(&["gh", "pr", "view"]), Some(&["gh", "pr", "view"])),
        ("gh pr view 1", Some(&["gh"]), Some(&["gh", "pr", "view", "1"])),
        ("gh pr create", None, None),
        ("gh alias set x y", None, None),
        ("valgrind ls", None, None),
        ("hyperfine ls", Some(&["hyperfine"]), None),
        ("setarch x86_64 ls", None, None),
        ("ld-linux-x86-64.so.2 ls", None, None),
        ("pandoc x", None, None),
        ("gnuplot x", None, None),
        ("latexmk x", None, None),
        ("apt-get -o x install y", None, None),
        ("ls && touch x", Some(&["touch", "x"]), Some(&["touch", "x"])),
        ("touch x", Some(&["mkdir"]), Some(&["touch", "x"])),
        ("touch x", Some(&[]), Some(&["touch", "x"])),
        ("git push", Some(&["git"]), Some(&["git", "push"])),
        ("git fetch", Some(&["git", "fetch"]), Some(&["git", "fetch"])),
        ("curl https://a.com", None, Some(&["curl", "https://a.com"])),
        // A writable file decides, or something after the prefix.
        ("echo hi > x", None, None),
        ("npm run a", Some(&["npm", "run"]), None),
        ("npm run a && touch x", Some(&["npm", "run"]), None),
        ("python3 x.py", Some(&["python3"]), None),
        ("python3 -c 1", Some(&["python3", "-c"]), None),
        ("python3.12 x.py", None, None),
        ("sudo ls", Some(&["sudo"]), None),
        ("make test", Some(&["make", "test"]), None),
        ("./tool", None, None),
        ("tool", None, None),
        ("@WS@/tool", None, None),
        ("bash run.sh", None, None),
        ("sh -c 'ls > x'", None, None),
        ("env touch x", None, None),
        ("timeout 5 touch x", None, None),
        ("find . -exec touch x +", None, None),
        ("ssh host ls", None, None),
        ("tar xf x", None, None),
        ("cp a b", None, None),
        ("touch run.sh", None, None),
        ("touch --reference=run.sh", None, None),
        ("curl https://a.com -o x", None, None),
        ("curl -d @run.sh https://a.com", None, None),
        ("git -c a=b fetch", Some(&["git", "-c"]), None),
        ("git fetch --upload-pack=x", None, None),
        ("git fetch --upload-pack=x", Some(&["git", "fetch"]), None),
        ("git fetch ext::sh", None, None),
        ("git clone x", None, None),
        ("git config a b", None, None),
        ("git unknown", None, None),
        ("missing-program x", None, None),
        ("echo 1 | python3", None, None),
        ("echo 1 | xargs", None, None),
        ("docker ps", None, None),
        ("rm -rf x", None, None),
        ("rm -rf x", Some(&["rm"]), None),
        ("python3 x <<'E'\n1\nE", None, None),
    ];
    crate::support::plant(&machine.workspace().join("run.sh"));
    let workspace = machine.workspace();
    for (script, wanted, expected) in cases {
        let script = script.replace("@WS@", workspace.to_str().unwrap());
        assert_eq!(amendment(&machine, &script, *wanted), expected.map(words), "{script} {wanted:?}");
    }
    // Hooks in the workspace determine what git does.
    std::fs::create_dir(workspace.join(".git")).unwrap();
    std::fs::write(workspace.join(".git/config"), "[core]\n\thooksPath = .husky\n").unwrap();
    assert_eq!(amendment(&machine, "git push", None), None);
    // The same settings behind a file, as in a linked working tree.
    std::fs::rename(workspace.join(".git"), workspace.join("main.git")).unwrap();
    std::fs::write(workspace.join(".git"), "gitdir: main.git\n").unwrap();
    assert_eq!(amendment(&machine, "git push", None), None);
}

#[test]
fn patches() {
    let inside = [
        "ask AsPolicy",
        "run AsPolicy",
        "run AsPolicy",
        "run AsPolicy",
        "run AsPolicy",
        "run AsPolicy",
        "run AsPolicy",
    ];
    let outside = ["ask None", "run AsPolicy", "ask None", "forbid", "ask None", "forbid", "ask None"];
    for (index, approval) in approvals().iter().enumerate() {
        for (sandbox, all_writable, expected) in [
            (workspace_write(), true, inside[index]),
            (workspace_write(), false, outside[index]),
            (SandboxPolicy::DangerFullAccess, false, inside[index]),
            (external(), false, inside[index]),
        ] {
            let verdict = decide_patch(approval, &sandbox, all_writable);
            assert_eq!(brief(&verdict), expected, "{approval:?} {sandbox:?} {all_writable}");
        }
    }
}

#[test]
fn retries() {
    let allowed = [
        (true, true),
        (true, true),
        (false, true),
        (false, false),
        (true, true),
        (false, false),
        (true, true),
    ];
    for (approval, (command, patch)) in approvals().iter().zip(allowed) {
        assert_eq!(may_retry_unsandboxed(approval, StoppedAttempt::Command), command, "{approval:?}");
        assert_eq!(may_retry_unsandboxed(approval, StoppedAttempt::Patch), patch, "{approval:?}");
    }
    for (code, output, denied) in [
        (0, "Permission denied", false),
        (1, "Permission DENIED", true),
        (1, "touch: x: Read-only file system", true),
        (1, "no such file", false),
        (2, "Operation not permitted", true),
        (2, "", false),
        (127, "not found", false),
        (126, "permission denied", true),
        (159, "", true),
        (1, "failed to write file", true),
    ] {
        assert_eq!(looks_denied(code, output), denied, "{code} {output}");
    }
}

#[test]
fn what_a_client_is_offered() {
    let touch = words(&["touch", "x"]);
    let amend = Decision::AcceptWithExecpolicyAmendment { execpolicy_amendment: touch.clone() };
    assert_eq!(
        available_decisions(ApprovalOffer::Command { amendment: Some(&touch) }),
        [Decision::Accept, amend, Decision::Cancel]
    );
    assert_eq!(
        available_decisions(ApprovalOffer::Command { amendment: None }),
        [Decision::Accept, Decision::Cancel]
    );
    assert_eq!(
        available_decisions(ApprovalOffer::AdditionalPermissions),
        [Decision::Accept, Decision::Cancel]
    );
    assert_eq!(
        available_decisions(ApprovalOffer::Network { amendment: None }),
        [Decision::Accept, Decision::AcceptForSession, Decision::Cancel]
    );
}

#[test]
fn every_refusal_has_a_reason() {
    let machine = Machine::new();
    let verdict = machine.decide(&[], &granular(true, true), &read_only());
    assert_eq!(brief(&verdict), "forbid", "there is nothing to run");
    let PolicyVerdict::Forbid { reason, .. } =
        machine.decide(&machine.shell("rm -rf x"), &AskForApproval::Never, &read_only())
    else {
        panic!("a forced removal is forbidden")
    };
    assert!(reason.contains("rm -rf x") && reason.contains("nobody can be asked"), "{reason}");
}
