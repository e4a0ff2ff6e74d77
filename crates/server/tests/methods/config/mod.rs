//! Changes of the configuration.

mod batch_write;
mod enablement_set;
mod value_write;

use serde_json::{Value, json};
use testkit::TestClient;

/// A write of one value that takes the place of the old one.
#[expect(clippy::needless_pass_by_value, reason = "the callers read better")]
fn replace(key: &str, value: Value) -> Value {
    json!({"keyPath": key, "value": value, "mergeStrategy": "replace"})
}

/// The code and the message of a write that must be refused.
async fn refused(client: &mut TestClient, method: &str, params: Value) -> (String, String) {
    let error = client.request(method, params).await.expect_err("refused");
    assert_eq!(error.code, -32600, "{error:?}");
    (testkit::text(&error.data["config_write_error_code"]), error.message)
}
