//! The bytes of a history: encoded once, and shared by later requests without a copy.

use bytes::Bytes;

/// Append-only bytes.
#[derive(Debug, Default)]
pub(crate) struct SharedBytes {
    /// Each at least twice as long as the next, so that there are few.
    parts: Vec<Bytes>,
    len: usize,
}

impl SharedBytes {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn add(&mut self, mut more: Vec<u8>) {
        if more.is_empty() {
            return;
        }
        self.len += more.len();
        while let Some(before) = self.parts.pop_if(|before| before.len() < 2 * more.len()) {
            more = [&before, more.as_slice()].concat();
        }
        more.shrink_to_fit();
        self.parts.push(Bytes::from(more));
    }

    /// Everything between two places.
    pub(crate) fn between(&self, from: usize, to: usize) -> impl Iterator<Item = Bytes> {
        let mut next = 0;
        self.parts.iter().filter_map(move |part| {
            let start = next;
            next += part.len();
            let (from, to) = (from.max(start), to.min(next));
            (from < to).then(|| part.slice(from - start..to - start))
        })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Bytes> {
        self.parts.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_that_were_added_and_stay_where_they_are() {
        let (mut shared, mut whole) = (SharedBytes::default(), Vec::new());
        let large = vec![b'x'; 100_000];
        for number in 0..200_usize {
            let more = if number == 50 { large.clone() } else { number.to_string().into_bytes() };
            whole.extend_from_slice(&more);
            shared.add(more);
            shared.add(Vec::new());
            assert_eq!(
                (shared.len(), shared.all().collect::<Vec<_>>().concat()),
                (whole.len(), whole.clone())
            );
        }
        let parts = Vec::from_iter(shared.all());
        assert!(parts.len() < 20, "{} parts", parts.len());
        shared.add(b"more".to_vec());
        assert_eq!(shared.all().next().unwrap().as_ptr(), parts[0].as_ptr());
        for (from, to) in
            [(0, 0), (0, whole.len()), (3, 99), (99_000, 100_300), (whole.len() - 1, whole.len())]
        {
            assert_eq!(shared.between(from, to).collect::<Vec<_>>().concat(), whole[from..to]);
        }
    }
}
