//! `grep_files`: lists files with a matching line, newest first.

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use workspace::{FileVisitor, FileWalk, NameFilter};

use crate::files::access::{FileAccess, StopFlag, Stoppable, open_regular, with_file_access};
use crate::files::lines::{LineReader, Pattern};
use crate::files::look::{Look, LookAction, option};
use crate::files::shown::{one_line, room};
use crate::remote::{Elsewhere, Extended, extended, look_there, path_of, quoted};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const LIMIT: usize = 100;
const MOST: usize = 2_000;
/// System files, some of which have no end.
const NOT_SEARCHED: &[&str] = &["/proc", "/sys", "/dev"];
/// The script that searches in another environment.
const GREP: &str = include_str!("../remote/grep.sh");
/// Limit of the output fetched from there.
const MOST_BYTES: usize = 4 << 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Regular expression a line has to match.
    pattern: String,
    /// Glob the files have to match, such as `*.rs` or `src/**/*.{ts,tsx}`, relative to `path`.
    include: Option<String>,
    /// Folder or file to search. Default: the working directory.
    path: Option<String>,
    /// How many files to name at most, up to 2000. Default: 100.
    limit: Option<NonZeroU32>,
}

#[derive(Debug, Clone, Copy)]
pub struct GrepFiles;

impl BuiltinTool for GrepFiles {
    const NAME: &'static str = "grep_files";
    const ABOUT: &'static str = "Find the files that contain a line matching a regular expression. Gives their paths, \
        one per row, the most recently changed first. Files that .gitignore excludes, hidden files and binary files \
        are left out.";
    const PARALLEL: bool = true;
    const NEEDS_PLACE: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.knows(Self::NAME))
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let room = room(cx.step());
        let path = args.path.clone().unwrap_or_else(|| ".".to_owned());
        let more = [option("--include", args.include.as_ref()), option("--limit", args.limit)].concat();
        let look = Look::begin(cx, LookAction::Search { pattern: args.pattern.clone(), path }, more);
        let found = match cx.elsewhere() {
            Some(place) => grep_there(&args, room, cx, &place).await,
            None => with_file_access(cx, move |access, stop| grep(&args, room, access, stop)).await,
        };
        Ok(look.end(cx, found).await)
    }
}

fn grep(args: &Args, room: usize, access: &FileAccess, stop: &StopFlag) -> Result<String, ToolError> {
    let pattern = args.pattern()?;
    let root = access.find(args.path.as_deref().unwrap_or("."))?;
    let filter = args.include.as_deref().map(|glob| name_filter(&root, glob)).transpose()?;
    let found = NewestMatches::up_to(args.limit());
    let (idle, passed_over) = (Mutex::default(), AtomicUsize::new(0));
    let search = GrepSearch { access, stop, pattern, idle, found, passed_over };
    match root.is_dir() {
        true => {
            let walk =
                FileWalk { reader: access.reader(), filter: filter.as_ref(), not_searched: NOT_SEARCHED };
            walk.run(&root, &search);
        }
        false => search.visit(std::slice::from_ref(&root)),
    }
    Ok(report(search.found, search.passed_over.into_inner(), room))
}

impl Args {
    fn pattern(&self) -> Result<Pattern, ToolError> {
        Pattern::new(&self.pattern).map_err(|error| unusable(&error))
    }

    fn limit(&self) -> usize {
        self.limit.map_or(LIMIT, |limit| limit.get() as usize).min(MOST)
    }
}

fn unusable(problem: &impl std::fmt::Display) -> ToolError {
    ToolError::Failed(format!("the pattern cannot be used: {problem}"))
}

