//! Ranks find each other, or are told why not: threads as ranks, processes as ranks, strangers among them.
#![allow(clippy::disallowed_methods, reason = "tests take time, and let ranks be late")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rcc_runtime::bootstrap::reserve::Reserved;
use rcc_runtime::bootstrap::{Bootstrap, Secret, Settings};
use rcc_runtime::error::{Error, Kind};
use rcc_runtime::memory::memfd::{self, Mapping};

fn settings(rank: u32, world: u32, at: &str) -> Settings {
    let mut settings = Settings::new(rank, world, at, Secret::new("open sesame").unwrap()).unwrap();
    settings.late = Duration::from_secs(30);
    settings
}

/// Every rank in a thread, changed by `change`, does `work`.
fn all<T: Send>(
    world: u32,
    change: impl Fn(&mut Settings) + Sync,
    work: impl Fn(Result<Bootstrap, Error>) -> T + Sync,
) -> Vec<T> {
    let at = Reserved::new().unwrap().address();
    let rank = |rank| {
        let mut settings = settings(rank, world, &at);
        change(&mut settings);
        work(Bootstrap::connect(&settings))
    };
    thread::scope(|scope| {
        // The last first: rank 0 is the one that comes late.
        let ranks: Vec<_> = (0..world).rev().map(|r| scope.spawn(move || rank(r))).collect();
        let mut results: Vec<T> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        results.reverse();
        results
    })
}

fn given(rank: u32, round: u32) -> Vec<u8> {
    (0..rank * 7 % 50).map(|i| (i + rank + round) as u8).collect()
}

#[test]
fn all_get_what_all_give_in_rank_order() {
    for world in [1, 2, 8, 64] {
        let start = Instant::now();
        let ranks = all(
            world,
            |_| {},
            |bootstrap| {
                let mut bootstrap = bootstrap.unwrap();
                assert_eq!((bootstrap.world(), bootstrap.hosts().len()), (world, world as usize));
                let rounds: Vec<_> = (0..5)
                    .map(|round| bootstrap.gather("what", &given(bootstrap.rank(), round)).unwrap())
                    .collect();
                (bootstrap.rank(), rounds)
            },
        );
        let took = start.elapsed();
        for (place, (rank, rounds)) in ranks.into_iter().enumerate() {
            assert_eq!(rank as usize, place);
            for (round, got) in rounds.into_iter().enumerate() {
                let expected: Vec<Vec<u8>> = (0..world).map(|r| given(r, round as u32)).collect();
                assert_eq!(got, expected);
            }
        }
        assert!(took < Duration::from_secs(2), "{world} ranks took {took:?}");
    }
}

#[test]
fn large_pieces_pass_and_larger_ones_are_refused_everywhere() {
    let size = |rank: u32| (Bootstrap::MOST_GIVEN / 3) * rank as usize;
    for got in all(4, |_| {}, |b| b.and_then(|mut b| b.gather("x", &vec![b.rank() as u8; size(b.rank())]))) {
        let got = got.unwrap();
        assert!((0..4u32).zip(&got).all(|(r, part)| *part == vec![r as u8; size(r)]));
    }
    let failed = all(
        3,
        |_| {},
        |b| {
            let mut b = b.unwrap();
            let bytes = if b.rank() == 2 { Bootstrap::MOST_GIVEN + 1 } else { 0 };
            let first = b.gather("x", &vec![0; bytes]).unwrap_err();
            assert_eq!(b.gather("x", &[]).unwrap_err(), first, "and so it stays");
            first
        },
    );
    assert!(failed.iter().all(|e| e.kind == Kind::Invalid && e.culprits == [2]), "{failed:?}");
    // 65 ranks with a megabyte each are more than may come together.
    let failed = all(65, |_| {}, |b| b.unwrap().gather("x", &vec![0; Bootstrap::MOST_GIVEN]).unwrap_err());
    assert!(
        failed.iter().all(|e| e.kind == Kind::Invalid && e.message.contains("the most")),
        "{}",
        failed[0]
    );
}

#[track_caller]
fn everyone_is_told(errors: &[Error], kind: Kind, parts: &[&str]) {
    for error in errors {
        assert_eq!(error.kind, kind, "{error}");
        assert!(parts.iter().all(|part| error.message.contains(part)), "{parts:?}: {error}");
    }
}

