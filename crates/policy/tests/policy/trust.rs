//! A rule that allows a name is about the program, not about any file of that name.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use oarlock_policy::{
    Because, CommandQuestion, Escalation, Executables, PolicyVerdict, Rules, SandboxChoice, decide,
};
use protocol::AskForApproval;

use crate::support::{Machine, approvals, brief, plant, workspace_write};
use crate::words;

fn machine() -> Machine {
    Machine::with_rules("prefix_rule(['git', 'fetch'])\nprefix_rule(['tool'])")
}

fn judged(machine: &Machine, executables: &Executables, script: &str) -> PolicyVerdict {
    let argv = words(&["bash", "-c", script]);
    decide(&CommandQuestion {
        argv: &argv,
        approval: &AskForApproval::Never,
        sandbox: &workspace_write(),
        escalation: Escalation::Default,
        prefix_rule: None,
        rules: &machine.rules,
        executables,
    })
}

/// Whether the rule lets `git fetch` leave the sandbox when these folders are its `PATH`.
fn leaves(machine: &Machine, path: &[&Path]) -> bool {
    let verdict = judged(machine, &machine.executables_on(path), "git fetch");
    let outside = matches!(verdict, PolicyVerdict::Run { sandbox: SandboxChoice::None, .. });
    assert!(outside || matches!(verdict.why().grounds[0].because, Because::Unheld(_)), "{verdict:?}");
    outside
}

#[test]
fn a_planted_program_does_not_leave_the_sandbox() {
    let machine = machine();
    let (bin, workspace) = (machine.bin(), machine.workspace());
    let venv = workspace.join(".venv/bin");
    assert!(leaves(&machine, &[&bin]));
    assert!(leaves(&machine, &[Path::new("/nonexistent/folder"), &bin, &workspace]));
    // A workspace folder before the right one: a command can put `git` there at any time.
    assert!(!leaves(&machine, &[&venv, &bin]), "the folder is not there yet");
    fs::create_dir_all(&venv).unwrap();
    assert!(!leaves(&machine, &[&venv, &bin]), "the folder is empty");
    plant(&venv.join("git"));
    assert!(!leaves(&machine, &[&venv, &bin]));
    // Folders relative to the command's folder.
    for relative in ["", ".", "bin", "../bin"] {
        assert!(!leaves(&machine, &[Path::new(relative), &bin]), "{relative:?}");
    }
    assert!(!leaves(&machine, &[&workspace.join("../ws"), &bin]));
}

