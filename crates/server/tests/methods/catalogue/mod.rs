//! The choices of a client: models, features, apps, and the configuration.

mod apps;
mod config_read;
mod features;
mod models;
mod requirements_read;

use serde_json::{Value, json};
use testkit::{TestClient, text};

fn rows(page: &Value) -> &Vec<Value> {
    page["data"].as_array().expect("rows")
}

/// Follows the cursor to its end, with one row a page.
async fn one_by_one(client: &mut TestClient, method: &str, key: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = client.ask(method, json!({"limit": 1, "cursor": cursor})).await;
        assert_eq!(rows(&page).len(), 1);
        names.push(text(&page["data"][0][key]));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return names;
        }
    }
}
