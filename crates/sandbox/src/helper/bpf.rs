//! Builds a system call filter that finds its rule by binary search: this makes it cheap to load at the start of every
//! command, and to run.

use seccompiler::{BpfProgram, sock_filter};

#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;

/// From here on x86-64 has a second set of numbers for the same calls, which no rule would match.
#[cfg(target_arch = "x86_64")]
const SECOND_SET: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// The offset of the call number.
const NUMBER_AT: u32 = 0;
const MACHINE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// Up to this many rules are compared linearly.
const FEW: usize = 3;

/// The filter's action for a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterAction {
    Allow,
    Refuse,
    /// The supervisor is asked, and performs or refuses the call.
    Notify,
}

/// One step of a rule. A call that no step decides is allowed. Except for pointers, only the low half of an argument is
/// compared, because the kernel uses only these 32 bits.
#[derive(Debug, Clone)]
pub(super) enum Check {
    /// With this value, these checks decide, like a separate rule.
    When {
        argument: u32,
        value: u32,
        checks: Vec<Check>,
    },
    Is {
        argument: u32,
        value: u32,
        then: FilterAction,
    },
    IsNot {
        argument: u32,
        value: u32,
        then: FilterAction,
    },
    AnyBit {
        argument: u32,
        bits: u32,
        then: FilterAction,
    },
    Masked {
        argument: u32,
        mask: u32,
        value: u32,
        then: FilterAction,
    },
    /// A pointer, of which both halves are compared.
    IsSet {
        argument: u32,
        then: FilterAction,
    },
    Refuse,
    DoesNotExist,
    Notify,
}

/// The checks for each call number. A call of another architecture ends the process.
pub(super) fn filter(mut calls: Vec<(u32, Vec<Check>)>) -> BpfProgram {
    calls.sort_by_key(|(number, _)| *number);
    let mut program =
        vec![load(MACHINE_AT), test(IF_EQUAL, MACHINE, 1, 0), give(libc::SECCOMP_RET_KILL_PROCESS)];
    program.push(load(NUMBER_AT));
    #[cfg(target_arch = "x86_64")]
    program.extend([test(IF_AT_LEAST, SECOND_SET, 0, 1), give(libc::SECCOMP_RET_KILL_PROCESS)]);
    program.extend(search(&calls));
    program
}

/// Expects the number in the accumulator. Every path returns.
fn search(calls: &[(u32, Vec<Check>)]) -> BpfProgram {
    if calls.len() <= FEW {
        let rules = calls.iter().flat_map(|(number, checks)| {
            let rule = rule(checks);
            // Rules are shorter than the maximum jump.
            let skip = u8::try_from(rule.len()).unwrap_or(u8::MAX);
            [vec![test(IF_EQUAL, *number, 0, skip)], rule].concat()
        });
        return rules.chain([give(libc::SECCOMP_RET_ALLOW)]).collect();
    }
    let (low, high) = calls.split_at(calls.len() / 2);
    let low = search(low);
    let jump = instruction(JUMP, 0, 0, u32::try_from(low.len()).unwrap_or(u32::MAX));
    [vec![test(IF_AT_LEAST, high[0].0, 0, 1), jump], low, search(high)].concat()
}

fn rule(checks: &[Check]) -> BpfProgram {
    let mut program: BpfProgram = checks.iter().flat_map(step).collect();
    if !matches!(checks.last(), Some(Check::Refuse | Check::DoesNotExist | Check::Notify)) {
        program.push(give(libc::SECCOMP_RET_ALLOW));
    }
    program
}

