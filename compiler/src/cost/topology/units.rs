//! Quantities as users write them: `0.6us`, `450GB/s`, `512KiB`.
//!
//! In: a string or a plain number. Out: seconds, bytes per second or bytes, as `f64`, never negative nor more than any
//! machine could mean. Units of bandwidth are decimal (`GB/s`) or binary (`GiB/s`), as written; so are sizes.

use serde::Deserialize;

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub(super) struct Seconds(pub f64);

/// Bytes per second, more than 0.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub(super) struct Rate(pub f64);

/// Bytes, more than 0.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub(super) struct Bytes(pub u64);

/// What stands in the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Raw {
    Integer(i64),
    Float(f64),
    Text(String),
}

const MOST_SECONDS: f64 = 1e3;
const MOST_RATE: f64 = 1e18;

impl TryFrom<Raw> for Seconds {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Seconds, String> {
        let units = [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)];
        let value = quantity(&raw, &units, "a time such as \"0.6us\"")?;
        if value > MOST_SECONDS {
            return Err(format!("{} is too long: at most {MOST_SECONDS} s", shown(&raw)));
        }
        Ok(Seconds(value))
    }
}

impl TryFrom<Raw> for Rate {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Rate, String> {
        let units = [
            ("B/s", 1.0),
            ("kB/s", 1e3),
            ("KB/s", 1e3),
            ("MB/s", 1e6),
            ("GB/s", 1e9),
            ("TB/s", 1e12),
            ("KiB/s", 1024.0),
            ("MiB/s", 1024.0 * 1024.0),
            ("GiB/s", 1024.0 * 1024.0 * 1024.0),
            ("Gb/s", 1e9 / 8.0),
            ("Gbit/s", 1e9 / 8.0),
        ];
        let value = quantity(&raw, &units, "a bandwidth such as \"450GB/s\"")?;
        if !(1.0..=MOST_RATE).contains(&value) {
            return Err(format!("{} is no bandwidth: it must lie between 1 B/s and 1e18 B/s", shown(&raw)));
        }
        Ok(Rate(value))
    }
}

impl TryFrom<Raw> for Bytes {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Bytes, String> {
        let units = [
            ("B", 1.0),
            ("kB", 1e3),
            ("KB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1024.0 * 1024.0),
            ("GiB", 1024.0 * 1024.0 * 1024.0),
        ];
        let value = quantity(&raw, &units, "a size such as \"512KiB\"")?;
        if !(1.0..=1e15).contains(&value) || value.fract() != 0.0 {
            return Err(format!(
                "{} is no size: it must be a whole number of bytes, at least 1",
                shown(&raw)
            ));
        }
        Ok(Bytes(value as u64))
    }
}

fn quantity(raw: &Raw, units: &[(&str, f64)], wanted: &str) -> Result<f64, String> {
    let value = match raw {
        Raw::Integer(value) => *value as f64,
        Raw::Float(value) => *value,
        Raw::Text(text) => {
            let text = text.trim();
            let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
            let end = text.find(|c| !number(c)).unwrap_or(text.len());
            let (digits, unit) = text.split_at(end);
            let digits: f64 = digits.parse().map_err(|_| format!("{} is not {wanted}", shown(raw)))?;
            let unit = unit.trim_start();
            let known = units.iter().find(|(name, _)| *name == unit);
            let Some((_, factor)) = known else {
                let known: Vec<_> = units.iter().map(|(name, _)| *name).collect();
                return Err(format!("`{unit}` is not a unit here; there are {}", known.join(", ")));
            };
            digits * factor
        }
    };
    if !value.is_finite() || value < 0.0 {
        return Err(format!("{} is negative or no number: {wanted} is wanted", shown(raw)));
    }
    Ok(value)
}

fn shown(raw: &Raw) -> String {
    match raw {
        Raw::Integer(value) => value.to_string(),
        Raw::Float(value) => value.to_string(),
        Raw::Text(text) => format!("`{}`", text.escape_debug()),
    }
}
