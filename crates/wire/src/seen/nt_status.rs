//! How processes crash on Windows.

/// The names people know.
pub(super) const fn name(code: u32) -> Option<&'static str> {
    Some(match code {
        0x8000_0003 => "breakpoint",
        0xc000_0005 => "access violation",
        0xc000_001d => "illegal instruction",
        0xc000_0094 => "integer division by zero",
        0xc000_00fd => "stack overflow",
        0xc000_0135 => "a DLL was not found",
        0xc000_013a => "Ctrl-C or Ctrl-Break",
        0xc000_0142 => "a DLL could not be initialized",
        0xc000_0374 => "heap corruption",
        0xc000_0409 => "abort or stack buffer overrun",
        _ => return None,
    })
}
