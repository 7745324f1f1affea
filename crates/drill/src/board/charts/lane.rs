//! A lane: a target's name, and a drawing as wide as the rest.

use super::super::html::Html;
use crate::results::Target;

/// A drawing with a name, in words for those who do not see it.
pub(super) fn lane(html: &mut Html, target: &Target, height: u32, words: &str, draw: impl FnOnce(&mut Html)) {
    let class = if target.ours { "lane ours" } else { "lane" };
    html.within("div", &[("class", &class)], |html| {
        html.within("div", &[("class", &"who")], |html| {
            html.text(&target.name).raw(" ").put("small", &[], &target.version);
        });
        html.within("svg", &[("role", &"img"), ("width", &"100%"), ("height", &height)], |html| {
            html.put("title", &[], format_args!("{}: {words}", target.name));
            draw(html);
        });
    });
}

/// The lane below all others, with the axis.
pub(super) fn foot(html: &mut Html, draw: impl FnOnce(&mut Html)) {
    html.within("div", &[("class", &"lane foot"), ("aria-hidden", &"true")], |html| {
        html.raw("<div class=\"who\"></div>");
        html.within("svg", &[("width", &"100%"), ("height", &20)], draw);
    });
}

/// What a colour or a shape stands for. The class colours both the sign here and the marks in the drawing.
pub(super) fn legend(html: &mut Html, signs: &[(&'static str, &'static str)]) {
    html.within("ul", &[("class", &"legend")], |html| {
        for (class, words) in signs {
            html.within("li", &[], |html| {
                html.within("i", &[("class", class)], |_| ()).text(words);
            });
        }
    });
}
