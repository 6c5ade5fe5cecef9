//! Where text goes: results to standard output, everything else to standard error, decoration to terminals only.
//!
//! In: text. Out: bytes. The environment is read here, once (terminal or not, its width, `NO_COLOR`, the locale's
//! character set); everyone else is handed an [`Output`].

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compiler::diagnostics::Diagnostic;
use compiler::diagnostics::render::{Style, render};
use compiler::source::Sources;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;
use crate::said::{Failed, Said};

/// Standard output and standard error as this process found them.
pub(crate) struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    /// How diagnostics look.
    style: Style,
    /// Whether results may be coloured.
    color: bool,
    /// Whether standard error is a terminal: progress is shown.
    interactive: bool,
    /// Whether the JSON document of this command has been written.
    answered: bool,
    /// The diagnostics that were drawn.
    said: Vec<Said>,
}

/// A colour of the terminal's own palette.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    /// Right.
    Green,
    /// Wrong.
    Red,
    /// To be noticed.
    Bold,
    /// Of less weight.
    Dim,
}

impl Output {
    /// Looks at the environment.
    pub(crate) fn new() -> Output {
        let terminal = io::stderr().is_terminal();
        // What is not text is still set.
        let variable = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(|value| value.to_string_lossy().into_owned())
        };
        let plain = variable("NO_COLOR").is_some() || variable("TERM").as_deref() == Some("dumb");
        // Only the character set of the locale says whether lines can be drawn; a pipe or a file is UTF-8.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default();
        let utf8 = locale.to_ascii_lowercase().replace('-', "").contains("utf8");
        let width = if terminal { terminal_width() } else { None };
        Output {
            stdout: BufWriter::new(io::stdout().lock()),
            style: Style {
                color: terminal && !plain,
                width: width.unwrap_or(80).clamp(40, 120),
                unicode: !terminal || utf8,
            },
            color: io::stdout().is_terminal() && !plain,
            interactive: terminal && variable("TERM").as_deref() != Some("dumb"),
            answered: false,
            said: Vec::new(),
        }
    }

    /// Writes a result.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    /// Writes what need not be text.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout.write_all(bytes).map_err(|error| write_failure(&error))
    }

    /// Writes a result and ends the line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.text(text)?;
        self.text("\n")
    }

    /// Writes the one JSON document of this command.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::Machine(format!("cannot write the result as JSON: {error}")))?;
        self.answered = true;
        self.line(&text)
    }

    /// Writes the JSON document of a command that failed, unless it has written what it found.
    pub(crate) fn json_failure(&mut self, failure: &Failure) {
        if !self.answered && !matches!(failure, Failure::OutputClosed) {
            let document = Failed::new(failure, std::mem::take(&mut self.said));
            // If standard output cannot be written to, standard error tells what happened.
            let _ = self.json(&document);
        }
    }

    /// Hands everything written so far to the system.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(|error| write_failure(&error))
    }

    /// Says something that is not a result. If standard error is closed, there is nobody to tell.
    pub(crate) fn note(&mut self, text: &str) {
        // What was found so far comes before what is said about it where both go to one terminal.
        let _ = self.stdout.flush();
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Draws diagnostics.
    pub(crate) fn diagnostic(&mut self, diagnostic: &Diagnostic, sources: &Sources) {
        self.said.push(Said::new(diagnostic, sources));
        let _ = self.stdout.flush();
        let _ = writeln!(io::stderr(), "{}", render(diagnostic, sources, self.style));
    }

    /// Colours a result.
    pub(crate) fn paint(&self, text: &str, paint: Paint) -> String {
        let code = match paint {
            Paint::Green => "32",
            Paint::Red => "31;1",
            Paint::Bold => "1",
            Paint::Dim => "2",
        };
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A bar of `total` pieces of work; on a terminal only, and only if it takes long enough to be seen.
    pub(crate) fn progress(&self, total: u64, doing: &'static str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} ({eta})") {
            bar.set_style(style);
        }
        bar.set_message(doing);
        Progress { bar, shown: AtomicBool::new(!self.interactive), start: Instant::now() }
    }

    /// Says on a terminal that work is being done, until it is dropped.
    pub(crate) fn busy(&self, doing: &'static str) -> Busy {
        if !self.interactive {
            return Busy(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner();
        bar.set_message(doing);
        bar.enable_steady_tick(Duration::from_millis(100));
        Busy(bar)
    }
}

/// A bar; gone when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Whether it is drawn already, or never will be.
    shown: AtomicBool,
    start: Instant,
}

impl Progress {
    /// Another piece is done; from any thread.
    pub(crate) fn advance(&self) {
        let long = self.start.elapsed() > Duration::from_millis(400);
        if long && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A spinner; gone when it is dropped.
pub(crate) struct Busy(ProgressBar);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn write_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Machine(format!("cannot write to standard output: {}", crate::failure::plain(error))),
    }
}

fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(columns, _)| columns.0 as usize)
}
