//! The choice in a thread's record: each turn stores its model's environments.

use protocol::{EnvironmentId, EnvironmentSelection};
use serde_json::Value;

/// The selection of the thread's last turn; none if that worked on this machine without a choice.
pub fn stored_choice(turn_context: Option<&Value>) -> Option<Vec<EnvironmentSelection>> {
    let context = turn_context?;
    if context["nowhere"].as_bool() == Some(true) {
        return Some(Vec::new());
    }
    let noted = context["environments"].as_array().filter(|noted| !noted.is_empty())?;
    noted.iter().map(selection).collect()
}

/// `[id, cwd, state]`.
fn selection(noted: &Value) -> Option<EnvironmentSelection> {
    let environment_id = EnvironmentId::new(noted[0].as_str()?);
    Some(EnvironmentSelection { environment_id, cwd: noted[1].as_str()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_choice_is_read_from_what_the_last_turn_noted() {
        let read = |context: Value| {
            let chosen = stored_choice(Some(&context))?;
            Some(
                chosen
                    .into_iter()
                    .map(|one| format!("{} {}", one.environment_id, one.cwd))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(stored_choice(None), None);
        assert_eq!(read(json!({"cwd": "/repo"})), None);
        assert_eq!(read(json!({"cwd": "/repo", "nowhere": true})), Some(vec![]));
        let two = json!([["box", "/w", "attached"], ["local", "/repo", "disconnected"]]);
        assert_eq!(
            read(json!({"cwd": "/w", "environments": two})),
            Some(vec!["box /w".to_owned(), "local /repo".to_owned()])
        );
        assert_eq!(read(json!({"environments": ["odd"]})), None);
    }
}
