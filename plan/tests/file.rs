//! Plan files: what is written is read; anything else is refused by name, without panic, in bounded memory.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::plans;
use proptest::prelude::*;
use rcc_plan::builder::{PlanBuilder, local};
use rcc_plan::dtype::{Dtype, Op};
use rcc_plan::file::{ContentHash, FORMAT_VERSION, LoadError, LoadLimits};
use rcc_plan::plan::{Form, Operand, Plan, ProofStatus, Role, Step};
use rcc_plan::signature::{Call, Signature};
use rcc_plan::verify::{Limits, verify};
use sha2::{Digest, Sha256};

/// Where the parts of the preface start.
const VERSION: usize = 8;
const LENGTH: usize = 12;
const HASH: usize = 20;
const CONTENT: usize = 52;

fn load(bytes: &[u8]) -> Result<Plan, LoadError> {
    Plan::from_bytes(bytes, &LoadLimits::default())
}

/// Makes length and hash agree with the content, as one would who means harm.
fn seal(bytes: &mut [u8]) {
    let length = (bytes.len() - CONTENT) as u64;
    bytes[LENGTH..HASH].copy_from_slice(&length.to_le_bytes());
    let hash: [u8; 32] = Sha256::digest(&bytes[CONTENT..]).into();
    bytes[HASH..CONTENT].copy_from_slice(&hash);
}

#[test]
fn what_is_written_is_read() {
    for (name, plan) in plans::small() {
        let bytes = plan.to_bytes();
        assert_eq!(load(&bytes).as_ref(), Ok(&plan), "{name}");
        let content: [u8; 32] = Sha256::digest(&bytes[CONTENT..]).into();
        assert_eq!(content, bytes[HASH..CONTENT], "{name}");
    }
}

/// A plan's hash is that of its steps, not of how a file holds them.
#[test]
fn hashes_are_of_the_plan_spelled_out() {
    for (name, plan) in plans::small() {
        let spelled: [u8; 32] = Sha256::digest(postcard::to_stdvec(&plan).unwrap()).into();
        assert_eq!(plan.content_hash(), ContentHash(spelled), "{name}");
        let text: String = spelled.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(plan.content_hash().to_string(), text, "{name}");
        assert_eq!(verify(plan, &Limits::default()).unwrap().content_hash(), ContentHash(spelled), "{name}");
    }
}

#[test]
fn verified_plans_have_one_hash_whatever_they_claimed() {
    let mut plan = plans::ring_allreduce(3);
    let hash = |plan: &Plan| verify(plan.clone(), &Limits::default()).unwrap().content_hash();
    let honest = hash(&plan);
    plan.header.proof = ProofStatus::None;
    assert_eq!(hash(&plan), honest);
    plan.header.copies = 2;
    assert_ne!(hash(&plan), honest);
}

#[test]
fn each_way_to_be_no_plan_has_its_error() {
    let plan = plans::ring_allreduce(3);
    let right = plan.to_bytes();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = right.clone();
        change(&mut bytes);
        load(&bytes).unwrap_err()
    };
    assert_eq!(load(b"").unwrap_err(), LoadError::NotAPlan);
    assert_eq!(
        load(b"\x7fELF and so on, for long enough to hold a whole preface").unwrap_err(),
        LoadError::NotAPlan
    );
    assert_eq!(changed(&|b| b[0] = b'R'), LoadError::NotAPlan);
    let expected = CONTENT as u64;
    assert_eq!(load(b"rcc").unwrap_err(), LoadError::Truncated { expected, found: 3 });
    assert_eq!(load(&right[..CONTENT - 1]).unwrap_err(), LoadError::Truncated { expected, found: 51 });
    let expected = right.len() as u64;
    assert_eq!(changed(&|b| b.truncate(b.len() - 1)), LoadError::Truncated { expected, found: expected - 1 });
    assert_eq!(changed(&|b| b.push(0)), LoadError::Trailing { extra: 1 });
    assert_eq!(
        changed(&|b| b[VERSION] += 1),
        LoadError::Newer { found: FORMAT_VERSION + 1, read: FORMAT_VERSION }
    );
    assert_eq!(changed(&|b| b[VERSION] = 0), LoadError::Older { found: 0, read: FORMAT_VERSION });
    assert_eq!(changed(&|b| b[VERSION] = 1), LoadError::Older { found: 1, read: FORMAT_VERSION });
    assert!(matches!(changed(&|b| b[CONTENT + 9] ^= 1), LoadError::Damaged { .. }));
    assert!(matches!(changed(&|b| b[HASH] ^= 1), LoadError::Damaged { .. }));
    let extra = |b: &mut Vec<u8>| {
        b.push(0);
        seal(b);
    };
    assert!(matches!(changed(&extra), LoadError::Malformed { .. }));
    let cut = |b: &mut Vec<u8>| {
        b.pop();
        seal(b);
    };
    assert!(matches!(changed(&cut), LoadError::Malformed { .. }));
    for way in [2, 255] {
        let other = |b: &mut Vec<u8>| {
            b[CONTENT] = way;
            seal(b);
        };
        assert!(matches!(changed(&other), LoadError::Malformed { .. }));
    }
    let limits = LoadLimits { bytes: expected - 1, ..LoadLimits::default() };
    let too_large = LoadError::TooLarge { bytes: expected, limit: expected - 1 };
    assert_eq!(Plan::from_bytes(&right, &limits).unwrap_err(), too_large);
    assert_eq!(
        changed(&|b| b[LENGTH..HASH].fill(0xff)),
        LoadError::Truncated { expected: u64::MAX, found: expected }
    );
}

