//! A placement that is a folder on a machine that is there anyway: this one, or one behind ssh.

use serde_json::{Value, json};

use super::{Labeled, MadePlace, PlaceState, Prefix};
use crate::error::PlacementError;
use crate::process::{end_marked, run_script};
use crate::script::{self, Leader, short_line};
use crate::settings::{Labels, PlacementReference};

/// `$1` is where own folders are, or empty; `$2` the id, `$3` the labels. Not in `~/.oarlock`: the sandbox of the commands
/// that run in the folder hides that.
const MAKE: &str = r#"
b=${1:-$HOME/.local/share/oarlock/placements}; umask 077;
mkdir -p "$b" && mkdir "$b/$2" && mkdir "$b/$2/workspace" && printf '%s\n' "$3" > "$b/$2/placement.json" &&
cd "$b/$2/workspace" && pwd -P
"#;

const FIND: &str = r#"
b=${1:-$HOME/.local/share/oarlock/placements};
for f in "$b"/*/placement.json; do
  if [ -f "$f" ]; then head -n 1 "$f"; printf '%s\n' "${f%/placement.json}"; fi;
done
"#;

/// Only a folder with our labels is removed. A folder without write permission would keep its files.
const REMOVE: &str = r#"
[ -f "$1/placement.json" ] || exit 0;
chmod -R u+rwx "$1/workspace" 2>/dev/null; rm -rf "$1"
"#;

/// Uses the given workspace, or makes a folder of the placement's own beneath `base`.
pub(super) async fn make(
    prefix: &Prefix,
    workspace: Option<&str>,
    base: Option<&str>,
    labels: &Labels,
) -> Result<MadePlace, PlacementError> {
    if let Some(workspace) = workspace {
        let line = short_line(r#"cd "$1" && pwd -P"#, &[workspace]);
        let path = run_script(prefix, "opening the workspace", &line).await?;
        return Ok(MadePlace::new(None, first_line(&path)));
    }
    let text = json!({"id": labels.id, "owner": labels.owner, "created": labels.created_s}).to_string();
    let line = short_line(MAKE, &[base.unwrap_or(""), &labels.id, &text]);
    let workspace = first_line(&run_script(prefix, "making the placement's folder", &line).await?);
    let handle = workspace.strip_suffix("/workspace").map(str::to_owned);
    Ok(MadePlace::new(handle, workspace))
}

pub(super) async fn state(prefix: &Prefix, place: &PlacementReference) -> Result<PlaceState, PlacementError> {
    let line = short_line(r#"if [ -d "$1" ]; then echo there; fi"#, &[&place.workspace]);
    let answer = run_script(prefix, "looking for the workspace", &line).await?;
    Ok(if answer.starts_with(b"there") { PlaceState::Running } else { PlaceState::Gone })
}

/// Ends every process of the placement.
pub(super) async fn end_processes(prefix: &Prefix, place: &PlacementReference) -> Result<(), PlacementError> {
    end_marked(prefix, &script::mark(&place.id, ""), Leader::UNKNOWN).await
}

pub(super) async fn destroy(prefix: &Prefix, place: &PlacementReference) -> Result<(), PlacementError> {
    end_processes(prefix, place).await?;
    match &place.handle {
        Some(folder) => run_script(prefix, "removing the placement's folder", &short_line(REMOVE, &[folder]))
            .await
            .map(drop),
        None => Ok(()),
    }
}

pub(super) async fn leftovers(prefix: &Prefix, base: Option<&str>) -> Result<Vec<Labeled>, PlacementError> {
    let answer = run_script(prefix, "listing placements", &short_line(FIND, &[base.unwrap_or("")])).await?;
    let answer = String::from_utf8_lossy(&answer);
    let lines: Vec<&str> = answer.lines().collect();
    let to_labeled = |pair: &[&str]| {
        let labels: Value = serde_json::from_str(pair[0]).ok()?;
        let text = |name: &str| labels[name].as_str().map(str::to_owned);
        let labels =
            Labels { id: text("id")?, owner: text("owner")?, created_s: labels["created"].as_u64()? };
        let place = MadePlace::new(Some(pair[1].to_owned()), format!("{}/workspace", pair[1]));
        Some(Labeled { labels, place })
    };
    Ok(lines.chunks_exact(2).filter_map(to_labeled).collect())
}

fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}
