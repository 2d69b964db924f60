//! The programs that are run when a task has ended or a mirror has changed, as the configuration says.
//!
//! ```text
//!   end of a task, leg of a mirror --> a thread --> program, HEADTIME_NAME=... --LONGEST--> SIGTERM, SIGKILL
//!                                                      '--output--> log, bounded
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::LOOK_UP;
use super::program::{Program, ProgramOwner};
use crate::config;

/// The hooks of a service.
#[derive(Clone)]
pub(crate) struct Hooks {
    programs: config::Hooks,
    /// The programs that run.
    running: Arc<AtomicUsize>,
}

/// What a hook is run for: the end of a task, or a change of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookEvent {
    /// The number of the task, if it is one.
    pub(crate) task: Option<u64>,
    /// What it is: `scan VOLUME`, `mirror DRIVE`.
    pub(crate) name: String,
    /// What was done, or the problem.
    pub(crate) result: Result<String, String>,
}

/// The programs that run at once. A choice: a service whose tasks all end together has as many.
const MOST: usize = 8;

/// The time after which a program is ended. A choice: mail is sent in less.
const LONGEST: Duration = Duration::from_secs(60);

impl Hooks {
    pub(crate) fn new(programs: &config::Hooks) -> Self {
        Hooks {
            programs: programs.clone(),
            running: Arc::default(),
        }
    }

    /// Runs the program for an event, if there is one, on a thread of its own.
    pub(crate) fn run_for(&self, event: HookEvent) {
        let (hook, words) = match &event.result {
            Ok(_) => ("on_done", &self.programs.on_done),
            Err(_) => ("on_error", &self.programs.on_error),
        };
        if words.is_empty() {
            return;
        }
        let (task, words, running) = (event.task, words.clone(), Arc::clone(&self.running));
        if running.fetch_add(1, Ordering::AcqRel) >= MOST {
            running.fetch_sub(1, Ordering::AcqRel);
            warn!(task, hook, "{MOST} hooks run already: this one is not run");
            return;
        }
        let begun = thread::Builder::new()
            .name("hook".to_owned())
            .spawn(move || {
                match run(hook, &words, &event, LONGEST) {
                    Ok(said) => info!(task, hook, "the hook has ended: {said}"),
                    Err(problem) => warn!(task, hook, "the hook failed: {problem}"),
                }
                running.fetch_sub(1, Ordering::AcqRel);
            });
        if let Err(error) = begun {
            self.running.fetch_sub(1, Ordering::AcqRel);
            warn!(task, hook, "no thread for the hook: {error}");
        }
    }
}

/// Runs a program to its end, for at most this time.
fn run(
    hook: &str,
    words: &[String],
    event: &HookEvent,
    longest: Duration,
) -> Result<String, String> {
    let owner = ProgramOwner {
        task: event.task,
        who: "the hook",
    };
    let (Ok(text) | Err(text)) = &event.result;
    let task = event.task.map(|task| task.to_string());
    let variables = [
        ("HEADTIME_HOOK", hook.to_owned()),
        ("HEADTIME_TASK", task.unwrap_or_default()),
        ("HEADTIME_NAME", event.name.clone()),
        // A variable has no zero byte.
        ("HEADTIME_RESULT", text.replace('\0', " ")),
    ];
    let mut program = Program::start(owner, words, &variables, None)?;
    program.close_input();
    let until = Instant::now() + longest;
    let has_ended = loop {
        if program.has_gone() {
            break true;
        }
        if Instant::now() >= until {
            break false;
        }
        thread::sleep(LOOK_UP);
    };
    // What is left of it is ended, too.
    let ended = program.end(&AtomicBool::new(true));
    let status = ended.map_err(|error| error.to_string())?.status;
    match has_ended {
        true if status.success() => Ok(status.to_string()),
        true => Err(format!("it ended with {status}")),
        false => Err(format!(
            "it was ended after {} s, with {status}",
            longest.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    fn end(result: Result<&str, &str>) -> HookEvent {
        HookEvent {
            task: Some(7),
            name: "scan db".to_owned(),
            result: result.map(str::to_owned).map_err(str::to_owned),
        }
    }

    #[test]
    fn a_program_knows_its_task_and_gets_no_input() {
        let script = "read line; test \"$HEADTIME_HOOK $HEADTIME_TASK $HEADTIME_NAME $HEADTIME_RESULT$line\" = \
                      'on_done 7 scan db checksum  1'";
        let ran = run(
            "on_done",
            &shell(script),
            &end(Ok("checksum\u{0}1")),
            LONGEST,
        );
        assert_eq!(ran.err(), Some("it ended with exit status: 1".to_owned()));
        let script = script.replace("checksum  1", "checksum 1");
        let ran = run(
            "on_done",
            &shell(&script),
            &end(Ok("checksum\u{0}1")),
            LONGEST,
        );
        assert_eq!(ran, Ok("exit status: 0".to_owned()));
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_and_one_that_is_not_there_is_told() {
        let ran = run(
            "on_error",
            &shell("sleep 1000"),
            &end(Err("x")),
            Duration::ZERO,
        );
        let problem = ran.expect_err("it was ended");
        assert!(problem.starts_with("it was ended after 0 s"), "{problem}");
        let nothing = ["/no/such/program".to_owned()];
        let ran = run("on_error", &nothing, &end(Err("x")), LONGEST);
        assert!(
            ran.expect_err("there is none")
                .starts_with("/no/such/program: ")
        );
    }
}
