//! The folders in which skills are searched.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Home, ResolvedConfig};
use plugins::{InstalledPlugin, Manifest};
use protocol::{ConfigLayerSource, SkillScope};
use workspace::{Access, ReadError, Reader};

/// A folder with skills in it. It may be missing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SkillRoot {
    pub(super) path: PathBuf,
    pub(super) scope: SkillScope,
    /// The prefix of its skills' names: the name of its plugin.
    pub(super) prefix: Option<String>,
    /// Set for a project's folder: no link leads out of the project.
    pub(super) project: Option<Arc<SkillProject>>,
}

/// The limits within which the skills of a project are read.
#[derive(Debug, PartialEq)]
pub(super) struct SkillProject {
    pub(super) root: PathBuf,
    pub(super) access: Access,
}

impl SkillRoot {
    pub(super) fn new(path: impl Into<PathBuf>, scope: SkillScope) -> Self {
        Self { path: path.into(), scope, prefix: None, project: None }
    }
}

/// Skills of a project are read inside its root; others belong to the user or the machine.
pub(super) fn reader(project: Option<&SkillProject>) -> Result<Reader, ReadError> {
    match project {
        Some(SkillProject { root, access }) => Reader::new(access.clone()).beneath(root),
        None => Ok(Reader::default()),
    }
}

/// In search order: a skill in two of them belongs to the first. `user` is the user's home folder.
pub(super) fn roots(
    config: &ResolvedConfig,
    plugins: &[InstalledPlugin],
    cwd: &Path,
    user: Option<&Path>,
) -> Vec<SkillRoot> {
    use SkillScope::{Admin, Repo, System, User};
    let home = config.home.reading();
    let project_root = config.project_docs.project_root.as_deref().unwrap_or(cwd);
    let folders: Vec<&Path> = cwd.ancestors().take_while(|folder| folder.starts_with(project_root)).collect();
    let access = config::hidden_in(cwd, &config.off_limits());
    let project = Arc::new(SkillProject { root: project_root.to_owned(), access });
    let of_project =
        |path: PathBuf| SkillRoot { project: Some(project.clone()), ..SkillRoot::new(path, Repo) };
    let mut roots = Vec::new();
    for folder in &folders {
        // Also for untrusted projects: a skill is text, and has no effect by itself.
        for name in [".codex", ".oarlock"] {
            let settings = folder.join(name);
            if !is_home(&settings, &config.home) {
                roots.push(of_project(settings.join("skills")));
            }
        }
    }
    roots.push(SkillRoot::new(home.join("skills"), User));
    roots.extend(user.map(|user| SkillRoot::new(user.join(".agents/skills"), User)));
    roots.push(SkillRoot::new(home.join("skills/.system"), System));
    roots
        .extend(admin_folders(config).into_iter().map(|folder| SkillRoot::new(folder.join("skills"), Admin)));
    let of_plugin = |plugin: &InstalledPlugin| roots_of(&plugin.folder, plugin.name(), &plugin.manifest);
    roots.extend(plugins.iter().flat_map(of_plugin));
    roots.extend(folders.iter().rev().map(|folder| of_project(folder.join(".agents/skills"))));
    let mut seen = HashSet::new();
    roots.retain(|root| seen.insert(root.path.clone()));
    roots
}

/// The settings of a home are the user's, even if the home is part of a project.
fn is_home(folder: &Path, home: &Home) -> bool {
    let real = fs::canonicalize(folder);
    [home.reading(), home.state()].into_iter().any(|home| {
        folder == home || matches!((&real, fs::canonicalize(home)), (Ok(one), Ok(other)) if *one == other)
    })
}

/// The folder of the machine's settings, and ours next to it.
fn admin_folders(config: &ResolvedConfig) -> Vec<PathBuf> {
    let system = config.layers.iter().find(|layer| matches!(layer.source, ConfigLayerSource::System { .. }));
    let Some(folder) = system.and_then(|layer| layer.folder.clone()) else { return Vec::new() };
    let own = (folder.file_name() == Some("codex".as_ref())).then(|| folder.with_file_name("oarlock"));
    std::iter::once(folder).chain(own).collect()
}

/// The folders of skills that a plugin in this folder has.
pub(super) fn roots_of(folder: &Path, name: &str, manifest: &Manifest) -> Vec<SkillRoot> {
    let mut folders = vec![folder.join("skills")];
    folders.extend(manifest.skills.as_ref().map(|own| folder.join(own)).filter(|own| *own != folders[0]));
    let root = |path| SkillRoot { prefix: Some(name.to_owned()), ..SkillRoot::new(path, SkillScope::User) };
    folders.into_iter().map(root).collect()
}

#[cfg(test)]
mod tests {
    use config::{Env, LoadRequest, Loader, LoaderOptions};
    use plugins::active_plugins;

    use super::*;

    /// Loads the configuration of `cwd` in a tree that is its own machine.
    fn found(dir: &Path, home: &str, cwd: &str) -> Vec<String> {
        let options = LoaderOptions {
            system_file: Some(dir.join("etc/codex/config.toml")),
            managed_file: None,
            requirements_file: None,
            environment: Env::fixed([("HOME", dir.join("users/u").as_os_str())]),
        };
        let loader = Loader::new(Home::at(dir.join(home)), Vec::new(), options);
        let cwd = dir.join(cwd);
        let config = loader.load(&LoadRequest { cwd: Some(cwd.clone()), ..LoadRequest::default() });
        let config = config.expect("plain");
        let roots = roots(&config, &active_plugins(&config), &cwd, loader.user_home().as_deref());
        let line = |root: &SkillRoot| {
            let path = root.path.strip_prefix(dir).expect("below").to_string_lossy().into_owned();
            format!("{:?} {path}", root.scope)
        };
        roots.iter().map(line).collect()
    }

    #[test]
    fn roots_stand_in_their_order() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = fs::canonicalize(dir.path()).expect("there");
        fs::create_dir_all(dir.join("users/u/repo/.git")).expect("made");
        fs::create_dir_all(dir.join("users/u/repo/a")).expect("made");
        assert_eq!(
            found(&dir, "users/u/.oarlock", "users/u/repo/a"),
            [
                "Repo users/u/repo/a/.codex/skills",
                "Repo users/u/repo/a/.oarlock/skills",
                "Repo users/u/repo/.codex/skills",
                "Repo users/u/repo/.oarlock/skills",
                "User users/u/.oarlock/skills",
                "User users/u/.agents/skills",
                "System users/u/.oarlock/skills/.system",
                "Admin etc/codex/skills",
                "Admin etc/oarlock/skills",
                "Repo users/u/repo/.agents/skills",
                "Repo users/u/repo/a/.agents/skills",
            ]
        );
    }

    #[test]
    fn a_home_is_never_a_project() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = fs::canonicalize(dir.path()).expect("there");
        fs::create_dir_all(dir.join("users/u/.codex")).expect("made");
        std::os::unix::fs::symlink(dir.join("users/u/.codex"), dir.join("users/u/.oarlock")).expect("linked");
        let found = found(&dir, "users/u/.codex", "users/u");
        assert_eq!(
            found,
            [
                "User users/u/.codex/skills",
                "User users/u/.agents/skills",
                "System users/u/.codex/skills/.system",
                "Admin etc/codex/skills",
                "Admin etc/oarlock/skills",
            ]
        );
    }
}
