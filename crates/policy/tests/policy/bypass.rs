//! Commands that try to bypass the policy: none of them runs outside a sandbox without a question.

use oarlock_policy::{Escalation, PolicyVerdict, SandboxChoice};
use protocol::{AskForApproval, SandboxPolicy};

use crate::support::{Machine, approvals, external, read_only, workspace_write};
use crate::words;

/// Must be asked about under `untrusted`, in every sandbox.
const ASKED: &[&str] = &[
    // Planted programs.
    "./ls",
    "./cat x",
    "../ws/cat x",
    "@WS@/cat x",
    "@WS@/../ws/cat x",
    "@BIN@/../ws/ls",
    "/proc/self/cwd/ls",
    "/dev/fd/3/ls",
    "//tmp//cat",
    "./git status",
    "@WS@/git status",
    "cat x && ./ls",
    "tool",
    "cd . && ./cat",
    // Shells that are not the system's.
    "./bash -c ls",
    "@WS@/bash -c ls",
    "bash -c './bash -c ls'",
    "bash -c '@WS@/bash -lc ls'",
    // Options that run or write.
    "find . -exec id ;",
    "find . -exec id {} +",
    "find . -execdir id {} +",
    "find . -ok id {} +",
    "find . -okdir id {} +",
    "find . -delete",
    "find . -fls x",
    "find . -fprint x",
    "find . -fprint0 x",
    "find . -fprintf x y",
    "rg --pre id x",
    "rg --pre=id x",
    "rg --hostname-bin id x",
    "rg --hostname-bin=id x",
    "rg -z x",
    "rg --search-zip x",
    "rg -nz x",
    "sed -i s/a/b/ x",
    "sed -n w/tmp/x x",
    "sed -n 1e",
    "sed -n 1,5p -i x",
    "sed -n 1p -s",
    "sed s/a/b/e x",
    "sed -n 5p x y",
    "sed -n '5p;w x' y",
    "sed --in-place -n 5p",
    "base64 -o x",
    "base64 --output=x",
    "base64 --out x",
    "base64 -do x",
    "uniq a b",
    "sort -o x y",
    // Git with other settings, folders and helpers.
    "git -c core.pager=id log",
    "git -c alias.status='!id' status",
    "git -p log",
    "git -C . status",
    "git -C x status",
    "git --paginate log",
    "git --exec-path=. status",
    "git --git-dir=x status",
    "git --work-tree=x status",
    "git --namespace=x log",
    "git --config-env=a=b status",
    "git --super-prefix=x status",
    "git --bare status",
    "git log --output=x",
    "git diff --outpu=x",
    "git diff --ext-diff",
    "git diff --ext",
    "git show --textconv",
    "git log --exec=x",
    "git diff --paginate",
    "git log --show-signature",
    "git log --format=%G?",
    "git branch x",
    "git branch -d x",
    "git branch -D x",
    "git branch -m a b",
    "git branch --edit-description",
    "git branch -f x y",
    "git branch --set-upstream-to=x",
    "git grep -O x",
    "git fetch",
    "git push",
    "git checkout x",
    "git config --list",
    "git",
    "git --version",
    "git stash list",
    "git submodule status",
    "git reflog expire",
    // Words with deceptive characters.
    "ls\rrm x",
    "ls\u{a0}x",
    "ls\u{2003}-l",
    "ls\u{3000}x",
    "ls$IFS-l",
    "ls${IFS}x",
    "{ls,-l}",
    "{rm,-rf,x}",
    "ls {a,b}",
    "l\\\ns",
    "$'ls'",
    "$\"ls\"",
    "`ls`",
    "$(ls)",
    "ls $(id)",
    "ls `id`",
    "ls \"$(id)\"",
    "cat <(id)",
    "cat x > y",
    "cat x >> y",
    "cat < x",
    "cat <<< x",
    "echo x >| y",
    "cat x 2> y",
    "ls &",
    "ls & id",
    "ls |& id",
    "(ls)",
    "{ ls; }",
    "! ls",
    "time ls",
    "if ls; then id; fi",
    "for x in a; do ls; done",
    "while ls; do ls; done",
    "case x in x) ls;; esac",
    "f() { id; }; f",
    "function ls { id; }\nls",
    "ls() { id; }\nls",
    "A=1 ls",
    "PATH=. ls",
    "LD_PRELOAD=./x ls",
    "GIT_EXTERNAL_DIFF=./x git diff",
    "PAGER=id git log",
    "*",
    "./*",
    "l?",
    "/bin/l[s]",
    "~/ls",
    "ls # x\nid",
    "ls #\\\nid",
    "cat <<E\n$(id)\nE",
    "cat <<E\nx\nE",
    "cat <<'E'\nx\nE\nid",
    "=ls",
    "noglob ls",
    "- ls",
    "coproc ls",
    "[[ -f x ]] && ls",
    "((1)) && ls",
    "ls;;ls",
    "ls &&",
    "\"ls",
    "ls\0",
    "l\u{200b}s",
    "ls\u{feff}",
    "\u{202e}ls",
    "l\u{455}",
    "LS",
    "\u{ff4c}s",
    // Globs that can become options.
    "rg x *",
    "find *",
    "git diff *",
    "sed -n 5p *",
    "base64 ?",
    "uniq *",
    "git log [x]",
    // Builtins and programs that run or change others.
    "export PATH=.; ls",
    "export A=1",
    "typeset -x PATH=. ; ls",
    "declare -x A=1",
    "readonly A=1",
    "alias ls=id\nls",
    "shopt -s expand_aliases; alias ls=id\nls",
    "hash -p ./x ls; ls",
    "enable -f ./x y",
    "set -k; ls",
    "unset PATH; ls",
    "eval ls",
    "source x",
    ". x",
    ". ./x; ls",
    "exec ls",
    "command ls",
    "builtin cd",
    "trap id EXIT; ls",
    "trap id DEBUG; ls",
    "env ls",
    "env -S 'id x'",
    "env -i ls",
    "env A=1 ls",
    "xargs ls",
    "echo x | xargs id",
    "ls | xargs",
    "timeout 5 ls",
    "nice ls",
    "nice -n 5 ls",
    "nohup ls",
    "setsid ls",
    "stdbuf -o0 ls",
    "sudo ls",
    "doas ls",
    "su -c ls",
    "chroot . ls",
    "unshare ls",
    "nsenter ls",
    "strace ls",
    "ltrace ls",
    "watch ls",
    "parallel ls",
    "flock x ls",
    "ssh x ls",
    "busybox ls",
    "awk 'BEGIN{system(\"id\")}'",
    "perl -e 1",
    "python3 -c 1",
    "node -e 1",
    "ruby -e 1",
    "vi -c '!id'",
    "man ls",
    "less x",
    "tar cf x --checkpoint-action=exec=id",
    "tee x",
    "dd of=x",
    "cp a b",
    "mv a b",
    "ln -s a b",
    "mkdir x",
    "touch x",
    "rm x",
    "rm -rf x",
    "chmod +x y",
    "curl x",
    "wget x",
    "nc x 1",
    "make",
    "npm test",
    "cargo build",
    "kill 1",
    "reboot",
    "ls && rm x",
    "ls || rm x",
    "ls; rm x",
    "ls | sh",
    "ls\nrm x",
    "echo id | bash",
    "bash x",
    "bash -i",
    "bash -lic ls",
    "bash -c ls x",
    "bash --rcfile x -c ls",
    "sh -c 'ls > x'",
    "fish -c ls",
    "dash -c ls",
    "busybox sh -c ls",
    // Read-only programs with options that do more; and programs that only seem read-only.
    "git grep --open-files-in-pager=./x y",
    "git grep -O./x y",
    "git grep x",
    "git branch --format='%(signature)'",
    "git branch --sort=signature",
    "git branch --list --format='%(signature:key)'",
    "git log --format='%G?%GS'",
    "git log --pretty=format:%GK",
    "git log --show-sig",
    "git show --output=x HEAD",
    "git show --output x HEAD",
    "git diff --out=x",
    "git diff --tex",
    "git log -p --ext-diff",
    "git --no-pager -c core.fsmonitor=./x status",
    "git --no-pager --paginate log",
    "git --no-optional-locks -C x status",
    "git --exec-path",
    "git --html-path",
    "git archive HEAD",
    "git cat-file --textconv x",
    "git cat-file --filters x",
    "git blame --contents x y",
    "git bisect run ./x",
    "git difftool -x ./x",
    "git mergetool",
    "git ls-remote --upload-pack=./x .",
    "git rev-list --all",
    "git remote -v",
    "git shortlog",
    "git tag",
    "git worktree list",
    "git var GIT_PAGER",
    "git help log",
    "git web--browse x",
    "git status; git config a b",
    "bat x",
    "bat --pager=./x y",
    "awk '{print}' x",
    "awk -f x.awk y",
    "gawk --load=x 1",
    "mawk -W exec x",
    "rg --pre=./x y",
    "rg --pre ./x --pre-glob '*' y",
    "rg --hostname-b ./x y",
    "rg -iz x",
    "rg --search-zi x",
    "sort x",
    "sort --compress-program=./x y",
    "sort -uo x y",
    "sort --output=x y",
    "sed -n '1w x' y",
    "sed -n '1e id' y",
    "sed -n '1r /etc/passwd' y",
    "sed -n -f x y",
    "sed --file=x y",
    "sed -n 1p -- x",
    "sed -En 1p x",
    "find . -newer x -fprint /tmp/y",
    "find . ( -exec id ; )",
    "find . -name x -o -delete",
    "tree -o x",
    "tree -R -H . -L 1",
    "file -C -m x",
    "file x",
    "date -s 2020-01-01",
    "date --set=now",
    "date",
    "less +!id x",
    "less -o x y",
    "more x",
    "most x",
    "man -P ./x ls",
    "man --pager=./x ls",
    "man -H./x ls",
    "xxd -r x y",
    "xxd x y",
    "od x",
    "hexdump x",
    "strings x",
    "tar tf x --to-command=./y",
    "tar -I ./x -tf y",
    "tar tf x",
    "zgrep x y",
    "zcat x",
    "zless x",
    "bzgrep x y",
    "xzgrep x y",
    "unzip -l x",
    "zipinfo x",
    "diff --to-file=x y",
    "comm x y",
    "join x y",
    "split x",
    "csplit x 1",
    "fold x",
    "fmt x",
    "shuf -o x y",
    "ptx x y",
    "tsort x",
    "sum x",
    "md5sum -c x",
    "nproc",
    "printenv",
    "set",
    "declare -p",
    "history -w x",
    "fc -e ./x",
    "mapfile -C ./x -c 1 y",
    "printf -v PATH .; ls",
    "read PATH; ls",
    "getopts x PATH; ls",
    "let PATH=1; ls",
    "pushd x; ls",
    "dirs",
    "compgen -C ./x",
    "complete -C ./x y",
    "bind -x '\"a\": ./x'",
    "ulimit -c unlimited",
    "umask 0; ls",
    "wait; ls",
    "jobs -x ./x",
    "suspend",
    "logout",
    "ps aux",
    "top -b -n 1",
    "lsof",
    "netstat -an",
    "ip addr",
    "ping -c 1 x",
    "dig x",
    "host x",
    "gh api x",
    "jq -n 'input' x",
    "yq -i x y",
    "column x",
    "tee",
    "base64 -D -i x -o y",
    "base64 --wrap=0 --outpu y",
    "uniq -c x y",
    "uniq -- x y",
    "uniq - y",
    "wc -l x > y",
    "grep x y | tee z",
    "stat x && ./ls",
    "id; ./cat x",
];

