//! Handles that can be told from anything else.
//!
//! In: values. Out: numbers for C, and from a number its value, lent to one thread at a time. The one hard idea: a handle is no
//! address but a place in a table and which value of that place it is, so whatever C hands in (freed, of another kind, invented) is
//! looked up and refused, never followed. One compare-and-swap says that it is the value meant and that nobody else is inside. What
//! may be asked while another thread is inside lies aside.
//!
//! The tables are the library's only state of the process: C has nowhere else to keep what its handles mean. Places are never given
//! back to the system; a place is used again once its value is gone.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rcc::{Error, Kind};

use crate::status::invalid;

/// Values of type `T`; of each, `S` may be asked for at any time.
pub(crate) struct Table<T, S> {
    /// What messages call one of them.
    what: &'static str,
    /// What tells handles of this table from those of others: 1 to 15.
    kind: u64,
    /// Segment k has `FIRST << k` places, and is there when it is needed first.
    segments: [OnceLock<Segment<T, S>>; SEGMENTS],
    free: Mutex<Free>,
}

type Segment<T, S> = Box<[Place<T, S>]>;

struct Place<T, S> {
    /// The place's generation, from 1, and what it is in: `generation << 2 | FREE, IDLE or INSIDE`.
    word: AtomicU64,
    /// Whoever has set INSIDE has this alone.
    value: UnsafeCell<Option<T>>,
    /// With the generation that it belongs to.
    aside: Mutex<Option<(u64, S)>>,
}

#[derive(Debug)]
struct Free {
    /// Places that were never used begin here.
    fresh: u64,
    used: Vec<u64>,
}

/// A place that nobody else gets.
pub(crate) struct Reserved<T: 'static, S: 'static> {
    table: &'static Table<T, S>,
    index: u64,
}

/// A value, lent to this thread.
pub(crate) struct Entered<T: 'static, S: 'static> {
    place: &'static Place<T, S>,
    index: u64,
    table: &'static Table<T, S>,
}

const FIRST: u64 = 64;
const SEGMENTS: usize = 14;
/// As many values may be there at once.
const PLACES: u64 = FIRST * ((1 << SEGMENTS) - 1);

const FREE: u64 = 0;
const IDLE: u64 = 1;
const INSIDE: u64 = 2;

/// `generation << 24 | index << 4 | kind`.
const KIND_BITS: u32 = 4;
const INDEX_BITS: u32 = 20;
const _: () = assert!(PLACES <= 1 << INDEX_BITS && usize::BITS == 64);

// SAFETY: a value is reached by one thread at a time, which the word of its place sees to.
unsafe impl<T: Send, S: Send> Sync for Place<T, S> {}

impl<T: Send, S: Clone + Send> Table<T, S> {
    pub(crate) const fn new(what: &'static str, kind: u64) -> Table<T, S> {
        let free = Mutex::new(Free { fresh: 0, used: Vec::new() });
        Table { what, kind, segments: [const { OnceLock::new() }; SEGMENTS], free }
    }

    /// Takes a value, and gives its handle.
    pub(crate) fn add(&'static self, value: T, aside: S) -> Result<u64, Error> {
        Ok(self.reserve()?.fill(value, aside))
    }

    /// A place for a value that is yet to be made: for one that must not be lost once it is.
    ///
    /// # Errors
    /// If there are as many as there may be.
    pub(crate) fn reserve(&'static self) -> Result<Reserved<T, S>, Error> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match free.used.pop() {
            Some(index) => index,
            None if free.fresh == PLACES => {
                let message = format!("there are {PLACES} handles of {}s already", self.what);
                return Err(Error::new(Kind::Resource, message).help("free some"));
            }
            None => {
                free.fresh += 1;
                free.fresh - 1
            }
        };
        Ok(Reserved { table: self, index })
    }

    /// Places for as many values, or none.
    ///
    /// # Errors
    /// If there are not that many.
    pub(crate) fn reserve_all(&'static self, count: usize) -> Result<Vec<Reserved<T, S>>, Error> {
        (0..count).map(|_| self.reserve()).collect()
    }

    /// Enters a value.
    ///
    /// # Errors
    /// A handle that is none of this table, or not any more; and if another thread is inside.
    #[inline]
    pub(crate) fn enter(&'static self, handle: u64) -> Result<Entered<T, S>, Error> {
        let (place, index, generation) = self.find(handle)?;
        let idle = generation << 2 | IDLE;
        match place.word.compare_exchange(
            idle,
            generation << 2 | INSIDE,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => Ok(Entered { place, index, table: self }),
            Err(found) => Err(self.refused(found, generation)),
        }
    }

    /// What may be asked of a value at any time.
    ///
    /// # Errors
    /// A handle that is none of this table, or not any more.
    pub(crate) fn aside(&self, handle: u64) -> Result<S, Error> {
        let (place, _, generation) = self.find(handle)?;
        match &*place.aside.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((of, aside)) if *of == generation => Ok(aside.clone()),
            _ => Err(self.gone()),
        }
    }

    #[inline]
    fn find(&self, handle: u64) -> Result<(&Place<T, S>, u64, u64), Error> {
        let (kind, index) = (handle & ((1 << KIND_BITS) - 1), handle >> KIND_BITS & ((1 << INDEX_BITS) - 1));
        let generation = handle >> (INDEX_BITS + KIND_BITS);
        let (segment, at) = within(index);
        let place = self.segments.get(segment).and_then(|segment| segment.get()?.get(at));
        match place {
            Some(place) if kind == self.kind && generation > 0 => Ok((place, index, generation)),
            _ => Err(self.none(handle)),
        }
    }

    #[cold]
    fn refused(&self, found: u64, generation: u64) -> Error {
        match found >> 2 == generation && found & 3 == INSIDE {
            true => invalid(format!("another thread is using the {}", self.what))
                .help(format!("use a {} from one thread at a time", self.what)),
            false => self.gone(),
        }
    }

    #[cold]
    fn gone(&self) -> Error {
        invalid(format!("the {} is not there any more", self.what)).help("do not use a handle that was freed")
    }

    #[cold]
    fn none(&self, handle: u64) -> Error {
        match handle {
            0 => invalid(format!("the {} is NULL", self.what)),
            _ => invalid(format!("{handle:#x} is no {}", self.what)),
        }
    }
}