#[test]
fn every_cut_is_refused() {
    let right = plans::exchange(2).to_bytes();
    for length in 0..right.len() {
        assert!(load(&right[..length]).is_err(), "{length}");
        if length >= CONTENT {
            let mut sealed = right[..length].to_vec();
            seal(&mut sealed);
            assert!(load(&sealed).is_err(), "{length}");
        }
    }
}

/// What loading may take: three times what the plan's tables may; and for each of the file's bytes, what holds a form that
/// no block has, or a name. Besides, what serde takes in advance for each table (1 MiB).
fn bound(bytes: usize, limits: &LoadLimits) -> usize {
    3 * limits.expanded as usize + 100 * bytes + (4 << 20)
}

/// Little is allowed, so that what is taken beyond it shows.
const TIGHT: LoadLimits = LoadLimits { bytes: 1 << 20, expanded: 1 << 17 };

#[test]
fn lengths_that_lie_take_no_memory() {
    // A name, then tables, that claim to have very many elements.
    let right = plans::exchange(2).to_bytes();
    for at in CONTENT..right.len() {
        for claim in [&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0xff, 0xff, 0x3f]] {
            for rest in [at, at + 1] {
                let bytes = sealed(&[&right[..at], claim, &right[rest..]].concat());
                let (peak, result) = peak_of(|| Plan::from_bytes(&bytes, &TIGHT));
                assert!(peak <= bound(bytes.len(), &TIGHT), "{peak} bytes for byte {at}: {result:?}");
            }
        }
    }
}

fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    seal(&mut bytes);
    bytes
}

/// Plans whose tables are not in order are spelled out, and read back as they are.
#[test]
fn what_is_out_of_order_is_spelled_out() {
    let mut plan = plans::ring_allreduce(3);
    plan.operands.push(plan.operands[0]);
    assert_eq!(plan.to_bytes()[CONTENT], 1);
    assert_eq!(load(&plan.to_bytes()), Ok(plan));
    let mut plan = plans::exchange(2);
    plan.promise.lists = vec![Vec::new(); 1 << 20];
    plan.steps[0].operands += 1;
    let bytes = plan.to_bytes();
    let limits = LoadLimits { expanded: 24 * (bytes.len() - CONTENT - 1) as u64, ..LoadLimits::default() };
    let (peak, loaded) = peak_of(|| Plan::from_bytes(&bytes, &limits));
    assert_eq!(loaded, Ok(plan));
    assert!(peak <= bound(bytes.len(), &limits), "{peak} bytes");
    let limits = LoadLimits { expanded: limits.expanded - 1, ..limits };
    let refused = LoadError::Expands { bytes: limits.expanded + 1, limit: limits.expanded };
    assert_eq!(Plan::from_bytes(&bytes, &limits), Err(refused));
}

/// A ring of a thousand ranks is a few hundred bytes; whoever reads them says how much that may become.
#[test]
fn what_loops_become_is_limited_before_it_is_made() {
    let plan = plans::ring_allreduce(1024);
    let bytes = plan.to_bytes();
    assert!(bytes.len() < 2000);
    let tables = size_of::<Step>() * plan.steps.len() + size_of::<Operand>() * plan.operands.len();
    let limits = |expanded: usize| LoadLimits { expanded: expanded as u64, ..LoadLimits::default() };
    let (peak, loaded) = peak_of(|| Plan::from_bytes(&bytes, &limits(tables + tables / 10)));
    assert!(loaded == Ok(plan));
    assert!(peak < tables + tables / 10, "{peak} bytes");
    for expanded in [tables, tables / 3, 1 << 20, 0] {
        let limits = limits(expanded);
        let (peak, refused) = peak_of(|| Plan::from_bytes(&bytes, &limits).err());
        let Some(LoadError::Expands { bytes: found, limit }) = refused else { panic!("{refused:?}") };
        assert!(found > limit && limit == limits.expanded);
        assert!(peak <= bound(bytes.len(), &TIGHT), "{peak} bytes");
    }
}

