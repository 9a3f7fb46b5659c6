//! Keeps secrets out of everything that is printed, in two ways that do not rely on each other:
//!
//! - [`text`] and [`location`] mask what looks like a credential in a foreign text. They are for
//!   texts of the engine and for values, not for sentences of our own.
//! - [`Secrets`] masks the very values that a spec gives as credentials, wherever they turn up.

mod names;
mod values;

use std::ops::Range;

pub use names::is_secret_name;
pub use values::Secrets;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// A location without user, password, query and fragment: what may be printed, and what makes
/// two spellings of one table the same.
///
/// It works on the text alone: what no URL parser accepts may hold a password as well. A text
/// without a scheme is a local path and comes back as it is.
#[must_use]
pub fn location(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    match parts(scheme, rest) {
        Some(parts) => format!("{scheme}://{}", parts.place),
        None => format!("{scheme}://{MASK}"),
    }
}

/// Whether it cannot be told which part of a URL is the user information, because an `@` stands
/// behind a `?` or `#`.
#[must_use]
pub fn is_ambiguous(uri: &str) -> bool {
    uri.split_once("://")
        .is_some_and(|(scheme, rest)| parts(scheme, rest).is_none())
}

/// What a URL has behind its scheme.
struct Parts<'a> {
    user: &'a str,
    place: &'a str,
    query: &'a str,
}

/// Splits at the last `@`, and at the first `?` or `#`: a secret key of AWS may hold a slash, so
/// the user information does not end at the first one.
fn parts<'a>(scheme: &str, rest: &'a str) -> Option<Parts<'a>> {
    let (before, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    if query.contains('@') {
        return None;
    }
    let (user, place) = before.rsplit_once('@').unwrap_or(("", before));
    // Azure writes abfss://CONTAINER@ACCOUNT/..., and a container is no secret.
    if scheme.to_ascii_lowercase().starts_with("abfs") && !user.contains([':', '/', '@']) {
        return Some(Parts {
            user: "",
            place: before,
            query,
        });
    }
    Some(Parts { user, place, query })
}

/// A free text with everything masked that looks like a credential: user information of URLs,
/// and `key=value`, `key: value` or `<Tag>value</Tag>` pairs whose name says secret. It masks a
/// credential that was cut off at the end of the text as well.
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

/// The byte range of the next value to mask.
fn next_secret(text: &str) -> Option<Range<usize>> {
    [user_information(text), named_value(text)]
        .into_iter()
        .flatten()
        .min_by_key(|range| range.start)
}

/// `scheme://USER:PASSWORD@host`: the part before the last `@`. Without an `@`, a colon with
/// something else than a port behind it is taken for the beginning of a password.
fn user_information(text: &str) -> Option<Range<usize>> {
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        let end = text[start..]
            .find(|c: char| c.is_whitespace() || "\"'<>`".contains(c))
            .map_or(text.len(), |len| start + len);
        let url = &text[start..end];
        let masked = match url.rfind('@') {
            Some(at) => start..start + at,
            None if is_cut_password(url, end == text.len()) => start..end,
            None => start..start,
        };
        if !masked.is_empty() && &text[masked.clone()] != MASK {
            return Some(masked);
        }
        from = start;
    }
    None
}

fn is_cut_password(url: &str, is_end: bool) -> bool {
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    // An address of IPv6 has colons of its own.
    let Some((_, port)) = authority.rsplit_once(':').filter(|_| !url.starts_with('[')) else {
        return false;
    };
    let port = port.trim_end_matches([',', ';', ')', '.', ':', ']', '}']);
    let is_cut = is_end && authority.len() == url.len() && url.ends_with('…');
    is_cut || !port.chars().all(|c| c.is_ascii_digit())
}

/// `name=value`, `name: value`, `"name":"value"` and `<name>value</name>` with a secret name.
fn named_value(text: &str) -> Option<Range<usize>> {
    let name_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut from = 0;
    while let Some(found) = text[from..].find(name_char) {
        let start = from + found;
        let end = text[start..]
            .find(|c: char| !name_char(c))
            .map_or(text.len(), |len| start + len);
        from = end;
        let name = &text[start..end];
        if !is_secret_name(name) {
            continue;
        }
        let value = value_after(text, name, end);
        if let Some(value) = value
            && !value.is_empty()
            && &text[value.clone()] != MASK
        {
            return Some(value);
        }
    }
    None
}

