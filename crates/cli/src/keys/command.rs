//! What a person has to type to log in. It stands in errors, journal and status, so it has to work as it stands there, and may
//! not hold a secret.

use std::path::Path;

use linetender::Redacted;

use crate::places;

/// The longest URL that is repeated.
const LONGEST: usize = 300;

/// For a server of this config file.
pub(crate) fn by_name(name: &str, config: &Path) -> String {
    let usual = places::usual_config();
    let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
    let config = if usual.as_ref() == Some(&config) {
        String::new()
    } else {
        format!("--config {} ", word(&config.to_string_lossy()))
    };
    let dashes = if name.starts_with('-') { "-- " } else { "" };
    format!("linetender login {config}{dashes}{}", word(name))
}

/// For the server at this address.
pub(crate) fn by_url(url: &str) -> String {
    let shown = Redacted::head(url, LONGEST).to_string();
    if shown == url {
        format!("linetender login {}", word(url))
    } else {
        // It holds a key, or is very long: whoever has configured it knows it.
        "linetender login URL".to_owned()
    }
}

/// One word for a shell.
fn word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./:@%+=,".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // Both shells of Windows take these, and a path has none of them in it.
    if cfg!(windows) {
        return format!("\"{}\"", text.replace('"', ""));
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{by_name, by_url, word};

    #[test]
    fn what_is_to_be_typed_works_as_it_stands() {
        assert_eq!(
            by_name("git hub", "/etc/my servers.toml".as_ref()),
            "linetender login --config '/etc/my servers.toml' 'git hub'"
        );
        assert_eq!(by_name("-x", "/c.toml".as_ref()), "linetender login --config /c.toml -- -x");
        assert_eq!(by_url("https://a.example/mcp"), "linetender login https://a.example/mcp");
        assert_eq!(
            by_url("https://a.example/mcp?team=blue"),
            "linetender login 'https://a.example/mcp?team=blue'"
        );
        assert_eq!(word("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_key_in_an_address_is_not_repeated() {
        let url = "https://a.example/mcp?api_key=hunter2hunter2hunter2";
        let _kept = linetender::Server::http("a", url);
        assert!(!by_url(url).contains("hunter2"), "{}", by_url(url));
    }
}
