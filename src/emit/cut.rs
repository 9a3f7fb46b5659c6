//! Cuts outputs to a size that Kestra handles: long lines take it seconds, and more than 1 MiB
//! fails the task.
//!
//! Long texts are shortened first, then lists are halved, the largest first, until the line fits.
//! What the next step needs whole is never cut: the state (`new_state_snapshot`), the approval and
//! the baseline are exempt from the limit of 96 KiB. So that they cannot reach the 1 MiB at which Kestra loses
//! all outputs, a spec whose state and baseline are larger than [`MAX_PASSED_ON`] is refused
//! before its table is opened.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ascii;
use crate::report::Truncation;

/// The largest outputs line, in bytes.
pub const MAX_LINE: usize = 96 * 1024;

/// The largest state and baseline of a spec together, in bytes as they are printed.
pub const MAX_PASSED_ON: usize = 800 * 1024;

/// Members of outputs that are passed on to other steps and so must stay whole.
const NEVER_CUT: [&str; 3] = ["new_state_snapshot", "baseline", "approval"];

/// Characters of a text that are kept where the line is too long.
const TEXT_LENGTH: usize = 1000;

/// Outputs as they are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    /// The JSON text, rewritten for Kestra.
    pub json: String,
    /// Whether it fits into the limit.
    pub fits: bool,
}

/// Rewrites outputs for Kestra, and cuts them where they are longer than `limit`.
#[must_use]
pub fn fit(json: &str, limit: usize) -> Fitted {
    let whole = ascii::rewrite(json);
    if whole.len() <= limit {
        return Fitted {
            json: whole,
            fits: true,
        };
    }
    let Ok(Members(members)) = serde_json::from_str(json) else {
        return Fitted {
            json: whole,
            fits: false,
        };
    };
    let mut outputs = Outputs::new(members);
    outputs.shorten_texts();
    while outputs.text().len() > limit && outputs.halve_largest_list() {}
    let json = outputs.text();
    Fitted {
        fits: json.len() <= limit,
        json,
    }
}

/// The members of the outermost object, in order, not looked into.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

enum Member {
    Whole(Box<RawValue>),
    Cuttable(Value),
}

struct Outputs {
    members: Vec<(String, Member)>,
    /// Pointer of each list that was cut, and its items before.
    totals: BTreeMap<String, usize>,
}

impl Outputs {
    fn new(members: Vec<(String, Box<RawValue>)>) -> Self {
        let members = members
            .into_iter()
            .map(|(name, raw)| {
                let value = if NEVER_CUT.contains(&name.as_str()) {
                    None
                } else {
                    serde_json::from_str(raw.get()).ok()
                };
                (name, value.map_or(Member::Whole(raw), Member::Cuttable))
            })
            .collect();
        Self {
            members,
            totals: BTreeMap::new(),
        }
    }

    fn cuttable(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.members
            .iter_mut()
            .filter_map(|(name, member)| match member {
                Member::Whole(_) => None,
                Member::Cuttable(value) => Some((name.as_str(), value)),
            })
    }

    fn shorten_texts(&mut self) {
        self.cuttable().for_each(|(_, value)| shorten_texts(value));
    }

    /// Halves the list that takes the most bytes; false where there is nothing left to halve.
    fn halve_largest_list(&mut self) -> bool {
        let mut largest: Option<(usize, String)> = None;
        for (name, value) in self.cuttable() {
            largest_list(value, format!("/{name}"), &mut largest);
        }
        let Some((_, pointer)) = largest else {
            return false;
        };
        let totals = &mut self.totals;
        for (name, member) in &mut self.members {
            let Member::Cuttable(value) = member else {
                continue;
            };
            let Some(inner) = pointer[1..].strip_prefix(name.as_str()) else {
                continue;
            };
            if let Some(Value::Array(items)) = value.pointer_mut(inner) {
                totals.entry(pointer.clone()).or_insert(items.len());
                items.truncate(items.len() / 2);
                return true;
            }
        }
        false
    }

    fn value_at(&self, pointer: &str) -> Option<&Value> {
        self.members.iter().find_map(|(name, member)| match member {
            Member::Cuttable(value) => value.pointer(pointer[1..].strip_prefix(name.as_str())?),
            Member::Whole(_) => None,
        })
    }

    fn text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (name, member) in &self.members {
            let text = match member {
                Member::Whole(raw) => raw.get().to_owned(),
                Member::Cuttable(value) => value.to_string(),
            };
            parts.push(format!("{}:{text}", Value::from(name.as_str())));
        }
        let truncated: Vec<Truncation> = self
            .totals
            .iter()
            // A list inside a list may be gone altogether.
            .filter_map(|(list, total)| {
                Some(Truncation {
                    list: list.clone(),
                    kept: self.value_at(list)?.as_array()?.len() as u64,
                    total: *total as u64,
                })
            })
            .collect();
        if let Ok(text) = serde_json::to_string(&truncated)
            && !truncated.is_empty()
        {
            parts.push(format!("\"truncated\":{text}"));
        }
        ascii::rewrite(&format!("{{{}}}", parts.join(",")))
    }
}

fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(TEXT_LENGTH) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_texts),
        Value::Object(members) => members.values_mut().for_each(shorten_texts),
        _ => {}
    }
}

fn largest_list(value: &Value, pointer: String, largest: &mut Option<(usize, String)>) {
    match value {
        Value::Array(items) => {
            let size = value.to_string().len();
            if !items.is_empty() && largest.as_ref().is_none_or(|(most, _)| size > *most) {
                *largest = Some((size, pointer.clone()));
            }
            for (index, item) in items.iter().enumerate() {
                largest_list(item, format!("{pointer}/{index}"), largest);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let mut inner = pointer.clone();
                crate::spec::strict_json::push_step(&mut inner, name);
                largest_list(member, inner, largest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_outputs_stay_whole() {
        let fitted = fit(r#"{"a":[1,2]}"#, 11);
        assert_eq!(fitted.json, r#"{"a":[1,2]}"#);
        assert!(fitted.fits);
    }

    #[test]
    fn the_largest_list_is_cut_and_named_with_its_total() {
        let long: Vec<u32> = (1000..1400).collect();
        let given = json!({"x": {"long": long}, "short": [1, 2]}).to_string();
        let fitted = fit(&given, 600);
        assert!(fitted.fits && fitted.json.len() <= 600);
        let value: Value = serde_json::from_str(&fitted.json).unwrap();
        assert_eq!(value["short"], json!([1, 2]));
        assert_eq!(
            value["truncated"],
            json!([{"list": "/x/long", "kept": 100, "total": 400}])
        );
        assert_eq!(value["x"]["long"][99], 1099);
    }

    #[test]
    fn state_and_baseline_are_never_cut() {
        let long = vec![1.5; 500];
        let given = json!({"baseline": long, "new_state_snapshot": {"t": long}}).to_string();
        let fitted = fit(&given, 100);
        assert_eq!(fitted.json, given);
        assert!(!fitted.fits);
    }

    #[test]
    fn one_long_text_does_not_cost_the_list_that_it_stands_in() {
        let given = json!({"warnings": ["x".repeat(5000), "y"]}).to_string();
        let fitted = fit(&given, 2000);
        let value: Value = serde_json::from_str(&fitted.json).unwrap();
        assert_eq!(value["warnings"][1], "y");
        assert!(value.get("truncated").is_none());
    }
}
