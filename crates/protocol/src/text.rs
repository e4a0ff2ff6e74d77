//! Reads types that have to see a whole object before they know what it holds. `#[wire]` writes the rest.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::value::RawValue;
use serde_json::{Error, Result, Value};

use crate::decode::without_position;

/// Takes the text of the next value, so that `read` does not depend on where it comes from. A place in that text says nothing
/// to those who do not see it, so errors go without.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: fn(&str) -> Result<T>,
) -> std::result::Result<T, D::Error> {
    let whole = Box::<RawValue>::deserialize(deserializer)?;
    read(whole.get()).map_err(|error| D::Error::custom(without_position(&error)))
}

/// For a flattened field outside this crate, `#[serde(flatten, deserialize_with = "…")]`: what it is given has no text yet.
pub fn from_members<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> std::result::Result<T, D::Error> {
    from_value(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a wire type from JSON that was made here. By way of its text, so that there is one way to read each type.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_str(&value.to_string()).map_err(|error| Error::custom(without_position(&error)))
}

/// The member that identifies the variant.
pub(crate) fn tag<T: DeserializeOwned>(whole: &str, name: &'static str, expected: &'static str) -> Result<T> {
    let tag = serde_json::Deserializer::from_str(whole).deserialize_map(Tag { name, expected })?;
    T::deserialize::<StringDeserializer<Error>>(tag.into_deserializer())
}

struct Tag {
    name: &'static str,
    expected: &'static str,
}

impl<'de> Visitor<'de> for Tag {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<String, A::Error> {
        let mut tag = None;
        while let Some(name) = members.next_key::<String>()? {
            if name != self.name {
                members.next_value::<IgnoredAny>()?;
            } else if tag.replace(members.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(self.name));
            }
        }
        tag.ok_or_else(|| A::Error::missing_field(self.name))
    }
}

/// The members of an object. An array, which serde takes for a struct too, is none.
pub(crate) fn object<T: DeserializeOwned>(whole: &str) -> Result<T> {
    T::deserialize(Object(whole))
}

struct Object<'de>(&'de str);

impl<'de> Deserializer<'de> for Object<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        serde_json::Deserializer::from_str(self.0).deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::from_value;
    use crate::{FunctionCallOutputBody, RolloutItem, SandboxPolicy, decode};

    #[test]
    fn the_tag_may_stand_anywhere() {
        for text in [
            r#"{"type":"readOnly","networkAccess":true}"#,
            r#"{"networkAccess":true,"type":"readOnly","new":[{"type":"x"}]}"#,
            r#" { "networkAccess" : true , "t\u0079pe" : "read\u004fnly" } "#,
        ] {
            let policy: SandboxPolicy = decode(text).expect("a policy");
            assert!(matches!(policy, SandboxPolicy::ReadOnly { network_access: true, .. }), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_tag_is_said() {
        for (text, expected) in [
            ("{}", "missing field `type`"),
            (r#"{"type":"readOnly","type":"readOnly"}"#, "duplicate field `type`"),
            (r#"{"type":7}"#, "invalid type: integer `7`, expected a string at `type`"),
            (r#"["readOnly"]"#, "invalid type: sequence, expected internally tagged enum SandboxPolicy"),
        ] {
            let error = decode::<SandboxPolicy>(text).expect_err("no policy");
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn parts_of_an_object_are_read_from_all_of_it() {
        let text =
            json!({"ordinal": 7, "kind": "operation", "state": "unknown", "operationId": "o", "attempt": 2});
        let item: RolloutItem = from_value(&text).expect("an item");
        assert_eq!((item.ordinal, item.schema), (7, 1));
        assert_eq!(serde_json::to_value(item.record).expect("JSON")["attempt"], 2);
    }

    #[test]
    fn places_in_a_text_that_nobody_sees_are_left_out() {
        let error = from_value::<RolloutItem>(&json!({"kind": "rolledBack"})).expect_err("no item");
        assert_eq!(error.to_string(), "missing field `numTurns`");
        let error = from_value::<FunctionCallOutputBody>(&json!([{"type": "new"}])).expect_err("no output");
        assert_eq!(
            error.to_string(),
            "data did not match any variant of untagged enum FunctionCallOutputBody"
        );
    }
}
