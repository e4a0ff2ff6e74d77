//! The words of a Rust source without its comments, texts and test code. Enough to see which types a file declares
//! and which modules it names, in a fraction of the time a parser takes. Code that a macro makes is not seen.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use crate::rust_functions::{blank_text, is_word};
use crate::workspace::{self, Once};

/// A word, or one character of punctuation; `::` is one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub text: &'a str,
    /// From 1.
    pub line: usize,
    /// The byte at which it begins.
    at: usize,
}

/// A source file of a crate, as it is read from the tree or made up by a test.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the root of the workspace, with `/`.
    pub path: String,
    /// The text with comments, strings and characters blanked out.
    code: String,
    /// Tokens outside of test code: where each begins and ends in `code`, and its line.
    spans: Vec<(usize, usize, usize)>,
    /// The files and folders of the modules that this file declares for its tests alone.
    test_modules: Vec<String>,
    is_test_file: bool,
    product_lines: usize,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = String::from_utf8_lossy(&blank_text(text.as_bytes())).into_owned();
        let all = tokens(&code);
        let tests = test_items(&all);
        let is_test_file = attribute(&all, 0).is_some_and(|end| all[1].text == "!" && is_test(&all[..end]));
        let test_modules =
            tests.iter().flat_map(|item| module_files(path, text, &all[item.clone()])).collect();
        let lines_of = |item: &Range<usize>| match (all.get(item.start), all.get(item.end - 1)) {
            (Some(first), Some(last)) => last.line + 1 - first.line,
            _ => 0,
        };
        let product_lines = text.lines().count() - tests.iter().map(lines_of).sum::<usize>();
        let span = |token: &Token<'_>| (token.at, token.at + token.text.len(), token.line);
        let mut spans = Vec::with_capacity(all.len());
        let mut next = 0;
        for item in tests {
            spans.extend(all[next..item.start].iter().map(span));
            next = item.end;
        }
        spans.extend(all[next..].iter().map(span));
        Self { path: path.to_owned(), code, spans, test_modules, is_test_file, product_lines }
    }

    /// The tokens outside of test code.
    pub(crate) fn tokens(&self) -> Vec<Token<'_>> {
        self.spans.iter().map(|&(at, end, line)| Token { text: &self.code[at..end], line, at }).collect()
    }

    /// The text, with comments and the insides of strings blank.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The lines outside of test code, comments and empty ones included.
    pub(crate) fn product_lines(&self) -> usize {
        self.product_lines
    }

    /// `engine` for a file below `crates/engine/`.
    pub(crate) fn crate_name(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default()
    }

    /// The path below `src/`; nothing for tests, benches and build scripts.
    pub(crate) fn below_src(&self) -> Option<&str> {
        self.path.splitn(4, '/').nth(3).filter(|_| self.path.split('/').nth(2) == Some("src"))
    }

    /// The path of the module in its crate: none for `lib.rs`, `["a", "b"]` for `a/b.rs` and `a/b/mod.rs`.
    pub(crate) fn module(&self) -> Vec<&str> {
        let path = self.below_src().unwrap_or_default();
        let mut names: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let is_root = names.len() == 1 && (path == "lib.rs" || path == "main.rs");
        if is_root || names.last() == Some(&"mod") {
            names.pop();
        }
        names
    }
}

/// Where the module of a test item is: the file or files it may have, and the folder below it.
fn module_files(path: &str, text: &str, item: &[Token<'_>]) -> Vec<String> {
    let file = Path::new(path);
    let folder = file.parent().unwrap_or(Path::new(""));
    let is_folder_itself =
        file.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs" || name == "mod.rs");
    let children = if is_folder_itself { folder.to_owned() } else { file.with_extension("") };
    let after = |word: &str| item.windows(2).find(|pair| pair[0].text == word).map(|pair| pair[1]);
    let mut found = Vec::new();
    if let Some(equals) = after("path").filter(|next| next.text == "=") {
        let name = text[equals.at..].split('"').nth(1).unwrap_or_default();
        found.push(plain(&folder.join(name)));
    }
    if let Some(name) = after("mod") {
        found.push(plain(&children.join(format!("{}.rs", name.text))));
        found.push(format!("{}/", plain(&children.join(name.text))));
    }
    found
}

/// The path without `.` and `..`, with `/`.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain.to_string_lossy().replace('\\', "/")
}

