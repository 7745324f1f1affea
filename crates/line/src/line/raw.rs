//! JSON that is JSON already.

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

/// JSON as text, where something that serializes is asked for: it is sent as it is spelt.
///
/// ```no_run
/// # async fn example(line: linetender::Line) -> Result<(), linetender::CallError> {
/// use linetender::Raw;
///
/// line.call_tool("add", Raw(r#"{ "a": 1, "b": 2 }"#)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(
    /// The text.
    pub &'a str,
);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.0).map_err(S::Error::custom)?.serialize(serializer)
    }
}
