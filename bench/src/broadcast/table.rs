//! What was measured, as a table for people or as data.
//!
//! In: rates, variants and their times. Out: [`Report`], whose fields are the JSON.

use std::fmt::Write;

use serde::Serialize;

use crate::call::{ALGORITHM, Times, Variant};
use crate::copies::Copies;
use crate::rate::Rates;

/// The most that a call may take, over what copying the bytes that stay takes.
const RATIO: f64 = 1.3;
/// The least that slices must gain.
const GAIN: f64 = 1.6;

/// All that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    algorithm: &'static str,
    ranks: u32,
    bytes: u64,
    cores: usize,
    slice_bytes: u32,
    /// Gigabytes per second, all cores together: slice by slice, whole buffers; and one core alone.
    sliced_gbps: f64,
    whole_gbps: f64,
    alone_gbps: f64,
    rows: Vec<Row>,
    /// Whether all variants meet both targets, by the harder limit.
    pub(crate) met: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    path: &'static str,
    copies: Copies,
    ms: f64,
    one_slice_ms: f64,
    /// Time over that of copying all bytes, and over that of copying only those that stay.
    over_all: f64,
    over_kept: f64,
    /// How much faster slices are than one slice.
    gain: f64,
}

impl Report {
    /// Medians, and what follows from them.
    pub(crate) fn new(
        ranks: u32,
        bytes: u64,
        cores: usize,
        rates: &Rates,
        variants: &[Variant],
        times: &[Times],
    ) -> Report {
        let (sliced, whole) = (median(&rates.sliced), median(&rates.whole));
        let rate = sliced.max(whole);
        let row = |(variant, times): (&Variant, &Times)| {
            let (seconds, one_slice) = (median(&times.sliced), median(&times.whole));
            Row {
                path: variant.path.name,
                copies: variant.copies,
                ms: seconds * 1e3,
                one_slice_ms: one_slice * 1e3,
                over_all: seconds / (variant.copies.all() as f64 / rate),
                over_kept: seconds / (variant.copies.kept() as f64 / rate),
                gain: one_slice / seconds,
            }
        };
        let rows: Vec<Row> = variants.iter().zip(times).map(row).collect();
        Report {
            algorithm: ALGORITHM,
            ranks,
            bytes,
            cores,
            slice_bytes: variants.first().map_or(0, |variant| variant.slice_bytes),
            sliced_gbps: sliced / 1e9,
            whole_gbps: whole / 1e9,
            alone_gbps: median(&rates.alone) / 1e9,
            met: rows.iter().all(|row| row.over_kept <= RATIO && row.gain >= GAIN),
            rows,
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mib = |bytes: u64| bytes >> 20;
        let _ = writeln!(
            text,
            "{} on {} ranks, {} MiB, slices of {} KiB\n\
             {} cores copy {:.1} GB/s slice by slice, {:.1} GB/s in one piece; one core alone {:.1} GB/s\n",
            self.algorithm,
            self.ranks,
            mib(self.bytes),
            self.slice_bytes >> 10,
            self.cores,
            self.sliced_gbps,
            self.whole_gbps,
            self.alone_gbps,
        );
        let _ = writeln!(
            text,
            "{:<22} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>12} {:>6}",
            "MiB copied:", "own", "peers", "slots", "ms", "over all", "over kept", "one slice ms", "gain"
        );
        for row in &self.rows {
            let Copies { own, peers, slots } = row.copies;
            let _ = writeln!(
                text,
                "{:<22} {:>8} {:>8} {:>8} {:>9.1} {:>9.2} {:>9.2} {:>12.1} {:>6.2}",
                row.path,
                mib(own),
                mib(peers),
                mib(slots),
                row.ms,
                row.over_all,
                row.over_kept,
                row.one_slice_ms,
                row.gain
            );
        }
        let verdict = if self.met { "met" } else { "missed" };
        let _ = writeln!(
            text,
            "\nallowed: {RATIO} times what copying the kept bytes takes, and {GAIN} times faster than in one slice: {verdict}"
        );
        text
    }
}

/// 0 of nothing.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        even if even % 2 == 0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}
