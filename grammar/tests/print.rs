//! `print`: what it keeps, how it breaks lines, and that a second time changes nothing.

use rcc_grammar::span::FileId;
use rcc_grammar::{ParseLimits, eq_modulo_spans, parse, print::print};

fn format(text: &str) -> String {
    let parsed = parse(FileId(0), text, &ParseLimits::default());
    assert!(parsed.errors.is_empty(), "{:?}\n{text}", parsed.errors);
    let printed = print(&parsed.file);
    let again = parse(FileId(0), &printed, &ParseLimits::default());
    assert!(again.errors.is_empty(), "{:?}\n{printed}", again.errors);
    assert!(eq_modulo_spans(&parsed.file, &again.file), "another program:\n{printed}");
    assert_eq!(print(&again.file), printed, "printed twice");
    let comments = |file: &rcc_grammar::ast::File| {
        let mut texts: Vec<_> = file.comments.iter().map(|comment| comment.text.clone()).collect();
        texts.sort();
        texts
    };
    assert_eq!(comments(&parsed.file), comments(&again.file), "comments of\n{printed}");
    for line in printed.lines() {
        assert_eq!(line.trim_end(), line, "blanks at the end of a line");
    }
    printed
}

fn keeps(text: &str) {
    assert_eq!(format(text), text);
}

#[test]
fn canonical_text_is_kept() {
    keeps(
        "// A file.

/// Ring.
///
///   indented
algorithm ring(k: int = 4, root: rank) on ranks[n] implements allreduce {
    chunks n // one each

    // Reduce-scatter.
    for c in 0..n-1, hop in 1..n - 1 - k if c != hop { // inside
        data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n // behind
        // last
    }
    step for r in 0..n { data @ r ^ (1 << bit) += data @ r }
    if n > 2 { chunks 1 } else if n > 3 { chunks 2 } else { chunks 3 }
    if n > 2 {
        chunks 1
    } else if n > 3 { // why
        chunks 2
    } else { // else
        chunks 3
        // end
    }
    step {
        // first
        for r in 0..n { data @ r = data @ 0 }
    }
    for r in 0..n {}
    run ring on (i, *) with input = data, output = data[self]
}

collective barrier on ranks[n] { ensures synchronised } // no rank leaves

collective c on ranks[m, g] {
    in input[n]
    // between
    ensures for r in 0..n: data @ r == reduce(s in 0..n) data @ s
    inplace input = output
    out output @ root
}

fn a(x) = x
fn b(x) = x + 1
/// Doc.
fn c(x) = x + 2

// The end.
",
    );
}

#[test]
fn schedules_and_labels_are_kept() {
    keeps(
        "algorithm ring on ranks[n] implements allreduce {
    // Round.
    'scatter: for c in 0..n, hop in 1..n { // inside
        data[c] @ r += data[c] @ q
        'last: data[c] @ r = data[c] @ q // behind
    }
    'up: step for r in 0..n { 'one: data @ r = data @ 0 }
    'either: if n > 2 {
        data @ 0 = data @ 1
        data @ 0 = data @ 2
    } else {
        data @ 1 = data @ 0
        // end
    }
    'pair: step {
        data @ 0 = data @ 1
        data @ 1 = data @ 0
    }
    'other: run std::allgather::ring on * with data = data
}

/// How fast.
schedule for ring { // why
    channels 4 // four
    pipeline 512 KiB
    threads 512

    // Where.
    transport prefer nvlink, shared
    transport avoid tcp
    via switch
    wire bf16
    'scatter { channel c % 2 }
    'up {
        // two
        channel r
    }
    when size < 64 KiB { protocol ll channels 1 }
    when size < 2 MiB {
        protocol ll128 // 128
        channels 2
        'scatter { channel 0 }
    }
    // last
}

schedule for std::allreduce::ring { channels 2 }

schedule for other {}
",
    );
}

#[test]
fn untidy_schedules_are_tidied() {
    assert_eq!(
        format(
            "algorithm x on ranks[n] implements y { 'a:
for r in 0..n { data @ r = data @ 0 }
'b // why
: data @ 0 = data @ 1 'c : step
{ data @ 0 = data @ 1 } }
schedule for   x { channels 4 protocol auto
 when size<64   KiB{protocol ll     channels 1}
 when size  >= // odd
 4096 { }
 'a{channel r%2} transport avoid   tcp ,nvlink }"
        ),
        "algorithm x on ranks[n] implements y {
    'a: for r in 0..n {
        data @ r = data @ 0
    }
    // why
    'b: data @ 0 = data @ 1
    'c: step {
        data @ 0 = data @ 1
    }
}

schedule for x {
    channels 4
    protocol auto
    when size < 64 KiB { protocol ll channels 1 }
    // odd
    when size >= 4096 {}
    'a { channel r % 2 }
    transport avoid tcp, nvlink
}
"
    );
}

