//! Whether a command's own words determine its effects, or files that commands can write.

use crate::argv::base_name;
use crate::executables::Executables;
use crate::git;
use crate::safe::{FIND_ACTIONS, has_option};

/// Shells and interpreters. Their arguments determine what they run.
const INTERPRETERS: &str = "\
    ash awk bash bc bpython busybox clisp cmd csh dash dc ed elixir emacs erl escript ex expect fish ftp gawk \
    gdb ghci gnuplot groff groovy gs guile iex ipython irb java jshell julia kotlin ksh latex latexmk lftp \
    lldb lua luajit lualatex m4 mawk mksh mono mutt mysql nawk neomutt nmap node nodejs nu nvim octave \
    osascript pandoc pdflatex pdftex perl php powershell psql pwsh pypy python python2 python3 R racket \
    Rscript ruby runghc runhaskell sbcl scala sh sqlite3 swift tclsh tcpdump tcsh tex toybox troff ts-node tsx \
    vi view vim wish xelatex xonsh yash zsh";

/// Programs that run their arguments, or a queue's, in another shell, machine or container.
const LAUNCHERS: &str = "\
    . ansible ansible-playbook at aws-vault batch builtin bwrap cgexec chamber choom chronic chroot chrt \
    command concurrently coproc crontab dbus-run-session direnv doas docker docker-compose doppler dotenv \
    dumb-init entr env eval exec fakeroot faketime fd fdfind find firejail flatpak flock foreman gosu \
    heaptrack hyperfine i386 ifne ionice kubectl launchctl linux32 linux64 ltrace lxc mosh nerdctl nice \
    nodemon nohup nsenter numactl op parallel pee perf pkexec podman prlimit proot rlwrap rr rsync runuser scp \
    screen script setarch setpriv setsid sftp snap socat sops source ssh start-stop-daemon stdbuf strace su \
    su-exec sudo systemctl systemd-inhibit systemd-nspawn systemd-run taskset time timeout tini tmux trap ts \
    unbuffer unshare vagrant valgrind watch watchexec x86_64 xargs xvfb-run";

/// Programs that run or read files of the project: build tools, package managers, test runners.
const PROJECT_TOOLS: &str = "\
    act ant artisan autoconf ava bazel bazelisk behave bmake brew buck buck2 buildah bun bundle bunx cabal \
    cargo cargo-nextest cmake composer conda configure corepack ctest cypress dagger dart deno devbox devenv \
    dotnet dune earthly eslint fab fastlane flutter gem gmake go gradle gradlew grunt gulp hatch helm hg husky \
    invoke jake jest jj just lefthook lein lerna make mamba mask meson mise mix mocha mvn mvnw ninja nix \
    nix-build nix-env nix-shell nox npm npx nx opam overcommit packer pants pdm phpunit pip pip3 pipenv pipx \
    pixi playwright pnpm pnpx poetry pre-commit prettier pulumi py.test pytest qmake rake rebar3 rollup rspec \
    rustup sbt scons skaffold snakemake stack svn task terraform tilt tofu tox tsc turbo uv uvx vite vitest \
    volta waf webpack xcodebuild yarn zig";

/// Programs that copy a file's content to any place.
const CARRIERS: &str = "\
    7z cp cpio dd dpkg install ln mv patch pax rpm sed sponge tar tee unzip";

/// Git commands whose effects follow from their words, as long as the repository's own settings are not writable.
const GIT_PREDICTABLE: &str = "\
    add blame branch checkout cherry-pick commit describe diff fetch gc grep log ls-files ls-remote ls-tree \
    merge mv prune pull push reflog reset restore rev-parse revert rm show stash status switch tag worktree";

/// Programs whose effects are determined by their first words: without the options in [`TURNING`], they run nothing and
/// read no file of the project.
const PREDICTABLE: &str = "\
    basename cat cksum cmp comm curl cut date df diff dig dirname du echo egrep false fgrep grep head host \
    hostname id jq kill killall ls lsblk lscpu lsof md5sum mkdir nproc nslookup pgrep ping pkill printenv printf \
    ps pwd readlink realpath rg rmdir seq sha1sum sha256sum sha512sum sleep sort ss stat tac tail touch tr true \
    uname uptime wc which whoami";

