//! Approvals for the session: keyed by what really runs, so that they cover exactly that.

use std::path::{Path, PathBuf};

use crate::argv::{commands_of, shell_script};
use crate::executables::{Executables, Program};
use crate::verdict::Escalation;

/// Everything about a command that an approval covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    command: Canonical,
    /// The files of the names: of the shells, then of each command.
    programs: Vec<Option<Program>>,
    cwd: PathBuf,
    escalation: Escalation,
    /// The additional permissions, as text.
    additional: Option<String>,
    tty: bool,
    /// The command's variables in addition to the thread's environment, sorted.
    environment: Vec<(String, String)>,
}

/// The call that a key is made from.
#[derive(Debug, Clone, Copy)]
pub struct SessionCall<'a> {
    pub argv: &'a [String],
    pub cwd: &'a Path,
    pub escalation: Escalation,
    pub additional: Option<&'a str>,
    pub tty: bool,
    pub environment: &'a [(String, String)],
}

/// Equal for all spellings of the same command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Canonical {
    /// One command with known words, in a shell or not.
    Words(Vec<String>),
    /// A shell script, by its flag and its exact text.
    Script { flag: String, script: String },
}

impl SessionKey {
    pub fn new(call: &SessionCall<'_>, executables: &Executables) -> Self {
        let commands = commands_of(call.argv);
        let script = shell_script(call.argv);
        let command = match (&*commands.list, script) {
            // A glob may expand differently later; the script with it does not change.
            ([words], Some(_)) if commands.plain && !commands.expands => Canonical::Words(words.clone()),
            (_, Some(call)) => {
                Canonical::Script { flag: call.flag.to_owned(), script: call.script.to_owned() }
            }
            (_, None) => Canonical::Words(call.argv.to_vec()),
        };
        // The first word of an unparsable script is its shell.
        let programs = commands.list.iter().filter_map(|words| words.first());
        let names = commands.shells.iter().chain(programs);
        let mut environment = call.environment.to_vec();
        environment.sort();
        Self {
            command,
            programs: names.map(|name| executables.program(name)).collect(),
            cwd: call.cwd.to_owned(),
            escalation: call.escalation,
            additional: call.additional.map(str::to_owned),
            tty: call.tty,
            environment,
        }
    }
}
