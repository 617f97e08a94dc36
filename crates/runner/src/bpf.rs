//! Filters of system calls in the kernel's form: one program, which finds a call's number by halving
//! and then tries the rules of that number in their order.
//!
//! The kernel walks a new filter once for every number there is, to know which calls it may let pass
//! unasked. One short way to each answer makes that cheap, and a filter goes up for every run.

use libc::sock_filter;
use std::collections::BTreeMap;
use std::os::raw::c_int;

/// Instructions, in the order they stand in.
pub(crate) type Program = Vec<sock_filter>;
/// What is refused, by the number of the call. The first rule that holds answers; a call that has none
/// is let through.
pub(crate) type Rules = BTreeMap<u32, Vec<Rule>>;

/// An answer for calls whose arguments meet every condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) when: Vec<Condition>,
    pub(crate) answer: Answer,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It fails with this error number.
    Errno(c_int),
    /// The process is killed.
    Kill,
}

/// About the argument of this index, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Its low 32 bits are this.
    Is(u8, u32),
    /// Its low 32 bits are not this.
    IsNot(u8, u32),
    /// Of its low 32 bits, those of the mask are this.
    Masked { argument: u8, mask: u32, is: u32 },
    /// Its 64 bits are not this.
    Differs(u8, u64),
}

/// The filter of these rules. Numbers above `last` do not exist; another architecture's calls, whose
/// numbers mean something else, kill.
pub(crate) fn program(rules: &Rules, last: u32) -> Program {
    let absent = [Rule {
        when: Vec::new(),
        answer: Answer::Errno(libc::ENOSYS),
    }];
    let mut program = vec![
        load(OFFSET_OF_ARCHITECTURE),
        step(JUMP_IF_EQUAL, 1, 0, ARCHITECTURE),
        returns(KILL),
        load(OFFSET_OF_NUMBER),
    ];
    program.extend(search(&stretches(rules, last, &absent)));
    program
}

/// Neighbouring numbers of the same rules: where they begin, and the rules. The first begins at 0.
fn stretches<'r>(rules: &'r Rules, last: u32, absent: &'r [Rule]) -> Vec<(u32, &'r [Rule])> {
    let mut begin: BTreeMap<u32, &[Rule]> = BTreeMap::from([(0, &[][..])]);
    for (number, rules) in rules.range(..=last) {
        begin.insert(*number, rules);
        begin.insert(number + 1, &[]);
    }
    begin.insert(last + 1, absent);
    let mut stretches: Vec<_> = begin.into_iter().collect();
    stretches.dedup_by(|next, before| next.1 == before.1);
    stretches
}

/// Halves the numbers until one stretch is left, whose rules follow.
fn search(stretches: &[(u32, &[Rule])]) -> Program {
    let (lower, upper) = stretches.split_at(stretches.len() / 2);
    match upper {
        [] => body(&[]),
        [(_, rules)] if lower.is_empty() => body(rules),
        [(middle, _), ..] => {
            let lower = search(lower);
            let mut found = match u8::try_from(lower.len()) {
                Ok(near) => vec![step(JUMP_IF_AT_LEAST, near, 0, *middle)],
                Err(_far) => vec![step(JUMP_IF_AT_LEAST, 0, 1, *middle), over(lower.len())],
            };
            found.extend(lower);
            found.extend(search(upper));
            found
        }
    }
}

fn body(rules: &[Rule]) -> Program {
    let mut body: Program = rules.iter().flat_map(Rule::compiled).collect();
    if rules.last().is_none_or(|rule| !rule.when.is_empty()) {
        body.push(returns(ALLOW));
    }
    body
}

impl Rule {
    /// Falls through to what follows unless every condition is met.
    fn compiled(&self) -> Program {
        let mut program = vec![returns(self.answer.code())];
        for condition in self.when.iter().rev() {
            let mut tested = condition.test();
            tested.push(over(program.len()));
            tested.extend(program);
            program = tested;
        }
        program
    }
}

impl Condition {
    /// Goes past the next instruction if it is met.
    fn test(self) -> Program {
        match self {
            Self::Is(argument, value) => {
                vec![load(low(argument)), step(JUMP_IF_EQUAL, 1, 0, value)]
            }
            Self::IsNot(argument, value) => {
                vec![load(low(argument)), step(JUMP_IF_EQUAL, 0, 1, value)]
            }
            Self::Masked { argument, mask, is } => vec![
                load(low(argument)),
                step(AND, 0, 0, mask),
                step(JUMP_IF_EQUAL, 1, 0, is & mask),
            ],
            Self::Differs(argument, value) => {
                let (lower, upper) = (word(value), word(value >> 32));
                vec![
                    load(high(argument)),
                    step(JUMP_IF_EQUAL, 0, 3, upper),
                    load(low(argument)),
                    step(JUMP_IF_EQUAL, 0, 1, lower),
                ]
            }
        }
    }
}

impl Answer {
    fn code(self) -> u32 {
        match self {
            Self::Errno(number) => libc::SECCOMP_RET_ERRNO | number.unsigned_abs(),
            Self::Kill => KILL,
        }
    }
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    // Every code fits; one that does not would be refused by the kernel.
    let code = u16::try_from(code).unwrap_or(u16::MAX);
    sock_filter { code, jt, jf, k }
}

/// The low 32 bits.
fn word(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0)
}

fn load(offset: u32) -> sock_filter {
    step(LOAD_WORD, 0, 0, offset)
}

