//! Words after `run` that are neither a program nor a URL.
//!
//! A program that is not found is none of them: it may be installed later, and an agent that is connected learns why it has no
//! tools. What can never be started is refused at once, for the person who writes the configuration.

use std::path::Path;

/// Why this word cannot be started in this folder, if that is certain.
pub(super) fn refusal(word: &str, dir: Option<&Path>) -> Option<String> {
    let there = dir.map_or_else(|| word.into(), |dir| dir.join(word));
    if word.is_empty() {
        return Some("the server's command is empty".to_owned());
    }
    let scheme = word.split_once(':').map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest));
    match scheme {
        Some((scheme, rest)) if (scheme == "http" || scheme == "https") && !there.exists() => {
            let rest = rest.trim_start_matches('/');
            Some(format!("{word} is not a URL; did you mean {scheme}://{rest}?"))
        }
        Some((scheme, _)) if word[scheme.len()..].starts_with("://") => {
            Some(format!("{scheme}:// is not supported: linetender connects to http:// and https:// URLs"))
        }
        Some((host, rest)) if is_port(rest) && !host.contains('/') && !there.exists() => {
            Some(format!("{word} is not a program; for a URL write http://{word}"))
        }
        _ if word.contains('/') && there.is_dir() => Some(format!("{word} is a folder, not a program")),
        _ => None,
    }
}

/// `8080` or `8080/mcp`.
fn is_port(rest: &str) -> bool {
    let port = rest.split('/').next().unwrap_or_default();
    port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn what_can_never_be_started_is_refused_with_what_was_meant() {
        for (word, words) in [
            ("", "the server's command is empty"),
            ("http:/a.example/mcp", "http:/a.example/mcp is not a URL; did you mean http://a.example/mcp?"),
            ("HTTPS://a.example", "HTTPS://a.example is not a URL; did you mean https://a.example?"),
            ("ws://a.example", "ws:// is not supported: linetender connects to http:// and https:// URLs"),
            (
                "localhost:8080/mcp",
                "localhost:8080/mcp is not a program; for a URL write http://localhost:8080/mcp",
            ),
            ("/tmp", "/tmp is a folder, not a program"),
        ] {
            assert_eq!(refusal(word, None).as_deref(), Some(words), "{word}");
        }
    }

    #[test]
    fn what_may_be_a_program_is_left_to_the_start() {
        for word in [
            "npx",
            "./server",
            "/usr/bin/env",
            "not-installed-yet",
            "a:b",
            "tmp",
            "é://x".trim_end_matches("://x"),
        ] {
            assert_eq!(refusal(word, None), None, "{word}");
        }
        let folder = std::env::temp_dir().join(format!("linetender-target-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("http:")).unwrap();
        std::fs::write(folder.join("http:/x"), "").unwrap();
        assert_eq!(refusal("http:/x", Some(&folder)), None, "there is one of this name");
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(refusal("./tmp", Some("/".as_ref())).as_deref(), Some("./tmp is a folder, not a program"));
        assert_eq!(refusal("./tmp", Some("/tmp".as_ref())), None, "where it is started there is none");
    }
}
