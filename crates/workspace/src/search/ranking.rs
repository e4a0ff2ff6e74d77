//! Matching one query against the list of paths, slice by slice.

use std::sync::Arc;
use std::time::Instant;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::candidates::{Candidates, PathCandidate};
use super::{FileMatch, MAX_MATCHES};

/// Paths that are matched between two checks of the time.
const STRIDE: usize = 512;

/// The position of a path in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    block: u32,
    at: u32,
}

/// The progress of matching one query.
#[derive(Debug)]
pub(super) struct Ranking {
    query: String,
    pattern: Pattern,
    /// Paths that matched a prefix of this query; other paths of these blocks cannot match.
    narrowed: Vec<Position>,
    next_narrowed: usize,
    /// The first unchecked path in the other blocks.
    next: Position,
    blocks: Vec<Arc<[PathCandidate]>>,
    matched: Vec<Position>,
    best: Vec<Ranked>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ranked {
    score: u32,
    position: Position,
}

impl Ranking {
    pub(super) fn new(query: &str) -> Self {
        Self {
            query: query.to_owned(),
            pattern: Pattern::parse(query, CaseMatching::Smart, Normalization::Smart),
            narrowed: Vec::new(),
            next_narrowed: 0,
            next: Position { block: 0, at: 0 },
            blocks: Vec::new(),
            matched: Vec::new(),
            best: Vec::new(),
        }
    }

    /// The same list with another query. Results for a prefix of it are reused.
    pub(super) fn next_query(self, query: &str) -> Self {
        let is_narrower = is_plain(&self.query) && is_plain(query) && query.starts_with(&self.query);
        let mut next = Self::new(query);
        next.blocks = self.blocks;
        if is_narrower && !self.query.is_empty() {
            // The rest of the earlier narrowing must still be checked.
            next.narrowed = self.matched;
            next.narrowed.extend_from_slice(&self.narrowed[self.next_narrowed..]);
            next.next = self.next;
        }
        next
    }

    /// Continues until the whole list was checked, or `until`. Returns true when done for now.
    pub(super) fn advance(&mut self, list: &Candidates, matcher: &mut Matcher, until: Instant) -> bool {
        self.blocks.extend(list.blocks(self.blocks.len()));
        if self.query.is_empty() {
            return true;
        }
        let mut letters = Vec::new();
        loop {
            for _ in 0..STRIDE {
                let Some(position) = self.next_position() else { return true };
                self.look_at(position, matcher, &mut letters);
            }
            if Instant::now() >= until {
                return false;
            }
        }
    }

    fn next_position(&mut self) -> Option<Position> {
        if let Some(position) = self.narrowed.get(self.next_narrowed) {
            self.next_narrowed += 1;
            return Some(*position);
        }
        while let Some(block) = self.blocks.get(self.next.block as usize) {
            if (self.next.at as usize) < block.len() {
                let position = self.next;
                self.next.at += 1;
                return Some(position);
            }
            self.next = Position { block: self.next.block + 1, at: 0 };
        }
        None
    }

    fn look_at(&mut self, position: Position, matcher: &mut Matcher, letters: &mut Vec<char>) {
        let path = &self.at(position).path;
        let Some(score) = self.pattern.score(Utf32Str::new(path, letters), matcher) else { return };
        self.matched.push(position);
        let ranked = Ranked { score, position };
        if self.best.len() == MAX_MATCHES
            && !self.best.last().is_some_and(|last| self.is_before(&ranked, last))
        {
            return;
        }
        let at = self.best.partition_point(|other| self.is_before(other, &ranked));
        self.best.insert(at, ranked);
        self.best.truncate(MAX_MATCHES);
    }

    fn at(&self, position: Position) -> &PathCandidate {
        &self.blocks[position.block as usize][position.at as usize]
    }

    /// The order of matches: the higher score, then the shorter path, then alphabetically.
    fn is_before(&self, one: &Ranked, other: &Ranked) -> bool {
        let key = |ranked: &Ranked| {
            let candidate = self.at(ranked.position);
            (std::cmp::Reverse(ranked.score), candidate.path.len())
        };
        let path = |ranked: &Ranked| {
            let candidate = self.at(ranked.position);
            (&candidate.path, candidate.root)
        };
        key(one).cmp(&key(other)).then_with(|| path(one).cmp(&path(other))).is_lt()
    }

    /// The best so far, by score and then by path.
    pub(super) fn best(&self, roots: &[String], matcher: &mut Matcher) -> Vec<FileMatch> {
        let mut letters = Vec::new();
        let mut found: Vec<FileMatch> = Vec::with_capacity(self.best.len());
        for ranked in &self.best {
            let candidate = self.at(ranked.position);
            let mut indices = Vec::new();
            self.pattern.indices(Utf32Str::new(&candidate.path, &mut letters), matcher, &mut indices);
            indices.sort_unstable();
            indices.dedup();
            found.push(FileMatch {
                root: roots.get(candidate.root as usize).cloned().unwrap_or_default(),
                path: candidate.path.to_string(),
                kind: candidate.kind,
                score: ranked.score,
                indices,
            });
        }
        found.sort_by(|one, other| other.score.cmp(&one.score).then_with(|| one.path.cmp(&other.path)));
        found
    }
}

/// Neither several words nor operators: extending such a query only removes matches.
fn is_plain(query: &str) -> bool {
    !query.contains(|c: char| c.is_whitespace() || matches!(c, '!' | '^' | '$' | '\'' | '\\'))
}

pub(super) fn path_matcher() -> Matcher {
    Matcher::new(Config::DEFAULT.match_paths())
}
