use std::ffi::OsString;
use std::fs;

use oarlock_config::{ConfigError, Home};

use crate::support::{Machine, mode};

type Variables = &'static [(&'static str, &'static str)];

fn find(machine: &Machine, variables: &[(&str, &str)]) -> Result<Home, ConfigError> {
    Home::find(&|name| {
        let (_, value) = variables.iter().find(|(variable, _)| *variable == name)?;
        Some(OsString::from(machine.text(value)))
    })
}

#[test]
fn variables_choose_the_home() {
    let machine = Machine::new().dir("codex").dir("own");
    let cases: [(Variables, &str, &str); 7] = [
        (&[("HOME", "$/u")], "u/.oarlock", "u/.oarlock"),
        (&[("HOME", "$/u"), ("OARLOCK_HOME", "$/own")], "own", "own"),
        (&[("HOME", "$/u"), ("CODEX_HOME", "$/codex")], "codex", "codex/oarlock"),
        (&[("CODEX_HOME", "$/codex"), ("OARLOCK_HOME", "$/own")], "own", "own"),
        (&[("HOME", "$/u"), ("CODEX_HOME", ""), ("OARLOCK_HOME", "")], "u/.oarlock", "u/.oarlock"),
        (&[("OARLOCK_HOME", "$/new/deep")], "new/deep", "new/deep"),
        (&[("CODEX_HOME", "$/own/../codex")], "codex", "codex/oarlock"),
    ];
    for (variables, reading, state) in cases {
        let home = find(&machine, variables).expect("a home");
        // A named home is canonical, and the temporary folder may be a link.
        let root = machine.path(".");
        let root =
            if reading.starts_with('u') { machine.path("") } else { root.canonicalize().expect("a folder") };
        let wanted = |path: &str| root.join(path);
        assert_eq!(home.reading(), wanted(reading), "{variables:?}");
        assert_eq!(home.state(), wanted(state), "{variables:?}");
        assert_eq!(home.config_file(), wanted(reading).join("config.toml"));
        assert_eq!(home.credentials_file(), wanted(state).join("credentials.json"));
    }
    assert!(machine.path("new/deep").is_dir());
    assert!(!machine.path("u/.oarlock").exists() && !machine.path("codex/oarlock").exists());
}

#[test]
fn a_wrong_home_is_an_error() {
    let machine = Machine::new().file("file", "");
    assert!(matches!(find(&machine, &[]), Err(ConfigError::NoHome)));
    for (variable, path, problem) in [
        ("CODEX_HOME", "$/none", "CODEX_HOME names $/none, which cannot be used: "),
        ("CODEX_HOME", "$/file", "CODEX_HOME names $/file, which is not a directory"),
        ("OARLOCK_HOME", "$/file", "OARLOCK_HOME names $/file, which cannot be made: "),
    ] {
        let error = machine.plain(find(&machine, &[(variable, path)]).expect_err("an error"));
        assert!(error.starts_with(problem), "{error}");
    }
}

#[test]
#[cfg(unix)]
fn new_folders_are_private() {
    let machine = Machine::new().dir("codex");
    find(&machine, &[("OARLOCK_HOME", "$/own")]).expect("a home");
    assert_eq!(mode(&machine.path("own")), 0o700);
    let home = find(&machine, &[("CODEX_HOME", "$/codex")]).expect("a home");
    home.create_state().expect("made");
    home.create_state().expect("there already");
    assert_eq!(mode(&machine.path("codex/oarlock")), 0o700);
    assert_eq!(fs::read_dir(machine.path("codex")).expect("a folder").count(), 1);
}
