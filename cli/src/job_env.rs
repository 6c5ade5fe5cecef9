//! Whether this process was started by a launcher as one of several.
//!
//! In: the environment. Out: which launcher, and its variable. rcc cannot join such a job yet; to start a whole world of
//! its own once per process of the job would be worse than to say so.

use std::ffi::OsString;

use crate::failure::Failure;

/// What launchers set for each process, most telling first.
const VARIABLES: [(&str, &str); 8] = [
    ("RCC_RANK", "rcc launch"),
    ("OMPI_COMM_WORLD_RANK", "Open MPI's mpirun"),
    ("PMIX_RANK", "a PMIx launcher"),
    ("PMI_RANK", "MPICH's or Intel MPI's mpirun"),
    ("MV2_COMM_WORLD_RANK", "MVAPICH's mpirun"),
    ("SLURM_PROCID", "Slurm's srun"),
    ("TORCHELASTIC_RUN_ID", "torchrun"),
    ("RANK", "a launcher such as torchrun"),
];

/// Refuses if a launcher's variables are set; asked only where the number of ranks was not given.
pub(crate) fn refuse(variable: impl Fn(&str) -> Option<OsString>) -> Result<(), Failure> {
    // A shell may have a RANK of its own; torchrun also says how many there are.
    let set = |name: &str| variable(name).is_some() && (name != "RANK" || variable("WORLD_SIZE").is_some());
    let found = VARIABLES.iter().find(|(name, _)| set(name));
    match found {
        None => Ok(()),
        Some((name, launcher)) => Err(Failure::usage_help(
            format!(
                "{name} is set: this process is one rank of a job of {launcher}, and rcc cannot be one yet"
            ),
            "say how many ranks to start on this machine, `-n 4`, or unset the variable",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::refuse;

    fn with(set: &[&str]) -> Option<String> {
        refuse(|name| set.contains(&name).then(|| "0".into())).err().map(|failure| failure.to_string())
    }

    #[test]
    fn launchers_are_recognised() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&["RANK"]), None);
        for set in [
            &["RCC_RANK"][..],
            &["RANK", "WORLD_SIZE"],
            &["OMPI_COMM_WORLD_RANK"],
            &["PMI_RANK"],
            &["SLURM_PROCID"],
        ] {
            let message = with(set).expect("refused");
            assert!(message.contains(set[0]) && message.contains("-n"), "{message}");
        }
    }
}
