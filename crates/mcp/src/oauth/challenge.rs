//! `WWW-Authenticate`: a server's requirements for a token.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// The relevant parts of a `Bearer` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) resource_metadata: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) error: Option<String>,
}

impl Challenge {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let all = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        all.map(Self::parse).find(|challenge| *challenge != Self::default()).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        let Some(at) = lower.find("bearer") else { return Self::default() };
        let mut challenge = Self::default();
        let mut rest = &text[at + "bearer".len()..];
        while let Some((key, value, after)) = parameter(rest) {
            let place = match key.to_ascii_lowercase().as_str() {
                "resource_metadata" => &mut challenge.resource_metadata,
                "scope" => &mut challenge.scope,
                "error" => &mut challenge.error,
                _ => &mut None,
            };
            if place.is_none() {
                *place = Some(value);
            }
            rest = after;
        }
        challenge
    }
}

/// The next `key=value` or `key="value"`, and the rest.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([',', ' ', '\t']);
    let (key, rest) = text.split_once('=')?;
    let key = key.rsplit([' ', ',']).next().unwrap_or(key);
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        return Some((key, rest[..end].to_owned(), &rest[end..]));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, letter) in quoted.char_indices() {
        match letter {
            _ if escaped => {
                value.push(letter);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((key, value, &quoted[at + 1..])),
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_and_nonsense_is_not() {
        let some = |text: &str| Some(text.to_owned());
        for (text, resource_metadata, scope, error) in [
            ("Bearer", None, None, None),
            (
                r#"Bearer error="invalid_token", resource_metadata="https://h/x", scope="a b""#,
                some("https://h/x"),
                some("a b"),
                some("invalid_token"),
            ),
            ("Bearer scope=a,error=b", None, some("a"), some("b")),
            (r#"Basic realm="x", Bearer scope="s\"q""#, None, some("s\"q"), None),
            (r#"Bearer scope="a", scope="b""#, None, some("a"), None),
            (r#"Bearer scope="never ends"#, None, None, None),
            ("Digest nonce=1", None, None, None),
            ("bearer = = =", None, None, None),
        ] {
            assert_eq!(Challenge::parse(text), Challenge { resource_metadata, scope, error }, "{text}");
        }
    }
}
