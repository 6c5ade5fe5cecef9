//! Rule V4 against multisets counted one by one.
//!
//! Random programs: a sequence of copies and sums between cells of several ranks, each done by a send and a receive
//! (or by one local step) in the order of the program. The reference executes the sequence with one map of counts
//! for each cell. What it finds at the end can be promised; anything else must be refused.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::collective::BlockRef;
use rcc_plan::ids::{BufferId, RankId};
use rcc_plan::plan::{Form, Plan, Role};
use rcc_plan::values::{Node, ValueId, Values};
use rcc_plan::verify::{Limits, verify};

use crate::cases;
use crate::random::Choices;

const RANKS: usize = 3;
const BLOCKS: usize = 3;

/// How often each entry value has gone into a cell: by (rank, block).
type Counts = BTreeMap<(usize, usize), u32>;

/// A place: (is it scratch or output, rank, block).
type Place = (bool, usize, usize);

#[derive(Debug)]
struct Program {
    plan: Plan,
    /// What every written cell holds at the end.
    held: BTreeMap<Place, Counts>,
    output: BufferId,
    input: BufferId,
}

fn program() -> impl Strategy<Value = Program> {
    proptest::collection::vec(0u8.., 10..100).prop_map(|bytes| from_choices(&mut Choices::new(&bytes)))
}

fn from_choices(choices: &mut Choices) -> Program {
    let mut p = PlanBuilder::new("random", "custom", &[RANKS as u32]);
    let input = p.buffer("input", Role::Send, BLOCKS as u32);
    let output = p.buffer("output", Role::Recv, BLOCKS as u32);
    let scratch = p.scratch(BLOCKS as u32);
    let blocks = [0, 1, 2].map(|rank| p.block(rank));
    let mut channels = BTreeMap::new();
    let mut held: BTreeMap<Place, Counts> = BTreeMap::new();
    let place = |(is_output, _, block): Place| local(if is_output { output } else { scratch }, block as u32);
    for _ in 0..1 + choices.below(14) {
        let to: Place = (!choices.one_in(3), choices.below(RANKS), choices.below(BLOCKS));
        // A source: an entry value, or any cell written so far.
        let entry = (choices.below(RANKS), choices.below(BLOCKS));
        let written: Vec<Place> = held.keys().copied().collect();
        let from_cell =
            (!written.is_empty() && choices.one_in(2)).then(|| written[choices.below(written.len())]);
        let (rank, source, value) = match from_cell {
            Some(cell) => (cell.1, place(cell), held[&cell].clone()),
            None => (entry.0, local(input, entry.1 as u32), Counts::from([(entry, 1)])),
        };
        let add = held.contains_key(&to) && choices.one_in(2);
        let mut sources = if add { vec![place(to)] } else { Vec::new() };
        if rank == to.1 {
            sources.push(source);
        } else {
            let channel =
                *channels.entry((rank, to.1)).or_insert_with(|| p.channel(blocks[rank], &[blocks[to.1]]));
            p.step(blocks[rank], &[source], &[put(channel)]);
            sources.push(get(channel));
        }
        p.step(blocks[to.1], &sources, &[place(to)]);
        let cell = held.entry(to).or_default();
        if !add {
            cell.clear();
        }
        value.into_iter().for_each(|(leaf, count)| *cell.entry(leaf).or_default() += count);
    }
    let mut plan = p.finish().unwrap().plan;
    plan.header.serves_post = false;
    Program { plan, held, output, input }
}

fn codes(plan: Plan) -> Vec<&'static str> {
    match verify(plan, &Limits::default()) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.iter().map(|v| v.code()).collect(),
    }
}

