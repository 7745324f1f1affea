//! The files of the web page, which are part of the program.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderName, Response};

use crate::answer::Body;

/// One file.
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    pub(crate) media_type: &'static str,
    text: &'static str,
}

/// All of them. They hold no secrets: a browser cannot show a token before it has the page that asks for it.
pub(crate) const ASSETS: &[Asset] = &[
    Asset { path: "/", media_type: "text/html; charset=utf-8", text: include_str!("../page/index.html") },
    Asset {
        path: "/page.css",
        media_type: "text/css; charset=utf-8",
        text: include_str!("../page/page.css"),
    },
    Asset {
        path: "/page.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../page/page.js"),
    },
];

/// The page runs its own scripts alone, talks to this address alone, and is shown in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn response(asset: &Asset) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from_static(asset.text.as_bytes())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    response
}

/// Puts on every response what keeps browsers from doing more with it than is meant.
pub(crate) fn protect(response: &mut Response<Body>) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::ASSETS;

    /// What the policy forbids would only fail in a browser; and what is told by others must not become HTML.
    #[test]
    fn the_page_has_nothing_inline_nothing_from_elsewhere_and_makes_no_html_of_text() {
        let text = |path: &str| ASSETS.iter().find(|asset| asset.path == path).unwrap().text;
        let (page, script, style) = (text("/"), text("/page.js"), text("/page.css"));
        for inline in ["<style", "style=", "<script>", "onclick", "onload", "javascript:"] {
            assert!(!page.contains(inline), "{inline}");
        }
        for all in [page, script, style] {
            assert!(!all.contains("http://") && !all.contains("https://") && !all.contains("@import"));
        }
        for html in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "localStorage",
        ] {
            assert!(!script.contains(html), "{html}");
        }
    }
}
