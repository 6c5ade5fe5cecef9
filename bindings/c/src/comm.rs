//! Communicators: made, asked, divided, ended.
//!
//! In: the environment, or an address. Out: handles. A handle is of one rank, and used by one thread at a time, which is checked;
//! ending it (`rcc_comm_abort`) and asking who it is goes from any thread, at any time.

use std::ffi::{CString, c_char};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plan::plan::Plan;
use rcc::{Communicator, Error, Options};
use runtime::bootstrap::{Secret, Settings};
use runtime::comm::{self, Aborter, PlanId};
use rustc_hash::FxHashMap;

use crate::handle::{Entered, Reserved, Table};
use crate::memory::Piece;
use crate::options::{options, rcc_options_t};
use crate::request::told;
use crate::status::{guard, invalid, rcc_status_t};
use crate::strings::{list_mut, maybe_words, out, words};

/// One rank among others. Only pointers to it are used.
pub struct rcc_comm_t {
    _private: (),
}

/// For rcc_comm_split: in none of the new communicators.
pub const RCC_NO_COLOR: i64 = -1;

/// What a handle means.
pub(crate) struct Comm {
    pub(crate) inner: Communicator,
    /// Memory of `rcc_alloc`, in the order that it was allocated in.
    pub(crate) pieces: Vec<Arc<Piece>>,
    /// What algorithm handles mean: the number of this communicator and their place here.
    pub(crate) algorithms: Vec<Known>,
    pub(crate) number: u32,
    /// Plans that combine by operators of the caller's.
    pub(crate) combining: FxHashMap<(PlanId, u64), PlanId>,
}

/// An algorithm that is open.
pub(crate) struct Known {
    pub(crate) algorithm: rcc::Algorithm,
    pub(crate) name: CString,
}

/// What may be asked while a thread is inside.
#[derive(Clone)]
pub(crate) struct Aside {
    aborter: Aborter,
    rank: u32,
    world: u32,
}

/// A communicator that this thread is in.
pub(crate) struct Inside(Entered<Comm, Aside>);

static COMMS: Table<Comm, Aside> = Table::new("communicator", 1);

/// Tells communicators apart, in the handles of their algorithms.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// Enters a communicator.
#[inline]
pub(crate) fn enter(comm: *mut rcc_comm_t) -> Result<Inside, Error> {
    COMMS.enter(comm.addr() as u64).map(Inside)
}

/// Makes a handle of a communicator.
fn add(inner: Communicator) -> Result<*mut rcc_comm_t, Error> {
    Ok(fill(COMMS.reserve()?, inner))
}

/// The same, at a place that is there for it.
fn fill(place: Reserved<Comm, Aside>, mut inner: Communicator) -> *mut rcc_comm_t {
    let (rank, world) = (inner.rank(), inner.world());
    let aside = Aside { aborter: inner.runtime().aborter(), rank, world };
    let comm = Comm {
        inner,
        pieces: Vec::new(),
        algorithms: Vec::new(),
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        combining: FxHashMap::default(),
    };
    // Never followed.
    std::ptr::without_provenance_mut(place.fill(comm, aside) as usize)
}

impl Comm {
    /// What a plan says.
    pub(crate) fn plan(&self, algorithm: rcc::Algorithm) -> &Plan {
        self.inner.plan(algorithm)
    }
}

impl Deref for Inside {
    type Target = Comm;

    #[inline]
    fn deref(&self) -> &Comm {
        &self.0
    }
}

impl DerefMut for Inside {
    #[inline]
    fn deref_mut(&mut self) -> &mut Comm {
        &mut self.0
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            // This rank may have made half of what the others have: they should hear of it.
            self.0.inner.runtime().aborter().abort("rcc panicked");
        }
    }
}

