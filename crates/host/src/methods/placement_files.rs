//! Files of a placement's workspace, read and written by short commands there. No runtime is started for them.

use std::time::Duration;

use placements::{Placement, PlacementError, RunLimits, ShortOutput, SpawnOptions};
use protocol::{FsReadDirectoryEntry, ThreadId};

use crate::error::TaskError;
use crate::placing::{LaunchFailure, PlaceRow};
use crate::shared::HostShared;
use crate::task_host::TaskHost;

/// The largest file that is read, as on the host's own machine.
const MAX_READ: usize = 64 << 20;
/// Of the names in a folder.
const MAX_NAMES: usize = 8 << 20;
const MAX_TOLD: usize = 64 << 10;
const LIMIT: Duration = Duration::from_secs(300);

/// Goes down to a folder of the workspace `$1`, and makes with `$2` what is missing; `$3` names follow. A link that a command
/// has put there leads nowhere else.
const ENTER: &str = r#"
cd -P "$1" && w=$(pwd -P) || exit 1
m=$2; n=$3; shift 3
while [ "$n" -gt 0 ]; do
  [ "$m" = 0 ] || [ -d "./$1" ] || mkdir "./$1" || exit 1
  cd -P "./$1" || exit 1
  case "$(pwd -P)/" in "${w%/}/"*) ;; *) echo "$1: a link out of the workspace" >&2; exit 1;; esac
  shift; n=$((n-1))
done
"#;

const READ: &str = r#"
f=./$1
if [ -L "$f" ]; then
  f=$(readlink -f "$f")
  case "$f" in "${w%/}/"*) ;; *) echo "$1: a link out of the workspace" >&2; exit 1;; esac
fi
[ ! -e "$f" ] || [ -f "$f" ] || { echo "$1: not a file" >&2; exit 1; }
exec cat "$f"
"#;

/// `$2` is the size: what is cut off on its way never gets the file's name. The mode of a file that was there stays.
const WRITE: &str = r#"
[ ! -d "./$1" ] || { echo "$1: a folder" >&2; exit 1; }
t=./.oarlock-$$
if [ -f "./$1" ] && [ ! -L "./$1" ]; then cp -p "./$1" "$t" || exit 1; fi
cat > "$t" && [ "$(wc -c < "$t")" -eq "$2" ] && mv -f "$t" "./$1" && exit 0
rm -f "$t"; echo "$1: it did not arrive as a whole" >&2; exit 1
"#;

/// Each name after the letter of its kind, and ended by a NUL: a name may hold anything else.
const LIST: &str = r#"
for f in * .[!.]* ..?*; do
  k=o
  if [ -d "./$f" ]; then k=d; elif [ -f "./$f" ]; then k=f; elif [ ! -e "./$f" ] && [ ! -L "./$f" ]; then continue; fi
  printf '%s%s\000' "$k" "$f"
done
"#;

/// A short command in a placement.
#[derive(Debug)]
struct PlaceCommand<'a> {
    script: &'a str,
    path: &'a str,
    /// The last name of the path is not entered: it is the file's.
    has_file: bool,
    makes_folders: bool,
    input: &'a [u8],
    max_output: usize,
}

impl Default for PlaceCommand<'_> {
    fn default() -> Self {
        Self { script: "", path: "", has_file: true, makes_folders: false, input: b"", max_output: MAX_TOLD }
    }
}

impl PlaceCommand<'_> {
    fn argv(&self, workspace: &str) -> Result<Vec<String>, TaskError> {
        let mut folders = parts(self.path, workspace)?;
        let file = if self.has_file { folders.pop() } else { None };
        if self.has_file && file.is_none() {
            return Err(path_problem(format!("{} is the workspace itself", self.path)));
        }
        let script = format!("{ENTER}{}", self.script);
        let makes = if self.makes_folders { "1" } else { "0" };
        let count = folders.len().to_string();
        let mut argv: Vec<String> =
            ["sh", "-c", &script, "sh", workspace, makes, &count].map(str::to_owned).to_vec();
        argv.extend(folders.into_iter().chain(file).map(str::to_owned));
        argv.push(self.input.len().to_string());
        Ok(argv)
    }

    async fn run(&self, placement: &Placement) -> Result<Result<ShortOutput, PlacementError>, TaskError> {
        let options = SpawnOptions::new(self.argv(&placement.reference().workspace)?);
        let limits = RunLimits { bytes: self.max_output, time: LIMIT };
        Ok(placement.run_with(&options, self.input, limits).await)
    }
}

