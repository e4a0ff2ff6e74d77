//! The names of servers' tools for the model.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// The providers' limit.
const MAX_NAME: usize = 64;
const DIGEST_HEX: usize = 40;

/// `mcp__<server>__<tool>` with every other character as `_`. A longer name ends with a digest of the whole.
pub(crate) fn qualified(server: &str, tool: &str) -> String {
    let raw = format!("mcp__{server}__{tool}");
    let plain = sanitised(&raw);
    if plain.len() <= MAX_NAME {
        return plain;
    }
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, raw.as_bytes());
    format!("{}{}", &plain[..MAX_NAME - DIGEST_HEX], HEXLOWER.encode(hash.as_ref()))
}

pub(crate) fn sanitised(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// The tool of each name. A name never changes its meaning.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, (String, String)>);

impl Names {
    /// The name of a tool. None if another tool has it.
    pub(crate) fn assign(&mut self, server: &str, tool: &str) -> Option<String> {
        let name = qualified(server, tool);
        let owner = self.0.entry(name.clone()).or_insert_with(|| (server.to_owned(), tool.to_owned()));
        (owner.0 == server && owner.1 == tool).then_some(name)
    }

    /// Server and tool, under their own names.
    pub(crate) fn meaning(&self, name: &str) -> Option<(String, String)> {
        self.0.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        assert_eq!(qualified("echo", "say"), "mcp__echo__say");
        assert_eq!(qualified("my-server", "do.it now"), "mcp__my_server__do_it_now");
        assert_eq!(qualified("s", "ü"), "mcp__s___");
        let exactly = "x".repeat(MAX_NAME - "mcp__s__".len());
        assert_eq!(qualified("s", &exactly).len(), MAX_NAME);
        let long = qualified("s", &format!("{exactly}y"));
        assert_eq!(long.len(), MAX_NAME);
        assert!(long.starts_with("mcp__s__xxxxxxxxxxxxxxxx"), "{long}");
        assert!(long[24..].chars().all(|c| c.is_ascii_hexdigit()), "{long}");
        assert_ne!(long, qualified("s", &format!("{exactly}z")));
    }

    #[test]
    fn a_name_keeps_its_meaning() {
        let mut names = Names::default();
        assert_eq!(names.assign("a", "x-y").as_deref(), Some("mcp__a__x_y"));
        assert_eq!(names.assign("a", "x.y"), None);
        assert_eq!(names.assign("a", "x-y").as_deref(), Some("mcp__a__x_y"));
        assert_eq!(names.meaning("mcp__a__x_y"), Some(("a".to_owned(), "x-y".to_owned())));
    }
}
