//! Owns inputs for tests that are made by breaking known ones, the same in each run. Must not know who reads them.

use std::ops::Range;

/// Longer pieces of an input are not copied or taken out at once.
const LONGEST_PIECE: usize = 24;
/// How often a piece is put in at one place. Once in a while, far deeper than anybody nests.
const TIMES: [usize; 5] = [1, 1, 1, 2, 150];

/// Xorshift: no more than needed to be different each time and the same in each run.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// 0 gives the numbers of 1, as nothing would ever follow on it.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(if seed == 0 { 1 } else { seed })
    }

    /// A number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap_or(0)
    }

    pub fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or(0)
    }

    /// One of the choices, of which there must be some.
    pub fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A short part of something of this length.
    pub fn range(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(LONGEST_PIECE) + 1)
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new(0x9e37_79b9_7f4a_7c15)
    }
}

/// Known inputs of a reader, and pieces that make or break its grammar.
#[derive(Debug, Clone, Copy)]
pub struct BrokenInput<'a, S, P> {
    pub seeds: &'a [S],
    pub pieces: &'a [P],
    /// One input is changed in up to so many places.
    pub most_changes: usize,
}

impl<S: AsRef<[u8]>, P: AsRef<[u8]>> BrokenInput<'_, S, P> {
    /// Has every known input read as it is, and then so many broken ones.
    pub fn each(&self, count: usize, mut read: impl FnMut(&[u8])) {
        self.seeds.iter().for_each(|seed| read(seed.as_ref()));
        let mut random = Random::default();
        for _ in 0..count {
            read(&self.next(&mut random));
        }
    }

    /// A known input, changed in at least one place.
    pub fn next(&self, random: &mut Random) -> Vec<u8> {
        let mut input = random.of(self.seeds).as_ref().to_vec();
        for _ in 0..=random.below(self.most_changes) {
            self.change(&mut input, random);
        }
        input
    }

    /// Changes one place.
    pub fn change(&self, input: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(input.len() + 1);
        match random.below(8) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.byte(),
            2 => input.truncate(at),
            3 => drop(input.drain(random.range(input.len()))),
            4 => {
                let copy = input[random.range(input.len())].to_vec();
                input.splice(at..at, copy);
            }
            5 => {
                let other = random.of(self.seeds).as_ref();
                input.splice(at..at, other[random.range(other.len())].iter().copied());
            }
            _ => {
                let piece = random.of(self.pieces).as_ref();
                let times = *random.of(&TIMES);
                input.splice(at..at, piece.repeat(times));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const INPUT: BrokenInput<'_, &str, &str> =
        BrokenInput { seeds: &["one = 1", "two = [2]"], pieces: &["[", "="], most_changes: 4 };

    fn inputs(count: usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        INPUT.each(count, |input| found.push(input.to_vec()));
        found
    }

    #[test]
    fn the_known_ones_come_first_and_the_others_are_the_same_in_each_run() {
        let found = inputs(1_000);
        assert_eq!(found.len(), 1_002);
        assert_eq!(found[..2], [b"one = 1".to_vec(), b"two = [2]".to_vec()]);
        assert_eq!(found, inputs(1_000));
    }

    #[test]
    fn they_differ_and_are_broken_in_every_way() {
        let found = inputs(1_000);
        assert!(found.iter().collect::<BTreeSet<_>>().len() > 800);
        let has = |fits: &dyn Fn(&[u8]) -> bool| found.iter().any(|input| fits(input));
        assert!(has(&|input| std::str::from_utf8(input).is_err()), "bytes that are no text");
        assert!(has(&|input| input.len() < 4), "ends that are missing");
        assert!(has(&|input| input.windows(150).any(|part| part.iter().all(|byte| *byte == b'['))), "depth");
        assert!(
            has(&|input| input.starts_with(b"one") && input.windows(3).any(|part| part == b"[2]")),
            "mixes"
        );
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut random = Random::new(0);
        assert_eq!((random.below(0), random.below(1), random.range(0)), (0, 0, 0..0));
        for _ in 0..1_000 {
            let range = random.range(30);
            assert!(range.end <= 30 && range.len() <= LONGEST_PIECE);
            assert!((3..5).contains(random.of(&[3, 4])));
        }
    }
}
