//! The collectives.
//!
//! In: buffers by their addresses, a count, a type. Out: what the collective promises in them. Every function makes one structure
//! ([`rcc_call_t`]) of its parameters, and all go one way from there: what it asks for is checked ([`asked`]), then made at once,
//! started, or launched with others. The one hard idea: whether a call is in place is seen by where its buffers lie.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use rcc::collective::Collective;
use rcc::{At, Error, NamedAt, Prepared, StandardCall};
use runtime::comm;
use runtime::exec::Shape;

use crate::algorithm::{rcc_algorithm_t, rcc_buffer_t};
use crate::comm::{Comm, Inside, enter, rcc_comm_t};
use crate::memory::Piece;
use crate::request::{self, Underway, rcc_request_t};
use crate::status::invalid;
use crate::strings::{Sized, list, out, sized, words};
use crate::values::{Combine, collective, combine, dtype, rcc_collective_t, rcc_dtype_t, rcc_op_t};

/// A call, as rcc_call, rcc_start and rcc_group take it. Begin with RCC_CALL_INIT. It is of a standard
/// collective, or of an algorithm of the caller's if `algorithm` is not 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rcc_call_t {
    /// sizeof(rcc_call_t): later versions may add fields at the end.
    pub size: usize,
    /// Who calls.
    pub comm: *mut rcc_comm_t,
    /// What, if it is no algorithm.
    pub collective: MaybeUninit<rcc_collective_t>,
    /// Of which elements.
    pub dtype: MaybeUninit<rcc_dtype_t>,
    /// Combined how, where anything is.
    pub op: rcc_op_t,
    /// What is sent, as the function of the collective has it; RCC_BROADCAST: not looked at.
    pub send: *const c_void,
    /// What is received, as the function of the collective has it; RCC_BROADCAST: the data.
    pub recv: *mut c_void,
    /// How many elements, as the function of the collective has it.
    pub count: usize,
    /// From or to which rank, where there is one.
    pub root: u32,
    /// Not used: 0.
    pub reserved: u32,
    /// An algorithm, or 0.
    pub algorithm: rcc_algorithm_t,
    /// The buffers of the algorithm.
    pub buffers: *const rcc_buffer_t,
    /// How many there are.
    pub buffer_count: usize,
}

// SAFETY: numbers and pointers, with the size first; all zero is a value.
unsafe impl Sized for rcc_call_t {
    const LEAST: usize = 88;
}

/// A call whose parameters make sense.
struct Asked<'a> {
    what: What<'a>,
    combine: Combine,
}

enum What<'a> {
    Standard(StandardCall, At, At),
    Own(rcc::Algorithm, rcc::Dtype, Vec<NamedAt<'a>>),
}

/// What a call asks for, if it makes sense.
///
/// # Safety
/// The lists and texts that it points to are there.
unsafe fn asked<'a>(comm: &Comm, call: &rcc_call_t) -> Result<Asked<'a>, Error> {
    if call.reserved != 0 {
        return Err(invalid("`call.reserved` is not 0"));
    }
    let (dtype, combine) = (dtype(call.dtype)?, combine(call.op)?);
    if let Combine::Own(_, own) = &combine
        && own.dtype != dtype
    {
        let name = own.operator.name();
        return Err(invalid(format!(
            "the operator `{name}` combines {}, and the call is of {dtype}",
            own.dtype
        )));
    }
    let size = dtype.size() as usize;
    if call.algorithm != 0 {
        let algorithm = comm.algorithm(call.algorithm)?;
        // SAFETY: the caller's promise.
        let buffers = unsafe { list(call.buffers, call.buffer_count, "buffers") }?;
        if buffers.is_empty() {
            return Err(invalid("an algorithm is called with at least one buffer"));
        }
        let mut named = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            // SAFETY: the caller's promise.
            let name = unsafe { words(buffer.name, "buffer.name") }?;
            if buffer.send.is_null() && buffer.recv.is_null() && buffer.count > 0 {
                return Err(invalid(format!("`send` and `recv` of the buffer `{name}` are NULL")));
            }
            let bytes = bytes_of(buffer.count, size)?;
            let side = |start: *mut c_void| match start.is_null() {
                true => Ok(None),
                // Also where there are no bytes, its address may say whether this is in place.
                false => {
                    at(start, bytes, name).map(|At { bytes, .. }| Some(At { start: start.cast(), bytes }))
                }
            };
            // One by one: a buffer that this rank does not have is none that is not registered.
            let one = NamedAt { name, send: None, recv: None, registered: false };
            if let Some(at) = side(buffer.send.cast_mut())? {
                named.push(NamedAt { send: Some(at), registered: comm.piece(at).is_some(), ..one });
            }
            if let Some(at) = side(buffer.recv)? {
                named.push(NamedAt { recv: Some(at), registered: comm.piece(at).is_some(), ..one });
            }
        }
        return Ok(Asked { what: What::Own(algorithm, dtype, named), combine });
    }
    let collective = collective(call.collective)?;
    let (rank, world) = (comm.inner.rank(), comm.inner.world());
    let root = collective.is_rooted().then_some(call.root);
    let is_root = root == Some(rank);
    let block = bytes_of(call.count, size)?;
    let all = bytes_of(block, world as usize)?;
    let (send, recv) = match collective {
        Collective::Allreduce | Collective::Broadcast => (block, block),
        Collective::Allgather => (block, all),
        Collective::Reducescatter => (all, block),
        Collective::Reduce => (block, if is_root { block } else { 0 }),
        Collective::Gather => (block, if is_root { all } else { 0 }),
        Collective::Scatter => (if is_root { all } else { 0 }, block),
        _ => (all, all),
    };
    let given = (call.send.cast_mut(), call.recv);
    let given = if collective == Collective::Broadcast { (given.1, given.1) } else { given };
    let names = if collective == Collective::Broadcast { ("data", "data") } else { ("send", "recv") };
    let (send, recv) = (at(given.0, send, names.0)?, at(given.1, recv, names.1)?);
    // Where one is not looked at, its address still says whether this is in place.
    let (from, to) = (given.0.addr(), given.1.addr());
    let own = rank as usize * block;
    let in_place = block > 0
        && match collective {
            Collective::Allgather => from == to.wrapping_add(own),
            Collective::Reducescatter => to == from.wrapping_add(own),
            Collective::Gather if is_root => from == to.wrapping_add(own),
            Collective::Scatter if is_root => to == from.wrapping_add(own),
            Collective::Alltoall => false,
            _ => from == to,
        };
    let piece = |at: &At| at.bytes == 0 || comm.piece(*at).is_some();
    let registered = comm.has_pieces() && block > 0 && piece(&send) && piece(&recv);
    let (elements, op) = (call.count as u64, combine.op());
    let standard = StandardCall { collective, elements, dtype, op, root, in_place, registered };
    Ok(Asked { what: What::Standard(standard, send, recv), combine })
}