/// Every source below `crates/*/src` that is compiled into the crate itself, and not into its tests alone. Read once.
pub(crate) fn product_sources() -> Result<&'static [Source]> {
    static SOURCES: Once<Vec<Source>> = Once::new(|| {
        let is_source = |path: &&String| {
            path.starts_with("crates/") && path.ends_with(".rs") && path.split('/').nth(2) == Some("src")
        };
        let mut sources = Vec::new();
        for path in workspace::files()?.iter().filter(is_source) {
            sources.push(Source::new(path, &workspace::read_text(path)?));
        }
        Ok(without_tests(sources))
    });
    Ok(SOURCES.get()?)
}

fn without_tests(sources: Vec<Source>) -> Vec<Source> {
    let test_paths: BTreeSet<String> =
        sources.iter().flat_map(|source| source.test_modules.clone()).collect();
    let (folders, files): (BTreeSet<String>, BTreeSet<String>) =
        test_paths.into_iter().partition(|path| path.ends_with('/'));
    let is_below = |path: &str, folder: &String| path.starts_with(folder.as_str());
    let is_product = |source: &Source| {
        let path = &source.path;
        !source.is_test_file && !files.contains(path) && !folders.iter().any(|folder| is_below(path, folder))
    };
    sources.into_iter().filter(is_product).collect()
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let bytes = code.as_bytes();
    let mut found = Vec::with_capacity(bytes.len() / 4);
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let byte = bytes[at];
        let length = if is_word(byte) {
            bytes[at..].iter().take_while(|byte| is_word(**byte)).count()
        } else if bytes[at..].starts_with(b"::") {
            2
        } else {
            1
        };
        if byte == b'\n' {
            line += 1;
        } else if !byte.is_ascii_whitespace() {
            found.push(Token { text: &code[at..at + length], line, at });
        }
        at += length;
    }
    found
}

/// Half-open ranges of tokens: each item under `#[cfg(test)]` or `#[test]`, its attributes included.
fn test_items(tokens: &[Token<'_>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(end) = attribute(tokens, at) else {
            at += 1;
            continue;
        };
        // All attributes of the item: the one for tests need not be the first.
        let (mut last, mut for_tests) = (end, is_test(&tokens[at..end]));
        while let Some(end) = attribute(tokens, last) {
            for_tests |= is_test(&tokens[last..end]);
            last = end;
        }
        if for_tests && tokens[at + 1].text != "!" {
            let end = item_end(tokens, last);
            found.push(at..end);
            at = end;
        } else {
            at = last;
        }
    }
    found
}

/// The index behind the attribute that begins here.
fn attribute(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map(|token| token.text);
    if text(at) != Some("#") {
        return None;
    }
    let open = if text(at + 1) == Some("!") { at + 2 } else { at + 1 };
    (text(open) == Some("[")).then(|| closing(tokens, open))
}