/// Commands of `gh` that run programs, or change its other commands.
const GH_OBEYS: &[&str] = &["alias", "auth", "codespace", "config", "cs", "ext", "extension", "extensions"];

/// Commands of `gh` that use git, with the hooks of the repository.
const GH_BY_GIT: &[&str] = &["checkout", "clone", "co", "create", "develop", "fork", "merge", "sync"];

/// Options that name another program to run, a file to write, or a file with more options.
const TURNING: &[(&str, &[&str], &str)] = &[
    ("apt", &["--option", "--config-file"], "oc"),
    ("apt-get", &["--option", "--config-file"], "oc"),
    ("bat", &["--pager"], ""),
    (
        "curl",
        &[
            "--config",
            "--cookie-jar",
            "--dump-header",
            "--etag-save",
            "--libcurl",
            "--output",
            "--remote-name",
            "--remote-name-all",
            "--output-dir",
            "--stderr",
            "--trace",
            "--trace-ascii",
            "--engine",
        ],
        "oOKDc",
    ),
    ("dnf", &["--setopt", "--config"], "c"),
    ("fd", &["--exec", "--exec-batch"], "xX"),
    ("gh", &["--exec"], ""),
    ("less", &["--log-file", "--LOG-FILE", "--lesskey-file", "--lesskey-src"], "oOk"),
    ("man", &["--pager", "--html", "--preprocessor"], "PHp"),
    ("rg", &["--pre", "--hostname-bin"], ""),
    ("rsync", &["--rsh", "--rsync-path"], "e"),
    ("scp", &[], "oSFD"),
    ("sftp", &[], "oSFDb"),
    ("sort", &["--compress-program", "--output"], "o"),
    ("ssh", &[], "oFSEI"),
    (
        "tar",
        &[
            "--to-command",
            "--use-compress-program",
            "--checkpoint-action",
            "--rsh-command",
            "--rmt-command",
            "--info-script",
            "--new-volume-script",
        ],
        "IF",
    ),
    (
        "wget",
        &[
            "--execute",
            "--config",
            "--use-askpass",
            "--output-document",
            "--output-file",
            "--append-output",
            "--directory-prefix",
            "--save-cookies",
            "--warc-file",
        ],
        "eOoaP",
    ),
    ("yum", &["--setopt", "--config"], "c"),
    ("zip", &["--unzip-command"], "T"),
];

/// Long options of git commands with the same effects.
const GIT_TURNING: &[&str] = &[
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--extcmd",
    "--template",
    "--config",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--work-tree",
    "--paginate",
    "--show-signature",
    "--to-cmd",
    "--cc-cmd",
    "--smtp-server",
];

/// Why a permanent rule for this command would effectively allow the contents of some file, or anything.
pub(crate) fn decided_elsewhere(words: &[String], executables: &Executables) -> Option<&'static str> {
    let (program, arguments) = words.split_first()?;
    if program.contains('/') && !program.starts_with('/') || !executables.vouches(program) {
        return Some("a file that commands can write is what it runs");
    }
    let name = unversioned(base_name(program));
    let obeys = match name {
        "git" => git_obeys(arguments) || git_runs_hooks(arguments, executables),
        "gh" => gh_obeys(arguments),
        _ => false,
    };
    if runs_what_it_is_given(program) || lists(CARRIERS, name) || obeys {
        return Some("what it does stands in files, or comes after these words");
    }
    if turns(program, arguments) {
        return Some("an option names a program or a file");
    }
    let names_script = |word: &String| {
        let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        [word.as_str(), value, value.trim_start_matches('@')]
            .iter()
            .any(|word| executables.is_open_script(word))
    };
    arguments.iter().any(names_script).then_some("it is given a file that commands can write")
}

/// Whether files other than those in its words, or anything at all, determine what the program does.
pub(crate) fn runs_what_it_is_given(program: &str) -> bool {
    let name = unversioned(base_name(program));
    // The dynamic linker runs the program in its arguments.
    let is_linker = name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so";
    is_linker || [INTERPRETERS, LAUNCHERS, PROJECT_TOOLS].iter().any(|list| lists(list, name))
}