#[test]
fn links_that_commands_can_change_are_not_trusted() {
    let machine = machine();
    let (bin, workspace) = (machine.bin(), machine.workspace());
    let top = workspace.parent().unwrap().to_owned();
    let folder = |name: &str| -> PathBuf {
        fs::create_dir(top.join(name)).unwrap();
        top.join(name)
    };
    // From a trusted folder into the workspace.
    let one = folder("one");
    symlink(workspace.join("git"), one.join("git")).unwrap();
    assert!(!leaves(&machine, &[&one, &bin]));
    // Through the workspace and out again, to the right program for now.
    let two = folder("two");
    symlink(bin.join("git"), workspace.join("detour")).unwrap();
    symlink(workspace.join("detour"), two.join("git")).unwrap();
    assert!(!leaves(&machine, &[&two, &bin]));
    // The folder itself is a link in the workspace, or to it.
    symlink(&bin, workspace.join("link-to-bin")).unwrap();
    assert!(!leaves(&machine, &[&workspace.join("link-to-bin"), &bin]));
    symlink(&workspace, top.join("link-to-ws")).unwrap();
    assert!(!leaves(&machine, &[&top.join("link-to-ws"), &bin]));
    // Links among folders that commands cannot write are as good as their targets.
    let three = folder("three");
    symlink("../bin/git", three.join("git")).unwrap();
    symlink("three", top.join("link-to-three")).unwrap();
    assert!(leaves(&machine, &[&top.join("link-to-three"), &bin]));
    // A cycle.
    let four = folder("four");
    symlink("git", four.join("git")).unwrap();
    assert!(leaves(&machine, &[&four, &bin]), "such a link runs nothing");
    // Writable by everyone.
    let five = folder("five");
    plant(&five.join("git"));
    fs::set_permissions(five.join("git"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!leaves(&machine, &[&five, &bin]));
    fs::set_permissions(five.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(leaves(&machine, &[&five, &bin]), "the user's own folder of tools");
    fs::set_permissions(&five, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!leaves(&machine, &[&five, &bin]));
}

#[test]
fn other_spellings_of_the_name_do_not_leave_the_sandbox() {
    let machine = machine();
    for script in [
        "./git fetch",
        "env git fetch",
        "env PATH=. git fetch",
        "command git fetch",
        "PATH=. git fetch",
        "export PATH=.; git fetch",
        "hash -p ./git git; git fetch",
        "alias git=./git; git fetch",
        "git() { ./git; }; git fetch",
        "exec git fetch",
        "sudo git fetch",
        "git fetch --upload-pack=./evil .",
        "git fetch --upload-pac ./evil .",
        "git fetch ext::./evil",
        "git -c core.sshCommand=./evil fetch",
        "git fetch -c core.sshCommand=./evil --exec=./evil",
        "cd . && git fetch --upload-pack ./evil x",
        "tool",
    ] {
        for approval in approvals() {
            let argv = machine.shell(script);
            let verdict = machine.decide(&argv, &approval, &workspace_write());
            let outside = matches!(verdict, PolicyVerdict::Run { sandbox: SandboxChoice::None, .. });
            assert!(!outside, "{script} {approval:?}: {verdict:?}");
        }
    }
    let verdict = judged(&machine, &machine.executables(), "cd sub && git fetch --all");
    assert_eq!(brief(&verdict), "run None");
}

/// A folder can be made to look like a repository, whose settings name programs to run.
#[test]
fn a_repository_that_commands_made_does_not_let_git_out() {
    let machine = machine();
    let evil = machine.workspace().join("sub/evil");
    for part in ["objects", "refs", "deeper"] {
        fs::create_dir_all(evil.join(part)).unwrap();
    }
    fs::write(evil.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir_all(machine.workspace().join("real/.git")).unwrap();
    symlink(&evil, machine.workspace().join("link")).unwrap();
    for (script, expected) in [
        ("git fetch", "run None"),
        ("cd sub && git fetch", "run None"),
        ("cd real && git fetch", "run None"),
        ("cd sub/evil && git fetch", "run AsPolicy"),
        ("cd sub && cd evil && git fetch", "run AsPolicy"),
        ("cd sub/evil/deeper && git fetch", "run AsPolicy"),
        ("cd -P link && git fetch", "run AsPolicy"),
        ("cd real && cd ../link && git fetch", "run AsPolicy"),
    ] {
        assert_eq!(brief(&judged(&machine, &machine.executables(), script)), expected, "{script}");
    }
}

/// A file `.git` counts as its target, because commands could have created it without protection.
#[test]
fn a_file_that_leads_to_settings_a_command_can_write_takes_no_rule_out() {
    let machine = machine();
    let at = |name: &str| machine.workspace().join(name);
    for folder in ["evil/deeper", "sub/deeper", "tree", ".git/worktrees/tree", "linked", "half", "own/.git"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for (file, text) in [
        ("evil/config", "[core]\nfsmonitor = ./run\n"),
        ("sub/.git", "gitdir: ../evil\n"),
        ("tree/.git", "gitdir: ../.git/worktrees/tree\n"),
        (".git/worktrees/tree/commondir", "../..\n"),
        ("half/.git", "gitdir: ../own/.git\n"),
        ("own/.git/commondir", "../../evil\n"),
        ("linked/.git", "gitdir: ../nowhere\n"),
    ] {
        fs::write(at(file), text).unwrap();
    }
    for (script, expected) in [
        ("cd tree && git fetch", "run None"),
        ("cd linked && git fetch", "run None"),
        ("cd sub && git fetch", "run AsPolicy"),
        ("cd sub/deeper && git fetch", "run AsPolicy"),
        ("cd half && git fetch", "run AsPolicy"),
    ] {
        assert_eq!(brief(&judged(&machine, &machine.executables(), script)), expected, "{script}");
    }
}

#[test]
fn a_path_in_a_rule_is_that_file_where_commands_cannot_write_it() {
    let plain = Machine::new();
    let (inside, outside) = (plain.workspace().join("tool"), plain.bin().join("touch"));
    let text = format!(
        "prefix_rule(['{}'])\nprefix_rule(['{}'])\nprefix_rule(['./run.sh'])",
        inside.display(),
        outside.display()
    );
    let verdict = |rules: &Rules, program: &str| {
        let executables = plain.executables();
        let argv = words(&[program]);
        brief(&decide(&CommandQuestion {
            argv: &argv,
            approval: &AskForApproval::Never,
            sandbox: &workspace_write(),
            escalation: Escalation::Default,
            prefix_rule: None,
            rules,
            executables: &executables,
        }))
    };
    let rules = Rules::parse("mine.rules", &text).unwrap();
    assert_eq!(verdict(&rules, outside.to_str().unwrap()), "run None");
    assert_eq!(verdict(&rules, inside.to_str().unwrap()), "run AsPolicy");
    assert_eq!(verdict(&rules, "./run.sh"), "run None", "the user's own rule for a file of the project");
}

/// Rules that earlier releases offered are in the file of approvals; rules in other files are the user's own.
#[test]
fn rules_from_approvals_do_not_allow_the_contents_of_writable_files() {
    let mut machine = Machine::new();
    let home = tempfile::tempdir().unwrap();
    let rules = home.path().join("rules");
    fs::create_dir(&rules).unwrap();
    let text = "prefix_rule(pattern=['./run.sh'], decision='allow')\n\
        prefix_rule(pattern=['python3', 'build.py'], decision='allow')\n\
        prefix_rule(pattern=['bash', 'scripts/x.sh'], decision='allow')\n\
        prefix_rule(pattern=['make', 'test'], decision='allow')\n\
        prefix_rule(pattern=['bash', '-lc', './run.sh > x'], decision='allow')\n\
        prefix_rule(pattern=['touch'], decision='allow')\n";
    let scripts = ["./run.sh", "python3 build.py", "bash scripts/x.sh", "make test", "./run.sh > x"];
    for (file, expected) in [("default.rules", "run AsPolicy"), ("mine.rules", "run None")] {
        fs::write(rules.join(file), text).unwrap();
        let (loaded, warnings) = Rules::load(&[home.path().to_owned()]);
        assert_eq!(warnings, []);
        machine.rules = loaded;
        for script in scripts {
            let verdict = machine.decide(&machine.shell(script), &AskForApproval::Never, &workspace_write());
            assert_eq!(brief(&verdict), expected, "{file}: {script}");
        }
        let verdict = machine.decide(&machine.shell("touch x"), &AskForApproval::Never, &workspace_write());
        assert_eq!(brief(&verdict), "run None");
        fs::remove_file(rules.join(file)).unwrap();
    }
}

/// More words could completely change most programs' effects.
#[test]
fn a_rule_from_an_approval_covers_only_that_command_line() {
    let mut machine = Machine::new();
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("rules")).unwrap();
    let text = "prefix_rule(pattern=['docker-credential-x', 'get'])\n\
        prefix_rule(pattern=['less', 'x'])\n\
        prefix_rule(pattern=['git', 'push'])\n\
        prefix_rule(pattern=['gh', 'pr', 'view'])\n\
        prefix_rule(pattern=['gh', 'api'])\n\
        prefix_rule(pattern=['touch'])\n";
    let cases = [
        ("docker-credential-x get", true),
        ("docker-credential-x get --run=x", false),
        ("less x", true),
        ("less x y", false),
        ("git push origin main", true),
        ("gh pr view 1", true),
        ("gh api repos/x", false),
        ("touch x y", true),
    ];
    for (file, of_approvals) in [("default.rules", true), ("mine.rules", false)] {
        let path = home.path().join("rules").join(file);
        fs::write(&path, text).unwrap();
        machine.rules = Rules::load(&[home.path().to_owned()]).0;
        for (script, holds) in cases {
            let verdict = machine.decide(&machine.shell(script), &AskForApproval::Never, &workspace_write());
            let expected = if holds || !of_approvals { "run None" } else { "run AsPolicy" };
            assert_eq!(brief(&verdict), expected, "{file}: {script}");
        }
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn stricter_rules_apply_to_nested_commands() {
    let machine = Machine::with_rules(
        "prefix_rule(['git', 'push'], 'forbidden')\nprefix_rule(['sudo'])\nprefix_rule(['env'])",
    );
    for script in [
        "git push",
        "./git push",
        "/opt/git push",
        "../../usr/bin/git push",
        "env git push",
        "env A=1 git push",
        "sudo git push",
        "sudo -u x env nice git push",
        "command git push",
        "timeout 5 git push",
        "bash -xc 'git push'",
        "xargs git push",
        "find . -exec git push ';'",
    ] {
        let verdict = machine.decide(&machine.shell(script), &AskForApproval::OnRequest, &workspace_write());
        assert_eq!(brief(&verdict), "forbid", "{script}");
    }
}
