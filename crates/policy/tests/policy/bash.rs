//! The script parser against the real bash: bash reads accepted scripts as the same words.

use std::fs;
use std::process::Command;

use oarlock_policy::read_script;
use proptest::prelude::*;

/// Runs each script in a bash in which unknown commands write their words to a file, and returns those words per
/// script. The scripts must use unknown commands. Pipelines run concurrently, so they are sorted.
fn words_by_bash(scripts: &[String], fails: bool) -> Vec<Vec<Vec<String>>> {
    let folder = tempfile::tempdir().unwrap();
    let (list, log) = (folder.path().join("list"), folder.path().join("log"));
    fs::write(&list, scripts.join("\0") + "\0").unwrap();
    let program = format!(
        "command_not_found_handle() {{ local all; printf -v all '%s\\x1f' \"$@\"; printf '%s\\x1e' \"$all\" >>\"$LOG\"; \
         return {}; }}\n\
         while IFS= read -r -d '' script <&3; do eval \"$script\" </dev/null; printf '\\x1d' >>\"$LOG\"; done 3<\"$LIST\"",
        u8::from(fails)
    );
    let done = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &program])
        .env_clear()
        .env("PATH", folder.path())
        .env("LC_ALL", "C.UTF-8")
        .env("LOG", &log)
        .env("LIST", &list)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(done.stderr.is_empty(), "bash says: {}", String::from_utf8_lossy(&done.stderr));
    let log = fs::read_to_string(&log).unwrap_or_default();
    let mut all: Vec<Vec<Vec<String>>> = log
        .split_terminator('\u{1d}')
        .map(|script| {
            let commands = script.split_terminator('\u{1e}');
            commands.map(|line| line.split_terminator('\u{1f}').map(str::to_owned).collect()).collect()
        })
        .collect();
    all.iter_mut().for_each(|commands| commands.sort());
    all
}

/// Our result in the same form; `None` if the script is not plain or has words the shell may replace.
fn words_by_us(script: &str) -> Option<Vec<Vec<String>>> {
    let read = read_script(script)?;
    let mut commands = Vec::new();
    for words in read.commands {
        if words.iter().any(|word| word.expands) {
            return None;
        }
        commands.push(words.into_iter().map(|word| word.text).collect());
    }
    commands.sort();
    Some(commands)
}

#[test]
fn plain_scripts_mean_the_same_words() {
    let scripts: Vec<String> = [
        "zz",
        "zz a b  c",
        "\tzz\ta\t",
        "zz 'a b' \"c d\" e\\ f",
        "zz 'a'\"b\"c\\d",
        "zz \"\\\\ \\\" \\$ \\` \\x \\'\"",
        "zz '' \"\" x''y",
        "zz 'line\nline' \"line\nline\"",
        "zz \"a\\\nb\"",
        "zz a \\\n b",
        "zz \\\nb",
        "zz a;",
        "zz a ; zy b",
        "zz a\nzy b\n\n\nzx",
        "\n\n zz\n",
        "zz a&&zy b",
        "zz a &&\n\n zy b",
        "zz|zy|zx a",
        "zz |\n zy",
        "zz a#b '#c' \\#d",
        "zz a=b c== --x=1",
        "zz {} a{} {}b {}{} {},{} {}..{}",
        "zz ! a! \"!\" '!!' !x",
        "zz % ^ + - , . / : @ _ ]",
        "zz \"foo$\" \"a$ b\" \"x$|y\"",
        "zz '$HOME' '`id`' '$(id)'",
        "zz \\$HOME \\`id\\` \\;\\|\\&\\<\\>\\(\\)",
        "zz \\* \\? \\[ \\~ '*' \"~\"",
        "zz é ü 日本 \u{1f600}",
        "zz '\u{a0}' \"\u{3000}\" \\\"",
        "zz if then fi do done in",
        "zz 1 2 3",
        "zz HEAD~1 a~ x@~ -~",
        "zz -- -n --",
        "'zz' a",
        "z\"z\" a",
        "\\zz a",
        "zz 'a\tb'",
        "zz [",
        "zz \u{200b}x \u{202e}",
    ]
    .map(str::to_owned)
    .to_vec();
    let ours: Vec<_> = scripts.iter().map(|script| words_by_us(script).expect(script)).collect();
    assert_eq!(words_by_bash(&scripts, false), ours);
}

#[test]
fn alternatives_mean_the_same_words() {
    let scripts = ["zz a||zy b", "zz a ||\n zy 'b||c' || zx"].map(str::to_owned);
    let ours: Vec<_> = scripts.iter().map(|script| words_by_us(script).expect(script)).collect();
    assert_eq!(words_by_bash(&scripts, true), ours);
}

