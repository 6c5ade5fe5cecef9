//! Collectives for programs that embed rcc: compiled, proved and selected where they run.
//!
//! In: ranks (`runtime::comm`), typed buffers; or a `.coll` text, or a plan file. Out: calls whose plans are selected by the
//! collective, the number of ranks, the size and the machine, compiled from the standard library when they are needed first.
//!
//! ```
//! use rcc::{Communicator, Op, Options};
//!
//! # fn main() -> Result<(), rcc::Error> {
//! // Ranks as threads here; `Communicator::from_env()` where a launcher has started them.
//! let ranks = Communicator::threads(2, &Options::default())?;
//! std::thread::scope(|scope| {
//!     for mut comm in ranks {
//!         scope.spawn(move || {
//!             let mine = vec![comm.rank() as f32; 1000];
//!             let mut sum = vec![0.0; 1000];
//!             comm.all_reduce(&mine, &mut sum, Op::Sum).unwrap();
//!             assert_eq!(sum, [1.0; 1000]);
//!         });
//!     }
//! });
//! # Ok(())
//! # }
//! ```

#![allow(clippy::disallowed_methods, reason = "plans are files, and `settings` reads the environment")]

pub mod cache;
pub mod collective;
pub mod communicator;
pub mod convention;
mod definition;
pub mod element;
mod library;
pub mod log;
pub mod machine;
pub mod make;
pub mod request;
pub mod select;
pub mod settings;
pub mod world;

pub use half::{bf16, f16};
pub use plan::dtype::{Dtype, Factor, Op};
pub use plan::float8::{F8E4m3, F8E5m2};
pub use runtime::error::{Error, Kind};
pub use runtime::exec::operator::{Named, Operator};

pub use self::communicator::{Algorithm, Arguments, At, Communicator, NamedAt, Prepared, Source};
pub use self::element::{Element, Memory, MemoryMut, Registered};
pub use self::select::StandardCall;
pub use self::settings::Options;
