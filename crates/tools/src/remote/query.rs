//! A read-only script that runs in another environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sandbox::{HeadTail, Io, OutputStream, Process};

use super::{DIAGNOSIS_BYTES, Elsewhere, Errand, RemoteCommand, quoted};
use crate::exec::{Blocked, CommandOutlet, Go, start};
use crate::{ToolCx, ToolError};

/// Limit of a query.
const LIMIT: Duration = Duration::from_secs(300);
/// The script part that resolves a path.
const FIND: &str = include_str!("find.sh");

/// The output and exit code of a script.
#[derive(Debug)]
pub(crate) struct RemoteReply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) code: i32,
    /// The beginning of its standard error.
    complaint: String,
}

/// Runs a script without input. Dropping the future stops it.
pub(crate) async fn query(
    cx: &ToolCx,
    place: &Elsewhere,
    script: &str,
    most: usize,
) -> Result<RemoteReply, ToolError> {
    let argv = ["sh", "-c", script].map(str::to_owned);
    // Names are bytes, and sorted as such.
    let env = [("LC_ALL".to_owned(), "C".to_owned())];
    let task = RemoteCommand { argv: &argv, cwd: Path::new("/"), env: &env, reads: false };
    let order = place.order(&cx.bench().options().env);
    let errand =
        order.and_then(|order| Errand::new(place.clone(), order, &task)).map_err(ToolError::Failed)?;
    let started = start(Go::There(Box::new(errand)), Io::Null, Arc::new(cx.scope().hold())).await;
    let (process, outlet) = started.map_err(failed)?;
    tokio::time::timeout(LIMIT, read(&process, outlet, place, most)).await.unwrap_or_else(|_| {
        let seconds = LIMIT.as_secs();
        Err(ToolError::Failed(place.lost(format_args!("it did not answer within {seconds} seconds"))))
    })
}

async fn read(
    process: &Process,
    mut outlet: CommandOutlet,
    place: &Elsewhere,
    most: usize,
) -> Result<RemoteReply, ToolError> {
    let (mut bytes, mut complaint) = (Vec::new(), HeadTail::new(DIAGNOSIS_BYTES));
    while let Some(chunk) = outlet.next().await {
        match chunk.stream {
            OutputStream::Stderr => complaint.push(&chunk.bytes),
            OutputStream::Stdout => bytes.extend_from_slice(&chunk.bytes),
        }
        if bytes.len() > most {
            return Err(ToolError::Failed(format!("environment `{}` answers without end", place.id())));
        }
    }
    let end = outlet.end(process.wait().await);
    match end.lost {
        Some(lost) => Err(ToolError::Failed(lost)),
        None => Ok(RemoteReply { bytes, code: end.code, complaint: complaint.excerpt().head }),
    }
}

fn failed(blocked: Blocked) -> ToolError {
    match blocked {
        Blocked::Forbidden(text) | Blocked::Failed(text) => ToolError::Failed(text),
        Blocked::Declined => ToolError::Refused(String::new()),
    }
}

/// A script's report about a file or folder.
#[derive(Debug)]
pub(crate) struct Looked {
    /// The resolved path.
    pub(crate) real: PathBuf,
    pub(crate) rest: Vec<u8>,
}

/// Inspects one path there. The script gets its resolved path in `real`, and prints it first.
pub(crate) async fn look_there(
    cx: &ToolCx,
    place: &Elsewhere,
    given: &str,
    script: &str,
    most: usize,
) -> Result<Looked, ToolError> {
    let path = crate::files::access::absolute(cx.cwd(), given)?;
    let roots = crate::files::access::readable_roots(cx);
    let only = if roots.is_some() { "yes" } else { "" };
    let roots: Vec<String> =
        roots.unwrap_or_default().iter().map(|root| quoted(&root.to_string_lossy())).collect();
    let (word, roots) = (quoted(&path.to_string_lossy()), roots.join(" "));
    let whole = format!("path={word} only={only}\nset -- {roots}\n{FIND}{script}");
    let answer = query(cx, place, &whole, most).await?;
    let path = path.display();
    let fail = |text: String| Err(ToolError::Failed(text));
    match answer.code {
        0 => {}
        40 => return fail(format!("{path} does not exist")),
        41 => return fail(format!("{path} is a folder, not a file")),
        42 => return fail(format!("{path} is not a regular file")),
        43 => return fail(format!("{path} cannot be read: permission denied")),
        44 => return Err(ToolError::Refused(format!("{path} is not among what you may read"))),
        45 => return fail(format!("{path} cannot be read: not a directory")),
        46 => return fail(format!("{path} cannot be read: a link leads nowhere")),
        47 => return fail(format!("{path} is not a text file")),
        code => {
            let said = answer.complaint.trim();
            return fail(format!("{path} cannot be read: the script there ended with code {code}: {said}"));
        }
    }
    let Some(end) = memchr::memchr(0, &answer.bytes) else {
        return fail(format!("{path} cannot be read: environment `{}` gave no answer", place.id()));
    };
    let real = path_of(&answer.bytes[..end]);
    Ok(Looked { real, rest: answer.bytes[end + 1..].to_vec() })
}

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}
