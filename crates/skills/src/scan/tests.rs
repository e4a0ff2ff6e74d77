use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

struct SkillTree(TempDir);

impl SkillTree {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).expect("there").join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
        self
    }

    /// A skill with this description.
    fn skill(&self, folder: &str, description: &str) -> &Self {
        self.write(&format!("{folder}/SKILL.md"), format!("---\ndescription: {description}\n---\nbody\n"))
    }

    fn link(&self, from: &str, to: &str) -> &Self {
        symlink(self.path(to), self.path(from)).expect("linked");
        self
    }

    fn scan(&self, roots: &[(&str, SkillScope)]) -> ScanResult {
        let roots: Vec<SkillRoot> =
            roots.iter().map(|(path, scope)| SkillRoot::new(self.path(path), *scope)).collect();
        scan(&roots)
    }

    /// `scope name path` of what is below one root of the user's, then the errors.
    fn user(&self) -> (Vec<String>, Vec<String>) {
        let found = self.scan(&[("r", SkillScope::User)]);
        (self.lines(&found), found.errors.iter().map(|error| self.error(error)).collect())
    }

    fn lines(&self, found: &ScanResult) -> Vec<String> {
        let top = self.path("");
        let line = |skill: &Skill| {
            let path = skill.path.strip_prefix(&top).expect("below");
            format!("{:?} {} {}", skill.scope, skill.name, path.display())
        };
        found.skills.iter().map(line).collect()
    }

    fn error(&self, error: &protocol::SkillErrorInfo) -> String {
        let path = Path::new(&error.path).strip_prefix(self.path("")).expect("below");
        format!("{}: {}", path.display(), error.message)
    }
}

#[test]
fn order_and_duplicates() {
    let tree = SkillTree::new();
    tree.skill("user/b", "x").skill("user/a", "x").skill("sys/s", "x").skill("adm/m", "x");
    tree.skill("repo/z", "x").skill("repo/b", "x").link("repo/also", "user/a");
    let found = tree.scan(&[
        ("user", SkillScope::User),
        ("sys", SkillScope::System),
        ("adm", SkillScope::Admin),
        ("repo", SkillScope::Repo),
        ("missing", SkillScope::Repo),
        ("user/a/SKILL.md", SkillScope::Repo),
    ]);
    // The link leads to a skill that the first root has already.
    assert_eq!(
        tree.lines(&found),
        [
            "Repo b repo/b/SKILL.md",
            "Repo z repo/z/SKILL.md",
            "User a user/a/SKILL.md",
            "User b user/b/SKILL.md",
            "System s sys/s/SKILL.md",
            "Admin m adm/m/SKILL.md",
        ]
    );
    assert!(found.errors.is_empty());
}

#[test]
fn depth_dots_and_names() {
    let tree = SkillTree::new();
    tree.skill("r/1/2/3/4/5/6", "deep enough").skill("r/1/2/3/4/5/6/7", "too deep");
    tree.skill("r/.hidden/a", "x")
        .write("r/b/skill.md", "---\ndescription: x\n---\n")
        .skill("r", "the root itself");
    assert_eq!(tree.user().0, ["User 6 r/1/2/3/4/5/6/SKILL.md", "User r r/SKILL.md"]);
}

#[test]
fn links_lead_to_folders_and_never_in_circles() {
    let tree = SkillTree::new();
    tree.skill("elsewhere/a", "x").skill("r/b", "x").link("r/to", "elsewhere").link("r/b/up", "r");
    tree.write("r/c/x.md", "").link("r/c/SKILL.md", "r/b/SKILL.md").link("r/gone", "nowhere");
    assert_eq!(
        tree.user(),
        (vec!["User a elsewhere/a/SKILL.md".into(), "User b r/b/SKILL.md".into()], vec![])
    );
    let system = tree.scan(&[("r", SkillScope::System)]);
    assert_eq!(tree.lines(&system), ["System b r/b/SKILL.md"]);
}

