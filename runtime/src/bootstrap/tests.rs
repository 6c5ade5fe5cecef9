//! Ranks that know the secret and say something else than what is due.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::handshake::{ANSWER, GREETING, Meeting, greeted, greeting};
use super::link::Link;
use super::message::LONGEST_OF_ROOT;
use super::reserve::Reserved;
use super::*;

fn settings(rank: u32, world: u32, at: &Reserved) -> Settings {
    let mut settings = Settings::new(rank, world, at.address(), Secret::new("secret").unwrap()).unwrap();
    settings.late = Duration::from_secs(20);
    settings
}

fn who(rank: u32, world: u32) -> Join {
    let version = env!("CARGO_PKG_VERSION").to_string();
    Join { protocol: PROTOCOL, version, rank, world, pid: 1, host: Host::own() }
}

/// A connection that rank 0 has answered, and that says nothing yet.
fn answered(at: &Reserved) -> Link {
    let secret = Secret::new("secret").unwrap();
    let start = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(at.address()) {
            Ok(stream) => break stream,
            Err(_) if start.elapsed() < Duration::from_secs(10) => thread::sleep(Duration::from_millis(1)),
            Err(e) => panic!("{e}"),
        }
    };
    let caller = [9; 32];
    stream.write_all(&greeting(&caller)).unwrap();
    let mut answer = [0; ANSWER];
    stream.read_exact(&mut answer).unwrap();
    let root = greeted(answer[..GREETING].try_into().unwrap()).unwrap();
    let meeting = Meeting { secret: &secret, caller: &caller, root: &root };
    assert!(meeting.proves(&answer[GREETING..]));
    let keys = meeting.keys();
    Link::new(stream, keys.to_root, keys.from_root, LONGEST_OF_ROOT).unwrap()
}

/// Joins, and waits until all are there.
fn join(link: &mut Link, who: Join) {
    link.say(&Message::Join(who));
    loop {
        link.pump();
        match link.take().unwrap() {
            Some(Message::Welcome(_)) => return,
            Some(Message::Joined) | None => thread::sleep(Duration::from_millis(1)),
            Some(other) => panic!("{other:?}"),
        }
    }
}

