//! Pointers of C, looked at before they are used.
//!
//! In: pointers. Out: text, lists, places to write; an error that names the parameter where it is NULL or no text.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use rcc::Error;

use crate::status::invalid;

/// Text that must be there.
///
/// # Safety
/// It ends with a NUL and stays as it is for `'a`, or is NULL.
pub(crate) unsafe fn words<'a>(text: *const c_char, name: &str) -> Result<&'a str, Error> {
    // SAFETY: the caller's promise.
    unsafe { maybe_words(text, name) }?.ok_or_else(|| null(name))
}

/// Text that may be NULL.
///
/// # Safety
/// As for [`words`].
pub(crate) unsafe fn maybe_words<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Error> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| invalid(format!("`{name}` is not text in UTF-8")))
}

/// A list; NULL only if it is empty.
///
/// # Safety
/// There are `count` of them, which stay as they are for `'a`, or it is NULL.
pub(crate) unsafe fn list<'a, T>(first: *const T, count: usize, name: &str) -> Result<&'a [T], Error> {
    countable(first, count, name)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller's promise, and what was looked at just now.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// A place for what comes out, which holds `first` until then.
///
/// # Safety
/// It may be written for `'a`, or is NULL.
pub(crate) unsafe fn out<'a, T>(place: *mut T, first: T, name: &str) -> Result<&'a mut T, Error> {
    aligned(place, name)?;
    // SAFETY: the caller's promise; it need not hold anything yet.
    unsafe { place.write(first) };
    // SAFETY: as above.
    Ok(unsafe { &mut *place })
}

/// Something that must be there, and may be changed.
///
/// # Safety
/// It is there, and this thread's alone for `'a`, or it is NULL.
pub(crate) unsafe fn given_mut<'a, T>(place: *mut T, name: &str) -> Result<&'a mut T, Error> {
    aligned(place, name)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { &mut *place })
}

/// A list that may be changed; NULL only if it is empty.
///
/// # Safety
/// There are `count` of them, which are this thread's alone for `'a`, or it is NULL.
pub(crate) unsafe fn list_given<'a, T>(
    first: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [T], Error> {
    countable(first, count, name)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the caller's promise, and what was looked at just now.
    Ok(unsafe { std::slice::from_raw_parts_mut(first, count) })
}

fn aligned<T>(place: *const T, name: &str) -> Result<(), Error> {
    if place.is_null() {
        return Err(null(name));
    }
    if !place.is_aligned() {
        return Err(invalid(format!("`{name}` ({place:p}) is not aligned")));
    }
    Ok(())
}

/// Whether there may be so many.
fn countable<T>(first: *const T, count: usize, name: &str) -> Result<(), Error> {
    if count == 0 {
        return Ok(());
    }
    aligned(first, name)?;
    if count > isize::MAX as usize / size_of::<T>() {
        return Err(invalid(format!("`{name}` cannot have {count} elements")));
    }
    Ok(())
}

#[cold]
fn null(name: &str) -> Error {
    invalid(format!("`{name}` is NULL"))
}

/// A structure whose first field is its size in bytes.
///
/// # Safety
/// It is `repr(C)`, its first field is a `usize`, and all zero is a value of it.
pub(crate) unsafe trait Sized: Copy {
    /// Its size in the first version that had it: a number, which stays as it is when fields are added.
    const LEAST: usize;
}

/// A structure as the caller knows it: fields that an older caller does not know are 0, and those that this
/// version does not know must be.
///
/// # Safety
/// It is NULL, or has as many bytes as its first field says.
pub(crate) unsafe fn sized<T: Sized>(place: *const T, name: &str) -> Result<T, Error> {
    aligned(place, name)?;
    // SAFETY: the caller's promise, and the trait's.
    let size = unsafe { *place.cast::<usize>() };
    let own = size_of::<T>();
    if size < T::LEAST || size > MOST_SIZE {
        let message = format!("`{name}.size` is {size}, and no version of the structure has that size");
        return Err(invalid(message).help(format!("set it to the structure's size, {own} in this version")));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(place.cast::<u8>(), size) };
    if bytes.iter().skip(own).any(|&byte| byte != 0) {
        let message = format!("`{name}` has fields of a later version of rcc.h");
        return Err(Error::new(rcc::Kind::Unsupported, message).help("install the librcc.so of that version"));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: no more than either has; all zero is a value.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), size.min(own));
        Ok(value.assume_init())
    }
}

/// Larger than any structure will ever be; what is above was never set.
const MOST_SIZE: usize = 4096;

/// Places for what comes out, each of which holds `first` until then.
///
/// # Safety
/// There are `count` of them, which may be written for `'a`, or it is NULL.
pub(crate) unsafe fn list_mut<'a, T: Copy>(
    place: *mut T,
    count: usize,
    first: T,
    name: &str,
) -> Result<&'a mut [T], Error> {
    countable(place, count, name)?;
    for at in 0..count {
        // SAFETY: the caller's promise; it need not hold anything yet.
        unsafe { place.add(at).write(first) };
    }
    // SAFETY: as above.
    unsafe { list_given(place, count, name) }
}

#[cfg(test)]
mod tests {
    use rcc::Kind;

    use super::*;

    /// A structure that had one field at first and has two now.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Grown {
        size: usize,
        first: u64,
        second: u64,
    }

    // SAFETY: numbers, with the size first.
    unsafe impl Sized for Grown {
        const LEAST: usize = 16;
    }

    /// What a caller hands in that knows as many words as there are.
    fn handed<const WORDS: usize>(words: [u64; WORDS]) -> Result<Grown, Error> {
        // SAFETY: the first word says how many bytes are looked at; those of the tests that say more are refused.
        unsafe { sized(words.as_ptr().cast::<Grown>(), "it") }
    }

    #[test]
    fn structures_of_older_and_later_versions_are_understood() {
        assert_eq!(handed([16, 7]).unwrap(), Grown { size: 16, first: 7, second: 0 });
        // What lies after it is not its own.
        assert_eq!(handed([16, 7, 8]).unwrap(), Grown { size: 16, first: 7, second: 0 });
        assert_eq!(handed([24, 7, 8]).unwrap(), Grown { size: 24, first: 7, second: 8 });
        assert_eq!(handed([32, 7, 8, 0]).unwrap(), Grown { size: 32, first: 7, second: 8 });
        let later = handed([32, 7, 8, 1 << 63]).unwrap_err();
        assert_eq!(later.kind, Kind::Unsupported);
        for size in [0, 8, 15, MOST_SIZE as u64 + 1, u64::MAX] {
            let refused = handed([size, 7, 8]).unwrap_err();
            assert_eq!(refused.kind, Kind::Invalid);
            assert!(refused.message.contains(&format!("`it.size` is {size},")), "{}", refused.message);
        }
    }

    /// What programs were built with stays what they may hand in, however much is added.
    #[test]
    fn the_first_version_of_each_structure_is_enough() {
        use crate::algorithm::rcc_source_t;
        use crate::calls::rcc_call_t;
        use crate::options::rcc_options_t;
        let least = [rcc_options_t::LEAST, rcc_call_t::LEAST, rcc_source_t::LEAST];
        assert_eq!(least, [64, 88, 80]);
    }
}
