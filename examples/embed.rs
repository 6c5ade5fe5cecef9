//! A program that embeds rcc: ranks that a launcher has started share out some work, and combine what came of it.
//!
//! ```console
//! $ cargo build --release --example embed
//! $ rcc launch -n 4 -- target/release/examples/embed
//! $ torchrun --nproc-per-node 4 --no-python target/release/examples/embed
//! $ mpirun -n 4 target/release/examples/embed
//! ```
//!
//! `RCC_LOG=rcc::select=debug` tells which plans were selected, and what for.

use rcc::{Arguments, Communicator, Error, Op, Source};

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    rcc::log::to_stderr()?;
    let mut comm = Communicator::from_env()?;
    let (rank, world) = (comm.rank(), comm.world());

    // Rank 0 decides, and tells the others.
    let mut steps = [if rank == 0 { 100_000u64 } else { 0 }];
    comm.broadcast(&mut steps, 0)?;

    // Pi by the midpoint rule: each rank adds up its part, and all get the sum.
    let width = 1.0 / steps[0] as f64;
    let mine = (u64::from(rank)..steps[0]).step_by(world as usize);
    let mut pi = [mine.map(|i| 4.0 / (1.0 + ((i as f64 + 0.5) * width).powi(2))).sum::<f64>() * width];
    comm.all_reduce_in_place(&mut pi, Op::Sum)?;

    // A large one: as gradients are averaged. Only now a plan is selected, compiled and opened.
    let gradient: Vec<f32> = (0..1_000_000).map(|i| ((i % 100) as f32) * (rank + 1) as f32).collect();
    let mut average = vec![0.0; gradient.len()];
    comm.all_reduce(&gradient, &mut average, Op::Avg)?;
    let factor = (world + 1) as f32 / 2.0;
    assert!(average.iter().enumerate().all(|(i, &got)| (got - (i % 100) as f32 * factor).abs() < 1e-3));

    // An algorithm of one's own, proved and compiled where it runs.
    let ring = comm.compile(&Source::new("02_ring.coll", include_str!("02_ring.coll")))?;
    let mut data: Vec<i64> = (0..12_345).map(|i| i * i64::from(rank)).collect();
    comm.call(ring, Op::Max, Arguments::new().both("data", &mut data))?;
    assert!((0..).zip(&data).all(|(i, &got)| got == i * i64::from(world - 1)));

    // Everyone's part, at rank 0.
    let mut ranks = vec![0; if rank == 0 { world as usize } else { 0 }];
    comm.gather(&[rank], &mut ranks, 0)?;
    if rank == 0 {
        assert_eq!(ranks, (0..world).collect::<Vec<_>>());
        println!("pi is {:.10}, say {world} ranks", pi[0]);
    }
    comm.barrier()
}
