//! Rewrites a pattern for `grep -E`, whose syntax is smaller.

/// The pattern and options for grep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extended {
    pub(crate) pattern: String,
    pub(crate) ignores_case: bool,
}

/// The error names what cannot be expressed.
pub(crate) fn extended(pattern: &str) -> Result<Extended, String> {
    let (rest, ignores_case) = match pattern.strip_prefix("(?i)") {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let mut writer = Writer { chars: rest.chars().peekable(), text: String::with_capacity(rest.len()) };
    writer.write()?;
    Ok(Extended { pattern: writer.text, ignores_case })
}

struct Writer<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    text: String,
}

impl Writer<'_> {
    fn write(&mut self) -> Result<(), String> {
        while let Some(character) = self.chars.next() {
            match character {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' if self.chars.peek() == Some(&'?') => self.group()?,
                // Greediness does not matter for whether there is a match.
                '*' | '+' | '?' | '}' => {
                    self.text.push(character);
                    self.chars.next_if_eq(&'?');
                }
                other => self.text.push(other),
            }
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        self.chars.next();
        if self.chars.next_if_eq(&':').is_none() {
            return Err("a group that begins with `(?`".to_owned());
        }
        self.text.push('(');
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        self.text.push('[');
        self.text.extend(self.chars.next_if_eq(&'^'));
        self.text.extend(self.chars.next_if_eq(&']'));
        // A backslash is literal in a class there, and `]` and `-` have fixed positions.
        while let Some(character) = self.chars.next() {
            match character {
                ']' => {
                    self.text.push(']');
                    return Ok(());
                }
                '\\' => self.escape(true)?,
                '[' if self.chars.peek() == Some(&':') => {
                    self.text.push('[');
                    for inner in self.chars.by_ref() {
                        self.text.push(inner);
                        if inner == ']' {
                            break;
                        }
                    }
                }
                '&' | '~' if self.chars.peek() == Some(&character) => {
                    return Err("an operation on classes".to_owned());
                }
                '[' => return Err("a class within a class".to_owned()),
                other => self.text.push(other),
            }
        }
        Ok(())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(escaped) = self.chars.next() else { return Ok(()) };
        let set = match escaped {
            'd' => "0-9",
            's' => "[:space:]",
            'w' => "[:alnum:]_",
            _ => "",
        };
        match escaped {
            'd' | 's' | 'w' if in_class => self.text.push_str(set),
            'd' | 's' | 'w' => self.text.extend(["[", set, "]"]),
            'D' if !in_class => self.text.push_str("[^0-9]"),
            'S' if !in_class => self.text.push_str("[^[:space:]]"),
            'W' if !in_class => self.text.push_str("[^[:alnum:]_]"),
            'b' | 'B' if !in_class => self.text.extend(['\\', escaped]),
            't' => self.text.push('\t'),
            ']' | '[' | '-' | '^' if in_class => {
                return Err(format!("`\\{escaped}` within a class"));
            }
            other if other.is_ascii_punctuation() && in_class => self.text.push(other),
            other if other.is_ascii_punctuation() => self.text.extend(['\\', other]),
            other => return Err(format!("`\\{other}`")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_rewritten_or_refused() {
        let cases = [
            ("plain", Ok("plain")),
            (r"\d+\s*\w", Ok("[0-9]+[[:space:]]*[[:alnum:]_]")),
            (r"[\w.-]+?@", Ok("[[:alnum:]_.-]+@")),
            (r"(?:a|b){2,3}?", Ok("(a|b){2,3}")),
            (r"^fn \w+\(", Ok(r"^fn [[:alnum:]_]+\(")),
            (r"[^]x][[:alpha:]]", Ok("[^]x][[:alpha:]]")),
            (r"\bword\b", Ok(r"\bword\b")),
            (r"\S\D\W", Ok("[^[:space:]][^0-9][^[:alnum:]_]")),
            (r"\p{Lu}", Err(())),
            (r"\x41", Err(())),
            (r"a(?i:b)", Err(())),
            (r"[a&&b]", Err(())),
            (r"[[a]b]", Err(())),
            (r"[\]]", Err(())),
        ];
        for (pattern, expected) in cases {
            let found = extended(pattern).map(|found| found.pattern).map_err(|_| ());
            assert_eq!(found.as_deref(), expected.as_ref().copied(), "{pattern}");
        }
        assert!(extended("(?i)x").is_ok_and(|found| found.ignores_case && found.pattern == "x"));
    }
}
