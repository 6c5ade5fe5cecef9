//! Columns of numbers as bytes, short where the numbers follow rules.
//!
//! In: a column of a table, or bytes from anywhere and how many numbers they must give. Out: bytes, or those numbers. A
//! column is one of
//!
//! | tag | what | after it |
//! |---|---|---|
//! | 0 | all the same | the number |
//! | 1 | a run: steps of one size | first, step |
//! | 2 | a run kept within a window | first, step, window's width, window's start |
//! | 3 | a sum: number i is `head[i % p] + offset[i / p]` | p, the columns head and offset |
//! | 4 | p columns dealt in turn | p, the columns |
//! | 5 | runs one after the other | how many; the columns of their parts: first, step, width, start, length |
//! | 6 | numbers listed by their differences | pieces: (count << 1 \| same), then one difference or `count` of them |
//!
//! The one hard idea: 3, 4 and 5 hold columns again, so that regularity of any depth (ranks in nodes in pods, cells turned
//! by a rank in a round, a butterfly's exchanges, which are sums over the bits of a rank) takes a few bytes per level.
//! Reading allocates what the number of numbers asked for explains, whatever the bytes say: the parts of a sum have at
//! most half as many numbers each, parts of runs an eighth. So it takes at most three times the column, and time linear in it
//! times the depth.

use super::fit::Fit;
use super::wire::{Fault, Read, Reader, Writer};

const SAME: u64 = 0;
const RUN: u64 = 1;
const WRAPPED: u64 = 2;
const SUM: u64 = 3;
const TURNS: u64 = 4;
const RUNS: u64 = 5;
const LISTED: u64 = 6;

/// Columns within columns; a sum over the bits of 32-bit numbers needs as many.
const DEPTH: usize = 40;
/// Columns dealt in turn.
const MOST_TURNS: usize = 8;
/// How many numbers there are to each run at least, in `RUNS`.
const RUN_LENGTH: usize = 8;

/// Appends a column. `periods` are lengths after which it may be known to repeat.
pub(super) fn write(out: &mut Writer, column: &[i64], periods: &[usize]) {
    write_at(out, column, periods, DEPTH);
}

fn write_at(out: &mut Writer, column: &[i64], periods: &[usize], depth: usize) {
    let whole = run(column, true);
    if whole.len == column.len() {
        write_run(out, &whole);
        return;
    }
    if depth > 0 && column.len() >= 4 {
        if let Some(period) = sum_period(column, periods, whole.len) {
            let offsets: Vec<i64> = column.iter().step_by(period).map(|&n| n - column[0]).collect();
            out.unsigned(SUM);
            out.len(period);
            write_at(out, &column[..period], periods, depth - 1);
            write_at(out, &offsets, periods, depth - 1);
            return;
        }
        if let Some(runs) = runs(column) {
            out.unsigned(RUNS);
            out.len(runs.len());
            let parts: [fn(&Fit) -> i64; 5] =
                [|r| r.first, Fit::stride, |r| r.modulus, Fit::window, |r| r.len as i64];
            for part in parts {
                let part: Vec<i64> = runs.iter().map(part).collect();
                write_at(out, &part, periods, depth - 1);
            }
            return;
        }
        if let Some(period) = turns(column) {
            out.unsigned(TURNS);
            out.len(period);
            for turn in 0..period {
                let part: Vec<i64> = column[turn..].iter().step_by(period).copied().collect();
                write_at(out, &part, periods, depth - 1);
            }
            return;
        }
    }
    write_list(out, column);
}

/// The longest run that a column starts with, in one window if `wrapped`.
fn run(column: &[i64], wrapped: bool) -> Fit {
    let Some((&first, rest)) = column.split_first() else { return Fit::none() };
    let mut fit = Fit::new(first, 0);
    for &next in rest {
        let before = fit;
        if !fit.push(next) || (!wrapped && fit.modulus > 0) {
            return before;
        }
    }
    fit
}

