//! What a rank's turn on a core costs.
//!
//! In: a CPU. Out: seconds to go to another rank, and for an event of the runtime's loop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline;
use plan::dtype::{Dtype, Op};
use plan::verify::VerifiedPlan;
use runtime::exec::Shape;
use runtime::job::Job;
use runtime::job::threads::run_threads;
use runtime::memory::memfd::{self, Mapping};

use crate::place;

/// Turns of a measurement.
const TURNS: u64 = 5_000;
/// Slots of the channel, and messages of a call.
const SLOTS: u32 = 1024;
const MESSAGES: u64 = 16 * SLOTS as u64;
/// Bytes of a message.
const MESSAGE: u32 = 64;

/// Two processes on one CPU that yield to each other: the time from one to the other.
pub(crate) fn switch(cpu: usize) -> Result<f64, String> {
    let failed = |why: String| format!("cannot share memory: {why}");
    let fd = memfd::reserve(c"rcc-machine", 4096).map_err(|why| failed(why.to_string()))?;
    let map =
        Mapping::shared(std::os::fd::AsFd::as_fd(&fd), 4096, true).map_err(|why| failed(why.to_string()))?;
    // SAFETY: a page, aligned, zeroed, mapped as long as `map` lives, of which both processes only use this word.
    let word: &AtomicU64 = unsafe { &*map.start().cast::<AtomicU64>() };
    let turns = |side: u64| {
        place::keep_to(cpu);
        let began = Instant::now();
        for turn in 0..TURNS {
            while word.load(Ordering::Acquire) != 2 * turn + side {
                std::thread::yield_now();
            }
            word.store(2 * turn + side + 1, Ordering::Release);
        }
        began.elapsed().as_secs_f64() / (2 * TURNS) as f64
    };
    // SAFETY: this process has one thread, so the child finds everything as it should be; it ends without returning.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(format!("cannot fork: {}", std::io::Error::last_os_error())),
        0 => {
            turns(1);
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) }
        }
        _ => {
            let took = turns(0);
            // SAFETY: waits for the child that was just made; its status does not matter.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok(took)
        }
    }
}

/// An event of the runtime's loop that takes or sends a message of a line: a chain of two ranks on one CPU with so many
/// slots that going from one to the other costs next to nothing beside them.
pub(crate) fn event(cpu: usize) -> Result<f64, String> {
    let plan = chain()?;
    let steps: u64 = plan.steps.len() as u64;
    let elements = MESSAGES * u64::from(MESSAGE / 4);
    let shape = Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place: false };
    let job = Job {
        slot_bytes: Some(MESSAGE),
        slots: Some(SLOTS),
        warmup: 2,
        iterations: 5,
        check: false,
        ..Job::new(shape)
    };
    let times = std::thread::scope(|scope| {
        let one = scope.spawn(|| {
            place::keep_to(cpu);
            // Ranks are more than the one CPU that this thread has, and so have theirs.
            run_threads(&plan, &job).map(|report| report.spans)
        });
        one.join().map_err(|_| "a rank panicked".to_string())?.map_err(|why| why.to_string())
    })?;
    let fastest = times.iter().min().ok_or("no call was measured")?;
    Ok(fastest.as_secs_f64() / (steps * MESSAGES) as f64)
}

/// `std::broadcast::chain` on two ranks: one sends what it has, one stores it.
fn chain() -> Result<VerifiedPlan, String> {
    let limits = Limits::default();
    let loaded = pipeline::load(&[], &limits);
    let algorithm = loaded.program.find("std::broadcast::chain").ok_or("there is no chain")?;
    let request = Request { algorithm, shape: vec![2], params: [("root".to_string(), 0)].into() };
    let compiled = pipeline::compile(&loaded, &request, &Options::default(), &limits, &mut |_| {});
    Ok(compiled.map_err(|failure| format!("{failure:?}"))?.plan)
}
