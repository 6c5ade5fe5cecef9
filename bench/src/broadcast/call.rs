//! The calls that are measured.
//!
//! In: how ranks reach each other, ranks, bytes. Out: the plan, what it copies, and the times of its calls in slices (as
//! the runtime chooses them) and in one slice that is as long as the data, so that no two hops overlap.

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::{Direct, Options};
use compiler::pipeline;
use plan::dtype::{Dtype, Op};
use plan::layout::Layout;
use plan::verify::VerifiedPlan;
use runtime::exec::Shape;
use runtime::job::{Geometry, Job};
use runtime::launch;

use crate::copies::Copies;

/// The algorithm.
pub(crate) const ALGORITHM: &str = "std::broadcast::chain";

/// A way for ranks to reach each other.
#[derive(Debug)]
pub(crate) struct Path {
    /// Its name.
    pub(crate) name: &'static str,
    pub(crate) direct: Direct,
}

/// All of them.
pub(crate) const PATHS: &[Path] = &[
    Path { name: "slots", direct: Direct::Never },
    Path { name: "direct", direct: Direct::WhereBothFormsAllow },
    Path { name: "direct, out of place", direct: Direct::OutOfPlace },
];

/// A plan to be measured.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Which.
    pub(crate) path: &'static Path,
    /// What it copies in a call.
    pub(crate) copies: Copies,
    /// Bytes of a slice.
    pub(crate) slice_bytes: u32,
    plan: VerifiedPlan,
    shape: Shape,
    whole: u32,
}

/// Seconds of each call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    /// In slices.
    pub(crate) sliced: Vec<f64>,
    /// In one slice.
    pub(crate) whole: Vec<f64>,
}

impl Variant {
    /// Compiles.
    pub(crate) fn new(path: &'static Path, ranks: u32, bytes: u64) -> Result<Variant, String> {
        let limits = Limits::default();
        let loaded = pipeline::load(&[], &limits);
        let algorithm =
            loaded.program.find(ALGORITHM).ok_or_else(|| format!("there is no algorithm `{ALGORITHM}`"))?;
        let request = Request { algorithm, shape: vec![ranks], params: [("root".to_string(), 0)].into() };
        let options = Options { bytes: Some(bytes), direct: path.direct, ..Options::default() };
        let compiled = pipeline::compile(&loaded, &request, &options, &limits, &mut |_| {});
        let plan = compiled.map_err(|failure| format!("{failure:?}"))?.plan;

        let dtype = Dtype::F32;
        let elements = bytes / u64::from(dtype.size());
        let shape = Shape { elements, dtype, op: Op::Sum, in_place: false };
        let whole = u32::try_from(bytes).map_err(|_| "a slice has less than 4 GiB".to_string())?;
        let slice_bytes =
            Geometry::of(&plan, &Job::new(shape)).map_err(|error| error.to_string())?.slot_bytes;
        let layout = Layout::new(&plan, elements, dtype, slice_bytes).map_err(|error| error.to_string())?;
        let copies = Copies::of(&plan, &layout)?;
        Ok(Variant { path, copies, slice_bytes, plan, shape, whole })
    }

    /// Makes and times some calls of both kinds.
    pub(crate) fn measure(&self, iterations: u32, check: bool, times: &mut Times) -> Result<(), String> {
        let job = Job { warmup: 1, iterations, check, ..Job::new(self.shape) };
        times.sliced.extend(self.run(&job)?);
        let job = Job { slot_bytes: Some(self.whole), slots: Some(1), ..job };
        times.whole.extend(self.run(&job)?);
        Ok(())
    }

    fn run(&self, job: &Job) -> Result<Vec<f64>, String> {
        let report = launch::run(&self.plan, job, &launch::Options::default());
        let report = report.map_err(|error| format!("{}: {error}", self.path.name))?;
        match report.wrong {
            0 => Ok(report.times.iter().map(std::time::Duration::as_secs_f64).collect()),
            wrong => Err(format!("{}: {wrong} elements are wrong", self.path.name)),
        }
    }
}
