//! Where a list repeats itself by an affine rule.
//!
//! In: a list of entries (steps, or what became of them) that say which are of one form and which numbers they hold.
//! Out: its pieces in order: entries that stay as they are, and loops. The one hard idea is cost: entries are
//! compared by a signature first, periods are tried from the shortest, a try that fails has looked at a few entries, and
//! tries that fail are counted, so that a list without any regularity costs little more than one look at each entry.

use super::fit::Fit;

/// Steps of a loop's body are at most this many entries.
const LONGEST_BODY: usize = 16;
/// Repeats that make a loop.
const FEWEST: usize = 3;
/// How many tries may fail for each entry, on average, before only bodies of `SHORT` are tried.
const TRIES: usize = 1;
const SHORT: usize = 2;

/// A list in which loops are looked for.
pub(super) trait Entries {
    /// Its signatures: entries of one form have the same.
    fn signatures(&self) -> &[u64];
    /// Appends a rule for each number of an entry.
    fn begin(&self, entry: usize, fits: &mut Vec<Fit>);
    /// Whether `entry` is of the very form of `like`. If so, appends its numbers, in the same order.
    fn numbers(&self, like: usize, entry: usize, numbers: &mut Vec<i64>) -> bool;
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// An entry as it is.
    Entry(usize),
    /// `count` repeats of `body` entries from `first` on, whose numbers follow `fits`.
    Loop {
        /// The first entry of the first repeat.
        first: usize,
        /// How many entries are repeated.
        body: usize,
        /// How often.
        count: usize,
        /// The rules of their numbers, in order.
        fits: &'a [Fit],
    },
}

/// Memory that is used again and again.
#[derive(Debug, Default)]
pub(super) struct Room {
    fits: Vec<Fit>,
    before: Vec<Fit>,
    numbers: Vec<i64>,
}

/// Calls `piece` with each part of a list.
pub(super) fn find(list: &impl Entries, room: &mut Room, mut piece: impl FnMut(Piece<'_>)) {
    let signatures = list.signatures();
    let mut tries = TRIES * signatures.len() + 64 * LONGEST_BODY;
    let mut at = 0;
    'next: while at < signatures.len() {
        let longest = if tries == 0 { SHORT } else { LONGEST_BODY };
        for body in 1..=longest.min((signatures.len() - at) / FEWEST) {
            let repeats = |i: usize| signatures[i] == signatures[i + body];
            if !(at..at + body * (FEWEST - 1)).all(repeats) {
                continue;
            }
            let count = if promising(list, room, at, body) { extend(list, room, at, body) } else { 1 };
            if count >= FEWEST {
                piece(Piece::Loop { first: at, body, count, fits: &room.fits });
                at += body * count;
                continue 'next;
            }
            tries = tries.saturating_sub(1);
        }
        piece(Piece::Entry(at));
        at += 1;
    }
}

/// Whether the first entry of a body follows a rule for as many repeats as make a loop, and once more if that rule has a
/// window that was guessed from the last of them.
fn promising(list: &impl Entries, room: &mut Room, first: usize, body: usize) -> bool {
    room.fits.clear();
    list.begin(first, &mut room.fits);
    if !(1..FEWEST).all(|repeat| follows(list, room, 0, first, first + repeat * body)) {
        return false;
    }
    let next = first + FEWEST * body;
    let signatures = list.signatures();
    let goes_on = next < signatures.len() && signatures[first] == signatures[next];
    !room.fits.iter().any(Fit::guessed_last) || goes_on && follows(list, room, 0, first, next)
}

/// Whether an entry follows the rules from `at` on; they are spoilt if not.
fn follows(list: &impl Entries, room: &mut Room, at: usize, like: usize, entry: usize) -> bool {
    room.numbers.clear();
    list.numbers(like, entry, &mut room.numbers)
        && room.fits[at..].iter_mut().zip(&room.numbers).all(|(fit, &number)| fit.push(number))
}

/// How often a body repeats; its rules are left in `room`.
fn extend(list: &impl Entries, room: &mut Room, first: usize, body: usize) -> usize {
    let mut count = extend_to(list, room, first, body, usize::MAX);
    // Without what is doubtful; then other numbers may be in doubt.
    while let Some(shorter) = room.fits.iter().filter_map(Fit::doubt).min() {
        count = extend_to(list, room, first, body, shorter);
    }
    count
}

fn extend_to(list: &impl Entries, room: &mut Room, first: usize, body: usize, most: usize) -> usize {
    let signatures = list.signatures();
    room.fits.clear();
    for entry in first..first + body {
        list.begin(entry, &mut room.fits);
    }
    let most = most.min((signatures.len() - first) / body);
    for count in 1..most {
        room.before.clone_from(&room.fits);
        let mut at = 0;
        for like in first..first + body {
            let entry = like + count * body;
            if signatures[like] != signatures[entry] || !follows(list, room, at, like, entry) {
                std::mem::swap(&mut room.fits, &mut room.before);
                return count;
            }
            at += room.numbers.len();
        }
    }
    most
}
