//! Numbers and strings: their values, or what is wrong with them.
//!
//! In: one token and its text. Out: a value, or a `SyntaxError`.

use crate::error::{SyntaxError, code};
use crate::span::{FileId, Span};
use crate::token::Token;

/// The value of a run of digits.
pub(crate) fn integer(file: FileId, token: Token, slice: &str) -> Result<i64, Box<SyntaxError>> {
    let span = token.span(file);
    let digits = slice.bytes().take_while(u8::is_ascii_digit).count();
    if digits < slice.len() {
        return Err(Box::new(stuck_letters(span, &slice[..digits], &slice[digits..])));
    }
    slice.parse().map_err(|_| {
        Box::new(SyntaxError {
            code: code::INTEGER_TOO_LARGE,
            title: "integer too large".to_owned(),
            span,
            label: "does not fit in 64 bits".to_owned(),
            help: Some(format!("the largest integer is `{}`", i64::MAX)),
            related: None,
        })
    })
}

fn stuck_letters(span: Span, digits: &str, letters: &str) -> SyntaxError {
    let (label, help) =
        if letters.starts_with('_') && letters.bytes().all(|b| b == b'_' || b.is_ascii_digit()) {
            let plain: String = format!("{digits}{letters}").replace('_', "");
            ("digits are not grouped".to_owned(), format!("write the digits together: `{plain}`"))
        } else if is_unit(letters) {
            (
                "a size has a blank before its unit".to_owned(),
                format!("write the unit apart: `pipeline {digits} {}`", unit(letters)),
            )
        } else if digits == "0" && letters.starts_with(['x', 'X', 'b', 'B', 'o', 'O']) {
            (
                "integers are written in decimal".to_owned(),
                "write it in decimal, or as a shift: `1 << 4`".to_owned(),
            )
        } else {
            (
                "a name begins with a letter".to_owned(),
                format!("to multiply, write the sign: `{digits} * {letters}`"),
            )
        };
    let title = "malformed integer".to_owned();
    SyntaxError { code: code::SYNTAX, title, span, label, help: Some(help), related: None }
}

/// `KiB`, and what others write for it.
fn is_unit(letters: &str) -> bool {
    let lower = letters.to_ascii_lowercase();
    ["kib", "mib", "gib", "kb", "mb", "gb"].contains(&lower.as_str())
        || ["B", "K", "M", "G"].contains(&letters)
}

/// The unit that `letters` mean.
fn unit(letters: &str) -> &'static str {
    match letters.as_bytes().first().map(u8::to_ascii_lowercase) {
        Some(b'k') => "KiB",
        Some(b'm') => "MiB",
        Some(b'g') => "GiB",
        _ => "B",
    }
}

/// What stands between the quotes, escapes resolved.
pub(crate) fn text(file: FileId, token: Token, slice: &str) -> Result<String, Box<SyntaxError>> {
    let inner = &slice[1..slice.len() - 1];
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner.char_indices();
    while let Some((_, c)) = rest.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        // The lexer lets no string end in a lone backslash.
        let Some((at, escaped)) = rest.next() else { break };
        value.push(match escaped {
            '"' | '\\' => escaped,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            _ => {
                let start = token.start as usize + at;
                return Err(Box::new(SyntaxError {
                    code: code::SYNTAX,
                    title: format!("unknown escape `\\{}` in a string", escaped.escape_default()),
                    span: Span::new(file, start, start + 1 + escaped.len_utf8()),
                    label: "not an escape".to_owned(),
                    help: Some(r#"escapes are `\"`, `\\`, `\n`, `\r` and `\t`"#.to_owned()),
                    related: None,
                }));
            }
        });
    }
    Ok(value)
}

/// A string as it is written.
pub(crate) fn quote(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ => text.push(c),
        }
    }
    text.push('"');
    text
}

/// A string that does not end on its line.
pub(crate) fn open_text(file: FileId, token: Token) -> SyntaxError {
    SyntaxError {
        code: code::UNTERMINATED_STRING,
        title: "string without its closing quote".to_owned(),
        span: token.span(file),
        label: "does not end on this line".to_owned(),
        help: Some("close it: `require is_power_of_two(n), \"ranks are paired by one bit\"`".to_owned()),
        related: None,
    }
}

/// A run of characters that belong to no token.
pub(crate) fn unknown(file: FileId, token: Token, slice: &str) -> SyntaxError {
    let first = slice.chars().next().unwrap_or(' ');
    let shown = if slice.chars().any(|c| c.is_control() || c.is_whitespace()) || slice.chars().count() > 12 {
        format!("U+{:04X}", first as u32)
    } else {
        format!("`{slice}`")
    };
    let help = match first {
        '#' => "comments are written `// …`".to_owned(),
        '\'' => "strings stand in double quotes: `\"why\"`".to_owned(),
        '?' | '~' | '$' | '`' | '\\' => format!("`{first}` means nothing in a `.coll` program; take it out"),
        '−' | '–' | '—' => "the minus sign is `-`: `0..n-1`".to_owned(),
        '×' | '·' => "to multiply, write `*`: `i * g + j`".to_owned(),
        '…' => "a range is written with two dots: `0..n`".to_owned(),
        '“' | '”' | '„' | '«' | '»' => "strings stand in plain double quotes: `\"why\"`".to_owned(),
        '≤' | '≥' | '≠' => "comparisons are `<=`, `>=` and `!=`: `r != root`".to_owned(),
        _ if first.is_alphabetic() => {
            "names are made of a to z, A to Z, 0 to 9 and `_`: `delta_1`".to_owned()
        }
        _ if first.is_whitespace() => "use plain spaces: `data @ r`".to_owned(),
        _ => "take it out; outside comments and strings a program is plain ASCII: `data @ q = data @ p`"
            .to_owned(),
    };
    SyntaxError {
        code: code::UNEXPECTED_CHARACTER,
        title: format!("unexpected character {shown}"),
        span: token.span(file),
        label: if slice.chars().count() > 1 { "not part of the language" } else { "means nothing here" }
            .to_owned(),
        help: Some(help),
        related: None,
    }
}
