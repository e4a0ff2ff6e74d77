//! `read_file`: a part of a text file, with numbered lines.

use std::io::{BufRead, BufReader, Read};
use std::num::NonZeroU64;

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::files::access::{FileAccess, StopFlag, Stoppable, failed, look_soon};
use crate::files::look::{Look, LookAction, option};
use crate::files::shown::{LONGEST, cut, room};
use crate::remote::{Elsewhere, OPEN, look_there};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const LIMIT: u64 = 2_000;
const BUFFER: usize = 64 * 1024;
/// A file with NUL in this prefix is binary.
const SNIFFED: usize = 8 * 1024;
/// Limit of how much of a file is searched for a line.
const MOST_READ: u64 = 1 << 30;
/// No file within that limit has as many lines.
const FURTHEST_LINE: u64 = i32::MAX as u64;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Absolute path of the file.
    file_path: String,
    /// The first line to show, counted from 1. Default: 1.
    offset: Option<NonZeroU64>,
    /// How many lines to show at most. Default: 2000.
    limit: Option<NonZeroU64>,
}

#[derive(Debug, Clone, Copy)]
pub struct ReadFile;

impl BuiltinTool for ReadFile {
    const NAME: &'static str = "read_file";
    const ABOUT: &'static str = "Read a text file, or a part of it. Each line comes as `L` and its number, a colon and \
        its text; lines of more than 500 bytes are cut. The last row says where to go on when there is more.";
    const PARALLEL: bool = true;
    const NEEDS_PLACE: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.knows(Self::NAME))
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let room = room(cx.step());
        let more = [option("--offset", args.offset), option("--limit", args.limit)].concat();
        let look = Look::begin(cx, LookAction::Read(args.file_path.clone()), more);
        let page = match cx.elsewhere() {
            Some(place) => read_there(&args, room, cx, &place).await,
            None => {
                let given = args.file_path.clone();
                look_soon(cx, &given, move |access, stop| read(&args, room, access, stop)).await
            }
        };
        Ok(look.end(cx, page).await)
    }
}

fn read(args: &Args, room: usize, access: &FileAccess, stop: &StopFlag) -> Result<String, ToolError> {
    let seen = access.open(&args.file_path)?;
    let path = &seen.path;
    let source = Stoppable { inner: seen.file.take(MOST_READ), stop };
    let mut lines = Lines { source: BufReader::with_capacity(BUFFER, source), number: 0, read: 0 };
    let start = lines.source.fill_buf().map_err(|error| failed(path, &error))?;
    if start[..start.len().min(SNIFFED)].contains(&0) {
        return Err(ToolError::Failed(format!("{} is not a text file", path.display())));
    }
    let (offset, mut page) = (args.offset(), String::new());
    if fill(&mut page, &mut lines, args, room).map_err(|error| failed(path, &error))? {
        return Ok(page);
    }
    if seen.metadata.len() > MOST_READ && lines.read == MOST_READ {
        page.push_str("The file goes on, further than this tool reads: use a command for the rest.");
    } else if lines.number == 0 {
        page.push_str("The file is empty.");
    } else if page.is_empty() {
        return Err(past_the_end(offset, lines.number));
    }
    page.truncate(page.trim_end_matches('\n').len());
    Ok(page)
}

impl Args {
    fn offset(&self) -> u64 {
        self.offset.map_or(1, NonZeroU64::get)
    }

    fn limit(&self) -> u64 {
        self.limit.map_or(LIMIT, NonZeroU64::get)
    }
}

fn past_the_end(offset: u64, count: u64) -> ToolError {
    ToolError::Failed(format!("offset {offset} is past the last line, which is {count}"))
}

/// Writes the requested lines. Returns whether there are more.
fn fill<R: Read>(page: &mut String, lines: &mut Lines<R>, args: &Args, room: usize) -> std::io::Result<bool> {
    let offset = args.offset();
    let last = offset.saturating_add(args.limit() - 1);
    let room = room.saturating_sub(2 * LONGEST);
    while lines.any_left()? {
        let number = lines.number + 1;
        if number > last || page.len() > room {
            page.push_str(&format!("The file goes on. Read further with offset {number}."));
            return Ok(true);
        }
        let line = lines.read_line()?;
        if number >= offset {
            let line = String::from_utf8_lossy(&line);
            page.push_str(&format!("L{number}: {}\n", cut(&line, LONGEST)));
        }
    }
    Ok(false)
}