/// The search in another environment, with the tools there.
async fn grep_there(args: &Args, room: usize, cx: &ToolCx, place: &Elsewhere) -> Result<String, ToolError> {
    args.pattern()?;
    let Extended { pattern, ignores_case } = extended(&args.pattern).map_err(|what| {
        unusable(&format_args!("grep in environment `{}` knows no words for {what}", place.id()))
    })?;
    let (pattern, case) = (quoted(&pattern), if ignores_case { "i" } else { "" });
    let script =
        format!("pattern={pattern} insensitive={case}\n{GREP}search | head -c {MOST_BYTES}\nexit 0\n");
    let given = args.path.as_deref().unwrap_or(".");
    let looked = look_there(cx, place, given, &script, 2 * MOST_BYTES).await?;
    let filter = args.include.as_deref().map(|glob| name_filter(&looked.real, glob)).transpose()?;
    let found = NewestMatches::up_to(args.limit());
    for line in looked.rest.split(|byte| *byte == b'\n') {
        let Some(space) = memchr::memchr(b' ', line) else { continue };
        let relative = path_of(line[space + 1..].strip_prefix(b"./").unwrap_or(&line[space + 1..]));
        let is_hidden = |part: Component| part.as_os_str().as_encoded_bytes().starts_with(b".");
        let path = looked.real.join(&relative);
        let left_out = relative == Path::new("/dev/null")
            || (!relative.is_absolute() && relative.components().any(is_hidden))
            || filter.as_ref().is_some_and(|filter| !filter.matches(&path));
        if !left_out {
            found.add(changed_at(&line[..space]), &path);
        }
    }
    Ok(report(found, 0, room))
}

/// A time that the tools there give in seconds. They may give any number.
fn changed_at(seconds: &[u8]) -> SystemTime {
    let seconds = std::str::from_utf8(seconds).ok().and_then(|seconds| seconds.parse().ok());
    let since = seconds.map(Duration::from_secs);
    since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn name_filter(root: &Path, glob: &str) -> Result<NameFilter, ToolError> {
    let bad = |problem: String| ToolError::Failed(format!("the glob cannot be used: {problem}"));
    NameFilter::new(root, glob).map_err(bad)
}

/// State shared by the threads of one search.
#[derive(Debug)]
struct GrepSearch<'a> {
    access: &'a FileAccess,
    stop: &'a StopFlag,
    pattern: Pattern,
    /// Line readers that no thread is using.
    idle: Mutex<Vec<LineReader>>,
    found: NewestMatches,
    passed_over: AtomicUsize,
}

impl FileVisitor for GrepSearch<'_> {
    fn is_over(&self) -> bool {
        self.stop.requested()
    }

    fn visit(&self, files: &[PathBuf]) {
        let reader = self.idle.lock().pop();
        let mut reader = reader.unwrap_or_else(|| LineReader::new(self.pattern.clone()));
        for file in files {
            if self.is_over() {
                break;
            }
            if self.look_into(&mut reader, file).is_err() {
                self.pass_over();
            }
        }
        self.idle.lock().push(reader);
    }

    fn pass_over(&self) {
        self.passed_over.fetch_add(1, Ordering::Relaxed);
    }
}

impl GrepSearch<'_> {
    /// Searches a file. The walk yields readable files only. One that has just become unreadable, for example behind a
    /// new link, counts as not matching.
    fn look_into(&self, reader: &mut LineReader, path: &Path) -> io::Result<()> {
        let file = open_regular(path)?;
        if reader.has_match(Stoppable { inner: &file, stop: self.stop })?
            && self.access.reader().allows_opened(&file, path)
        {
            let changed = file.metadata()?.modified();
            self.found.add(changed.unwrap_or(SystemTime::UNIX_EPOCH), path);
        }
        Ok(())
    }
}

fn report(found: NewestMatches, passed_over: usize, room: usize) -> String {
    let (paths, count) = found.newest_first();
    let mut lines = String::new();
    let mut named = 0;
    for path in &paths {
        let line = one_line(path.as_os_str());
        if named > 0 && lines.len() + line.len() + 200 > room {
            break;
        }
        lines.push_str(&line);
        lines.push('\n');
        named += 1;
    }
    if count == 0 {
        lines.push_str("No matches found.\n");
    } else if count > named {
        lines.push_str(&format!("{} more files match.\n", count - named));
    }
    if passed_over > 0 {
        lines.push_str(&format!("{passed_over} files or folders could not be read.\n"));
    }
    lines.pop();
    lines
}

/// The newest matches, and the total number.
#[derive(Debug)]
struct NewestMatches {
    limit: usize,
    count: AtomicUsize,
    newest: Mutex<BinaryHeap<Reverse<Match>>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    changed: SystemTime,
    /// Matches of the same age are sorted by path.
    path: Reverse<PathBuf>,
}

impl NewestMatches {
    fn up_to(limit: usize) -> Self {
        Self { limit, count: AtomicUsize::new(0), newest: Mutex::default() }
    }

