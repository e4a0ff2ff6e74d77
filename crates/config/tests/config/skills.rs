use std::fs;
use std::path::{Path, PathBuf};

use oarlock_config::{Env, Home, LoadRequest, Loader, LoaderOptions, SkillSelector};
use serde_json::json;

use crate::support::Machine;

/// A skill on the machine, by where it really is.
fn skill(machine: &Machine, path: &str) -> PathBuf {
    let folder = machine.path(path);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("SKILL.md"), "").expect("a file");
    fs::canonicalize(folder.join("SKILL.md")).expect("there")
}

#[test]
fn rules_of_the_user_and_of_the_session_count() {
    let machine = Machine::with(
        "[[skills.config]]\npath = \"$/s/a/SKILL.md\"\nenabled = false\n\
         [[skills.config]]\npath = \"../s/b\"\nenabled = false\n\
         [[skills.config]]\nname = \" c \"\nenabled = false\n\
         [[skills.config]]\nname = \"d\"\nenabled = false\n\
         [[skills.config]]\nname = \"d\"\nenabled = true\n\
         [[skills.config]]\nname = \"e\"\npath = \"/e\"\nenabled = false\n\
         [[skills.config]]\nenabled = false\n[[skills.config]]\nname = \"f\"\n[projects.\"$/repo\"]\ntrust_level = \"trusted\"\n",
    )
    .file("repo/.codex/config.toml", "[[skills.config]]\nname = \"g\"\nenabled = false\n")
    .file("etc/config.toml", "[[skills.config]]\nname = \"h\"\nenabled = false\n")
    .dir("repo/.git")
    .cwd("repo");
    let (a, b) = (skill(&machine, "s/a"), skill(&machine, "s/b"));
    std::os::unix::fs::symlink(machine.path("s/a"), machine.path("s/link")).expect("linked");
    let machine = machine.request("skills.config", json!([{"name": "i", "enabled": false}]));
    let config = machine.load();
    assert!(config.layers.iter().any(|layer| layer.table.contains_key("skills") && layer.folder.is_some()));
    let (user, session) = (config.skill_rules(), config.session_skill_rules());
    let none = Path::new("");
    let cases = [
        (a.as_path(), "x", Some(false)),
        (b.as_path(), "x", Some(false)),
        (none, "c", Some(false)),
        (none, "d", Some(true)),
        (none, "e", None),
        (none, "f", None),
        (none, "g", None),
        (none, "h", None),
        (none, "i", None),
    ];
    for (path, name, verdict) in cases {
        assert_eq!(user.verdict(path, name), verdict, "{name}");
    }
    assert_eq!((session.verdict(none, "i"), session.verdict(none, "c")), (Some(false), None));
    assert_eq!(SkillSelector::path(&machine.path("s/link")), SkillSelector::Path(a));
}

#[test]
fn bundled_skills_can_be_left_out() {
    for (text, expected) in [
        ("", true),
        ("[skills.bundled]\nenabled = false\n", false),
        ("[skills.bundled]\nenabled = true\n", true),
        ("[skills]\nbundled = 1\n", true),
    ] {
        assert_eq!(Machine::with(text).load().bundled_skills(), expected, "{text}");
    }
    assert!(!Machine::new().flag("skills.bundled.enabled=false").load().bundled_skills());
}

#[test]
fn switching_writes_as_little_as_it_can() {
    let machine = Machine::with("# mine\nmodel = \"m\"\n");
    let path = skill(&machine, "s/a");
    let selector = SkillSelector::path(&path);
    let file = machine.path("base/config.toml");
    let text = || fs::read_to_string(&file).expect("readable");
    let set = |selector: &SkillSelector, enabled| {
        machine.loader().set_skill(selector, (&path, "a"), enabled).expect("written")
    };
    assert!(!set(&selector, false));
    let off = format!(
        "# mine\nmodel = \"m\"\n\n[[skills.config]]\npath = \"{}\"\nenabled = false\n",
        path.display()
    );
    assert_eq!(text(), off);
    assert!(!set(&selector, false));
    assert_eq!(text(), off, "once is enough");
    assert!(set(&selector, true));
    assert_eq!(text(), "# mine\nmodel = \"m\"\n");
    // Another rule says no, so a yes has to be written.
    let name = SkillSelector::Name("a".to_owned());
    assert!(!set(&name, false));
    assert!(set(&selector, true));
    assert!(text().ends_with("enabled = true\n"), "{}", text());
    assert_eq!(machine.load().skill_rules().verdict(&path, "a"), Some(true));
    assert_eq!(machine.load().skill_rules().verdict(Path::new("/other"), "a"), Some(false));
}

#[test]
fn a_flag_wins_over_what_is_written() {
    let machine = Machine::new().flag("skills.config=[{name = \"a\", enabled = false}]");
    let name = SkillSelector::Name("a".to_owned());
    let stands = machine.loader().set_skill(&name, (Path::new(""), "a"), true);
    assert!(!stands.expect("written"), "the answer is how it stands, not what was asked for");
}

#[test]
fn the_file_of_another_program_is_never_written() {
    let machine = Machine::new()
        .file("codex/config.toml", "model = \"m\"\n[[skills.config]]\nname = \"b\"\nenabled = false\n");
    let shared = machine.path("codex").into_os_string();
    let home = Home::find(&|name| (name == "CODEX_HOME").then(|| shared.clone())).expect("a home");
    let options = LoaderOptions {
        system_file: None,
        managed_file: None,
        requirements_file: None,
        environment: Env::fixed([("HOME", "/nonexistent")]),
    };
    let loader = Loader::new(home, Vec::new(), options);
    let before = fs::read_to_string(machine.path("codex/config.toml")).expect("readable");
    let set = |name: &str, enabled| {
        let selector = SkillSelector::Name(name.to_owned());
        loader.set_skill(&selector, (Path::new(""), name), enabled).expect("written")
    };
    assert!(!set("a", false));
    assert!(set("b", true), "a rule of ours is laid over theirs");
    assert_eq!(fs::read_to_string(machine.path("codex/config.toml")).expect("readable"), before);
    let own = fs::read_to_string(machine.path("codex/oarlock/config.toml")).expect("readable");
    assert_eq!(own.matches("[[skills.config]]").count(), 2, "{own}");
    let config = loader.load(&LoadRequest::default()).expect("a configuration");
    assert_eq!(config.model.name.as_deref(), Some("m"));
    let verdict = |name| config.skill_rules().verdict(Path::new(""), name);
    assert_eq!((verdict("a"), verdict("b"), verdict("c")), (Some(false), Some(true), None));
}
