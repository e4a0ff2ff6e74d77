"""The tests that take chance, as long as they are worth: in a usual run of the tests each plays a part of it."""

from cargo import run_test
from report import Outcome, Run, Skipped, progress

# Package, target, test, and what makes it long.
TESTS = [
    ("oarlock-engine", "--test=it", "the_invariants_hold", {"PROPTEST_CASES": "3000"}),
    ("oarlock-rpc", "--test=it", "any_line_is_a_message", {"RPC_LINES": "200000"}),
    ("oarlock-runtime", "--test=it", "replay::a_", {"PROPTEST_CASES": "2000"}),
    ("oarlock-runtime", "--test=it", "no_request_mixes_two", {"PROPTEST_CASES": "1000"}),
    ("oarlock-delegation", "--lib", "a_host_that_misbehaves", {"DELEGATION_TURNS": "5000"}),
    ("oarlock-runtime", "--lib", "a_section_is_there_exactly", {"PROMPT_SECTIONS": "all"}),
    ("oarlock-host", "--lib", "schedules_of_several_replicas", {"OARLOCK_SCHEDULES": "100000"}),
    ("oarlock-tools", "--test=exec", "a_script_that_is_swapped", {"OARLOCK_RACES": "10000"}),
]


def measure(run: Run) -> Outcome:
    if run.quick:
        raise Skipped("not with --quick: the short forms are among the tests")
    failures = []
    for package, target, test, variables in TESTS:
        progress(f"  cargo test -p {package} {target} {test} with {variables}")
        passed, said = run_test(package, test, variables, target)
        if passed is None:
            raise Skipped(said)
        if not passed:
            failures.append(f"{package} {test}: {said[-500:]}")
    held = len(TESTS) - len(failures)
    return Outcome(f"{held} of {len(TESTS)} hold", failures, {"tests": [row[2] for row in TESTS]})
