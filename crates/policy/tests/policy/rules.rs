//! Rule files: the language, matching, loading and adding.

use std::fs;
use std::path::Path;

use oarlock_policy::{Executables, RuleDecision, Rules, append_allow_prefix};
use serde_json::json;

use crate::support::Machine;
use crate::words;

fn anything() -> Executables {
    Executables::new("".as_ref(), Path::new("/"), &[]).by_name_alone()
}

fn decision(rules: &str, argv: &[&str]) -> Option<RuleDecision> {
    Rules::parse("t.rules", rules).expect(rules).check(&words(argv), &anything()).decision
}

#[test]
fn the_language() {
    for rules in [
        "prefix_rule(pattern=[\"git\", \"push\"])",
        "prefix_rule(['git', 'push'])",
        "prefix_rule([\"git\", [\"pull\", \"push\"]], \"allow\", [\"git push x\"], [\"git log\"], \"why\")",
        "prefix_rule(\n    pattern = [\n        'git',  # the program\n        'push',\n    ],\n)\n",
        "G = 'git'\nPUSH = ['push']\nprefix_rule(pattern=[G] + PUSH)",
        "prefix_rule(pattern=['g' + 'it', (\"pu\" + \"sh\")])",
        "prefix_rule(pattern=['''git''', \"\"\"push\"\"\"])",
        "prefix_rule(pattern=[r'git', '\\x70\\u0075\\U00000073\\150'])",
        "prefix_rule(pattern=['git', 'pu\\\nsh']); # done",
        "X = [] ; prefix_rule(pattern=['git', 'push'], match=X, not_match=None, justification=None)",
        "\n# only this\n\r\nprefix_rule(pattern=['git','push'])\r\n   # indented comment\n",
        "prefix_rule(pattern=['git', 'push'], \\\n decision='allow')",
        "prefix_rule(pattern=['git', 'push'], match=[['git', 'push', 'a b'], \"git push 'a b'\"])",
    ] {
        assert_eq!(decision(rules, &["git", "push", "origin"]), Some(RuleDecision::Allow), "{rules}");
        assert_eq!(decision(rules, &["git", "log"]), None, "{rules}");
    }
    assert!(Rules::parse("t", "").unwrap().is_empty());
}

#[test]
fn an_error_has_a_position() {
    for (text, place, part) in [
        ("prefix_rule(pattern=[])", (1, 13), "no words"),
        ("\nprefix_rule(pattern=['a', []])", (2, 13), "a word or a list"),
        ("prefix_rule(pattern='a')", (1, 13), "a list, not a string"),
        ("prefix_rule()", (1, 1), "`pattern` is missing"),
        ("prefix_rule(pattern=['a'], decision='deny')", (1, 28), "one of"),
        ("prefix_rule(pattern=['a'], decision=['allow'])", (1, 28), "a string, not a list"),
        ("prefix_rule(pattern=['a'], justification=' ')", (1, 28), "says nothing"),
        ("prefix_rule(pattern=['a'], other='x')", (1, 28), "`other`"),
        ("prefix_rule(['a'], pattern=['a'])", (1, 20), "twice"),
        ("prefix_rule(pattern=['a'], 'allow')", (1, 28), "without a name"),
        ("prefix_rule(['a'],,)", (1, 19), "found `,`"),
        ("prefix_rule(['a' 'b'])", (1, 18), "a string"),
        ("prefix_rule(['a'], match=['b'])", (1, 20), "not about `b`"),
        ("prefix_rule(['a'], not_match=['a b'])", (1, 20), "is about `a b`"),
        ("prefix_rule(['a'], match='a')", (1, 20), "a list of commands"),
        ("prefix_rule(['a'], match=[''])", (1, 20), "is a command"),
        ("prefix_rule(['a'], match=[\"'\"])", (1, 20), "is a command"),
        ("prefix_rule(['a']", (1, 18), "the end"),
        ("prefix_rule(['a'])\nfoo()", (2, 1), "`foo` is not"),
        ("load('x', 'y')", (1, 1), "`load`"),
        ("for x in ['a']: prefix_rule([x])", (1, 15), "no place"),
        ("if True:\n  prefix_rule(['a'])", (1, 8), "no place"),
        ("def f():\n  pass", (1, 8), "no place"),
        ("prefix_rule(pattern=[x])", (1, 22), "`x` has no value"),
        ("X = 'a'\nX = 'b'", (2, 1), "already"),
        ("X = 'a' + ['b']", (1, 9), "joined"),
        ("X = 5", (1, 5), "no place"),
        ("X = 'a", (1, 5), "does not end"),
        ("X = '''a\n", (1, 5), "does not end"),
        ("X = '\\q'", (1, 6), "not an escape"),
        ("X = '\\x4'", (1, 6), "2 digits"),
        ("X = '\\ud800'", (1, 6), "no character"),
        ("  X = 'a'", (1, 1), "indented"),
        ("X == 'a'", (1, 3), "no place"),
        ("'a'", (1, 1), "expected a rule"),
        ("prefix_rule", (1, 12), "`(` or `=`"),
        ("prefix_rule(['a']) prefix_rule(['b'])", (1, 20), "the end of the line"),
        ("prefix_rule([\"%s\" % 'a'])", (1, 19), "no place"),
        ("X = [[[[[[[[[[[[[[[[[['a']]]]]]]]]]]]]]]]]]", (1, 22), "too deeply"),
        ("host_executable(name='/git', paths=[])", (1, 17), "without a folder"),
        ("host_executable(name='git', paths=['git'])", (1, 29), "absolute path"),
        ("host_executable(name='git', paths=['/bin/ls'])", (1, 29), "absolute path"),
        ("network_rule(host='*.a.com', protocol='https', decision='allow')", (1, 14), "pattern"),
        ("network_rule(host='https://a.com', protocol='https', decision='allow')", (1, 14), "without scheme"),
        ("network_rule(host='a.com\\0', protocol='https', decision='allow')", (1, 14), "without scheme"),
        ("network_rule(host='a.com', protocol='ftp', decision='allow')", (1, 28), "one of"),
        ("network_rule(host='a.com', protocol='http', decision='x')", (1, 45), "one of"),
        ("network_rule(host='a.com', protocol='http')", (1, 1), "`decision` is missing"),
    ] {
        let error = Rules::parse("bad.rules", text).expect_err(text);
        assert_eq!((error.line, error.column), place, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("bad.rules:{}:{}: ", place.0, place.1)), "{error}");
    }
}