impl<T: Send, S: Clone + Send> Reserved<T, S> {
    /// Puts the value there, and gives its handle.
    pub(crate) fn fill(self, value: T, aside: S) -> u64 {
        let Reserved { table, index } = *ManuallyDrop::new(self);
        let (segment, at) = within(index);
        let make = || (0..FIRST << segment).map(|_| Place::new()).collect();
        let place = &table.segments[segment].get_or_init(make)[at];
        let generation = place.word.load(Ordering::Relaxed) >> 2;
        *place.aside.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, aside));
        // SAFETY: the place is free, and this thread alone has taken it from the list.
        unsafe { *place.value.get() = Some(value) };
        place.word.store(generation << 2 | IDLE, Ordering::Release);
        generation << (INDEX_BITS + KIND_BITS) | index << KIND_BITS | table.kind
    }
}

impl<T, S> Drop for Reserved<T, S> {
    fn drop(&mut self) {
        self.table.free.lock().unwrap_or_else(PoisonError::into_inner).used.push(self.index);
    }
}

impl<T, S> Place<T, S> {
    fn new() -> Place<T, S> {
        let word = AtomicU64::new(1 << 2 | FREE);
        Place { word, value: UnsafeCell::new(None), aside: Mutex::new(None) }
    }
}

impl<T, S> Entered<T, S> {
    /// Takes the value away and does `last` with it; then the handle is none any more. Until then others
    /// are told that a thread is inside, and what lies aside may be asked for.
    pub(crate) fn remove<R>(self, last: impl FnOnce(T) -> R) -> R {
        /// Also when `last` unwinds.
        struct Gone<T: 'static, S: 'static>(ManuallyDrop<Entered<T, S>>);
        impl<T, S> Drop for Gone<T, S> {
            fn drop(&mut self) {
                let Entered { place, index, table } = *self.0;
                *place.aside.lock().unwrap_or_else(PoisonError::into_inner) = None;
                let next = (place.word.load(Ordering::Relaxed) >> 2) + 1;
                // From here on it may be another's.
                place.word.store(next << 2 | FREE, Ordering::Release);
                table.free.lock().unwrap_or_else(PoisonError::into_inner).used.push(index);
            }
        }
        // SAFETY: this thread is inside.
        let value = unsafe { (*self.place.value.get()).take() };
        let gone = Gone(ManuallyDrop::new(self));
        let done = last(value.unwrap_or_else(|| unreachable!("a value that is entered is there")));
        drop(gone);
        done
    }
}

impl<T, S> Deref for Entered<T, S> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread is inside.
        match unsafe { &*self.place.value.get() } {
            Some(value) => value,
            None => unreachable!("a value that is entered is there"),
        }
    }
}

impl<T, S> DerefMut for Entered<T, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread is inside.
        match unsafe { &mut *self.place.value.get() } {
            Some(value) => value,
            None => unreachable!("a value that is entered is there"),
        }
    }
}

impl<T, S> Drop for Entered<T, S> {
    #[inline]
    fn drop(&mut self) {
        let word = self.place.word.load(Ordering::Relaxed);
        self.place.word.store(word & !3 | IDLE, Ordering::Release);
    }
}