fn write_run(out: &mut Writer, run: &Fit) {
    if run.modulus > 0 {
        out.unsigned(WRAPPED);
        out.signed(run.first);
        out.signed(run.stride());
        out.unsigned(run.modulus as u64);
        out.signed(run.window());
    } else if run.stride != 0 {
        out.unsigned(RUN);
        out.signed(run.first);
        out.signed(run.stride);
    } else {
        out.unsigned(SAME);
        out.signed(run.first);
    }
}

/// A period by which the column is a sum.
fn sum_period(column: &[i64], periods: &[usize], first_run: usize) -> Option<usize> {
    let powers = (1..7).map(|bits| 1usize << bits);
    let likely = [run(column, false).len, first_run];
    let all = likely.into_iter().chain(periods.iter().copied()).chain(powers);
    let is_sum = |period: usize| {
        let head = &column[..period];
        column.chunks(period).all(|part| {
            let offset = part[0] - head[0];
            part.iter().zip(head).all(|(a, b)| a - b == offset)
        })
    };
    all.into_iter().find(|&period| period >= 2 && period <= column.len() / 2 && is_sum(period))
}

/// The column as runs, if they are few.
fn runs(column: &[i64]) -> Option<Vec<Fit>> {
    let most = column.len() / RUN_LENGTH;
    let mut runs = Vec::new();
    let mut at = 0;
    while at < column.len() {
        if runs.len() == most {
            return None;
        }
        let run = run(&column[at..], true);
        at += run.len;
        runs.push(run);
    }
    Some(runs)
}

/// A number of columns that were dealt in turn, each following one rule for long.
fn turns(column: &[i64]) -> Option<usize> {
    (2..=MOST_TURNS).find(|&period| {
        let long = column.len() / period / 4;
        long >= RUN_LENGTH
            && (0..period).all(|turn| {
                let part: Vec<i64> = column[turn..].iter().step_by(period).take(long).copied().collect();
                run(&part, true).len == part.len()
            })
    })
}

/// The column by differences: equal ones once, with their number.
fn write_list(out: &mut Writer, column: &[i64]) {
    out.unsigned(LISTED);
    let mut last = 0;
    let differences: Vec<i64> = column.iter().map(|&n| n - std::mem::replace(&mut last, n)).collect();
    let alike = |from: usize| differences[from..].iter().take_while(|&&d| d == differences[from]).count();
    let (mut at, mut listed) = (0, 0);
    let list = |out: &mut Writer, listed: usize, at: usize| {
        if listed < at {
            out.len((at - listed) << 1);
            differences[listed..at].iter().for_each(|&d| out.signed(d));
        }
    };
    while at < differences.len() {
        let same = alike(at);
        if same >= 4 {
            list(out, listed, at);
            out.len(same << 1 | 1);
            out.signed(differences[at]);
            listed = at + same;
        }
        at += same;
    }
    list(out, listed, at);
}

/// Reads a column of `len` numbers.
pub(super) fn read(input: &mut Reader<'_>, len: usize) -> Read<Vec<i64>> {
    read_at(input, len, DEPTH)
}

/// Reads a column of `len` numbers that fit 32 bits.
pub(super) fn read_small(input: &mut Reader<'_>, len: usize) -> Read<Vec<u32>> {
    read(input, len)?.into_iter().map(super::wire::narrow).collect()
}

