//! One entry of a list.

use linetender_wire::http::headers::{Invalid, ParamHeaders};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) text: Box<str>,
}

/// What a server says of a tool.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Hints {
    pub(super) read_only_hint: bool,
    pub(super) idempotent_hint: bool,
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

    /// An entry, and what a tool is called.
    pub(super) fn of(entry: &RawValue) -> (Self, Hints) {
        #[derive(Default, Deserialize)]
        struct Looked {
            #[serde(default)]
            name: String,
            #[serde(default)]
            uri: String,
            #[serde(default, rename = "uriTemplate")]
            template: String,
            #[serde(default)]
            annotations: Option<Hints>,
        }
        let looked: Looked = serde_json::from_str(entry.get()).unwrap_or_default();
        let name = [looked.uri, looked.template, looked.name]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        (Self { name, text: entry.get().into() }, looked.annotations.unwrap_or_default())
    }
}