#[test]
fn the_strictest_rule_wins() {
    let rules = "prefix_rule(['git'])\nprefix_rule(['git', 'push'], 'prompt')\nprefix_rule(['git', 'push', '-f'], 'forbidden')";
    assert_eq!(decision(rules, &["git"]), Some(RuleDecision::Allow));
    assert_eq!(decision(rules, &["git", "push"]), Some(RuleDecision::Prompt));
    assert_eq!(decision(rules, &["git", "push", "-f", "x"]), Some(RuleDecision::Forbidden));
    assert_eq!(decision(rules, &["git push"]), None);
    assert_eq!(decision(rules, &[]), None);
}

#[test]
fn a_check_has_the_shape_of_the_reference() {
    let rules = Rules::parse(
        "a.rules",
        "\nprefix_rule(['git', ['push', 'fetch']], 'prompt', justification='net')\nhost_executable('git', ['/usr/bin/git'])",
    )
    .unwrap();
    let check = |argv: &[&str]| serde_json::to_value(rules.check(&words(argv), &anything())).unwrap();
    assert_eq!(
        check(&["git", "push", "x"]),
        json!({
            "matchedRules": [{ "prefixRuleMatch": {
                "matchedPrefix": ["git", "push"], "decision": "prompt", "justification": "net", "source": "a.rules:2",
            } }],
            "decision": "prompt",
        })
    );
    assert_eq!(
        check(&["/usr/bin/git", "push"])["matchedRules"][0]["prefixRuleMatch"]["resolvedProgram"],
        json!("/usr/bin/git")
    );
    // A rule that is stricter than `allow` applies to every file of the name.
    assert_eq!(check(&["/opt/git", "push"])["decision"], "prompt");
    assert_eq!(check(&["/opt/git", "log"]), json!({ "matchedRules": [] }));
    let line = rules.check_line(&words(&["bash", "-c", "ls && git push && git fetch"]), &anything());
    assert_eq!((line.matches.len(), line.decision), (2, Some(RuleDecision::Prompt)));
}

#[test]
fn a_name_means_trusted_files_only() {
    let rules = Rules::parse("t", "prefix_rule(['ls'])\nprefix_rule(['rm'], 'forbidden')").unwrap();
    let machine = Machine::new();
    let (bin, workspace) = (machine.bin(), machine.workspace());
    let check = |program: &str| rules.check(&words(&[program]), &machine.executables()).decision;
    assert_eq!(check("ls"), Some(RuleDecision::Allow));
    assert_eq!(check(bin.join("ls").to_str().unwrap()), Some(RuleDecision::Allow));
    assert_eq!(check(workspace.join("ls").to_str().unwrap()), None);
    assert_eq!(check("./ls"), None);
    // A planted program is forbidden like its name.
    for program in ["/tmp/rm", "./rm", "../../usr/bin/rm", "rm"] {
        assert_eq!(check(program), Some(RuleDecision::Forbidden), "{program}");
    }
}

/// They are not enforced, and their author may rely on them.
#[test]
fn rules_about_hosts_give_a_warning() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        "a.rules",
        "prefix_rule(['a'])\nnetwork_rule('A.com.', 'https', 'allow')\nnetwork_rule('::1', 'http', 'deny')",
    );
    let (rules, warnings) = Rules::load(&[home.path().to_owned()]);
    assert_eq!(warnings.len(), 1);
    let text = warnings[0].to_string();
    assert!(text.contains("a.rules:2: network_rule has no effect"), "{text}");
    let allowed = rules.check(&words(&["a"]), &anything()).decision;
    assert_eq!(allowed, Some(RuleDecision::Allow), "the other rules count");
}

