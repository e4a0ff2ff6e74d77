//! The runtime's home in a placement: made for each runtime, with the part of the configuration that belongs there.

use placements::{PlacementError, ResolvedEnv};

/// Longer texts do not fit a variable.
const LONGEST: usize = 100 << 10;

/// Files of the home, by their path in it: `config.toml`, `AGENTS.md`, `rules/*.rules`. No key is among them.
#[derive(Debug, Clone, Default)]
pub struct ProjectedHome {
    files: Vec<(String, String)>,
}

impl ProjectedHome {
    /// Leaves out what cannot be carried there, with a line in the log.
    pub fn add(&mut self, path: &str, text: String) {
        match text.len() <= LONGEST && !text.contains('\0') {
            true => self.files.push((path.to_owned(), text)),
            false => tracing::warn!(path, "too long or not a text: it is left out of placements"),
        }
    }
}

/// The text of each file is in a variable of this name and its number: everybody on a machine can list the arguments of its
/// programs.
const TEXT: &str = "OARLOCK_HOME_TEXT_";

/// `$1` names the home, `$2` lists the variables that stay, `$3` counts the files, whose paths follow; the rest is
/// the program. Of the place's own environment only PATH, HOME and LANG stay. The folder for temporary files is everybody's: what
/// is used there has to be ours from its first folder on, or another user could swap the home.
const SCRIPT: &str = r#"
m=$(umask); umask 077
t=$1; k=" $2 PATH HOME LANG OARLOCK_SPAWN "; n=$3; shift 3
p="${TMPDIR:-/tmp}/oarlock-$(id -u 2>/dev/null)"
for b in "${HOME:-/nonexistent}/.oarlock/homes" "$p/homes"; do
  h=
  if [ "$b" = "$p/homes" ]; then
    mkdir -m 700 "$p" 2>/dev/null
    { [ -O "$p" ] && [ ! -L "$p" ] && [ ! -L "$b" ] && chmod 700 "$p"; } || continue
  fi
  h=$b/$t
  rm -rf "$h" 2>/dev/null
  if mkdir -p "$h" 2>/dev/null && [ -O "$h" ] && chmod 700 "$h"; then break; fi
  h=
done
[ -n "$h" ] || { echo "no folder there can hold the home of the runtime" >&2; exit 125; }
i=0
while [ "$i" -lt "$n" ]; do
  case $1 in */*) mkdir -p "$h/${1%/*}" || exit 125;; esac
  eval "x=\$OARLOCK_HOME_TEXT_$i; unset OARLOCK_HOME_TEXT_$i"
  printf '%s' "$x" > "$h/$1" || exit 125
  shift; i=$((i+1))
done
x=
for v in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
  case "$k" in *" $v "*) ;; *) unset "$v" 2>/dev/null;; esac
done
export OARLOCK_HOME="$h"
umask "$m"; "$@"; x=$?
rm -rf "$h"; exit "$x"
"#;

/// The argv that makes the home and runs the program with it, and adds the texts of its files to the environment. `name` is
/// the home's; of the environment, the program keeps what is there already.
pub(super) fn with_home(
    home: &ProjectedHome,
    name: &str,
    env: &mut ResolvedEnv,
    program: Vec<String>,
) -> Result<Vec<String>, PlacementError> {
    let mut argv: Vec<String> = ["sh", "-c", SCRIPT, "sh", name].map(str::to_owned).to_vec();
    argv.push(env.names().join(" "));
    argv.push(home.files.len().to_string());
    for (number, (path, text)) in home.files.iter().enumerate() {
        argv.push(path.clone());
        env.set(&format!("{TEXT}{number}"), text)?;
    }
    argv.extend(program);
    Ok(argv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_sees_its_home_and_nothing_else_of_the_environment() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut home = ProjectedHome::default();
        home.add("config.toml", "a = \"it's\"\n".to_owned());
        home.add("rules/x.rules", "$HOME".to_owned());
        home.add("long", "x".repeat(LONGEST + 1));
        let program = [
            "sh",
            "-c",
            "cat $OARLOCK_HOME/config.toml $OARLOCK_HOME/rules/x.rules; ls $OARLOCK_HOME; echo $KEPT-$SECRET-$HOME; env | grep -c TEXT; \
             umask; tr '\\0' ' ' < /proc/$PPID/cmdline | grep -c \"it[']s\"; exit 7",
        ];
        let mut env = ResolvedEnv::default();
        env.set("KEPT", "k").expect("a variable");
        let argv = with_home(&home, "t1", &mut env, program.map(str::to_owned).to_vec()).expect("it fits");
        assert!(!argv.iter().any(|word| word.contains("it's")), "everybody could read it");
        let output = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .env("HOME", folder.path())
            .envs(env.pairs())
            .env("SECRET", "s")
            .output()
            .expect("it runs");
        let said = String::from_utf8(output.stdout).expect("text");
        assert_eq!(output.status.code(), Some(7), "{said}");
        let home = folder.path().display();
        let umask = std::process::Command::new("sh").args(["-c", "umask"]).output().expect("it runs").stdout;
        let umask = String::from_utf8(umask).expect("text");
        assert_eq!(said, format!("a = \"it's\"\n$HOMEconfig.toml\nrules\nk--{home}\n0\n{umask}0\n"));
        assert!(!folder.path().join(".oarlock/homes/t1").exists(), "it is removed with the runtime");
    }

    #[test]
    fn among_temporary_files_the_home_is_in_a_folder_of_its_own_user() {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown, symlink};

        let folder = tempfile::tempdir().expect("a folder");
        let uid = folder.path().metadata().expect("there").uid();
        let parent = folder.path().join(format!("oarlock-{uid}"));
        let run = || {
            let program = ["sh", "-c", "echo $OARLOCK_HOME"].map(str::to_owned).to_vec();
            let argv = with_home(&ProjectedHome::default(), "t1", &mut ResolvedEnv::default(), program);
            let argv = argv.expect("nothing to carry");
            let mut command = std::process::Command::new(&argv[0]);
            command.args(&argv[1..]).env("HOME", "/proc/none").env("TMPDIR", folder.path());
            let output = command.output().expect("it runs");
            (output.status.code(), String::from_utf8(output.stdout).expect("text"))
        };
        assert_eq!(run(), (Some(0), format!("{}/homes/t1\n", parent.display())));
        assert_eq!(parent.metadata().expect("there").mode() & 0o777, 0o700);
        std::fs::remove_dir_all(&parent).expect("removed");
        // Somebody else was there first.
        std::fs::create_dir(folder.path().join("others")).expect("made");
        symlink(folder.path().join("others"), &parent).expect("linked");
        assert_eq!(run(), (Some(125), String::new()), "a link");
        std::fs::remove_file(&parent).expect("removed");
        std::fs::DirBuilder::new().mode(0o777).create(&parent).expect("made");
        if uid == 0 {
            chown(&parent, Some(65534), None).expect("given away");
            assert_eq!(run(), (Some(125), String::new()), "another user's");
        }
    }
}