/// Falls through if it does not decide.
fn step(check: &Check) -> BpfProgram {
    let argument = |argument: u32| load(ARGUMENTS_AT + 8 * argument);
    let decide = |then| match then {
        FilterAction::Allow => give(libc::SECCOMP_RET_ALLOW),
        FilterAction::Refuse => give(error(libc::EPERM)),
        FilterAction::Notify => give(libc::SECCOMP_RET_USER_NOTIF),
    };
    match *check {
        Check::When { argument: at, value, ref checks } => {
            let rule = rule(checks);
            let skip = u8::try_from(rule.len()).unwrap_or(u8::MAX);
            [vec![argument(at), test(IF_EQUAL, value, 0, skip)], rule].concat()
        }
        Check::Is { argument: at, value, then } => {
            vec![argument(at), test(IF_EQUAL, value, 0, 1), decide(then)]
        }
        Check::IsNot { argument: at, value, then } => {
            vec![argument(at), test(IF_EQUAL, value, 1, 0), decide(then)]
        }
        Check::AnyBit { argument: at, bits, then } => {
            vec![argument(at), test(IF_ANY_BIT, bits, 0, 1), decide(then)]
        }
        Check::Masked { argument: at, mask, value, then } => {
            let masked = instruction(AND, 0, 0, mask);
            vec![argument(at), masked, test(IF_EQUAL, value, 0, 1), decide(then)]
        }
        Check::IsSet { argument: at, then } => {
            let high = load(ARGUMENTS_AT + 8 * at + 4);
            let decided = || [test(IF_EQUAL, 0, 1, 0), decide(then)];
            [vec![argument(at)], decided().to_vec(), vec![high], decided().to_vec()].concat()
        }
        Check::Refuse => vec![decide(FilterAction::Refuse)],
        Check::DoesNotExist => vec![give(error(libc::ENOSYS))],
        Check::Notify => vec![decide(FilterAction::Notify)],
    }
}

fn error(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number.unsigned_abs()
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn load(at: u32) -> sock_filter {
    instruction(LOAD, 0, 0, at)
}

fn give(result: u32) -> sock_filter {
    instruction(RETURN, 0, 0, result)
}

/// Jump offsets if the test holds, and if not.
fn test(code: u16, value: u32, holds: u8, fails: u8) -> sock_filter {
    instruction(code, holds, fails, value)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Outcome {
        Allowed,
        Refused,
        DoesNotExist,
        Notified,
        Killed,
    }

    /// Interprets a filter like the kernel.
    pub(crate) fn run(program: &BpfProgram, number: u32, arguments: &[u64]) -> Outcome {
        run_on(MACHINE, program, number, arguments)
    }

    fn run_on(machine: u32, program: &BpfProgram, number: u32, arguments: &[u64]) -> Outcome {
        let (mut at, mut held) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let skip = |holds: bool| usize::from(if holds { jt } else { jf });
            at += 1;
            match code {
                LOAD => {
                    held = match k {
                        NUMBER_AT => number,
                        MACHINE_AT => machine,
                        at => {
                            let whole = arguments.get((at as usize - 16) / 8).copied().unwrap_or(0);
                            let half = if at % 8 == 0 { whole & 0xffff_ffff } else { whole >> 32 };
                            u32::try_from(half).unwrap()
                        }
                    }
                }
                AND => held &= k,
                JUMP => at += k as usize,
                IF_EQUAL => at += skip(held == k),
                IF_AT_LEAST => at += skip(held >= k),
                IF_ANY_BIT => at += skip(held & k != 0),
                RETURN => {
                    return match k {
                        libc::SECCOMP_RET_ALLOW => Outcome::Allowed,
                        libc::SECCOMP_RET_USER_NOTIF => Outcome::Notified,
                        libc::SECCOMP_RET_KILL_PROCESS => Outcome::Killed,
                        k if k == error(libc::EPERM) => Outcome::Refused,
                        k if k == error(libc::ENOSYS) => Outcome::DoesNotExist,
                        other => panic!("returns {other:#x}"),
                    };
                }
                other => panic!("unknown instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn every_rule_is_found_among_any_number_of_rules() {
        for count in 0..40 {
            let program = filter((0..count).map(|n| (n * 3 + 1, vec![Check::Refuse])).rev().collect());
            for number in 0..count * 3 + 5 {
                let listed = number % 3 == 1 && number / 3 < count;
                let expected = if listed { Outcome::Refused } else { Outcome::Allowed };
                assert_eq!(run(&program, number, &[]), expected, "{number} of {count}");
            }
        }
    }

    #[test]
    fn another_kind_of_call_ends_the_process() {
        let program = filter(Vec::new());
        assert_eq!(run_on(MACHINE ^ 1, &program, 1, &[]), Outcome::Killed);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(run(&program, SECOND_SET + 1, &[]), Outcome::Killed);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(run(&program, u32::MAX, &[]), Outcome::Killed);
    }
}
