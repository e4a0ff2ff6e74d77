//! Damage in a journal, described so that a person can find the place.

use std::fmt;

/// Limit of listed places; further ones are only counted, so that a ruined file cannot fill memory.
const NAMED: usize = 1_000;

/// One kind of damage, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Starts at 1.
    pub line: u64,
    /// In bytes from the start of the file.
    pub offset: u64,
    pub what: DamageKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DamageKind {
    /// Not a record; `salvaged` valid records were found inside it.
    Malformed {
        salvaged: usize,
    },
    NotUtf8 {
        salvaged: usize,
    },
    BadChecksum {
        salvaged: usize,
    },
    TooLong {
        bytes: u64,
    },
    /// The last line is incomplete: a crash interrupted its write.
    TornTail {
        bytes: u64,
    },
    /// Repeated numbers. `differing` when the second record differs from the first, which is kept.
    Duplicate {
        first: u64,
        last: u64,
        differing: bool,
    },
    /// Found later in the file than their numbers require, and moved to their place.
    OutOfOrder {
        first: u64,
        last: u64,
    },
    /// No valid record has these numbers.
    Missing {
        first: u64,
        last: u64,
    },
    /// The checksum is valid, but this release cannot decode the record.
    Undecodable {
        seq: u64,
        reason: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {}): ", self.line, self.offset)?;
        let inside = |salvaged| match salvaged {
            0 => String::from("skipped"),
            count => format!("{count} sound records inside it kept"),
        };
        match &self.what {
            DamageKind::Malformed { salvaged } => write!(f, "not a record, {}", inside(*salvaged)),
            DamageKind::NotUtf8 { salvaged } => write!(f, "invalid UTF-8, {}", inside(*salvaged)),
            DamageKind::BadChecksum { salvaged } => {
                write!(f, "checksum does not match, {}", inside(*salvaged))
            }
            DamageKind::TooLong { bytes } => write!(f, "{bytes} bytes without a line break, skipped"),
            DamageKind::TornTail { bytes } => write!(f, "unfinished last line, {bytes} bytes cut"),
            DamageKind::Duplicate { first, last, differing: false } => {
                write!(f, "records {first}..={last} repeated, skipped")
            }
            DamageKind::Duplicate { first, last, differing: true } => {
                write!(f, "records {first}..={last} there a second time with other content, skipped")
            }
            DamageKind::OutOfOrder { first, last } => {
                write!(f, "records {first}..={last} out of order, put in place")
            }
            DamageKind::Missing { first, last } => write!(f, "records {first}..={last} are missing"),
            DamageKind::Undecodable { seq, reason } => {
                write!(f, "record {seq} kept but not understood: {reason}")
            }
        }
    }
}

/// All damage of one journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DamageReport {
    named: Vec<Damage>,
    total: u64,
}

impl DamageReport {
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The number of places, listed or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The places in the order they were found, at most a thousand.
    pub fn named(&self) -> &[Damage] {
        &self.named
    }

    /// Whether there is damage other than an incomplete last line, which any crash may leave.
    pub fn is_beyond_tail(&self) -> bool {
        let tails =
            self.named.iter().filter(|damage| matches!(damage.what, DamageKind::TornTail { .. })).count();
        self.total > tails as u64
    }

    pub(crate) fn add(&mut self, line: u64, offset: u64, what: DamageKind) {
        if let Some(last) = self.named.last_mut()
            && last.what.absorb(&what)
        {
            return;
        }
        self.total += 1;
        if self.named.len() < NAMED {
            self.named.push(Damage { line, offset, what });
        }
    }
}

impl DamageKind {
    /// Adjacent places with the same damage are merged: a moved block of a thousand records is one place.
    fn absorb(&mut self, next: &DamageKind) -> bool {
        match (self, next) {
            (
                DamageKind::Duplicate { last, differing: mine, .. },
                DamageKind::Duplicate { first, last: end, differing: theirs },
            ) if *last + 1 == *first && mine == theirs => {
                *last = *end;
                true
            }
            (DamageKind::OutOfOrder { last, .. }, DamageKind::OutOfOrder { first, last: end })
                if *last + 1 == *first =>
            {
                *last = *end;
                true
            }
            _ => false,
        }
    }
}
