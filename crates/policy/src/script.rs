//! A strict parser of plain shell scripts: literal words joined by `&&`, `||`, `;`, `|` and newlines. For every script
//! it accepts, `bash` reads exactly the same words; it rejects everything that could mean anything else.

/// Longer scripts are rejected.
const MAX_BYTES: usize = 64 * 1024;
const MAX_COMMANDS: usize = 256;

/// Words that start something other than a command, in bash or zsh.
const RESERVED: &[&str] = &[
    "!",
    "-",
    "[[",
    "]]",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// One word as the program gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// It has an unquoted `*`, `?` or `[`, or a leading `~`: the shell may replace it.
    pub expands: bool,
}

/// The commands of a plain script, in order. Each has at least one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainScript {
    pub commands: Vec<Vec<Word>>,
    /// At least two of them are joined by `|`.
    pub pipes: bool,
}

/// Parses a plain script. `None` for anything that is not certainly plain.
pub fn read_script(text: &str) -> Option<PlainScript> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut reader = ScriptReader::new(text);
    let mut script = PlainScript { commands: Vec::new(), pipes: false };
    let mut words = Vec::new();
    let mut awaits_command = false;
    loop {
        match reader.token(words.is_empty())? {
            ScriptToken::Word(word) => words.push(word),
            ScriptToken::Newline if words.is_empty() => {}
            ScriptToken::Newline | ScriptToken::Semicolon => {
                script.push(&mut words)?;
                awaits_command = false;
            }
            ScriptToken::And | ScriptToken::Or | ScriptToken::Pipe if words.is_empty() => return None,
            joint @ (ScriptToken::And | ScriptToken::Or | ScriptToken::Pipe) => {
                script.push(&mut words)?;
                script.pipes |= joint == ScriptToken::Pipe;
                awaits_command = true;
            }
            ScriptToken::HereDocument => return None,
            ScriptToken::End => break,
        }
    }
    if !words.is_empty() {
        script.push(&mut words)?;
    } else if awaits_command {
        return None;
    }
    (!script.commands.is_empty()).then_some(script)
}

/// The command of a script that is a single command with a here-document.
pub(crate) fn read_here_document(text: &str) -> Option<Vec<Word>> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut reader = ScriptReader::new(text);
    let mut words = Vec::new();
    loop {
        match reader.token(words.is_empty())? {
            ScriptToken::Word(word) => words.push(word),
            ScriptToken::Newline if words.is_empty() => {}
            ScriptToken::HereDocument if !words.is_empty() => break,
            _ => return None,
        }
    }
    let strips_tabs = reader.take('-');
    reader.skip_blanks();
    let quoted_from = reader.at;
    let delimiter = reader.word(false)?;
    let quoted = reader.chars[quoted_from..reader.at].iter().any(|c| matches!(c, '\'' | '"' | '\\'));
    reader.skip_blanks();
    if delimiter.text.is_empty() || delimiter.text.contains('\n') || !reader.take('\n') {
        return None;
    }
    let rest: String = reader.chars[reader.at..].iter().collect();
    if !quoted && (rest.contains(['$', '`']) || rest.contains("\\\n")) {
        return None;
    }
    let mut lines =
        rest.split('\n').map(|line| if strips_tabs { line.trim_start_matches('\t') } else { line });
    lines.find(|line| *line == delimiter.text)?;
    lines.all(|line| line.trim_matches([' ', '\t']).is_empty()).then_some(words)
}

