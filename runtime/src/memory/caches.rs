//! How large the processor's caches are.
//!
//! In: what the system says of the first CPU. Out: bytes of its last cache.

use std::fs;

/// Where the system does not say: what small servers have.
const USUAL: u64 = 32 << 20;

/// Bytes of the largest cache of the first CPU, which others may share.
pub fn last() -> u64 {
    let sizes = (0..8).map_while(|index| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()
    });
    sizes.filter_map(|size| bytes(size.trim()).filter(|&bytes| bytes > 0)).max().unwrap_or(USUAL)
}

/// Of `512K` or `32M`.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_the_system_writes_them() {
        assert_eq!(bytes("48K"), Some(48 << 10));
        assert_eq!(bytes("32768K"), Some(32 << 20));
        assert_eq!(bytes("32M"), Some(32 << 20));
        assert_eq!(bytes("64"), Some(64));
        assert_eq!(bytes("1G"), Some(1 << 30));
        assert_eq!([bytes("K"), bytes(""), bytes("1T"), bytes("99999999999999999999")], [None; 4]);
        assert!(last() >= 1 << 10);
    }
}
