//! The keys of `headtime top`: what is chosen, what is typed, and what the service is told.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use server::control::protocol::Ask;
use server::status::{Status, Task, TaskState};
use server::tasks::Steer;

/// What is chosen and typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selection {
    /// The place of the chosen task among those of all drives.
    pub(super) task: usize,
    /// The place of the chosen drive.
    pub(super) drive: usize,
    /// The digits of a budget, while it is typed.
    pub(super) budget: Option<String>,
    /// The end of the last order, or why the service does not answer.
    pub(super) message: String,
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Order {
    /// The end.
    Quit,
    /// A request to the service.
    Ask {
        ask: Ask,
        /// What is said if the service obeys.
        said: String,
    },
}

/// The most digits of a budget. A choice: 100.0000 has eight.
const MOST_DIGITS: usize = 8;

impl Selection {
    /// What a key does.
    pub(super) fn pressed(&mut self, key: KeyEvent, status: &Status) -> Option<Order> {
        let is_interrupt =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_interrupt {
            return Some(Order::Quit);
        }
        match self.budget.take() {
            Some(digits) => self.typed(digits, key.code, status),
            None => self.chosen(key.code, status),
        }
    }

    /// Keeps the choice on tasks and drives that are there.
    pub(super) fn stay_within(&mut self, status: &Status) {
        self.task = self.task.min(tasks(status).count().saturating_sub(1));
        self.drive = self.drive.min(status.drives.len().saturating_sub(1));
    }

    fn chosen(&mut self, key: KeyCode, status: &Status) -> Option<Order> {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Order::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.task = self.task.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.task += 1,
            KeyCode::Tab => self.drive = (self.drive + 1) % status.drives.len().max(1),
            KeyCode::Char('b') if !status.drives.is_empty() => self.budget = Some(String::new()),
            KeyCode::Char('s') => return self.steered(status),
            _ => {}
        }
        self.stay_within(status);
        None
    }

    /// Suspends the chosen task, or resumes it.
    fn steered(&mut self, status: &Status) -> Option<Order> {
        let Some((_, task)) = tasks(status).nth(self.task) else {
            "there is no task".clone_into(&mut self.message);
            return None;
        };
        let (action, word) = match task.state {
            TaskState::Active => (Steer::Suspend, "suspended"),
            TaskState::Suspended => (Steer::Resume, "resumed"),
            TaskState::Finished | TaskState::Aborted => {
                self.message = format!("task {} is {}", task.id, task.state.name());
                return None;
            }
        };
        Some(Order::Ask {
            ask: Ask::Steer {
                task: task.id,
                action,
            },
            said: format!("task {} is {word}", task.id),
        })
    }

    /// A key while a budget is typed, after these digits.
    fn typed(&mut self, mut digits: String, key: KeyCode, status: &Status) -> Option<Order> {
        match key {
            KeyCode::Esc => return None,
            KeyCode::Enter => return self.budgeted(&digits, status),
            KeyCode::Backspace => {
                digits.pop();
            }
            KeyCode::Char(c) if (c.is_ascii_digit() || c == '.') && digits.len() < MOST_DIGITS => {
                digits.push(c);
            }
            _ => {}
        }
        self.budget = Some(digits);
        None
    }

    fn budgeted(&mut self, digits: &str, status: &Status) -> Option<Order> {
        let drive = status.drives.get(self.drive)?;
        let percent: Option<f64> = digits.parse().ok();
        let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent)) else {
            self.message = format!("\"{digits}\" %: expected a number from 0 to 100");
            return None;
        };
        Some(Order::Ask {
            ask: Ask::Impact {
                drive: drive.name.clone(),
                impact_ppm: (percent * 1e4).round() as u32,
            },
            said: format!("the impact budget of {} is {percent} %", drive.name),
        })
    }
}

/// The tasks of all drives, with the names of these.
pub(super) fn tasks(status: &Status) -> impl Iterator<Item = (&str, &Task)> {
    let drives = status.drives.iter();
    drives.flat_map(|drive| drive.tasks.iter().map(|task| (drive.name.as_str(), task)))
}