#[test]
fn ranks_that_gather_different_things() {
    let failed = all(
        4,
        |_| {},
        |b| {
            let mut b = b.unwrap();
            b.gather("first", b"").unwrap();
            let what = if b.rank() == 2 { "plans" } else { "names" };
            b.gather(what, b"").unwrap_err()
        },
    );
    everyone_is_told(&failed, Kind::Mismatch, &["rank 0 gathers `names`", "rank 2 gathers `plans`"]);
    let failed = all(
        3,
        |_| {},
        |b| {
            let mut b = b.unwrap();
            match b.rank() {
                2 => b.hand_out(None).map(|_| ()).unwrap_err(),
                _ => b.gather("names", b"").map(|_| ()).unwrap_err(),
            }
        },
    );
    everyone_is_told(&failed, Kind::Mismatch, &["rank 0 gathers `names`", "rank 2 takes a descriptor"]);
}

#[test]
fn the_same_rank_twice_or_another_world() {
    let start = Instant::now();
    let twice = |s: &mut Settings| {
        if s.rank == 3 {
            s.rank = 1;
        }
    };
    let failed = all(4, twice, |b| b.map(|_| ()).unwrap_err());
    everyone_is_told(&failed, Kind::Mismatch, &["two processes say that they are rank 1", "process "]);
    let larger = |s: &mut Settings| {
        if s.rank == 2 {
            s.world = 7;
        }
    };
    let failed = all(4, larger, |b| b.map(|_| ()).unwrap_err());
    everyone_is_told(&failed, Kind::Mismatch, &["rank 0 counts 4", "rank 2", "counts 7"]);
    assert!(start.elapsed() < Duration::from_secs(10), "nobody waits for the deadline");
}

#[test]
fn a_wrong_secret_is_found_out_by_who_has_it_and_does_not_fail_the_others() {
    let at = Reserved::new().unwrap().address();
    let liar = Settings { secret: Secret::new("wrong").unwrap(), ..settings(1, 2, &at) };
    thread::scope(|scope| {
        let zero = scope.spawn(|| Bootstrap::connect(&settings(0, 2, &at)));
        let error = Bootstrap::connect(&liar).unwrap_err();
        assert!(
            error.kind == Kind::Mismatch && error.message.contains("does not know the secret"),
            "{error}"
        );
        assert!(!error.to_string().contains("sesame"));
        let mut one = Bootstrap::connect(&settings(1, 2, &at)).unwrap();
        let mut zero = zero.join().unwrap().unwrap();
        scope.spawn(move || zero.gather("x", b"0").unwrap());
        assert_eq!(one.gather("x", b"1").unwrap(), [b"0", b"1"]);
    });
}

#[test]
fn strangers_stop_nobody() {
    let reserved = Reserved::new().unwrap();
    let at = reserved.address();
    thread::scope(|scope| {
        let zero = scope.spawn(|| Bootstrap::connect(&settings(0, 3, &at)));
        // Half open and silent ones, more than rank 0 keeps; garbage; a greeting and then garbage, or too much.
        let mut kept = Vec::new();
        for i in 0..300u32 {
            let mut stream = loop {
                match TcpStream::connect(&at) {
                    Ok(stream) => break stream,
                    Err(_) => thread::sleep(Duration::from_millis(1)),
                }
            };
            let said: &[u8] = match i % 5 {
                0 => b"",
                1 => b"GET / HTTP/1.0\r\n\r\n",
                2 => b"rcc me",
                3 => &[&b"rcc meet"[..], &[1; 32], &[255; 500]].concat(),
                _ => &[&b"rcc meet"[..], &[1; 32], &[0; 4], &[9; 32]].concat(),
            };
            let _ = stream.write_all(said);
            kept.push(stream);
        }
        let [one, two] = [1, 2].map(|rank| {
            let settings = settings(rank, 3, &at);
            scope.spawn(move || Bootstrap::connect(&settings))
        });
        for rank in [zero, one, two] {
            rank.join().unwrap().unwrap();
        }
        // None of them was told anything but a greeting.
        for mut stream in kept {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let mut heard = Vec::new();
            let _ = stream.read_to_end(&mut heard);
            assert!(heard.is_empty() || heard.len() == 72);
        }
    });
}

#[test]
fn another_program_at_the_address() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = other.local_addr().unwrap().to_string();
    let answering = thread::spawn(move || {
        let mut served = 0;
        while let Ok((mut stream, _)) = other.accept() {
            let mut heard = [0; 40];
            if stream.read_exact(&mut heard).is_err() {
                break;
            }
            let _ = stream.write_all(&[b'x'; 100]);
            served += 1;
        }
        served
    });
    let mut settings = settings(1, 2, &at);
    settings.late = Duration::from_millis(300);
    let error = Bootstrap::connect(&settings).unwrap_err();
    assert!(error.kind == Kind::Late && error.message.contains("another program"), "{error}");
    assert_eq!(error.culprits, [0]);
    // And rank 0 cannot be there.
    settings.rank = 0;
    let error = Bootstrap::connect(&settings).unwrap_err();
    assert!(error.kind == Kind::Resource && error.message.contains("another program"), "{error}");
    drop(TcpStream::connect(&at).unwrap());
    assert!(answering.join().unwrap() > 0);
}

