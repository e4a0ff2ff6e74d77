//! The password of a database, from outside its address: an argument of a command line is there for everybody to read.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::PlainFile;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::error::StoreError;

const DEFAULT_PORT: u16 = 5432;
/// The longest password file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Where to look for a password that the address does not hold. The first one found counts.
#[derive(Clone, Default)]
pub struct PasswordSources {
    /// The password itself, as `PGPASSWORD` has it.
    pub password: Option<String>,
    /// A password file that must be there, as `PGPASSFILE` names it. `passfile` in the address comes before it.
    pub file: Option<PathBuf>,
    /// A password file that need not be there.
    pub default_file: Option<PathBuf>,
}

impl fmt::Debug for PasswordSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordSources").finish_non_exhaustive()
    }
}

impl PasswordSources {
    pub(super) fn find(&self, named: Option<&str>, config: &Config) -> Result<Option<String>, StoreError> {
        if config.get_password().is_some() {
            return Ok(None);
        }
        if let Some(file) = named.map(Path::new).or(self.file.as_deref().filter(|_| self.password.is_none()))
        {
            let found = in_file(&read(file)?, config);
            return found.map(Some).ok_or_else(|| {
                let problem = "has no line for this database; write HOST:PORT:DATABASE:USER:PASSWORD";
                StoreError::Database(format!("the password file {} {problem}", file.display()))
            });
        }
        if let Some(password) = &self.password {
            return Ok(Some(password.clone()));
        }
        match self.default_file.as_deref().filter(|file| file.exists()) {
            Some(file) => Ok(in_file(&read(file)?, config)),
            None => Ok(None),
        }
    }
}

fn read(file: &Path) -> Result<String, StoreError> {
    let shown = file.display();
    let problem = |problem: String| StoreError::Database(format!("the password file {shown} {problem}"));
    let cannot = |error: io::Error| problem(format!("cannot be read: {error}"));
    let opened = PlainFile::open(file).map_err(cannot)?;
    if opened.metadata().permissions().mode() & 0o077 != 0 {
        return Err(problem(format!("is open to other users; `chmod 600 {shown}` first")));
    }
    let bytes = opened.read(MAX_BYTES).map_err(cannot)?;
    String::from_utf8(bytes).map_err(|_| problem("cannot be read: it is not text".to_owned()))
}

/// The password of the first line that fits. `*` fits everything; `\` keeps the `:` or `\` after it.
fn in_file(text: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        // As other clients of Postgres call a socket of this machine.
        Some(Host::Unix(_)) | None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(DEFAULT_PORT).to_string();
    let user = config.get_user().unwrap_or_default();
    let wanted = [host.as_str(), &port, config.get_dbname().unwrap_or(user), user];
    let fits = |line: &str| {
        let mut fields = fields(line);
        let password = fields.pop()?;
        let is_right = fields.len() == wanted.len()
            && fields.iter().zip(wanted).all(|(given, wanted)| given == "*" || given == wanted);
        is_right.then_some(password)
    };
    text.lines().filter(|line| !line.starts_with('#')).find_map(fits)
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let kept = match character {
            // The password is the rest of the line, with its colons.
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next(),
            character => Some(character),
        };
        if let Some(field) = fields.last_mut() {
            field.extend(kept);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::str::FromStr;

    use super::*;

    fn config(address: &str) -> Config {
        Config::from_str(address).expect("an address")
    }

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# comment\nother:*:*:*:no\ndb:5432:tasks:oar:a\\:b\\\\c\nlocalhost:*:*:*:own\n*:6000:*:oar:later:on\n";
        for (address, password) in [
            ("postgres://oar@db/tasks", Some("a:b\\c")),
            ("postgres://oar@db/others", None),
            ("postgres://oar@db:6000/others", Some("later:on")),
            ("postgres://oar@%2Frun%2Fpostgresql/tasks", Some("own")),
            ("postgres://eve@db/tasks", None),
        ] {
            assert_eq!(in_file(text, &config(address)).as_deref(), password, "{address}");
        }
    }

    #[test]
    fn a_file_that_is_named_comes_first_and_must_be_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pass");
        fs::write(&file, "db:*:*:*:secret\n").expect("written");
        let sources = PasswordSources { password: Some("variable".to_owned()), ..PasswordSources::default() };
        let named = file.to_str();
        let (here, other) = (config("postgres://u@db/n"), config("postgres://u@elsewhere/n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("changed");
        let open = sources.find(named, &here).map_err(|error| error.to_string());
        assert!(open.is_err_and(|text| text.contains("chmod 600") && !text.contains("secret")));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("changed");
        assert_eq!(sources.find(named, &here).expect("found").as_deref(), Some("secret"));
        assert!(sources.find(named, &other).is_err(), "no line for it");
        assert_eq!(sources.find(None, &here).expect("found").as_deref(), Some("variable"));
        let default_file = Some(file);
        let sources = PasswordSources { default_file, ..PasswordSources::default() };
        assert_eq!(sources.find(None, &here).expect("found").as_deref(), Some("secret"));
        assert_eq!(sources.find(None, &other).expect("none"), None);
        assert_eq!(sources.find(None, &config("postgres://u:own@db/n")).expect("its own"), None);
    }
    #[test]
    fn what_is_no_short_regular_file_is_refused_at_once_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, mode, 0).expect("made");
        fs::write(at("long"), vec![b'#'; 10_000_000]).expect("written");
        fs::set_permissions(at("long"), fs::Permissions::from_mode(0o600)).expect("changed");
        let no_file = "it is not a regular file";
        for (path, problem) in [
            (at("pipe"), no_file),
            (PathBuf::from("/dev/zero"), no_file),
            (at("long"), "it has more than the 1048576 bytes that are read"),
        ] {
            let said = PasswordSources::default().find(path.to_str(), &config("postgres://u@db/n"));
            let said = said.expect_err("refused").to_string();
            let expected = format!("the password file {} cannot be read: {problem}", path.display());
            assert!(said.ends_with(&expected), "{said}");
        }
    }
}
