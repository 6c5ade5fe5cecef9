//! The history of a place, as data and as text.

use grammar::span::{FileId, Span};
use plan::ids::RankId;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use rcc_compiler::diagnostics::history::{answer, parse_place};
use rcc_compiler::graph::{Form, arity, build, contents, histories, history};
use rcc_compiler::source::Sources;
use rcc_compiler::trace::{Bindings, BufferKind, MoveId, MoveKind};

use crate::cases;
use crate::executor::{self, sum};
use crate::laws::mutated;
use crate::traces::{Builder, alltoall, at, recursive_doubling, ring};

#[test]
fn versions_writers_and_readers() {
    let trace = ring(4).trace;
    let graph = build(&trace, Form::Disjoint).unwrap();
    let past = history(&trace, &graph, at(0, 3, 0));
    let writers: Vec<_> = past.iter().map(|p| p.writer).collect();
    // Chunk 0 sets out from rank 1: hops 1 → 2 → 3 → 0 make moves 0, 1, 2; the complete one comes back by 12 + 2.
    assert_eq!(writers, [None, Some(MoveId(1)), Some(MoveId(14))]);
    let readers: Vec<_> = past.iter().map(|p| p.readers.clone()).collect();
    assert_eq!(readers, [vec![MoveId(1)], vec![MoveId(2)], vec![]]);
    let ranks: Vec<_> = past[1].contents.iter().map(|&(place, count)| (place.rank.0, count)).collect();
    assert_eq!(ranks, [(1, 1), (2, 1), (3, 1)]);
}

/// What a version is said to be made of is what the executor's sum consists of, doubles included.
#[test]
fn contents_add_up() {
    let mut b = recursive_doubling(2);
    for (to, from) in [(1, 0), (2, 1), (3, 3), (3, 2)] {
        b.add(at(0, to, 0), at(0, from, 0));
    }
    let graph = build(&b.trace, Form::Disjoint).unwrap();
    let truth = executor::run(&b.trace, Form::Disjoint, sum, None).unwrap();
    let leaf = |place| history(&b.trace, &graph, place)[0].contents[0];
    for rank in 0..4 {
        let past = history(&b.trace, &graph, at(0, rank, 0));
        for version in past {
            let Some(mv) = version.writer else {
                assert_eq!(version.contents, [leaf(at(0, rank, 0))]);
                continue;
            };
            let of = |p: rcc_compiler::trace::Place| executor::mix(u64::from(p.rank.0)) % ((1 << 61) - 1);
            let total = version
                .contents
                .iter()
                .fold(0, |acc, &(place, count)| (0..count).fold(acc, |acc, _| sum(acc, of(place), true)));
            assert_eq!(total, truth.written[mv.0 as usize][0]);
        }
    }
}

proptest! {
    #![proptest_config(cases(96))]

    /// All cells at once say what each says alone, and contents are those of the whole value, whatever was known before.
    #[test]
    fn many_cells_at_once(case in mutated()) {
        let trace = &case.0;
        let Ok(graph) = build(trace, Form::Disjoint) else { return Ok(()) };
        let mut places = Vec::new();
        for (b, buffer) in trace.buffers.iter().enumerate().filter(|(_, b)| b.kind != BufferKind::Signal) {
            for rank in (0..trace.ranks).filter(|&rank| buffer.at.holds(RankId(rank))) {
                places.extend((0..buffer.blocks * trace.cells).map(|cell| at(b as u32, rank, cell)));
            }
        }
        let all = histories(trace, &graph, &places);
        prop_assert_eq!(all.len(), places.len());
        let mut versions = 0;
        for (&place, past) in places.iter().zip(&all) {
            prop_assert_eq!(past, &history(trace, &graph, place));
            versions += past.len();
            for version in past {
                let known = graph.version(version.version);
                prop_assert_eq!(known.place, graph.places.index(place));
                prop_assert_eq!(&version.contents, &contents(&graph, known.value));
                for (m, mv) in trace.moves.iter().enumerate() {
                    let id = MoveId(m as u32);
                    let reads = (0..mv.width).any(|i| graph.read(id, i, arity(trace, mv)).contains(&version.version));
                    prop_assert_eq!(reads, version.readers.contains(&id));
                }
            }
        }
        prop_assert!(versions >= places.len().min(1));
    }
}