#[test]
fn limits_of_loading_follow_those_of_verification() {
    let usual = Limits::default();
    assert_eq!(LoadLimits::of(&usual), LoadLimits::default());
    let raised = Limits { accesses: usual.accesses * 3, ..usual.clone() };
    assert_eq!(LoadLimits::of(&raised).expanded, 3 * LoadLimits::default().expanded);
    let lowered = Limits { steps: 1, ..usual.clone() };
    assert_eq!(LoadLimits::of(&lowered), LoadLimits::default());
    assert_eq!(LoadLimits::of(&Limits { places: u64::MAX, ..usual }).expanded, u64::MAX);
}

/// Counts of loops, one after the other, as large as they can be: refused, without spelling anything out.
#[test]
fn bombs_are_refused_quickly() {
    let right = plans::ring_allreduce(16).to_bytes();
    let mut refused = 0;
    for at in CONTENT..right.len() {
        for claim in
            [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xfe, 0xff, 0xff, 0xff, 0x1f], &[0xfe, 0xff, 0xff, 0x7f]]
        {
            let bytes = sealed(&[&right[..at], claim, &right[at + 1..]].concat());
            let (peak, loaded) = peak_of(|| load_within(&bytes, 1 << 20));
            assert!(peak <= 3 * (1 << 20) + 100 * bytes.len() + (4 << 20), "{peak} bytes for byte {at}");
            refused += usize::from(matches!(loaded, Err(LoadError::Expands { .. })));
        }
    }
    assert!(refused > 20, "{refused}");
}

/// Loops within loops, of which one repeats very often and another not at all: refused, not waited for.
#[test]
fn loops_that_do_nothing_take_no_time() {
    let mut p = PlanBuilder::new("nested", "custom", &[1]);
    p.header().cells = 1000;
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 1));
    let block = p.block(0);
    for (t, u) in (0..9).flat_map(|t| (0..7).map(move |u| (t, u))) {
        p.step(block, &[local(input, 50 * t + u)], &[local(output, 600 - u)]);
    }
    let plan = p.finish().unwrap().plan;
    let right = plan.to_bytes();
    assert_eq!(load(&right), Ok(plan));
    // How often the loops repeat is a run (1) from 9 by -2: one from 2^32 - 1 to 0.
    let counts: Vec<usize> =
        (CONTENT..right.len()).filter(|&at| right[at..].starts_with(&[1, 18, 3])).collect();
    assert_eq!(counts.len(), 1);
    let mut bytes = right;
    let never = [1, 0xfe, 0xff, 0xff, 0xff, 0x1f, 0xfd, 0xff, 0xff, 0xff, 0x1f];
    bytes.splice(counts[0]..counts[0] + 3, never);
    seal(&mut bytes);
    let refused = load_within(&bytes, 1 << 20).map(|plan| plan.steps.len());
    assert!(matches!(refused, Err(LoadError::Malformed { .. })), "{refused:?}");
}

fn load_within(bytes: &[u8], expanded: u64) -> Result<Plan, LoadError> {
    Plan::from_bytes(bytes, &LoadLimits { expanded, ..LoadLimits::default() })
}

/// A byte changed where the preface vouches for it: an error, or a plan that its own bytes give again.
#[test]
fn every_byte_changed_is_an_error_or_another_plan() {
    for (name, plan) in plans::small() {
        let right = plan.to_bytes();
        let (mut errors, mut others) = (0, 0);
        for at in CONTENT..right.len() {
            for value in [right[at] ^ 1, right[at] ^ 2, right[at].wrapping_add(1), right[at] ^ 0x80, 0, 0xff]
            {
                let mut bytes = right.clone();
                bytes[at] = value;
                seal(&mut bytes);
                match load_within(&bytes, 1 << 22) {
                    Ok(other) => {
                        others += 1;
                        assert_eq!(load(&other.to_bytes()), Ok(other));
                    }
                    Err(error) => {
                        errors += 1;
                        assert!(!error.to_string().is_empty());
                    }
                }
            }
        }
        assert!(errors > 50 && others > 50, "{name}: {errors} {others}");
    }
}

