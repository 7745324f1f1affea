//! Log lines as JSON objects: one line each, no longer than a text line, without secrets.

use std::fmt;

use linetender::{hide_secrets, visible};
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::{LONGEST, LOOKED_AT};

/// What a line needs beside its fields: time, level, target, and how many fields were left out.
const FRAME: usize = 512;

/// The longest name of a field or target.
const LONGEST_NAME: usize = 100;

/// Writes events as JSON.
pub(super) struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::new();
        event.record(&mut fields);
        let about = event.metadata();
        writer.write_str(&line(about.level().as_str(), about.target(), fields))
    }
}

/// What is told to the user, as a line of the log.
pub(super) fn said(level: &str, text: &str) -> String {
    let mut fields = Fields::new();
    fields.put("message", text);
    line(level, "linetender", fields)
}

fn line(level: &str, target: &str, fields: Fields) -> String {
    let mut time = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let Fields { message, others, left_out, .. } = fields;
    let mut object =
        json!({ "timestamp": time, "level": level, "target": visible::first_bytes(target, LONGEST_NAME) });
    if let Some(message) = message {
        object["message"] = message;
    }
    if !others.is_empty() {
        object["fields"] = Value::Object(others);
    }
    if left_out > 0 {
        object["fields_left_out"] = left_out.into();
    }
    format!("{}\n", visible::json(&object.to_string()))
}

/// The fields of an event, as many as there is room for.
struct Fields {
    message: Option<Value>,
    others: Map<String, Value>,
    room: usize,
    left_out: usize,
}

impl Fields {
    fn new() -> Self {
        Self { message: None, others: Map::new(), room: LONGEST - FRAME, left_out: 0 }
    }

    fn put(&mut self, name: &str, text: &str) {
        let unseen = text.len() - visible::first_bytes(text, LOOKED_AT).len();
        let text = hide_secrets(visible::first_bytes(text, LOOKED_AT)).into_owned();
        let room = self.room.saturating_sub(name.len() + 8);
        let cut = |most: usize| {
            let kept = visible::first_bytes(&text, most);
            let more = text.len() - kept.len() + unseen;
            if more == 0 { kept.to_owned() } else { format!("{kept}… ({more} more bytes)") }
        };
        // A character takes up to six bytes when it is spelt as an escape, and those beyond the plane twelve for four.
        let candidates = [room, room.saturating_sub(64), room.saturating_sub(64) / 6];
        let fits = candidates.into_iter().map(cut).find(|text| spelt(text) <= room);
        match fits {
            Some(text) => self.value(name, text.into()),
            None => self.left_out += 1,
        }
    }

    fn value(&mut self, name: &str, value: Value) {
        let name = visible::first_bytes(name, LONGEST_NAME);
        let size = visible::json(&value.to_string()).len() + name.len() + 8;
        let Some(room) = self.room.checked_sub(size) else {
            self.left_out += 1;
            return;
        };
        self.room = room;
        if name == "message" {
            self.message = Some(value);
        } else {
            self.others.insert(name.to_owned(), value);
        }
    }
}

/// How long a text is as JSON.
fn spelt(text: &str) -> usize {
    visible::json(&Value::from(text).to_string()).len()
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.value(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.value(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.value(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.value(field.name(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, said};

    #[test]
    fn a_line_is_one_short_json_object_whatever_it_holds() {
        for text in [
            "plain".to_owned(),
            "forged\n{\"level\":\"ERROR\"}\u{1b}[31m\u{2028}\u{202e}".to_owned(),
            "N".repeat(5_000_000),
            "\u{1b}".repeat(50_000),
            "ä\"\\".repeat(LONGEST),
            "\u{e0001}".repeat(LONGEST),
        ] {
            let line = said("INFO", &text);
            assert!(line.len() <= LONGEST && line.ends_with("}\n"), "{}", line.len());
            assert_eq!(line.matches('\n').count(), 1);
            assert!(!line.contains(['\u{1b}', '\u{2028}', '\u{202e}']), "{line}");
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            let message = read["message"].as_str().unwrap_or_else(|| panic!("{line}"));
            assert!(message == text || message.ends_with(" more bytes)"), "{message}");
            assert!(read["timestamp"].as_str().unwrap().ends_with('Z'), "{read}");
        }
    }
}
