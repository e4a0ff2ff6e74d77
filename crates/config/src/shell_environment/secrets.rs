//! Variables that look like secrets, by name or value. Matches in place, without copies, because this runs over the
//! whole environment each time a thread is opened.

/// Parts of names that say a secret.
const PARTS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "COOKIE",
    "WEBHOOK",
    "AUTH_CONFIG",
];
/// Ends of names that do. With the `_`: `PWD` and `OLDPWD` are folders.
const ENDS: &[&str] = &["_PWD", "_PASS", "_AUTH", "_PAT", "_JWT", "_DSN", "_BEARER", "_HEADERS"];

/// Beginnings of tokens that services hand out, and how many characters of a token follow at least.
const TOKENS: &[(&str, usize)] = &[
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ATATT", 30),
    ("Bearer ", 16),
    ("SG.", 30),
    ("dckr_pat_", 16),
    ("dop_v1_", 30),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("glsa_", 20),
    ("hf_", 30),
    ("lin_api_", 20),
    ("npm_", 36),
    ("pypi-", 40),
    ("rk_live_", 16),
    ("shpat_", 20),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("xapp-", 16),
    ("xoxa-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxr-", 16),
    ("xoxs-", 16),
    ("ya29.", 16),
];

/// Keys of settings within a value, as in `Server=db;Password=…` or `?sig=…`.
const KEYS: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "accountkey",
    "accesskey",
    "api_key",
    "apikey",
    "signature",
    "sig",
];

/// How far a test reads from where it begins, so that the whole stays linear.
const WINDOW: usize = 2048;

/// Whether the variable is kept from commands unless the user's settings say otherwise.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    has_secret_name(name.as_bytes()) || has_secret_look(value.as_bytes())
}

fn has_secret_name(name: &[u8]) -> bool {
    let has = |part: &&str| name.windows(part.len()).any(|at| at.eq_ignore_ascii_case(part.as_bytes()));
    let ends = |end: &&str| {
        name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end.as_bytes()))
    };
    PARTS.iter().any(has) || ENDS.iter().any(ends)
}

/// One pass over the value; each test begins with a byte that few values have.
fn has_secret_look(value: &[u8]) -> bool {
    // The shortest token there is.
    if value.len() < 8 {
        return false;
    }
    let mut before = b' ';
    for (at, byte) in value.iter().enumerate() {
        let rest = &value[at..value.len().min(at + WINDOW)];
        let found = match byte {
            b'-' => is_private_key(rest),
            b':' => has_password_in_address(&value[..at], rest),
            b'=' => is_secret_setting(&value[..at], &rest[1..]),
            b'e' if !is_of_a_word(before) => is_json_web_token(rest),
            _ if !is_of_a_word(before) => is_token(rest),
            _ => false,
        };
        if found {
            return true;
        }
        before = *byte;
    }
    false
}

fn is_private_key(rest: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN ";
    // `ENCRYPTED PRIVATE KEY`, `PGP PRIVATE KEY BLOCK`: the words come within the first line.
    let Some(title) = rest.strip_prefix(BEGIN) else { return false };
    title[..title.len().min(40)].windows(11).any(|words| words == b"PRIVATE KEY")
}

/// `rest` begins with the `:` of `://`.
fn has_password_in_address(before: &[u8], rest: &[u8]) -> bool {
    let Some(address) = rest.strip_prefix(b"://") else { return false };
    let whole = address.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let end = whole.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(whole.len());
    let authority = &whole[..end];
    // A password may hold a slash, so an `@` later in the address counts if a `:` without a port comes before it.
    let user = match authority.iter().rposition(|byte| *byte == b'@') {
        Some(at) => &authority[..at],
        None => match whole.iter().position(|byte| *byte == b'@') {
            Some(at) if after_colon(authority).is_some_and(|text| !is_port(text)) => &whole[..at],
            _ => return false,
        },
    };
    let is_web = [&b"http"[..], b"https"].iter().any(|scheme| {
        before.len().checked_sub(scheme.len()).is_some_and(|at| before[at..].eq_ignore_ascii_case(scheme))
    });
    // `ssh://git@host` names an account. A long name in a web address is a token.
    after_colon(user).is_some() || (is_web && user.len() >= 16)
}

fn after_colon(text: &[u8]) -> Option<&[u8]> {
    let at = text.iter().position(|byte| *byte == b':')?;
    Some(&text[at + 1..]).filter(|after| !after.is_empty())
}

fn is_port(text: &[u8]) -> bool {
    text.len() <= 5 && text.iter().all(u8::is_ascii_digit)
}

