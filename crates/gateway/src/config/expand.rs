//! `${NAME}` and `${NAME:-default}` in the strings of a file. Never in its text: a variable cannot close a quote.

use super::problem::{Problem, Text, is_name};
use super::tree::{Is, Node};

/// Puts variables into all strings below.
pub(super) fn expand(
    node: &mut Node,
    variable: &dyn Fn(&str) -> Option<String>,
    source: &Text<'_>,
) -> Result<(), Box<Problem>> {
    match &mut node.is {
        Is::Text(text) if text.contains("${") => {
            *text = expanded(text, variable).map_err(|wrong| {
                let help = "set it, or write ${NAME:-default}; $${ is a literal ${";
                source.problem(node.at.clone(), wrong, Some(help.to_owned()))
            })?;
        }
        Is::List(items) => {
            for item in items {
                expand(item, variable, source)?;
            }
        }
        Is::Table(members) => {
            for member in members {
                expand(&mut member.value, variable, source)?;
            }
        }
        Is::Null | Is::Bool(_) | Is::Number(_) | Is::Text(_) => {}
    }
    Ok(())
}

fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
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
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::expanded;

    fn with(text: &str) -> Result<String, String> {
        expanded(text, &|name| match name {
            "TOKEN" => Some("s3\"${OTHER}".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
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
}
