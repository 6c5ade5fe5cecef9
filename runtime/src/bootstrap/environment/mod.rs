//! What launchers say in the environment.
//!
//! In: a way to look up variables. Out: [`Settings`], or an error that names the variables at fault and what to set.
//! The first of these that says both which rank this is and how many there are counts (launchers that start others come
//! later):
//!
//! | launcher | rank, world | address | job |
//! |---|---|---|---|
//! | `rcc launch`, or by hand | `RCC_RANK`, `RCC_WORLD` | `RCC_RENDEZVOUS` | |
//! | torchrun | `RANK`, `WORLD_SIZE` | `MASTER_ADDR`, and a port by `MASTER_PORT` and the job | `TORCHELASTIC_RUN_ID`, `TORCHELASTIC_RESTART_COUNT` |
//! | Open MPI | `OMPI_COMM_WORLD_RANK`, `…_SIZE` | of one host: 127.0.0.1, and a port by the job | `PMIX_NAMESPACE`, else `OMPI_MCA_ess_base_jobid` |
//! | MPICH, Intel MPI | `PMI_RANK`, `PMI_SIZE` | the same | `PMI_JOBID`, else Slurm's |
//! | Slurm | `SLURM_PROCID`, `SLURM_NTASKS` | the first host of the step, and a port by the job | `SLURM_JOB_ID`, `SLURM_STEP_ID` |
//!
//! `RCC_RENDEZVOUS=host:port` stands before every other address, `RCC_PORT` before every other port. `MASTER_PORT` itself
//! is not taken: torchrun's agent, or torch, listens there. A port by the job is one of 20000 to 29999, by a hash, below
//! those that systems give out by themselves; so is the secret then made the job's own: two jobs that meet at one port do not
//! take each other for their own.

use std::ffi::OsString;

use sha2::{Digest, Sha256};

use super::secret::Secret;
use super::secret_file;
use super::settings::{Settings, split};
use crate::error::{Error, Kind};

/// A way to look up a variable.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// How a launcher is recognised.
struct Launcher {
    kind: LauncherKind,
    rank: &'static str,
    world: &'static str,
    local_rank: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LauncherKind {
    Own,
    Torchrun,
    OpenMpi,
    Pmi,
    Slurm,
}

const LAUNCHERS: [Launcher; 5] = [
    Launcher { kind: LauncherKind::Own, rank: "RCC_RANK", world: "RCC_WORLD", local_rank: "RCC_LOCAL_RANK" },
    Launcher { kind: LauncherKind::Torchrun, rank: "RANK", world: "WORLD_SIZE", local_rank: "LOCAL_RANK" },
    Launcher {
        kind: LauncherKind::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        world: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
    },
    Launcher { kind: LauncherKind::Pmi, rank: "PMI_RANK", world: "PMI_SIZE", local_rank: "MPI_LOCALRANKID" },
    Launcher {
        kind: LauncherKind::Slurm,
        rank: "SLURM_PROCID",
        world: "SLURM_NTASKS",
        local_rank: "SLURM_LOCALID",
    },
];

/// Reads what the launcher has said.
pub fn read(variable: Lookup<'_>) -> Result<Settings, Error> {
    let env = Environment { variable };
    let (launcher, rank, world) = env.launcher()?;
    let job = env.job(launcher.kind)?;
    let (address, of_job) = match (env.text("RCC_RENDEZVOUS")?, launcher.kind) {
        (Some(given), _) if split(&given).is_some() => (given, false),
        (Some(given), _) => {
            let message = format!("RCC_RENDEZVOUS is `{given}`, which is not host:port");
            return Err(invalid(message).help("set it like RCC_RENDEZVOUS=10.0.0.1:29400"));
        }
        (None, _) if world == 1 => (String::new(), false),
        (None, LauncherKind::Own) => {
            let message = format!("RCC_RANK={rank} and RCC_WORLD={world} are set, and RCC_RENDEZVOUS is not");
            return Err(invalid(message).help(ask_for_rendezvous("")));
        }
        (None, LauncherKind::Torchrun) => (env.torchrun(&job)?, true),
        (None, LauncherKind::OpenMpi | LauncherKind::Pmi) => (env.mpi(launcher, world, &job)?, true),
        (None, LauncherKind::Slurm) => (env.slurm(&job)?, true),
    };
    let secret = match env.text("RCC_SECRET")? {
        Some(secret) => Secret::new(secret)?,
        None => secret_file::read_or_make(&secret_file::path(variable)?)?,
    };
    let secret = if of_job { secret.of_job(&job) } else { secret };
    let mut settings = Settings::new(rank, world, address, secret)?;
    settings.local_rank = env.number(launcher.local_rank)?;
    Ok(settings)
}

struct Environment<'a> {
    variable: Lookup<'a>,
}

