//! Rules for git, and what else determines what git runs: hooks and settings.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use oarlock_policy::obeys_project;
use protocol::AskForApproval;

use crate::support::{Machine, brief, plant, workspace_write};

const RULES: &str = "prefix_rule(pattern=['git', ['commit', 'fetch', 'log']])\n\
                     prefix_rule(pattern=['git', '-C', 'sub', 'commit'])\n";

/// A repository in the home folder of a user with rules.
fn machine(rules: &str) -> Machine {
    let mut machine = Machine::with_rules(rules);
    let home = machine.bin().with_file_name("home");
    machine.env.insert("HOME".to_owned(), home.display().to_string());
    for folder in
        [home.join(".config/git"), machine.workspace().join(".git/hooks"), machine.workspace().join("sub")]
    {
        fs::create_dir_all(folder).unwrap();
    }
    machine
}

/// Whether a rule lets the line run outside the sandbox.
fn is_let_out(machine: &Machine, line: &str) -> bool {
    let verdict = machine.decide(&machine.shell(line), &AskForApproval::OnRequest, &workspace_write());
    brief(&verdict) == "run None"
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Hooks run the formatters and tests of the project, whose files commands can write.
#[test]
fn a_rule_for_a_command_of_git_does_not_hold_where_a_hook_would_run() {
    type Setup = fn(&Path, &Path);
    let cases: &[(&str, Setup, [bool; 3])] = &[
        ("nothing", |_, _| (), [true, true, true]),
        ("a sample", |ws, _| plant(&ws.join(".git/hooks/pre-push.sample")), [true, true, true]),
        ("a hook that is off", |ws, _| write(&ws.join(".git/hooks/pre-push"), "x"), [true, true, true]),
        ("a hook", |ws, _| plant(&ws.join(".git/hooks/pre-push")), [false, true, true]),
        (
            "a hook of fetch",
            |ws, _| plant(&ws.join(".git/hooks/reference-transaction")),
            [false, false, true],
        ),
        (
            "settings of the repository",
            |ws, _| write(&ws.join(".git/config"), "[core]\nhooksPath = .husky"),
            [false, false, true],
        ),
        (
            "settings of the user",
            |_, home| write(&home.join(".gitconfig"), "[core]\n\thookspath = .githooks\n"),
            [false, false, true],
        ),
        (
            "the other settings of the user",
            |_, home| write(&home.join(".config/git/config"), "[hook \"x\"]\ncommand = y"),
            [false, false, true],
        ),
        (
            "settings that are included",
            |_, home| {
                write(&home.join(".gitconfig"), "[includeIf \"gitdir:~/\"]\n\tpath = more/one\n");
                write(&home.join("more/one"), "[include] path = \"two\"\n");
                write(&home.join("more/two"), "[core]\nHooksPath=x\n");
            },
            [false, false, true],
        ),
        (
            "hooks behind a link",
            |ws, _| {
                fs::remove_dir(ws.join(".git/hooks")).unwrap();
                symlink("../sub", ws.join(".git/hooks")).unwrap();
            },
            [false, false, true],
        ),
    ];
    for (name, setup, expected) in cases {
        let machine = machine(RULES);
        setup(&machine.workspace(), &machine.bin().with_file_name("home"));
        let found = ["git commit -m x", "git fetch", "git log"].map(|line| is_let_out(&machine, line));
        assert_eq!(found, *expected, "{name}");
        let executables = machine.executables();
        let obeys = |line| obeys_project(&machine.shell(line), &executables);
        assert_eq!(
            ["git commit -m x", "git fetch", "git log"].map(obeys),
            expected.map(|holds| !holds),
            "{name}"
        );
    }
}

#[test]
fn settings_in_variables_count() {
    for (name, value, holds) in [
        ("GIT_CONFIG_KEY_0", "core.hooksPath", false),
        ("GIT_CONFIG_PARAMETERS", "'hook.x.command=y'", false),
        ("GIT_CONFIG_KEY_0", "safe.directory", true),
        ("GIT_DIR", "/srv/repository", false),
        ("GIT_CONFIG_GLOBAL", "/dev/null", true),
    ] {
        let mut machine = machine(RULES);
        machine.env.insert(name.to_owned(), value.to_owned());
        assert_eq!(is_let_out(&machine, "git commit"), holds, "{name}={value}");
    }
}

#[test]
fn hooks_of_the_folder_that_the_line_changes_to_count() {
    let machine = machine(RULES);
    let lines = ["cd sub && git commit", "git -C sub commit"];
    assert_eq!(lines.map(|line| is_let_out(&machine, line)), [true, true]);
    fs::create_dir_all(machine.workspace().join("sub/.git/hooks")).unwrap();
    plant(&machine.workspace().join("sub/.git/hooks/pre-commit"));
    assert_eq!(lines.map(|line| is_let_out(&machine, line)), [false, false]);
    assert!(is_let_out(&machine, "git commit"));
}

/// A rule that allows all of git includes its hooks.
#[test]
fn a_rule_for_git_itself_holds_with_hooks() {
    let machine = machine("prefix_rule(pattern=['git'])");
    plant(&machine.workspace().join(".git/hooks/pre-commit"));
    assert!(is_let_out(&machine, "git commit -m x"));
}

/// They could name any program to run.
#[test]
fn no_rule_for_git_holds_where_commands_can_write_the_user_s_settings() {
    type Setup = fn(&mut Machine);
    let cases: &[(&str, Setup, bool)] = &[
        ("a home elsewhere", |_| (), true),
        (
            "a home that is the workspace",
            |machine| {
                let home = machine.workspace().display().to_string();
                machine.env.insert("HOME".to_owned(), home);
            },
            false,
        ),
        (
            "a link to dotfiles that are the workspace",
            |machine| {
                write(&machine.workspace().join("gitconfig"), "[user]\nname = x\n");
                symlink("../ws/gitconfig", machine.bin().with_file_name("home").join(".gitconfig")).unwrap();
            },
            false,
        ),
        (
            "an include that is not there yet",
            |machine| {
                let home = machine.bin().with_file_name("home");
                write(&home.join(".gitconfig"), "[include]\npath = ~/../ws/more\n");
            },
            false,
        ),
        (
            "an include of the repository beside it",
            |machine| write(&machine.workspace().join(".git/config"), "[include]\npath = ../.gitconfig\n"),
            false,
        ),
        (
            "an include of the repository in it",
            |machine| write(&machine.workspace().join(".git/config"), "[include]\npath = more\n"),
            true,
        ),
        (
            "a variable that is taken out of such commands",
            |machine| {
                let file = machine.workspace().join("settings").display().to_string();
                machine.env.insert("GIT_CONFIG_GLOBAL".to_owned(), file);
            },
            true,
        ),
    ];
    for (name, setup, holds) in cases {
        for rules in [RULES, "prefix_rule(pattern=['git'])"] {
            let mut machine = machine(rules);
            setup(&mut machine);
            assert_eq!(is_let_out(&machine, "git fetch"), *holds, "{name}: {rules}");
        }
    }
}
