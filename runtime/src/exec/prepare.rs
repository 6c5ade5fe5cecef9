//! What is worked out once for all calls of one shape.
//!
//! In: a plan, a rank, a [`Shape`]. Out: [`Prepared`]: where every cell lies, the signature, the record on the board. A rank keeps
//! the shapes that it called last, since programs call a few in turn; and one piece of scratch that is enough for all of them.

use plan::file::ContentHash;
use plan::ids::RankId;
use plan::layout::Layout;
use plan::plan::{Buffer, Form, Plan, Role};
use plan::signature::{self, Signature};

use super::Shape;
use super::kernels::Kernel;
use super::operator::User;
use super::places::{Area, Cells, Setting};
use crate::call::Record;
use crate::error::{Error, Kind};

/// How many shapes a rank remembers.
pub(super) const SHAPES: usize = 8;

/// One shape.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) shape: Shape,
    pub(super) layout: Layout,
    pub(super) setting: Setting,
    pub(super) scratch_bytes: u64,
    pub(super) signature: Signature,
    pub(super) record: Record,
    /// Its number on the board; 0: it does not stand there.
    pub(super) recorded: u64,
    /// The buffers found to be as they must; mostly those of the next call.
    pub(super) checked: Vec<Area>,
}

/// What is the same for all calls of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    pub(super) slot_bytes: u32,
    /// Ranks reach into each other's memory.
    pub(super) exposed: bool,
    /// Bytes of the last cache.
    pub(super) cache: u64,
}

impl Prepared {
    /// Whether it is what calls of this shape with this operator need.
    #[inline]
    pub(super) fn is(&self, shape: Shape, user: Option<&User>) -> bool {
        let number = |user: Option<&User>| user.map_or(0, |user| user.number);
        self.shape == shape && number(self.setting.user.as_ref()) == number(user)
    }
}

impl Prepared {
    /// For calls of a plan.
    pub(super) fn new(
        plan: &Plan,
        hash: ContentHash,
        rank: RankId,
        given: Given,
        shape: Shape,
        user: Option<&User>,
    ) -> Result<Prepared, Error> {
        let Given { slot_bytes, exposed, cache } = given;
        let Shape { elements, dtype, op, in_place } = shape;
        let header = &plan.header;
        let served = if in_place { header.forms.same } else { header.forms.disjoint };
        if !served {
            let form = if in_place { "in place" } else { "out of place" };
            let message = format!("`{}` does not serve calls {form}", header.algorithm);
            return Err(Error::new(Kind::Unsupported, message));
        }
        let divisor = if op.has_post() { plan.promise.reduced_operands() } else { None };
        let reduces = plan.promise.reduces();
        if !header.serves(op) || (op.has_post() && reduces && divisor.is_none()) {
            let message = format!("`{}` does not serve operator {op}", header.algorithm);
            let help = if op.has_post() { "divide afterwards" } else { "multiply before" };
            return Err(Error::new(Kind::Unsupported, message).help(format!("use `sum` and {help}")));
        }
        if op.factor().is_some_and(|factor| !factor.fits(dtype)) {
            let message = format!("{dtype} cannot be multiplied by the factor of {op}");
            return Err(Error::new(Kind::Invalid, message).help("use a whole number that the type holds"));
        }
        let layout = Layout::new(plan, elements, dtype, slot_bytes)
            .map_err(|e| Error::new(Kind::Invalid, e.to_string()))?;
        let cells = Cells::new(&layout, header.cells, header.copies, rank, &header.scratch_cells);
        let record = Record {
            call: 0,
            algorithm: header.algorithm.chars().take(80).collect(),
            plan: hash.to_string().chars().take(16).collect(),
            elements,
            dtype,
            op,
            operator: user.map(|user| user.name.to_string()),
            in_place,
        };
        // A plan that only exchanges messages sends the same in both forms, and each rank may have its own.
        let form = exposed.then_some(if in_place { Form::Same } else { Form::Disjoint });
        let signature = Signature::new(&signature::Call {
            plan: hash,
            collective: &header.collective,
            params: &header.params,
            counts: &[elements],
            dtype,
            op,
            operator: user.map(|user| &*user.name),
            form,
        });
        let kernel = Kernel::new(dtype, op);
        let user = user.cloned();
        let stream = streams(plan, elements * u64::from(dtype.size()), cache);
        let setting = Setting { dtype, kernel, user, stream, divisor, slices: layout.slices(), cells };
        let scratch_bytes = layout.scratch_bytes(rank);
        Ok(Prepared {
            shape,
            layout,
            setting,
            scratch_bytes,
            signature,
            record,
            recorded: 0,
            checked: Vec::new(),
        })
    }
}

/// How many times the last cache all buffers together are, from where on results are stored past it. Measured with two and four ranks on two
/// cores and 32 MiB: at 3 times 10 to 100 % slower, at 6 and more up to 36 % faster, at most as fast where ranks outnumber cores.
const PAST: u64 = 6;

/// Whether results are better stored past the caches: all ranks work on more than these hold, and each reads data of its own, so that
/// memory is what all wait for. (Where one rank alone has data the others are bound by what a core can store past its caches.)
fn streams(plan: &Plan, block_bytes: u64, cache: u64) -> bool {
    let ranks = plan.header.ranks;
    let with = |role: Role| plan.buffers.iter().filter(move |buffer| buffer.role == role);
    let holders = |buffer: &Buffer| (0..ranks).filter(|&rank| buffer.at.holds(RankId(rank))).count() as u64;
    let bytes =
        with(Role::Send).chain(with(Role::Recv)).map(|b| holders(b).saturating_mul(u64::from(b.blocks)));
    let all = bytes.fold(0, u64::saturating_add).saturating_mul(block_bytes);
    all >= cache.saturating_mul(PAST) && (0..ranks).all(|r| with(Role::Send).any(|b| b.at.holds(RankId(r))))
}
