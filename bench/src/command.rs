//! The command lines of the servers under test.

use anyhow::{Result, bail, ensure};

/// A server to measure: `NAME=COMMAND LINE`, to which `app-server` is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerCommand {
    pub(crate) name: String,
    pub(crate) line: String,
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl ServerCommand {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let Some((name, line)) = text.split_once('=') else { bail!("expected NAME=COMMAND") };
        ensure!(!name.is_empty(), "the server has no name");
        let mut words = split(line)?.into_iter();
        let Some(program) = words.next() else { bail!("the command of {name} is empty") };
        let arguments = words.chain(["app-server".to_owned()]).collect();
        Ok(Self { name: name.to_owned(), line: line.to_owned(), program, arguments })
    }
}

/// Splits like a shell: white space between words, quotes and backslashes keep it inside one.
fn split(line: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match (quote, next) {
            (Some(open), _) if next == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let Some(escaped) = rest.next() else { bail!("nothing follows the last backslash") };
                word.get_or_insert_default().push(escaped);
            }
            (None, _) if next.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(next),
        }
    }
    ensure!(quote.is_none(), "a quote is not closed");
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_as_in_a_shell() {
        let check = |line: &str, words: &[&str]| assert_eq!(split(line).expect("valid"), words, "{line}");
        check("a  b\tc", &["a", "b", "c"]);
        check(r#"'a b' "c 'd'" e\ f"#, &["a b", "c 'd'", "e f"]);
        check(r#"x="1 2" ''"#, &["x=1 2", ""]);
        assert!(split("'open").is_err());
        assert!(split("end\\").is_err());
    }

    #[test]
    fn a_server_is_a_name_and_a_command() {
        let server = ServerCommand::parse("ours=bin/server -c key=value").expect("valid");
        assert_eq!((server.name.as_str(), server.program.as_str()), ("ours", "bin/server"));
        assert_eq!(server.arguments, ["-c", "key=value", "app-server"]);
        for wrong in ["no-command", "=x", "name="] {
            assert!(ServerCommand::parse(wrong).is_err(), "{wrong}");
        }
    }
}
