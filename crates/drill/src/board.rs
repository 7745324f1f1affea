//! The scoreboard: what a drill came to, for people.
//!
//! One results file in, one page and one Markdown file out, both from the same digest, so that they cannot disagree. Names,
//! settings and errors are other people's text; nothing of it reaches a page but through `html.rs`, or Markdown but through
//! `markdown.rs`.

mod better;
mod charts;
mod digest;
mod fleet;
mod html;
mod markdown;
mod matrix;
mod page;
mod rounded;
mod tables;
#[cfg(test)]
mod tests;
mod times;
mod words;

pub use markdown::markdown;
pub use page::page;
pub use rounded::rounded;
