//! What a server writes when its login was refused.
//!
//! A guess at words, which decides one thing: that calls do not start a server again that has never answered. A refusal that
//! is missed costs a login a minute; a word that is misread costs the user a `linetender redial`. So a word that also stands
//! in harmless messages ("using a password on the command line") counts only beside one that says that something failed.

/// A line with one of these is about a refused login.
const REFUSALS: [&str; 3] = ["unauthorized", "unauthorised", "denied"];

/// A line with one of these is about a login.
const LOGINS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "credential",
    "login",
    "log in",
    "authenticat",
    "api key",
    "apikey",
];

/// A line with one of these tells of a failure.
const FAILURES: [&str; 15] = [
    "fail",
    "unable",
    "invalid",
    "wrong",
    "incorrect",
    "reject",
    "refus",
    "expired",
    "revoked",
    "error",
    "fatal",
    "bad ",
    "missing",
    "mismatch",
    "not accepted",
];

/// What is locked and is no account: a server that waits for these may have them the next time.
const OTHER_LOCKS: [&str; 7] = ["database", "sqlite", "file", "table", "resource", "lockfile", "directory"];

/// True if these lines read as a refused login.
pub(super) fn is_refused(stderr: &str) -> bool {
    stderr.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        has(&REFUSALS)
            || has_status(&line)
            || (has(&LOGINS) && has(&FAILURES))
            || (line.contains("locked") && !line.contains("blocked") && !has(&OTHER_LOCKS))
    })
}

/// True if 401 stands there as a number of its own; not as a line of a source file, a port or a fraction.
fn has_status(line: &str) -> bool {
    line.match_indices("401").any(|(at, status)| {
        let (before, after) = (&line[..at], &line[at + status.len()..]);
        let rest = after.trim_start_matches([':', '.', ',']);
        let runs_on = after.starts_with(char::is_alphanumeric)
            || (rest.len() < after.len() && rest.starts_with(|next: char| next.is_ascii_digit()));
        let begins_before =
            before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '.' | ':' | '-'));
        !(begins_before || runs_on)
    })
}

#[cfg(test)]
mod tests {
    use super::is_refused;

    #[test]
    fn what_servers_write_about_a_refused_login_is_known() {
        for text in [
            "FATAL: login failed for user alice: wrong password",
            "Error: 401 Unauthorized",
            "AxiosError: Request failed with status code 401",
            "HTTP 401: token expired",
            "remote: HTTP Basic: Access denied",
            "psql: FATAL:  password authentication failed for user \"app\"",
            "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
            "ERROR 3118 (HY000): Access denied for user 'a'. Account is locked.",
            "git@github.com: Permission denied (publickey).",
            "starting\nThe account alice is locked\nbye",
            "MongoServerError: Authentication failed.",
            "unable to authenticate user",
            "Error: Invalid API key",
            "Incorrect username or passcode",
            "role not permitted to log in: error",
        ] {
            assert!(is_refused(text), "{text}");
        }
    }

    #[test]
    fn what_servers_write_about_other_things_is_not_taken_for_it() {
        for text in [
            "",
            "getaddrinfo ENOTFOUND api.example",
            "Warning: Using a password on the command line interface can be insecure.",
            "Loaded credentials from /home/a/.aws\nError: connect ECONNREFUSED 10.0.0.1:443",
            "sqlite3.OperationalError: database is locked",
            "the call was blocked by another one",
            "    at Object.<anonymous> (/srv/index.js:401:12)",
            "listening on 127.0.0.1:4010",
            "took 0.401 s",
            "Authenticated as alice",
            "Please authorize this client by visiting: https://auth.example/authorize?client_id=x",
        ] {
            assert!(!is_refused(text), "{text}");
        }
    }
}
