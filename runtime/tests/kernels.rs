//! Kernels against `plan::arith`, the definition: every type and operator, odd lengths, odd addresses, in place.

use half::{bf16, f16};
use plan::arith::{self, Rounding};
use plan::dtype::{Dtype, Factor, Op};
use plan::float8::{F8E4m3, F8E5m2};
use plan::pre::Pre;
use rcc_runtime::exec::kernels::{Fold, Kernel, Set, Stream, fold};

/// A generator that needs no dependency; any good mixing will do.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, n: u64) -> usize {
        (self.next() % n) as usize
    }
}

/// Elements: any bits (infinities, NaN, subnormals and all), numbers near one another, zeros of both signs.
fn element(dtype: Dtype, random: &mut Random, out: &mut [u8]) {
    let near = (random.below(4000) as f64 - 2000.0) / 16.0;
    let zero = if random.next() & 1 == 0 { 0.0 } else { -0.0 };
    let kind = random.below(4);
    let real = if kind == 0 { zero } else { near };
    let bits = random.next();
    let bytes: Vec<u8> = match (dtype, kind) {
        (Dtype::F32, 0..=2) => (real as f32).to_ne_bytes().to_vec(),
        (Dtype::F64, 0..=2) => real.to_ne_bytes().to_vec(),
        (Dtype::F16, 0..=2) => f16::from_f64(real).to_ne_bytes().to_vec(),
        (Dtype::Bf16, 0..=2) => bf16::from_f64(real).to_ne_bytes().to_vec(),
        (Dtype::F8E4m3, 0..=2) => F8E4m3::from_f32(real as f32).to_ne_bytes().to_vec(),
        (Dtype::F8E5m2, 0..=2) => F8E5m2::from_f32(real as f32).to_ne_bytes().to_vec(),
        _ => bits.to_ne_bytes().to_vec(),
    };
    out.copy_from_slice(&bytes[..out.len()]);
}

fn is_nan(dtype: Dtype, bytes: &[u8]) -> bool {
    matches!(arith::number(dtype, bytes), arith::Number::Float(x) if x.is_nan())
}

fn assert_same(dtype: Dtype, got: &[u8], expected: &[u8], what: &str) {
    let size = dtype.size() as usize;
    for (i, (got, expected)) in got.chunks(size).zip(expected.chunks(size)).enumerate() {
        let same = got == expected || (is_nan(dtype, got) && is_nan(dtype, expected));
        let [g, e] = [got, expected].map(|bytes| arith::number(dtype, bytes));
        assert!(same, "{what}: element {i} is {g}, not {e}");
    }
}

struct Case {
    dtype: Dtype,
    op: Op,
    count: usize,
    sources: usize,
    destinations: usize,
    rounding: Rounding,
    /// This source is also the first destination.
    in_place: Option<usize>,
    set: Set,
    stream: Stream,
}

fn check(case: &Case, random: &mut Random) {
    let Case { dtype, op, count, sources, destinations, rounding, in_place, set, stream } = *case;
    let bytes = count * dtype.size() as usize;
    let what = format!(
        "{dtype} {op} x {count}, {sources} to {destinations}, {rounding:?}, in place {in_place:?}, {set:?}, {stream:?}"
    );
    // Each operand at an address of its own oddness, with a guard on both sides.
    let mut memory: Vec<(usize, Vec<u8>)> = Vec::new();
    for _ in 0..sources + destinations {
        let mut area = vec![0xee; bytes + 192];
        let at = 64 + random.below(64);
        for to in area[at..at + bytes].chunks_mut(dtype.size() as usize) {
            element(dtype, random, to);
        }
        memory.push((at, area));
    }
    let operands: Vec<Vec<u8>> =
        memory[..sources].iter().map(|(at, m)| m[*at..at + bytes].to_vec()).collect();
    let mut expected = vec![0; bytes];
    let slices: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    arith::fold(dtype, op, &slices, rounding, &mut expected);

    let pointers: Vec<*mut u8> = memory.iter_mut().map(|(at, m)| m[*at..].as_mut_ptr()).collect();
    let from: Vec<*const u8> = pointers[..sources].iter().map(|p| p.cast_const()).collect();
    let mut to = pointers[sources..].to_vec();
    if let (Some(source), Some(first)) = (in_place, to.first_mut()) {
        *first = pointers[source];
    }
    let request = Fold {
        sources: &from,
        destinations: &to,
        count,
        round_each: rounding.round_each,
        divisor: rounding.post,
        pre: rounding.pre,
        stream,
    };
    // SAFETY: all areas have `bytes` bytes after their addresses; they are apart, or one and the same.
    unsafe { Kernel::of_set(dtype, op, set).run(&request) };

    for (d, (at, area)) in memory.iter().enumerate().skip(sources) {
        let (at, area) = match in_place {
            Some(source) if d == sources => (&memory[source].0, &memory[source].1),
            _ => (at, area),
        };
        assert_same(dtype, &area[*at..at + bytes], &expected, &what);
    }
    for (i, (at, area)) in memory.iter().enumerate() {
        let guard = area[..*at].iter().chain(&area[at + bytes..]);
        assert!(guard.copied().all(|b| b == 0xee), "{what}: wrote beyond operand {i}");
        if i < sources && in_place != Some(i) {
            assert_eq!(&area[*at..at + bytes], &operands[i], "{what}: changed source {i}");
        }
    }
}