fn is_test(attribute: &[Token<'_>]) -> bool {
    let words: Vec<&str> = attribute
        .iter()
        .map(|token| token.text)
        .filter(|text| text.as_bytes().iter().all(|byte| is_word(*byte)))
        .collect();
    matches!(
        words.as_slice(),
        ["cfg", "test"] | ["cfg", "all", "test", ..] | ["test"] | ["tokio", "test", ..]
    )
}

/// The index behind the bracket that closes the one at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 1 => return at + 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The index behind the item, field, variant or statement that begins here.
fn item_end(tokens: &[Token<'_>], from: usize) -> usize {
    let mut words = tokens[from..].iter().map(|token| token.text).filter(|text| {
        !matches!(*text, "pub" | "(" | ")" | "crate" | "super" | "in" | "async" | "unsafe" | "default")
    });
    let keyword = match words.next() {
        Some("const") if words.next() == Some("fn") => Some("fn"),
        other => other,
    };
    let has_body = matches!(
        keyword,
        Some("fn" | "mod" | "struct" | "enum" | "union" | "trait" | "impl" | "macro_rules")
    );
    let is_list_entry =
        !has_body && !matches!(keyword, Some("use" | "type" | "const" | "static" | "let" | "extern"));
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => return at + 1,
            "," if is_list_entry => return at + 1,
            ")" | "]" | "}" => return at,
            "{" if has_body => return closing(tokens, at),
            "(" | "[" | "{" => at = closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_tokens(text: &str, expected: &str) {
        let source = Source::new("crates/a/src/lib.rs", text);
        let words: Vec<&str> = source.tokens().iter().map(|token| token.text).collect();
        assert_eq!(words.join(" "), expected, "in {text}");
    }

    #[test]
    fn comments_and_texts_are_no_tokens() {
        check_tokens("use a::b; // c\nlet x = \"d\";", "use a :: b ; let x = ;");
    }

    #[test]
    fn test_code_is_left_out() {
        check_tokens(
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b<A, B>() {} }\nfn c() {}",
            "fn a ( ) { } fn c ( ) { }",
        );
        check_tokens("#[test]\nfn b<A, B>(x: [u8; 2]) { { } }\nfn c() {}", "fn c ( ) { }");
        check_tokens("#[cfg(test)]\nuse a::{b, c};\nuse d;", "use d ;");
        check_tokens("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\nuse d;", "use d ;");
        check_tokens("#[allow(x)]\n#[cfg(test)]\npub(crate) const fn a() {}\nuse d;", "use d ;");
        check_tokens("#[cfg(test)]\nconst A: B = B { b: c };\nuse d;", "use d ;");
        check_tokens("struct A { #[cfg(test)] b: B<u8>, c: C }", "struct A { c : C }");
        check_tokens("enum A { B, #[cfg(test)] C }", "enum A { B , }");
    }

    #[test]
    fn code_that_tests_share_stays() {
        check_tokens("#[cfg(any(test, unix))]\nuse d;", "# [ cfg ( any ( test , unix ) ) ] use d ;");
        check_tokens("#[cfg(not(test))]\nuse d;", "# [ cfg ( not ( test ) ) ] use d ;");
    }

    #[test]
    fn the_files_of_test_modules_are_left_out() {
        let sources = vec![
            Source::new("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod kit;"),
            Source::new("crates/a/src/kit.rs", ""),
            Source::new("crates/a/src/kit/more.rs", ""),
            Source::new("crates/a/src/b.rs", "mod c;\n#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;"),
            Source::new("crates/a/src/b_tests.rs", ""),
            Source::new("crates/a/src/b/tests.rs", ""),
            Source::new("crates/a/src/b/c.rs", "#![cfg(test)]"),
            Source::new("crates/a/src/kitten.rs", ""),
        ];
        let left: Vec<String> = without_tests(sources).into_iter().map(|source| source.path).collect();
        assert_eq!(left, ["crates/a/src/lib.rs", "crates/a/src/b.rs", "crates/a/src/kitten.rs"]);
    }

    #[test]
    fn a_file_knows_its_module() {
        for (path, module) in [
            ("crates/a/src/lib.rs", &[][..]),
            ("crates/a/src/main.rs", &[]),
            ("crates/a/src/b.rs", &["b"]),
            ("crates/a/src/b/mod.rs", &["b"]),
            ("crates/a/src/b/lib.rs", &["b", "lib"]),
        ] {
            assert_eq!(Source::new(path, "").module(), module, "{path}");
        }
    }
}
