//! The address of a git repository without its user name and password: every user of a machine can list processes'
//! command lines, and git passes the address to programs it starts.

use std::fmt;

/// Git's credential helper, which answers from its environment.
const HELPER: &str = r#"!f() { [ "$1" = get ] && printf 'username=%s\npassword=%s\n' "$OARLOCK_GIT_NAME" "$OARLOCK_GIT_PASSWORD"; }; f"#;
const NAME: &str = "OARLOCK_GIT_NAME";
const PASSWORD: &str = "OARLOCK_GIT_PASSWORD";

/// An address that is safe on a command line, with its separate login. `Debug` does not show the login.
#[derive(Clone, PartialEq, Eq)]
pub struct GitAddress {
    plain: String,
    login: Option<GitLogin>,
}

#[derive(Clone, PartialEq, Eq)]
struct GitLogin {
    /// The prefix of matching addresses: `https://host:port`.
    scope: String,
    /// As in the address.
    userinfo: String,
    name: String,
    password: Option<String>,
}

impl GitAddress {
    /// The error is a sentence about the address, without its secrets.
    pub fn parse(url: &str) -> Result<Self, String> {
        let plain = Self { plain: url.to_owned(), login: None };
        let Some((scheme, rest)) = url.split_once("://") else { return Ok(plain) };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let Some((userinfo, host)) = authority.rsplit_once('@') else { return Ok(plain) };
        match scheme {
            "https" | "http" => {
                let (name, password) = match userinfo.split_once(':') {
                    Some((name, password)) => (name, Some(decoded(password)?)),
                    None => (userinfo, None),
                };
                let scope = format!("{scheme}://{host}");
                let login = GitLogin { userinfo: userinfo.to_owned(), name: decoded(name)?, password, scope };
                Ok(Self { plain: format!("{}{path}", login.scope), login: Some(login) })
            }
            // Ssh takes no password from an address; it would only be exposed.
            "ssh" if userinfo.contains(':') => {
                Err(format!("an address of ssh cannot have a password; use a key for {host}"))
            }
            _ => Ok(plain),
        }
    }

    /// Without user name and password of https. A user name for ssh stays, because it is part of the destination.
    pub fn plain(&self) -> &str {
        &self.plain
    }

    /// Texts that no error may contain.
    pub fn secrets(&self) -> Vec<&str> {
        let Some(login) = &self.login else { return Vec::new() };
        let parts = login.userinfo.split(':').chain([login.userinfo.as_str(), login.name.as_str()]);
        parts.chain(login.password.as_deref()).filter(|part| !part.is_empty()).collect()
    }

    /// Variables with git's credentials for this host only. `settings` is the number of settings in its environment
    /// (`GIT_CONFIG_COUNT`).
    pub fn variables(&self, settings: usize) -> Vec<(String, String)> {
        let Some(login) = &self.login else { return Vec::new() };
        let key = |name: &str| format!("credential.{}.{name}", login.scope);
        let (more, secrets) = match &login.password {
            // The empty helper removes configured ones: none of them must get the password.
            Some(password) => (
                vec![(key("helper"), String::new()), (key("helper"), HELPER.to_owned())],
                vec![(NAME.to_owned(), login.name.clone()), (PASSWORD.to_owned(), password.clone())],
            ),
            None => (vec![(key("username"), login.name.clone())], Vec::new()),
        };
        let mut variables = vec![("GIT_CONFIG_COUNT".to_owned(), (settings + more.len()).to_string())];
        for ((key, value), number) in more.into_iter().zip(settings..) {
            variables.push((format!("GIT_CONFIG_KEY_{number}"), key));
            variables.push((format!("GIT_CONFIG_VALUE_{number}"), value));
        }
        variables.extend(secrets);
        variables
    }
}

impl fmt::Debug for GitAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.plain)
    }
}

impl fmt::Display for GitAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.plain)
    }
}

/// Without percent-encoding. Git's credential protocol has one line per value.
fn decoded(text: &str) -> Result<String, String> {
    let broken = || "the name or password in the address is not written as one in an address".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(broken)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| broken())?);
        rest = &rest[2..];
    }
    let text = String::from_utf8(bytes).map_err(|_| broken())?;
    if text.chars().any(char::is_control) { Err(broken()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it expects something")]

    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_login_is_taken_out_of_an_address() {
        for (url, plain, secrets) in [
            (
                "https://me:t%40ken@host:8443/a@b.git",
                "https://host:8443/a@b.git",
                vec!["me", "t%40ken", "t@ken"],
            ),
            ("https://t0ken@host/r", "https://host/r", vec!["t0ken"]),
            ("https://a@b:p@host", "https://host", vec!["p"]),
            ("https://me:p@host?x=/@y", "https://host?x=/@y", vec!["p"]),
            ("https://host/a@b.git", "https://host/a@b.git", vec![]),
            ("ssh://git@host/r", "ssh://git@host/r", vec![]),
            ("git@host:r", "git@host:r", vec![]),
            ("file:///a@b", "file:///a@b", vec![]),
        ] {
            let address = GitAddress::parse(url).unwrap();
            assert_eq!(address.plain(), plain);
            assert_eq!(format!("{address:?}{address}"), format!("{plain}{plain}"));
            for secret in &secrets {
                assert!(address.secrets().contains(secret), "{url}: {:?}", address.secrets());
            }
            assert_eq!(address.variables(0).is_empty(), secrets.is_empty(), "{url}");
        }
        for url in ["ssh://git:hunter22@host/r", "https://me:hunter22%0a@host", "https://me:hunter22%zz@host"]
        {
            let error = GitAddress::parse(url).unwrap_err();
            assert!(!error.contains("hunter22"), "{error}");
        }
    }

    /// The credentials that git reads from the variables.
    fn asked(address: &GitAddress, host: &str, inherited: &[(&str, &str)]) -> String {
        let mut command = Command::new("git");
        command.args(["credential", "fill"]).env_clear().env("PATH", std::env::var("PATH").unwrap());
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent");
        command.envs(inherited.iter().copied()).envs(address.variables(inherited.len() / 2));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        write!(child.stdin.take().unwrap(), "protocol=https\nhost={host}\n\n").unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }

    #[test]
    fn git_logs_in_with_it_and_nowhere_else() {
        let address = GitAddress::parse("https://me:t%40k'en%25@host:8443/r").unwrap();
        // A user's helper, which must not be called.
        let inherited = [
            ("GIT_CONFIG_KEY_0", "credential.helper"),
            ("GIT_CONFIG_VALUE_0", "!echo username=other; echo password=other;:"),
        ];
        let said = asked(&address, "host:8443", &inherited);
        assert!(said.contains("username=me\npassword=t@k'en%\n"), "{said}");
        let said = asked(&address, "elsewhere", &inherited);
        assert!(said.contains("password=other\n"), "{said}");
        assert_eq!(asked(&address, "elsewhere", &[]), "");

        let only_name = GitAddress::parse("https://me@host/r").unwrap();
        let inherited = [
            ("GIT_CONFIG_KEY_0", "credential.helper"),
            ("GIT_CONFIG_VALUE_0", "!grep username; echo password=kept;:"),
        ];
        let said = asked(&only_name, "host", &inherited);
        assert!(said.contains("username=me\npassword=kept\n"), "{said}");
    }
}
