//! Ranking of short texts by the words of a query (Okapi BM25).

use std::collections::{HashMap, HashSet};

/// How fast the weight of a repeated word saturates.
const SATURATION: f64 = 1.2;
/// The penalty for long texts.
const LENGTH: f64 = 0.75;

/// The indexes of the texts that share a word with the query, best first; equal ones in order.
pub(crate) fn rank(query: &str, texts: &[String]) -> Vec<usize> {
    let counts: Vec<_> = texts.iter().map(|text| Words::of(text)).collect();
    let average = counts.iter().map(|words| words.total).sum::<f64>() / (counts.len().max(1) as f64);
    let wanted: HashSet<_> = words(query).into_iter().collect();
    let rarity: HashMap<&str, f64> = wanted
        .iter()
        .map(|word| {
            let with = counts.iter().filter(|words| words.count(word) > 0.0).count() as f64;
            let without = counts.len() as f64 - with;
            (word.as_str(), ((without + 0.5) / (with + 0.5) + 1.0).ln())
        })
        .collect();
    let score = |words: &Words| {
        let length = SATURATION * (1.0 - LENGTH + LENGTH * words.total / average.max(1.0));
        let of = |(word, rarity): (&&str, &f64)| {
            let count = words.count(word);
            rarity * count * (SATURATION + 1.0) / (count + length)
        };
        rarity.iter().map(of).sum::<f64>()
    };
    let scores = counts.iter().map(score).enumerate();
    let mut found: Vec<(usize, f64)> = scores.filter(|(_, score)| *score > 0.0).collect();
    found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    found.into_iter().map(|(number, _)| number).collect()
}

/// The word counts of a text.
#[derive(Debug)]
struct Words {
    counts: HashMap<String, u32>,
    total: f64,
}

impl Words {
    fn of(text: &str) -> Self {
        let mut counts = HashMap::new();
        for word in words(text) {
            *counts.entry(word).or_default() += 1;
        }
        let total = counts.values().sum::<u32>().into();
        Self { counts, total }
    }

    fn count(&self, word: &str) -> f64 {
        self.counts.get(word).copied().unwrap_or(0).into()
    }
}

/// In lower case. `snake_case` and `camelCase` names are split into words, and plurals become singular.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for character in text.chars().chain([' ']) {
        let begins = !character.is_alphanumeric() || (character.is_uppercase() && after_small);
        if begins && !word.is_empty() {
            words.push(singular(std::mem::take(&mut word)));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        after_small = character.is_lowercase() || character.is_numeric();
    }
    words
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("list_openIssues, HTTPServer v2!"), ["list", "open", "issue", "httpserver", "v2"]);
        assert_eq!(words("Größe-ÜBER class bus"), ["größe", "über", "class", "bus"]);
        assert!(words(" _- ").is_empty());
    }

    fn check(query: &str, texts: &[&str], expected: &[usize]) {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(rank(query, &texts), expected, "{query}");
    }

    #[test]
    fn rare_words_and_short_texts_come_first() {
        let texts = ["create a ticket", "create an event in the calendar", "delete a ticket", "play music"];
        check("create ticket", &texts, &[0, 2, 1]);
        check("calendar", &texts, &[1]);
        check("tickets", &texts, &[0, 2]);
        check("weather", &texts, &[]);
        check("", &texts, &[]);
        check("anything", &[], &[]);
    }

    #[test]
    fn a_word_in_every_text_still_counts() {
        check("mail", &["mail", "mail mail"], &[1, 0]);
        check("mail", &["mail", "mail"], &[0, 1]);
    }
}