#[test]
fn files_are_read_in_order() {
    let home = tempfile::tempdir().unwrap();
    let project = tempfile::tempdir().unwrap();
    write(home.path(), "b.rules", "prefix_rule(['b'])");
    write(home.path(), "a.rules", "prefix_rule(['a'])");
    write(home.path(), "a.txt", "no rules");
    write(project.path(), "0.rules", "prefix_rule(['c'], 'prompt')");
    let folders = [home.path().to_owned(), project.path().to_owned(), home.path().join("none")];
    let (rules, warnings) = Rules::load(&folders);
    assert_eq!(warnings, []);
    let order: Vec<_> = rules.prefixes().iter().map(|rule| rule.pattern[0][0].clone()).collect();
    assert_eq!(order, ["a", "b", "c"]);
    let file = home.path().join("rules/a.rules");
    assert_eq!(rules.prefixes()[0].source.to_string(), format!("{}:1", file.display()));
}

#[test]
fn a_bad_file_leaves_nothing_allowed() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        "a.rules",
        "prefix_rule(['a'])\nprefix_rule(['b'], 'forbidden')\nprefix_rule(['c'], 'prompt')",
    );
    write(home.path(), "b.rules", "prefix_rule(['d'])\nprefix_rule(");
    let (rules, warnings) = Rules::load(&[home.path().to_owned()]);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().contains("b.rules:2:13:"), "{}", warnings[0]);
    let check = |word: &str| rules.check(&words(&[word]), &anything()).decision;
    assert_eq!(
        ["a", "b", "c", "d"].map(check),
        [None, Some(RuleDecision::Forbidden), Some(RuleDecision::Prompt), None]
    );

    fs::write(home.path().join("rules/b.rules"), [0xff, 0xfe]).unwrap();
    assert_eq!(Rules::load(&[home.path().to_owned()]).1.len(), 1);
    fs::write(home.path().join("rules/b.rules"), vec![b'#'; 1024 * 1024 + 1]).unwrap();
    assert_eq!(Rules::load(&[home.path().to_owned()]).1.len(), 1);
}

#[test]
fn an_added_rule_is_read_back() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rules/default.rules");
    let odd = words(&["a\"b", "c\\d", "e\nf", "\t\r\u{1}\u{7f}\u{85}", "é\u{202e}", "", "'"]);
    assert!(append_allow_prefix(&file, &words(&["touch", "amended"])).unwrap());
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "prefix_rule(pattern=[\"touch\", \"amended\"], decision=\"allow\")\n"
    );
    assert!(append_allow_prefix(&file, &odd).unwrap());
    assert!(!append_allow_prefix(&file, &odd).unwrap());
    append_allow_prefix(&file, &[]).unwrap_err();
    let (rules, warnings) = Rules::load(&[home.path().to_owned()]);
    assert_eq!((warnings.len(), rules.prefixes().len()), (0, 2));
    assert_eq!(rules.check(&odd, &anything()).decision, Some(RuleDecision::Allow));

    let mut live = Rules::default();
    live.add_prefix(&odd, "approved");
    assert_eq!(live.check(&odd, &anything()).matches[0].source.to_string(), "approved");
}

#[test]
fn a_line_without_an_end_is_not_continued() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "default.rules", "prefix_rule(['a'])");
    let file = home.path().join("rules/default.rules");
    append_allow_prefix(&file, &words(&["b"])).unwrap();
    assert_eq!(Rules::load(&[home.path().to_owned()]).0.prefixes().len(), 2);
}

#[test]
fn many_writers_lose_and_double_nothing() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rules/default.rules");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for number in 0..20 {
                    append_allow_prefix(&file, &words(&["tool", &number.to_string()])).unwrap();
                }
            });
        }
    });
    assert_eq!(Rules::load(&[home.path().to_owned()]).0.prefixes().len(), 20);
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder.join("rules")).unwrap();
    fs::write(folder.join("rules").join(name), text).unwrap();
}

#[test]
fn approved_prefixes_can_be_listed() {
    let rules = "\
        prefix_rule(pattern=['git', ['log', 'show']])\n\
        prefix_rule(pattern=['make'])\n\
        prefix_rule(pattern=['make', 'install'], decision='prompt')\n\
        prefix_rule(pattern=['npm', 'run', 'lint'])\n\
        prefix_rule(pattern=['npm', ['run', 'exec']], decision='forbidden')\n\
        prefix_rule(pattern=['npm', ['run', 'test']])\n";
    let rules = Rules::parse("t.rules", rules).expect("rules");
    let approved: Vec<String> = rules
        .approved()
        .iter()
        .map(|pattern| pattern.iter().map(|words| words.join("|")).collect::<Vec<_>>().join(" "))
        .collect();
    // A command that a stricter rule covers completely never runs without a question.
    assert_eq!(approved, ["git log|show", "make", "npm run|test"]);
}
