//! Addresses and forms as text: taking them apart, putting them together.

use http::Uri;

/// Scheme, host and port, in one spelling.
pub(super) fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let usual = if scheme == "https" { 443 } else { 80 };
    match url.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// The path without slashes at its end: empty for the root.
pub(super) fn path(url: &Uri) -> &str {
    url.path().trim_end_matches('/')
}

/// Pairs as the body of a form, or as a query.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(key, value)| format!("{}={}", encoded(key), encoded(value))).collect();
    pairs.join("&")
}

/// An address with more pairs in its query.
pub(super) fn with_query(url: &str, pairs: &[(&str, &str)]) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let joint = match url.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{url}{joint}{}", form(pairs))
}

/// The pairs of a query, decoded. Of a key that comes twice both are there.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (decoded(k), decoded(v)))
        .collect()
}

pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high * 16 + low);
                    rest = after;
                }
                _ => out.push(b'%'),
            },
            (other, _) => out.push(*other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Words of a stranger for a person to read: one line, nothing invisible, not long.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 300;
    let plain = text.chars().map(|c| if c.is_control() || c.is_whitespace() { ' ' } else { c });
    let plain: String = plain
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        .collect();
    plain
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_survive_their_way() {
        let all = [("a b", "c&d=e"), ("ü", "100%"), ("empty", ""), ("plus", "1+1")];
        let text = form(&all);
        assert_eq!(text, "a%20b=c%26d%3De&%C3%BC=100%25&empty=&plus=1%2B1");
        let back = pairs(&text);
        assert_eq!(back.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), all);
        assert_eq!(
            pairs("x=1%2&y=%zz&z=a+b"),
            [("x", "1%2"), ("y", "%zz"), ("z", "a b")].map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
    }

    #[test]
    fn queries_are_added_to() {
        assert_eq!(with_query("https://h/a", &[("k", "v")]), "https://h/a?k=v");
        assert_eq!(with_query("https://h/a?x=1#part", &[("k", "v")]), "https://h/a?x=1&k=v");
        assert_eq!(with_query("https://h/a?", &[("k", "v")]), "https://h/a?k=v");
    }

    #[test]
    fn an_origin_has_one_spelling() {
        for (url, expected) in [
            ("https://H.example:443/a", "https://h.example"),
            ("http://h:80", "http://h"),
            ("http://h:8080/x", "http://h:8080"),
        ] {
            assert_eq!(origin(&url.parse().expect("a url")), expected);
        }
    }

    #[test]
    fn strange_words_are_made_harmless() {
        assert_eq!(shown("a\r\nb\t\u{202e}c  d"), "a b c d");
        assert_eq!(shown(&"x".repeat(1000)).len(), 300);
    }
}
