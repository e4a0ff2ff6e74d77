//! Approvals for the session cover exactly what was approved.

use std::collections::HashSet;
use std::fs;

use oarlock_policy::{Escalation, SessionCall, SessionKey};

use crate::support::{Machine, plant};
use crate::words;

#[test]
fn the_same_command_is_the_same_however_it_is_written() {
    let machine = Machine::new();
    let (executables, cwd) = (machine.executables(), machine.workspace());
    let call = |argv: &[String]| SessionKey::new(&SessionCall { argv, ..plain(&cwd) }, &executables);
    let bash = machine.bin().join("bash");
    let absolute = words(&[bash.to_str().unwrap(), "-lc", "touch x"]);
    let mut approvals = HashSet::new();
    approvals.insert(call(&machine.shell("touch x")));
    for argv in [machine.shell("touch x"), machine.shell("touch  'x'"), absolute] {
        assert!(approvals.contains(&call(&argv)), "{argv:?}");
    }
    for argv in [
        machine.shell("touch y"),
        machine.shell("touch x && touch x"),
        machine.shell("touch x > y"),
        words(&["./bash", "-lc", "touch x"]),
        words(&["bash", "-lc", "./touch x"]),
        words(&["bash", "-lc", "./bash -c 'touch x'"]),
    ] {
        assert!(!approvals.contains(&call(&argv)), "{argv:?}");
    }
    approvals.insert(call(&machine.shell("ls > a")));
    assert!(approvals.contains(&call(&machine.shell("ls > a"))));
    assert!(!approvals.contains(&call(&machine.shell("ls >  a"))));
    assert!(!approvals.contains(&call(&words(&["bash", "-c", "ls > a"]))));
}

#[test]
fn another_place_or_way_to_run_is_another_command() {
    let machine = Machine::new();
    let (executables, cwd) = (machine.executables(), machine.workspace());
    let argv = machine.shell("touch x");
    let call = SessionCall { argv: &argv, ..plain(&cwd) };
    let other_cwd = machine.bin();
    let environment = [("A".to_owned(), "1".to_owned())];
    let mut approvals = HashSet::new();
    approvals.insert(SessionKey::new(&call, &executables));
    for other in [
        SessionCall { cwd: &other_cwd, ..call },
        SessionCall { escalation: Escalation::RequireEscalated, ..call },
        SessionCall { additional: Some("{}"), ..call },
        SessionCall { tty: true, ..call },
        SessionCall { environment: &environment, ..call },
    ] {
        assert!(!approvals.contains(&SessionKey::new(&other, &executables)), "{other:?}");
    }
}

#[test]
fn another_file_under_the_same_name_is_another_command() {
    let machine = Machine::new();
    let (executables, cwd) = (machine.executables(), machine.workspace());
    for script in ["./tool x", "touch x && ./tool"] {
        let argv = machine.shell(script);
        let call = SessionCall { argv: &argv, ..plain(&cwd) };
        let before = SessionKey::new(&call, &executables);
        assert_eq!(before, SessionKey::new(&call, &executables));
        plant(&cwd.join("new"));
        fs::rename(cwd.join("new"), cwd.join("tool")).unwrap();
        assert_ne!(before, SessionKey::new(&call, &executables), "{script}");
    }
    let argv = machine.shell("touch x");
    let call = SessionCall { argv: &argv, ..plain(&cwd) };
    let before = SessionKey::new(&call, &executables);
    plant(&cwd.join("touch"));
    let planted_first = machine.executables_on(&[&cwd, &machine.bin()]);
    assert_ne!(before, SessionKey::new(&call, &planted_first));
}

fn plain(cwd: &std::path::Path) -> SessionCall<'_> {
    SessionCall {
        argv: &[],
        cwd,
        escalation: Escalation::Default,
        additional: None,
        tty: false,
        environment: &[],
    }
}