#[test]
fn every_type_and_operator_agrees_with_the_definition() {
    let mut random = Random(7);
    for dtype in Dtype::ALL {
        // A factor by which products round, beside the plain one.
        let rounds = Op::PremulSum(Factor::new(if dtype.is_float() { 0.3 } else { 7.0 }));
        for op in Op::ALL.into_iter().chain([rounds]) {
            for sources in [1, 2, 3, 5] {
                for count in [0, 1, 2, 31, 32, 33, 64, 97, 1000 + sources] {
                    for destinations in 0..3 {
                        let post = if op == Op::Avg { [None, Some(3), Some(300)] } else { [None; 3] };
                        let rounding = Rounding {
                            round_each: random.next() & 1 == 0,
                            post: post[random.below(3)],
                            pre: Pre(random.below(1 << sources) as u32),
                        };
                        let in_place = (destinations > 0 && random.next() & 1 == 0)
                            .then(|| random.below(sources as u64));
                        for set in Set::available() {
                            let stream = Stream::of((0..destinations).map(|_| random.next() & 1 == 0));
                            let case = Case {
                                dtype,
                                op,
                                count,
                                sources,
                                destinations,
                                rounding,
                                in_place,
                                set,
                                stream,
                            };
                            check(&case, &mut random);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rounding_once_differs_from_rounding_each_time() {
    // 1 + 2^-11 + 2^-11 in f16: once, it is 1 + 2^-10; each time, the halves are lost to even.
    let operands = [1.0, 1.0 / 2048.0, 1.0 / 2048.0].map(f16::from_f64);
    let sources = operands.each_ref().map(|x| std::ptr::from_ref(x).cast::<u8>());
    let run = |round_each| {
        let mut result = f16::ZERO;
        let destinations = [std::ptr::from_mut(&mut result).cast::<u8>()];
        let request = Fold {
            sources: &sources,
            destinations: &destinations,
            count: 1,
            round_each,
            divisor: None,
            pre: Pre::NONE,
            stream: Stream::NONE,
        };
        // SAFETY: one element each.
        unsafe { fold(Dtype::F16, Op::Sum, &request) };
        result.to_f64()
    };
    assert_eq!(run(false), 1.0 + 1.0 / 1024.0);
    assert_eq!(run(true), 1.0);
}

/// Each destination at each offset within a line, with whatever the other has: what goes past the caches is the same.
#[test]
fn stores_past_the_caches_leave_the_same_bytes_at_every_address() {
    #[repr(align(64))]
    struct Lines([u8; 1024]);
    let sources: [Lines; 2] =
        [3u8, 101].map(|by| Lines(std::array::from_fn(|i| (i as u8).wrapping_mul(by).wrapping_add(7))));
    let mut random = Random(11);
    for set in Set::available() {
        for first in 0..64 {
            for (dtype, op) in [(Dtype::U8, Op::Sum), (Dtype::F16, Op::Max), (Dtype::F64, Op::Min)] {
                let count = 600 / dtype.size() as usize;
                let (second, from) = (random.below(64), random.below(64));
                let operands = sources.each_ref().map(|lines| lines.0[from..].as_ptr());
                let run = |sources: &[*const u8], stream: [bool; 2]| {
                    let mut results = [Lines([0xee; 1024]), Lines([0xee; 1024])];
                    let [a, b] = &mut results;
                    let destinations = [a.0[first..].as_mut_ptr(), b.0[second..].as_mut_ptr()];
                    let request = Fold {
                        sources,
                        destinations: &destinations,
                        count,
                        round_each: false,
                        divisor: None,
                        pre: Pre::NONE,
                        stream: Stream::of(stream),
                    };
                    // SAFETY: at most 600 bytes from at most 63 on, of 1024; all apart.
                    unsafe { Kernel::of_set(dtype, op, set).run(&request) };
                    results.map(|lines| lines.0.to_vec())
                };
                for sources in [&operands[..], &operands[..1]] {
                    for stream in [[true, true], [true, false], [false, true]] {
                        let same = run(sources, stream) == run(sources, [false, false]);
                        assert!(same, "{set:?} {dtype} at {first}, {second}: {stream:?}");
                    }
                }
            }
        }
    }
}

/// What sums of two make of all 16-bit and 8-bit floats, and of numbers next to every tie.
#[test]
fn conversions_are_right_for_every_number() {
    for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F8E4m3, Dtype::F8E5m2] {
        let size = dtype.size() as usize;
        let numbers = 1u32 << (8 * size);
        let mut random = Random(5);
        let all: Vec<u8> = (0..numbers).flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
        // A shifted copy beside each: pairs of like size, whose sums round.
        for turn in 0..(1 << 16) / numbers.min(1 << 11) {
            let by = if turn == 0 { 0 } else { random.below(u64::from(numbers)) } * size;
            let other = [&all[by..], &all[..by]].concat();
            for op in [Op::Sum, Op::Prod] {
                let mut expected = vec![0; all.len()];
                arith::fold(dtype, op, &[&all, &other], Rounding::default(), &mut expected);
                for set in Set::available() {
                    let mut got = vec![0; all.len()];
                    let request = Fold {
                        sources: &[all.as_ptr(), other.as_ptr()],
                        destinations: &[got.as_mut_ptr()],
                        count: numbers as usize,
                        round_each: false,
                        divisor: None,
                        pre: Pre::NONE,
                        stream: Stream::NONE,
                    };
                    // SAFETY: `numbers` elements each, apart.
                    unsafe { Kernel::of_set(dtype, op, set).run(&request) };
                    assert_same(dtype, &got, &expected, &format!("{dtype} {op} {set:?}, turn {turn}"));
                }
            }
        }
    }
}
