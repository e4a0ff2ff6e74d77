//! Separates a command's operands from its options.

/// Folder names that say little about their contents.
const COMMON_FOLDERS: &[&str] = &["build", "dist", "node_modules", "src"];

/// The words that are neither options nor values of the options in `with_value`.
pub(super) fn operands<'a>(arguments: &'a [String], with_value: &[&str]) -> Vec<&'a str> {
    let mut operands = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            operands.extend(words);
            break;
        }
        if with_value.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            operands.push(word);
        }
    }
    operands
}

/// The value of the first of these options.
pub(super) fn value_of<'a>(arguments: &'a [String], options: &[&str]) -> Option<&'a str> {
    let at = arguments.iter().position(|word| options.contains(&word.as_str()))?;
    arguments.get(at + 1).map(String::as_str)
}

/// The last informative part of a path.
pub(super) fn short_name(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let telling = |part: &&str| !part.is_empty() && !COMMON_FOLDERS.contains(part);
    path.rsplit('/').find(telling).unwrap_or(path).to_owned()
}
