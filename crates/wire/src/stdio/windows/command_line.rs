//! Arguments as one line of text, which every program takes apart by itself.
//!
//! Ordinary programs do that by the rules of Microsoft's C library. A batch file (`npx.cmd`) is run by `cmd.exe`, which has rules of
//! its own and runs commands that it finds in an argument which is not quoted for it (CVE-2024-24576).

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use crate::windows::wide::units;

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;
const PERCENT: u16 = b'%' as u16;
const SPACE: u16 = b' ' as u16;

/// What `cmd.exe` leaves alone outside quotes, beside letters and digits.
const HARMLESS: &[u8] = b"#$*+-./:?@\\_";

/// How `cmd.exe` is to run a script: with extensions (the spelling of `%` needs them), without delayed expansion (`!`), and without what
/// the registry wants to be run first.
const CMD: &str = "cmd.exe /e:ON /v:OFF /d /c \"";

/// An empty piece of a variable that is always there: `%cd:~,%`. Behind the `%` of an argument it keeps `cmd.exe` from taking what
/// follows for the name of a variable, and leaves one `%`.
const NOT_A_VARIABLE: &str = "%cd:~,%";

/// The line for a program.
///
/// # Errors
/// If there is a zero in it.
pub(super) fn of_program(program: &OsStr, args: &[OsString]) -> io::Result<Vec<u16>> {
    // The first one is taken apart without escapes: quotes begin and end it, and no file has one in its name.
    let mut line = vec![QUOTE];
    line.extend(units(program)?.into_iter().filter(|unit| *unit != QUOTE));
    line.push(QUOTE);
    for arg in args {
        let arg = units(arg)?;
        line.push(SPACE);
        let quoted = arg.is_empty() || arg.iter().any(|unit| matches!(u8::try_from(*unit), Ok(b' ' | b'\t')));
        add(&mut line, &arg, quoted, |line, backslashes, unit| {
            if unit == QUOTE {
                // Each backslash before a quote is written twice, and one more keeps the quote from being one.
                line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
            }
            line.push(unit);
        });
    }
    line.push(0);
    Ok(line)
}

/// The line for `cmd.exe`, which runs a batch file.
///
/// # Errors
/// If an argument cannot be spelt so that the script gets it, and nothing but the script is run.
pub(super) fn of_batch(script: &Path, args: &[OsString]) -> io::Result<Vec<u16>> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let script = units(script.as_os_str())?;
    if script.contains(&QUOTE) || script.contains(&PERCENT) || script.last() == Some(&BACKSLASH) {
        return refused("the path of a batch file may not contain \" or %");
    }
    let mut line: Vec<u16> = CMD.encode_utf16().collect();
    line.push(QUOTE);
    line.extend(script);
    line.push(QUOTE);
    for arg in args {
        let arg = units(arg)?;
        if arg.iter().any(|unit| matches!(u8::try_from(*unit), Ok(b'\r' | b'\n'))) {
            return refused("a batch file cannot be given an argument with a line break");
        }
        line.push(SPACE);
        // A backslash at the end would keep a quote of the script's own, in `"%~1"`, from being one.
        let quoted =
            arg.is_empty() || arg.last() == Some(&BACKSLASH) || !arg.iter().copied().all(is_harmless);
        add(&mut line, &arg, quoted, |line, backslashes, unit| match unit {
            // For `cmd.exe` two quotes are one that ends nothing, and for most programs too.
            QUOTE => {
                line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
                line.extend([QUOTE, QUOTE]);
            }
            PERCENT => {
                line.push(PERCENT);
                line.extend(NOT_A_VARIABLE.encode_utf16());
            }
            unit => line.push(unit),
        });
    }
    line.extend([QUOTE, 0]);
    Ok(line)
}

fn is_harmless(unit: u16) -> bool {
    match u8::try_from(unit) {
        Ok(ascii @ ..=0x7f) => ascii.is_ascii_alphanumeric() || HARMLESS.contains(&ascii),
        // Control characters, the second set.
        Ok(0x80..=0x9f) => false,
        Ok(_) | Err(_) => true,
    }
}

/// Adds an argument. `escape` writes a unit, and is told how many backslashes are before it.
fn add(line: &mut Vec<u16>, arg: &[u16], quoted: bool, escape: impl Fn(&mut Vec<u16>, usize, u16)) {
    if quoted {
        line.push(QUOTE);
    }
    let mut backslashes = 0;
    for unit in arg {
        escape(line, backslashes, *unit);
        backslashes = if *unit == BACKSLASH { backslashes + 1 } else { 0 };
    }
    if quoted {
        // They would keep the quote behind them from being one.
        line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
        line.push(QUOTE);
    }
}

#[cfg(test)]
mod tests {
    use super::{of_batch, of_program};
    use std::ffi::{OsStr, OsString};
    use std::path::Path;

    fn text(line: &[u16]) -> String {
        String::from_utf16(line.strip_suffix(&[0]).unwrap()).unwrap()
    }

    fn args(args: &[&str]) -> Vec<OsString> {
        args.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_program_gets_its_arguments_by_the_rules_of_the_c_library() {
        for (arg, spelt) in [
            ("plain", "plain"),
            ("", r#""""#),
            ("a b", r#""a b""#),
            (r"C:\dir\", r"C:\dir\"),
            (r"C:\a dir\", r#""C:\a dir\\""#),
            (r#"say "hi""#, r#""say \"hi\"""#),
            (r#"\""#, r#"\\\""#),
            ("é&|%PATH%", "é&|%PATH%"),
        ] {
            let line = of_program(OsStr::new(r"C:\a b\x"), &args(&[arg])).unwrap();
            assert_eq!(text(&line), format!(r#""C:\a b\x" {spelt}"#));
        }
        assert!(of_program(OsStr::new("x"), &args(&["a\0b"])).is_err());
    }

    #[test]
    fn a_batch_file_gets_arguments_in_which_nothing_is_a_command() {
        for (arg, spelt) in [
            ("-y", "-y"),
            ("@scope/server@1.2", "@scope/server@1.2"),
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("&calc.exe", r#""&calc.exe""#),
            (r#""&calc.exe"#, r#""""&calc.exe""#),
            (r#"\"&calc"#, r#""\\""&calc""#),
            ("%PATH%", r#""%%cd:~,%PATH%%cd:~,%""#),
            ("a^b!c", r#""a^b!c""#),
            ("trailing\\", r#""trailing\\""#),
            ("é", "é"),
            ("{\"a\":1}", r#""{""a"":1}""#),
        ] {
            let line = of_batch(Path::new(r"C:\a b\npx.cmd"), &args(&[arg])).unwrap();
            let whole = format!(r#"cmd.exe /e:ON /v:OFF /d /c ""C:\a b\npx.cmd" {spelt}""#);
            assert_eq!(text(&line), whole);
        }
    }

    #[test]
    fn what_cannot_be_spelt_for_a_batch_file_is_refused() {
        for arg in ["a\nb", "a\rb", "a\0b"] {
            assert!(of_batch(Path::new("x.cmd"), &args(&[arg])).is_err(), "{arg:?}");
        }
        for script in [r#"a".cmd"#, "%PATH%.cmd", "dir\\"] {
            assert!(of_batch(Path::new(script), &[]).is_err(), "{script}");
        }
    }
}