/// Trusting a name needs the file, in the sandbox too.
fn expand(machine: &Machine, script: &str) -> String {
    let (workspace, bin) = (machine.workspace(), machine.bin());
    script.replace("@WS@", workspace.to_str().unwrap()).replace("@BIN@", bin.to_str().unwrap())
}

#[test]
fn untrusted_asks() {
    assert!(ASKED.len() >= 350);
    let machine = Machine::new();
    for sandbox in [read_only(), workspace_write(), SandboxPolicy::DangerFullAccess, external()] {
        for script in ASKED {
            let argv = machine.shell(&expand(&machine, script));
            let verdict = machine.decide(&argv, &AskForApproval::Untrusted, &sandbox);
            assert!(matches!(verdict, PolicyVerdict::Ask { .. }), "{script:?} {sandbox:?}: {verdict:?}");
        }
    }
}

#[test]
fn many_or_deep_commands_are_all_judged() {
    let machine = Machine::new();
    let mut deep = "rm x".to_owned();
    let mut deep_safe = "ls".to_owned();
    for _ in 0..6 {
        deep = oarlock_policy::shell_line(&["bash", "-c", &deep]);
        deep_safe = oarlock_policy::shell_line(&["bash", "-c", &deep_safe]);
    }
    for script in [
        format!("{}rm x", "ls;".repeat(51)),
        format!("{}rm x", "ls && ".repeat(200)),
        format!("{}ls", "ls;".repeat(300)),
        format!("ls {}", "x ".repeat(40_000)),
        deep,
        deep_safe,
    ] {
        let verdict = machine.decide(&machine.shell(&script), &AskForApproval::Untrusted, &workspace_write());
        assert!(matches!(verdict, PolicyVerdict::Ask { .. }), "{script:.60}: {verdict:?}");
    }
}