/// Reads a file in another environment. Fetches only what can be shown.
async fn read_there(args: &Args, room: usize, cx: &ToolCx, place: &Elsewhere) -> Result<String, ToolError> {
    let offset = args.offset().min(FURTHEST_LINE);
    let limit = args.limit().min(FURTHEST_LINE) + 1;
    // Fetched lines are slightly longer than shown ones, so that a cut is noticed.
    let (width, most) = (LONGEST + 20, 2 * room + BUFFER);
    let script = format!(
        "{OPEN}[ \"$(head -c {SNIFFED} <\"$real\" | wc -c)\" -eq \
         \"$(head -c {SNIFFED} <\"$real\" | tr -d '\\000' | wc -c)\" ] || exit 47\n\
         head -c {MOST_READ} <\"$real\" | tail -n +{offset} | head -n {limit} | cut -b 1-{width} | head -c {most}\n\
         [ -s \"$real\" ] && printf '\\n'\nexit 0\n"
    );
    let looked = look_there(cx, place, &args.file_path, &script, most + BUFFER).await?;
    // A trailing byte marks a file that is not empty.
    let Some(bytes) = looked.rest.strip_suffix(b"\n") else { return Ok("The file is empty.".to_owned()) };
    if bytes.is_empty() {
        return Err(past_the_end(args.offset(), count_there(args, cx, place).await?));
    }
    let mut lines = Lines { source: BufReader::new(bytes), number: offset - 1, read: 0 };
    let mut page = String::new();
    // Reading from memory cannot fail.
    if !fill(&mut page, &mut lines, args, room).unwrap_or(false) {
        page.truncate(page.trim_end_matches('\n').len());
    }
    Ok(page)
}

async fn count_there(args: &Args, cx: &ToolCx, place: &Elsewhere) -> Result<u64, ToolError> {
    let script = format!(
        "{OPEN}head -c {MOST_READ} <\"$real\" | wc -l\n\
         head -c {MOST_READ} <\"$real\" | tail -c 1 | wc -l\nexit 0\n"
    );
    let looked = look_there(cx, place, &args.file_path, &script, BUFFER).await?;
    let said = String::from_utf8_lossy(&looked.rest).into_owned();
    let mut numbers = said.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
    let (breaks, ends_with_break) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    Ok(breaks + 1 - ends_with_break.min(1))
}

/// Reads lines of any length in bounded memory.
#[derive(Debug)]
struct Lines<R> {
    source: BufReader<R>,
    /// Of the last line read.
    number: u64,
    /// In bytes.
    read: u64,
}

impl<R: Read> Lines<R> {
    fn any_left(&mut self) -> std::io::Result<bool> {
        Ok(!self.source.fill_buf()?.is_empty())
    }

    /// Without its line break, and cut a little after the shown width.
    fn read_line(&mut self) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.number += 1;
        loop {
            let buffer = self.source.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            // A little more than shown, so that the cut falls between characters.
            let wanted = (LONGEST + 4).saturating_sub(text.len()).min(part.len());
            text.extend_from_slice(&part[..wanted]);
            let used = part.len() + usize::from(end.is_some());
            self.source.consume(used);
            self.read += used as u64;
            if end.is_some() || used == 0 {
                break;
            }
        }
        if text.last() == Some(&b'\r') {
            text.pop();
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use protocol::{AbsolutePath, AdditionalFileSystemPermissions, ReadOnlyAccess, SandboxPolicy};
    use serde_json::{Value, json};

    use crate::scene::Scene;

    async fn check(content: &[u8], more: Value, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("f"), content).expect("written");
        let mut arguments = json!({"file_path": "f"});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let (text, _) = Scene::in_folder(folder.path()).run_text("read_file", arguments).await;
        let root = folder.path().canonicalize().expect("there");
        assert_eq!(text, expected.replace("ROOT", &root.display().to_string()));
    }

    #[tokio::test]
    async fn lines_are_numbered() {
        check(b"one\r\ntwo\n\nfour", json!({}), "L1: one\nL2: two\nL3: \nL4: four").await;
        check(b"one\ntwo\n", json!({"offset": 2}), "L2: two").await;
        let part = "L1: one\nThe file goes on. Read further with offset 2.";
        check(b"one\ntwo\n", json!({"limit": 1}), part).await;
        check(b"", json!({"offset": 9}), "The file is empty.").await;
        check(b"\n", json!({}), "L1: ").await;
        check(b"one\n", json!({"offset": 2}), "offset 2 is past the last line, which is 1").await;
        check(b"caf\xe9\n", json!({}), "L1: caf\u{fffd}").await;
        check(b"a\0b", json!({}), "ROOT/f is not a text file").await;
    }