/// The registered memory that a call has.
fn pieces(comm: &Comm, what: &What<'_>) -> Vec<Arc<Piece>> {
    let of = |at: &At| comm.piece(*at).cloned();
    match what {
        What::Standard(_, send, recv) => [send, recv].into_iter().filter_map(of).collect(),
        What::Own(_, _, named) => {
            named.iter().flat_map(|one| [one.send, one.recv]).flatten().filter_map(|at| of(&at)).collect()
        }
    }
}

/// Some memory, if it is one.
fn at(start: *mut c_void, bytes: usize, name: &str) -> Result<At, Error> {
    if bytes == 0 {
        return Ok(At::NONE);
    }
    if start.is_null() {
        return Err(invalid(format!("`{name}` is NULL, and should have {bytes} bytes")));
    }
    if bytes > isize::MAX as usize || start.addr().checked_add(bytes).is_none() {
        return Err(invalid(format!("`{name}` cannot have {bytes} bytes")));
    }
    Ok(At { start: start.cast(), bytes })
}

fn bytes_of(count: usize, size: usize) -> Result<usize, Error> {
    count.checked_mul(size).ok_or_else(|| invalid(format!("{count} x {size} bytes are too many")))
}

/// A call, ready to be made.
///
/// # Safety
/// The buffers are as `rcc_call` says, until the call has ended.
unsafe fn prepared<'a>(comm: &mut Comm, asked: &Asked<'_>) -> Result<Prepared<'a>, Error> {
    let combine = asked.combine.op();
    let mut prepared = match &asked.what {
        // SAFETY: the caller's promise.
        What::Standard(call, send, recv) => unsafe { comm.inner.prepare_at(call, *send, *recv) }?,
        What::Own(algorithm, dtype, named) => {
            // SAFETY: the caller's promise.
            unsafe { comm.inner.prepare_named(*algorithm, (*dtype, combine), named) }?
        }
    };
    if let Combine::Own(handle, own) = &asked.combine {
        prepared.plan = match comm.combining.get(&(prepared.plan, *handle)) {
            Some(&known) => known,
            None => {
                let made = comm.inner.runtime().reducing(prepared.plan, Arc::clone(&own.operator))?;
                comm.combining.insert((prepared.plan, *handle), made);
                made
            }
        };
    }
    Ok(prepared)
}

/// Makes a call.
///
/// # Safety
/// As `rcc_call` says.
pub(crate) unsafe fn make(call: &rcc_call_t) -> Result<(), Error> {
    let mut comm = enter(call.comm)?;
    // SAFETY: the caller's promise.
    let asked = unsafe { asked(&comm, call) }?;
    if let (What::Standard(call, send, recv), Combine::Op(_)) = (&asked.what, &asked.combine) {
        // SAFETY: the caller's promise.
        return unsafe { comm.inner.call_at(call, *send, *recv) };
    }
    // SAFETY: the caller's promise.
    let Prepared { plan, shape, mut buffers } = unsafe { prepared(&mut comm, &asked) }?;
    comm.inner.runtime().call(plan, shape, &mut buffers)
}

