//! Environments as launchers leave them, and as they should not be.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;

const SECRET: (&str, &str) = ("RCC_SECRET", "s");

fn with(set: &[(&str, &str)]) -> Result<Settings, Error> {
    read(&|name| {
        set.iter().chain([&SECRET]).find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
    })
}

#[track_caller]
fn gives(set: &[(&str, &str)], rank: u32, world: u32, address: &str) -> Settings {
    let settings = with(set).unwrap();
    assert_eq!((settings.rank, settings.world, &*settings.address), (rank, world, address));
    settings
}

#[track_caller]
fn refused(set: &[(&str, &str)], parts: &[&str]) {
    let error = with(set).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind, Kind::Invalid, "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

const OWN: [(&str, &str); 3] = [("RCC_RANK", "1"), ("RCC_WORLD", "4"), ("RCC_RENDEZVOUS", "127.0.0.1:5000")];
const TORCH: [(&str, &str); 6] = [
    ("RANK", "3"),
    ("WORLD_SIZE", "4"),
    ("LOCAL_RANK", "1"),
    ("MASTER_ADDR", "node1"),
    ("MASTER_PORT", "29500"),
    ("TORCHELASTIC_RUN_ID", "none"),
];
/// What Open MPI 4.1.4 sets, as far as it is looked at.
const OMPI: [(&str, &str); 5] = [
    ("OMPI_COMM_WORLD_SIZE", "2"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
    ("PMIX_NAMESPACE", "1696006145"),
    ("OMPI_COMM_WORLD_RANK", "0"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
];
const HYDRA: [(&str, &str); 4] =
    [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2"), ("MPI_LOCALRANKID", "1")];
const SLURM: [(&str, &str); 6] = [
    ("SLURM_PROCID", "5"),
    ("SLURM_NTASKS", "8"),
    ("SLURM_JOB_ID", "77"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_NNODES", "2"),
    ("SLURM_NODELIST", "node[07-08]"),
];

fn and<'a>(set: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    more.iter().chain(set).copied().collect()
}

fn port(address: &str) -> u16 {
    split(address).unwrap().1
}

#[test]
fn our_own() {
    let settings = gives(&OWN, 1, 4, "127.0.0.1:5000");
    assert_eq!(settings.secret.expose(), b"s");
    gives(&[("RCC_RANK", "0"), ("RCC_WORLD", "1")], 0, 1, "");
    refused(&OWN[..2], &["RCC_RANK=1", "RCC_WORLD=4", "RCC_RENDEZVOUS"]);
    refused(&OWN[..1], &["RCC_RANK=1", "RCC_WORLD is not"]);
    refused(&and(&TORCH, &OWN[1..2]), &["RCC_WORLD=4", "RCC_RANK is not"]);
    refused(&and(&OWN, &[("RCC_RANK", "4")]), &["RCC_RANK=4", "RCC_WORLD=4", "contradict"]);
    refused(&and(&OWN, &[("RCC_WORLD", "0"), ("RCC_RANK", "0")]), &["RCC_WORLD=0"]);
    refused(&and(&OWN, &[("RCC_RANK", "x")]), &["RCC_RANK is `x`"]);
    refused(&and(&OWN, &[("RCC_RENDEZVOUS", "5000")]), &["RCC_RENDEZVOUS is `5000`", "host:port"]);
    refused(&and(&OWN, &[("RCC_SECRET", "")]), &["empty", "RCC_SECRET"]);
}

#[test]
fn torchrun_and_a_port_of_our_own() {
    let settings = with(&TORCH).unwrap();
    let at = port(&settings.address);
    assert!(settings.address.starts_with("node1:") && (20_000..30_001).contains(&at) && at != 29_500);
    assert_eq!((settings.rank, settings.local_rank), (3, Some(1)));
    let again = with(&and(&TORCH, &[("RANK", "0"), ("LOCAL_RANK", "0")])).unwrap();
    assert_eq!((&again.address, again.secret.expose()), (&settings.address, settings.secret.expose()));
    let other = with(&and(&TORCH, &[("TORCHELASTIC_RUN_ID", "second")])).unwrap();
    assert_ne!(other.address, settings.address);
    assert_ne!(other.secret.expose(), settings.secret.expose(), "jobs that meet at one port keep apart");
    gives(&and(&TORCH, &[("RCC_PORT", "7")]), 3, 4, "node1:7");
    gives(&and(&TORCH, &[("MASTER_ADDR", "fe80::1"), ("RCC_PORT", "7")]), 3, 4, "[fe80::1]:7");
    gives(&and(&TORCH, &[("RCC_RENDEZVOUS", "a:9")]), 3, 4, "a:9");
    refused(&TORCH[..2], &["MASTER_ADDR", "RCC_RENDEZVOUS"]);
    refused(&TORCH[..4], &["MASTER_PORT", "RCC_PORT"]);
    refused(&and(&TORCH, &[("RCC_PORT", "70000")]), &["RCC_PORT is `70000`"]);
}

#[test]
fn a_port_by_the_job_is_never_torchs_own() {
    for run in 0..2000 {
        let run = run.to_string();
        let job = [("TORCHELASTIC_RUN_ID", &*run), ("MASTER_PORT", "25000")];
        assert_ne!(port(&with(&and(&TORCH, &job)).unwrap().address), 25_000);
    }
}

#[test]
fn mpi_on_one_host() {
    let settings = with(&OMPI).unwrap();
    assert!(settings.address.starts_with("127.0.0.1:") && settings.local_rank == Some(0));
    assert_ne!(with(&and(&OMPI, &[("PMIX_NAMESPACE", "2")])).unwrap().address, settings.address);
    refused(
        &and(&OMPI, &[("OMPI_COMM_WORLD_LOCAL_SIZE", "1")]),
        &["1 of the 2 ranks", "RCC_RENDEZVOUS", "mpirun -x"],
    );
    gives(&and(&OMPI, &[("OMPI_COMM_WORLD_LOCAL_SIZE", "1"), ("RCC_RENDEZVOUS", "a:9")]), 0, 2, "a:9");
    refused(&HYDRA, &["PMI_RANK", "RCC_RENDEZVOUS", "-genv"]);
    refused(&HYDRA[..2], &["PMI_SIZE=2", "MPI_LOCALNRANKS"]);
    gives(&and(&HYDRA, &[("RCC_PORT", "7")]), 1, 2, "127.0.0.1:7");
    let by_job = with(&and(&HYDRA, &[("PMI_JOBID", "k")])).unwrap();
    assert!(by_job.address.starts_with("127.0.0.1:2") && by_job.local_rank == Some(1));
}

#[test]
fn slurm() {
    let settings = with(&SLURM).unwrap();
    assert!(settings.address.starts_with("node07:"), "{}", settings.address);
    let local = with(&and(&SLURM, &[("SLURM_NNODES", "1")])).unwrap();
    assert_eq!(local.address, format!("127.0.0.1:{}", port(&settings.address)));
    refused(&and(&SLURM, &[("SLURM_NODELIST", "a[1]b")]), &["a[1]b", "RCC_RENDEZVOUS"]);
    refused(&SLURM[..2], &["SLURM_JOB_ID"]);
    for (list, host) in [
        ("a", Some("a")),
        ("a-1.b,c", Some("a-1.b")),
        ("n[3,5-6],m", Some("n3")),
        ("n[03-10]", Some("n03")),
        ("", None),
        ("[", None),
        ("n[", None),
        ("n[]", None),
        ("n[1-2]x[3]", None),
        ("n;rm", None),
    ] {
        assert_eq!(first_host(list).as_deref(), host, "{list}");
    }
}

#[test]
fn the_innermost_launcher_counts() {
    let all = [&OWN[..], &TORCH, &OMPI, &HYDRA, &SLURM];
    let ranks = [1, 3, 0, 1, 5];
    for (first, rank) in ranks.into_iter().enumerate() {
        let mut set = all[first..].concat();
        set.push(("RCC_RENDEZVOUS", "a:1"));
        assert_eq!(with(&set).unwrap().rank, rank);
    }
    // A shell's own RANK is not torchrun's, if there is another launcher.
    assert_eq!(with(&and(&OMPI, &[("RANK", "7")])).unwrap().rank, 0);
    refused(&[("RANK", "7")], &["RANK=7", "WORLD_SIZE is not"]);
}

#[test]
fn nothing_at_all_lists_the_ways() {
    refused(&[], &["rcc launch", "torchrun", "mpirun", "srun", "RCC_RANK", "RCC_RENDEZVOUS"]);
    refused(&[("RCC_RANK", "")], &["rcc launch"]);
}

#[test]
fn what_is_not_text_is_refused() {
    let odd = read(&|name| (name == "RCC_RANK").then(|| OsString::from_vec(vec![0xff])));
    assert!(odd.unwrap_err().message.contains("RCC_RANK is not text"));
}

#[test]
fn without_a_secret_it_is_the_users() {
    let home = tempfile::tempdir().unwrap();
    let own = |name: &str| match name {
        "HOME" => Some(home.path().into()),
        _ => OWN.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value)),
    };
    let (one, other) = (read(&own).unwrap(), read(&own).unwrap());
    assert_eq!(one.secret.expose(), other.secret.expose());
    assert_eq!(one.secret.expose().len(), 32);
}