    fn add(&self, changed: SystemTime, path: &Path) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut newest = self.newest.lock();
        newest.push(Reverse(Match { changed, path: Reverse(path.to_owned()) }));
        if newest.len() > self.limit {
            newest.pop();
        }
    }

    fn newest_first(self) -> (Vec<PathBuf>, usize) {
        let newest = self.newest.into_inner();
        let paths = newest.into_sorted_vec().into_iter().map(|Reverse(found)| found.path.0);
        (paths.collect(), self.count.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    use super::*;
    use crate::files::lines::{AT_ONCE, LONGEST_LINE};
    use crate::scene::{Scene, while_a_folder_is_swapped};

    /// Each file is a second older than the one before.
    fn tree(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (age, (name, content)) in (1..).zip(files) {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(&path, content).expect("written");
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
            File::options()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(changed))
                .expect("set");
        }
        folder
    }

    #[test]
    fn a_time_from_another_environment_may_be_any_number() {
        assert_eq!(changed_at(b"7"), SystemTime::UNIX_EPOCH + Duration::from_secs(7));
        for seconds in ["18446744073709551615", "-1", "", "\u{fffd}"] {
            assert_eq!(changed_at(seconds.as_bytes()), SystemTime::UNIX_EPOCH, "{seconds}");
        }
    }

    async fn check(folder: &TempDir, arguments: Value, expected: &[&str]) {
        let (text, _) = Scene::in_folder(folder.path()).run_text("grep_files", arguments).await;
        let root = format!("{}/", folder.path().canonicalize().expect("there").display());
        assert_eq!(text.replace(&root, ""), expected.join("\n"));
    }

    #[tokio::test]
    async fn files_with_a_matching_line_are_named_newest_first() {
        let folder = tree(&[
            ("z.rs", "fn needle() {}"),
            ("sub/a.txt", "x\nneedle\ny"),
            ("b.rs", "hay"),
            ("sub/deep/c.rs", "needle at the end"),
        ]);
        let all = ["z.rs", "sub/a.txt", "sub/deep/c.rs"];
        check(&folder, json!({"pattern": "needle"}), &all).await;
        check(&folder, json!({"pattern": "^needle$"}), &["sub/a.txt"]).await;
        check(&folder, json!({"pattern": "(?i)NEEDLE", "include": "*.rs"}), &["z.rs", "sub/deep/c.rs"]).await;
        check(&folder, json!({"pattern": "needle", "include": "sub/*"}), &["sub/a.txt"]).await;
        check(&folder, json!({"pattern": "needle", "path": "sub"}), &all[1..]).await;
        check(&folder, json!({"pattern": "needle", "path": "z.rs"}), &["z.rs"]).await;
        check(&folder, json!({"pattern": "needle", "limit": 1}), &["z.rs", "2 more files match."]).await;
        check(&folder, json!({"pattern": "nothing"}), &["No matches found."]).await;
    }

    #[tokio::test]
    async fn ignored_hidden_and_binary_files_are_left_out() {
        let folder = tree(&[
            ("kept.txt", "needle"),
            ("built/out.txt", "needle"),
            (".secret/x.txt", "needle"),
            ("sub/.gitignore", "*.log"),
            ("sub/a.log", "needle"),
            ("sub/a.txt", "needle"),
            ("binary", "needle\0"),
            (".gitignore", "/built\n"),
        ]);
        symlink("kept.txt", folder.path().join("link")).expect("linked");
        check(&folder, json!({"pattern": "needle"}), &["kept.txt", "sub/a.txt"]).await;
        check(&folder, json!({"pattern": "needle", "path": ".secret"}), &[".secret/x.txt"]).await;
    }

    #[tokio::test]
    async fn files_larger_than_the_buffer_are_searched_to_their_end() {
        for before in [AT_ONCE - 3, AT_ONCE - 7, AT_ONCE, 3 * AT_ONCE + 5] {
            let content = "x\n".repeat(before / 2) + &"y".repeat(before % 2) + "needle";
            let folder = tree(&[("a", &content)]);
            check(&folder, json!({"pattern": "^y?needle$"}), &["a"]).await;
            check(&folder, json!({"pattern": "needle."}), &["No matches found."]).await;
        }
        let wide: String = "needle".chars().flat_map(|character| [character, '\0']).collect();
        let folder = tree(&[("a", "")]);
        std::fs::write(folder.path().join("a"), [b"\xff\xfe", wide.as_bytes()].concat()).expect("written");
        check(&folder, json!({"pattern": "^needle$"}), &["a"]).await;
    }

    #[tokio::test]
    async fn invalid_patterns_and_paths_are_reported() {
        let folder = tree(&[("a", "x")]);
        let cases = [
            (json!({"pattern": "("}), "the pattern cannot be used: "),
            (json!({"pattern": "a\\nb"}), "the pattern cannot be used: "),
            (json!({"pattern": "a", "include": "{"}), "the glob cannot be used: "),
            (json!({"pattern": "a", "path": "gone"}), "does not exist"),
            (json!({"pattern": "a", "path": "/proc"}), "is not among what you may read"),
            (json!({"pattern": "a", "path": "a\0"}), "it contains a NUL character"),
            (json!({"pattern": "(x{9999}){9999}"}), "the pattern cannot be used: "),
        ];
        for (arguments, expected) in cases {
            let (text, success) = Scene::in_folder(folder.path()).run_text("grep_files", arguments).await;
            assert!(text.contains(expected) && !success, "{text}");
        }
    }

    #[tokio::test]
    async fn hidden_files_are_not_found_by_any_name() {
        let folder = tree(&[("auth.json", "needle"), ("keys/one", "needle"), ("other", "needle")]);
        std::fs::hard_link(folder.path().join("auth.json"), folder.path().join("twin")).expect("linked");
        let hidden = [folder.path().join("auth.json"), folder.path().join("keys")];
        let scene = Scene::in_folder(folder.path()).hiding(&[&hidden[0], &hidden[1]]);
        let (text, _) = scene.run_text("grep_files", json!({"pattern": "needle"})).await;
        assert_eq!(text, folder.path().canonicalize().expect("there").join("other").display().to_string());
    }

    #[tokio::test]
    async fn a_line_without_end_is_skipped() {
        let folder = tree(&[("a", "needle")]);
        let line = vec![b'x'; LONGEST_LINE + 1_000_000];
        std::fs::write(folder.path().join("long"), line).expect("written");
        check(&folder, json!({"pattern": "needle"}), &["a", "1 files or folders could not be read."]).await;
    }

    /// Time limit of a small search, even on a slow machine.
    const SOON: Duration = Duration::from_secs(20);

    fn pipe_at(path: &Path) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("made");
    }

    #[tokio::test]
    async fn a_pipe_or_device_as_ignore_file_does_not_block() {
        let rule_files = [".gitignore", ".ignore", "sub/.gitignore", ".git/info/exclude", ".git", "sub/.git"];
        for name in rule_files {
            for device in [None, Some("/dev/zero")] {
                let folder = tree(&[("a", "needle"), ("sub/b", "needle")]);
                let place = folder.path().join(name);
                std::fs::create_dir_all(place.parent().expect("a parent")).expect("made");
                match device {
                    None => pipe_at(&place),
                    Some(device) => symlink(device, &place).expect("linked"),
                }
                let searched = check(&folder, json!({"pattern": "needle"}), &["a", "sub/b"]);
                tokio::time::timeout(SOON, searched)
                    .await
                    .unwrap_or_else(|_| panic!("{name} as {device:?} holds up a search"));
            }
        }
        // A file that points to a git folder with a pipe in it.
        let folder = tree(&[("w/a", "needle"), ("w/.git", "gitdir: ../git\n"), ("git/HEAD", "")]);
        pipe_at(&folder.path().join("git/commondir"));
        let searched = check(&folder, json!({"pattern": "needle", "path": "w"}), &["w/a"]);
        tokio::time::timeout(SOON, searched).await.expect("a pipe behind `.git` holds up a search");
    }

    #[test]
    fn a_folder_that_becomes_a_link_exposes_nothing_hidden() {
        let folder = tree(&[("keys/one", "needle"), ("open/one", "hay"), ("other/one", "hay")]);
        let search = json!({"pattern": "needle"});
        while_a_folder_is_swapped(folder.path(), "grep_files", &search, |found| found.contains("one"));
    }
}