#[test]
fn untidy_text_is_tidied() {
    assert_eq!(
        format(
            "



fn   f( a,b , )=a+b   // sum
algorithm x on ranks[ n ] implements y
{


  chunks n



  data@q=data@p data @ q+=data@p // two
  let t=[1,2, // two
    3]
  let u = 1 + // odd
     2
  for c in 0..n, // chunk
      h in 1..n
  {}
}
/// Doc
collective y on ranks[n] { in  input[n] out output[n] } // c"
        ),
        "fn f(a, b) = a + b // sum

algorithm x on ranks[n] implements y {
    chunks n

    data @ q = data @ p
    data @ q += data @ p // two
    let t = [
        1,
        2, // two
        3,
    ]
    // odd
    let u = 1 + 2
    for c in 0..n, // chunk
        h in 1..n {}
}

/// Doc
collective y on ranks[n] {
    in input[n]
    out output[n]
} // c
"
    );
}

#[test]
fn long_lines_are_broken() {
    let name = "a_rather_long_name_for_a_place";
    insta::assert_snapshot!(format(&format!(
        "fn f(a) = {name} + {name} * 2 + {name} + {name}
algorithm x({name}: int = 4, {name}2: int = 5, {name}3: int = 6, {name}4: int) on ranks[n] implements y(1, k = {name}, k = {name}) {{
    {name}[{name}] @ ({name} + {name}) % n = {name}[{name}] @ ({name} + {name})
    {name} @ r = reduce({name} @ 0, {name} @ 1, {name} @ 2, {name} @ 3)
    let t = [{name}, {name}, {name}, {name}, {name}, {name}, {name}]
    let u = [{name} + 1 for {name} in 0..{name} step 4, {name} in 0..{name} rev if {name} < 10]
    let v = if {name} > {name} and {name} < {name} or {name} == 1 then {name} else {name}
    for {name} in 0..{name}, {name}2 in 0..{name}, {name}3 in 0..{name} if {name} {{ x @ 0 = x @ 1 }}
    run {name} on * with {name} = {name}[0..{name}], {name} = {name}[0..{name}], {name} = {name}[0..{name}]
    require {name} < {name}, \"{name} {name}\"
    if {name} + {name} == {name} * 5 * {name} and max({name}, {name}) > {name} {{ x @ 0 = x @ 1 }}
}}
collective y on ranks[n] {{
    ensures for {name} in 0..{name}, s in 0..n: {name} @ {name} == reduce(s in 0..{name}) {name} @ {name}
}}"
    )));
}

#[test]
fn tables_of_numbers_fill_their_lines() {
    let numbers = (0..60).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let printed = format(&format!("algorithm x on ranks[n] implements y {{ let t = [{numbers}] }}"));
    assert_eq!(printed.lines().count(), 7, "{printed}");
    assert!(printed.lines().all(|line| line.len() <= 110));
    assert!(printed.lines().nth(2).unwrap().len() > 100, "{printed}");
}

#[test]
fn comments_in_odd_places_survive() {
    format(
        "// 0
algorithm /* x */ on ranks[n] implements y {}"
            .replace("/* x */", "x // 1\n")
            .as_str(),
    );
    let text = "/// doc
algorithm x ( k : int , // 1
 j : int // 2
 ) on // 3
 ranks [ // 4
 n ] implements // 5
 y ( // 6
 1 , // 7
 2 ) // 8
 { // 9
 // 10
 for // 11
 c in // 12
 0 .. n , // 13
 // 14
 d in 0 .. n // 15
 if c < d // 16
 { // 17
 data // 18
 [ c ] @ // 19
 r // 20
 = // 21
 reduce ( // 22
 a @ r , // 23
 b @ s // 24
 ) // 25
 } // 26
 if a // 27
 { // 28
 } // 29
 else // 30
 if b // 31
 { // 32
 } // 33
 else // 34
 { // 35
 } // 36
 step // 37
 for r in 0 .. 1 // 38
 { } // 39
 step // 40
 { // 41
 for r in 0..1 { } // 42
 } // 43
 run a // 44
 on * // 45
 with // 46
 a = b , // 47
 // 48
 c = // 49
 d [ // 50
 1 ] // 51
 let t = [ // 52
 1 , // 53
 // 54
 2 // 55
 ] // 56
 /// 57
 let u = [ a // 58
 for x // 59
 in 0 .. 1 // 60
 ] // 61
 let w = if a // 62
 then f ( b , // 63
 c ) // 64
 else d // 65
 // 66
 } // 67
 // 68
 fn // 69
 f ( ) = // 70
 g ( // 71
 1 // 72
 ) // 73";
    let printed = format(text);
    for number in 1..=73 {
        assert!(
            printed.lines().any(|line| line.ends_with(&format!("/ {number}"))),
            "{number} is lost:\n{printed}"
        );
    }
}
