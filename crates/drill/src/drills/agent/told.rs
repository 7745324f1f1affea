//! What an agent made of the answer to a call, whoever gave it.

use linetender_badserver::Failure;
use serde_json::Value;

use crate::scenario::Told;

/// The outcome of a call.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The server's answer, as text.
    Answered(String),
    /// An error of the server's own, which is passed on.
    Own(String),
    /// A failure in five words.
    Failed(Failure),
    /// An error that says something, but not all five.
    Error(String),
    /// An error without any text.
    Empty,
    /// The connection ended under it.
    Closed,
}

impl Outcome {
    /// What this message says. `own` are words by which an error of the server's own is known.
    pub(crate) fn of_message(text: String, own: &[String]) -> Self {
        let Ok(message) = serde_json::from_str::<Value>(&text) else { return Self::Error(text) };
        let ours = [&message["result"]["_meta"]["linetender"], &message["error"]["data"]];
        if let Some(fields) = ours.into_iter().find(|fields| fields["source"] == "linetender") {
            return Self::Failed(Failure::of_fields(fields));
        }
        let said = match (message.get("error"), &message["result"]) {
            (Some(error), _) => error["message"].as_str().unwrap_or_default(),
            (None, result) if result["isError"] == true => {
                result["content"][0]["text"].as_str().unwrap_or_default()
            }
            (None, _) => return Self::Answered(text),
        };
        Self::of_error(said, own)
    }

    /// What an error that is not ours says.
    pub(super) fn of_error(said: &str, own: &[String]) -> Self {
        match said.trim() {
            said if own.iter().any(|own| said.contains(own)) => Self::Own(said.to_owned()),
            "" => Self::Empty,
            said => Self::Error(said.to_owned()),
        }
    }

    /// As the checker reads it.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        match self {
            Self::Answered(_) => Ok(()),
            Self::Own(said) => Err(Failure::of_server(said)),
            Self::Failed(failure) => Err(failure.clone()),
            Self::Error(said) => Err(Failure { cause: said.clone(), ..Failure::default() }),
            Self::Empty | Self::Closed => Err(Failure::default()),
        }
    }

    /// As a scenario names it, if it says that much.
    pub(crate) fn told(&self) -> Option<Told> {
        match self {
            Self::Answered(_) | Self::Own(_) => Some(Told::Answered),
            Self::Failed(failure) if failure.not_executed() => Some(Told::NotExecuted),
            Self::Failed(failure) if failure.refused() => Some(Told::Refused),
            Self::Failed(failure) if failure.answered() => Some(Told::Processed),
            Self::Failed(failure) if failure.delivery == "unknown" => Some(Told::Unknown),
            Self::Closed => Some(Told::Closed),
            Self::Failed(_) | Self::Error(_) | Self::Empty => None,
        }
    }

    /// What a person would read.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Answered(_) => "answered".to_owned(),
            Self::Failed(failure) => failure.to_string(),
            Self::Error(said) | Self::Own(said) => said.clone(),
            Self::Empty => "an error without text".to_owned(),
            Self::Closed => "connection closed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Told};

    fn of(text: &str) -> Outcome {
        Outcome::of_message(text.to_owned(), &["on purpose".to_owned()])
    }

    #[test]
    fn a_targets_own_error_says_too_little_and_ours_says_all() {
        assert!(matches!(
            of(r#"{"id":1,"error":{"code":-32000,"message":"Connection closed"}}"#),
            Outcome::Error(_)
        ));
        assert!(matches!(of(r#"{"id":1,"error":{"code":-32000,"message":" "}}"#), Outcome::Empty));
        assert!(matches!(of(r#"{"id":1,"result":{"isError":true,"content":[]}}"#), Outcome::Empty));
        let ours = of(
            r#"{"id":1,"result":{"isError":true,"_meta":{"linetender":{"source":"linetender","delivery":"unknown"}}}}"#,
        );
        assert_eq!(ours.told(), Some(Told::Unknown));
        let refused = of(r#"{"id":1,"error":{"data":{"source":"linetender","delivery":"refused"}}}"#);
        assert_eq!(refused.told(), Some(Told::Refused));
    }

    #[test]
    fn the_servers_own_word_is_an_answer() {
        assert_eq!(
            of(r#"{"id":1,"error":{"code":-32603,"message":"refused on purpose"}}"#).told(),
            Some(Told::Answered)
        );
        assert_eq!(of(r#"{"id":1,"result":null}"#).told(), Some(Told::Answered));
    }
}