/// What rank 0 says at last.
fn last(mut link: Link) -> Error {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        link.pump();
        match link.take() {
            Ok(Some(Message::Failed(error))) => return error,
            Ok(Some(_)) => {}
            Ok(None) if link.ended() => panic!("it ended without a word"),
            Ok(None) => thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("nothing came")
}

/// A world of three, of which the last says something odd. What all three are told.
fn with_liar(lie: impl FnOnce(&mut Link)) -> [Error; 3] {
    let at = Reserved::new().unwrap();
    thread::scope(|scope| {
        let [zero, one] = [0, 1].map(|rank| {
            let settings = settings(rank, 3, &at);
            scope.spawn(move || {
                Bootstrap::connect(&settings)
                    .and_then(|mut all| all.gather("names", b"x"))
                    .expect_err("somebody lies")
            })
        });
        let mut link = answered(&at);
        lie(&mut link);
        let told = last(link);
        [zero.join().unwrap(), one.join().unwrap(), told]
    })
}

#[track_caller]
fn all_are_told(errors: &[Error; 3], kind: Kind, parts: &[&str]) {
    for error in errors {
        assert_eq!(error.kind, kind, "{error}");
        assert!(parts.iter().all(|part| error.message.contains(part)), "{error}");
    }
}

#[test]
fn another_version_or_protocol() {
    let version = |version: &str, protocol| Join { version: version.to_string(), protocol, ..who(2, 3) };
    let errors = with_liar(|link| link.say(&Message::Join(version("99.1", PROTOCOL))));
    all_are_told(&errors, Kind::Mismatch, &["99.1", env!("CARGO_PKG_VERSION"), "rank 2"]);
    let errors = with_liar(|link| link.say(&Message::Join(version("99.1", PROTOCOL + 1))));
    all_are_told(&errors, Kind::Mismatch, &["99.1 (protocol 2)", env!("CARGO_PKG_VERSION")]);
    // Of a later protocol only the beginning may be understood.
    let later = postcard::to_stdvec(&(0u32, 7u32, "9.9\u{7}", [255u8; 30])).unwrap();
    let errors = with_liar(|link| link.say_encoded(&later));
    all_are_told(&errors, Kind::Mismatch, &["9.9\\u{7} (protocol 7)"]);
    let errors = with_liar(|link| link.say_encoded(&[77; 100]));
    all_are_told(&errors, Kind::Mismatch, &["says nothing of its version"]);
}

#[test]
fn a_rank_that_does_not_exist() {
    let errors = with_liar(|link| link.say(&Message::Join(who(3, 3))));
    all_are_told(&errors, Kind::Mismatch, &["rank 3 does not exist", "world of 3"]);
    let errors = with_liar(|link| link.say(&Message::Join(who(0, 3))));
    all_are_told(&errors, Kind::Mismatch, &["two processes say that they are rank 0"]);
    let errors = with_liar(|link| link.say(&Message::Join(who(2, u32::MAX))));
    all_are_told(&errors, Kind::Mismatch, &["4294967295", "counts 3"]);
}

#[test]
fn messages_out_of_turn_or_of_no_kind() {
    let join = Message::Join(who(2, 3));
    let errors = with_liar(|link| {
        link.say(&join);
        link.say(&Message::Done);
    });
    all_are_told(&errors, Kind::Mismatch, &["rank 2 answers when it is not its turn"]);
    let errors = with_liar(|link| {
        link.say(&join);
        link.say_encoded(&[255; 9]);
    });
    all_are_told(&errors, Kind::Transport, &["no message of this version"]);
    let errors = with_liar(|link| {
        link.say(&join);
        link.say(&Message::HandOut);
    });
    // Whether rank 0 sees it while it still waits for others, or when it gathers, it is refused.
    all_are_told(&errors, Kind::Mismatch, &["rank 2", "takes a descriptor"]);
    let errors = with_liar(|link| {
        link.say(&join);
        link.say(&Message::failed(&Error::new(Kind::Aborted, "no more").culprit(2)));
    });
    all_are_told(&errors, Kind::Aborted, &["no more"]);
}

#[test]
fn a_frame_that_was_changed_or_is_too_long() {
    let join = Message::Join(who(2, 3));
    for bytes in [
        &[0xff; 40][..],
        &[
            4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 1, 2, 3, 4,
        ],
    ] {
        let errors = with_liar(|link| {
            link.say(&join);
            link.say_raw(bytes);
        });
        all_are_told(&errors, Kind::Transport, &["tampered"]);
        assert_eq!(errors[0].culprits, [2]);
    }
}

#[test]
fn a_descriptor_only_for_who_proves_its_rank() {
    let at = Reserved::new().unwrap();
    let fd = crate::memory::memfd::publish(c"test", b"for two").unwrap();
    let (zero, got) = thread::scope(|scope| {
        let settings = settings(0, 2, &at);
        let zero = scope.spawn(move || Bootstrap::connect(&settings)?.hand_out(Some(fd)));
        let mut link = answered(&at);
        let mut other = answered(&at);
        join(&mut link, who(1, 2));
        link.say(&Message::HandOut);
        let name = loop {
            link.pump();
            match link.take().unwrap() {
                Some(Message::Door { name }) => break name,
                Some(Message::Failed(error)) => panic!("{error}"),
                _ => thread::sleep(Duration::from_millis(1)),
            }
        };
        other.pump();
        assert!(door::enter(&name, 1, &other).is_err(), "the proof of another connection");
        assert!(
            door::enter(&name, 0, &link).is_err() && door::enter(&name, 2, &link).is_err(),
            "another rank"
        );
        let got = door::enter(&name, 1, &link);
        assert!(door::enter(&name, 1, &link).is_err(), "once only");
        link.say(&Message::Held);
        while !link.idle() {
            link.pump();
        }
        (zero.join().unwrap(), got)
    });
    let (zero, got) = (zero.unwrap(), got.unwrap());
    assert_eq!(rustix::fs::fstat(&zero).unwrap().st_ino, rustix::fs::fstat(&got).unwrap().st_ino);
}

#[test]
fn machines_are_told_apart() {
    let host = |name: &str, boot: &str| Host { name: name.to_string(), boot: boot.to_string() };
    one_machine(&[host("a", "1"), host("a", "1")]).unwrap();
    let error = one_machine(&[host("a", "1"), host("b", "1"), host("a", "2"), host("a", "1")]).unwrap_err();
    assert_eq!((error.kind, &error.culprits[..]), (Kind::Unsupported, &[1, 2][..]));
    assert!(error.message.contains("3 machines (a, a, b)"), "{error}");
}

#[test]
fn ranks_of_several_machines_get_no_descriptor() {
    let at = Reserved::new().unwrap();
    let fd = crate::memory::memfd::publish(c"test", b"x").unwrap();
    let (zero, told) = thread::scope(|scope| {
        let settings = settings(0, 2, &at);
        let zero = scope.spawn(move || Bootstrap::connect(&settings)?.hand_out(Some(fd)));
        let mut link = answered(&at);
        let host = Host { name: "far".to_string(), boot: "away".to_string() };
        join(&mut link, Join { host, ..who(1, 2) });
        link.say(&Message::HandOut);
        (last(link), zero.join().unwrap().unwrap_err())
    });
    for error in [zero, told] {
        assert!(error.kind == Kind::Unsupported && error.message.contains("far"), "{error}");
    }
}
