//! Reads tagged types in one go, where the tag is written first: nothing needs to be kept aside until it is found. Records
//! are read so. `#[wire(tag_first)]` writes the decoder of each type; whatever is unusual about a value is an error here, and
//! left to the type's own decoder.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{SeqAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::{ContentItem, FunctionCallOutputBody};

/// Reads `{"type":"…",…}` when it begins so and is of a frequent kind.
#[derive(Debug)]
pub struct TagFirst<T>(pub T);

/// An enum whose variants are told apart by a member `type`. Implemented by `#[wire(tag_first)]` for the variants that are
/// marked `#[frequent]`, or for all if none is.
pub trait Frequent: Sized {
    fn decode<'de, D: Deserializer<'de>>(tagged: D) -> Result<Self, D::Error>;
}

/// Nearly every message has one part, so there is room for one and no more until a second comes.
pub(crate) fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentItem>, D::Error> {
    struct PartsVisitor;
    impl<'de> Visitor<'de> for PartsVisitor {
        type Value = Vec<ContentItem>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of parts")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut found: A) -> Result<Self::Value, A::Error> {
            let mut parts = Vec::new();
            while let Some(TagFirst(part)) = found.next_element()? {
                if parts.is_empty() {
                    parts.reserve_exact(1);
                }
                parts.push(part);
            }
            Ok(parts)
        }
    }
    deserializer.deserialize_seq(PartsVisitor)
}

/// Results of tools are the longest texts there are: taken as they come, they are copied once.
pub(crate) fn output<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FunctionCallOutputBody, D::Error> {
    struct OutputVisitor;
    impl<'de> Visitor<'de> for OutputVisitor {
        type Value = FunctionCallOutputBody;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of parts")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(FunctionCallOutputBody::Text(text.to_owned()))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(parts)).map(FunctionCallOutputBody::Content)
        }
    }
    deserializer.deserialize_any(OutputVisitor)
}

impl<'de, T: Frequent> Deserialize<'de> for TagFirst<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TagVisitor(PhantomData))
    }
}

struct TagVisitor<T>(PhantomData<T>);

impl<'de, T: Frequent> Visitor<'de> for TagVisitor<T> {
    type Value = TagFirst<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that begins with its type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if map.next_key::<&str>()? != Some("type") {
            return Err(A::Error::custom("the type is not in front"));
        }
        let tag = map.next_value()?;
        T::decode(TaggedMembers { tag, members: map }).map(TagFirst)
    }
}

/// The members behind a tag, as the content of the variant that it names.
struct TaggedMembers<'de, A> {
    tag: &'de str,
    members: A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for TaggedMembers<'de, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("only an enum has a tag"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for TaggedMembers<'de, A> {
    type Error = A::Error;
    type Variant = TagMembers<A>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, TagMembers<A>), A::Error> {
        let variant = seed.deserialize(StrDeserializer::<A::Error>::new(self.tag))?;
        Ok((variant, TagMembers(self.members)))
    }
}

