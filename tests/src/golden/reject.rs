//! Programs that must be refused, and right once their fault is taken out.
//!
//! In: a program's path. Out: all that is wrong with it. A line `//~ fix: TEXT` stands for the line below it when the
//! fault is taken out (several stand for it together; without TEXT it goes); at the end of the file it is a further line.

use std::path::Path;

use compiler::diagnostics::{Diagnostic, Severity};
use compiler::elaborate::Request;
use compiler::pipeline;

use super::accept::{Naive, prints_as_it_parses, rendered, right};
use super::{Failure, Program, snapshot};

const FIX: &[u8] = b"//~ fix:";

/// Tests the file at `path`.
pub fn reject(path: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(path)?;
    let program = Program::new(path, bytes.clone())?;
    let refused = refusal(&program)?;

    let mut wrong = Vec::new();
    let header = &program.header;
    if header.codes.is_empty() || header.codes.len() != header.lines.len() {
        wrong.push("the header names a code and a line for each fault".to_string());
    }
    let codes: Vec<&str> = refused.diagnostics.iter().map(|d| d.code).collect();
    if codes != header.codes {
        wrong.push(format!("refused with {codes:?}, and the header says {:?}", header.codes));
    }
    let lines: Vec<u32> = refused.diagnostics.iter().map(|d| line(&program, d)).collect();
    if lines != header.lines {
        wrong.push(format!("the faults are on lines {lines:?}, and the header says {:?}", header.lines));
    }
    wrong.extend(refused.diagnostics.iter().flat_map(ill_told));
    if let Some(request) = &refused.request {
        // It has no syntax error, so it prints; and what breaks its promise breaks it on numbers, too.
        prints_as_it_parses(&program)?;
        let broken = ["coll::promise", "coll::not_synchronised"];
        if codes.iter().any(|code| broken.contains(code)) {
            let naive = Naive::new(&program);
            let found = [false, true].map(|in_place| naive.keeps(&program, request, in_place));
            if !found.contains(&Ok(false)) {
                wrong.push(format!("the naive executor finds nothing wrong: {found:?}"));
            }
        }
    }
    if let Err(why) = snapshot::compare(path, "diagnostics", &rendered(&program, &refused.diagnostics)) {
        wrong.push(why.0);
    }
    let repaired = repaired(&bytes).ok_or("there is no `//~ fix:` line")?;
    let repaired = Program::new(path, repaired)?;
    if let Err(why) = right(&repaired) {
        wrong.push(format!("without its fault it is not right:\n{}", why.0));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.push(rendered(&program, &refused.diagnostics));
    Err(wrong.join("\n\n").into())
}

/// The program without its fault; nothing if it does not say what that is.
pub fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut found = false;
    // Whether the next line is one that fixes stand for.
    let mut replaced = false;
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        if let Some(fix) = line.trim_ascii_start().strip_prefix(FIX) {
            (found, replaced) = (true, true);
            let fix = fix.trim_ascii();
            if !fix.is_empty() {
                out.extend_from_slice(fix);
                out.push(b'\n');
            }
        } else if !std::mem::take(&mut replaced) {
            out.extend_from_slice(line);
        }
    }
    found.then_some(out)
}

/// Why a program is refused.
struct Refused {
    diagnostics: Vec<Diagnostic>,
    /// For which world; none if it is wrong for all.
    request: Option<Request>,
}

fn refusal(program: &Program) -> Result<Refused, Failure> {
    if !program.loaded.diagnostics.is_empty() {
        return Ok(Refused { diagnostics: program.loaded.diagnostics.clone(), request: None });
    }
    let mut excluded = None;
    let mut proved = 0;
    for request in program.requests(shapes)? {
        match pipeline::compile(
            &program.loaded,
            &request,
            &compiler::options::Options::default(),
            &program.limits,
            &mut |_| {},
        ) {
            Ok(_) => proved += 1,
            Err(pipeline::Failure::Excluded { diagnostic, .. }) => {
                excluded = excluded.or(Some((*diagnostic, request)));
            }
            Err(pipeline::Failure::Wrong(diagnostics)) => {
                return Ok(Refused { diagnostics, request: Some(request) });
            }
        }
    }
    match excluded {
        Some((diagnostic, request)) if proved == 0 => {
            Ok(Refused { diagnostics: vec![diagnostic], request: Some(request) })
        }
        _ => Err("it is accepted".into()),
    }
}

/// The line of the primary label.
fn line(program: &Program, diagnostic: &Diagnostic) -> u32 {
    diagnostic.labels.first().map_or(0, |label| program.loaded.sources.line_column(label.span).0)
}

/// Against the house style: labels under 50 columns, a title that begins small and does not end.
fn ill_told(diagnostic: &Diagnostic) -> Vec<String> {
    let mut faults = Vec::new();
    if diagnostic.severity != Severity::Error {
        faults.push(format!("{} is no error", diagnostic.code));
    }
    if diagnostic.title.starts_with(|c: char| c.is_uppercase()) || diagnostic.title.ends_with('.') {
        faults.push(format!("no fragment: {}", diagnostic.title));
    }
    for label in diagnostic.labels.iter().filter(|label| label.text.chars().count() >= 50) {
        faults.push(format!("a long label: {}", label.text));
    }
    faults
}

/// The shapes tried if the header names none.
fn shapes(levels: usize) -> Vec<Vec<u32>> {
    match levels {
        1 => vec![vec![4]],
        2 => vec![vec![2, 3]],
        _ => vec![vec![2; levels]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_stands_for_the_line_below() {
        let fixed = |text: &str| repaired(text.as_bytes()).map(|out| String::from_utf8(out).expect("UTF-8"));
        assert_eq!(fixed("a\n//~ fix: c\nb\nd\n").as_deref(), Some("a\nc\nd\n"));
        assert_eq!(fixed("a\n  //~ fix:\nb\nd").as_deref(), Some("a\nd"));
        assert_eq!(fixed("//~ fix: a\n//~ fix: b\nc\nd\n").as_deref(), Some("a\nb\nd\n"));
        assert_eq!(fixed("a\n//~ fix: b").as_deref(), Some("a\nb\n"));
        assert_eq!(fixed("a\nb\n"), None);
    }
}