/// A promise of one cell.
fn promise(program: &Program, (rank, block): (usize, usize), list: &[(usize, usize)]) -> Plan {
    let mut plan = program.plan.clone();
    let to = |buffer, (rank, block): (usize, usize)| BlockRef {
        buffer,
        rank: RankId(rank as u32),
        block: block as u32,
    };
    plan.promise.lists.push(list.iter().map(|&leaf| to(program.input, leaf)).collect());
    let list = plan.promise.lists.len() as u32 - 1;
    plan.promise
        .clauses
        .push(rcc_plan::collective::Clause { place: to(program.output, (rank, block)), list });
    plan
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(500)))]

    #[test]
    fn a_promise_is_met_if_and_only_if_the_counts_say_so(
        program in program(),
        leaf in (0..RANKS, 0..BLOCKS),
        at in (0..RANKS, 0..BLOCKS),
    ) {
        let promised = |program: &Program, at, list: &[(usize, usize)]| codes(promise(program, at, list));
        let Some(counts) = program.held.get(&(true, at.0, at.1)) else {
            prop_assert_eq!(promised(&program, at, &[leaf]), ["plan::v4_promise"]);
            return Ok(());
        };
        let mut list: Vec<(usize, usize)> = counts.keys().copied().collect();
        let expected: &[&str] = match counts.values().all(|&count| count == 1) {
            true => &[],
            false => &["plan::v4_promise"],
        };
        prop_assert_eq!(promised(&program, at, &list), expected);
        // One more, or one less.
        match list.iter().position(|&known| known == leaf) {
            Some(at) if list.len() > 1 => drop(list.remove(at)),
            Some(_) => return Ok(()),
            None => list.push(leaf),
        }
        prop_assert_eq!(promised(&program, at, &list), ["plan::v4_promise"]);
    }

    #[test]
    fn what_is_exposed_is_what_the_counts_say(program in program()) {
        let verified = verify(program.plan.clone(), &Limits::default()).unwrap();
        let symbolic = verified.symbolic();
        for rank in 0..RANKS {
            for block in 0..BLOCKS {
                let exit = symbolic.exit(Form::Disjoint, program.output, RankId(rank as u32), block as u32);
                let expected = program.held.get(&(true, rank, block));
                prop_assert_eq!(exit.is_some(), expected.is_some());
                let Some(exit) = exit else { continue };
                let mut counts = Counts::new();
                let leaf_of = |value: ValueId| {
                    let all = (0..RANKS).flat_map(|rank| (0..BLOCKS).map(move |block| (rank, block)));
                    let entry = |&(rank, block): &(usize, usize)| {
                        symbolic.entry(program.input, RankId(rank as u32), block as u32) == Some(value)
                    };
                    all.into_iter().find(entry).unwrap()
                };
                count(&symbolic.values, exit, &leaf_of, &mut counts);
                prop_assert_eq!(Some(&counts), expected);
                prop_assert_eq!(symbolic.exit(Form::Same, program.output, RankId(rank as u32), block as u32), None);
            }
        }
    }
}

/// Counts the leaves of a value by walking the tree.
fn count(values: &Values, value: ValueId, leaf_of: &impl Fn(ValueId) -> (usize, usize), counts: &mut Counts) {
    match values.node(value) {
        Node::Leaf(_) => *counts.entry(leaf_of(value)).or_default() += 1,
        Node::Combined { left, right, .. } => {
            count(values, left, leaf_of, counts);
            count(values, right, leaf_of, counts);
        }
        Node::Post(inner) => count(values, inner, leaf_of, counts),
    }
}

#[test]
fn classes_are_positions_also_by_way_of_scratch() {
    let mut p = PlanBuilder::new("scatter", "custom", &[2]);
    p.header().cells = 3;
    let (input, output) = (p.buffer("input", Role::Send, 2), p.buffer("output", Role::Recv, 1));
    let scratch = p.scratch(3);
    let blocks = [p.block(0), p.block(1)];
    let channel = p.channel(blocks[0], &[blocks[1]]);
    let token = p.counter(blocks[0], &[blocks[1]]);
    p.step(blocks[0], &[local(input, 4)], &[put(channel)]).width(2);
    p.step(blocks[0], &[], &[put(token)]);
    p.step(blocks[1], &[get(channel)], &[local(scratch, 0)]).width(2);
    p.step(blocks[1], &[get(token)], &[]);
    p.step(blocks[1], &[local(scratch, 1)], &[local(output, 2)]);
    let built = p.finish().unwrap();
    let verified = verify(built.plan, &Limits::default()).unwrap();
    let classes: Vec<Vec<Option<u32>>> = (0..5)
        .map(|s| {
            let step = rcc_plan::ids::StepId(s);
            (0..verified.steps[step.index()].width).map(|m| verified.symbolic().class(step, m)).collect()
        })
        .collect();
    let expected = [vec![Some(1), Some(2)], vec![None], vec![Some(1), Some(2)], vec![None], vec![Some(2)]];
    assert_eq!(classes, expected);
    assert_eq!(verified.symbolic().class(rcc_plan::ids::StepId(5), 0), None);
    assert_eq!(verified.symbolic().entry(output, RankId(0), 0), None);
    assert_eq!(verified.symbolic().entry(input, RankId(2), 0), None);
    assert_eq!(verified.symbolic().entry(input, RankId(0), 6), None);
    assert_eq!(verified.symbolic().entry(BufferId(9), RankId(0), 0), None);
}
