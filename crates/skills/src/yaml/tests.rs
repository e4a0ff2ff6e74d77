use serde_json::{Value, json};

use super::*;

fn shown(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Text(text) => json!(text),
        Yaml::Plain(text) => json!({ "plain": text }),
        Yaml::List(values) => values.iter().map(shown).collect(),
        Yaml::Map(entries) => entries.iter().map(|(key, value)| (key.clone(), shown(value))).collect(),
    }
}

fn check(text: &str, expected: &Value) {
    assert_eq!(read(text).map(|value| shown(&value)), Ok(expected.clone()), "{text}");
}

fn plain(text: &str) -> Value {
    json!({ "plain": text })
}

#[test]
fn scalars() {
    let cases = [
        ("a: b", plain("b")),
        ("a:   b c   ", plain("b c")),
        ("a: b # comment", plain("b")),
        ("a: b#c", plain("b#c")),
        ("a: http://x/y", plain("http://x/y")),
        ("a: -1", plain("-1")),
        ("a:", Value::Null),
        ("a: ~", Value::Null),
        ("a: null # none", Value::Null),
        ("a: one\n  two\n\n  three", plain("one two\nthree")),
        ("a:\n  one\n  two", plain("one two")),
        ("a: 'it''s: \"so\" # no'", json!("it's: \"so\" # no")),
        ("a: \"x\\ty\\u00e9\\x41\\\\ \\\"q\\\"\" # c", json!("x\tyéA\\ \"q\"")),
        ("a: \"one\n  two\n\n  three\"", json!("one two\nthree")),
        ("a: \"one \\\n   two\"", json!("one two")),
        ("a: ''", json!("")),
        ("a: |\n  one\n   two\n\n  three\n\n", json!("one\n two\n\nthree\n")),
        ("a: |-\n  one\n", json!("one")),
        ("a: |+\n  one\n\n", json!("one\n\n")),
        ("a: |2-\n   one\n", json!(" one")),
        ("a: >\n  one\n  two\n\n  three\n", json!("one two\nthree\n")),
        ("a: > # folded\n  one: 1\n  # kept\n", json!("one: 1 # kept\n")),
        ("a: |", json!("")),
        ("a: \u{202e}é", plain("\u{202e}é")),
    ];
    for (text, expected) in cases {
        check(text, &json!({ "a": expected }));
    }
}

#[test]
fn mappings_and_sequences() {
    let cases = [
        ("", Value::Null),
        ("# nothing\n", Value::Null),
        ("---\na: 1\n...\nleft out", json!({"a": plain("1")})),
        ("a: 1\r\nb: 2\r\n", json!({"a": plain("1"), "b": plain("2")})),
        ("a:\n  b:\n    c: 1\n  d: 2\n", json!({"a": {"b": {"c": plain("1")}, "d": plain("2")}})),
        ("null: 1\n: 2\n", json!({"null": plain("1"), "": plain("2")})),
        ("? a\n: 1\n", json!({"a": plain("1")})),
        ("'a b': 1\n\"c\" : 2\n", json!({"a b": plain("1"), "c": plain("2")})),
        ("a:\n- x\n- y\nb: z", json!({"a": [plain("x"), plain("y")], "b": plain("z")})),
        ("a:\n  - x\n\n  # why\n  - 'y'\n", json!({"a": [plain("x"), "y"]})),
        ("- a: 1\n  b: 2\n- c: 3\n", json!([{"a": plain("1"), "b": plain("2")}, {"c": plain("3")}])),
        ("-\n  a: 1\n- - x\n  - y\n", json!([{"a": plain("1")}, [plain("x"), plain("y")]])),
        ("-\n- x\n-\n", json!([null, plain("x"), null])),
        ("a:\n  - |\n    text\n  - z\n", json!({"a": ["text\n", plain("z")]})),
        ("a: [x, 'y z', \"w\",]", json!({"a": [plain("x"), "y z", "w"]})),
        (
            "a: [\n  x, # first\n  [y]\n] # end\nb: 1",
            json!({"a": [plain("x"), [plain("y")]], "b": plain("1")}),
        ),
        (
            "a: {b: 1, 'c': [2], d, e: }",
            json!({"a": {"b": plain("1"), "c": [plain("2")], "d": null, "e": null}}),
        ),
        ("{a: http://x, b: 1}", json!({"a": plain("http://x"), "b": plain("1")})),
        ("a: []\nb: {}", json!({"a": [], "b": {}})),
    ];
    for (text, expected) in cases {
        check(text, &expected);
    }
}

#[test]
fn many_lines_need_no_more_stack() {
    let many = read(&"-\n".repeat(30_000)).expect("YAML");
    assert_eq!(many.as_list().len(), 30_000);
}

