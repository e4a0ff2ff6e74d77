//! Wire names as Python names.

/// Words that cannot be, or should not be, the name of an attribute: the language's own, what every model already has,
/// and the types annotations are written with.
const RESERVED: &[&str] = &[
    // Keywords.
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
    // Attributes of a model.
    "construct",
    "copy",
    "dict",
    "from_orm",
    "from_wire",
    "json",
    "model_computed_fields",
    "model_config",
    "model_construct",
    "model_copy",
    "model_dump",
    "model_dump_json",
    "model_extra",
    "model_fields",
    "model_fields_set",
    "model_json_schema",
    "model_parametrized_name",
    "model_post_init",
    "model_rebuild",
    "model_validate",
    "model_validate_json",
    "model_validate_strings",
    "parse_file",
    "parse_obj",
    "parse_raw",
    "schema",
    "schema_json",
    "to_wire",
    "update_forward_refs",
    "validate",
    // Types.
    "list",
    "str",
];

/// The attribute of a field, other than the attributes before it.
pub(super) fn attribute(wire: &str, before: &[String]) -> String {
    let mut name = snake(wire);
    while RESERVED.contains(&name.as_str()) || before.contains(&name) {
        name.push('_');
    }
    name
}

/// The wire name an attribute gets by itself; `camel` of `base.py`.
pub(super) fn camel(attribute: &str) -> String {
    let mut parts = attribute.trim_end_matches('_').split('_');
    let head = parts.next().unwrap_or_default().to_owned();
    parts.fold(head, |name, part| name + &capitalised(part))
}

/// `agentMessage`, `agent_message` and `agent-message` as the end of a class name.
pub(super) fn pascal(wire: &str) -> String {
    wire.split(|c: char| !c.is_ascii_alphanumeric()).map(capitalised).collect()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn snake(wire: &str) -> String {
    let mut name = String::new();
    let mut after_small = false;
    for letter in wire.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).chars() {
        if letter.is_ascii_uppercase() && after_small {
            name.push('_');
        }
        after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        name.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    }
    if name.is_empty() { "field".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_snake_case_and_never_reserved() {
        let attribute = |wire| attribute(wire, &["taken".to_owned()]);
        assert_eq!(attribute("threadId"), "thread_id");
        assert_eq!(attribute("deltaBase64"), "delta_base64");
        assert_eq!(attribute("text_elements"), "text_elements");
        assert_eq!(attribute("baseURL"), "base_url");
        assert_eq!(attribute("_meta"), "meta");
        assert_eq!(attribute("$schema"), "schema_");
        assert_eq!(attribute("from"), "from_");
        assert_eq!(attribute("taken"), "taken_");
    }

    #[test]
    fn camel_undoes_what_was_camel_case() {
        assert_eq!(camel("thread_id"), "threadId");
        assert_eq!(camel("delta_base64"), "deltaBase64");
        assert_eq!(camel("schema_"), "schema");
        assert_ne!(camel("text_elements"), "text_elements");
    }

    #[test]
    fn class_names_have_no_separators() {
        assert_eq!(pascal("agentMessage"), "AgentMessage");
        assert_eq!(pascal("local_shell_call"), "LocalShellCall");
        assert_eq!(pascal("read-only"), "ReadOnly");
    }
}