/// Joins the other ranks of a job that a launcher has started (rcc launch, torchrun, mpirun of Open MPI,
/// MPICH or Intel MPI, srun), as its variables say. Every rank gives the same options; NULL: the defaults.
///
/// # Safety
/// `options` is NULL or as rcc_options_t says; `comm` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_from_env(
    options: *const rcc_options_t,
    comm: *mut *mut rcc_comm_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let comm = unsafe { out(comm, std::ptr::null_mut(), "comm") }?;
        // SAFETY: the caller's promise.
        let options = unsafe { self::options(options) }?;
        let inner = comm::Communicator::from_env(options.ranks.clone())?;
        *comm = add(Communicator::over(inner, &options)?)?;
        Ok(())
    })
}

/// Joins the other ranks of a world of `size` at an address that all know: "host:port", where rank 0
/// listens. Whoever knows the secret may take part.
///
/// # Safety
/// As for rcc_comm_from_env; `address` and `secret` are text that ends with a NUL, or NULL, which is
/// refused (in a world of one the address may be NULL).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_connect(
    rank: u32,
    size: u32,
    address: *const c_char,
    secret: *const c_char,
    options: *const rcc_options_t,
    comm: *mut *mut rcc_comm_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let comm = unsafe { out(comm, std::ptr::null_mut(), "comm") }?;
        // SAFETY: the caller's promise.
        let address = match unsafe { maybe_words(address, "address") }? {
            Some(address) => address,
            None if size <= 1 => "",
            None => return Err(invalid("`address` is NULL")),
        };
        // SAFETY: the caller's promise.
        let secret = Secret::new(unsafe { words(secret, "secret") }?)?;
        // SAFETY: the caller's promise.
        let options = unsafe { self::options(options) }?;
        let settings = Settings::new(rank, size, address, secret)?;
        let settings = Settings { late: options.ranks.late, warn_after: options.ranks.warn, ..settings };
        *comm = add(Communicator::connect(&settings, &options)?)?;
        Ok(())
    })
}

/// Communicators for `size` ranks that are threads of this process: `comms` has room for them. Each goes to
/// a thread of its own, for all ranks make each call together.
///
/// # Safety
/// `options` is NULL or as rcc_options_t says; `comms` has room for `size` pointers, or is NULL, which is
/// refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_threads(
    size: u32,
    options: *const rcc_options_t,
    comms: *mut *mut rcc_comm_t,
) -> rcc_status_t {
    guard(|| {
        if size == 0 || size > Settings::MOST_RANKS {
            return Err(invalid(format!("a world has 1 to {} ranks, not {size}", Settings::MOST_RANKS)));
        }
        // SAFETY: the caller's promise.
        let comms = unsafe { list_mut(comms, size as usize, std::ptr::null_mut(), "comms") }?;
        // SAFETY: the caller's promise.
        let options: Options = unsafe { self::options(options) }?;
        // All or none.
        let places = COMMS.reserve_all(size as usize)?;
        let made = Communicator::threads(size, &options)?;
        for ((comm, place), inner) in comms.iter_mut().zip(places).zip(made) {
            *comm = fill(place, inner);
        }
        Ok(())
    })
}

/// Splits into communicators, one for each colour; all ranks call it. Members are numbered in the order of
/// their keys, those of equal keys in the order of their ranks here. A rank whose colour is RCC_NO_COLOR
/// (or less than 0) gets NULL.
///
/// # Safety
/// `part` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_split(
    comm: *mut rcc_comm_t,
    color: i64,
    key: i64,
    part: *mut *mut rcc_comm_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let part = unsafe { out(part, std::ptr::null_mut(), "part") }?;
        let mut comm = enter(comm)?;
        let color = match color {
            ..0 => None,
            _ => Some(
                u32::try_from(color).map_err(|_| invalid(format!("the colour {color} is above 2^32 - 1")))?,
            ),
        };
        if let Some(inner) = comm.inner.split(color, key)? {
            *part = add(inner)?;
        }
        Ok(())
    })
}

