//! Finds lines in a file: exactly first, then with less regard for white space and typography.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::edit::FileLine;

/// The number of linear comparisons before building an index pays off.
const COMPARISONS: usize = 1_000_000;

/// How strictly lines are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    Exact,
    IgnoringTrailingSpace,
    IgnoringOuterSpace,
    Folded,
}

const FROM_STRICT_TO_LOOSE: [Strictness; 4] = [
    Strictness::Exact,
    Strictness::IgnoringTrailingSpace,
    Strictness::IgnoringOuterSpace,
    Strictness::Folded,
];

/// The lines of a file as they are searched.
pub(crate) struct Haystack<'f> {
    lines: &'f [FileLine<'f>],
    folded: OnceCell<Vec<String>>,
    comparisons: Cell<usize>,
    /// For each strictness, the lines by hash.
    indexes: [OnceCell<HashMap<u64, Vec<usize>>>; 4],
    hasher: RandomState,
}

impl<'f> Haystack<'f> {
    pub(crate) fn new(lines: &'f [FileLine<'f>]) -> Self {
        Self {
            lines,
            folded: OnceCell::new(),
            comparisons: Cell::new(0),
            indexes: Default::default(),
            hasher: RandomState::new(),
        }
    }

    /// The first match at or after `from`; the whole file is searched at one strictness before the next.
    pub(crate) fn find(&self, wanted: &[&str], from: usize) -> Option<usize> {
        let last = self.lines.len().checked_sub(wanted.len())?;
        self.find_between(wanted, from, last)
    }

    /// The match at the very end of the file, if it starts at or after `from`.
    pub(crate) fn find_at_end(&self, wanted: &[&str], from: usize) -> Option<usize> {
        let last = self.lines.len().checked_sub(wanted.len()).filter(|last| *last >= from)?;
        self.find_between(wanted, last, last)
    }

    fn find_between(&self, wanted: &[&str], from: usize, last: usize) -> Option<usize> {
        FROM_STRICT_TO_LOOSE.into_iter().find_map(|strictness| {
            let folded: Vec<String>;
            let wanted: Vec<&str> = if strictness == Strictness::Folded {
                folded = wanted.iter().map(|line| fold(line)).collect();
                folded.iter().map(String::as_str).collect()
            } else {
                wanted.iter().map(|line| cut(strictness, line)).collect()
            };
            match self.compare_each(strictness, &wanted, from, last) {
                SearchAnswer::Found(at) => Some(at),
                SearchAnswer::Absent => None,
                SearchAnswer::TooLong(at) => self.look_up(strictness, &wanted, at, last),
            }
        })
    }

    fn compare_each(
        &self,
        strictness: Strictness,
        wanted: &[&str],
        from: usize,
        last: usize,
    ) -> SearchAnswer {
        let mut comparisons = self.comparisons.get();
        let mut answer = SearchAnswer::Absent;
        for start in from..=last {
            if comparisons > COMPARISONS {
                answer = SearchAnswer::TooLong(start);
                break;
            }
            let same =
                wanted.iter().enumerate().take_while(|(n, line)| self.key(strictness, start + n) == **line);
            let same = same.count();
            comparisons += same + 1;
            if same == wanted.len() {
                answer = SearchAnswer::Found(start);
                break;
            }
        }
        self.comparisons.set(comparisons);
        answer
    }

    /// Searches the rarest of the wanted lines first.
    fn look_up(&self, strictness: Strictness, wanted: &[&str], from: usize, last: usize) -> Option<usize> {
        let index = self.indexes[strictness as usize].get_or_init(|| {
            let mut index: HashMap<u64, Vec<usize>> = HashMap::new();
            for at in 0..self.lines.len() {
                index.entry(self.hasher.hash_one(self.key(strictness, at))).or_default().push(at);
            }
            index
        });
        let places = |line: &str| index.get(&self.hasher.hash_one(line)).map_or(&[][..], Vec::as_slice);
        let (offset, places) = wanted
            .iter()
            .enumerate()
            .map(|(offset, line)| (offset, places(line)))
            .min_by_key(|(_, places)| places.len())?;
        let first = places.partition_point(|at| *at < from + offset);
        places[first..]
            .iter()
            .map(|at| at - offset)
            .take_while(|start| *start <= last)
            .find(|start| wanted.iter().enumerate().all(|(n, line)| self.key(strictness, start + n) == *line))
    }

    /// The text of a line for comparisons.
    fn key(&self, strictness: Strictness, at: usize) -> &str {
        if strictness == Strictness::Folded {
            let fold_all = || self.lines.iter().map(|line| fold(line.text)).collect();
            return &self.folded.get_or_init(fold_all)[at];
        }
        cut(strictness, self.lines[at].text)
    }
}

enum SearchAnswer {
    Found(usize),
    Absent,
    /// No match before this line, and the limit of comparisons is reached.
    TooLong(usize),
}

fn cut(strictness: Strictness, line: &str) -> &str {
    match strictness {
        Strictness::Exact => line,
        Strictness::IgnoringTrailingSpace => line.trim_end(),
        Strictness::IgnoringOuterSpace | Strictness::Folded => line.trim(),
    }
}

/// The line without white space at its ends, and with dashes, quotes and spaces in their plain form.
fn fold(line: &str) -> String {
    line.trim().chars().map(plain).collect()
}

fn plain(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<FileLine<'_>> {
        text.lines().map(|text| FileLine { text, ending: "\n" }).collect()
    }

    #[test]
    fn the_index_finds_what_comparing_finds() {
        let text = "a\nb \n  a\n\nb\na\nb\n– x\na\n\n".repeat(3);
        let lines = lines(&text);
        let wanted: [&[&str]; 8] =
            [&["a"], &["b"], &["a", "b"], &["b", "a"], &["", "b"], &["- x", "a"], &["a", ""], &["no"]];
        for wanted in wanted {
            for from in 0..lines.len() {
                let comparing = Haystack::new(&lines);
                let indexed = Haystack::new(&lines);
                indexed.comparisons.set(COMPARISONS + 1);
                assert_eq!(
                    indexed.find(wanted, from),
                    comparing.find(wanted, from),
                    "{wanted:?} from {from}"
                );
            }
        }
    }

    #[test]
    fn many_loose_chunks_in_a_long_file_take_no_time_to_speak_of() {
        let text = " x\n".repeat(100_000) + "y\n";
        let lines = lines(&text);
        let haystack = Haystack::new(&lines);
        for at in 0..5_000 {
            assert_eq!(haystack.find(&["x"], at), Some(at));
        }
        let mut long = vec!["x"; 2_000];
        long.push("y");
        assert_eq!(haystack.find(&long, 0), Some(98_000));
        long.push("z");
        assert_eq!(haystack.find(&long, 0), None);
    }
}
