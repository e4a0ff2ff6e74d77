//! Entry points for fuzzing.

use crate::{Rules, command_actions, commands_of, escape_for_display, is_dangerous, read_script, shell_line};

/// Parses any bytes as a script with everything that reads command lines. Panics when two parsers disagree.
pub fn command_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let argv: Vec<String> = ["bash", "-lc", text].map(str::to_owned).to_vec();
    let commands = commands_of(&argv);
    assert!(
        !commands.list.is_empty() && commands.list.iter().all(|words| !words.is_empty()),
        "a command has words"
    );
    is_dangerous(&argv);
    command_actions(&argv);
    escape_for_display(text);
    if let Some(script) = read_script(text) {
        for words in script.commands.iter().filter(|words| words.iter().all(|word| !word.expands)) {
            // After another word, no word is reserved.
            let texts: Vec<_> =
                std::iter::once("x").chain(words.iter().map(|word| word.text.as_str())).collect();
            let again = read_script(&shell_line(&texts));
            let same =
                again.is_some_and(|again| again.commands.len() == 1 && again.commands[0][1..] == **words);
            assert!(same, "{texts:?} is not read back");
        }
    }
}

/// Parses any bytes as a rule file.
pub fn rule_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Rules::parse("fuzz.rules", text) {
        let lines = text.split('\n').count();
        assert!((1..=lines).contains(&error.line) && error.column > 0, "{error} is outside of the file");
    }
}