/// Another communicator of the same ranks, which all call it. What ends one does not end the other.
///
/// # Safety
/// As for rcc_comm_split.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_duplicate(
    comm: *mut rcc_comm_t,
    copy: *mut *mut rcc_comm_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let copy = unsafe { out(copy, std::ptr::null_mut(), "copy") }?;
        *copy = add(enter(comm)?.inner.duplicate()?)?;
        Ok(())
    })
}

/// A communicator of all ranks that are still there, after one has failed; all of them call it. It ends the
/// old one, which is still to be destroyed.
///
/// # Safety
/// As for rcc_comm_split.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_shrink(comm: *mut rcc_comm_t, rest: *mut *mut rcc_comm_t) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let rest = unsafe { out(rest, std::ptr::null_mut(), "rest") }?;
        *rest = add(enter(comm)?.inner.shrink()?)?;
        Ok(())
    })
}

/// Waits for calls that are under way, frees the communicator, its algorithms and the memory of rcc_alloc,
/// and tells the others that this rank makes no more calls. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_comm_destroy(comm: *mut rcc_comm_t) -> rcc_status_t {
    guard(|| {
        if comm.is_null() {
            return Ok(());
        }
        let mut comm = COMMS.enter(comm.addr() as u64)?;
        let aborter = comm.inner.runtime().aborter();
        // Calls that are under way stay their requests', if this panics.
        comm.remove(|comm| told(&aborter, || drop(comm)));
        Ok(())
    })
}

/// Ends the communicator at all ranks, from any thread, whatever this rank is in: every call under way ends
/// with RCC_ERROR_ABORTED and `why`, and no later one begins. If it has been ended before, nothing happens.
/// Buffers are the caller's again only when the calls that have them have returned.
///
/// # Safety
/// `why` is text that ends with a NUL, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_abort(comm: *mut rcc_comm_t, why: *const c_char) -> rcc_status_t {
    guard(|| {
        let Aside { aborter, .. } = COMMS.aside(comm.addr() as u64)?;
        // SAFETY: the caller's promise.
        let why = unsafe { maybe_words(why, "why") }?.unwrap_or("it did not say why");
        aborter.abort(why);
        Ok(())
    })
}

/// What ended the communicator, as the status that every call returns from now on, and its message as the
/// thread's last error; RCC_SUCCESS if nothing has. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_comm_failure(comm: *mut rcc_comm_t) -> rcc_status_t {
    guard(|| COMMS.aside(comm.addr() as u64)?.aborter.failure().map_or(Ok(()), Err))
}

/// Which rank this is, from 0. From any thread.
///
/// # Safety
/// `rank` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_rank(comm: *mut rcc_comm_t, rank: *mut u32) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { out(rank, u32::MAX, "rank") }?;
        *place = COMMS.aside(comm.addr() as u64)?.rank;
        Ok(())
    })
}

