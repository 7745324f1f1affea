//! What a server offers, as types for programs: the members that people look at, and the raw text of everything else.

use std::fmt;

use serde::Deserialize;

use super::Catalogue;
use crate::basics::kind::Kind;

/// Declares the view of an entry of a list.
macro_rules! views {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty = $member:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Default, Deserialize)]
        #[non_exhaustive]
        #[serde(default)]
        pub struct $name {
            $($(#[$field_doc])* #[serde(rename = $member)] pub $field: $kind,)*
            #[serde(skip)]
            raw: Box<str>,
        }

        impl $name {
            /// An entry that has not the form that MCP asks for has only its raw text.
            pub(crate) fn of(raw: &str) -> Self {
                Self { raw: raw.into(), ..serde_json::from_str(raw).unwrap_or_default() }
            }

            /// All of it, as the server spelt it.
            pub fn raw(&self) -> &str {
                &self.raw
            }

            /// All of it as a type of yours.
            ///
            /// # Errors
            /// If it does not have that form.
            pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
                serde_json::from_str(&self.raw)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.raw == other.raw
            }
        }

        impl Eq for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.raw).finish()
            }
        }
    )*};
}

views! {
    /// A tool that a server offers.
    Tool {
        /// Its name, by which it is called.
        name: String = "name",
        /// Its name for people.
        title: Option<String> = "title",
        /// What it does, for models.
        description: Option<String> = "description",
        /// The schema of its arguments.
        input_schema: Option<Box<serde_json::value::RawValue>> = "inputSchema",
    }

    /// A prompt that a server offers.
    Prompt {
        /// Its name, by which it is asked for.
        name: String = "name",
        /// Its name for people.
        title: Option<String> = "title",
        /// What it is for.
        description: Option<String> = "description",
    }

    /// A resource that a server offers.
    Resource {
        /// Its address, by which it is read.
        uri: String = "uri",
        /// Its name.
        name: String = "name",
        /// What it is.
        description: Option<String> = "description",
        /// Its media type.
        mime_type: Option<String> = "mimeType",
    }

    /// A family of resources that a server offers.
    ResourceTemplate {
        /// The pattern of their addresses (RFC 6570).
        uri_template: String = "uriTemplate",
        /// Its name.
        name: String = "name",
        /// What they are.
        description: Option<String> = "description",
        /// Their media type, if they have one.
        mime_type: Option<String> = "mimeType",
    }
}

impl Catalogue {
    /// The tools, in the server's order.
    pub fn tools(&self) -> impl Iterator<Item = Tool> {
        self.list(Kind::Tools).map(Tool::of)
    }

    /// The prompts, in the server's order.
    pub fn prompts(&self) -> impl Iterator<Item = Prompt> {
        self.list(Kind::Prompts).map(Prompt::of)
    }

    /// The resources, in the server's order.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        self.list(Kind::Resources).map(Resource::of)
    }

    /// The templates of resources, in the server's order.
    pub fn resource_templates(&self) -> impl Iterator<Item = ResourceTemplate> {
        self.list(Kind::Templates).map(ResourceTemplate::of)
    }
}

#[cfg(test)]
mod tests {
    use super::{Resource, Tool};

    #[test]
    fn a_view_shows_what_people_look_at_and_keeps_every_byte() {
        let raw = r#"{"name":"add", "inputSchema":{ "type" : "object"},"x-more":1}"#;
        let tool = Tool::of(raw);
        assert_eq!((tool.name.as_str(), tool.raw(), &tool.description), ("add", raw, &None));
        assert_eq!(tool.input_schema.as_ref().unwrap().get(), r#"{ "type" : "object"}"#);
        assert_eq!(tool.parse::<serde_json::Value>().unwrap()["x-more"], 1);
        let odd = Resource::of(r#"{"uri":7}"#);
        assert_eq!((odd.uri.as_str(), odd.raw()), ("", r#"{"uri":7}"#));
    }
}
