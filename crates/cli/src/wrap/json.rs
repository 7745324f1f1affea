//! JSON, with the comments and trailing commas that most agents allow.

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::error::Syntax;
use super::tree::{Member, Node, Style, Value};

/// What no agent reads, we do not either: a file that only we understand would be broken for its owner.
const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The tree of a text. The parser ends at 512 levels of nesting, and so does the recursion here.
pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &DIALECT)
        .map_err(|error| Syntax::at(text, error.range().start, &error.kind().to_string()))?;
    let empty = Node { span: 0..text.len(), value: Value::Other };
    Ok(parsed.value.as_ref().map_or(empty, node))
}

fn node(ast: &Ast<'_>) -> Node {
    let range = ast.range();
    let value = match ast {
        Ast::StringLit(text) => Value::Text(text.value.to_string()),
        Ast::BooleanLit(bool) => Value::Bool(bool.value),
        Ast::Array(array) => Value::List(array.elements.iter().map(node).collect()),
        Ast::Object(object) => Value::Table(
            object
                .properties
                .iter()
                .map(|property| Member {
                    key: property.name.as_str().to_owned(),
                    key_span: key_span(&property.name),
                    value: node(&property.value),
                    style: Style::Json,
                })
                .collect(),
        ),
        Ast::NumberLit(_) | Ast::NullKeyword(_) => Value::Other,
    };
    Node { span: range.start..range.end, value }
}

fn key_span(name: &ObjectPropName<'_>) -> std::ops::Range<usize> {
    let range = name.range();
    range.start..range.end
}
