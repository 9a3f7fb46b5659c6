//! JSON text to JSON text that Kestra reads whole: one line, ASCII only, no nulls.
//!
//! It works on the text and not on parsed values, so that numbers, the order of keys and foreign
//! entries of the state come out as they went in. It keeps its own stack: a state of another
//! origin may be nested deeper than the machine's stack allows.

/// Rewrites valid JSON: no white space, everything outside ASCII as `\uXXXX`, and no member or
/// item that is null.
#[must_use]
pub fn rewrite(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    let mut open: Vec<Container> = Vec::new();
    let mut rest = json.trim_start();
    while let Some(first) = rest.chars().next() {
        match first {
            '{' | '[' => {
                begin_value(&mut out, &mut open);
                out.push(first);
                open.push(Container {
                    is_object: first == '{',
                    items: 0,
                    key: None,
                });
                rest = &rest[1..];
            }
            '}' | ']' => {
                open.pop();
                out.push(first);
                rest = &rest[1..];
            }
            // Separators are written anew, before whatever follows them.
            ',' | ':' => rest = &rest[1..],
            '"' => {
                let (token, after) = rest.split_at(string_length(rest));
                match open.last_mut() {
                    Some(container) if container.is_object && container.key.is_none() => {
                        container.key = Some(out.len());
                        if container.items > 0 {
                            out.push(',');
                        }
                        push_string(&mut out, token);
                        out.push(':');
                    }
                    _ => {
                        begin_value(&mut out, &mut open);
                        push_string(&mut out, token);
                    }
                }
                rest = after;
            }
            _ => {
                let end = rest
                    .find(|c: char| ",:]}".contains(c) || c.is_ascii_whitespace())
                    .unwrap_or(rest.len());
                let (token, after) = rest.split_at(end);
                if token == "null" && !open.is_empty() {
                    drop_value(&mut out, &mut open);
                } else {
                    begin_value(&mut out, &mut open);
                    out.push_str(token);
                }
                rest = after;
            }
        }
        rest = rest.trim_start();
    }
    out
}

/// An object or list that is not closed yet.
struct Container {
    is_object: bool,
    /// Members or items written so far.
    items: usize,
    /// Where the key stands in the output whose value comes next.
    key: Option<usize>,
}

fn begin_value(out: &mut String, open: &mut [Container]) {
    if let Some(container) = open.last_mut() {
        if !container.is_object && container.items > 0 {
            out.push(',');
        }
        container.items += 1;
        container.key = None;
    }
}

fn drop_value(out: &mut String, open: &mut [Container]) {
    if let Some(key) = open.last_mut().and_then(|container| container.key.take()) {
        out.truncate(key);
    }
}

/// Bytes of the string at the beginning of a text, both quotes included.
pub(crate) fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Copies a string token. Escapes stay as they are, but half a surrogate pair becomes U+FFFD: it
/// is no text, and the next JSON reader would refuse the whole line.
fn push_string(out: &mut String, token: &str) {
    let mut rest = token;
    while let Some(c) = rest.chars().next() {
        if let Some(unit) = escaped_unit(rest) {
            let low = escaped_unit(&rest[6..]).filter(|low| (0xDC00..0xE000).contains(low));
            let (kept, length) = match unit {
                0xD800..0xDC00 if low.is_some() => (&rest[..12], 12),
                0xD800..0xE000 => ("\\ufffd", 6),
                _ => (&rest[..6], 6),
            };
            out.push_str(kept);
            rest = &rest[length..];
        } else if c == '\\' && rest.len() > 1 {
            // A short escape such as `\"`; what follows the backslash is ASCII in valid JSON.
            out.push_str(rest.get(..2).unwrap_or_default());
            rest = rest.get(2..).unwrap_or_default();
        } else {
            if (' '..='~').contains(&c) {
                out.push(c);
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            rest = &rest[c.len_utf8()..];
        }
    }
}

/// The UTF-16 unit of a `\uXXXX` at the beginning of a text.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_white_space_go_wherever_they_stand() {
        for (given, expected) in [
            (r#"{ "a": null, "b" : 1 }"#, r#"{"b":1}"#),
            (r#"{"b":1,"a":null}"#, r#"{"b":1}"#),
            (r#"{"a":null}"#, "{}"),
            (r#"[null, 1, null, [null], {"x":null}]"#, "[1,[],{}]"),
            (
                r#"{"a":{"b":null,"c":[]},"d":"null"}"#,
                r#"{"a":{"c":[]},"d":"null"}"#,
            ),
        ] {
            assert_eq!(rewrite(given), expected);
        }
    }

    #[test]
    fn numbers_and_key_order_stay_as_they_are() {
        let text = r#"{"z":1.0,"a":1e5,"m":123456789012345678901234567890,"k":-0.00}"#;
        assert_eq!(rewrite(text), text);
    }

    #[test]
    fn everything_outside_ascii_is_escaped() {
        assert_eq!(
            rewrite("{\"ä\":\"\u{2028}😀\u{7f}\"}"),
            r#"{"\u00e4":"\u2028\ud83d\ude00\u007f"}"#
        );
    }

    #[test]
    fn escapes_stay_and_half_surrogates_do_not() {
        let text = r#"["\n\"\\\/\u0000\ud83d\ude00"]"#;
        assert_eq!(rewrite(text), text);
        assert_eq!(
            rewrite(r#"["\ud83d","\ude00x","\ud83d\ud83d\ude00","\\ud83d"]"#),
            r#"["\ufffd","\ufffdx","\ufffd\ud83d\ude00","\\ud83d"]"#
        );
    }

    #[test]
    fn nesting_does_not_exhaust_the_stack() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(rewrite(&deep), deep);
    }
}
