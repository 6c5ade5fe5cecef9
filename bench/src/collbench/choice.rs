//! The plans of a cell: what a program's call would get.
//!
//! In: a cell, whether its buffers are registered. Out: for each root a plan, its slots, its name. Selected as the crate `rcc` does it, by a tuning
//! file, what is built in for machines of this class, the cost model; so the size is the one in the middle of the cell's class.

use compiler::limits::Limits;
use compiler::pipeline::{self, Loaded};
use plan::dtype::{Dtype, Op};
use plan::verify::VerifiedPlan;
use rcc::select::{Ask, Selection, StandardCall, Unselected};
use runtime::exec::Shape;
use runtime::exec::exposed::Exposed;
use runtime::job::Geometry;

use crate::cell::{Cell, Collective};

/// A plan, ready to be called.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: VerifiedPlan,
    pub(crate) geometry: Geometry,
}

/// What a call of the cell is, for the runtime. MPI broadcasts in one buffer, and does the others from one to another.
pub(crate) fn shape(cell: &Cell) -> Shape {
    let in_place = cell.collective == Collective::Broadcast;
    Shape { elements: cell.block as u64, dtype: Dtype::F32, op: Op::Sum, in_place }
}

/// The plans, one for each root.
pub(crate) fn plans(cell: &Cell, registered: bool) -> Result<Vec<Planned>, String> {
    let loaded = pipeline::load(&[], &Limits::default());
    let options = rcc::Options::from_env().map_err(|error| error.to_string())?;
    let selection = Selection::of(rcc::machine::here(), options.tuning);
    let roots = cell.collective.roots(cell.ranks);
    (0..roots).map(|root| selected(&loaded, &selection, cell, registered, root)).collect()
}

/// What was taken, in a few words without a comma.
pub(crate) fn said(planned: &Planned) -> String {
    let plan = &planned.plan;
    let access = if Exposed::of(plan).any() { "direct" } else { "messages" };
    let Geometry { slots, slot_bytes } = planned.geometry;
    format!("{} {access} {slots} x {slot_bytes} B", plan.header.algorithm)
}

fn selected(
    loaded: &Loaded,
    selection: &Selection,
    cell: &Cell,
    registered: bool,
    root: u32,
) -> Result<Planned, String> {
    let Shape { elements, dtype, op, in_place } = shape(cell);
    let collective = cell.collective.standard();
    let root = (cell.collective == Collective::Broadcast).then_some(root);
    let call =
        StandardCall { op, root, in_place, registered, ..StandardCall::new(collective, elements, dtype) };
    let selected = selection.select(loaded, &Ask::of(&call, cell.ranks)).map_err(|why| match why {
        Unselected::NotMade(why) => why.brief(),
        Unselected::Runtime(error) => error.to_string(),
    })?;
    Ok(Planned { geometry: selected.geometry, plan: selected.made.compiled.plan })
}

#[cfg(test)]
mod tests {
    use super::{plans, said, shape};
    use crate::cell::{ALL, Cell, Collective};

    #[test]
    fn every_collective_has_a_plan_for_every_root_and_plain_buffers_are_not_reached_into() {
        for collective in ALL {
            let cell = Cell::new(collective, 3, 3000);
            for registered in [false, true] {
                let found = plans(&cell, registered).expect("a plan");
                assert_eq!(found.len(), if collective == Collective::Broadcast { 3 } else { 1 });
                for planned in &found {
                    assert_eq!(planned.plan.header.collective, collective.name());
                    let forms = planned.plan.header.forms;
                    assert!(if shape(&cell).in_place { forms.same } else { forms.disjoint });
                    assert!(registered || said(planned).contains(" messages "), "{}", said(planned));
                }
            }
        }
    }
}
