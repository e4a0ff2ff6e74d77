//! Canonical JSON (RFC 8785), so that client and server compute the same digest of a value.

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};
use serde_json::{Map, Number, Value};

/// SHA-256 over the canonical form, prefixed with the algorithm's name.
pub fn digest_of(value: &Value) -> String {
    let mut digest = Context::new(&SHA256);
    let mut buffer = String::new();
    write(value, &mut buffer, &mut |part| digest.update(part.as_bytes()));
    digest.update(buffer.as_bytes());
    format!("sha256:{}", HEXLOWER.encode(digest.finish().as_ref()))
}

/// Size of the chunks that are passed to the hasher.
const PART: usize = 16 * 1024;

/// Writes into `out`, and passes full chunks to `part`.
fn write(value: &Value, out: &mut String, part: &mut impl FnMut(&str)) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out, part);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, item)) in sorted(fields).into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write(item, out, part);
            }
            out.push('}');
        }
    }
    if out.len() >= PART {
        part(out);
        out.clear();
    }
}

/// Ordered by UTF-16 code units. This differs from the order of code points outside the basic plane.
fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_unstable_by(|(one, _), (other, _)| {
        if one.is_ascii() && other.is_ascii() {
            one.cmp(other)
        } else {
            one.encode_utf16().cmp(other.encode_utf16())
        }
    });
    fields
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    // Only ASCII is ever escaped, so a search by bytes is enough.
    while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        out.push_str(&rest[..at]);
        write_escaped(rest.as_bytes()[at], out);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn write_escaped(byte: u8, out: &mut String) {
    let short = match byte {
        b'"' => '"',
        b'\\' => '\\',
        0x08 => 'b',
        b'\t' => 't',
        b'\n' => 'n',
        0x0c => 'f',
        b'\r' => 'r',
        _ => {
            out.push_str("\\u00");
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

/// Up to this integer, each has its own `f64`.
const SAFE: u64 = 1 << 53;

fn write_number(number: &Number, out: &mut String) {
    match (number.as_u64(), number.as_i64()) {
        (Some(whole), _) if whole <= SAFE => out.push_str(&whole.to_string()),
        (_, Some(whole)) if whole.unsigned_abs() <= SAFE => out.push_str(&whole.to_string()),
        // Every other number is written as its nearest `f64`.
        _ => write_double(number.as_f64().unwrap_or(0.0), out),
    }
}

/// As ECMAScript writes a double: the fewest digits that identify it, and an exponent only outside 1e-7 to 1e21.
fn write_double(value: f64, out: &mut String) {
    if value == 0.0 {
        return out.push('0');
    }
    if value < 0.0 {
        out.push('-');
    }
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The position of the decimal point, counted from the first digit.
    let point = exponent + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    match point {
        1..=21 if count <= point => {
            out.push_str(&digits);
            out.push_str(&zeros(point - count));
        }
        1..=21 => {
            let (whole, rest) = digits.split_at(usize::try_from(point).unwrap_or(0));
            out.push_str(whole);
            out.push('.');
            out.push_str(rest);
        }
        -5..=0 => {
            out.push_str("0.");
            out.push_str(&zeros(-point));
            out.push_str(&digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            out.push_str(first);
            if !rest.is_empty() {
                out.push('.');
                out.push_str(rest);
            }
            out.push_str(if exponent < 0 { "e-" } else { "e+" });
            out.push_str(&exponent.unsigned_abs().to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        let value: Value = serde_json::from_str(json).expect("JSON");
        let (mut parts, mut rest) = (String::new(), String::new());
        write(&value, &mut rest, &mut |part| parts.push_str(part));
        parts + &rest
    }

    #[test]
    fn numbers_are_written_as_ecmascript_does() {
        let cases: &[(f64, &str)] = &[
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (4.50, "4.5"),
            (2e-3, "0.002"),
            (0.000_001, "0.000001"),
            (0.000_000_1, "1e-7"),
            (1e-27, "1e-27"),
            (1e30, "1e+30"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (333_333_333.333_333_3, "333333333.3333333"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.1, "0.1"),
            (-1.5e-10, "-1.5e-10"),
            (9_007_199_254_740_994.0, "9007199254740994"),
            (295_147_905_179_352_830_000.0, "295147905179352830000"),
        ];
        for (given, expected) in cases {
            let mut out = String::new();
            write_number(&Number::from_f64(*given).expect("finite"), &mut out);
            assert_eq!(out, *expected, "{given:e}");
        }
        for (given, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("100", "100"),
            ("-7", "-7"),
            ("123456789012345678", "123456789012345680"),
            ("18446744073709551615", "18446744073709552000"),
            ("-9223372036854775808", "-9223372036854776000"),
            ("9007199254740992", "9007199254740992"),
        ] {
            assert_eq!(canonical(given), expected, "{given}");
        }
    }

    #[test]
    fn keys_are_ordered_by_utf_16_code_units() {
        // As in the RFC: an emoji comes before a letter of the private area, though its code point is larger.
        let json =
            r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7,"aa":8,"a":9}"#;
        assert_eq!(
            canonical(json),
            "{\"\\r\":2,\"1\":4,\"a\":9,\"aa\":8,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn text_is_escaped_as_little_as_possible() {
        assert_eq!(
            canonical(r#" "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u007f" "#),
            "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\""
        );
        assert_eq!(canonical("[ null, true,\tfalse, {} , [] ]"), "[null,true,false,{},[]]");
    }

    #[test]
    fn a_digest_is_of_the_value_and_not_of_its_spelling() {
        let digest = |json: &str| digest_of(&serde_json::from_str(json).expect("JSON"));
        let one = digest(r#"{"b":[1.0,"x"],"a":null}"#);
        assert_eq!(one, digest("{ \"a\" : null,\n\"b\":[1,\"\\u0078\"] }"));
        assert_ne!(one, digest(r#"{"a":null,"b":[1,"y"]}"#));
        // Of `{"a":null,"b":[1,"x"]}`.
        assert_eq!(one, "sha256:c22cb7b0353770e2b38094af641143ebf008ddf2d1f2dedb9d875996fcf245fa");
    }

    #[test]
    fn long_values_are_digested_in_parts() {
        let long = format!("[\"{}\",{}]", "x".repeat(3 * PART), "1,".repeat(PART) + "2");
        let whole = canonical(&long);
        let expected = ring::digest::digest(&SHA256, whole.as_bytes());
        let hex = HEXLOWER.encode(expected.as_ref());
        let value = serde_json::from_str(&long).expect("JSON");
        assert_eq!(digest_of(&value), format!("sha256:{hex}"));
    }
}
