//! Looking for many values at once.
//!
//! All of them have eight bytes at least, so one number of eight bytes tells at each place of a text whether any could
//! begin there. A small table of bits answers that for nearly every place; the rest is looked up.

use std::collections::HashMap;
use std::ops::Range;

/// How many bytes are looked at first.
const WINDOW: usize = 8;

/// How many bits the table has, as a power of two.
const BITS: u32 = 16;

pub(super) struct Matcher {
    /// The values, by how they begin; those of one beginning with the longest first.
    by_beginning: HashMap<u64, Vec<Box<[u8]>>>,
    /// A bit for each beginning that there is, and by chance for a few others.
    maybe: Box<[u64]>,
}

impl Matcher {
    /// Values that are shorter than the window are left out.
    pub(super) fn new(values: impl Iterator<Item = Vec<u8>>) -> Self {
        let mut by_beginning: HashMap<u64, Vec<Box<[u8]>>> = HashMap::new();
        let mut maybe = vec![0; (1 << BITS) / 64].into_boxed_slice();
        for value in values {
            let Some(first) = value.first_chunk::<WINDOW>() else { continue };
            let window = u64::from_be_bytes(*first);
            let (word, bit) = place(window);
            maybe[word] |= bit;
            by_beginning.entry(window).or_default().push(value.into());
        }
        for values in by_beginning.values_mut() {
            values.sort_by_key(|value| std::cmp::Reverse(value.len()));
            values.dedup();
        }
        Self { by_beginning, maybe }
    }

    /// Where they are, in order; what overlaps or touches is one place.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let Some(first) = text.first_chunk::<WINDOW>() else { return found };
        let mut window = u64::from_be_bytes(*first);
        for start in 0..=text.len() - WINDOW {
            if start > 0 {
                window = window << 8 | u64::from(text[start + WINDOW - 1]);
            }
            let (word, bit) = place(window);
            if self.maybe[word] & bit == 0 {
                continue;
            }
            let values = self.by_beginning.get(&window).map(Vec::as_slice).unwrap_or_default();
            let Some(value) = values.iter().find(|value| text[start..].starts_with(value)) else { continue };
            let end = start + value.len();
            match found.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ => found.push(start..end),
            }
        }
        found
    }
}

/// The word and the bit of a window.
const fn place(window: u64) -> (usize, u64) {
    // Fibonacci hashing: the upper bits of the product depend on all of the window.
    let hash = window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS);
    ((hash / 64) as usize, 1 << (hash % 64))
}