#[test]
fn scripts_that_are_not_plain_are_rejected() {
    for script in [
        "",
        " ",
        "\n",
        ";",
        "&&",
        "|",
        "ls &&",
        "ls ||",
        "ls |",
        "&& ls",
        "; ls",
        "ls ;; ls",
        "ls ;& ls",
        "ls\n; ls",
        "ls\n&& ls",
        "ls & ls",
        "ls &",
        "ls |& cat",
        "ls &&& ls",
        "ls ||| ls",
        "ls > x",
        "ls >x",
        "ls 2>&1",
        "ls < x",
        "ls <<< x",
        "ls <(id)",
        "ls &> x",
        "ls $HOME",
        "ls ${HOME}",
        "ls $(id)",
        "ls `id`",
        "ls \"$HOME\"",
        "ls \"`id`\"",
        "ls \"$(id)\"",
        "ls \"a$b\"",
        "ls \"$'x'\"",
        "ls $'a'",
        "ls $\"a\"",
        "ls a$",
        "ls$IFS-l",
        "A=1 ls",
        "A=1",
        "A+=1 ls",
        "a[0]=1 ls",
        "\"A\"=1 ls",
        "(ls)",
        "{ ls; }",
        "{ls,-l}",
        "ls {a,b}",
        "ls {1..3}",
        "ls a{b",
        "ls }",
        "ls {a}",
        "{} x",
        "if true; then ls; fi",
        "for i in a; do ls; done",
        "while true; do ls; done",
        "until ls; do ls; done",
        "case x in esac",
        "select x in a",
        "function f",
        "f() { ls; }",
        "time ls",
        "! ls",
        "coproc ls",
        "[[ -f x ]]",
        "(( 1 ))",
        "ls # c",
        "# c",
        "ls\\\n#c",
        "l\\\ns",
        "ls a\\\nb",
        "ls \\",
        "ls '",
        "ls \"",
        "ls 'a",
        "ls \"a\\",
        "ls\r",
        "ls\rrm x",
        "ls 'a\rb'",
        "ls\u{a0}x",
        "ls\u{2003}x",
        "ls\u{3000}x",
        "ls\u{85}x",
        "ls \u{b}x",
        "ls \u{c}x",
        "ls \u{1}x",
        "ls 'a\u{7f}'",
        "ls\0",
        "*",
        "./*",
        "~/x",
        "l?",
        "[x] y",
        "=ls",
        "ls =ls",
        "'' ls",
        "noglob ls",
        "repeat 3 ls",
        "- ls",
        "foreach x",
        "then ls",
        "fi",
        "esac",
        "done",
        "]] x",
        "nocorrect ls",
        "ls a\\\tb",
        "cat <<EOF\nx\nEOF",
        "ls\\\n&& ls\\\n &",
        "ls &\\\n& ls",
    ] {
        assert_eq!(read_script(script), None, "{script:?}");
    }
    assert_eq!(read_script(&"ls;".repeat(257)), None);
    assert_eq!(read_script(&format!("ls {}", "a".repeat(70_000))), None);
    assert!(read_script(&"ls;".repeat(256)).is_some());
}

#[test]
fn words_the_shell_may_replace_are_marked() {
    for (script, marked) in [
        ("ls *", true),
        ("ls a?", true),
        ("ls [ab]", true),
        ("ls ~", true),
        ("ls ~/x", true),
        ("ls a=~/x", true),
        ("ls a:~", true),
        ("ls a~", false),
        ("ls '*'", false),
        ("ls \\*", false),
        ("ls \"~\"", false),
        ("ls ]", false),
        ("[ -f x ]", false),
        ("ls '['*", true),
    ] {
        let read = read_script(script).expect(script);
        assert_eq!(read.commands[0].iter().any(|word| word.expands), marked, "{script}");
    }
}

/// Pieces of random scripts, most of them harmless alone.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z0-9é./,:@%+=-]{1,4}",
        3 => Just(" ".to_owned()),
        1 => prop::sample::select(vec![
            "'", "\"", "\\", "\n", "\t", "&&", "||", "|", ";", "#", "!", "{}", "{", "}", "*", "?", "[", "]", "~", "$", "$ ",
            "`", "=", "(", ")", "<", ">", "&", "\\\n", "\\ ", "\\\"", "''", "\"\"", "' '", "\" \"", "\u{a0}", "\u{200b}",
            "^", "-", " zz ", "; zz ", " && zz ", " | zz ", "\nzz ", "é", "1", "if", "done", "'\"'", "\"'\"",
        ]).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each case is a hundred scripts for one bash. Builtins are left out: only unknown commands report their words.
    #[test]
    fn random_scripts_mean_the_same_words(
        made in prop::collection::vec(prop::collection::vec(piece(), 1..14), 100)
    ) {
        let unknown = |commands: &Vec<Vec<String>>| commands.iter().all(|words| words[0].starts_with("zz"));
        let scripts = made.into_iter().map(|pieces| format!("zz {}", pieces.concat()));
        let (scripts, ours): (Vec<_>, Vec<_>) = scripts
            .filter(|script| !script.contains("||"))
            .filter_map(|script| words_by_us(&script).filter(unknown).map(|ours| (script, ours)))
            .unzip();
        prop_assert!(scripts.len() > 20, "too few scripts are plain");
        prop_assert_eq!(words_by_bash(&scripts, false), ours);
    }
}
