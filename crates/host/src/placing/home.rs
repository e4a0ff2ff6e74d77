//! The runtime's home in a placement: made for each runtime, with the part of the configuration that belongs there.

/// Longer texts do not fit an argument.
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

/// `$1` names the home, `$2` lists the variables that stay, `$3` counts the files, which follow as path and text; the rest is
/// the program. Of the place's own environment only PATH, HOME and LANG stay.
const SCRIPT: &str = r#"
umask 077
t=$1; k=" $2 PATH HOME LANG OARLOCK_SPAWN "; n=$3; shift 3
for b in "${HOME:-/nonexistent}/.oarlock/homes" "${TMPDIR:-/tmp}/oarlock-$(id -u 2>/dev/null)/homes"; do
  h=$b/$t
  rm -rf "$h" 2>/dev/null
  if mkdir -p "$h" 2>/dev/null && [ -O "$h" ] && chmod 700 "$h"; then break; fi
  h=
done
[ -n "$h" ] || { echo "no folder there can hold the home of the runtime" >&2; exit 125; }
while [ "$n" -gt 0 ]; do
  case $1 in */*) mkdir -p "$h/${1%/*}" || exit 125;; esac
  printf '%s' "$2" > "$h/$1" || exit 125
  shift 2; n=$((n-1))
done
for v in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
  case "$k" in *" $v "*) ;; *) unset "$v" 2>/dev/null;; esac
done
export OARLOCK_HOME="$h"
"$@"; x=$?
rm -rf "$h"; exit "$x"
"#;

/// The argv that makes the home and runs the program with it. `name` is the home's, `variables` are kept.
pub(super) fn with_home(
    home: &ProjectedHome,
    name: &str,
    variables: &[&str],
    program: Vec<String>,
) -> Vec<String> {
    let mut argv: Vec<String> = ["sh", "-c", SCRIPT, "sh", name].map(str::to_owned).to_vec();
    argv.push(variables.join(" "));
    argv.push(home.files.len().to_string());
    argv.extend(home.files.iter().flat_map(|(path, text)| [path.clone(), text.clone()]));
    argv.extend(program);
    argv
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
            "cat $OARLOCK_HOME/config.toml $OARLOCK_HOME/rules/x.rules; ls $OARLOCK_HOME; echo $KEPT-$SECRET-$HOME; exit 7",
        ];
        let argv = with_home(&home, "t1", &["KEPT"], program.map(str::to_owned).to_vec());
        let output = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .env("HOME", folder.path())
            .envs([("KEPT", "k"), ("SECRET", "s")])
            .output()
            .expect("it runs");
        let said = String::from_utf8(output.stdout).expect("text");
        assert_eq!(output.status.code(), Some(7), "{said}");
        let home = folder.path().display();
        assert_eq!(said, format!("a = \"it's\"\n$HOMEconfig.toml\nrules\nk--{home}\n"));
        assert!(!folder.path().join(".oarlock/homes/t1").exists(), "it is removed with the runtime");
    }
}