/// `key=value` within a value: a connection string or a signed address. A shell's `token=$1` holds none.
fn is_secret_setting(before: &[u8], after: &[u8]) -> bool {
    let has_value = match after {
        [b'"' | b'\'', first, ..] | [first, ..] => first.is_ascii_alphanumeric() || b"+_-%".contains(first),
        [] => false,
    };
    let ends = |key: &&str| {
        let Some(at) = before.len().checked_sub(key.len()) else { return false };
        let is_whole = at == 0 || !before[at - 1].is_ascii_lowercase() || key.len() > 4;
        is_whole && before[at..].eq_ignore_ascii_case(key.as_bytes())
    };
    has_value && KEYS.iter().any(ends)
}

/// Three parts of base64url joined by dots, of which the first two are JSON objects.
fn is_json_web_token(rest: &[u8]) -> bool {
    let end = rest.iter().position(|byte| !(is_of_a_token(*byte) || *byte == b'.')).unwrap_or(rest.len());
    let mut parts = rest[..end].split(|byte| *byte == b'.');
    let mut object = || parts.next().is_some_and(|part| part.starts_with(b"eyJ") && part.len() >= 10);
    object() && object()
}

fn is_token(rest: &[u8]) -> bool {
    let fits = |(prefix, least): &(&str, usize)| {
        let Some(token) = rest.strip_prefix(prefix.as_bytes()) else { return false };
        let length = token.iter().take_while(|byte| is_of_a_token(**byte) || **byte == b'.').count();
        // A name of a folder or a package has no digits that matter; a token of this length always has some.
        length >= *least && token[..length].iter().any(u8::is_ascii_digit)
    };
    TOKENS.iter().any(fits)
}

fn is_of_a_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_of_a_token(byte: u8) -> bool {
    is_of_a_word(byte) || matches!(byte, b'+' | b'=' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_any_case() {
        for name in [
            "API_KEY",
            "api_key",
            "Api_Key_Id",
            "GITHUB_TOKEN",
            "tokenizer",
            "MYSQL_PWD",
            "DB_PASSWORD",
            "PGPASSWORD",
            "npm_config__auth",
            "AWS_SECRET_ACCESS_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "SENTRY_DSN",
            "SESSION_COOKIE",
            "GITHUB_PAT",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "ŁKEY",
        ] {
            assert!(is_secret(name, "v"), "{name}");
        }
        for name in [
            "PATH",
            "JAVA_HOME",
            "NVM_DIR",
            "PKG_CONFIG_PATH",
            "HTTPS_PROXY",
            "PWD",
            "OLDPWD",
            "SSH_AUTH_SOCK",
            "PATTERN",
            "AUTHOR",
            "COMPASS",
            "_",
            "",
            "ÄÖ",
            "CARGO_HOME",
            "AWS_REGION",
            "MARK",
        ] {
            assert!(!is_secret(name, "v"), "{name}");
        }
    }

    #[test]
    fn values_give_a_secret_away() {
        let token = "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T";
        let tokens = TOKENS.iter().map(|(prefix, _)| format!("{prefix}{token}{token}"));
        let others = [
            "postgres://user:planted@host/db",
            "http://u:p@proxy:3128",
            "http://u:12345@proxy:3128",
            "HTTPS://user:p/a?s#s@host/v1",
            "see\nhttps://user:p@host now",
            "https://0123456789abcdef0@host/git",
            "redis://:planted@host",
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
            "x\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "Server=db;User=me;Password=planted",
            "server=db;PWD='planted'",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=planted==",
            "https://host/blob?sv=1&sig=planted",
            "--header 'Authorization: Bearer 0123456789abcdef0'",
        ];
        for value in tokens.chain(others.map(str::to_owned)) {
            assert!(is_secret("X", &value), "{value}");
            assert!(is_secret("X", &format!("{}\n{value}", "line\n".repeat(50))), "{value}");
        }
    }

    #[test]
    fn values_that_builds_need_stay() {
        for value in [
            "",
            "/usr/lib/jvm/java-21",
            "http://proxy.example:3128",
            "https://host/path@2x.png?v=1",
            "https://host:8080/a:b@c",
            "ssh://git@host/repo",
            "git@github.com:me/repo.git",
            "file:///home/me",
            "localhost,127.0.0.1,::1,.example",
            "/opt/sk-learn-environments/bin",
            "--max-old-space-size=4096 --require ./npm_hooks.js",
            "-----BEGIN CERTIFICATE-----\nMIIB",
            "rs=0:di=01;34:ln=01;36:*.tar=01;31",
            "() {  token=$1; echo \"$token\"\n}",
            "task-0123456789012345678901234567890",
            "eyJust.a.word",
            "design=flat;config=on",
            "\u{1b}[0m\u{0}",
            "日本語の値",
        ] {
            assert!(!is_secret("X", value), "{value}");
        }
    }

    #[test]
    fn a_huge_environment_costs_little() {
        let started = std::time::Instant::now();
        for value in
            ["a".repeat(1 << 20), ":://".repeat(1 << 15), "e=-".repeat(1 << 18), "eyJ.".repeat(1 << 15)]
        {
            assert!(!is_secret("X", &value));
        }
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }
}
