//! Names and values in a request's address.

/// A segment of a path, as it was before it was written into an address; `None` if it is no text.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, behind @ ..] = behind else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(*high)? * 16 + digit(*low)?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

/// Whether `calls` is asked for; an error says which parameter is not understood.
pub(crate) fn calls(query: Option<&str>) -> Result<bool, String> {
    let mut calls = false;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        calls = match pair {
            "calls=1" | "calls=true" => true,
            "calls=0" | "calls=false" => false,
            other => return Err(other.to_owned()),
        };
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::{calls, decoded};

    #[test]
    fn names_are_decoded_and_nonsense_is_not() {
        assert_eq!(decoded("a%20b%C3%A4+c").as_deref(), Some("a bä+c"));
        for bad in ["%", "%4", "%zz", "%ff", "a%+1"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_calls_can_be_asked_for() {
        assert_eq!((calls(None), calls(Some("")), calls(Some("calls=1"))), (Ok(false), Ok(false), Ok(true)));
        assert!(calls(Some("token=secret")).is_err() && calls(Some("calls")).is_err());
    }
}
