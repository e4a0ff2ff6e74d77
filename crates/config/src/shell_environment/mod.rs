//! The environment variables of commands.

mod search_path;
mod secrets;

use std::collections::BTreeMap;

pub use search_path::{closed_search_path, system_search_path};

use crate::keys::{Inherit, ShellEnvironmentKeys};

/// `[shell_environment_policy]` with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellEnvironmentPolicy {
    pub inherit: Inherit,
    /// Whether to keep variables that look like secrets, by name or value.
    pub ignore_default_excludes: bool,
    /// Patterns of names to remove. `*` and `?` are wildcards; case does not matter.
    pub exclude: Vec<String>,
    /// Variables to set or override.
    pub set: BTreeMap<String, String>,
    /// Patterns of the only names to keep; empty keeps all.
    pub include_only: Vec<String>,
    /// Whether commands run in the user's login profile.
    pub use_profile: bool,
}

impl Default for ShellEnvironmentPolicy {
    fn default() -> Self {
        Self::from(&ShellEnvironmentKeys::default())
    }
}

impl From<&ShellEnvironmentKeys> for ShellEnvironmentPolicy {
    fn from(keys: &ShellEnvironmentKeys) -> Self {
        Self {
            inherit: keys.inherit.unwrap_or_default(),
            ignore_default_excludes: keys.ignore_default_excludes.unwrap_or(false),
            exclude: keys.exclude.clone().unwrap_or_default(),
            set: keys.set.clone().unwrap_or_default(),
            include_only: keys.include_only.clone().unwrap_or_default(),
            use_profile: keys.experimental_use_profile.unwrap_or(false),
        }
    }
}

const CORE: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];
/// Patterns. Excludes variables that often contain passwords, such as database URLs.
const COMMON: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "PWD",
    "HOSTNAME",
    "XDG_*",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "CI",
    "DEBIAN_FRONTEND",
    "MANPATH",
    "INFOPATH",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "CMAKE_PREFIX_PATH",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "MAVEN_HOME",
    "MAVEN_OPTS",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "NODE_ENV",
    "NODE_PATH",
    "NODE_OPTIONS",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PNPM_HOME",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "UV_CACHE_DIR",
    "POETRY_HOME",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "RUBYLIB",
    "RUBYOPT",
    "DOTNET_ROOT",
    "NIX_PATH",
    "NIX_PROFILES",
    "HOMEBREW_PREFIX",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
];

impl ShellEnvironmentPolicy {
    /// The variables of a command, derived from the server's.
    pub fn apply(&self, variables: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
        let starts = |name: &str| match self.inherit {
            Inherit::All => true,
            Inherit::Common => [CORE, COMMON].into_iter().flatten().any(|pattern| matches(pattern, name)),
            Inherit::Core => CORE.iter().any(|core| core.eq_ignore_ascii_case(name)),
            Inherit::None => false,
        };
        let is_dropped = |name: &str, value: &str| {
            (!self.ignore_default_excludes && secrets::is_secret(name, value))
                || self.exclude.iter().any(|pattern| matches(pattern, name))
        };
        let mut kept: BTreeMap<String, String> =
            variables.into_iter().filter(|(name, value)| starts(name) && !is_dropped(name, value)).collect();
        kept.extend(self.set.clone());
        if !self.include_only.is_empty() {
            kept.retain(|name, _| self.include_only.iter().any(|pattern| matches(pattern, name)));
        }
        kept
    }
}

/// Whether the whole name matches the pattern. Linear, except for backtracking to the last `*`.
fn matches(pattern: &str, name: &str) -> bool {
    let (mut wanted, mut rest) = (pattern.chars(), name.chars());
    // The pattern after the last `*`, and the next position to try.
    let mut retry = None;
    loop {
        let (mut next_wanted, mut next_rest) = (wanted.clone(), rest.clone());
        let Some(found) = next_rest.next() else { return wanted.all(|left| left == '*') };
        match next_wanted.next() {
            Some('*') => {
                retry = Some((next_wanted.clone(), next_rest));
                wanted = next_wanted;
            }
            Some(one) if one == '?' || same_letter(one, found) => (wanted, rest) = (next_wanted, next_rest),
            _ => {
                let Some((after_star, from)) = &mut retry else { return false };
                (wanted, rest) = (after_star.clone(), from.clone());
                from.next();
            }
        }
    }
}

fn same_letter(one: char, other: char) -> bool {
    one.eq_ignore_ascii_case(&other)
        || !(one.is_ascii() && other.is_ascii()) && one.to_lowercase().eq(other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let cases = [
            ("*KEY*", "api_key_id", true),
            ("KEY", "APIKEY", false),
            ("a?c", "ABC", true),
            ("a?c", "AC", false),
            ("*", "", true),
            ("*a*b", "xaaybzb", true),
            ("*a*b", "xaaybz", false),
            ("", "x", false),
            ("ä?", "Äb", true),
            ("a", "ä", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_steps_come_in_order() {
        let server = ["HOME", "PATH", "API_KEY", "EDITOR", "AWS_REGION"];
        let apply = |policy: ShellEnvironmentPolicy| {
            let variables = server.map(|name| (name.to_owned(), "v".to_owned()));
            policy.apply(variables).into_keys().collect::<Vec<_>>().join(" ")
        };
        let base = ShellEnvironmentPolicy::default;
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let set = |name: &str| BTreeMap::from([(name.to_owned(), "w".to_owned())]);
        let cases = [
            (base(), "AWS_REGION EDITOR HOME PATH"),
            (ShellEnvironmentPolicy { inherit: Inherit::Common, ..base() }, "EDITOR HOME PATH"),
            (
                ShellEnvironmentPolicy { inherit: Inherit::All, ignore_default_excludes: true, ..base() },
                "API_KEY AWS_REGION EDITOR HOME PATH",
            ),
            (ShellEnvironmentPolicy { inherit: Inherit::Core, ..base() }, "HOME PATH"),
            (ShellEnvironmentPolicy { inherit: Inherit::None, set: set("A"), ..base() }, "A"),
            (
                ShellEnvironmentPolicy {
                    inherit: Inherit::All,
                    exclude: texts(&["aws_*"]),
                    set: set("AWS_X"),
                    ..base()
                },
                "AWS_X EDITOR HOME PATH",
            ),
            (ShellEnvironmentPolicy { include_only: texts(&["p*"]), set: set("Z"), ..base() }, "PATH"),
        ];
        for (policy, expected) in cases {
            assert_eq!(apply(policy.clone()), expected, "{policy:?}");
        }
    }
}
