//! Keeps secrets out of everything that is printed.

use url::Url;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// A location without user, password, query and fragment: what may be printed, and what makes
/// two spellings of one table the same.
///
/// A text that is not a URL is a local path and comes back as it is.
#[must_use]
pub fn location(uri: &str) -> String {
    let Ok(mut url) = Url::parse(uri) else {
        return uri.to_owned();
    };
    if url.cannot_be_a_base() {
        return uri.to_owned();
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Neither call can fail on a URL that already has user information.
        let _ = url.set_password(None);
        let _ = url.set_username("");
    }
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// A free text with everything masked that looks like a credential: user information and
/// signed queries of URLs, and `key=value` or `<Tag>value</Tag>` pairs whose name says secret.
#[must_use]
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = next_secret(rest) {
        out.push_str(&rest[..at.start]);
        out.push_str(MASK);
        rest = &rest[at.end..];
    }
    out.push_str(rest);
    out
}

/// Names whose value is never printed, in lower case, without separators.
const SECRET_NAMES: [&str; 14] = [
    "accountkey",
    "secretaccesskey",
    "secretkey",
    "accesskeyid",
    "awsaccesskeyid",
    "sessiontoken",
    "securitytoken",
    "password",
    "sastoken",
    "stringtosign",
    "signature",
    "privatekey",
    "apikey",
    "bearertoken",
];

/// Whether a setting of this name holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    SECRET_NAMES.iter().any(|secret| plain.ends_with(secret))
}

/// The byte range of the next value to mask.
fn next_secret(text: &str) -> Option<std::ops::Range<usize>> {
    [user_information(text), named_value(text)]
        .into_iter()
        .flatten()
        .min_by_key(|range| range.start)
}

/// `scheme://USER:PASSWORD@host`: the part before the `@`.
fn user_information(text: &str) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        let authority = text[start..]
            .find(|c: char| c.is_whitespace() || "/?#\"'<>,;)".contains(c))
            .map_or(text.len(), |len| start + len);
        if let Some(at) = text[start..authority].rfind('@')
            && &text[start..start + at] != MASK
        {
            return Some(start..start + at);
        }
        from = start;
    }
    None
}

/// `name=value`, `name: value`, `"name":"value"` and `<name>value</name>` with a secret name.
fn named_value(text: &str) -> Option<std::ops::Range<usize>> {
    let name_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut from = 0;
    while let Some(found) = text[from..].find(name_char) {
        let start = from + found;
        let end = text[start..]
            .find(|c: char| !name_char(c))
            .map_or(text.len(), |len| start + len);
        from = end;
        if !is_secret_name(&text[start..end]) {
            continue;
        }
        let after = text[end..].trim_start_matches(['"', '\'', ' ', '\\']);
        let Some(separator) = after.chars().next().filter(|c| "=:>".contains(*c)) else {
            continue;
        };
        let value = after[separator.len_utf8()..].trim_start_matches(['"', '\'', ' ', '\\', '=']);
        let value_start = text.len() - value.len();
        let value_end = value
            .find(|c: char| c.is_whitespace() || "\"'<>,;&)}\\".contains(c))
            .map_or(text.len(), |len| value_start + len);
        if value_end > value_start && &text[value_start..value_end] != MASK {
            return Some(value_start..value_end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_of_a_url_is_masked() {
        assert_eq!(
            text("cannot open s3://key:secret@bucket/db now"),
            "cannot open s3://***@bucket/db now"
        );
    }

    #[test]
    fn named_secrets_are_masked_in_every_spelling() {
        for (given, masked) in [
            (
                "aws_secret_access_key=abc/def+1",
                "aws_secret_access_key=***",
            ),
            ("\"account_key\": \"abc==\"", "\"account_key\": \"***\""),
            (
                "<AWSAccessKeyId>AKIA1</AWSAccessKeyId><StringToSign>a b</StringToSign>",
                "<AWSAccessKeyId>***</AWSAccessKeyId><StringToSign>*** b</StringToSign>",
            ),
            (
                "https://h/x?X-Amz-Signature=00ff&y=1",
                "https://h/x?X-Amz-Signature=***&y=1",
            ),
        ] {
            assert_eq!(text(given), masked);
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for given in [
            "no secret here",
            "a=b",
            "password",
            "key: value",
            "s3://bucket/db?x=1",
        ] {
            assert_eq!(text(given), given);
        }
    }

    #[test]
    fn a_location_loses_credentials_and_query() {
        assert_eq!(location("s3://u:p@b/db?ddbTableName=t#f"), "s3://b/db");
        assert_eq!(location("/data/lance db"), "/data/lance db");
    }
}
