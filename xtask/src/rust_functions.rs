//! Finds the functions of a Rust source and how many lines each has, by counting braces outside of text. Cheaper than
//! a parser and good enough for a ranking: what a macro makes of its input is not looked at.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub name: String,
    /// Where `fn` stands, from 1.
    pub line: usize,
    /// From the line of `fn` to the line of the closing brace.
    pub lines: usize,
}

pub(crate) fn functions(source: &str) -> Vec<Function> {
    let code = blank_text(source.as_bytes());
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = next_word(&code, b"fn", at) {
        at = start + 2;
        let Some((name, after_name)) = identifier(&code, at) else {
            continue; // A function pointer type or a macro's `$name`.
        };
        at = after_name;
        if let Some(end) = body_end(&code, after_name) {
            found.push(Function {
                name,
                line: 1 + newlines(&code[..start]),
                lines: 1 + newlines(&code[start..end]),
            });
        }
    }
    found
}

fn newlines(code: &[u8]) -> usize {
    code.iter().filter(|byte| **byte == b'\n').count()
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn next_word(code: &[u8], word: &[u8], from: usize) -> Option<usize> {
    (from..code.len()).find(|&at| {
        code[at..].starts_with(word)
            && (at == 0 || !is_word(code[at - 1]))
            && !code.get(at + word.len()).copied().is_some_and(is_word)
    })
}

fn identifier(code: &[u8], from: usize) -> Option<(String, usize)> {
    let start = from + code[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let length = code[start..].iter().take_while(|byte| is_word(**byte)).count();
    let name = String::from_utf8_lossy(&code[start..start + length]).into_owned();
    (length > 0).then_some((name, start + length))
}

/// The index of the brace that closes the body, or nothing for a declaration without one.
fn body_end(code: &[u8], from: usize) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut at = from;
    let mut last = b' ';
    while let Some(&byte) = code.get(at) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b';' if brackets == 0 => return None,
            // The braces of a constant in angle brackets are not the body.
            b'{' if brackets > 0 || last == b'<' || last == b',' => at = closing_brace(code, at)?,
            b'{' => return closing_brace(code, at),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
        at += 1;
    }
    None
}

fn closing_brace(code: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The source with comments, strings and characters blanked out. Lines and positions stay what they were.
pub(crate) fn blank_text(source: &[u8]) -> Vec<u8> {
    let mut code = source.to_vec();
    let mut at = 0;
    while at < source.len() {
        let length = text_length(source, at);
        for byte in &mut code[at..at + length] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += length.max(1);
    }
    code
}

/// How long the comment, string or character that begins here is; 0 if none does.
fn text_length(source: &[u8], at: usize) -> usize {
    let rest = &source[at..];
    let after_word = at > 0 && is_word(source[at - 1]);
    match rest {
        [b'/', b'/', ..] => rest.iter().take_while(|byte| **byte != b'\n').count(),
        [b'/', b'*', ..] => block_comment_length(rest),
        [b'"', ..] => quoted_length(rest, b'"'),
        [b'\'', ..] if is_character(rest) => quoted_length(rest, b'\''),
        [b'r', b'"' | b'#', ..] if !after_word => raw_string_length(rest, 1),
        [b'b' | b'c', b'r', ..] if !after_word => raw_string_length(rest, 2),
        _ => 0,
    }
}

/// Tells `'a'` from the lifetime `'a`.
fn is_character(rest: &[u8]) -> bool {
    if rest.get(1) == Some(&b'\\') {
        return true;
    }
    // The bytes after the first of a longer character all begin with the bits 10.
    let continuation = rest.iter().skip(2).take_while(|byte| **byte & 0xC0 == 0x80).count();
    rest.get(2 + continuation) == Some(&b'\'')
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string_length(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return 0; // A raw identifier, or a word that begins like a raw string.
    }
    let end = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let body = &rest[open + 1..];
    let length = body.windows(end.len()).position(|window| window == end);
    length.map_or(rest.len(), |length| open + 1 + length + end.len())
}

fn block_comment_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name line lines` for each function.
    fn check(source: &str, expected: &[&str]) {
        let found: Vec<String> = functions(source)
            .into_iter()
            .map(|Function { name, line, lines }| format!("{name} {line} {lines}"))
            .collect();
        assert_eq!(found, expected, "in {source}");
    }

    #[test]
    fn counts_from_the_head_to_the_closing_brace() {
        check("fn a() {}\n\npub async fn b(\n    x: u8,\n) -> u8 {\n    x\n}\n", &["a 1 1", "b 3 5"]);
    }

    #[test]
    fn finds_nested_functions_and_methods() {
        check("impl A {\n    fn a(&self) {\n        fn b() {}\n    }\n}\n", &["a 2 3", "b 3 1"]);
    }

    #[test]
    fn passes_over_declarations_pointers_and_macro_names() {
        check(
            "trait T { fn a(&self) -> [u8; 2]; }\ntype F = fn(u8) -> u8;\nfn $name() {}\nlet xfn = 1;",
            &[],
        );
    }

    #[test]
    fn braces_in_text_do_not_count() {
        check("fn a() {\n    \"}\\\"}\"; '}'; b'}'; '\\''; '\\u{7d}';\n}\n", &["a 1 3"]);
        check("fn a() {\n    r\"}\\\"; r#\"}\"}\"#; br##\"}\"#}\"##; c\"}\";\n}\n", &["a 1 3"]);
        check("fn a() {\n    // }\n    /* } /* } */ } */\n}\n", &["a 1 4"]);
        check("// fn no() {}\n/* fn no() {} */\nconst A: &str = \"fn no() {}\";\nfn a() {}", &["a 4 1"]);
    }

    #[test]
    fn a_lifetime_is_not_a_character() {
        check("fn a<'a>(x: &'a str) -> &'a str {\n    x // '\n}\nfn b() {}\n", &["a 1 3", "b 4 1"]);
        check("fn a() {\n    ('é', '{', '\"');\n}\n", &["a 1 3"]);
    }

    #[test]
    fn a_raw_identifier_is_not_a_string() {
        check("fn a() {\n    r#match(\"{\");\n    bar(br, r);\n}\n", &["a 1 4"]);
    }

    #[test]
    fn a_constant_in_braces_is_not_the_body() {
        check("fn a() -> A<{ 1 + 1 }, { 2 }> {\n    A\n}\nfn b(x: [u8; { 3 }]) {}\n", &["a 1 3", "b 4 1"]);
    }

    #[test]
    fn an_unfinished_file_ends_the_search() {
        check("fn a() {\n    \"", &[]);
        check("fn", &[]);
    }
}
