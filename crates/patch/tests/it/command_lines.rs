//! Which command lines are a patch and nothing else.

use oarlock_patch::{Invocation, invocation};

const PATCH: &str = "*** Begin Patch\n*** Add File: a\n+x $HOME\n*** End Patch";

fn read(argv: &[&str]) -> Invocation {
    invocation(&argv.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
}

fn patch(dir: Option<&str>) -> Invocation {
    Invocation::Patch { text: PATCH.to_owned(), dir: dir.map(str::to_owned) }
}

#[test]
fn scripts_that_are_one_patch() {
    for (script, dir) in [
        (format!("apply_patch <<'EOF'\n{PATCH}\nEOF"), None),
        (format!("applypatch <<'EOF'\n{PATCH}\nEOF\n\n"), None),
        (format!("  apply_patch  << \"X_1\" \n{PATCH}\nX_1"), None),
        (format!("\napply_patch<<EOF\n{PATCH}\nEOF"), None),
        (format!("apply_patch <<-'EOF'\n{PATCH}\n\t\tEOF"), None),
        (format!("cd sub && apply_patch <<'EOF'\n{PATCH}\nEOF"), Some("sub")),
        (format!("cd ../a-b/c.d&&apply_patch <<'EOF'\n{PATCH}\nEOF"), Some("../a-b/c.d")),
        (format!("cd 'my dir; $x' && apply_patch <<'EOF'\n{PATCH}\nEOF"), Some("my dir; $x")),
        (format!("cd \"my dir\" &&\n apply_patch <<'EOF'\n{PATCH}\nEOF"), Some("my dir")),
        (format!("cd /größe && apply_patch <<'EOF'\n{PATCH}\nEOF"), Some("/größe")),
    ] {
        assert_eq!(read(&["bash", "-lc", &script]), patch(dir), "{script}");
        assert_eq!(read(&["/usr/bin/zsh", "-c", &script]), patch(dir), "{script}");
    }
}

#[test]
fn scripts_that_do_anything_else() {
    for script in [
        format!("cd sub; apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd a && cd b && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd a || apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd $HOME && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd \"$HOME\" && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd `pwd` && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd ~ && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd a* && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd - && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd -P x && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd '' && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("cd a b && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("apply_patch <<'EOF'\n{PATCH}\nEOF\nrm -rf x"),
        format!("apply_patch <<'EOF' && rm x\n{PATCH}\nEOF"),
        format!("apply_patch <<'EOF' > out\n{PATCH}\nEOF"),
        format!("apply_patch <<'EOF' # note\n{PATCH}\nEOF"),
        format!("apply_patch x <<'EOF'\n{PATCH}\nEOF"),
        format!("FOO=1 apply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("apply_patch <<'EOF'\n{PATCH}"),
        format!("apply_patch <<'EOF'\n{PATCH}\n EOF"),
        format!("apply_patch <<'E F'\n{PATCH}\nE F"),
        format!("apply_patch <<'EOF\n{PATCH}\nEOF"),
        format!("apply_patch <<''\n{PATCH}\n"),
        format!("apply_patch '{PATCH}'"),
        format!("# hi\napply_patch <<'EOF'\n{PATCH}\nEOF"),
        format!("(apply_patch <<'EOF'\n{PATCH}\nEOF\n)"),
        format!("apply_patchx <<'EOF'\n{PATCH}\nEOF"),
        format!("./apply_patch <<'EOF'\n{PATCH}\nEOF"),
        "apply_patch".to_owned(),
        "cd".to_owned(),
        String::new(),
    ] {
        assert_eq!(read(&["bash", "-lc", &script]), Invocation::None, "{script}");
    }
}

#[test]
fn other_argument_lists() {
    assert_eq!(read(&["apply_patch", PATCH]), patch(None));
    assert_eq!(read(&["applypatch", PATCH]), patch(None));
    // A text that is no patch is still meant as one; parsing says what is wrong.
    let nonsense = Invocation::Patch { text: "x".to_owned(), dir: None };
    assert_eq!(read(&["apply_patch", "x"]), nonsense);
    for argv in [
        &["apply_patch"][..],
        &["apply_patch", PATCH, "x"],
        &["cat", PATCH],
        &["bash", "-x", "apply_patch <<'E'\nE"],
        &["fish", "-c", "apply_patch <<'E'\nE"],
        &["bash", "-lc"],
        &["ls"],
        &[],
    ] {
        assert_eq!(read(argv), Invocation::None, "{argv:?}");
    }
}

#[test]
fn a_patch_in_place_of_a_command_is_refused_sound_or_not() {
    for argv in [
        &[PATCH][..],
        &["bash", "-lc", PATCH],
        &["sh", "-c", "\n *** Begin Patch\nnonsense"],
        &["*** Begin Patch\n"],
    ] {
        assert_eq!(read(argv), Invocation::Implicit, "{argv:?}");
    }
}
