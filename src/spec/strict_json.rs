//! Text to JSON, stricter than JSON itself: one value, nothing after it, no key twice.
//!
//! JSON leaves the meaning of a duplicate key open, and a tool that deletes files must not guess
//! which of two retentions was meant. serde_json's own limit on nesting stays in force.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is not one JSON value.
    Syntax {
        /// What is wrong, without a position.
        problem: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A key stands twice in one object.
    DuplicateKey {
        /// JSON pointer to the second occurrence.
        pointer: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
}

/// Reads one JSON value.
///
/// # Errors
/// The first thing that is wrong with the text.
pub fn parse(text: &str) -> Result<Value, Refusal> {
    let duplicate = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    let root = Node {
        path: Path::Root,
        duplicate: &duplicate,
    };
    root.deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| refusal(&error, duplicate.take()))
}

fn refusal(error: &serde_json::Error, duplicate: Option<String>) -> Refusal {
    let (line, column) = (error.line(), error.column());
    if let Some(pointer) = duplicate {
        return Refusal::DuplicateKey {
            pointer,
            line,
            column,
        };
    }
    let text = error.to_string();
    let problem = text
        .strip_suffix(&format!(" at line {line} column {column}"))
        .unwrap_or(&text);
    Refusal::Syntax {
        problem: problem.to_owned(),
        line,
        column,
    }
}

/// Adds a step to a JSON pointer (RFC 6901).
pub fn push_step(pointer: &mut String, step: &str) {
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
}

/// Where the reader is, as a list through the stack.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(parent, key) => {
                let mut pointer = parent.pointer();
                push_step(&mut pointer, key);
                pointer
            }
            Self::Index(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }
}

#[derive(Clone, Copy)]
struct Node<'a> {
    path: Path<'a>,
    duplicate: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Node {
            path: Path::Index(&self.path, list.len()),
            duplicate: self.duplicate,
        })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = Path::Key(&self.path, &key);
            if object.contains_key(&key) {
                *self.duplicate.borrow_mut() = Some(path.pointer());
                return Err(A::Error::custom("a key stands twice"));
            }
            let value = members.next_value_seed(Node {
                path,
                duplicate: self.duplicate,
            })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_duplicate_keys_at_any_depth() {
        for (text, at) in [
            (r#"{"a":1,"a":1}"#, "/a"),
            (r#"{"x":[0,{"b/c":1,"b/c":2}]}"#, "/x/1/b~1c"),
            (r#"{"a":1,"\u0061":1}"#, "/a"),
        ] {
            match parse(text) {
                Err(Refusal::DuplicateKey { pointer, .. }) => assert_eq!(pointer, at),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn refuses_text_after_the_value() {
        assert_eq!(
            parse("{}\n{}"),
            Err(Refusal::Syntax {
                problem: "trailing characters".to_owned(),
                line: 2,
                column: 1
            })
        );
        assert!(parse("{} \n").is_ok());
    }

    #[test]
    fn refuses_nesting_that_would_exhaust_the_stack() {
        let deep = "[".repeat(100_000);
        assert!(
            matches!(parse(&deep), Err(Refusal::Syntax { problem, .. }) if problem == "recursion limit exceeded")
        );
    }

    #[test]
    fn reads_every_kind_of_value_as_serde_json_does() {
        let text = r#"{"a":[1,-2,3.5,1e3,null,true,"x\ud83d\ude00"],"$serde_json::private::RawValue":"1"}"#;
        let value = parse(text).unwrap();
        assert_eq!(
            value.to_string(),
            r#"{"a":[1,-2,3.5,1000.0,null,true,"x😀"],"$serde_json::private::RawValue":"1"}"#
        );
    }
}
