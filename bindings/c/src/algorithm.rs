//! A user's own algorithms: programs from source, plans from files.
//!
//! In: a text of the language, or a file. Out: a number that calls take. It is of one communicator and goes with it.

use std::ffi::{c_char, c_void};
use std::path::Path;

use rcc::{Algorithm, Error, Source};

use crate::comm::{Comm, Known, enter, rcc_comm_t};
use crate::status::{guard, invalid, rcc_status_t, text};
use crate::strings::{Sized, list, maybe_words, out, sized, words};

/// An algorithm that is open at all ranks of a communicator, with which it goes. 0 is none.
pub type rcc_algorithm_t = u64;

/// A parameter of an algorithm.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct rcc_param_t {
    /// What the program calls it.
    pub name: *const c_char,
    /// Its value, such as "4".
    pub value: *const c_char,
}

/// A program to be compiled. Begin with RCC_SOURCE_INIT; a field that is 0 (or NULL) means the default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct rcc_source_t {
    /// sizeof(rcc_source_t): later versions may add fields at the end.
    pub size: usize,
    /// The file it is in, and what messages call it.
    pub file: *const c_char,
    /// The text, if it is not to be read from the file. Without file and text, `algorithm` is a standard
    /// one, such as "std::allreduce::ring".
    pub text: *const c_char,
    /// Which of its algorithms. Default: its only one.
    pub algorithm: *const c_char,
    /// Level sizes of the world, outermost first, for algorithms of several levels. Default: all ranks in
    /// one.
    pub shape: *const u32,
    /// How many levels.
    pub shape_count: usize,
    /// Parameters of the algorithm.
    pub params: *const rcc_param_t,
    /// How many.
    pub param_count: usize,
    /// The size in bytes of the calls it is for, by which its schedule and the compiler choose. Default:
    /// large ones.
    pub bytes: u64,
    /// Not 0: ranks may reach into each other's buffers, which are then all from rcc_alloc.
    pub registered: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// A buffer of an algorithm, by its name in the program. What the collective declares as `in` has `send`,
/// `out` has `recv`; `inout` has both, which are the same in place. One that only other ranks have (the
/// `output` of a gather) may be named or left out; its memory is not looked at. Named at the address of the
/// other side it says that the call is in place, as in rcc_gather; where the algorithm serves calls in place
/// alone, or out of place alone, nothing need be said.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct rcc_buffer_t {
    /// What the program calls it.
    pub name: *const c_char,
    /// What is read, or NULL.
    pub send: *const c_void,
    /// What is written, or NULL.
    pub recv: *mut c_void,
    /// How many elements.
    pub count: usize,
}

// SAFETY: numbers and pointers, with the size first; all zero is a value.
unsafe impl Sized for rcc_source_t {
    const LEAST: usize = 80;
}

impl Comm {
    /// What an algorithm's handle means.
    pub(crate) fn algorithm(&self, handle: rcc_algorithm_t) -> Result<Algorithm, Error> {
        self.known(handle).map(|known| known.algorithm)
    }

    fn known(&self, handle: rcc_algorithm_t) -> Result<&Known, Error> {
        let (number, place) = ((handle >> 32) as u32, (handle as u32).wrapping_sub(1) as usize);
        if handle == 0 {
            return Err(invalid("the algorithm is 0"));
        }
        let known = self.algorithms.get(place).filter(|_| number == self.number);
        known.ok_or_else(|| invalid(format!("{handle:#x} is no algorithm of this communicator")))
    }

    /// The handle of an algorithm.
    pub(crate) fn keep(&mut self, algorithm: Algorithm) -> rcc_algorithm_t {
        let known = self.algorithms.iter().position(|known| known.algorithm == algorithm);
        let place = known.unwrap_or_else(|| {
            let name = text(self.plan(algorithm).header.algorithm.clone());
            self.algorithms.push(Known { algorithm, name });
            self.algorithms.len() - 1
        });
        u64::from(self.number) << 32 | (place as u64 + 1)
    }
}

/// What is to be compiled.
///
/// # Safety
/// As `rcc_compile` says.
unsafe fn source(given: *const rcc_source_t) -> Result<Source, Error> {
    // SAFETY: the caller's promise.
    let given = unsafe { sized(given, "source") }?;
    if given.reserved != 0 {
        return Err(invalid("`source.reserved` is not 0"));
    }
    // SAFETY: the caller's promise.
    let (file, text, algorithm) = unsafe {
        (
            maybe_words(given.file, "source.file")?,
            maybe_words(given.text, "source.text")?,
            maybe_words(given.algorithm, "source.algorithm")?,
        )
    };
    let mut source = match (file, text, algorithm) {
        (None, None, Some(name)) => Source::standard(name),
        (None, None, None) => return Err(invalid("`source` has no file, no text and no algorithm")),
        (file, Some(text), _) => Source::new(file.unwrap_or("source"), text),
        (Some(file), None, _) => {
            let read = std::fs::read_to_string(file);
            Source::new(file, read.map_err(|error| invalid(format!("{file} cannot be read: {error}")))?)
        }
    };
    source.algorithm = algorithm.map(str::to_string);
    // SAFETY: the caller's promise.
    source.shape = unsafe { list(given.shape, given.shape_count, "source.shape") }?.to_vec();
    // SAFETY: the caller's promise.
    for param in unsafe { list(given.params, given.param_count, "source.params") }? {
        // SAFETY: the caller's promise.
        let (name, value) = unsafe { (words(param.name, "param.name")?, words(param.value, "param.value")?) };
        source = source.param(name, value);
    }
    source.bytes = (given.bytes > 0).then_some(given.bytes);
    source.registered = given.registered != 0;
    Ok(source)
}

/// Compiles a program, which is proved before it runs, and opens its plan. All ranks call it, with the same
/// text. What is wrong with the program is the error's message, with its lines.
///
/// # Safety
/// `source` is NULL, which is refused, or as rcc_source_t says, with pointers that are NULL or text that
/// ends with a NUL; `algorithm` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_compile(
    comm: *mut rcc_comm_t,
    source: *const rcc_source_t,
    algorithm: *mut rcc_algorithm_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let algorithm = unsafe { out(algorithm, 0, "algorithm") }?;
        let mut comm = enter(comm)?;
        // SAFETY: the caller's promise.
        let source = unsafe { self::source(source) }?;
        let compiled = comm.inner.compile(&source)?;
        *algorithm = comm.keep(compiled);
        Ok(())
    })
}

/// Reads a plan that `rcc compile -o` wrote, verifies it, and opens it. All ranks call it, each with a file
/// of its own or one of all.
///
/// # Safety
/// `file` is text that ends with a NUL, or NULL, which is refused; `algorithm` may be written, or is NULL,
/// which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_load(
    comm: *mut rcc_comm_t,
    file: *const c_char,
    algorithm: *mut rcc_algorithm_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let algorithm = unsafe { out(algorithm, 0, "algorithm") }?;
        let mut comm = enter(comm)?;
        // SAFETY: the caller's promise.
        let file = unsafe { words(file, "file") }?;
        let loaded = comm.inner.load(Path::new(file))?;
        *algorithm = comm.keep(loaded);
        Ok(())
    })
}

/// The name of an algorithm, such as "ring". It need not be freed, and stays until the communicator is
/// destroyed.
///
/// # Safety
/// `name` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_algorithm_name(
    comm: *mut rcc_comm_t,
    algorithm: rcc_algorithm_t,
    name: *mut *const c_char,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { out(name, std::ptr::null(), "name") }?;
        *name = enter(comm)?.known(algorithm)?.name.as_ptr();
        Ok(())
    })
}