/// Where the value of a secret name stands that ends at `end`.
fn value_after(text: &str, name: &str, end: usize) -> Option<Range<usize>> {
    let after = text[end..].trim_start_matches(['"', '\'', ' ', '\\']);
    let separator = after.chars().next()?;
    let value = if "=:>".contains(separator) {
        after[1..].trim_start_matches([' ', '\\', '='])
    } else if name.eq_ignore_ascii_case("bearer") && text[end..].starts_with(' ') {
        after
    } else {
        return None;
    };
    let quote = value.chars().next().filter(|c| "\"'".contains(*c));
    let value = value.trim_start_matches(['"', '\'']);
    let start = text.len() - value.len();
    let length = if let Some(quote) = quote {
        // With the spaces in it; a backslash ends an escaped quote.
        value.find([quote, '\\'])
    } else if separator == '>' {
        value.find('<')
    } else if name.to_ascii_lowercase().ends_with("authorization") {
        // A scheme and several parts.
        value.find(['"', '\'', '<', '\n', '\r', '\\'])
    } else {
        value.find(|c: char| c.is_whitespace() || "\"'<>,;&)}\\".contains(c))
    };
    Some(start..length.map_or(text.len(), |length| start + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_of_a_url_is_masked() {
        for (given, masked) in [
            (
                "cannot open s3://key:secret@bucket/db now",
                "cannot open s3://***@bucket/db now",
            ),
            ("s3://AKIA:ab/cd+e?f@bucket/db", "s3://***@bucket/db"),
            ("at s3://AKIA:ab/c…", "at s3://***"),
            ("at s3://AKIA:12…", "at s3://***"),
            (
                "http://localhost:9000/x, then",
                "http://localhost:9000/x, then",
            ),
            ("http://[::1]:80/x", "http://[::1]:80/x"),
        ] {
            assert_eq!(text(given), masked);
        }
    }

    #[test]
    fn named_secrets_are_masked_in_every_spelling() {
        for (given, masked) in [
            (
                "aws_secret_access_key=abc/def+1",
                "aws_secret_access_key=***",
            ),
            ("\"account_key\": \"abc==\"", "\"account_key\": \"***\""),
            ("{\"password\":\"two words\"}", "{\"password\":\"***\"}"),
            ("{\\\"token\\\":\\\"x y\\\"}", "{\\\"token\\\":\\\"***\\\"}"),
            (
                "<AWSAccessKeyId>AKIA1</AWSAccessKeyId><StringToSign>a b</StringToSign>",
                "<AWSAccessKeyId>***</AWSAccessKeyId><StringToSign>***</StringToSign>",
            ),
            ("<StringToSign>a b …", "<StringToSign>***"),
            (
                "https://h/x?X-Amz-Signature=00ff&y=1",
                "https://h/x?X-Amz-Signature=***&y=1",
            ),
            ("https://h/x?sig=00ff&y=1", "https://h/x?sig=***&y=1"),
            ("Authorization: Bearer X.Y-Z", "Authorization: ***"),
            (
                "\"authorization\": \"AWS4 Credential=a, Signature=b\", x",
                "\"authorization\": \"***\", x",
            ),
            ("sent Bearer abc to h", "sent Bearer *** to h"),
            ("google_service_account=/x", "google_service_account=***"),
            ("client_secret: s", "client_secret: ***"),
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
            "tokens: 5",
        ] {
            assert_eq!(text(given), given);
        }
    }

    #[test]
    fn a_location_loses_credentials_and_query() {
        for (given, shown) in [
            ("s3://u:p@b/db?ddbTableName=t#f", "s3://b/db"),
            ("s3://AKIA:a/b@c/d@b/db", "s3://b/db"),
            ("s3://u:p@:bad host:/db?sig=x", "s3://:bad host:/db"),
            ("file:///db?sig=x", "file:///db"),
            ("s3://b/db?sig=a@b", "s3://***"),
            ("s3://u:a#b@b/db", "s3://***"),
            (
                "abfss://container@account.dfs.core.windows.net/db?sig=x",
                "abfss://container@account.dfs.core.windows.net/db",
            ),
            ("abfss://u:p@account/db", "abfss://account/db"),
            ("/data/lance db?x#y@z", "/data/lance db?x#y@z"),
        ] {
            assert_eq!(location(given), shown);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_password_in_a_url_never_comes_through(
            user in "[A-Z0-9]{1,8}",
            password in "[a-z0-9/+=%:@…ä]{0,12}MARKER[a-z0-9/+=%:@…ä]{0,12}",
            place in "[a-z]{1,5}(/[a-z]{1,5}){0,3}",
            around in "[ a-z=:\"'<>…]{0,12}",
        ) {
            let uri = format!("s3://{user}:{password}@{place}");
            proptest::prop_assert_eq!(location(&uri), format!("s3://{place}"));
            let masked = text(&format!("{around} {uri} {around}"));
            proptest::prop_assert!(!masked.contains("MARKER"), "{}", masked);
            let spec = serde_json::json!({"db_uri": uri}).to_string();
            let secrets = Secrets::of_spec(spec.as_bytes());
            let masked = secrets.mask(&format!("{around}{password}{around}"));
            proptest::prop_assert!(!masked.contains("MARKER"), "{}", masked);
        }

        #[test]
        fn no_text_whatever_stops_the_masking(given: String, secret in "[a-zA-Z0-9/+ä\"\\\\]{4,9}") {
            let spec = serde_json::json!({"storage_options": {"token": secret}}).to_string();
            let secrets = Secrets::of_spec(spec.as_bytes());
            let masked = secrets.mask(&text(&location(&format!("{given}{secret}…{given}"))));
            proptest::prop_assert!(!masked.contains(&secret), "{}", masked);
        }
    }
}
