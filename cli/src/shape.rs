//! World shapes as users write them.
//!
//! In: `8`, `2..64` (both ends included), `4x8`; several by comma or by repeating the option. Out: level sizes, outermost first,
//! in the order written, each once. And back: many shapes in few words, for reports.

use std::fmt::Write;

pub(crate) use rcc::world::{Shape, ranks, show, show_ranks};

/// The most ranks of a world.
pub(crate) const MOST_RANKS: u32 = 1 << 20;

/// The most shapes that one command takes.
const MOST_SHAPES: usize = 4096;

/// What one `--ranks` gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shapes(pub(crate) Vec<Shape>);

/// Reads a list of shapes.
pub(crate) fn parse(given: &str) -> Result<Shapes, String> {
    let mut shapes = Vec::new();
    for part in given.split([',', ' ']).filter(|part| !part.is_empty()) {
        match part.split_once("..") {
            Some((from, to)) => {
                let (from, to) = (level(from, part)?, level(to.strip_prefix('=').unwrap_or(to), part)?);
                if from > to {
                    return Err(format!("`{part}` holds no number of ranks: {from} is more than {to}"));
                }
                if (to - from) as usize >= MOST_SHAPES {
                    return Err(format!("`{part}` holds too many shapes; at most {MOST_SHAPES} at a time"));
                }
                shapes.extend((from..=to).map(|n| vec![n]));
            }
            None => shapes.push(one(part)?),
        }
        if shapes.len() > MOST_SHAPES {
            return Err(format!("these are too many shapes; at most {MOST_SHAPES} at a time"));
        }
    }
    if shapes.is_empty() {
        return Err(format!("`{given}` names no world shape; shapes look like 8, 2..64, 4x8"));
    }
    let mut once: Vec<Shape> = Vec::with_capacity(shapes.len());
    let mut seen = std::collections::BTreeSet::new();
    once.extend(shapes.into_iter().filter(|shape| seen.insert(shape.clone())));
    Ok(Shapes(once))
}

/// Reads exactly one shape.
pub(crate) fn parse_one(given: &str) -> Result<Shape, String> {
    let Shapes(mut shapes) = parse(given)?;
    match shapes.len() {
        1 => Ok(shapes.remove(0)),
        count => Err(format!("`{given}` names {count} world shapes; one is wanted here")),
    }
}

/// Many shapes in few words: `2..4, 8, 2x2`. Neighbours of one level are joined.
pub(crate) fn show_all(shapes: &[Shape]) -> String {
    let mut text = String::new();
    let mut rest = shapes;
    while let Some((first, _)) = rest.split_first() {
        let neighbours =
            |w: &[Shape]| w[0].len() == 1 && w[1].len() == 1 && w[0][0].checked_add(1) == Some(w[1][0]);
        let run = 1 + rest.windows(2).take_while(|w| neighbours(w)).count();
        let separator = if text.is_empty() { "" } else { ", " };
        // Two neighbours are easier to read one by one.
        let taken = if run > 2 {
            let _ = write!(text, "{separator}{}..{}", first[0], rest[run - 1][0]);
            run
        } else {
            let _ = write!(text, "{separator}{}", show(first));
            1
        };
        rest = &rest[taken..];
    }
    text
}

fn one(part: &str) -> Result<Shape, String> {
    let shape: Shape = part.split(['x', 'X', '×']).map(|text| level(text, part)).collect::<Result<_, _>>()?;
    let total = shape.iter().try_fold(1u32, |total, &size| total.checked_mul(size));
    match total {
        Some(total) if total <= MOST_RANKS => Ok(shape),
        _ => Err(format!("`{part}` is too large: a world has at most {MOST_RANKS} ranks")),
    }
}

fn level(text: &str, part: &str) -> Result<u32, String> {
    let wrong =
        || format!("`{part}` is not a world shape; shapes look like 8, 2..64 (both ends included), 4x8");
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    match text.parse::<u32>() {
        Ok(0) => Err(format!("`{part}`: a world has at least one rank")),
        Ok(size) if size <= MOST_RANKS => Ok(size),
        _ => Err(format!("`{part}` is too large: a world has at most {MOST_RANKS} ranks")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Shapes, parse, parse_one, show_all};

    #[test]
    fn shapes_read_as_documented() {
        assert_eq!(parse("8"), Ok(Shapes(vec![vec![8]])));
        assert_eq!(parse("2..4"), Ok(Shapes(vec![vec![2], vec![3], vec![4]])));
        assert_eq!(parse("4x8,1x1"), Ok(Shapes(vec![vec![4, 8], vec![1, 1]])));
        assert_eq!(parse("1x1 2x3"), Ok(Shapes(vec![vec![1, 1], vec![2, 3]])));
        assert_eq!(parse("2x3x4"), Ok(Shapes(vec![vec![2, 3, 4]])));
        assert_eq!(parse("3,2..4,3"), Ok(Shapes(vec![vec![3], vec![2], vec![4]])));
        assert_eq!(parse_one("4x8"), Ok(vec![4, 8]));
        assert!(parse_one("2..3").is_err());
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        for text in
            ["", ",", "0", "-1", "x", "4x", "x4", "2x0", "5..2", "a..b", "..", "2..", "1.5", "4y8", "1...3"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["1..4000000000", "4000000000", "65536x65536", "1048577", "1..1000000"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reports_are_short_and_read_back() {
        for text in ["2..16", "2, 4, 8, 16", "1x1, 2x3", "2, 3, 5..7", "1..3, 2x2"] {
            let Shapes(shapes) = parse(text).unwrap();
            assert_eq!(show_all(&shapes), text);
        }
    }
}