/// A cell that is added to a hundred thousand times, and one of a hundred thousand cells: seconds if each version were looked
/// through to its entry values, or all moves for each cell.
#[test]
fn large_and_wrong() {
    const TIMES: u64 = 100_000;
    let mut b = recursive_doubling(1);
    b.trace.moves.clear();
    for _ in 0..TIMES {
        b.add(at(0, 0, 0), at(0, 1, 0));
    }
    let graph = build(&b.trace, Form::Disjoint).unwrap();
    let past = history(&b.trace, &graph, at(0, 0, 0));
    assert_eq!(past.len() as u64, TIMES + 1);
    for (i, version) in past.iter().enumerate() {
        let from_other = version.contents.iter().filter(|(place, _)| place.rank.0 == 1);
        assert_eq!(from_other.map(|&(_, count)| count).sum::<u64>(), i as u64);
    }

    let mut b = ring(2);
    b.trace.chunks = 1;
    b.trace.cells = TIMES as u32;
    b.trace.moves.clear();
    for cell in 0..TIMES as u32 {
        b.add(at(0, 0, cell), at(0, 1, cell));
    }
    let graph = build(&b.trace, Form::Disjoint).unwrap();
    let mut sources = Sources::default();
    sources.add("ring.coll", "data[c] @ q += data[c] @ p\n");
    let mut ask = |_: MoveId| Bindings(vec![], vec![]);
    let told = answer("data @ 0", &b.trace, &graph, &sources, &mut ask).unwrap();
    assert_eq!(told.matches(" on 2 ranks").count(), 8, "each cell has a move of its own:\n{told}");
}

#[test]
fn places_as_users_write_them() {
    let mut b = alltoall(6, 4).buffer("one", BufferKind::Scratch, 1);
    b.trace.shape = vec![2, 3];
    b.trace.chunks = 2;
    let read = |text| parse_place(&b.trace, text);
    assert_eq!(read("input[2][1] @ 3"), Ok((at(0, 3, 10), 2)));
    assert_eq!(read(" output [ 5 ] @ (1, 2) "), Ok((at(1, 5, 20), 4)));
    assert_eq!(read("output @ 0"), Ok((at(1, 0, 0), 24)));
    assert_eq!(read("one[1] @ 0"), Ok((at(2, 0, 2), 2)));
    assert_eq!(read("one[0][1] @ 0"), Ok((at(2, 0, 2), 2)));
    for wrong in
        ["", "input", "input @ 6", "input @ (2, 0)", "input @ (1, 2, 3)", "input[6] @ 0", "input[0][2] @ 0"]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    for wrong in
        ["input[0][0][0] @ 0", "input[x] @ 0", "input[0 @ 0", "inptu @ 0", "input[-1] @ 0", "@", "[0] @ 1"]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    assert_eq!(
        read("inptu @ 0").unwrap_err(),
        "there is no buffer `inptu`: there are `input`, `output` and `one`"
    );
}

#[test]
fn the_answer_in_words() {
    let text = "data[c] @ q += data[c] @ p\ndata[c] @ q = data[c] @ p\n";
    let mut sources = Sources::default();
    sources.add("ring.coll", text);
    let mut b: Builder = ring(4);
    for (m, mv) in b.trace.moves.iter().enumerate() {
        let (start, end) = if mv.kind == MoveKind::Combine { (0, 26) } else { (27, 52) };
        b.trace.origins[m].span = Span::new(FileId(0), start, end);
    }
    b.add(at(0, 3, 0), at(0, 3, 1));
    b.trace.moves.pop();
    b.add(at(0, 3, 0), at(0, 2, 0));
    b.trace.origins.last_mut().unwrap().span = Span::new(FileId(0), 0, 26);
    let graph = build(&b.trace, Form::Disjoint).unwrap();
    let mut ask = |mv: MoveId| Bindings(vec![("move".to_string(), i64::from(mv.0))], vec![]);
    let found = answer("data[0] @ 3", &b.trace, &graph, &sources, &mut ask).unwrap();
    let wanted = "\
data[0] @ 3 on 4 ranks
  at entry                  data[0] @ 3 (read once)
  ring.coll:1:1  move = 1   data[0] of ranks 1 to 3 (read once)
  ring.coll:2:1  move = 14  data[0] of ranks 0 to 3 (read once)
  ring.coll:1:1  move = 24  data[0] of ranks 0 to 3, each 2 times (never read)
";
    assert_eq!(found, wanted);
    let all = answer("data @ 3", &b.trace, &graph, &sources, &mut ask).unwrap();
    assert!(all.starts_with(wanted) && all.matches(" on 4 ranks").count() == 4, "{all}");
    b.trace.moves.clear();
    b.trace.promise_mut().lists.clear();
    let graph = build(&b.trace, Form::Disjoint).unwrap();
    let none = answer("data[1] @ 0", &b.trace, &graph, &sources, &mut ask).unwrap();
    assert_eq!(none, "data[1] @ 0 on 4 ranks\n  nothing is ever there\n");
}
