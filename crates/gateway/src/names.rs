//! What the things of many servers are called at one address.
//!
//! A tool or a prompt is `server__name`. A resource is `linetender://server/` and then its own address, every character as
//! it was: so it can be told whose it is, and taken back to what it was, and a template stays one. A page of a tool keeps its
//! scheme, by which hosts know pages: `ui://page` is `ui://server/page`. No server's prefix begins with another's (the config
//! is refused otherwise), so a name has at most one owner.

use std::borrow::Cow;

/// What the addresses of all resources begin with, but those of pages.
const SCHEME: &str = "linetender://";

/// What the addresses of tools' pages begin with, at servers and at agents.
// MCP Apps 2026-01-26, "UI Resource Format": the URI MUST start with `ui://`.
const PAGES: &str = "ui://";

/// A server's name as part of other names: those who put tools before a model take letters, digits, `_` and `-` alone.
pub(crate) fn prefix(server: &str) -> String {
    let plain =
        |char: char| if char.is_ascii_alphanumeric() || matches!(char, '_' | '-') { char } else { '_' };
    server.chars().map(plain).collect()
}

/// How one server's things are called.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Naming {
    /// As the server calls them: it is alone.
    Plain,
    /// With a prefix before each.
    Prefixed {
        /// Before the name of a tool or a prompt.
        name: String,
        /// Before the address of a resource.
        uri: String,
        /// Before what follows the scheme of a page, the scheme included.
        page: String,
    },
}

impl Naming {
    pub(crate) fn of(server: &str, separator: &str) -> Self {
        let prefix = prefix(server);
        Self::Prefixed {
            uri: format!("{SCHEME}{prefix}/"),
            page: format!("{PAGES}{prefix}/"),
            name: format!("{prefix}{separator}"),
        }
    }

    /// What agents call it.
    pub(crate) fn name(&self, own: &str) -> String {
        match self {
            Self::Plain => own.to_owned(),
            Self::Prefixed { name, .. } => format!("{name}{own}"),
        }
    }

    /// The address that agents know it by.
    pub(crate) fn uri(&self, own: &str) -> String {
        match self {
            Self::Plain => own.to_owned(),
            Self::Prefixed { uri, page, .. } => match own.strip_prefix(PAGES) {
                Some(rest) => format!("{page}{rest}"),
                None => format!("{uri}{own}"),
            },
        }
    }

    /// What the server calls it; `None` if it is not one of its.
    pub(crate) fn own_name<'a>(&self, public: &'a str) -> Option<&'a str> {
        match self {
            Self::Plain => Some(public),
            Self::Prefixed { name, .. } => public.strip_prefix(&**name),
        }
    }

    /// The address that the server knows it by.
    pub(crate) fn own_uri<'a>(&self, public: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::Plain => Some(public.into()),
            Self::Prefixed { uri, page, .. } => match public.strip_prefix(&**page) {
                Some(rest) => Some(format!("{PAGES}{rest}").into()),
                None => public.strip_prefix(&**uri).map(Into::into),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Naming;

    #[test]
    fn names_and_addresses_go_there_and_back() {
        let naming = Naming::of("My Server", "__");
        assert_eq!(naming.name("echo"), "My_Server__echo");
        assert_eq!(naming.own_name("My_Server__a__b"), Some("a__b"));
        assert_eq!(naming.own_name("Other__a"), None);
        let template = naming.uri("file:///{+path}?q={x}#f");
        assert_eq!(template, "linetender://My_Server/file:///{+path}?q={x}#f");
        assert_eq!(naming.own_uri(&template).unwrap(), "file:///{+path}?q={x}#f");
        assert_eq!(Naming::Plain.own_uri("x:y").unwrap(), "x:y");
    }

    #[test]
    fn a_page_keeps_its_scheme_and_finds_back() {
        let naming = Naming::of("a", "__");
        for (own, public) in [
            ("ui://shop/cart.html", "ui://a/shop/cart.html"),
            ("ui://a/cart.html", "ui://a/a/cart.html"),
            ("ui:///cart/{id}", "ui://a//cart/{id}"),
            ("ui://", "ui://a/"),
            ("UI://x", "linetender://a/UI://x"),
        ] {
            assert_eq!(naming.uri(own), public);
            assert_eq!(naming.own_uri(public).unwrap(), own);
        }
        for others in ["ui://ab/x", "ui://a", "ui://b/a/x"] {
            assert_eq!(naming.own_uri(others), None, "{others}");
        }
        assert_eq!(Naming::Plain.uri("ui://x"), "ui://x");
    }
}