/// The segment of a place, and where it is there.
#[inline]
fn within(index: u64) -> (usize, usize) {
    let segment = (index / FIRST + 1).ilog2();
    (segment as usize, (index - FIRST * ((1 << segment) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn table() -> &'static Table<u32, &'static str> {
        Box::leak(Box::new(Table::new("thing", 5)))
    }

    /// Whether it panics.
    fn caught(work: impl FnOnce()) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
    }

    fn said<T>(outcome: Result<T, Error>) -> String {
        outcome.map(|_| ()).unwrap_err().message.clone()
    }

    #[test]
    fn places_are_each_in_one_segment() {
        let mut next = (0, 0);
        for index in 0..5000 {
            assert_eq!(within(index), next);
            next =
                if next.1 + 1 == (FIRST as usize) << next.0 { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
        }
        assert_eq!(within(PLACES - 1).0, SEGMENTS - 1);
        assert_eq!(within(PLACES), (SEGMENTS, 0));
    }

    #[test]
    fn what_is_no_handle_is_told_from_what_is_one() {
        let table = table();
        let (a, b) = (table.add(1, "a").unwrap(), table.add(2, "b").unwrap());
        *table.enter(a).unwrap() += 10;
        assert_eq!((*table.enter(a).unwrap(), *table.enter(b).unwrap()), (11, 2));
        assert_eq!(table.aside(b).unwrap(), "b");
        assert_eq!(said(table.enter(0)), "the thing is NULL");
        for wrong in [
            1,
            5,
            a ^ 1,
            a ^ 1 << (INDEX_BITS + KIND_BITS),
            u64::MAX,
            0x7fff_dead_beef,
            5 | 1 << 24 | 63 << 4,
        ] {
            let (entered, aside) = (said(table.enter(wrong)), said(table.aside(wrong)));
            assert!(entered.contains("is no thing") || entered.contains("not there any more"), "{entered}");
            assert_eq!(entered, aside);
        }
        let inside = table.enter(a).unwrap();
        assert_eq!(said(table.enter(a)), "another thread is using the thing");
        assert_eq!(table.aside(a).unwrap(), "a");
        drop(inside);
        assert_eq!(table.enter(a).unwrap().remove(|value| value), 11);
        for gone in [said(table.enter(a)), said(table.aside(a))] {
            assert_eq!(gone, "the thing is not there any more");
        }
        // Its place is used again, for another handle.
        let c = table.add(3, "c").unwrap();
        assert_ne!(a, c);
        assert_eq!(c >> KIND_BITS & 0xf_ffff, a >> KIND_BITS & 0xf_ffff);
        assert!(table.enter(a).is_err() && *table.enter(c).unwrap() == 3);
        // What was reserved and not needed, too.
        table.enter(c).unwrap().remove(drop);
        drop(table.reserve().unwrap());
        let d = table.add(4, "d").unwrap();
        assert_eq!(d >> KIND_BITS & 0xf_ffff, a >> KIND_BITS & 0xf_ffff);
    }

    #[test]
    fn a_handle_is_gone_also_if_its_last_use_panics() {
        let table = table();
        let a = table.add(1, "a").unwrap();
        let panicked = caught(|| table.enter(a).unwrap().remove(|_| panic!("for a test")));
        assert!(panicked);
        assert_eq!(said(table.enter(a)), "the thing is not there any more");
        let b = table.add(1, "b").unwrap();
        let panicked = caught(|| {
            let _inside = table.enter(b).unwrap();
            panic!("for a test")
        });
        assert!(panicked && table.enter(b).is_ok());
    }

    #[test]
    fn there_are_only_so_many() {
        static TABLE: Table<u8, ()> = Table::new("thing", 3);
        let all: Vec<u64> = (0..PLACES).map(|_| TABLE.add(1, ()).unwrap()).collect();
        assert_eq!(TABLE.add(1, ()).unwrap_err().kind, Kind::Resource);
        TABLE.enter(all[77]).unwrap().remove(drop);
        assert!(TABLE.add(1, ()).is_ok() && TABLE.add(1, ()).is_err());
        // Several at once: all, or none, and then those that are left stay for others.
        all[80..82].iter().for_each(|&one| TABLE.enter(one).unwrap().remove(drop));
        assert_eq!(TABLE.reserve_all(3).err().map(|error| error.kind), Some(Kind::Resource));
        assert_eq!(TABLE.reserve_all(2).unwrap().len(), 2);
    }

    #[test]
    fn one_thread_at_a_time() {
        static TABLE: Table<u32, ()> = Table::new("thing", 3);
        let entered = AtomicUsize::new(0);
        let handle = TABLE.add(0, ()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        if let Ok(mut value) = TABLE.enter(handle) {
                            *value += 1;
                            entered.fetch_add(1, Ordering::Relaxed);
                        }
                        let own = TABLE.add(7, ()).unwrap();
                        assert_eq!(TABLE.enter(own).unwrap().remove(|value| value), 7);
                        assert!(TABLE.enter(own).is_err());
                    }
                });
            }
        });
        assert_eq!(*TABLE.enter(handle).unwrap() as usize, entered.into_inner());
    }
}
