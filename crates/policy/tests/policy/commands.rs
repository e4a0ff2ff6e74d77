//! Commands found inside command lines.

use oarlock_policy::{commands_of, shell_line};

use crate::{shell, words};

fn check(argv: &[&str], list: &[&[&str]], plain: bool) {
    let commands = commands_of(&words(argv));
    let found: Vec<Vec<&str>> =
        commands.list.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    assert_eq!(
        (found, commands.plain),
        (list.iter().map(|words| words.to_vec()).collect(), plain),
        "{argv:?}"
    );
}

#[test]
fn shell_scripts_are_parsed() {
    check(&["ls", "-l"], &[&["ls", "-l"]], true);
    check(&["bash", "-lc", "ls -l && cat x"], &[&["ls", "-l"], &["cat", "x"]], true);
    check(&["/usr/bin/zsh", "-c", "ls"], &[&["ls"]], true);
    check(&["sh", "-c", "bash -c 'ls | wc'; pwd"], &[&["ls"], &["wc"], &["pwd"]], true);
    check(&["sh", "-c", "bash -c 'ls $x'"], &[&["bash", "-c", "ls $x"]], true);
    check(&["bash", "-lc", "ls > x"], &[&["bash", "-lc", "ls > x"]], false);
    check(&["bash", "-c", "ls", "x"], &[&["bash", "-c", "ls", "x"]], true);
    check(&["bash", "-x", "ls"], &[&["bash", "-x", "ls"]], true);
    check(&["fish", "-c", "ls"], &[&["fish", "-c", "ls"]], true);
    check(&["bash", "-c", "bash -c *"], &[&["bash", "-c", "*"]], true);
}

#[test]
fn nesting_ends() {
    let mut line = "ls".to_owned();
    for _ in 0..6 {
        line = shell_line(&["bash", "-c", &line]);
    }
    let commands = commands_of(&shell(&line));
    assert_eq!((commands.list.len(), commands.shells.len()), (1, 3));
    assert_eq!(commands.list[0][..2], ["bash", "-c"]);
}

#[test]
fn a_here_document_shows_the_command_but_not_its_input() {
    for script in [
        "python3 - <<'PY'\nprint(1)\nPY",
        "python3 - <<PY\nprint(1)\nPY\n",
        "python3 - <<-\"PY\"\n\tprint($x)\n\tPY\n",
        "python3 - << PY\nprint(1)\nPY",
    ] {
        let commands = commands_of(&shell(script));
        assert!(commands.complex && !commands.plain, "{script}");
        assert_eq!(commands.list, [words(&["python3", "-"])], "{script}");
    }
    for script in [
        "cat <<PY\n$(rm x)\nPY",
        "cat <<PY\n`rm x`\nPY",
        "cat <<PY\nx\nPY\nrm x",
        "cat <<PY > x\nx\nPY",
        "cat <<PY | sh\nx\nPY",
        "cat <<PY; rm x\nx\nPY",
        "ls && cat <<PY\nx\nPY",
        "cat <<PY\nx",
        "cat <<PY\nx\\\nPY\nPY\nrm x",
        "cat <<<PY",
        "cat <<$x\n$x",
        "<<PY\nPY",
        "cat <<''\n\nrm x",
    ] {
        let argv = shell(script);
        let commands = commands_of(&argv);
        assert!(!commands.complex && commands.list == [argv], "{script}");
    }
}

#[test]
fn lines_are_quoted_as_shells_read_them() {
    for (argv, line) in [
        (words(&["/bin/bash", "-lc", "echo hi"]), "/bin/bash -lc 'echo hi'"),
        (words(&["a", "", "b c"]), "a '' 'b c'"),
        (words(&["it's"]), "\"it's\""),
        (words(&["it's $x"]), "\"it's \"'$x'"),
        (words(&["a\\b"]), "\"a\\\\b\""),
        (words(&["^a^"]), "'^a''^'"),
        (words(&["é"]), "'é'"),
        (words(&["a\nb"]), "'a\nb'"),
        (words(&["!"]), "'!'"),
    ] {
        assert_eq!(shell_line(&argv), line);
    }
}