/// How many cases a property is tried on: `usual`, and more or fewer as `PROPTEST_CASES` is more or fewer than 256.
fn cases(usual: u32) -> u32 {
    let given = ProptestConfig::default().cases;
    (u64::from(usual) * u64::from(given) / 256).clamp(1, u64::from(u32::MAX)) as u32
}

/// Small limits: what `verify` may take for a plan that passes them.
fn limits() -> Limits {
    Limits {
        places: 100_000,
        micro_steps: 100_000,
        accesses: 100_000,
        clock_entries: 100_000,
        arrival_words: 100_000,
        ranks: 10_000,
        promise_visits: 1_000_000,
        ..Limits::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(3000),
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn changed_bytes_never_panic_and_take_little_memory(
        which in 0usize..16,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..8), 1..6),
        sealed in prop::bool::weighted(0.9),
    ) {
        let plan = plans::small().swap_remove(which).1;
        let mut bytes = plan.to_bytes();
        let from = if sealed { CONTENT } else { 0 };
        for (at, value, how) in changes {
            let at = from + at.index(bytes.len() - from);
            match how {
                0 => bytes.insert(at, value),
                1 if bytes.len() > from + 1 => drop(bytes.remove(at)),
                2 => bytes[at] = value,
                3 => bytes[at] = value & 7,
                4 => bytes[at] ^= 1 << (value & 7),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
        }
        if sealed {
            seal(&mut bytes);
        }
        let (peak, loaded) = peak_of(|| Plan::from_bytes(&bytes, &TIGHT));
        prop_assert!(peak <= bound(bytes.len(), &TIGHT), "{} bytes", peak);
        match loaded {
            Err(error) => drop(error.to_string()),
            Ok(plan) => {
                let (peak, _) = peak_of(|| verify(plan, &limits()).map_err(|v| v.iter().map(|v| v.to_string().len()).sum::<usize>()));
                prop_assert!(peak <= 64 << 20, "{} bytes", peak);
            }
        }
    }

    #[test]
    fn signatures_differ_where_calls_differ(
        (a, b) in (call(), call()),
        (i, j) in (1u64..100, 1u64..100),
    ) {
        let signature = |call: &OwnedCall, number| Signature::new(&call.borrow()).of_call(number);
        prop_assert_eq!(signature(&a, i) == signature(&b, j), a == b && i == j);
        prop_assert_eq!(signature(&a, u64::MAX), signature(&a, u64::MAX));
    }
}

#[derive(Debug, Clone, PartialEq)]
struct OwnedCall {
    plan: ContentHash,
    collective: String,
    params: Vec<(String, i64)>,
    counts: Vec<u64>,
    dtype: Dtype,
    op: Op,
    operator: Option<String>,
    form: Option<Form>,
}

impl OwnedCall {
    fn borrow(&self) -> Call<'_> {
        let OwnedCall { plan, collective, params, counts, dtype, op, operator, form } = self;
        let (dtype, op, form) = (*dtype, *op, *form);
        Call { plan: *plan, collective, params, counts, dtype, op, operator: operator.as_deref(), form }
    }
}

/// Calls of few kinds, so that two are often equal, or equal but for where a text ends.
fn call() -> impl Strategy<Value = OwnedCall> {
    let params = proptest::collection::vec(("[ab]{0,2}", 0i64..2), 0..2);
    let form = prop::sample::select(vec![None, Some(Form::Disjoint), Some(Form::Same)]);
    let counts = proptest::collection::vec(0u64..2, 0..2);
    let types = (prop::sample::select(&Dtype::ALL[..2]), prop::sample::select(&Op::ALL[..2]));
    let operator = proptest::option::of("[ab]{1,2}");
    (0u8..2, "[ab]{0,2}", params, counts, types, operator, form).prop_map(
        |(plan, collective, params, counts, (dtype, op), operator, form)| OwnedCall {
            plan: ContentHash([plan; 32]),
            collective,
            params,
            counts,
            dtype,
            op,
            operator,
            form,
        },
    )
}

/// Runs `act`, and says how many bytes more than before were allocated at the worst moment.
fn peak_of<T>(act: impl FnOnce() -> T) -> (usize, T) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = act();
    (PEAK.get().saturating_sub(before).max(0) as usize, result)
}

/// Counts what each thread has allocated.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    LIVE.set(LIVE.get() + bytes);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call goes to the system's allocator with the caller's own arguments; counting allocates nothing
// (the thread locals are constants without destructors).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(at, layout) }
    }
}
