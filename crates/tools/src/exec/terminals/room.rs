//! Which terminal to close when there are too many.

/// Limit of terminals.
pub(crate) const MOST: usize = 64;
/// From this number on, the model is warned.
pub(crate) const MANY: usize = 60;
/// The most recently used terminals, which are never closed.
const PROTECTED: usize = 8;

/// The properties that decide which terminal is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: u32,
    /// Higher is later.
    pub(crate) used: u64,
    pub(crate) has_ended: bool,
}

/// The least recently used one, preferring those that have ended.
pub(crate) fn choose(mut candidates: Vec<Candidate>) -> Option<u32> {
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.used));
    let old = candidates.get(PROTECTED..)?;
    let ended = old.iter().rev().find(|candidate| candidate.has_ended);
    ended.or(old.last()).map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_and_ended_ones_first() {
        let list = |ended: &[u32]| -> Vec<Candidate> {
            let one = |id| Candidate { id, used: u64::from(id), has_ended: ended.contains(&id) };
            (1..=12).map(one).collect()
        };
        assert_eq!(choose(list(&[])), Some(1));
        assert_eq!(choose(list(&[3, 4])), Some(3));
        // Number 5 is among the eight used last.
        assert_eq!(choose(list(&[5])), Some(1));
        assert_eq!(choose(list(&[])[..8].to_vec()), None);
        assert_eq!(choose(Vec::new()), None);
    }
}
