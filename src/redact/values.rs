//! The values that a spec gives as credentials, and texts without them.

use serde_json::Value;

use super::names::{is_harmless_option, is_secret_name};
use super::{MASK, parts};

/// Characters from which a value of a secret name is masked: shorter ones stand in every text.
const SECRET_LENGTH: usize = 4;

/// Characters from which a value is masked that may be a secret or not.
const DOUBTFUL_LENGTH: usize = 8;

/// Values that must not be printed, the longest first.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// The secrets in the text of a spec, however wrong the spec is. What is no JSON has none:
    /// nothing of it is printed but positions.
    #[must_use]
    pub fn of_spec(spec: &[u8]) -> Self {
        let Ok(spec) = serde_json::from_slice::<Value>(spec) else {
            return Self::default();
        };
        let mut secrets = Self::default();
        for (name, value) in spec.as_object().into_iter().flatten() {
            match name.as_str() {
                // The state passes through as it is.
                "previous_state" => {}
                "db_uri" => secrets.add_location(value),
                "storage_options" => secrets.add_options(value),
                _ => secrets.add_named(name, value),
            }
        }
        secrets
            .0
            .sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.0.dedup();
        secrets
    }

    /// The text without the secrets, a secret that was cut before an ellipsis included.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.0 {
            if out.contains(secret) {
                out = out.replace(secret, MASK);
            }
        }
        // Only then the cut ones: a whole secret may hold an ellipsis itself.
        for secret in &self.0 {
            let mut from = 0;
            while let Some(found) = out.get(from..).and_then(|rest| rest.find('…')) {
                let end = from + found;
                let cut = (SECRET_LENGTH..secret.len())
                    .rev()
                    .filter(|length| secret.is_char_boundary(*length))
                    .find(|length| out[..end].ends_with(&secret[..*length]));
                let masked = match cut {
                    Some(length) => {
                        out.replace_range(end - length..end, MASK);
                        end - length + MASK.len()
                    }
                    None => end,
                };
                from = masked + '…'.len_utf8();
            }
        }
        out
    }

    /// JSON text without the secrets. Only texts are masked, not the names of members: those
    /// are ours, or keys of the state, which another run must find again.
    #[must_use]
    pub fn mask_json(&self, json: &str) -> String {
        if self.0.is_empty() {
            return json.to_owned();
        }
        let mut out = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(start) = rest.find('"') {
            let (before, token) = rest.split_at(start);
            let (token, after) = token.split_at(crate::emit::ascii::string_length(token));
            out.push_str(before);
            let is_name = after.trim_start().starts_with(':');
            match serde_json::from_str::<String>(token) {
                Ok(text) if !is_name => {
                    let masked = self.mask(&text);
                    if masked == text {
                        out.push_str(token);
                    } else {
                        out.push_str(&Value::from(masked).to_string());
                    }
                }
                _ => out.push_str(token),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn add_location(&mut self, value: &Value) {
        let Some((scheme, rest)) = value.as_str().and_then(|uri| uri.split_once("://")) else {
            return;
        };
        let Some(parts) = parts(scheme, rest) else {
            return self.add(rest, SECRET_LENGTH);
        };
        self.add(parts.user, SECRET_LENGTH);
        if let Some((_, password)) = parts.user.split_once(':') {
            self.add(password, SECRET_LENGTH);
        }
        self.add(parts.query, SECRET_LENGTH);
        for pair in parts.query.split(['?', '#', '&']) {
            if let Some((_, value)) = pair.split_once('=') {
                self.add(value, DOUBTFUL_LENGTH);
            }
        }
    }

    fn add_options(&mut self, options: &Value) {
        match options {
            Value::Object(options) => {
                for (name, value) in options {
                    if is_secret_name(name) {
                        self.add_texts(value, SECRET_LENGTH);
                    } else if !is_harmless_option(name) {
                        self.add_texts(value, DOUBTFUL_LENGTH);
                    }
                }
            }
            other => self.add_texts(other, DOUBTFUL_LENGTH),
        }
    }

    /// Values of secret names anywhere in the spec.
    fn add_named(&mut self, name: &str, value: &Value) {
        if is_secret_name(name) {
            self.add_texts(value, SECRET_LENGTH);
        } else if let Value::Object(members) = value {
            for (name, value) in members {
                self.add_named(name, value);
            }
        }
    }

    fn add_texts(&mut self, value: &Value, length: usize) {
        match value {
            Value::String(text) => self.add(text, length),
            Value::Array(items) => items.iter().for_each(|item| self.add_texts(item, length)),
            Value::Object(members) => members
                .values()
                .for_each(|member| self.add_texts(member, length)),
            _ => {}
        }
    }

    /// A secret in every form in which an engine may write it.
    fn add(&mut self, secret: &str, length: usize) {
        let secret = secret.trim();
        if secret.chars().count() < length {
            return;
        }
        // The key of a service account is JSON of several lines inside a text.
        if let Ok(inner @ Value::Object(_)) = serde_json::from_str::<Value>(secret) {
            self.add_texts(&inner, DOUBTFUL_LENGTH);
        }
        for line in secret.lines().skip(usize::from(!secret.contains('\n'))) {
            self.add(line, DOUBTFUL_LENGTH);
        }
        let quoted = Value::from(secret).to_string();
        self.0.push(quoted[1..quoted.len() - 1].to_owned());
        self.0
            .push(url::form_urlencoded::byte_serialize(secret.as_bytes()).collect());
        self.0.push(secret.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets(spec: &Value) -> Secrets {
        Secrets::of_spec(spec.to_string().as_bytes())
    }

    #[test]
    fn masks_the_values_of_options_wherever_they_turn_up() {
        let secrets = secrets(&json!({"storage_options": {
            "aws_secret_access_key": "ab/c\"d", "some_option": "long-value", "aws_region": "eu-central-1",
            "virtual_hosted": "true", "short_token": "abc",
        }}));
        for (given, masked) in [
            ("x ab/c\"d y", "x *** y"),
            ("x ab/c\\\"d y", "x *** y"),
            ("x ab%2Fc%22d y", "x *** y"),
            ("x ab/c… y ab/c\"…", "x ***… y ***…"),
            ("a long-value", "a ***"),
            ("eu-central-1 true abc", "eu-central-1 true abc"),
        ] {
            assert_eq!(secrets.mask(given), masked);
        }
    }

    #[test]
    fn masks_texts_of_json_and_nothing_else() {
        let secrets = secrets(&json!({"storage_options": {"token": "true", "secret": "ü\"ber"}}));
        assert_eq!(
            secrets.mask_json(r#"{"true":true,"a":"x true","b":["\u00fc\"ber"],"c":"ok"}"#),
            r#"{"true":true,"a":"x ***","b":["***"],"c":"ok"}"#
        );
    }

    #[test]
    fn masks_user_information_and_query_of_the_location() {
        let secrets = secrets(&json!({"db_uri": "s3://AKIA7:pa/ss@bucket/db?sig=abcdefgh&x=1"}));
        assert_eq!(
            secrets.mask("pa/ss abcdefgh bucket db x=1"),
            "*** *** bucket db x=1"
        );
    }

    #[test]
    fn masks_every_line_and_every_part_of_a_key_file() {
        let key = json!({"private_key": "-----BEGIN-----\nMIIEvQIBADAN\n", "type": "sa"});
        let secrets =
            secrets(&json!({"storage_options": {"google_service_account_key": key.to_string()}}));
        assert_eq!(secrets.mask("broken: MIIEvQIBADAN"), "broken: ***");
    }
}