#[test]
fn who_never_comes_is_named() {
    let start = Instant::now();
    let at = Reserved::new().unwrap().address();
    let failed: Vec<Error> = thread::scope(|scope| {
        let ranks = [0, 2, 4].map(|rank| {
            let mut settings = settings(rank, 5, &at);
            settings.late = Duration::from_millis(400);
            scope.spawn(move || Bootstrap::connect(&settings).unwrap_err())
        });
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    everyone_is_told(&failed, Kind::Late, &["ranks 1, 3 did not connect"]);
    assert!(failed.iter().all(|error| error.culprits == [1, 3]));
    // Nobody at all.
    let mut alone = settings(1, 2, &Reserved::new().unwrap().address());
    alone.late = Duration::from_millis(200);
    let error = Bootstrap::connect(&alone).unwrap_err();
    assert!(error.kind == Kind::Late && error.message.contains("could not reach rank 0"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn who_never_calls_is_named() {
    let hurry = |s: &mut Settings| {
        s.late = Duration::from_millis(400);
        s.warn_after = Duration::from_millis(50);
    };
    let failed = all(4, hurry, |b| {
        let mut b = b.unwrap();
        if b.rank() == 2 {
            thread::sleep(Duration::from_millis(1500));
        }
        b.gather("x", b"").unwrap_err()
    });
    everyone_is_told(&failed, Kind::Late, &["rank 2 did not come"]);
    // Where it is rank 0 that does not come, nobody can tell for it.
    let failed = all(3, hurry, |b| {
        let mut b = b.unwrap();
        if b.rank() == 0 {
            thread::sleep(Duration::from_millis(4000));
        }
        b.gather("x", b"").unwrap_err()
    });
    everyone_is_told(&failed, Kind::Late, &["rank 0 did not answer"]);
}

#[test]
fn who_goes_away_is_named() {
    let failed = all(
        4,
        |_| {},
        |b| {
            let mut b = b.unwrap();
            b.gather("x", b"").unwrap();
            if b.rank() == 3 {
                return None;
            }
            Some(b.gather("y", b"").unwrap_err())
        },
    );
    everyone_is_told(&failed.into_iter().flatten().collect::<Vec<_>>(), Kind::PeerDied, &["rank 3 closed"]);
    let failed = all(
        3,
        |_| {},
        |b| {
            let mut b = b.unwrap();
            (b.rank() > 0).then(|| b.gather("y", b"").unwrap_err())
        },
    );
    let failed: Vec<Error> = failed.into_iter().flatten().collect();
    everyone_is_told(&failed, Kind::PeerDied, &["rank 0 closed"]);
    assert!(failed.iter().all(|error| error.culprits == [0]));
}

#[test]
fn addresses_that_cannot_be() {
    let error = Bootstrap::connect(&settings(0, 2, "192.0.2.1:29400")).unwrap_err();
    assert!(error.kind == Kind::Invalid && error.message.contains("does not have the address"), "{error}");
    let error = Bootstrap::connect(&settings(0, 2, "no.such.host.invalid:29400")).unwrap_err();
    assert!(error.kind == Kind::Invalid && error.message.contains("no.such.host.invalid"), "{error}");
    let mut settings = settings(0, 2, "127.0.0.1:29400");
    settings.rank = 2;
    assert_eq!(Bootstrap::connect(&settings).unwrap_err().kind, Kind::Invalid);
}

#[test]
fn rank_0_listens_where_it_was_told_to_and_nowhere_else() {
    let at = Reserved::new().unwrap().address();
    let elsewhere = at.replace("127.0.0.1", "127.0.0.2");
    thread::scope(|scope| {
        let zero = scope.spawn(|| Bootstrap::connect(&settings(0, 2, &at)));
        while TcpStream::connect(&at).is_err() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(TcpStream::connect(&elsewhere).is_err());
        Bootstrap::connect(&settings(1, 2, &at)).unwrap();
        zero.join().unwrap().unwrap();
    });
}

fn holds(fd: &OwnedFd, content: &[u8]) -> bool {
    let mapping = Mapping::shared(std::os::fd::AsFd::as_fd(fd), memfd::size(fd).unwrap(), false).unwrap();
    // SAFETY: the memory is mapped as long as the mapping lives, and sealed.
    unsafe { std::slice::from_raw_parts(mapping.start(), mapping.bytes()) == content }
}

#[test]
fn a_descriptor_reaches_all_threads() {
    for world in [1, 2, 8, 64] {
        let got = all(
            world,
            |_| {},
            |b| {
                let mut b = b.unwrap();
                let fd = (b.rank() == 0).then(|| memfd::publish(c"test", b"the same for all").unwrap());
                let fd = b.hand_out(fd).unwrap();
                b.gather("after", b"").unwrap();
                fd
            },
        );
        assert!(got.iter().all(|fd| holds(fd, b"the same for all")));
    }
    for wrong in [0, 1] {
        let failed = all(
            3,
            |_| {},
            |b| {
                let mut b = b.unwrap();
                let gives = (b.rank() == 0) != (b.rank() == wrong);
                b.hand_out(gives.then(|| memfd::publish(c"test", b"").unwrap())).unwrap_err()
            },
        );
        everyone_is_told(&failed, Kind::Invalid, &[&format!("rank {wrong}")]);
    }
}

/// Not a test of its own: what a process of the next one does.
#[test]
#[ignore = "a rank of another test"]
fn one_process() {
    let mut bootstrap = Bootstrap::connect(&Settings::from_env().unwrap()).unwrap();
    let rank = bootstrap.rank();
    let pids = bootstrap.gather("pids", &std::process::id().to_le_bytes()).unwrap();
    if rank == 2 && std::env::args().any(|argument| argument == "--nocapture") {
        // The test kills it here.
        thread::sleep(Duration::from_secs(60));
    }
    let fd = (rank == 0).then(|| memfd::publish(c"test", &pids.concat()).unwrap());
    match bootstrap.hand_out(fd) {
        Ok(fd) => assert!(holds(&fd, &pids.concat())),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(if error.kind == Kind::PeerDied && error.culprits == [2] { 17 } else { 1 });
        }
    }
}

fn own_process() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "one_process", "--ignored"]).env("RCC_SECRET", "from the environment");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn process(rank: u32, world: u32, at: &str, more: &[&str]) -> std::process::Child {
    own_process()
        .args(more)
        .envs([("RCC_RANK", rank.to_string()), ("RCC_WORLD", world.to_string())])
        .env("RCC_RENDEZVOUS", at)
        .spawn()
        .unwrap()
}

#[test]
fn a_descriptor_reaches_all_processes() {
    let reserved = Reserved::new().unwrap();
    let mut ranks: Vec<_> = (0..6).map(|rank| process(rank, 6, &reserved.address(), &[])).collect();
    for rank in &mut ranks {
        assert_eq!(rank.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_process_that_is_killed_is_named_by_the_others() {
    let reserved = Reserved::new().unwrap();
    let mut ranks: Vec<_> =
        (0..4).map(|rank| process(rank, 4, &reserved.address(), &["--nocapture"])).collect();
    thread::sleep(Duration::from_millis(700));
    ranks[2].kill().unwrap();
    let statuses: Vec<_> = ranks.iter_mut().map(|rank| rank.wait().unwrap().code()).collect();
    assert_eq!(statuses, [Some(17), Some(17), None, Some(17)]);
}

#[test]
fn processes_of_torchrun_meet_at_a_port_of_our_own() {
    // As torchrun's agent does, somebody else listens at the master's port.
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = theirs.local_addr().unwrap().port().to_string();
    let run = format!("test of {}", std::process::id());
    let start = |rank: u32| {
        let mut command = own_process();
        command.envs([("RANK", rank.to_string()), ("LOCAL_RANK", rank.to_string())]);
        command.envs([("WORLD_SIZE", "3"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port)]);
        command.env("TORCHELASTIC_RUN_ID", &run).spawn().unwrap()
    };
    for mut rank in [0, 1, 2].map(start) {
        assert_eq!(rank.wait().unwrap().code(), Some(0));
    }
}

/// Where Open MPI is installed.
#[test]
fn processes_of_open_mpi_need_no_setting() {
    let version = Command::new("mpirun").arg("--version").output();
    if !version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Open MPI")) {
        eprintln!("left out: there is no mpirun of Open MPI");
        return;
    }
    let own = own_process();
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", "3"]).arg(own.get_program()).args(own.get_args());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches("1 passed").count(), 3);
}