/// Starts a call.
///
/// # Safety
/// As `rcc_start` says.
pub(crate) unsafe fn start(call: &rcc_call_t, request: *mut *mut rcc_request_t) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let request = unsafe { out(request, std::ptr::null_mut(), "request") }?;
    let mut comm = enter(call.comm)?;
    // SAFETY: the caller's promise.
    let asked = unsafe { asked(&comm, call) }?;
    // SAFETY: the caller's promise.
    let Prepared { plan, shape, buffers } = unsafe { prepared(&mut comm, &asked) }?;
    let place = request::reserve()?;
    let kept = pieces(&comm, &asked.what);
    let runtime = comm.inner.runtime();
    let started = Underway::start(runtime.aborter(), kept, |kept| {
        Ok(runtime.start_with(plan, shape, kept, |_| Ok(buffers))?)
    })?;
    *request = request::fill(place, started);
    Ok(())
}

/// The algorithm that a call would run.
///
/// # Safety
/// As `rcc_select` says.
pub(crate) unsafe fn select(call: &rcc_call_t) -> Result<rcc_algorithm_t, Error> {
    let mut comm = enter(call.comm)?;
    // SAFETY: the caller's promise.
    match unsafe { asked(&comm, call) }?.what {
        What::Standard(call, ..) => {
            let selected = comm.inner.select(&call)?;
            Ok(comm.keep(selected))
        }
        What::Own(..) => Ok(call.algorithm),
    }
}

/// Launches calls together.
///
/// # Safety
/// As `rcc_group` says.
pub(crate) unsafe fn launch(calls: &[*const rcc_call_t]) -> Result<(), Error> {
    let mut handles: Vec<*mut rcc_comm_t> = Vec::new();
    let mut comms: Vec<Inside> = Vec::new();
    let mut all = Vec::with_capacity(calls.len());
    for (number, &call) in calls.iter().enumerate() {
        // SAFETY: the caller's promise.
        let call = unsafe { sized(call, &format!("calls[{number}]")) }?;
        let place = match handles.iter().position(|&known| known == call.comm) {
            Some(place) => place,
            None => {
                comms.push(enter(call.comm)?);
                handles.push(call.comm);
                comms.len() - 1
            }
        };
        // SAFETY: the caller's promise.
        all.push((place, unsafe { asked(&comms[place], &call) }?));
    }
    // Before any is prepared: that is agreed upon with the other ranks, which may be in this very group.
    let inner: Vec<&mut comm::Communicator> = comms.iter_mut().map(|comm| comm.inner.runtime()).collect();
    if inner.windows(2).any(|pair| !pair[0].drives(pair[1])) {
        let help = "make one from the other, by rcc_comm_split, rcc_comm_duplicate or rcc_comm_shrink";
        return Err(invalid("the communicators of a group must be made of one").help(help));
    }
    let mut ready: Vec<(usize, Prepared<'_>)> = Vec::with_capacity(all.len());
    for (place, asked) in &all {
        // SAFETY: the caller's promise.
        ready.push((*place, unsafe { prepared(&mut comms[*place], asked) }?));
    }
    let mut inner: Vec<&mut comm::Communicator> = comms.iter_mut().map(|comm| comm.inner.runtime()).collect();
    comm::group(&mut inner, |group| {
        for (place, Prepared { plan, shape, buffers }) in ready {
            let shape: Shape = shape;
            group.call_of(place, plan, shape, buffers);
        }
        Ok(())
    })
}

/// A call of a standard collective.
#[expect(clippy::too_many_arguments, reason = "as many as a collective has")]
pub(crate) fn of(
    collective: rcc_collective_t,
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    root: u32,
) -> rcc_call_t {
    rcc_call_t {
        size: size_of::<rcc_call_t>(),
        comm,
        collective: MaybeUninit::new(collective),
        dtype,
        op,
        send,
        recv,
        count,
        root,
        reserved: 0,
        algorithm: 0,
        buffers: std::ptr::null(),
        buffer_count: 0,
    }
}

/// A call of an algorithm.
pub(crate) fn with(
    comm: *mut rcc_comm_t,
    algorithm: rcc_algorithm_t,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    (buffers, buffer_count): (*const rcc_buffer_t, usize),
) -> Result<rcc_call_t, Error> {
    if algorithm == 0 {
        return Err(invalid("the algorithm is 0"));
    }
    let collective = rcc_collective_t::RCC_ALL_REDUCE;
    let call = of(collective, comm, std::ptr::null(), std::ptr::null_mut(), 0, dtype, op, 0);
    Ok(rcc_call_t { algorithm, buffers, buffer_count, ..call })
}