impl Environment<'_> {
    /// Who has started this process, and as what.
    fn launcher(&self) -> Result<(&'static Launcher, u32, u32), Error> {
        let mut partly = None;
        for launcher in &LAUNCHERS {
            let Launcher { kind, rank: rank_name, world: world_name, .. } = launcher;
            let (missing, set, value) = match (self.number(rank_name)?, self.number(world_name)?) {
                (Some(rank), Some(world)) if world == 0 || rank >= world => {
                    let message = format!(
                        "{rank_name}={rank} and {world_name}={world} contradict each other: ranks count from 0 and are \
                         less than the world"
                    );
                    return Err(invalid(message).help("correct the variables, or unset both"));
                }
                (Some(rank), Some(world)) => return Ok((launcher, rank, world)),
                (Some(rank), None) => (world_name, rank_name, rank),
                (None, Some(world)) => (rank_name, world_name, world),
                (None, None) => continue,
            };
            let error = invalid(format!("{set}={value} is set, and {missing} is not"))
                .help(format!("set both {rank_name} and {world_name}, or neither"));
            if *kind == LauncherKind::Own {
                return Err(error);
            }
            // A shell may have a RANK of its own, and a batch script of Slurm says how many tasks there will be.
            partly.get_or_insert(error);
        }
        Err(partly.unwrap_or_else(|| {
            let ways = "start it with `rcc launch -n 4 -- PROGRAM`, torchrun, mpirun or srun; or set RCC_RANK, RCC_WORLD and \
                        RCC_RENDEZVOUS=host:port (and RCC_SECRET) yourself; or say in the program which rank it is";
            let message = "no launcher has said which rank this process is: none of RCC_RANK, RANK with WORLD_SIZE, \
                           OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID is set";
            invalid(message).help(ways)
        }))
    }

    /// What tells this job from others of its launcher, the same on all its ranks; empty if there is nothing.
    fn job(&self, launcher: LauncherKind) -> Result<String, Error> {
        let slurm = ["SLURM_JOB_ID", "SLURM_STEP_ID"];
        let names: &[&[&str]] = match launcher {
            LauncherKind::Own => &[],
            LauncherKind::Torchrun => {
                &[&["MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"]]
            }
            LauncherKind::OpenMpi => &[&["PMIX_NAMESPACE"], &["OMPI_MCA_ess_base_jobid"]],
            LauncherKind::Pmi => &[&["PMI_JOBID"], &slurm],
            LauncherKind::Slurm => &[&slurm],
        };
        for names in names {
            let mut job = String::new();
            for name in *names {
                if let Some(value) = self.text(name)? {
                    job += &format!("{name}={value}\n");
                }
            }
            if !job.is_empty() {
                return Ok(job);
            }
        }
        Ok(String::new())
    }

    fn torchrun(&self, job: &str) -> Result<String, Error> {
        let Some(host) = self.text("MASTER_ADDR")? else {
            let message = "RANK and WORLD_SIZE are set, and MASTER_ADDR is not";
            return Err(invalid(message).help(ask_for_rendezvous("")));
        };
        let port = match (self.port("RCC_PORT")?, self.port("MASTER_PORT")?) {
            (Some(port), _) => port,
            (None, Some(theirs)) => match port_of(job) {
                port if port == theirs => port + 1,
                port => port,
            },
            (None, None) => {
                let message =
                    "RANK, WORLD_SIZE and MASTER_ADDR are set, and neither MASTER_PORT nor RCC_PORT is";
                return Err(invalid(message).help(ask_for_rendezvous("")));
            }
        };
        // An IPv6 address stands there without brackets.
        Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    fn mpi(&self, launcher: &Launcher, world: u32, job: &str) -> Result<String, Error> {
        let (local, option) = match launcher.kind {
            LauncherKind::OpenMpi => ("OMPI_COMM_WORLD_LOCAL_SIZE", " (with `mpirun -x RCC_RENDEZVOUS=…`)"),
            _ => ("MPI_LOCALNRANKS", " (with `mpirun -genv RCC_RENDEZVOUS …`)"),
        };
        let help = || ask_for_rendezvous(option);
        match self.number(local)? {
            Some(here) if here == world => {}
            Some(here) => {
                let message = format!(
                    "{here} of the {world} ranks are on this host ({local}, {}), and MPI does not say where rank 0 is",
                    launcher.world
                );
                return Err(invalid(message).help(help()));
            }
            None => {
                let message = format!(
                    "{}={world} is set, and nothing says whether all ranks are on one host: {local} is not set",
                    launcher.world
                );
                return Err(invalid(message).help(help()));
            }
        }
        match self.port("RCC_PORT")? {
            Some(port) => Ok(format!("127.0.0.1:{port}")),
            None if !job.is_empty() => Ok(format!("127.0.0.1:{}", port_of(job))),
            None => {
                let message = format!(
                    "{} is set, and no variable tells this job from others, so that no port can be agreed on",
                    launcher.rank
                );
                Err(invalid(message).help(help()))
            }
        }
    }

    fn slurm(&self, job: &str) -> Result<String, Error> {
        let help = || ask_for_rendezvous(" (before `srun`, which passes it on)");
        let port = match self.port("RCC_PORT")? {
            Some(port) => port,
            None if !job.is_empty() => port_of(job),
            None => {
                let message =
                    "SLURM_PROCID is set, and SLURM_JOB_ID is not, so that no port can be agreed on";
                return Err(invalid(message).help(help()));
            }
        };
        let first = |names: [&str; 2]| -> Result<Option<String>, Error> {
            Ok(match self.text(names[0])? {
                Some(value) => Some(value),
                None => self.text(names[1])?,
            })
        };
        if first(["SLURM_STEP_NUM_NODES", "SLURM_NNODES"])?.as_deref() == Some("1") {
            return Ok(format!("127.0.0.1:{port}"));
        }
        let list = first(["SLURM_STEP_NODELIST", "SLURM_NODELIST"])?.unwrap_or_default();
        match first_host(&list) {
            Some(host) => Ok(format!("{host}:{port}")),
            None => {
                let message = format!("the first host of SLURM_NODELIST=`{list}` cannot be told");
                Err(invalid(message).help(help()))
            }
        }
    }

    /// A variable that is set and not empty. `RCC_SECRET` may be empty, which is then refused.
    fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(value) = (self.variable)(name) else { return Ok(None) };
        match value.into_string() {
            Ok(value) if value.is_empty() && name != "RCC_SECRET" => Ok(None),
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(invalid(format!("the value of {name} is not text"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u32>, Error> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(invalid(format!("{name} is `{value}`, which is no whole number from 0 on"))),
        }
    }

    fn port(&self, name: &str) -> Result<Option<u16>, Error> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        match value.trim().parse() {
            Ok(port) if port > 0 => Ok(Some(port)),
            _ => Err(invalid(format!("{name} is `{value}`, which is no port: they are 1 to 65535"))),
        }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::Invalid, message)
}

fn ask_for_rendezvous(how: &str) -> String {
    format!(
        "set RCC_RENDEZVOUS=host:port on all ranks{how}: an address of rank 0's host that all reach, and a port that is free \
         there"
    )
}

/// The port of a job: the same on all its ranks, and another for most other jobs.
fn port_of(job: &str) -> u16 {
    let [high, low, ..] = <[u8; 32]>::from(Sha256::digest(job.as_bytes()));
    20_000 + u16::from_be_bytes([high, low]) % 10_000
}

/// The first host of a list of Slurm's, where that is plain: `a`, `a,b`, `node[07-12,15],b`.
fn first_host(list: &str) -> Option<String> {
    let end = list.find([',', '[']).unwrap_or(list.len());
    let (name, rest) = list.split_at(end);
    let host = match rest.strip_prefix('[') {
        None => name.to_string(),
        Some(rest) => {
            let (numbers, after) = rest.split_once(']')?;
            let number = numbers.split([',', '-']).next()?;
            let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            if !plain || !(after.is_empty() || after.starts_with(',')) {
                return None;
            }
            format!("{name}{number}")
        }
    };
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    (!host.is_empty() && host.bytes().all(fits)).then_some(host)
}

#[cfg(test)]
mod tests;