impl PlainScript {
    fn push(&mut self, words: &mut Vec<Word>) -> Option<()> {
        if words.is_empty() || self.commands.len() == MAX_COMMANDS {
            return None;
        }
        self.commands.push(std::mem::take(words));
        Some(())
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ScriptToken {
    Word(Word),
    And,
    Or,
    Pipe,
    Semicolon,
    Newline,
    HereDocument,
    End,
}

struct ScriptReader {
    chars: Vec<char>,
    at: usize,
}

impl ScriptReader {
    fn new(text: &str) -> Self {
        Self { chars: text.chars().collect(), at: 0 }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Blanks, and line continuations between words.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.chars.get(self.at + 1) == Some(&'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    fn token(&mut self, begins_command: bool) -> Option<ScriptToken> {
        self.skip_blanks();
        let Some(first) = self.peek() else { return Some(ScriptToken::End) };
        if !matches!(first, '\n' | ';' | '&' | '|' | '<') {
            return self.word(begins_command).map(ScriptToken::Word);
        }
        self.at += 1;
        match first {
            '\n' => Some(ScriptToken::Newline),
            // `;;` and `;&` belong to `case`.
            ';' => (!matches!(self.peek(), Some(';' | '&'))).then_some(ScriptToken::Semicolon),
            '&' => self.take('&').then_some(ScriptToken::And),
            '|' if self.take('|') => Some(ScriptToken::Or),
            '|' => (self.peek() != Some('&')).then_some(ScriptToken::Pipe),
            // `<<<` is a here-string.
            _ => (self.take('<') && self.peek() != Some('<')).then_some(ScriptToken::HereDocument),
        }
    }

    fn word(&mut self, begins_command: bool) -> Option<Word> {
        let mut word = Draft::default();
        while let Some(next) = self.peek() {
            if matches!(next, ' ' | '\t' | '\n' | ';' | '&' | '|') {
                break;
            }
            self.at += 1;
            match next {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => word.quoted_char(self.next().filter(|c| is_ordinary(*c))?),
                // Literal when empty; any other brace may expand.
                '{' if !begins_command && self.take('}') => word.text.push_str("{}"),
                _ => word.bare_char(next)?,
            }
        }
        word.finish(begins_command)
    }

    fn single_quoted(&mut self, word: &mut Draft) -> Option<()> {
        word.quoted = true;
        loop {
            match self.next()? {
                '\'' => return Some(()),
                other if is_text(other) => word.text.push(other),
                _ => return None,
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Draft) -> Option<()> {
        word.quoted = true;
        loop {
            match self.next()? {
                '"' => return Some(()),
                '`' => return None,
                // A dollar without an expansion is literal; patterns often end with one.
                '$' if matches!(self.peek(), Some('"' | ' ' | '|')) => word.text.push('$'),
                '$' => return None,
                '\\' => match self.next()? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => word.text.push(escaped),
                    other if is_text(other) => word.text.extend(['\\', other]),
                    _ => return None,
                },
                other if is_text(other) => word.text.push(other),
                _ => return None,
            }
        }
    }
}

/// A word while it is parsed.
#[derive(Default)]
struct Draft {
    text: String,
    quoted: bool,
    expands: bool,
    equals: bool,
}

impl Draft {
    fn quoted_char(&mut self, c: char) {
        self.quoted = true;
        self.text.push(c);
    }

    fn bare_char(&mut self, c: char) -> Option<()> {
        let begins = self.text.is_empty() && !self.quoted;
        match c {
            '$' | '`' | '(' | ')' | '<' | '>' | '{' | '}' => return None,
            // A comment; in zsh, the path of a program.
            '#' | '=' if begins => return None,
            '=' => self.equals = true,
            '*' | '?' | '[' => self.expands = true,
            '~' => self.expands |= self.text.is_empty() || self.text.ends_with(['=', ':']),
            _ if !is_ordinary(c) => return None,
            _ => {}
        }
        self.text.push(c);
        Some(())
    }

    fn finish(self, begins_command: bool) -> Option<Word> {
        // Alone, a bracket is the name of a program.
        let expands = self.expands && (self.quoted || self.text != "[");
        let reserved = !self.quoted && RESERVED.contains(&self.text.as_str());
        let assigns = self.equals;
        if begins_command && (reserved || assigns || expands || self.text.is_empty()) {
            return None;
        }
        Some(Word { text: self.text, expands })
    }
}

/// Whether a character is allowed in a word outside quotes. Some shells and locales split words at other spaces than
/// the plain ones.
fn is_ordinary(c: char) -> bool {
    !c.is_control() && (c == ' ' || !c.is_whitespace())
}

/// Whether a character is allowed inside quotes.
fn is_text(c: char) -> bool {
    c == '\n' || c == '\t' || !c.is_control()
}
