//! Which names hold secrets, and which storage options certainly do not.

/// Endings of names whose value is never printed, in lower case, without separators.
const SECRET_ENDINGS: [&str; 31] = [
    "accesskey",
    "accesskeyid",
    "accountkey",
    "apikey",
    "applicationcredentials",
    "authorization",
    "bearer",
    "clientsecret",
    "connectionstring",
    "credential",
    "credentials",
    "masterkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "privatekeyid",
    "pwd",
    "sas",
    "saskey",
    "secret",
    "secretkey",
    "serviceaccount",
    "serviceaccountkey",
    "sharedkey",
    "sig",
    "signature",
    "ssecustomerkeybase64",
    "storagekey",
    "stringtosign",
    "token",
];

/// Parts of names of storage options whose value is no secret.
const HARMLESS_PARTS: [&str; 30] = [
    "accountname",
    "allow",
    "bucket",
    "cache",
    "checksum",
    "conditionalput",
    "connections",
    "container",
    "copyifnotexists",
    "defaultregion",
    "disable",
    "endpoint",
    "http",
    "idle",
    "imdsv1",
    "interval",
    "keepalive",
    "metadata",
    "path",
    "pool",
    "protocol",
    "region",
    "requestpayer",
    "retries",
    "retry",
    "skip",
    "style",
    "timeout",
    "unsigned",
    "useragent",
];

/// Whether a setting of this name holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let plain = plain(name);
    SECRET_ENDINGS
        .iter()
        .any(|ending| plain.ends_with(ending) && (ending.len() > 3 || is_last_word(name, ending)))
}

/// Whether a storage option of this name certainly holds none.
pub(super) fn is_harmless_option(name: &str) -> bool {
    let plain = plain(name);
    !is_secret_name(name) && HARMLESS_PARTS.iter().any(|part| plain.contains(part))
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// A short ending must be a word of its own.
fn is_last_word(name: &str, word: &str) -> bool {
    name.rsplit(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .is_some_and(|last| last.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_secret_in_every_spelling() {
        for name in [
            "aws_secret_access_key",
            "AWS-Session-Token",
            "azure_storage_sas_key",
            "sig",
            "X-Amz-Credential",
            "google_service_account",
            "clientSecret",
            "Authorization",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["region", "key", "tokens", "kansas", "secrets_of_success"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn an_option_is_harmless_only_by_name() {
        for name in ["aws_region", "endpoint", "allow_http", "connect_timeout"] {
            assert!(is_harmless_option(name), "{name}");
        }
        for name in ["x", "proxy_url", "endpoint_token", "http_authorization"] {
            assert!(!is_harmless_option(name), "{name}");
        }
    }
}
