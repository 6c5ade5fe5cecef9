//! `rcc tune`: measures candidates on this machine, and writes down which are the fastest.
//!
//! In: collectives, numbers of ranks, sizes. Out: a tuning file, by which selection goes, and a table of what was found.
//!
//! The one hard idea: times on a machine drift, so candidates are measured in turn, in several rounds: what is compared was measured side
//! by side, and a candidate's time is the median of its rounds. Ranks are processes, as in programs; what calls cost whoever writes
//! their inputs next counts as much as what they take where inputs stay.

mod cells;
mod measure;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use compiler::limits::Limits;
use compiler::pipeline;
use rcc::select::tuning::{Entry, Row, Tuning};
use rcc::select::{Ask, Selection, Unselected};
use rcc::settings;

use self::cells::{Cell, cells};
use crate::args;
use crate::atomic;
use crate::call::stop_signals;
use crate::compile::not_made;
use crate::failure::Failure;
use crate::output::{Output, Paint};
use crate::size;

/// Algorithms of a cell that are measured.
const MOST: [usize; 2] = [6, 3];

/// Runs the command.
pub(crate) fn run(args: &args::Tune, output: &mut Output) -> Result<(), Failure> {
    let place = match &args.output {
        Some(path) => path.clone(),
        None => settings::tuning_place().ok_or_else(|| {
            Failure::usage_help("there is no home folder to write to", "name a file, as in -o tuning.toml")
        })?,
    };
    let known = known(&place, output);
    let cells = cells(args)?;
    let within = args.within.unwrap_or(Duration::from_secs(if args.quick { 120 } else { 1800 }));
    let rounds = args.rounds.unwrap_or(if args.quick { 3 } else { 5 });
    output.note(&format!(
        "measuring {} calls, {rounds} rounds of each: at most {} s, and what has begun by then (--within, --quick)",
        cells.len(),
        within.as_secs()
    ));
    tell_classes(args, &cells, output);
    let loaded = pipeline::load(&[], &Limits::default());
    let selection = Selection::only(rcc::machine::here(), Vec::new());
    let most = MOST[usize::from(args.quick)];
    let stop = stop_signals()?;
    let began = Instant::now();
    let progress = output.progress(cells.len() as u64, "measuring");
    let mut rows: Vec<Row> = Vec::new();
    let mut left = 0;
    let mut failed = None;
    titles(output)?;
    for cell in &cells {
        if began.elapsed() >= within {
            left += 1;
            continue;
        }
        let candidates = selection.candidates(&loaded, &cell.ask, most).map_err(|why| match why {
            Unselected::NotMade(why) => not_made(why, &loaded, output),
            Unselected::Runtime(error) => Failure::Machine(error.to_string()),
        });
        let measured = candidates.and_then(|candidates| {
            if candidates.is_empty() {
                let Ask { collective, ranks, bytes, .. } = cell.ask;
                let message =
                    format!("no algorithm serves {collective} of {} among {ranks} ranks", size::show(bytes));
                return Err(Failure::Machine(message));
            }
            measure::measure(cell, candidates, rounds, &stop)
        });
        match measured {
            Ok(row) => {
                tell(&row, output)?;
                rows.push(row);
            }
            // What was measured before is still worth keeping.
            Err(failure) => {
                failed = Some(failure);
                break;
            }
        }
        progress.advance();
    }
    drop(progress);
    if left > 0 {
        output.note(&format!("note: time is up: {left} calls were not measured (--within)"));
    }
    if !rows.is_empty() {
        let tuning = joined(known, rows);
        write(&place, &tuning)?;
        output.line(&format!("written to {}: {} calls", place.display(), tuning.rows.len()))?;
        if args.output.is_some() {
            output.note(&format!("note: programs read it with RCC_TUNING={}", place.display()));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Says which sizes are measured in place of those that were named.
fn tell_classes(args: &args::Tune, cells: &[Cell], output: &mut Output) {
    for &bytes in &args.bytes {
        let asked = cells.iter().find(|cell| cell.ask.asked_by().contains(&bytes));
        let Some(Cell { ask, .. }) = asked.filter(|cell| cell.ask.bytes != bytes) else { continue };
        let all = size::show_range(&ask.planned_for());
        let (named, measured) = (size::show(bytes), size::show(ask.bytes));
        output
            .note(&format!("note: {named} is measured as {measured}, which calls of {all} are selected for"));
    }
}

/// What was measured here before, of which calls that are not measured now stay.
fn known(place: &Path, output: &mut Output) -> Option<Tuning> {
    if !place.exists() {
        return None;
    }
    match settings::read_tuning(place) {
        Ok(tuning) if tuning.is_of(&rcc::machine::name()) && tuning.cores == cores() => Some(tuning),
        Ok(_) => {
            output.note(&format!("note: {} is of another machine, and is replaced", place.display()));
            None
        }
        Err(error) => {
            output.note(&format!("note: {}; it is replaced", error.message));
            None
        }
    }
}

fn joined(known: Option<Tuning>, rows: Vec<Row>) -> Tuning {
    let key = |row: &Row| (row.collective, row.ranks, row.registered, row.bytes, row.element);
    let old = known.map_or(Vec::new(), |known| known.rows);
    let kept = old.into_iter().filter(|old| rows.iter().all(|new| key(new) != key(old)));
    let mut all: Vec<Row> = kept.collect();
    all.extend(rows);
    all.sort_by_key(key);
    Tuning {
        source: String::new(),
        named: true,
        machine: rcc::machine::name(),
        cores: cores(),
        date: today(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        rows: all,
    }
}

fn write(place: &Path, tuning: &Tuning) -> Result<(), Failure> {
    if let Some(folder) = place.parent().filter(|folder| *folder != Path::new("")) {
        let failure = |error| Failure::file("make", folder, &error);
        std::fs::create_dir_all(folder).map_err(failure)?;
    }
    atomic::write(&PathBuf::from(place), tuning.to_text().as_bytes())
}

fn cores() -> u32 {
    u32::try_from(runtime::cpus::allowed()).unwrap_or(u32::MAX)
}

/// The date, of UTC.
fn today() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() / 86_400);
    date(days)
}

/// The date of a day of the Gregorian calendar, counted from 1970-01-01.
fn date(days: u64) -> String {
    // Years that begin in March, so that the day that may be missing is the last; 400 of them have 146,097 days.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn titles(output: &mut Output) -> Result<(), Failure> {
    let text = format!(
        "{:<14}{:>6}{:>10}  {:<11}{:>12}{:>9}  {}",
        "collective", "ranks", "size", "memory", "time (us)", "spread", "fastest, and the next"
    );
    let painted = output.paint(&text, Paint::Dim);
    output.line(&painted)
}

fn tell(row: &Row, output: &mut Output) -> Result<(), Failure> {
    let name = |entry: &Entry| {
        let short = entry.algorithm.rsplit("::").next().unwrap_or_default();
        entry.layout().map_or(short.to_string(), |layout| format!("{short} ({layout})"))
    };
    let [first, rest @ ..] = &row.candidates[..] else { return Ok(()) };
    let next = rest.first().map_or(String::new(), |next| format!("; {} {:.2}", name(next), next.us));
    output.line(&format!(
        "{:<14}{:>6}{:>10}  {:<11}{:>12.2}{:>9.2}  {}{next}",
        row.collective.name(),
        row.ranks,
        size::show(row.bytes),
        if row.registered { "registered" } else { "plain" },
        first.us,
        first.spread,
        name(first)
    ))?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_have_their_dates() {
        for (days, wanted) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_787, "2026-11-30"),
            (20_818, "2026-12-31"),
            (20_819, "2027-01-01"),
        ] {
            assert_eq!(date(days), wanted);
        }
    }
}