fn read_at(input: &mut Reader<'_>, len: usize, depth: usize) -> Read<Vec<i64>> {
    let tag = input.unsigned()?;
    if depth == 0 && matches!(tag, SUM | TURNS | RUNS) {
        return Err(Fault::Malformed("columns within columns are too deep"));
    }
    let mut column = Vec::new();
    match tag {
        SAME => {
            let number = input.signed()?;
            column.resize(len, number);
        }
        RUN | WRAPPED => {
            let (first, stride) = (input.signed()?, input.signed()?);
            let (modulus, low) =
                if tag == WRAPPED { (signed(input.unsigned()?)?, input.signed()?) } else { (0, 0) };
            column.reserve_exact(len);
            push_run(&mut column, (first, stride), (modulus, low), len)?;
        }
        SUM => {
            let period = input.unsigned()? as usize;
            if period < 2 || period > len / 2 {
                return Err(Fault::Malformed("the period of a sum does not fit its column"));
            }
            let head = read_at(input, period, depth - 1)?;
            let offsets = read_at(input, len.div_ceil(period), depth - 1)?;
            column.reserve_exact(len);
            'all: for offset in offsets {
                for &number in &head {
                    if column.len() == len {
                        break 'all;
                    }
                    column.push(number.checked_add(offset).ok_or(OVERFLOW)?);
                }
            }
        }
        TURNS => {
            let period = input.unsigned()? as usize;
            if !(2..=MOST_TURNS).contains(&period) || period > len {
                return Err(Fault::Malformed("a column is dealt in too many turns"));
            }
            column.resize(len, 0);
            for turn in 0..period {
                let part = read_at(input, (len - turn).div_ceil(period), depth - 1)?;
                column[turn..].iter_mut().step_by(period).zip(part).for_each(|(to, n)| *to = n);
            }
        }
        RUNS => {
            let count = input.unsigned()? as usize;
            if count > len / RUN_LENGTH {
                return Err(Fault::Malformed("a column has more runs than numbers to fill them"));
            }
            let mut part = || read_at(input, count, depth - 1);
            let (firsts, strides, moduli, lows, lengths) = (part()?, part()?, part()?, part()?, part()?);
            column.reserve_exact(len);
            for i in 0..count {
                let length = usize::try_from(lengths[i]).unwrap_or(usize::MAX);
                if length > len - column.len() {
                    return Err(Fault::Malformed("the runs of a column are longer than it"));
                }
                push_run(&mut column, (firsts[i], strides[i]), (moduli[i], lows[i]), length)?;
            }
        }
        LISTED => read_list(input, &mut column, len)?,
        _ => return Err(Fault::Malformed("a column is of no known kind")),
    }
    if column.len() != len {
        return Err(Fault::Malformed("a column is shorter than its table"));
    }
    Ok(column)
}

const OVERFLOW: Fault = Fault::Malformed("a number of a column has more than 63 bits");

fn signed(number: u64) -> Read<i64> {
    i64::try_from(number).map_err(|_| OVERFLOW)
}

fn push_run(
    column: &mut Vec<i64>,
    (first, stride): (i64, i64),
    (modulus, low): (i64, i64),
    len: usize,
) -> Read<()> {
    // The last number before it is wrapped bounds all others.
    let reach = i128::from(stride) * len as i128 + i128::from(first) - i128::from(low);
    let fits = |n: i128| n.abs() < 1 << 62;
    if !fits(reach) || !fits(i128::from(first) - i128::from(low)) || !fits(low.into()) || modulus < 0 {
        return Err(OVERFLOW);
    }
    match modulus {
        0 => column.extend((0..len as i64).map(|i| first + stride * i)),
        // Its sum is below 2^62 + 2^63 and may not fit.
        _ if modulus >= 1 << 62 => return Err(OVERFLOW),
        _ => column.extend((0..len as i64).map(|i| low + (first - low + stride * i).rem_euclid(modulus))),
    }
    Ok(())
}

