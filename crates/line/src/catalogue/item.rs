//! One entry of a list.

use linetender_wire::http::headers::{Invalid, ParamHeaders};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) text: Box<str>,
}

impl Item {
    /// The arguments of a tool that a modern server wants to see in headers.
    pub(super) fn mirrored(&self) -> Result<ParamHeaders, Invalid> {
        #[derive(Deserialize)]
        struct Tool<'a> {
            #[serde(borrow, rename = "inputSchema")]
            schema: &'a RawValue,
        }
        match serde_json::from_str::<Tool<'_>>(&self.text) {
            Ok(tool) => ParamHeaders::of(tool.schema.get()),
            Err(_) => Ok(ParamHeaders::default()),
        }
    }

    /// An entry, and whether it is a tool that is called read-only or idempotent.
    pub(super) fn of(entry: &RawValue) -> (Self, bool) {
        #[derive(Default, Deserialize)]
        struct Looked {
            #[serde(default)]
            name: String,
            #[serde(default)]
            uri: String,
            #[serde(default, rename = "uriTemplate")]
            template: String,
            #[serde(default)]
            annotations: Option<Annotations>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Annotations {
            read_only_hint: bool,
            idempotent_hint: bool,
        }
        let looked: Looked = serde_json::from_str(entry.get()).unwrap_or_default();
        let name = [looked.uri, looked.template, looked.name]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        let safe = looked.annotations.is_some_and(|hints| hints.read_only_hint || hints.idempotent_hint);
        (Self { name, text: entry.get().into() }, safe)
    }
}
