//! The kept parts of the model's answers: limited, and without credentials. Pure.

use config::CredentialFilter;
use serde::Deserialize;

/// Limit of one thread's notes, and of its summary.
const MOST_RAW_BYTES: usize = 16 << 10;
const MOST_SUMMARY_BYTES: usize = 1 << 10;
/// Limit of the text for later threads.
pub(crate) const MOST_MEMORY_BYTES: usize = 20 << 10;

/// The notes of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExtractedNotes {
    pub(crate) raw_memory: String,
    pub(crate) summary: String,
}

#[derive(Deserialize)]
struct ExtractionAnswer {
    raw_memory: String,
    #[serde(default)]
    rollout_summary: String,
}

#[derive(Deserialize)]
struct ConsolidationAnswer {
    memory: String,
}

/// `Ok(None)`: there is nothing worth keeping.
pub(crate) fn extracted(answer: &str) -> Result<Option<ExtractedNotes>, serde_json::Error> {
    let ExtractionAnswer { raw_memory, rollout_summary } = serde_json::from_str(document(answer))?;
    let notes = ExtractedNotes {
        raw_memory: kept(&raw_memory, MOST_RAW_BYTES),
        summary: kept(&rollout_summary, MOST_SUMMARY_BYTES),
    };
    Ok((!notes.raw_memory.is_empty()).then_some(notes))
}

pub(crate) fn consolidated(answer: &str) -> Result<String, serde_json::Error> {
    let ConsolidationAnswer { memory } = serde_json::from_str(document(answer))?;
    Ok(kept(&memory, MOST_MEMORY_BYTES))
}

/// The JSON in an answer: models may add text or a code fence around it.
fn document(answer: &str) -> &str {
    match (answer.find('{'), answer.rfind('}')) {
        (Some(start), Some(end)) if start < end => &answer[start..=end],
        _ => answer,
    }
}

/// Whole lines without credentials, up to the limit.
fn kept(text: &str, most: usize) -> String {
    let mut filter = CredentialFilter::default();
    let mut kept = String::new();
    for line in text.trim().lines() {
        let line = filter.line(line);
        if kept.len() + line.len() + 1 > most {
            break;
        }
        kept.push_str(&line);
        kept.push('\n');
    }
    kept.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_with_or_without_words_around_them() {
        let notes = ExtractedNotes { raw_memory: "uses make".to_owned(), summary: "a build".to_owned() };
        let json = r#"{"rollout_summary":"a build","rollout_slug":null,"raw_memory":"uses make\n"}"#;
        for answer in [json.to_owned(), format!("Here:\n```json\n{json}\n```")] {
            assert_eq!(extracted(&answer).expect("read"), Some(notes.clone()));
        }
        let empty = r#"{"rollout_summary":"","raw_memory":" "}"#;
        assert_eq!(extracted(empty).expect("read"), None);
        assert!(extracted("I cannot").is_err());
        assert!(extracted("}{").is_err());
    }

    #[test]
    fn credentials_and_excess_are_left_out() {
        let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let long = format!("the token is {token}\n{}", "line of text\n".repeat(10_000));
        let answer = serde_json::json!({ "memory": long }).to_string();
        let memory = consolidated(&answer).expect("read");
        assert!(!memory.contains(token), "{}", &memory[..80]);
        assert!(memory.len() <= MOST_MEMORY_BYTES && memory.ends_with("line of text"));
    }
}
