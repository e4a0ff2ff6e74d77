//! The displayed actions of commands, compared with the reference's.

use oarlock_policy::{command_actions, shell_line};
use serde_json::Value;

use crate::{shell, words};

/// One JSON array per line: the script, its display, its actions.
const RECORDED: &str = include_str!("actions.jsonl");

#[test]
fn scripts_are_shown_and_described_as_recorded() {
    let mut wrong = Vec::new();
    for row in RECORDED.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let argv = shell(row[0].as_str().unwrap());
        let actions = serde_json::to_value(command_actions(&argv)).unwrap();
        if row[1] != shell_line(&argv) || row[2] != actions {
            wrong.push(format!("{row}\n  {} {actions}", shell_line(&argv)));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Commands that read or list, plus a part that does more: the reference shows the harmless part alone.
#[test]
fn commands_with_other_effects_are_unknown() {
    for script in [
        "find . -delete",
        "find . -name x -exec rm {} +",
        "ls | xargs rm",
        "ls | tee out",
        "ls | sort -o out",
        "ls | uniq - out",
        "cat a | sed -n w/tmp/x",
        "cat a | sed 's/a/b/w out'",
        "cat a | sed 1e",
        "awk 'BEGIN{system(\"id\")}' a",
        "ls | awk '{print > \"x\"}'",
        "cat {a,b}.txt",
        "rg --pre ./x foo",
        "rg -z foo",
        "fd -x rm",
        "tree -o out",
        "tree -L 2 -R -H .",
        "tree -ao out",
        "git grep -O foo",
        "git grep -O./evil foo",
        "git grep -nO foo",
        "git grep --open-files-in-pager=./evil foo",
        "git grep --open foo",
        "git grep --textconv foo",
        "bat --pager=./evil a",
        "bat --pager ./evil a",
        "bat --config-file=x a",
        "bat cache --clear",
        "bat --generate-config-file",
        "batcat --pager=./evil a",
        "awk -f x.awk a",
        "awk -fx.awk a",
        "awk --file x.awk a",
        "awk --file=x.awk a",
        "awk -i x.awk '{print}' a",
        "awk --include=x '{print}' a",
        "awk -l x '{print}' a",
        "awk -E x.awk a",
        "awk -o '{print}' a",
        "awk -d '{print}' a",
        "awk --profile '{print}' a",
        "awk '@include \"x\"; {print}' a",
        "awk '{f=\"system\"; @f(\"id\")}' a",
        "awk '{print | \"sh\"}' a",
        "awk '{print >> \"x\"}' a",
        "awk '{\"id\" | getline x}' a",
        "ag --pager ./evil foo",
        "ag --pager=./evil foo",
        "ack --pager=./evil foo",
        "ack --output=x foo",
        "less +!id a",
        "less '+!id'",
        "less -o out a",
        "less -Oout a",
        "less -k keys a",
        "less --log-file=out a",
        "less --cmd=!id a",
        "more +!id a",
        "rg --pre=./x foo",
        "rg --hostname-bin ./x foo",
        "fd --exec rm",
        "fd -X rm",
        "fd -l foo",
        "ls | xargs rg --pre=./x foo",
        "ls | xargs sort -o out",
        "ls | xargs -n 1 sort --compress-program=./x",
        "ls | xargs file -C -m x",
        "ls | sort -uo out",
        "ls | sort --compress-program=./x",
        "ls | sort --comp ./x",
        "ls | sort --outp=x",
        "python3 -c 'import os; os.walk; os.system(1)'",
        "python3 -c 'import os; print(os.listdir())'",
        "find . -fprintf x y",
        "find . -okdir rm",
    ] {
        let actions = serde_json::to_value(command_actions(&shell(script))).unwrap();
        assert_eq!(actions, serde_json::json!([{ "type": "unknown", "command": script }]), "{script}");
    }
}

#[test]
fn an_argv_without_a_shell_is_described_too() {
    let actions = serde_json::to_value(command_actions(&words(&["cat", "a b"]))).unwrap();
    assert_eq!(
        actions,
        serde_json::json!([{ "type": "read", "command": "cat 'a b'", "name": "a b", "path": "a b" }])
    );
    let actions = serde_json::to_value(command_actions(&words(&["make", "$x"]))).unwrap();
    assert_eq!(actions, serde_json::json!([{ "type": "unknown", "command": "make '$x'" }]));
}