/// How many ranks there are. From any thread.
///
/// # Safety
/// `size` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_comm_size(comm: *mut rcc_comm_t, size: *mut u32) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { out(size, 0, "size") }?;
        *place = COMMS.aside(comm.addr() as u64)?.world;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    use super::*;
    use crate::request::ends;
    use crate::status::rcc_last_error;

    fn alone() -> *mut rcc_comm_t {
        let mut comm = std::ptr::null_mut();
        let (none, secret) = (std::ptr::null(), c"secret".as_ptr());
        // SAFETY: what is not NULL is there.
        let made = unsafe { rcc_comm_connect(0, 1, none, secret, std::ptr::null(), &raw mut comm) };
        assert_eq!(made, rcc_status_t::RCC_SUCCESS);
        comm
    }

    fn said() -> String {
        // SAFETY: text of this library's, until the next call fails.
        unsafe { CStr::from_ptr(rcc_last_error()) }.to_str().unwrap().to_string()
    }

    #[test]
    fn a_panic_within_a_communicator_ends_it_and_frees_it() {
        let comm = alone();
        let panicked = guard(|| {
            let _inside = enter(comm)?;
            panic!("for a test")
        });
        assert_eq!(panicked, rcc_status_t::RCC_ERROR_INTERNAL);
        assert!(said().contains("for a test"));
        assert_eq!(rcc_comm_failure(comm), rcc_status_t::RCC_ERROR_ABORTED);
        assert!(said().contains("rcc panicked"), "{}", said());
        assert_eq!(rcc_comm_destroy(comm), rcc_status_t::RCC_SUCCESS);
    }

    /// Its buffers are the caller's when it returns: so not before the call has been driven to its end.
    #[test]
    fn a_wait_that_panics_ends_the_communicator_and_returns_when_the_call_has_ended() {
        let comm = alone();
        let aborter = COMMS.aside(comm.addr() as u64).unwrap().aborter;
        // It goes on when it is asked, and ends some time after the communicator has.
        let asked = AtomicU32::new(0);
        let test = || {
            assert!(aborter.failure().is_some(), "the communicator ends first");
            match asked.fetch_add(1, Ordering::Relaxed) {
                0 => panic!("once more"),
                times => times == 20,
            }
        };
        let panicked = guard(|| {
            ends(&aborter, Duration::from_secs(600), &test, || panic!("for a test"));
            Ok(())
        });
        assert_eq!(asked.load(Ordering::Relaxed), 21);
        assert_eq!(panicked, rcc_status_t::RCC_ERROR_INTERNAL);
        assert_eq!(rcc_comm_failure(comm), rcc_status_t::RCC_ERROR_ABORTED);
        assert_eq!(rcc_comm_destroy(comm), rcc_status_t::RCC_SUCCESS);
        // What went well ends nothing.
        let well = alone();
        let aborter = COMMS.aside(well.addr() as u64).unwrap().aborter;
        ends(&aborter, Duration::ZERO, &|| panic!("it is not asked"), || ());
        assert_eq!(rcc_comm_failure(well), rcc_status_t::RCC_SUCCESS);
        // What only looks leaves the call as it is.
        assert_eq!(guard(|| told(&aborter, || panic!("for a test"))), rcc_status_t::RCC_ERROR_INTERNAL);
        assert_eq!(rcc_comm_failure(well), rcc_status_t::RCC_ERROR_ABORTED);
        assert_eq!(rcc_comm_destroy(well), rcc_status_t::RCC_SUCCESS);
    }

    /// The test starts itself as another process, which is to end so.
    #[test]
    fn a_process_ends_rather_than_hand_back_the_buffers_of_a_call_that_nobody_ends() {
        const MARK: &str = "RCC_TEST_OF_A_PROCESS_THAT_ENDS";
        const NAME: &str =
            "comm::tests::a_process_ends_rather_than_hand_back_the_buffers_of_a_call_that_nobody_ends";
        if std::env::var_os(MARK).is_some() {
            let aborter = COMMS.aside(alone().addr() as u64).unwrap().aborter;
            let _ = guard(|| {
                ends(&aborter, Duration::from_millis(20), &|| false, || panic!("for a test"));
                Ok(())
            });
            return;
        }
        let mut itself = std::process::Command::new(std::env::current_exe().unwrap());
        let output = itself.args(["--exact", NAME, "--nocapture"]).env(MARK, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(6), "{said}");
        assert!(said.contains("is under way with its buffers still"), "{said}");
    }

    #[test]
    fn outputs_are_set_also_where_nothing_comes_of_it() {
        let mut part = MaybeUninit::uninit();
        // SAFETY: there is room.
        let refused = unsafe { rcc_comm_split(std::ptr::null_mut(), 0, 0, part.as_mut_ptr()) };
        assert_eq!(refused, rcc_status_t::RCC_ERROR_INVALID);
        // SAFETY: it was written.
        assert!(unsafe { part.assume_init() }.is_null());
    }
}
