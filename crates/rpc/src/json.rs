//! Writes values as JSON, byte for byte like `serde_json`. Generic serializers are compiled in each crate that uses
//! them, most of which are optimised for size. This one is not generic, so its hot code is compiled here, optimised for
//! speed.

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

/// The name by which `RawValue` identifies itself to a serializer.
const RAW: &str = "$serde_json::private::RawValue";

/// Bytes that are checked together.
const STEP: usize = 32;

/// Appends a value. After an error, part of it may have been written.
pub(crate) fn append(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    value.serialize(JsonWriter { text, is_raw: false })
}

/// Writes one value.
struct JsonWriter<'a> {
    text: &'a mut Vec<u8>,
    /// Whether the value is JSON text already.
    is_raw: bool,
}

impl<'a> JsonWriter<'a> {
    fn null(self) {
        self.text.extend_from_slice(b"null");
    }

    fn integer(self, value: impl itoa::Integer) {
        self.text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    fn string(self, value: &str) {
        match self.is_raw {
            true => self.text.extend_from_slice(value.as_bytes()),
            false => write_string(self.text, value),
        }
    }

    fn open(self, opening: &[u8], closing: &'static [u8]) -> Several<'a> {
        self.text.extend_from_slice(opening);
        Several { text: self.text, closing, is_first: true, is_raw: false }
    }

    /// Writes a variant as an object with one member.
    fn variant(self, name: &str, opening: &[u8], closing: &'static [u8]) -> Several<'a> {
        self.text.push(b'{');
        write_string(self.text, name);
        self.text.push(b':');
        self.open(opening, closing)
    }
}

impl<'a> Serializer for JsonWriter<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Several<'a>;
    type SerializeTuple = Several<'a>;
    type SerializeTupleStruct = Several<'a>;
    type SerializeTupleVariant = Several<'a>;
    type SerializeMap = Several<'a>;
    type SerializeStruct = Several<'a>;
    type SerializeStructVariant = Several<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.text.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.integer(value);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        self.integer(value);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.integer(value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        self.integer(value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        serde_json::to_writer(self.text, &value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        serde_json::to_writer(self.text, &value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        let mut bytes = self.open(b"[", b"]");
        for byte in value {
            bytes.next().integer(*byte);
        }
        bytes.close();
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.null();
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut several = self.variant(variant, b"", b"}");
        value.serialize(several.next())?;
        several.close();
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Several<'a>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Several<'a>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Several<'a>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Several<'a>, Error> {
        Ok(self.variant(variant, b"[", b"]}"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Several<'a>, Error> {
        Ok(self.open(b"{", b"}"))
    }

    fn serialize_struct(self, name: &'static str, _length: usize) -> Result<Several<'a>, Error> {
        match name {
            RAW => Ok(Several { is_raw: true, ..self.open(b"", b"") }),
            _ => Ok(self.open(b"{", b"}")),
        }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Several<'a>, Error> {
        Ok(self.variant(variant, b"{", b"}}"))
    }
}

/// Writes the elements of an array or the members of an object.
struct Several<'a> {
    text: &'a mut Vec<u8>,
    closing: &'static [u8],
    is_first: bool,
    is_raw: bool,
}

impl Several<'_> {
    /// Starts the next element, or the next member's name.
    fn next(&mut self) -> JsonWriter<'_> {
        if !self.is_first {
            self.text.push(b',');
        }
        self.is_first = false;
        JsonWriter { text: self.text, is_raw: false }
    }

    /// Starts the member with this name.
    fn member(&mut self, name: &str) -> JsonWriter<'_> {
        if !self.is_raw {
            self.next().string(name);
            self.text.push(b':');
        }
        JsonWriter { text: self.text, is_raw: self.is_raw }
    }

    /// Turns the value that starts there into a member name: numbers and booleans are quoted.
    fn name_from(&mut self, start: usize) -> Result<(), Error> {
        match self.text.get(start) {
            Some(b'"') => {}
            Some(b'0'..=b'9' | b'-' | b't' | b'f') => {
                self.text.insert(start, b'"');
                self.text.push(b'"');
            }
            _ => return Err(Error::custom("key must be a string")),
        }
        self.text.push(b':');
        Ok(())
    }

    fn close(self) {
        self.text.extend_from_slice(self.closing);
    }
}

/// Lists and structs each differ only in the names of their methods.
macro_rules! alike {
    ($kind:ident, $add:ident($($name:ident: $type:ty)?) => $room:ident) => {
        impl $kind for Several<'_> {
            type Ok = ();
            type Error = Error;

            fn $add<T: Serialize + ?Sized>(&mut self, $($name: $type,)? value: &T) -> Result<(), Error> {
                value.serialize(self.$room($($name)?))
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    };
}

alike!(SerializeSeq, serialize_element() => next);
alike!(SerializeTuple, serialize_element() => next);
alike!(SerializeTupleStruct, serialize_field() => next);
alike!(SerializeTupleVariant, serialize_field() => next);
alike!(SerializeStruct, serialize_field(name: &'static str) => member);
alike!(SerializeStructVariant, serialize_field(name: &'static str) => member);

impl SerializeMap for Several<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let name = self.next();
        let start = name.text.len();
        key.serialize(name)?;
        self.name_from(start)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(JsonWriter { text: self.text, is_raw: false })
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

fn write_string(text: &mut Vec<u8>, value: &str) {
    let mut rest = value.as_bytes();
    text.reserve(rest.len() + 2);
    text.push(b'"');
    loop {
        let (plain, other) = rest.split_at(plain_length(rest));
        text.extend_from_slice(plain);
        let Some((byte, after)) = other.split_first() else { break };
        write_escaped(text, *byte);
        rest = after;
    }
    text.push(b'"');
}

/// The number of bytes before the first that needs an escape.
fn plain_length(bytes: &[u8]) -> usize {
    let mut start = 0;
    while let Some(step) = bytes.get(start..start + STEP)
        && !step.iter().fold(false, |any, byte| any | is_special(*byte))
    {
        start += STEP;
    }
    let rest = &bytes[start..];
    start + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

fn write_escaped(text: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\x08' => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        b'\x0c' => b'f',
        b'\r' => b'r',
        _ => {
            let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
            text.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    text.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