/// Whether a program reads files of the project that its words do not name.
pub fn obeys_project(argv: &[String], executables: &Executables) -> bool {
    let commands = crate::commands_of(argv);
    let executables = executables.entered_by(&commands);
    let obeys = |words: &Vec<String>| {
        crate::launch::with_inner(words).iter().any(|words| {
            let name = words.first().map_or("", |program| unversioned(base_name(program)));
            let git_obeys = || git_obeys(&words[1..]) || git_runs_hooks(&words[1..], &executables);
            lists(PROJECT_TOOLS, name) || (name == "git" && git_obeys())
        })
    };
    commands.list.iter().any(obeys)
}

/// Whether a rule from an approval may cover all command lines with its prefix. For any other program it covers only
/// the approved command line: more words could change its effects completely.
pub(crate) fn effects_follow_from_words(prefix: &[String]) -> bool {
    let Some((program, arguments)) = prefix.split_first() else { return false };
    match unversioned(base_name(program)) {
        "git" => !git_obeys(arguments),
        "gh" => arguments.len() > 1 && !gh_obeys(arguments),
        name => lists(PREDICTABLE, name),
    }
}

fn lists(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// `python3.12` is `python3`, `node.exe` is `node`.
fn unversioned(name: &str) -> &str {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let end = name.find('.').filter(|at| *at > 0).unwrap_or(name.len());
    let short = &name[..end];
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number(name[end..].trim_start_matches('.')) { short } else { name }
}

fn git_obeys(arguments: &[String]) -> bool {
    match git::subcommand(arguments) {
        Some((command, _)) => {
            arguments.first().is_some_and(|word| word != command) || !lists(GIT_PREDICTABLE, command)
        }
        None => true,
    }
}

fn gh_obeys(arguments: &[String]) -> bool {
    let has = |at: usize, list: &[&str]| arguments.get(at).is_some_and(|word| list.contains(&word.as_str()));
    let has_option_first = arguments.iter().take(2).any(|word| word.starts_with('-'));
    has_option_first || has(0, GH_OBEYS) || has(1, GH_BY_GIT)
}

/// Whether the git command may run a hook, which runs files of the project.
pub(crate) fn git_runs_hooks(arguments: &[String], executables: &Executables) -> bool {
    git::subcommand(arguments).is_some_and(|(command, _)| executables.runs_hooks(command))
}

/// Whether some of these words make the program run another, write a file, or read more options.
pub(crate) fn turns(program: &str, arguments: &[String]) -> bool {
    let name = unversioned(base_name(program));
    match name {
        "git" => git_turns(arguments),
        "find" | "gfind" | "bfs" => arguments.iter().any(|word| FIND_ACTIONS.contains(&word.as_str())),
        _ => {
            let known = TURNING.iter().find(|(known, _, _)| *known == name);
            known.is_some_and(|(_, long, short)| has_option(arguments, long, short))
        }
    }
}

fn git_turns(arguments: &[String]) -> bool {
    // A transport that is a command line: `ext::sh -c …`.
    let is_transport = |word: &String| word.contains("::");
    if has_option(arguments, GIT_TURNING, "") || arguments.iter().any(is_transport) {
        return true;
    }
    // Options before the command, which a rule for the command alone does not contain.
    if arguments.first().is_some_and(|word| word.starts_with('-')) {
        let until = arguments.iter().position(|word| !word.starts_with('-')).unwrap_or(arguments.len());
        return arguments[..until].iter().any(|word| matches!(word.as_str(), "-c" | "-C" | "-p"));
    }
    let Some((command, options)) = arguments.split_first() else { return false };
    let short = match command.as_str() {
        "clone" => "uc",
        "grep" => "O",
        "rebase" | "difftool" => "x",
        "archive" | "format-patch" => "o",
        _ => "",
    };
    has_option(options, &[], short)
        || matches!(
            (command.as_str(), options.first().map(String::as_str)),
            ("bisect", Some("run")) | ("submodule", Some("foreach"))
        )
}