#[test]
fn files_that_are_no_skills_are_reported() {
    let tree = SkillTree::new();
    tree.write("r/a/SKILL.md", "no head").write("r/b/SKILL.md", b"---\ndescription: \xff\n---\n");
    tree.write("r/c/SKILL.md", format!("---\ndescription: {}\n---\n", "x".repeat(1_025)));
    tree.write("r/d/SKILL.md", "---\ndescription: &a [*a]\n---\n")
        .write("r/e/SKILL.md", "---\nname: e\n---\n");
    let file = fs::File::create(tree.path("r/f")).expect("made");
    drop(file);
    fs::create_dir(tree.path("r/g")).expect("made");
    let huge = fs::File::create(tree.path("r/g/SKILL.md")).expect("made");
    huge.set_len(1 << 30).expect("sparse");
    fs::create_dir_all(tree.path("r/h")).expect("made");
    rustix::fs::mkfifoat(rustix::fs::CWD, tree.path("r/h/SKILL.md"), 0o600.into()).expect("a pipe");
    tree.write("r/i/SKILL.md", format!("---\ndescription: x\n{}---\n", "# long\n".repeat(10_000)));
    let (skills, errors) = tree.user();
    assert_eq!(skills, [""; 0]);
    assert_eq!(
        errors,
        [
            "r/a/SKILL.md: missing YAML frontmatter delimited by ---",
            "r/b/SKILL.md: it is not UTF-8",
            "r/c/SKILL.md: `description` has 1025 characters; at most 1024 are allowed",
            "r/d/SKILL.md: invalid YAML in the front matter: line 2: anchors, aliases and tags are not supported",
            "r/e/SKILL.md: the front matter has no `description`",
            "r/g/SKILL.md: it is larger than 1 MiB",
            "r/h/SKILL.md: it is not a regular file",
            "r/i/SKILL.md: missing YAML frontmatter delimited by ---",
        ]
    );
    let system = tree.scan(&[("r", SkillScope::System)]);
    assert!(system.errors.is_empty(), "nobody can mend what came with a program");
}

#[test]
fn folders_and_files_are_limited() {
    let tree = SkillTree::new();
    for at in 0..MAX_FOLDERS + 5 {
        fs::create_dir_all(tree.path(&format!("r/{at:05}"))).expect("made");
    }
    tree.skill("r/00000", "early").skill("r/02004", "late");
    let (skills, errors) = tree.user();
    assert_eq!(skills, ["User 00000 r/00000/SKILL.md"]);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("r: only the first 2000 folders"), "{errors:?}");
}

#[test]
fn names_have_the_prefix_of_their_plugin() {
    let tree = SkillTree::new();
    tree.skill("r/a", "x").skill(&format!("r/{}", "n".repeat(60)), "x");
    let root = SkillRoot { prefix: Some("plug".into()), ..SkillRoot::new(tree.path("r"), SkillScope::User) };
    let found = scan(&[root]);
    assert_eq!(tree.lines(&found), ["User plug:a r/a/SKILL.md"]);
    assert_eq!(found.errors[0].message, "`name` has 65 characters; at most 64 are allowed");
}

#[test]
fn a_skill_that_is_for_others_is_hidden() {
    let tree = SkillTree::new();
    tree.skill("r/a", "x").write("r/a/agents/openai.yaml", "policy: {products: [chatgpt]}");
    tree.skill("r/b", "x").write("r/b/agents/openai.yaml", "interface: {display_name: Bee}");
    let found = tree.scan(&[("r", SkillScope::User)]);
    assert_eq!(tree.lines(&found), ["User b r/b/SKILL.md"]);
    assert_eq!(
        found.skills[0].interface.as_ref().and_then(|shown| shown.display_name.as_deref()),
        Some("Bee")
    );
}

#[test]
fn a_changed_text_is_another_scan_result() {
    let tree = SkillTree::new();
    tree.skill("r/a", "x");
    let before = tree.scan(&[("r", SkillScope::User)]);
    assert!(!before.differs(&tree.scan(&[("r", SkillScope::User)])));
    fs::create_dir(tree.path("r/new")).expect("made");
    assert!(!before.differs(&tree.scan(&[("r", SkillScope::User)])), "an empty folder is no skill");
    tree.write("r/a/SKILL.md", "---\ndescription: x\n---\nanother body\n");
    assert!(before.differs(&tree.scan(&[("r", SkillScope::User)])));
}

#[test]
fn a_folder_without_permission_is_reported() {
    let tree = SkillTree::new();
    tree.skill("r/a/b", "x").skill("r/c", "x");
    fs::set_permissions(tree.path("r/a"), fs::Permissions::from_mode(0o000)).expect("set");
    let (skills, errors) = tree.user();
    fs::set_permissions(tree.path("r/a"), fs::Permissions::from_mode(0o700)).expect("set");
    if rustix::process::geteuid().is_root() {
        assert_eq!((skills.len(), errors.len()), (2, 0));
    } else {
        assert_eq!((skills.len(), errors.len()), (1, 1), "{errors:?}");
    }
}