/// The repository's settings can make these run programs, so they run in the most restricted sandbox or are asked
/// about.
#[test]
fn git_never_runs_helpers_outside() {
    let machine = Machine::new();
    for script in ["git status", "git diff", "git show", "git log -p", "git branch", "ls && git status"] {
        let argv = machine.shell(script);
        for sandbox in [read_only(), workspace_write()] {
            let verdict = machine.decide(&argv, &AskForApproval::Untrusted, &sandbox);
            assert!(
                matches!(verdict, PolicyVerdict::Run { sandbox: SandboxChoice::ReadOnlyNoNetwork, .. }),
                "{script}: {verdict:?}"
            );
        }
        for sandbox in [SandboxPolicy::DangerFullAccess, external()] {
            let verdict = machine.decide(&argv, &AskForApproval::Untrusted, &sandbox);
            assert!(matches!(verdict, PolicyVerdict::Ask { .. }), "{script}: {verdict:?}");
        }
    }
}

/// Under every policy: without a rule, nothing leaves the sandbox without a question.
#[test]
fn nothing_leaves_the_sandbox_without_a_question() {
    let machine = Machine::new();
    let more = ["ls", "cat x", "git status", "cd x && ls", "echo hi", "true"];
    for script in ASKED.iter().chain(&more) {
        let argv = machine.shell(&expand(&machine, script));
        for sandbox in [read_only(), workspace_write(), SandboxPolicy::DangerFullAccess, external()] {
            for approval in approvals() {
                for escalation in
                    [Escalation::Default, Escalation::RequireEscalated, Escalation::WithAdditional]
                {
                    let verdict = machine.ask(&argv, &approval, &sandbox, escalation, None);
                    let outside = matches!(verdict, PolicyVerdict::Run { sandbox: SandboxChoice::None, .. });
                    assert!(!outside, "{script:?} {approval:?} {sandbox:?} {escalation:?}");
                }
            }
        }
    }
}