/// The names that lead to a path from the workspace.
fn parts<'a>(path: &'a str, workspace: &str) -> Result<Vec<&'a str>, TaskError> {
    let outside = || path_problem(format!("{path} is not beneath the placement's workspace, {workspace}"));
    let rest = path.strip_prefix(workspace.trim_end_matches('/')).ok_or_else(outside)?;
    let is_beneath = rest.is_empty() || rest.starts_with('/');
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match is_beneath && !parts.contains(&"..") {
        true => Ok(parts),
        false => Err(outside()),
    }
}

fn path_problem(problem: String) -> TaskError {
    TaskError::Field { field: "path", problem }
}

impl From<LaunchFailure> for TaskError {
    fn from(failure: LaunchFailure) -> Self {
        Self::Placement(failure.message)
    }
}

impl TaskHost {
    pub async fn read_file_in(&self, id: &str, path: &str) -> Result<Vec<u8>, TaskError> {
        let read = PlaceCommand { script: READ, path, max_output: MAX_READ, ..PlaceCommand::default() };
        let output = self.run_in_place(id, &read).await?;
        let limit = MAX_READ >> 20;
        let too_large = || path_problem(format!("{path} is larger than {limit} MiB, the most that is read"));
        if output.truncated { Err(too_large()) } else { Ok(output.stdout) }
    }

    /// The whole file. Its folder must be there.
    pub async fn write_file_in(&self, id: &str, path: &str, content: &[u8]) -> Result<(), TaskError> {
        let write = PlaceCommand { script: WRITE, path, input: content, ..PlaceCommand::default() };
        self.run_in_place(id, &write).await.map(drop)
    }

    pub async fn make_folder_in(&self, id: &str, path: &str, makes_folders: bool) -> Result<(), TaskError> {
        let make = match makes_folders {
            true => PlaceCommand { path, has_file: false, makes_folders, ..PlaceCommand::default() },
            false => PlaceCommand { path, script: "mkdir \"./$1\"", ..PlaceCommand::default() },
        };
        self.run_in_place(id, &make).await.map(drop)
    }

    pub async fn list_folder_in(&self, id: &str, path: &str) -> Result<Vec<FsReadDirectoryEntry>, TaskError> {
        let list = PlaceCommand {
            script: LIST,
            path,
            has_file: false,
            max_output: MAX_NAMES,
            ..PlaceCommand::default()
        };
        let output = self.run_in_place(id, &list).await?;
        if output.truncated {
            return Err(path_problem(format!("{path} holds more names than can be listed")));
        }
        let entry = |line: &[u8]| {
            let (kind, name) = line.split_first()?;
            let file_name = String::from_utf8_lossy(name).into_owned();
            Some(FsReadDirectoryEntry { file_name, is_directory: *kind == b'd', is_file: *kind == b'f' })
        };
        Ok(output.stdout.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// Wakes the place, or makes it, where that is needed.
    async fn run_in_place(&self, id: &str, command: &PlaceCommand<'_>) -> Result<ShortOutput, TaskError> {
        let row = PlaceRow::load(&self.shared.store, id).await?;
        let row = row.ok_or_else(|| TaskError::UnknownPlacement(id.to_owned()))?;
        let tasks = self.shared.store.tasks_by_placement().await?.remove(id).unwrap_or_default();
        let task = tasks.into_iter().next().unwrap_or_else(|| ThreadId::new(""));
        let replica = self.shared.replica();
        if self.shared.store.leases_expire() && !replica.sites.contains(&row.site) {
            return Err(TaskError::PlacementUnreachable { thread: task, site: row.site });
        }
        let output = self.shared.run_there(id, &task, command).await?;
        match output.code {
            0 => Ok(output),
            code => {
                let said = String::from_utf8_lossy(&output.stderr);
                let line = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                Err(path_problem(format!("{}: {line} (code {code})", command.path)))
            }
        }
    }
}

impl HostShared {
    async fn run_there(
        &self,
        id: &str,
        task: &ThreadId,
        command: &PlaceCommand<'_>,
    ) -> Result<ShortOutput, TaskError> {
        let usable = self.usable_place(id, task).await?;
        let output = match command.run(&usable.placement).await? {
            Err(error) if error.may_mean_loss() => {
                let usable = self.mended_place(id, task, error).await?;
                command.run(&usable.placement).await?
            }
            output => output,
        };
        self.note_use(id).await;
        Ok(output?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_beneath_the_workspace() {
        let of = |path| parts(path, "/workspace").ok();
        assert_eq!(of("/workspace"), Some(vec![]));
        assert_eq!(of("/workspace/./a//b"), Some(vec!["a", "b"]));
        for path in ["/workspace2/a", "/etc/passwd", "/workspace/../etc", "/workspace/a/..", "/"] {
            assert_eq!(of(path), None, "{path}");
        }
        assert_eq!(parts("/a", "/").ok(), Some(vec!["a"]));
    }
}