fn read_list(input: &mut Reader<'_>, column: &mut Vec<i64>, len: usize) -> Read<()> {
    let mut last = 0i64;
    while column.len() < len {
        let head = input.unsigned()?;
        let (count, same) = ((head >> 1) as usize, head & 1 == 1);
        if count == 0 || count > len - column.len() {
            return Err(Fault::Malformed("a list's piece does not fit its column"));
        }
        let mut next = |difference| {
            last = last.checked_add(difference).ok_or(OVERFLOW)?;
            column.push(last);
            Ok(())
        };
        if same {
            let difference = input.signed()?;
            (0..count).try_for_each(|_| next(difference))?;
        } else {
            (0..count).try_for_each(|_| next(input.signed()?))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DEPTH, LISTED, RUNS, Read, Reader, SUM, Writer, read, write, write_list};

    fn bytes(column: &[i64]) -> Vec<u8> {
        let mut out = Writer::default();
        write(&mut out, column, &[]);
        out.bytes
    }

    fn again(bytes: &[u8], len: usize) -> Read<Vec<i64>> {
        let mut input = Reader::new(bytes);
        let column = read(&mut input, len)?;
        assert_eq!(input.left(), 0);
        Ok(column)
    }

    #[track_caller]
    fn takes(most: usize, column: impl IntoIterator<Item = i64>) {
        let column: Vec<i64> = column.into_iter().collect();
        let bytes = bytes(&column);
        assert!(again(&bytes, column.len()) == Ok(column), "not what was written");
        assert!(bytes.len() <= most, "{} bytes", bytes.len());
    }

    #[test]
    fn what_follows_rules_is_short() {
        let n = 1024;
        takes(2, [7; 1000]);
        takes(2, []);
        takes(5, 0..n);
        // Turned by one for each rank.
        takes(9, (0..n).map(|r| (r + 5) % n));
        takes(20, (0..n * n).map(|i| i / n));
        takes(20, (0..n * n).map(|i| i % n));
        // A ring's cells, rank by rank.
        takes(64, (0..n).flat_map(|r| (1..n - 1).map(move |t| (r - t).rem_euclid(n))));
        // Ranks in nodes, turned on both levels.
        takes(40, (0..128).flat_map(|a| (0..8).map(move |b| (a + 1) % 128 * 8 + (b + 7) % 8)));
        // Partners of a butterfly; bits in opposite order.
        takes(60, (0..n).map(|r| r ^ 0b10_0110_1001));
        takes(80, (0..n).map(|r| (r as u64).reverse_bits() as i64 >> 54 & 1023));
        // All others, in order.
        takes(80, (0..n).flat_map(|r| (0..n).filter(move |&q| q != r)));
        takes(40, (0..n).flat_map(|r| [r, 0, n - r]));
    }

    #[test]
    fn columns_within_columns_have_an_end() {
        for tag in [SUM, RUNS] {
            let deep = [tag as u8, 2].repeat(DEPTH + 1);
            assert!(again(&deep, 1 << 30).is_err());
        }
        let mut out = Writer::default();
        write_list(&mut out, &[3, 9]);
        assert_eq!(out.bytes[0], LISTED as u8);
        assert!(again(&out.bytes, 1).is_err() && again(&out.bytes, 3).is_err());
    }

    fn parts() -> impl Strategy<Value = Vec<i64>> {
        let window = (0i64..30, -9i64..9, 1i64..20, 0usize..40).prop_map(|(first, stride, modulus, len)| {
            (0..len as i64).map(|i| 3 + (first + stride * i).rem_euclid(modulus)).collect()
        });
        let any = proptest::collection::vec(prop_oneof![0i64..5, any::<u32>().prop_map(i64::from)], 0..12);
        let sum = (proptest::collection::vec(0i64..9, 1..9), proptest::collection::vec(0i64..99, 0..9))
            .prop_map(|(head, offsets)| {
                offsets.iter().flat_map(|offset| head.iter().map(move |n| n + offset)).collect()
            });
        prop_oneof![window, any, sum]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(parts in proptest::collection::vec(parts(), 0..6)) {
            let column = parts.concat();
            prop_assert_eq!(again(&bytes(&column), column.len()), Ok(column));
        }

        #[test]
        fn bytes_from_anywhere_do_no_harm(
            bytes in proptest::collection::vec(prop_oneof![0u8..8, any::<u8>()], 0..40),
            len in 0usize..5000,
        ) {
            if let Ok(column) = read(&mut Reader::new(&bytes), len) {
                prop_assert_eq!(column.len(), len);
            }
        }
    }
}