/// A rule for one command does not cover the commands next to it, nor other programs of its name.
#[test]
fn an_allowed_command_covers_no_other() {
    let machine =
        Machine::with_rules("prefix_rule(['make'])\nprefix_rule(['ls'])\nprefix_rule(['cat', 'x'])");
    for script in [
        "make && ./tool",
        "make; rm -rf x",
        "make | sh",
        "make > x",
        "make $(id)",
        "make &",
        "A=1 make",
        "@WS@/ls",
        "./ls",
        "@WS@/bash -c ls",
        "./bash -c 'make'",
        "env make",
        "cat y",
        "cat",
        "make && git status",
        "make && cat /etc/passwd",
        "{make,ls}",
        "make\rid",
        "hash -p ./x make; make",
        "alias make=id\nmake",
        "cd x && ./ls",
        "make && PATH=. ls",
        "m\u{200b}ake",
        "make && cat <<E\nx\nE",
        "ls <<E\n$(id)\nE",
        "function make { id; }\nmake",
    ] {
        let argv = machine.shell(&expand(&machine, script));
        for approval in approvals() {
            let verdict = machine.decide(&argv, &approval, &workspace_write());
            assert!(
                !matches!(verdict, PolicyVerdict::Run { sandbox: SandboxChoice::None, .. }),
                "{script:?} {approval:?}"
            );
        }
    }
    let planted = words(&[machine.workspace().join("bash").to_str().unwrap(), "-lc", "make"]);
    let verdict = machine.decide(&planted, &AskForApproval::Never, &workspace_write());
    assert!(matches!(verdict, PolicyVerdict::Run { sandbox: SandboxChoice::AsPolicy, .. }), "{verdict:?}");
}

/// The commands without a shell around them.
#[test]
fn an_argv_is_judged_like_a_script() {
    let machine = Machine::new();
    let workspace = machine.workspace();
    for argv in [
        words(&[workspace.join("cat").to_str().unwrap(), "x"]),
        words(&["./cat", "x"]),
        words(&["find", ".", "-exec", "id", ";"]),
        words(&["git", "-C", ".", "status"]),
        words(&["rg", "--pre", "id", "x"]),
        words(&["bash", "-c", "ls", "x"]),
        words(&["bash", "-c"]),
        words(&["env", "-S", "id"]),
        words(&[""]),
        words(&["ls -l"]),
    ] {
        let verdict = machine.decide(&argv, &AskForApproval::Untrusted, &workspace_write());
        assert!(matches!(verdict, PolicyVerdict::Ask { .. }), "{argv:?}: {verdict:?}");
    }
}
