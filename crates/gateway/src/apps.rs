//! Pages of tools (MCP Apps): the address of a tool's page stands in the tool's `_meta`, and hosts read it from there. It is named as
//! the resource is that it leads to, so that reading it comes to its server.

use linetender_wire::frame::{Members, string};

use crate::names::Naming;
use crate::splice::Splice;

/// Where the address stands: in `ui`, or as members of their own that came before it and that hosts still look at.
// MCP Apps 2026-01-26, "Resource Discovery"; the flat name is deprecated there. The last is OpenAI's Apps SDK's.
const NESTED: (&str, &str) = ("ui", "resourceUri");
const FLAT: [&str; 2] = ["ui/resourceUri", "openai/outputTemplate"];

/// What a result has in it that names a page.
pub(crate) const WORD: &str = "resourceUri";

/// Names the pages in the `_meta` of this object as agents know them.
pub(crate) fn name_pages(object: &str, splice: &mut Splice<'_>, naming: &Naming) {
    if *naming == Naming::Plain {
        return;
    }
    let Some(meta) = Members::of(object).and_then(|members| Members::of(members.get("_meta")?.get())) else {
        return;
    };
    let nested = meta.get(NESTED.0).and_then(|ui| Members::of(ui.get())?.get(NESTED.1));
    for value in nested.into_iter().chain(FLAT.iter().filter_map(|name| meta.get(name))) {
        if let Some(own) = string(value) {
            splice.put(value, &naming.uri(&own));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::name_pages;
    use crate::names::Naming;
    use crate::splice::Splice;

    fn named(text: &str) -> String {
        let mut splice = Splice::of(text);
        name_pages(text, &mut splice, &Naming::of("a", "__"));
        splice.done().into_owned()
    }

    #[test]
    fn only_the_addresses_of_pages_are_others() {
        let tool = r#"{"name":"t","_meta":{"ui":{"resourceUri" : "ui://x/p","visibility":["app"],"n":1.50},"ui/resourceUri":"ui:\/\/x/p","openai/outputTemplate":"ui://x/o"},"inputSchema":{"_meta":{"ui/resourceUri":"ui://x/p"}}}"#;
        assert_eq!(
            named(tool),
            r#"{"name":"t","_meta":{"ui":{"resourceUri" : "ui://a/x/p","visibility":["app"],"n":1.50},"ui/resourceUri":"ui://a/x/p","openai/outputTemplate":"ui://a/x/o"},"inputSchema":{"_meta":{"ui/resourceUri":"ui://x/p"}}}"#
        );
        let escaped = r#"{"_meta":{"\u0075i":{"resource\u0055ri":"ui://p"}}}"#;
        assert_eq!(named(escaped), escaped.replace("ui://p", "ui://a/p"));
        for none in [
            r#"{"_meta":{"ui":{"resourceUri":7},"ui/resourceUri":null}}"#,
            r#"{"resourceUri":"ui://x"}"#,
            "7",
        ] {
            assert_eq!(named(none), none);
        }
    }
}