fn returns(code: u32) -> sock_filter {
    step(RETURN, 0, 0, code)
}

/// Goes past that many instructions. No program here has as many as would not fit.
fn over(instructions: usize) -> sock_filter {
    step(JUMP, 0, 0, u32::try_from(instructions).unwrap_or(u32::MAX))
}

const fn low(argument: u8) -> u32 {
    let word = if cfg!(target_endian = "little") { 0 } else { 4 };
    OFFSET_OF_ARGUMENTS + 8 * argument as u32 + word
}

const fn high(argument: u8) -> u32 {
    let word = if cfg!(target_endian = "little") { 4 } else { 0 };
    OFFSET_OF_ARGUMENTS + 8 * argument as u32 + word
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_JA;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
/// Where `struct seccomp_data` holds the number of the call.
const OFFSET_OF_NUMBER: u32 = 0;
/// Where it holds the architecture.
const OFFSET_OF_ARCHITECTURE: u32 = 4;
/// Where it holds six arguments of 64 bits.
const OFFSET_OF_ARGUMENTS: u32 = 16;
/// The architecture this program is made for, as the kernel names it.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const OURS: u32 = ARCHITECTURE;

    pub(crate) fn verdict(program: &[sock_filter], number: u32, arch: u32, with: [u64; 6]) -> u32 {
        walk(program, number, arch, with).0
    }

    /// An interpreter of the few instructions these programs use: the answer, and how many it took.
    pub(crate) fn walk(
        program: &[sock_filter],
        number: u32,
        arch: u32,
        with: [u64; 6],
    ) -> (u32, usize) {
        let mut data = Vec::new();
        data.extend(number.to_ne_bytes());
        data.extend(arch.to_ne_bytes());
        data.extend(0u64.to_ne_bytes());
        with.iter().for_each(|a| data.extend(a.to_ne_bytes()));
        let (mut at, mut acc) = (0usize, 0u32);
        for taken in 1.. {
            let step = &program[at];
            at += 1;
            let mut jump = |yes: bool| at += usize::from(if yes { step.jt } else { step.jf });
            match u32::from(step.code) {
                LOAD_WORD => {
                    let from = step.k as usize;
                    acc = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                }
                AND => acc &= step.k,
                JUMP => at += step.k as usize,
                JUMP_IF_EQUAL => jump(acc == step.k),
                JUMP_IF_AT_LEAST => jump(acc >= step.k),
                RETURN => return (step.k, taken),
                other => panic!("instruction {other:#x} is not interpreted"),
            }
        }
        unreachable!("it returns")
    }

    /// The same question answered from the rules themselves.
    fn expected(rules: &Rules, last: u32, number: u32, with: [u64; 6]) -> u32 {
        if number > last {
            return Answer::Errno(libc::ENOSYS).code();
        }
        let holds = |condition: &Condition| match *condition {
            Condition::Is(argument, value) => word(with[usize::from(argument)]) == value,
            Condition::IsNot(argument, value) => word(with[usize::from(argument)]) != value,
            Condition::Masked { argument, mask, is } => {
                word(with[usize::from(argument)]) & mask == is & mask
            }
            Condition::Differs(argument, value) => with[usize::from(argument)] != value,
        };
        let mut rules = rules.get(&number).into_iter().flatten();
        let first = rules.find(|rule| rule.when.iter().all(holds));
        first.map_or(ALLOW, |rule| rule.answer.code())
    }

    const LAST: u32 = 40;

    /// `count` calls with up to three rules of up to three conditions, drawn from a few values so that
    /// they meet often.
    fn drawn(seed: u64, count: u32) -> Rules {
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut rules = Rules::new();
        for _ in 0..count {
            let list = (0..draw(3) + 1).map(|_| {
                let conditions = (0..draw(4)).map(|_| {
                    let (argument, value) = (draw(6).to_le_bytes()[0], word(draw(3)));
                    match draw(4) {
                        0 => Condition::Is(argument, value),
                        1 => Condition::IsNot(argument, value),
                        2 => Condition::Masked {
                            argument,
                            mask: 2,
                            is: value,
                        },
                        _ => Condition::Differs(argument, u64::from(value) << (32 * draw(2))),
                    }
                });
                let when = conditions.collect();
                let answer = match draw(3) {
                    0 => Answer::Kill,
                    1 => Answer::Errno(libc::EPERM),
                    _ => Answer::Errno(libc::EACCES),
                };
                Rule { when, answer }
            });
            let list = list.collect();
            rules.insert(word(draw(u64::from(LAST))), list);
        }
        rules
    }

    #[test]
    fn a_program_answers_as_its_rules_do_whatever_is_asked() {
        let values = [0, 1, 2, 1 << 32, 2 << 32, u64::MAX];
        let mut answers = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let rules = drawn(seed, u32::try_from(seed % 20).unwrap());
            let program = program(&rules, LAST);
            for number in (0..LAST + 2).chain([0x4000_0029, u32::MAX]) {
                for turn in 0..values.len() {
                    let with = std::array::from_fn(|i| values[(turn + i * turn) % values.len()]);
                    let found = verdict(&program, number, ARCHITECTURE, with);
                    let wanted = expected(&rules, LAST, number, with);
                    assert_eq!(found, wanted, "{rules:?}: {number} {with:?}");
                    answers.insert(found);
                }
                assert_eq!(verdict(&program, number, ARCHITECTURE ^ 1, [0; 6]), KILL);
            }
        }
        assert_eq!(answers.len(), 5, "{answers:?}");
    }
}