    #[tokio::test]
    async fn a_long_line_is_cut_between_characters() {
        let line = format!("a{}", "é".repeat(100_000));
        let expected = format!("L1: a{}\nL2: b", "é".repeat(249));
        check(format!("{line}\nb").as_bytes(), json!({}), &expected).await;
    }

    #[tokio::test]
    async fn a_page_ends_before_truncation_would_cut_its_middle() {
        let content = "x".repeat(90) + "\n";
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("f"), content.repeat(1_000)).expect("written");
        let scene = Scene::in_folder(folder.path());
        let (text, _) = scene.run_text("read_file", json!({"file_path": "f"})).await;
        assert!(text.len() <= 10_000);
        let shown = text.lines().count() - 1;
        assert!(shown > 80);
        assert!(text.ends_with(&format!("Read further with offset {}.", shown + 1)), "{text}");
    }

    #[tokio::test]
    async fn a_file_far_larger_than_memory_is_read_a_piece_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, "x".repeat(10_000) + "\nend\n").expect("written");
        File::options().append(true).open(&path).and_then(|file| file.set_len(10 << 30)).expect("grown");
        let scene = Scene::in_folder(folder.path());
        let (text, success) = scene.run_text("read_file", json!({"file_path": "f", "limit": 2})).await;
        assert!(success);
        let goes_on = "The file goes on. Read further with offset 3.";
        assert_eq!(text, format!("L1: {}\nL2: end\n{goes_on}", "x".repeat(500)));
    }

    #[tokio::test]
    async fn paths_that_are_no_files_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).expect("made");
        symlink("pipe", folder.path().join("link")).expect("linked");
        symlink("loop", folder.path().join("loop")).expect("linked");
        let scene = Scene::in_folder(folder.path());
        for (path, expected) in [
            ("pipe", "is not a regular file"),
            ("link", "is not a regular file"),
            ("/dev/zero", "is not a regular file"),
            (".", "is a folder, not a file"),
            ("gone", "does not exist"),
            ("loop", "cannot be read"),
            ("/proc/self/environ", "is not among what you may read"),
            ("a\0b", "it contains a NUL character"),
            (&"x/".repeat(2_500), "it is longer than 4096 bytes"),
        ] {
            let (text, success) = scene.run_text("read_file", json!({"file_path": path})).await;
            assert!(text.contains(expected) && !success, "{path}: {text}");
        }
    }

    fn restricted(roots: &[&Path]) -> SandboxPolicy {
        let root = |path: &&Path| AbsolutePath::new(path.to_str().expect("plain")).expect("absolute");
        let readable_roots = roots.iter().map(root).collect();
        let access = ReadOnlyAccess::Restricted { include_platform_defaults: false, readable_roots };
        SandboxPolicy::ReadOnly { access, network_access: false }
    }

    #[tokio::test]
    async fn only_files_in_the_sandbox_are_read() {
        let [cwd, open, closed] = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
        for folder in [&cwd, &open, &closed] {
            std::fs::write(folder.path().join("f"), "text").expect("written");
        }
        symlink(closed.path().join("f"), cwd.path().join("out")).expect("linked");
        let mut scene = Scene::in_folder(cwd.path());
        scene.step.sandbox = restricted(&[open.path()]);
        let beyond = closed.path().join("f").display().to_string();
        let around = format!("../{}/f", closed.path().file_name().expect("named").display());
        let within = open.path().join("f").display().to_string();
        for (path, allowed) in [
            ("f", true),
            (within.as_str(), true),
            (&beyond, false),
            ("out", false),
            (&around, false),
            ("/etc/passwd", false),
        ] {
            let (text, success) = scene.run_text("read_file", json!({"file_path": path})).await;
            assert_eq!(success, allowed, "{path}: {text}");
            assert_eq!(text.contains("is not among what you may read"), !allowed, "{path}: {text}");
        }
        let read = AbsolutePath::new(closed.path().to_str().expect("plain")).map(|path| vec![path]);
        scene.grants.file_system = Some(AdditionalFileSystemPermissions { read, write: None });
        assert!(scene.run_text("read_file", json!({"file_path": beyond})).await.1);
    }

    #[tokio::test]
    async fn hidden_files_are_not_read_by_any_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("auth.json");
        std::fs::write(&secret, "secret").expect("written");
        symlink("auth.json", folder.path().join("link")).expect("linked");
        std::fs::hard_link(&secret, folder.path().join("twin")).expect("linked");
        let scene = Scene::in_folder(folder.path()).hiding(&[&secret]);
        for path in ["auth.json", "link", "twin", "./x/../auth.json"] {
            let (text, success) = scene.run_text("read_file", json!({"file_path": path})).await;
            assert!(!success && !text.contains("secret"), "{path}: {text}");
        }
    }
}