#[test]
fn errors_have_their_line() {
    let deep = format!("a: {}", "[".repeat(100));
    let steps: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let many: String = (0..2_000).map(|key| format!("{key}:\n")).collect();
    let cases = [
        (many.as_str(), 1_001, "too many"),
        ("a: &x b", 1, "anchors"),
        ("b: 1\na: *x", 2, "anchors"),
        ("a: !!str b", 1, "tags"),
        ("a: [&x b]", 1, "anchors"),
        ("*x : 1", 1, "aliases"),
        ("? [a]\n: b", 1, "not supported"),
        ("[a]: b", 1, "not supported"),
        ("a: b: c", 1, "in quotes"),
        ("a: see below:", 1, "in quotes"),
        ("a: b\n  c: d", 2, "in quotes"),
        ("a: @b", 1, "in quotes"),
        ("a: - b", 1, "a list"),
        ("a: 1\na: 2", 2, "twice"),
        ("a: {b: 1, b: 2}", 1, "twice"),
        ("a: 1\n\tb: 2", 2, "tabs"),
        ("a: 1\n b: 2", 2, "in quotes"),
        ("a: 'x'\n b: 2", 2, "not aligned"),
        ("a:\n    b: 1\n  c: 2", 3, "not aligned"),
        ("a: 1\njust text", 2, "missing"),
        ("a: \"b", 1, "not closed"),
        ("a: [b", 1, "closing bracket is missing"),
        ("a: [b c\nd: e]", 2, "braces"),
        ("a: 'b' c", 1, "closing"),
        ("a: \"\\q\"", 1, "escape"),
        ("a: \"\\ud800\"", 1, "escape"),
        ("a: |x\n  b", 1, "block scalar"),
        ("a: 1\n---\nb: 2", 2, "does not belong"),
        (&deep, 1, "too deeply"),
        (&steps, 18, "too deeply"),
    ];
    for (text, line, problem) in cases {
        let error = read(text).expect_err(text);
        assert!(error.problem.contains(problem), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

/// The largest file that is read, made of what costs a parser most.
#[test]
fn hostile_texts_are_read_in_little_time() {
    let most = 64 << 10;
    let parts = [
        "[",
        "{",
        "- ",
        "? ",
        ": ",
        "a: ",
        "#\n",
        "[a,",
        "\"\\n",
        "'",
        "*a ",
        "&a ",
        "!a ",
        "|\n",
        "a\n",
        "---\n",
        "%a\n",
        "-\n",
        " ",
        "\t",
        "{a: ",
        "\"a\": {}, ",
    ];
    for part in parts {
        for before in ["", "[", "{", "\"", "a: |\n "] {
            let text = before.to_owned() + &part.repeat(most / part.len());
            let started = std::time::Instant::now();
            let _ = read(&text);
            assert!(started.elapsed() < std::time::Duration::from_secs(5), "{before}{part}");
        }
    }
    // Aliases that would stand for more than a billion values.
    let bomb: String =
        (1..10).map(|at| format!("a{at}: &a{at} [{}]\n", format!("*a{},", at - 1).repeat(10))).collect();
    let error = read(&format!("a0: &a0 x\n{bomb}")).expect_err("refused");
    assert_eq!((error.line, error.problem.as_ref()), (1, NO_REFERENCES));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic_or_grow(text in "[ \t\n\r:#'\"\\[\\]{},|>+\\-&*!?%@`a~\\\\xu0-9é]{0,60}") {
        if let Ok(value) = read(&text) {
            fn size(value: &Yaml) -> usize {
                match value {
                    Yaml::Null => 0,
                    Yaml::Text(text) | Yaml::Plain(text) => text.len(),
                    Yaml::List(values) => values.iter().map(size).sum(),
                    Yaml::Map(entries) => entries.iter().map(|(key, value)| key.len() + size(value)).sum(),
                }
            }
            // An escape of two characters may stand for three bytes.
            proptest::prop_assert!(size(&value) <= 2 * text.len() + 1);
        }
    }

    #[test]
    fn texts_of_any_kind_are_read_in_little_time(text in ".{0,2000}") {
        let started = std::time::Instant::now();
        let _ = read(&text);
        proptest::prop_assert!(started.elapsed() < std::time::Duration::from_secs(1));
    }

    #[test]
    fn quoted_texts_come_back(text in ".{0,40}") {
        let quoted = serde_json::to_string(&text).expect("text");
        proptest::prop_assert_eq!(read(&format!("a: {quoted}")), Ok(Yaml::Map(vec![("a".into(), Yaml::Text(text))])));
    }
}