struct TagMembers<A>(A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for TagMembers<A> {
    type Error = A::Error;

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }

    fn unit_variant(self) -> Result<(), A::Error> {
        Err(A::Error::custom("only variants with members are decoded here"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, A::Error> {
        Err(A::Error::custom("only variants with members are decoded here"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("only variants with members are decoded here"))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::{ResponseItem, ThreadItem};

    /// Whether it is decoded here, and always to what the protocol's own decoder makes of it.
    fn check<T: Frequent + DeserializeOwned + PartialEq + fmt::Debug>(json: &str, is_frequent: bool) {
        let expected: T = serde_json::from_str(json).expect("sound JSON");
        match serde_json::from_str::<TagFirst<T>>(json) {
            Ok(TagFirst(found)) => assert_eq!(found, expected, "{json}"),
            Err(error) => assert!(!is_frequent, "{json}: {error}"),
        }
        assert_eq!(serde_json::from_str::<TagFirst<T>>(json).is_ok(), is_frequent, "{json}");
    }

    #[test]
    fn items_as_clients_see_them() {
        for (json, is_frequent) in [
            (
                r#"{"type":"userMessage","id":"1","content":[{"type":"text","text":"a","text_elements":[]}]}"#,
                false,
            ),
            (r#"{"type":"agentMessage","id":"1","text":"a\n\"b\" \u00e9"}"#, true),
            (
                r#"{"type":"agentMessage","id":"1","text":"","phase":"final_answer","memoryCitation":
                    {"entries":[{"path":"p","lineStart":1,"lineEnd":2,"note":"n"}],"threadIds":["t"]},"new":[{}]}"#,
                true,
            ),
            (r#"{"type":"agentMessage","id":"1","text":"a","phase":null,"memoryCitation":null}"#, true),
            (r#"{"type":"reasoning","id":"1"}"#, true),
            (r#"{"type":"reasoning","id":"1","summary":["a"],"content":["b","c"]}"#, true),
            (
                r#"{"type":"commandExecution","id":"1","command":"ls","cwd":"/","status":"completed","commandActions":[]}"#,
                true,
            ),
            (
                r#"{"type":"commandExecution","id":"1","command":"ls","cwd":"/","processId":"7","source":"userShell",
                    "status":"failed","commandActions":[{"type":"listFiles","command":"ls","path":null}],
                    "aggregatedOutput":"a\nb","exitCode":-1,"durationMs":12}"#,
                true,
            ),
            (
                r#"{"type":"fileChange","id":"1","status":"declined","changes":
                    [{"path":"a","kind":{"type":"update","move_path":"b"},"diff":"-x\n+y\n"}]}"#,
                false,
            ),
            (r#"{"type":"plan","id":"1","text":"a"}"#, false),
            (r#"{"type":"contextCompaction","id":"1"}"#, false),
            (r#"{"id":"1","type":"agentMessage","text":"a"}"#, false),
            (r#"{"type":"agent\u004dessage","id":"1","text":"a"}"#, false),
        ] {
            check::<ThreadItem>(json, is_frequent);
        }
    }

    #[test]
    fn items_as_the_model_sees_them() {
        for (json, is_frequent) in [
            (r#"{"type":"message","role":"user","content":[]}"#, true),
            (
                r#"{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]},
                    {"type":"input_text","text":"\u0000"},{"type":"input_image","image_url":"data:"}],"end_turn":true,
                    "phase":"commentary","status":"completed"}"#,
                true,
            ),
            (
                r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"x"}"#,
                true,
            ),
            (r#"{"type":"reasoning","id":"r","summary":[],"content":[{"type":"text","text":"a"}]}"#, true),
            (r#"{"type":"function_call","name":"shell","arguments":"{\"a\":1}","call_id":"c"}"#, true),
            (
                r#"{"type":"function_call","id":"i","name":"n","namespace":"s","arguments":"","call_id":"c"}"#,
                true,
            ),
            (r#"{"type":"function_call_output","call_id":"c","output":"plain"}"#, true),
            (r#"{"type":"function_call_output","call_id":"c","output":"with\tescapes"}"#, true),
            (
                r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},
                    {"type":"input_image","image_url":"data:","detail":"high"}]}"#,
                true,
            ),
            (r#"{"type":"custom_tool_call","call_id":"c","name":"n","input":"i"}"#, true),
            (r#"{"type":"custom_tool_call_output","call_id":"c","name":"n","output":"o"}"#, true),
            (r#"{"type":"compaction_summary","encrypted_content":"x"}"#, false),
            (r#"{"type":"thought_transfer","to":1}"#, false),
            (r#"{"type":"message","role":"user","content":[{"text":"a","type":"input_text"}]}"#, false),
        ] {
            check::<ResponseItem>(json, is_frequent);
        }
    }
}
