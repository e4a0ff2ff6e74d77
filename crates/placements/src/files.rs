//! Files of a workspace, read and written for clients by short commands in the placement.

use std::time::Duration;

use data_encoding::BASE64;
use protocol::{
    FsCreateDirectoryParams, FsCreateDirectoryResponse, FsReadDirectoryEntry, FsReadDirectoryParams,
    FsReadDirectoryResponse, FsReadFileParams, FsReadFileResponse, FsWriteFileParams, FsWriteFileResponse,
};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{PlacementError, last_line};
use crate::placement::{Placement, RunLimits, ShortOutput};
use crate::process::SpawnOptions;

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

/// A request of a client about files of a workspace, as the wire has it.
#[derive(Debug)]
pub struct FileRequest {
    pub placement_id: String,
    path: String,
    action: FileAction,
}

#[derive(Debug)]
enum FileAction {
    Read,
    Write(Vec<u8>),
    MakeFolder { with_parents: bool },
    List,
}

/// A short command for a request.
#[derive(Debug)]
struct FileCommand<'a> {
    script: &'a str,
    /// The last name of the path is not entered: it is the file's.
    has_file: bool,
    makes_folders: bool,
    max_output: usize,
}

impl FileRequest {
    /// The methods that there are.
    pub const METHODS: &[&str] = &["fs/createDirectory", "fs/readDirectory", "fs/readFile", "fs/writeFile"];

    /// The params of this method, which must name a placement.
    pub fn read(method: &str, params: &str) -> Result<Self, PlacementError> {
        let (path, placement, action) = match method {
            "fs/readFile" => {
                let params: FsReadFileParams = read(params)?;
                (params.path, params.placement_id, FileAction::Read)
            }
            "fs/writeFile" => {
                let params: FsWriteFileParams = read(params)?;
                let content = BASE64.decode(params.data_base64.as_bytes());
                let content =
                    content.map_err(|error| PlacementError::invalid("dataBase64", error.to_string()))?;
                (params.path, params.placement_id, FileAction::Write(content))
            }
            "fs/createDirectory" => {
                let params: FsCreateDirectoryParams = read(params)?;
                let with_parents = params.recursive.unwrap_or(true);
                (params.path, params.placement_id, FileAction::MakeFolder { with_parents })
            }
            "fs/readDirectory" => {
                let params: FsReadDirectoryParams = read(params)?;
                (params.path, params.placement_id, FileAction::List)
            }
            _ => return Err(PlacementError::invalid("placementId", format!("{method} knows none"))),
        };
        let placement_id =
            placement.ok_or_else(|| PlacementError::invalid("placementId", "it is missing"))?;
        Ok(Self { placement_id, path: path.as_str().to_owned(), action })
    }

    fn command(&self) -> FileCommand<'static> {
        let (script, has_file, makes_folders, max_output) = match &self.action {
            FileAction::Read => (READ, true, false, MAX_READ),
            FileAction::Write(_) => (WRITE, true, false, MAX_TOLD),
            FileAction::MakeFolder { with_parents: true } => ("", false, true, MAX_TOLD),
            FileAction::MakeFolder { with_parents: false } => ("mkdir \"./$1\"", true, false, MAX_TOLD),
            FileAction::List => (LIST, false, false, MAX_NAMES),
        };
        FileCommand { script, has_file, makes_folders, max_output }
    }

    fn input(&self) -> &[u8] {
        match &self.action {
            FileAction::Write(content) => content,
            FileAction::Read | FileAction::MakeFolder { .. } | FileAction::List => b"",
        }
    }

    fn argv(&self, command: &FileCommand<'_>, workspace: &str) -> Result<Vec<String>, PlacementError> {
        let mut folders = parts(&self.path, workspace)?;
        let file = if command.has_file { folders.pop() } else { None };
        if command.has_file && file.is_none() {
            return Err(PlacementError::invalid("path", format!("{} is the workspace itself", self.path)));
        }
        let script = format!("{ENTER}{}", command.script);
        let makes = if command.makes_folders { "1" } else { "0" };
        let count = folders.len().to_string();
        let mut argv: Vec<String> =
            ["sh", "-c", &script, "sh", workspace, makes, &count].map(str::to_owned).to_vec();
        argv.extend(folders.into_iter().chain(file).map(str::to_owned));
        argv.push(self.input().len().to_string());
        Ok(argv)
    }

    fn answer(&self, output: &ShortOutput) -> Result<Box<RawValue>, PlacementError> {
        let path = &self.path;
        if output.code != 0 {
            let line = last_line(&output.stderr).unwrap_or_default();
            let problem = format!("{path}: {line} (code {})", output.code);
            return Err(PlacementError::invalid("path", problem));
        }
        let answer = match &self.action {
            FileAction::Read | FileAction::List if output.truncated => {
                return Err(PlacementError::invalid("path", format!("{path} is larger than what is read")));
            }
            FileAction::Read => {
                to_raw_value(&FsReadFileResponse { data_base64: BASE64.encode(&output.stdout) })
            }
            FileAction::Write(_) => to_raw_value(&FsWriteFileResponse {}),
            FileAction::MakeFolder { .. } => to_raw_value(&FsCreateDirectoryResponse {}),
            FileAction::List => to_raw_value(&FsReadDirectoryResponse { entries: entries(&output.stdout) }),
        };
        answer.map_err(|error| PlacementError::invalid("answer", error.to_string()))
    }
}

fn read<T: DeserializeOwned>(params: &str) -> Result<T, PlacementError> {
    serde_json::from_str(params).map_err(|error| PlacementError::invalid("params", error.to_string()))
}

fn entries(listed: &[u8]) -> Vec<FsReadDirectoryEntry> {
    let entry = |line: &[u8]| {
        let (kind, name) = line.split_first()?;
        let file_name = String::from_utf8_lossy(name).into_owned();
        Some(FsReadDirectoryEntry { file_name, is_directory: *kind == b'd', is_file: *kind == b'f' })
    };
    listed.split(|byte| *byte == 0).filter_map(entry).collect()
}

/// The names that lead to a path from the workspace.
fn parts<'a>(path: &'a str, workspace: &str) -> Result<Vec<&'a str>, PlacementError> {
    let outside = || {
        let problem = format!("{path} is not beneath the placement's workspace, {workspace}");
        PlacementError::invalid("path", problem)
    };
    let rest = path.strip_prefix(workspace.trim_end_matches('/')).ok_or_else(outside)?;
    let is_beneath = rest.is_empty() || rest.starts_with('/');
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match is_beneath && !parts.contains(&"..") {
        true => Ok(parts),
        false => Err(outside()),
    }
}

impl Placement {
    /// Carries out a request about files of the workspace. No runtime is needed for it.
    pub async fn use_files(&self, request: &FileRequest) -> Result<Box<RawValue>, PlacementError> {
        let command = request.command();
        let options = SpawnOptions::new(request.argv(&command, &self.reference().workspace)?);
        let limits = RunLimits { bytes: command.max_output, time: LIMIT };
        request.answer(&self.run_as_command(&options, request.input(), limits).await?)
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
