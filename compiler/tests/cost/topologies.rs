//! Topologies as text: what is read, and what is refused at which line.

use plan::schedule::Protocol;
use rcc_compiler::cost::topology::{BUILTIN, Engine, builtin, parse, smallest};

pub(crate) const CLUSTER: &str = r#"
name = "test"
about = "two nodes"
slots = 6
slices = ["64KiB", 1048576]
copies = 4

[[level]]
name = "nvlink"
size = 8
latency = "0.6us"
port = "450GB/s"
multicast = true

[[level]]
name = "network"
latency = 2.7e-6
port = "400Gb/s"
uplink = "100 GiB/s"

[engine]
event = "200ns"
rate = "20GB/s"
memory = "3.35TB/s"

[[protocol]]
name = "ll"
bandwidth = 0.5
latency = [0, "1us"]

[[protocol]]
name = "simple"
bandwidth = 1.0
latency = ["2us", "10us"]
"#;

pub(crate) const CORES: &str = r#"
name = "box"
[[level]]
name = "memory"
latency = "155ns"
[engine]
cores = 4
event = "60ns"
switch = "1.1us"
message = "18GB/s"
memory = [{ bytes = "16MiB", read = "40GB/s", write = "27GB/s" }, { bytes = "512KiB", read = "147GB/s", write = "73GB/s" }]
"#;

#[test]
fn values_are_what_the_text_says() {
    let read = parse(CLUSTER).unwrap();
    assert_eq!((read.name.as_str(), read.slots, read.copies), ("test", 6, 4));
    assert_eq!(read.slices, [64 << 10, 1 << 20]);
    assert_eq!(read.levels[0].size, Some(8));
    assert!((read.levels[0].latency - 0.6e-6).abs() < 1e-15 && read.levels[0].multicast);
    assert_eq!(read.levels[0].port, Some(450e9));
    assert_eq!((read.levels[1].size, read.levels[1].port), (None, Some(50e9)));
    assert_eq!(read.levels[1].uplink, Some(100.0 * f64::from(1 << 30)));
    let Engine::Own { rate, event, memory } = read.engine else { panic!() };
    assert!((event - 2e-7).abs() < 1e-16);
    assert_eq!((rate, memory), (Some(20e9), Some(3.35e12)));
    assert_eq!(read.encodings[0].protocol, Protocol::Ll);
    assert_eq!(read.encodings[1].latency.len(), 2);
    assert_eq!(read.ranks(), None);
    assert_eq!([read.between(3, 3), read.between(0, 7), read.between(7, 8)], [None, Some(0), Some(1)]);

    let read = parse(CORES).unwrap();
    let Engine::Shared { cores, memory, .. } = read.engine else { panic!() };
    assert_eq!(cores, 4);
    assert!(memory[0].bytes < memory[1].bytes, "sorted");
    assert_eq!(read.encodings.len(), 1);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    // In turn: what stands there, what is put in its place, the line, a word of the message.
    let cases = [
        ("copies = 4", "copys = 4", 6, "copys"),
        ("slots = 6", "slots = 0", 4, "slots"),
        ("slots = 6", "slots = -6", 4, ""),
        ("size = 8", "size = 0", 10, "size"),
        ("size = 8", "", 9, "size"),
        ("\"0.6us\"", "\"-0.6us\"", 11, "negative"),
        ("\"0.6us\"", "\"0.6 parsecs\"", 11, "parsecs"),
        ("\"0.6us\"", "\"soon\"", 11, "soon"),
        ("\"0.6us\"", "nan", 11, "no number"),
        ("\"450GB/s\"", "0", 12, "bandwidth"),
        ("\"450GB/s\"", "\"450GB\"", 12, "GB"),
        ("port = \"450GB/s\"", "prot = \"450GB/s\"", 12, "prot"),
        ("\"64KiB\"", "8", 5, "16 B"),
        ("slices = [\"64KiB\", 1048576]", "slices = []", 5, "1 to 16"),
        ("bandwidth = 0.5", "bandwidth = 1.5", 27, "bandwidth"),
        ("[0, \"1us\"]", "[0]", 27, "levels"),
        ("name = \"simple\"", "name = \"ll\"", 32, "twice"),
        ("name = \"simple\"", "name = \"fast\"", 33, "fast"),
        ("memory = \"3.35TB/s\"", "switch = \"1us\"", 22, "cores"),
        ("name = \"test\"", "name = \"\"", 2, "name"),
        ("name = \"test\"", "name = ", 2, ""),
        ("name = \"test\"\n", "", 1, "name"),
    ];
    for (there, instead, line, word) in cases {
        assert!(CLUSTER.contains(there), "{there}");
        let error = parse(&CLUSTER.replacen(there, instead, 1)).expect_err(instead);
        assert!(error.message.contains(word), "{instead}: {error}");
        assert!(error.line.abs_diff(line) <= 1, "{instead}: {error}, not {line}");
    }
    for (there, instead, word) in [
        ("cores = 4", "cores = 0", "cores"),
        ("cores = 4", "cores = 4\nrate = \"1GB/s\"", "rate"),
        ("message = \"18GB/s\"", "message = \"18\"", "unit"),
        ("bytes = \"512KiB\"", "bites = \"512KiB\"", ""),
    ] {
        let error = parse(&CORES.replacen(there, instead, 1)).expect_err(instead);
        assert!(error.message.contains(word), "{instead}: {error}");
    }
    let lacks = CORES.lines().filter(|line| !line.starts_with("memory =")).collect::<Vec<_>>().join("\n");
    assert!(parse(&lacks).unwrap_err().message.contains("memory"));
    assert!(parse("").is_err() && parse("level = 3").is_err());
    assert!(parse(&"#".repeat(2 << 20)).unwrap_err().message.contains("longer"));
}

#[test]
fn built_in_machines_hold_what_their_names_say() {
    for (name, ranks) in [
        ("2-cores", None),
        ("8xh100", Some(8)),
        ("8xh100-ideal", Some(8)),
        ("2x8xh100", Some(16)),
        ("128x8xh100", Some(1024)),
    ] {
        assert_eq!(builtin(name).unwrap().ranks(), ranks, "{name}");
        assert!(BUILTIN.contains(&name));
    }
    assert!(builtin("9xh100").is_none());
    for (ranks, name) in
        [(1, "8xh100"), (8, "8xh100"), (9, "2x8xh100"), (17, "128x8xh100"), (1024, "128x8xh100")]
    {
        assert_eq!(smallest(ranks).unwrap().name, name);
    }
    assert!(smallest(1025).is_none());
}
