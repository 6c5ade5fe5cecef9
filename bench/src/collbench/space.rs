//! A buffer of a rank: plain, as a caller's malloc gives it, or registered.
//!
//! In: a number of elements. Out: floats, on pages of their own, zeroed and touched.

use runtime::memory::registered::Registered;

/// A buffer.
#[derive(Debug)]
pub(crate) enum Space {
    Plain(Plain),
    Registered(Registered),
}

/// Pages from malloc.
#[derive(Debug)]
pub(crate) struct Plain {
    start: *mut f32,
    count: usize,
}

const PAGE: usize = 4096;

impl Plain {
    /// So many elements.
    pub(crate) fn new(count: usize) -> Result<Plain, String> {
        let mut start = std::ptr::null_mut();
        let bytes = (count * 4).next_multiple_of(PAGE);
        // SAFETY: writes an address to `start`.
        let failed = unsafe { libc::posix_memalign(&mut start, PAGE, bytes) } != 0;
        if failed || start.is_null() {
            return Err(format!("the machine does not give {bytes} bytes of memory"));
        }
        // SAFETY: so many bytes were just given, to this value alone.
        unsafe { start.cast::<u8>().write_bytes(0, bytes) };
        Ok(Plain { start: start.cast(), count })
    }

    fn floats(&mut self) -> &mut [f32] {
        // SAFETY: so many floats, initialised, aligned to a page, and this value's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.count) }
    }

    /// Its bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: as above; a float is four bytes.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.count * 4) }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: malloc gave it, and nothing borrowed from it is left.
        unsafe { libc::free(self.start.cast()) };
    }
}

impl Space {
    /// Its bytes; none after a call that failed.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match self {
            Space::Plain(plain) => plain.bytes(),
            Space::Registered(piece) => piece.bytes_mut(),
        }
    }

    /// Its elements; none after a call that failed.
    pub(crate) fn floats(&mut self) -> &mut [f32] {
        match self {
            Space::Plain(plain) => plain.floats(),
            Space::Registered(piece) => {
                let bytes = piece.bytes_mut();
                // SAFETY: bytes of whole floats from the beginning of a page, borrowed as `self` is.
                unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / 4) }
            }
        }
    }
}
