//! `${NAME}` and `${NAME:-default}` in the strings of a file. Never in its text: a variable cannot close a quote. In headers,
//! client secrets and the admin token `${file:PATH}` stays as it is: it is read when they are needed.

use super::problem::{Problem, Text, is_name};
use super::tree::{Is, Node};

/// How a file begins that a header names.
pub(super) const FILE: &str = "${file:";

/// The keys beside headers that may name files: this one, and the token of the table `admin`.
const SECRET: &str = "client_secret";
const ADMIN: &str = "admin";
const TOKEN: &str = "token";

/// Puts variables into all strings below.
pub(super) fn expand(
    node: &mut Node,
    variable: &dyn Fn(&str) -> Option<String>,
    source: &Text<'_>,
) -> Result<(), Box<Problem>> {
    below(node, variable, source, "", false)
}

/// `within`: the name of the table. `headers`: files may be named here.
fn below(
    node: &mut Node,
    variable: &dyn Fn(&str) -> Option<String>,
    source: &Text<'_>,
    within: &str,
    headers: bool,
) -> Result<(), Box<Problem>> {
    match &mut node.is {
        Is::Text(text) if text.contains("${") => {
            *text = expanded(text, variable, headers).map_err(|wrong| {
                let help = "set it, or write ${NAME:-default}; $${ is a literal ${";
                source.problem(node.at.clone(), wrong, Some(help.to_owned()))
            })?;
        }
        Is::List(items) => {
            for item in items {
                below(item, variable, source, "", false)?;
            }
        }
        Is::Table(members) => {
            for member in members {
                let headers = headers
                    || (member.name == "headers" && matches!(member.value.is, Is::Table(_)))
                    || (member.name == SECRET && matches!(member.value.is, Is::Text(_)))
                    || (within == ADMIN && member.name == TOKEN && matches!(member.value.is, Is::Text(_)));
                below(&mut member.value, variable, source, &member.name, headers)?;
            }
        }
        Is::Null | Is::Bool(_) | Is::Number(_) | Is::Text(_) => {}
    }
    Ok(())
}

fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>, headers: bool) -> Result<String, String> {
    let mut files = String::new();
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, behind) = (&rest[..at], &rest[at + 2..]);
        if let Some(escaped) = before.strip_suffix('$') {
            made.push_str(escaped);
            made.push_str("${");
            rest = behind;
            continue;
        }
        made.push_str(before);
        let (inside, after) = behind.split_once('}').ok_or("unclosed ${: the } is missing")?;
        if headers && inside.len() > "file:".len() && inside.starts_with("file:") {
            files.push_str("${");
            files.push_str(inside);
            files.push('}');
            made.push_str("${");
            made.push_str(inside);
            made.push('}');
            rest = after;
            continue;
        }
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        // Some agents spell it so.
        let name = name.strip_prefix("env:").unwrap_or(name);
        match (variable(name).filter(|value| default.is_none() || !value.is_empty()), default) {
            (Some(value), _) => made.push_str(&value),
            (None, Some(default)) => made.push_str(default),
            (None, None) if is_name(name) => return Err(format!("environment variable {name} is not set")),
            (None, None) => {
                return Err("${…} does not contain the name of an environment variable".to_owned());
            }
        }
        rest = after;
    }
    made.push_str(rest);
    // Nothing that is put in names a file: that would be another one than the config does.
    if headers && made.matches(FILE).count() != files.matches(FILE).count() {
        return Err("a value that is put into a header contains ${file:".to_owned());
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::expanded;

    fn with(text: &str) -> Result<String, String> {
        expanded(
            text,
            &|name| match name {
                "TOKEN" => Some("s3\"${OTHER}".into()),
                "EMPTY" => Some(String::new()),
                _ => None,
            },
            false,
        )
    }

    #[test]
    fn variables_are_put_in_once_and_defaults_where_they_are_missing() {
        assert_eq!(
            with("Bearer ${TOKEN}!").unwrap(),
            "Bearer s3\"${OTHER}!",
            "what is put in is not read again"
        );
        assert_eq!(with("${NO:-a:-b}/${EMPTY:-c}/${EMPTY}").unwrap(), "a:-b/c/");
        assert_eq!(with("${env:TOKEN}").unwrap(), with("${TOKEN}").unwrap());
        assert_eq!(with("$${TOKEN} $5 $").unwrap(), "${TOKEN} $5 $");
        assert_eq!(with("${NO}").unwrap_err(), "environment variable NO is not set");
        assert!(with("${NO").is_err());
    }

    #[test]
    fn a_header_names_files_and_nothing_that_is_put_into_it_does() {
        let header = |text: &str| {
            let variable = |name: &str| match name {
                "TOKEN" => Some("s3".into()),
                "EVIL" => Some("${file:/etc/passwd}".into()),
                _ => None,
            };
            expanded(text, &variable, true)
        };
        assert_eq!(
            header("${TOKEN} ${file:/run/a} ${file:/run/b}").unwrap(),
            "s3 ${file:/run/a} ${file:/run/b}"
        );
        for bad in ["${EVIL}", "$${file:/etc/passwd}", "${file:}", "${NO:-${file:/a}}", "${file:/run/a"] {
            assert!(header(bad).is_err(), "{bad}");
        }
        assert!(with("${file:/run/a}").is_err(), "only in headers");
    }
}
