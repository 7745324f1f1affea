//! Text from elsewhere, as a terminal may show it.

/// Spells out what a terminal would obey or what would change how the rest reads: control characters (line breaks too), and
/// marks of direction.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if is_obeyed(char) {
            shown.extend(char.escape_unicode());
        } else {
            shown.push(char);
        }
    }
    shown
}

/// Whether a terminal does something else with it than show it.
pub(crate) fn is_obeyed(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        let shown = super::plain("a\u{1b}[31m\u{7}\n\u{9b}b\u{202e}c\u{2028}é漢");
        assert_eq!(shown, r"a\u{1b}[31m\u{7}\u{a}\u{9b}b\u{202e}c\u{2028}é漢");
    }
}
