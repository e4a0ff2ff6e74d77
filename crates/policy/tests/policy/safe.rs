//! Known-safe commands, and trusted programs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use oarlock_policy::is_known_safe;

use crate::support::{Machine, plant};

#[test]
fn reading_is_safe() {
    let machine = Machine::new();
    let executables = machine.executables();
    for script in [
        "ls",
        "ls -la x",
        "cat x | head -n 5 && wc -l x",
        "cd x && ls",
        "pwd; true",
        "echo hi",
        "which ls",
        "grep -r x .",
        "find . -name x",
        "rg -n x",
        "rg foo --glob '*.rs'",
        "sed -n 5p x",
        "sed -n 1,5p x",
        "sed -n 5p",
        "base64 x",
        "base64 -d x",
        "uniq x",
        "uniq -c",
        "git status",
        "git --no-pager -P log",
        "git log -p --stat",
        "git diff HEAD~1",
        "git show HEAD:x",
        "git branch",
        "git branch -vv --all",
        "git branch --list 'x*'",
        "bash -c 'ls | wc'",
        "cat *.txt",
        "ls ~",
    ] {
        assert!(is_known_safe(&machine.shell(script), &|name| executables.trusted(name)), "{script}");
    }
}

#[test]
fn a_name_must_mean_the_programs_own_file() {
    let machine = Machine::new();
    let (bin, workspace) = (machine.bin(), machine.workspace());
    let usual = machine.executables();
    assert_eq!(usual.trusted("ls"), Some(fs::canonicalize(bin.join("ls")).unwrap()));
    assert_eq!(usual.trusted(bin.join("ls").to_str().unwrap()), usual.trusted("ls"));
    for program in ["./ls", "../ws/ls", "nothing", "", "/", "sub/../ls", "ls/"] {
        assert_eq!(usual.trusted(program), None, "{program}");
    }
    for program in [workspace.join("ls"), bin.join("../ws/ls"), "/proc/self/cwd/ls".into()] {
        assert_eq!(usual.trusted(program.to_str().unwrap()), None, "{}", program.display());
    }
    assert_eq!(machine.executables_on(&[&workspace, &bin]).trusted("ls"), None);
    assert_eq!(machine.executables_on(&[Path::new("."), &bin]).trusted("ls"), None);
    assert_eq!(machine.executables_on(&[Path::new(""), &bin]).trusted("ls"), None);
    assert!(machine.executables_on(&[&bin, &workspace]).trusted("ls").is_some());
}

#[test]
fn files_that_others_can_change_are_not_trusted() {
    let machine = Machine::new();
    let (bin, workspace) = (machine.bin(), machine.workspace());
    let executables = machine.executables();

    symlink(workspace.join("ls"), bin.join("linked")).unwrap();
    assert_eq!(executables.trusted("linked"), None);
    symlink(bin.join("ls"), workspace.join("to-ls")).unwrap();
    assert_eq!(executables.trusted(workspace.join("to-ls").to_str().unwrap()), None);

    plant(&bin.join("open"));
    fs::set_permissions(bin.join("open"), fs::Permissions::from_mode(0o757)).unwrap();
    assert_eq!(executables.trusted("open"), None);
    fs::write(bin.join("text"), "").unwrap();
    fs::set_permissions(bin.join("text"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(executables.trusted("text"), None);
    fs::create_dir(bin.join("folder")).unwrap();
    assert_eq!(executables.trusted("folder"), None);

    fs::set_permissions(&bin, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(executables.trusted("ls"), None);
}
