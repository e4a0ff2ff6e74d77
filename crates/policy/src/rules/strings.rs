//! String literals of rule files.

use super::Fault;
use super::lexer::Cursor;

/// Parses a literal after its opening quote. A raw one keeps its backslashes.
pub(super) fn read_string(cursor: &mut Cursor<'_>, raw: bool) -> Result<String, Fault> {
    let opened = cursor.place();
    let quote = cursor.peek().unwrap_or('"');
    let triple = quote.to_string().repeat(3);
    let long = cursor.take(&triple);
    if !long {
        cursor.next();
    }
    let mut text = String::new();
    loop {
        if long && cursor.take(&triple) {
            return Ok(text);
        }
        let place = cursor.place();
        match cursor.next() {
            Some(c) if c == quote && !long => return Ok(text),
            Some('\n') if !long => return Err(Fault::at(opened, "this string does not end on its line")),
            Some('\\') if raw => {
                text.push('\\');
                text.extend(cursor.next());
            }
            Some('\\') => {
                let escaped = escape(cursor);
                text.extend(escaped.map_err(|message| Fault::at(place, message))?);
            }
            Some(c) => text.push(c),
            None => return Err(Fault::at(opened, "this string does not end")),
        }
    }
}

/// The character of an escape. `None` for an escaped line end, which is left out.
fn escape(cursor: &mut Cursor<'_>) -> Result<Option<char>, String> {
    let Some(kind) = cursor.next() else { return Err("this string does not end".to_owned()) };
    let plain = match kind {
        '\n' => return Ok(None),
        '\\' | '\'' | '"' => kind,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'x' => number(cursor, 16, 2)?,
        'u' => number(cursor, 16, 4)?,
        'U' => number(cursor, 16, 8)?,
        '0'..='7' => octal(cursor, kind)?,
        other => {
            let shown = crate::escape_for_display(&other.to_string());
            return Err(format!("`\\{shown}` is not an escape; write `\\\\` for a backslash"));
        }
    };
    Ok(Some(plain))
}

fn number(cursor: &mut Cursor<'_>, radix: u32, digits: usize) -> Result<char, String> {
    let mut value = 0_u32;
    for _ in 0..digits {
        let digit = cursor.peek().and_then(|c| c.to_digit(radix));
        let Some(digit) = digit else { return Err(format!("this escape needs {digits} digits")) };
        cursor.next();
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    char::from_u32(value).ok_or_else(|| "this escape is no character".to_owned())
}

fn octal(cursor: &mut Cursor<'_>, first: char) -> Result<char, String> {
    let mut value = first.to_digit(8).unwrap_or_default();
    for _ in 0..2 {
        let Some(digit) = cursor.peek().and_then(|c| c.to_digit(8)) else { break };
        cursor.next();
        value = value * 8 + digit;
    }
    char::from_u32(value)
        .filter(|c| u32::from(*c) < 0x80)
        .ok_or_else(|| "this escape is no character".to_owned())
}
