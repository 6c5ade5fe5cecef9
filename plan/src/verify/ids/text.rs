//! V0, texts: names, excerpts, the span table.
//!
//! In: strings from anywhere. Out: faults for those that are long, or hold characters that move the cursor, colour
//! the terminal or turn the direction of writing. [`clean_text`] makes any string pass, for those who build plans.

use super::{Fault, Faults};
use crate::verify::limits::Limits;

/// `text` as V0 accepts it: trimmed, at most `most` characters (the last of them `…` if it was cut), tabs and other
/// characters that do not print made spaces.
pub fn clean_text(text: &str, most: usize) -> String {
    let printable = |c: char| if is_unprintable(c) { ' ' } else { c };
    let text = text.trim();
    if text.chars().nth(most).is_none() {
        return text.chars().map(printable).collect();
    }
    let kept = text.chars().take(most.saturating_sub(1)).map(printable);
    kept.chain((most > 0).then_some('…')).collect()
}

/// Control characters, line and paragraph separators, and those that turn the direction of writing.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

pub(super) fn check(faults: &mut Faults, limits: &Limits) {
    let plan = faults.plan;
    let header = &plan.header;
    name(faults, limits, || "the algorithm's name".to_string(), &header.algorithm);
    name(faults, limits, || "the collective's name".to_string(), &header.collective);
    for (at, (param, _)) in header.params.iter().enumerate() {
        name(faults, limits, || format!("the name of parameter {at}"), param);
    }
    for (at, buffer) in plan.buffers.iter().enumerate() {
        name(faults, limits, || format!("the name of buffer {at}"), &buffer.name);
    }
    for (at, file) in plan.spans.files.iter().enumerate() {
        name(faults, limits, || format!("the name of source file {at}"), file);
    }
    let files = plan.spans.files.len();
    for (at, span) in plan.spans.spans.iter().enumerate() {
        let what = || format!("the excerpt of span {at}");
        text(faults, what, &span.text);
        if span.text.chars().nth(limits.excerpt_chars).is_some() {
            let why = format!("is longer than {} characters", limits.excerpt_chars);
            faults.add(|| Fault::Text { what: what(), why });
        }
        faults.index(|| format!("the file of span {at}"), u64::from(span.file), files);
        if span.line == 0 || span.column == 0 {
            faults.add(|| Fault::Text {
                what: what(),
                why: "has line or column 0: both count from 1".to_string(),
            });
        }
        if let Some(parent) = span.parent {
            // Smaller numbers only: the chain of parents ends, whatever it is.
            faults.index(|| format!("the parent of span {at}"), u64::from(parent.0), at);
        }
    }
}

fn name(faults: &mut Faults, limits: &Limits, what: impl Fn() -> String, name: &str) {
    text(faults, &what, name);
    if name.len() > limits.name_bytes {
        let why = format!("has {} bytes, more than {}", name.len(), limits.name_bytes);
        faults.add(|| Fault::Text { what: what(), why });
    }
}

fn text(faults: &mut Faults, what: impl Fn() -> String, text: &str) {
    if let Some(c) = text.chars().find(|&c| is_unprintable(c)) {
        let why = format!("holds the unprintable character U+{:04X}", u32::from(c));
        faults.add(|| Fault::Text { what: what(), why });
    }
}
