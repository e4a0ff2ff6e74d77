//! Finds similar names for an unknown one.

/// Limit of suggestions.
const MOST: usize = 3;

/// The most similar names, best first. Leaves out unrelated ones.
pub(crate) fn near_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = plain(wanted);
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let other = plain(name);
            let distance = match wanted.is_empty() || other.is_empty() {
                true => return None,
                // One contains the other: a date or a vendor is missing.
                false if other.contains(&wanted) || wanted.contains(&other) => 1,
                false => distance(&wanted, &other),
            };
            (distance <= wanted.len().max(other.len()) / 3).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// The name without a vendor's prefix, only letters and digits.
fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).take(64).collect()
}

/// Levenshtein distance, over bytes: the names are ASCII here.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, right) in b.bytes().enumerate() {
            let cost = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_names_come_first() {
        let there = [
            "claude-opus-4-6",
            "claude-sonnet-4-5-20250929",
            "qwen3:8b",
            "openai/gpt-oss-20b",
            "llama3.2:1b",
        ];
        let near = |wanted| near_names(wanted, there.into_iter());
        assert_eq!(near("claude-opus-4.6"), ["claude-opus-4-6"]);
        assert_eq!(near("claude-sonnet-4-5"), ["claude-sonnet-4-5-20250929"]);
        assert_eq!(near("qwen3"), ["qwen3:8b"]);
        assert_eq!(near("gpt-oss:20b"), ["openai/gpt-oss-20b"]);
        assert_eq!(near("xyz"), Vec::<&str>::new());
        assert_eq!(near(""), Vec::<&str>::new());
    }
}
