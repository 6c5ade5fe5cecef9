//! One run of one program.
//!
//! In: words, environment, how long it may take. Out: what it printed, or why there is nothing.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::library::Started;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long a launcher has to end its ranks when it is told to.
const FAREWELL: Duration = Duration::from_secs(5);
/// The most of what it complained of that is kept.
const COMPLAINT: usize = 600;

/// Runs it to its end.
pub(crate) fn run(started: &Started, limit: Duration) -> Result<String, String> {
    let Some((program, arguments)) = started.words.split_first() else { return Err("nothing to run".into()) };
    let mut child = Command::new(program)
        .args(arguments)
        .envs(started.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{program} cannot be started: {error}"))?;
    let output = collect(child.stdout.take());
    let complaints = collect(child.stderr.take());
    let ended = wait(&mut child, limit);
    let (output, complaints) = (output.join().unwrap_or_default(), complaints.join().unwrap_or_default());
    match ended {
        Ok(true) => Ok(output),
        Ok(false) => Err(last(&format!("it failed: {}", complaints.trim()))),
        Err(why) => Err(why),
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether it ended well.
fn wait(child: &mut Child, limit: Duration) -> Result<bool, String> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("it cannot be waited for: {error}"))? {
            return Ok(status.success());
        }
        if began.elapsed() > limit {
            end(child);
            return Err(format!("it had not ended after {} s", limit.as_secs()));
        }
        std::thread::sleep(LOOK);
    }
}

/// Asks it to end, since a launcher that is killed leaves its ranks behind; then ends it.
fn end(child: &mut Child) {
    let asked =
        Command::new("kill").arg(child.id().to_string()).status().is_ok_and(|status| status.success());
    let began = Instant::now();
    while asked && began.elapsed() < FAREWELL {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(LOOK);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The end of a long text, where the reason mostly is.
fn last(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(COMPLAINT);
    text.chars().skip(skipped).collect::<String>().replace('\n', " | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Started {
        let words = ["sh", "-c", script].map(String::from).to_vec();
        Started { words, environment: vec![("GREETING", "hello".to_string())] }
    }

    #[test]
    fn what_it_printed_comes_back_and_failures_are_told() {
        let limit = Duration::from_secs(20);
        assert_eq!(run(&shell("echo $GREETING; echo aside >&2"), limit), Ok("hello\n".to_string()));
        let failed = run(&shell("echo said; echo why >&2; exit 3"), limit).unwrap_err();
        assert!(failed.contains("why"), "{failed}");
        let nowhere = Started { words: vec!["/no/such/program".into()], environment: Vec::new() };
        assert!(run(&nowhere, limit).is_err());
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let began = Instant::now();
        let late = run(&shell("exec sleep 60"), Duration::from_millis(100)).unwrap_err();
        assert!(late.contains("not ended") && began.elapsed() < Duration::from_secs(20), "{late}");
    }
}
