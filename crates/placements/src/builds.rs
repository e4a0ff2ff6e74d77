//! Finding the build of the runtime for a placement's machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::error::PlacementError;
use crate::staging::RuntimeBuild;

/// The targets that static builds are made for.
const TARGETS: &[&str] = &["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// Where builds are looked for, in this order: the explicit path, beside the host, the cache, the host itself.
#[derive(Debug, Clone)]
pub struct RuntimeBuilds {
    explicit: Option<PathBuf>,
    program: PathBuf,
    cache: PathBuf,
    found: Arc<OnceCell<Vec<RuntimeBuild>>>,
}

impl RuntimeBuilds {
    /// `program` is the host's own; `cache` has a folder for each target.
    pub fn new(explicit: Option<PathBuf>, program: PathBuf, cache: PathBuf) -> Self {
        Self { explicit, program, cache, found: Arc::default() }
    }

    /// Read once: a host stages the builds it was started with.
    pub async fn all(&self) -> Result<&[RuntimeBuild], PlacementError> {
        self.found.get_or_try_init(|| self.find()).await.map(Vec::as_slice)
    }

    async fn find(&self) -> Result<Vec<RuntimeBuild>, PlacementError> {
        let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        if let Some(explicit) = &self.explicit {
            return Ok(vec![RuntimeBuild::open(&here, explicit).await?]);
        }
        let mut builds = Vec::new();
        for target in TARGETS {
            if let Some(path) = self.candidates(target).into_iter().find(|path| path.is_file()) {
                builds.push(RuntimeBuild::open(target, &path).await?);
            }
        }
        // Runs where the C library is as new as this machine's.
        builds.push(RuntimeBuild::open(&here, &self.program).await?);
        Ok(builds)
    }

    fn candidates(&self, target: &str) -> Vec<PathBuf> {
        let name = format!("oarlock-runtime-{target}");
        let folder = self.program.parent().unwrap_or(Path::new("/"));
        vec![
            folder.join(&name),
            folder.join("../lib/oarlock").join(&name),
            self.cache.join(target).join("oarlock"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_explicit_build_counts_then_the_one_beside_the_host_then_the_host() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, text).expect("written");
            path
        };
        let program = write("bin/oarlock", "host");
        let explicit = write("mine", "mine");
        let digests = async |explicit: Option<PathBuf>| {
            let builds = RuntimeBuilds::new(explicit, program.clone(), folder.path().join("cache"));
            let found = builds.all().await.expect("builds");
            found.iter().map(|build| build.digest()[..6].to_owned()).collect::<Vec<_>>()
        };
        let only_host = digests(None).await;
        assert_eq!(only_host.len(), 1);
        assert_ne!(digests(Some(explicit)).await, only_host);
        write(&format!("cache/{}/oarlock", TARGETS[0]), "cached");
        let cached = digests(None).await;
        assert_eq!((cached.len(), &cached[1]), (2, &only_host[0]));
        write(&format!("bin/oarlock-runtime-{}", TARGETS[0]), "beside");
        assert_ne!(digests(None).await[0], cached[0]);
    }
}
