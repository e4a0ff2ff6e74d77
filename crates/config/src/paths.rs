//! Paths in configuration: made absolute against the folder of the layer that set them.

use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

/// Keys with paths; `*` stands for every entry of a table or an array.
pub const PATH_KEYS: &[&[&str]] = &[
    &["model_instructions_file"],
    &["experimental_instructions_file"],
    &["experimental_compact_prompt_file"],
    &["model_catalog_json"],
    &["sqlite_home"],
    &["log_dir"],
    &["zsh_path"],
    &["js_repl_node_path"],
    &["js_repl_node_module_dirs", "*"],
    &["sandbox_workspace_write", "writable_roots", "*"],
    &["sandbox", "deny_read", "*"],
    &["sandbox", "allow_read", "*"],
    &["sandbox", "unix_sockets", "*"],
    &["agents", "*", "config_file"],
    &["skills", "config", "*", "path"],
    &["profiles", "*", "model_instructions_file"],
    &["profiles", "*", "experimental_instructions_file"],
    &["profiles", "*", "experimental_compact_prompt_file"],
    &["profiles", "*", "model_catalog_json"],
    &["profiles", "*", "zsh_path"],
    &["profiles", "*", "js_repl_node_path"],
    &["profiles", "*", "js_repl_node_module_dirs", "*"],
];

/// The folders for relative paths and `~`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathBase<'a> {
    pub(crate) folder: &'a Path,
    /// The user's home folder.
    pub(crate) user: Option<&'a Path>,
}

/// Rewrites every path of the table. Values that are no strings are refused later.
pub(crate) fn resolve_paths(table: &mut Table, base: PathBase<'_>) {
    for keys in PATH_KEYS {
        if let Some((first, rest)) = keys.split_first()
            && let Some(value) = table.get_mut(*first)
        {
            resolve_at(value, rest, base);
        }
    }
}

fn resolve_at(value: &mut Value, keys: &[&str], base: PathBase<'_>) {
    match (keys.split_first(), value) {
        (None, Value::String(text)) if !text.is_empty() => {
            *text = absolute(text, base).to_string_lossy().into_owned();
        }
        (Some((&"*", rest)), Value::Table(table)) => {
            table.iter_mut().for_each(|(_, value)| resolve_at(value, rest, base));
        }
        (Some((&"*", rest)), Value::Array(values)) => {
            values.iter_mut().for_each(|value| resolve_at(value, rest, base));
        }
        (Some((key, rest)), Value::Table(table)) => {
            if let Some(value) = table.get_mut(*key) {
                resolve_at(value, rest, base);
            }
        }
        _ => {}
    }
}

/// Expands `~`, joins and normalises. Symbolic links are kept.
pub(crate) fn absolute(text: &str, base: PathBase<'_>) -> PathBuf {
    let below_user = text.strip_prefix('~').and_then(|rest| match rest {
        "" => Some(""),
        _ => rest.strip_prefix('/'),
    });
    match (below_user, base.user) {
        (Some(rest), Some(user)) => normalize(&user.join(rest)),
        _ => normalize(&base.folder.join(text)),
    }
}

/// Removes `.` and `..` as text.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute() {
        let base = PathBase { folder: Path::new("/etc/codex"), user: Some(Path::new("/users/u")) };
        let cases = [
            ("a/b", "/etc/codex/a/b"),
            ("./a/../b", "/etc/codex/b"),
            ("/x/./y/..", "/x"),
            ("~", "/users/u"),
            ("~/x", "/users/u/x"),
            ("~x", "/etc/codex/~x"),
            ("../../..", "/"),
        ];
        for (text, expected) in cases {
            assert_eq!(absolute(text, base), Path::new(expected), "{text}");
        }
    }
}
