//! Sizes as users write them.
//!
//! In: `8`, `64K`, `64KiB`, `64MiB`, `1G`. Out: bytes. All units are binary, with and without the `i` and the `B`, as in
//! the benchmarks that this field is used to; docs/cli.md says so.

use std::ops::RangeInclusive;

pub(crate) use rcc::convention::show;

/// Sizes from one to another.
pub(crate) fn show_range(sizes: &RangeInclusive<u64>) -> String {
    let least = show(*sizes.start());
    match sizes.end().checked_add(1) {
        Some(beyond) => format!("{least} up to {}", show(beyond)),
        None => format!("{least} and more"),
    }
}

/// Reads a size in bytes.
pub(crate) fn parse(given: &str) -> Result<u64, String> {
    let text = given.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(format!("`{given}` is not a size; sizes look like 8, 64K, 64MiB, 1G"));
    }
    let unit = unit.trim_start().to_ascii_lowercase();
    let prefix = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
    let shift = match (prefix, unit.as_str()) {
        ("", "ib") => None,
        ("", _) => Some(0),
        ("k", _) => Some(10),
        ("m", _) => Some(20),
        ("g", _) => Some(30),
        ("t", _) => Some(40),
        _ => None,
    };
    let shift =
        shift.ok_or_else(|| format!("`{unit}` is not a unit; there are B, K, M, G and T (all binary)"))?;
    let number: Option<u64> = number.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("`{given}` is too large: sizes are below 16 EiB"))
}

#[cfg(test)]
mod tests {
    use super::{parse, show};

    #[test]
    fn sizes_are_binary_in_every_spelling() {
        let k = 1024;
        for (text, wanted) in [
            ("0", 0),
            ("8", 8),
            ("8B", 8),
            ("64K", 64 * k),
            ("64k", 64 * k),
            ("64KB", 64 * k),
            ("64KiB", 64 * k),
            ("64 KiB", 64 * k),
            ("3M", 3 * k * k),
            ("1G", k * k * k),
            ("2TiB", 2 * k * k * k * k),
        ] {
            assert_eq!(parse(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in
            ["", "K", "-1", "1.5M", "8 apples", "iB", "8iB", "99999999999999999999", "16777216T", "1e3"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_sizes_read_back() {
        for bytes in [0, 1, 1000, 1024, 65536, 3 << 20, (1 << 30) + 1, 5 << 40] {
            assert_eq!(parse(&show(bytes)), Ok(bytes));
        }
    }
}
