//! Brings a binary into a placement: found by its digest, or copied, verified and renamed.

use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::error::{PlacementError, last_line};
use crate::gzip::gzip;
use crate::placement::{Placement, bounded};
use crate::process::{SpawnOptions, run_script};
use crate::progress::{PlacementStep, ProgressSink};
use crate::scratch::random_hex;
use crate::script::short_line;

const FILE: &str = "oarlock";
const CHUNK: usize = 256 << 10;

/// A build of the runtime for one target.
#[derive(Debug, Clone)]
pub struct RuntimeBuild {
    target: String,
    path: PathBuf,
    digest: String,
    /// The loader of shared libraries that must be there. A static build has none.
    loader: Option<String>,
}

impl RuntimeBuild {
    /// `target` as rustc names it, like `x86_64-unknown-linux-musl`.
    pub async fn open(target: &str, path: &Path) -> Result<Self, PlacementError> {
        let bytes = tokio::fs::read(path).await.map_err(PlacementError::io(path.display().to_string()))?;
        let digest = HEXLOWER.encode(ring::digest::digest(&SHA256, &bytes).as_ref());
        let loader = loader_of(&bytes);
        Ok(Self { target: target.to_owned(), path: path.to_owned(), digest, loader })
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedRuntime {
    /// The binary's path there.
    pub path: String,
    pub digest: String,
    /// Whether it had to be copied.
    pub copied: bool,
}

/// Asks everything at once: the machine, its tools, a copy that is there, else the first folder that can be written to and
/// run from, after `$3` others. Only folders and files of our own user count: in `/tmp` anybody may have put something.
/// On a machine other than `$4` it stops after its name. `$5` is unlike that of
/// any other stager: pids are not, where each process has a namespace of its own. `$6` is the loader that the build needs.
const PROBE: &str = r#"
t=$(uname -sm); echo "$t"; [ "$t" = "$4" ] || exit 0;
[ -z "$6" ] || [ -e "$6" ] || { echo "tools"; echo "no loader"; exit 0; };
t=; command -v gzip >/dev/null 2>&1 && t="$t gzip"; command -v sha256sum >/dev/null 2>&1 && t="$t sha256sum"; echo "tools$t";
q=$5; u=$(id -u 2>/dev/null || echo 0); h=${HOME:-/nonexistent}; i=0;
set -- "$1" "$2" "$3" "$h/.oarlock/bin" "${XDG_CACHE_HOME:-$h/.cache}/oarlock/bin" "/var/tmp/oarlock-$u/bin" "/tmp/oarlock-$u/bin" "/dev/shm/oarlock-$u/bin";
e=$1; f=$2; k=$3; shift 3;
for b in "$@"; do
  if [ -O "$b/$e" ] && [ -O "$b/$e/$f" ] && [ -x "$b/$e/$f" ]; then echo "have $b/$e"; exit 0; fi;
done;
for b in "$@"; do
  i=$((i+1)); [ "$i" -le "$k" ] && continue;
  d=$b/$e; p=$d/.new-probe-$q;
  if ( umask 022; mkdir -p "$d" && [ -O "${b%/bin}" ] && [ -O "$d" ] && printf '#!/bin/sh\nexit 0\n' > "$p" && chmod 700 "$p" && "$p" ) 2>/dev/null; then
    rm -f "$p"; find "$d" -name '.new-*' -mtime +0 -exec rm -f '{}' ';' 2>/dev/null; echo "use $i $d"; exit 0;
  fi;
  rm -f "$p" 2>/dev/null; rmdir "$d" 2>/dev/null;
done;
echo none
"#;

/// `$1` the folder, `$2` the temporary name, `$3` the command that reads stdin, `$4` the digest or nothing, `$5` the name.
const RECEIVE: &str = r#"
umask 022; cd "$1" || exit 1
if $3 > "$2" && chmod 755 "$2"; then
    [ -n "$4" ] || exit 0
    h=$(sha256sum < "$2"); h=${h%% *}
    if [ "$h" = "$4" ]; then mv -f "$2" "$5" && exit 0; else echo "the copy has the digest $h, not $4" >&2; fi
fi
rm -f "$2"; exit 1
"#;

#[derive(Debug)]
struct Probe {
    machine: String,
    has_gzip: bool,
    has_sha256sum: bool,
    folder: StagingFolder,
}

#[derive(Debug)]
enum StagingFolder {
    Has(String),
    Use {
        number: usize,
        path: String,
    },
    None,
    /// Nothing that was built for shared libraries runs there.
    NoLoader,
}

impl Placement {
    /// Makes the build for this placement's machine available there.
    pub async fn stage(
        &self,
        builds: &[RuntimeBuild],
        progress: &ProgressSink,
    ) -> Result<StagedRuntime, PlacementError> {
        // Most machines are like this one: then one question is enough.
        let here = format!("Linux {}", std::env::consts::ARCH);
        let mut choice = matching(builds, &here).ok().map(|build| (here, build));
        let mut content = None;
        let (mut skip, mut last) = (0, None);
        loop {
            let probe = self.probe(choice.as_ref(), skip).await?;
            let Some((_, build)) = choice.as_ref().filter(|(machine, _)| *machine == probe.machine) else {
                let build = matching(builds, &probe.machine)?;
                choice = Some((probe.machine, build));
                continue;
            };
            let (number, folder) = match probe.folder {
                StagingFolder::Has(ref folder) => return Ok(staged(build, folder, false)),
                StagingFolder::Use { number, ref path } => (number, path.clone()),
                StagingFolder::NoLoader => return Err(no_loader(build)),
                StagingFolder::None => {
                    let problem = "no folder there can be written to and run from; tried the home, its cache, /var/tmp, /tmp and /dev/shm";
                    return Err(last.unwrap_or_else(|| PlacementError::invalid("staging", problem)));
                }
            };
            if content.is_none() {
                content = Some(read(build, probe.has_gzip).await?);
            }
            match self.copy(build, content.as_deref().unwrap_or_default(), &probe, &folder, progress).await {
                Ok(()) => return Ok(staged(build, &folder, true)),
                Err(error @ PlacementError::Unreachable { .. }) => return Err(error),
                // A full disk, most of the time: another folder may lie on another one.
                Err(error) => last = Some(error),
            }
            skip = number;
        }
    }

    async fn probe(
        &self,
        choice: Option<&(String, &RuntimeBuild)>,
        skip: usize,
    ) -> Result<Probe, PlacementError> {
        let (machine, digest, loader) = match choice {
            Some((machine, build)) => {
                (machine.as_str(), build.digest.as_str(), build.loader.as_deref().unwrap_or(""))
            }
            None => ("", "", ""),
        };
        let line = short_line(PROBE, &[digest, FILE, &skip.to_string(), machine, &random_hex()?, loader]);
        let answer = run_script(&self.prefix().await?, "looking for a folder to stage in", &line).await?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let mut lines = answer.lines();
        let machine = lines.next().unwrap_or_default().to_owned();
        let tools = lines.next().unwrap_or_default();
        let folder = match lines.next().unwrap_or_default().split_once(' ') {
            Some(("have", path)) => StagingFolder::Has(path.to_owned()),
            Some(("use", rest)) => {
                match rest.split_once(' ').and_then(|(number, path)| Some((number.parse().ok()?, path))) {
                    Some((number, path)) => StagingFolder::Use { number, path: path.to_owned() },
                    None => StagingFolder::None,
                }
            }
            Some(("no", _)) => StagingFolder::NoLoader,
            _ => StagingFolder::None,
        };
        Ok(Probe {
            machine,
            has_gzip: tools.contains("gzip"),
            has_sha256sum: tools.contains("sha256sum"),
            folder,
        })
    }

    /// Copies under a temporary name of its own, so that stagers at the same time do not meet, verifies, renames.
    async fn copy(
        &self,
        build: &RuntimeBuild,
        content: &[u8],
        probe: &Probe,
        folder: &str,
        progress: &ProgressSink,
    ) -> Result<(), PlacementError> {
        let temporary = format!(".new-{}", random_hex()?);
        let reader = if probe.has_gzip { "gzip -dc" } else { "cat" };
        let digest = if probe.has_sha256sum { build.digest.as_str() } else { "" };
        let mut process = self
            .spawn(&SpawnOptions::new(["sh", "-c", RECEIVE, "sh", folder, &temporary, reader, digest, FILE]))
            .await?;
        let (stdin, stdout, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let send = async {
            let Some(mut stdin) = stdin else { return };
            let mut done = 0;
            for piece in content.chunks(CHUNK) {
                progress.step(PlacementStep::Staging, done, Some(content.len() as u64));
                if stdin.write_all(piece).await.is_err() {
                    return;
                }
                done += piece.len() as u64;
            }
            progress.step(PlacementStep::Staging, done, Some(content.len() as u64));
        };
        let ((), _, (stderr, _)) = tokio::join!(send, bounded(stdout, 0), bounded(stderr, CHUNK));
        let failed = |command: String, line: String| PlacementError::Failed {
            action: "staging the runtime".to_owned(),
            command,
            line,
        };
        let code = self.exit_code(process.wait().await)?;
        if code != 0 {
            let line = last_line(&stderr).unwrap_or_else(|| format!("it ended with code {code}"));
            return Err(failed(format!("{reader} > {folder}/{temporary}"), line));
        }
        if probe.has_sha256sum {
            return Ok(());
        }
        let found = self.digest_there(folder, &temporary).await?;
        if found != build.digest {
            let _ = self.in_folder(folder, r#"rm -f "$2""#, &temporary).await;
            let line = format!("the copy has the digest {found}, not {}", build.digest);
            return Err(failed(format!("cat {folder}/{temporary}"), line));
        }
        self.in_folder(folder, r#"mv -f "$2" "$3""#, &temporary).await
    }

    /// Reads the copy back, where nothing there computes digests.
    async fn digest_there(&self, folder: &str, file: &str) -> Result<String, PlacementError> {
        let mut process = self.spawn(&SpawnOptions::new(["cat", &format!("{folder}/{file}")])).await?;
        drop(process.stdin.take());
        let mut digest = Context::new(&SHA256);
        let mut buffer = vec![0; CHUNK];
        if let Some(mut stdout) = process.stdout.take() {
            while let Ok(read @ 1..) = stdout.read(&mut buffer).await {
                digest.update(&buffer[..read]);
            }
        }
        self.exit_code(process.wait().await)?;
        Ok(HEXLOWER.encode(digest.finish().as_ref()))
    }

    async fn in_folder(&self, folder: &str, script: &str, file: &str) -> Result<(), PlacementError> {
        let line = short_line(&format!(r#"cd "$1" && {script}"#), &[folder, file, FILE]);
        run_script(&self.prefix().await?, "staging the runtime", &line).await.map(drop)
    }
}

fn no_loader(build: &RuntimeBuild) -> PlacementError {
    let (target, loader) = (&build.target, build.loader.as_deref().unwrap_or_default());
    let problem = format!(
        "the build {target} needs {loader}, which is not there, and this host has no static one; `scripts/dist` makes it, \
         and `--runtime FILE` names it"
    );
    PlacementError::invalid("staging", problem)
}

/// The loader that an ELF file of 64 bits asks for.
fn loader_of(bytes: &[u8]) -> Option<String> {
    const INTERPRETER: u64 = 3;
    let number = |at: usize, size: usize| {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte)))
    };
    let place = |at: usize, size: usize| number(at, size).and_then(|place| usize::try_from(place).ok());
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (place(32, 8)?, place(54, 2)?, place(56, 2)?);
    let headers = (0..count).filter_map(|header| table.checked_add(header.checked_mul(size)?));
    let header = headers.into_iter().find(|at| number(*at, 4) == Some(INTERPRETER))?;
    let (start, length) = (place(header.checked_add(8)?, 8)?, place(header.checked_add(32)?, 8)?);
    let text = bytes.get(start..start.checked_add(length)?)?.split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

fn staged(build: &RuntimeBuild, folder: &str, copied: bool) -> StagedRuntime {
    StagedRuntime { path: format!("{folder}/{FILE}"), digest: build.digest.clone(), copied }
}

/// A compressed form beside the build saves packing it. What arrives is verified either way.
async fn read(build: &RuntimeBuild, compressed: bool) -> Result<Vec<u8>, PlacementError> {
    if compressed && let Some(packed) = packed_beside(&build.path).await {
        return Ok(packed);
    }
    let bytes =
        tokio::fs::read(&build.path).await.map_err(PlacementError::io(build.path.display().to_string()))?;
    let work = tokio::task::spawn_blocking(move || if compressed { gzip(&bytes) } else { bytes });
    work.await.map_err(|_| PlacementError::invalid("staging", "compressing the build panicked"))
}

/// One that is older than the build is of another build.
async fn packed_beside(path: &Path) -> Option<Vec<u8>> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".gz");
    let (plain, packed) = (tokio::fs::metadata(path).await.ok()?, tokio::fs::metadata(&beside).await.ok()?);
    match packed.modified().ok()? >= plain.modified().ok()? {
        true => tokio::fs::read(beside).await.ok(),
        false => None,
    }
}

/// The build for what `uname -sm` says. Builds for glibc and musl both serve Linux; the caller gives the ones that may be used.
fn matching<'a>(builds: &'a [RuntimeBuild], machine: &str) -> Result<&'a RuntimeBuild, PlacementError> {
    let (system, processor) = machine.split_once(' ').unwrap_or((machine, ""));
    let processor = match processor {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        "armv7l" => "armv7",
        other => other,
    };
    let (system, rest) = match system {
        "Linux" => ("linux", "unknown-linux-musl".to_owned()),
        "Darwin" => ("darwin", "apple-darwin".to_owned()),
        other => (other, format!("unknown-{}", other.to_lowercase())),
    };
    let serves = |build: &&RuntimeBuild| {
        let mut parts = build.target.splitn(2, '-');
        parts.next() == Some(processor) && parts.next().is_some_and(|rest| rest.contains(system))
    };
    let missing = || {
        let targets: Vec<&str> = builds.iter().map(|build| build.target.as_str()).collect();
        let here = if targets.is_empty() { "none".to_owned() } else { targets.join(", ") };
        let problem = format!(
            "the placement is a {machine}: the build {processor}-{rest} is missing on this host (it has: {here})"
        );
        PlacementError::invalid("staging", problem)
    };
    builds.iter().find(serves).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_read_from_the_build() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let loader = loader_of(&own);
        assert_eq!(loader.is_some(), cfg!(not(target_feature = "crt-static")), "{loader:?}");
        assert!(loader.is_none_or(|loader| Path::new(&loader).exists()));
        assert_eq!(loader_of(b"#!/bin/sh\n"), None);
        // Cut off or with numbers that lead anywhere.
        for length in 0..100 {
            let _ = loader_of(&own[..length]);
            let mut broken = own[..own.len().min(4096)].to_vec();
            broken[length] = 0xff;
            let _ = loader_of(&broken);
        }
    }

    #[test]
    fn another_machine_names_the_missing_build() {
        let build = |target: &str| RuntimeBuild {
            target: target.to_owned(),
            path: PathBuf::new(),
            digest: String::new(),
            loader: None,
        };
        let builds = [build("x86_64-unknown-linux-musl"), build("aarch64-apple-darwin")];
        assert_eq!(matching(&builds, "Linux x86_64").unwrap().target, "x86_64-unknown-linux-musl");
        assert_eq!(matching(&builds, "Darwin arm64").unwrap().target, "aarch64-apple-darwin");
        let error = matching(&builds, "Linux aarch64").unwrap_err().to_string();
        assert!(error.contains("the build aarch64-unknown-linux-musl is missing"), "{error}");
        assert!(error.contains("it has: x86_64-unknown-linux-musl, aarch64-apple-darwin"), "{error}");
    }
}
