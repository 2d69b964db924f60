//! Progress where there is no terminal: a line on standard error every half minute, for logs of long runs.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::output::{time_left, warn};
use crate::verbosity::is_quiet;

/// Prints the progress of a bar until it is dropped.
#[derive(Debug)]
pub struct ProgressLines {
    /// Dropped first: it ends the thread.
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Seconds between two lines. A choice: an hour of a log has 120 of them.
const SECONDS: f64 = 30.0;

/// The variable with other seconds; 0 is no line at all.
const VARIABLE: &str = "HEADTIME_PROGRESS_S";

/// The most seconds. A choice: a week.
const MOST_SECONDS: f64 = 604_800.0;

impl ProgressLines {
    /// Prints the progress of this bar from now on, if standard error is no terminal.
    pub fn of(bar: &ProgressBar) -> Self {
        let none = ProgressLines {
            ends: None,
            thread: None,
        };
        let Some(interval) = interval().filter(|_| !io::stderr().is_terminal() && !is_quiet())
        else {
            return none;
        };
        let (ends, ended) = mpsc::channel();
        let (bar, begun) = (bar.clone(), Instant::now());
        let printing = move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let text = described(&Figures::of(&bar, begun.elapsed()));
                // A closed standard error has no reader.
                let _ = writeln!(io::stderr(), "progress: {text}");
            }
        };
        // Without a thread there are no lines, and the measurement goes on.
        match thread::Builder::new()
            .name("progress".into())
            .spawn(printing)
        {
            Ok(thread) => ProgressLines {
                ends: Some(ends),
                thread: Some(thread),
            },
            Err(_) => none,
        }
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked prints no more.
            let _ = thread.join();
        }
    }
}

/// The time between two lines, if there are any.
fn interval() -> Option<Duration> {
    let usual = Duration::from_secs_f64(SECONDS);
    let Ok(text) = env::var(VARIABLE) else {
        return Some(usual);
    };
    stated_interval(&text).unwrap_or_else(|| {
        warn(&format!(
            "{VARIABLE}={text}: expected seconds from 0, which is none, to {MOST_SECONDS}; {SECONDS} are taken"
        ));
        Some(usual)
    })
}

/// The time that the variable states, none for zero; `None` if it states no time.
fn stated_interval(text: &str) -> Option<Option<Duration>> {
    let seconds: f64 = text.parse().ok()?;
    let is_time = (0.0..=MOST_SECONDS).contains(&seconds);
    is_time.then(|| (seconds > 0.0).then(|| Duration::from_secs_f64(seconds)))
}

/// What a bar shows.
struct Figures {
    prefix: String,
    message: String,
    position: u64,
    length: Option<u64>,
    elapsed: Duration,
}

impl Figures {
    fn of(bar: &ProgressBar, elapsed: Duration) -> Self {
        Figures {
            prefix: bar.prefix(),
            message: bar.message(),
            position: bar.position(),
            length: bar.length(),
            elapsed,
        }
    }
}

/// The progress in one line.
fn described(figures: &Figures) -> String {
    let names = [figures.prefix.trim(), figures.message.trim()];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let mut text = names.join(": ").replace('\n', " ");
    if !text.is_empty() {
        text += ": ";
    }
    let elapsed = figures.elapsed.as_secs_f64();
    let length = figures.length.filter(|&length| length > 0);
    if let Some(length) = length {
        let share = figures.position as f64 / length as f64;
        text += &format!("{:.0} %, ", (share * 100.0).min(100.0));
    }
    text += &format!("{} so far", time_left(elapsed));
    // A message may have an estimate of its own.
    let length = length.filter(|_| !figures.message.contains(" left"));
    let left = length.map(|length| length.saturating_sub(figures.position));
    if let Some(left) = left.filter(|&left| left > 0 && figures.position > 0) {
        let left = elapsed * left as f64 / figures.position as f64;
        text += &format!(", about {} left", time_left(left));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(prefix: &str, message: &str, position: u64, length: Option<u64>) -> Figures {
        Figures {
            prefix: prefix.to_owned(),
            message: message.to_owned(),
            position,
            length,
            elapsed: Duration::from_secs(120),
        }
    }

    #[test]
    fn lines_come_every_half_minute_unless_the_variable_says_otherwise() {
        assert_eq!(SECONDS, 30.0);
        let seconds = |text| stated_interval(text).map(|time| time.map(|time| time.as_secs_f64()));
        assert_eq!(seconds("2.5"), Some(Some(2.5)));
        assert_eq!(seconds("0"), Some(None));
        for text in ["", "soon", "-1", "nan", "604801"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_line_says_what_is_measured_how_far_it_is_and_when_it_ends() {
        for (figures, line) in [
            (
                figures("", "fb.prediction", 25, Some(100)),
                "fb.prediction: 25 %, 2 minutes so far, about 6 minutes left",
            ),
            (
                figures("sptf", "two\nlines", 0, Some(10)),
                "sptf: two lines: 0 %, 2 minutes so far",
            ),
            (
                figures("", "at 7 MB/s, 20 minutes left", 2, Some(100)),
                "at 7 MB/s, 20 minutes left: 2 %, 2 minutes so far",
            ),
            (figures("", "", 12, Some(10)), "100 %, 2 minutes so far"),
            (figures("x", "", 7, None), "x: 2 minutes so far"),
            // The length of a measurement that has not begun yet.
            (figures("", "", 0, Some(0)), "2 minutes so far"),
        ] {
            assert_eq!(described(&figures), line);
        }
    }
}
