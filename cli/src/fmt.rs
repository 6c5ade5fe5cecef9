//! `rcc fmt`: files in the canonical layout.
//!
//! In: files. Out: the files rewritten whole or not at all, or with `--check` a list of those that would be. A file is
//! only rewritten if the new text reads back as the same program with the same comments; a fault of the printer
//! must never cost anybody a line.

use std::path::Path;

use compiler::diagnostics::syntax::syntax;
use compiler::source::Sources;
use grammar::ParseLimits;
use grammar::eq_modulo_spans;
use grammar::print::print;

use crate::args;
use crate::atomic;
use crate::failure::Failure;
use crate::output::Output;
use crate::target;

/// Runs the command.
pub(crate) fn run(args: &args::Fmt, output: &mut Output) -> Result<(), Failure> {
    let mut worst = None;
    for path in &args.files {
        // Every file gets its turn; the worst outcome decides the status.
        match one(path, args.check, output) {
            Ok(()) => {}
            Err(Failure::OutputClosed) => return Err(Failure::OutputClosed),
            Err(failure) => {
                if !matches!(failure, Failure::Wrong) {
                    output.note(&failure.to_string());
                }
                let status = |failure: &Failure| failure.status();
                if worst.as_ref().is_none_or(|worst| status(worst) < status(&failure)) {
                    worst = Some(failure);
                }
            }
        }
    }
    match worst {
        None => Ok(()),
        Some(Failure::Wrong) => Err(Failure::Wrong),
        Some(told) => Err(Failure::Told(told.status())),
    }
}

fn one(path: &Path, check: bool, output: &mut Output) -> Result<(), Failure> {
    let standard = path.as_os_str() == "-";
    let bytes = target::read(path)?;
    let name = if standard { target::STDIN.to_string() } else { path.display().to_string() };
    let laid_out = lay_out(&name, &bytes, output)?;
    let same = laid_out.as_bytes() == bytes;
    match (check, standard) {
        (true, _) if same => Ok(()),
        (true, _) => {
            output.line(&name)?;
            Err(Failure::Wrong)
        }
        (false, true) => output.text(&laid_out),
        (false, false) if same => Ok(()),
        (false, false) => atomic::write(path, laid_out.as_bytes()),
    }
}

/// The canonical layout of a text.
fn lay_out(name: &str, bytes: &[u8], output: &mut Output) -> Result<String, Failure> {
    let mut sources = Sources::default();
    let file = sources.add(name, String::from_utf8_lossy(bytes));
    let parsed = grammar::parse_bytes(file, bytes, &ParseLimits::default());
    if !parsed.errors.is_empty() {
        for error in &parsed.errors {
            output.diagnostic(&syntax(error), &sources);
        }
        return Err(Failure::Wrong);
    }
    let laid_out = print(&parsed.file);
    let again = grammar::parse(file, &laid_out, &ParseLimits::default());
    let comments =
        |file: &grammar::ast::File| file.comments.iter().map(|c| c.text.clone()).collect::<Vec<_>>();
    let same = again.errors.is_empty()
        && eq_modulo_spans(&again.file, &parsed.file)
        && comments(&again.file) == comments(&parsed.file);
    if same {
        Ok(laid_out)
    } else {
        Err(Failure::Machine(format!(
            "the new layout of {name} would not read back as the same program: nothing was written; please report this"
        )))
    }
}
