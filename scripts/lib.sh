# How scripts/test runs a step: a heading, its output in a log, a sign of life, its seconds. Sourced, not run.

readonly logs=".cache/logs"
readonly heartbeat_seconds=15
readonly tail_lines=60
heartbeat_pid=""
log=""

note() { printf '   %s\n' "$*"; }

# Ends the step well, saying why there was nothing to do.
skip() {
    note "skipped: $*"
    exit 0
}

# Runs one command of the current step; what it prints goes to the step's log.
run() {
    printf '$ %s\n' "$*" >>"$log"
    "$@" >>"$log" 2>&1
}

# Every few seconds, how long the step has been going and the last line of its log.
heartbeat() {
    local started=$SECONDS last
    while sleep "$heartbeat_seconds" >/dev/null 2>&1; do
        last=$(tail -n 1 "$log" | tr -d '\r' | cut -c 1-100)
        note "$((SECONDS - started)) s: $last"
    done
}

stop_heartbeat() {
    [[ -z $heartbeat_pid ]] || kill "$heartbeat_pid" 2>/dev/null || true
    heartbeat_pid=""
}
trap stop_heartbeat EXIT

# Runs the function step_NAME in a shell of its own, where the first failing command ends it.
step() {
    local name=$1 started=$SECONDS status=0
    log="$logs/$name.log"
    : >"$log"
    printf '== %s\n' "$name"
    heartbeat &
    heartbeat_pid=$!
    set +e
    (
        set -e
        "step_$name"
    )
    status=$?
    set -e
    stop_heartbeat
    if ((status != 0)); then
        report_failure "$name" "$((SECONDS - started))"
        exit 1
    fi
    note "$((SECONDS - started)) s"
}

report_failure() {
    printf -- '--- the last lines of %s\n' "$log"
    tail -n "$tail_lines" "$log" | cut -c 1-300
    printf -- '---\n'
    # A runner that did not get as far as its summary has failed no test, and its step all the same.
    if (($(count failed "$1") > 0)); then
        printf '%d passed, %d failed\n' "$(count passed "$1")" "$(count failed "$1")"
    fi
    printf 'step %s failed after %d s; run it alone with: scripts/test %s\n' "$1" "$2" "$1"
}

# count passed STEP... sums what the test runners of these steps said they passed; `count failed` what they failed.
# nextest: "Summary [..] 12 tests run: 11 passed, 1 failed"; cargo test: "test result: ok. 11 passed; 1 failed;";
# pytest: "=== 11 passed, 1 failed in 0.1s ===", or the same without the rules when quiet.
count() {
    local word=$1 files=() name
    shift
    for name in "$@"; do
        [[ ! -f $logs/$name.log ]] || files+=("$logs/$name.log")
    done
    ((${#files[@]})) || { printf '0\n'; return; }
    # Runners colour what they print when asked to; the numbers are the same without.
    sed -e $'s/\x1b\\[[0-9;]*m//g' "${files[@]}" |
        awk -v word="$word" '
            /^ *Summary \[/ || /^test result: / || /^=* ?([0-9]+ [a-z]+, )*[0-9]+ [a-z]+ in [0-9.]+s/ {
                for (i = 2; i <= NF; i++) {
                    said = $i
                    gsub(/[,;]/, "", said)
                    if (said == word) total += $(i - 1)
                }
            }
            END { print total + 0 }'
}
