//! `headtime top`: a running service in the terminal, drawn anew each second, with keys to steer it.
//!
//! ```text
//!   status, streams, slow requests --> Picture --.
//!   keys --> Selection ---------------------------+--> draw --> terminal, or text (--once)
//!     '--> Order --> service
//! ```

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use document::quantity::Unit;
use headtime_client::{Listed, default_socket};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use server::control::protocol::Ask;
use server::status::Status;
use server::why::{Query, Slow};

use crate::output::{Exit, print_answer, write_file};
use crate::service::{asked, understood};
use crate::settings::units::within;

mod draw;
mod keys;
mod rows;
mod sections;
mod svg;

use draw::draw;
use keys::{Order, Selection};

/// The arguments of `headtime top`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct TopArgs {
    /// The service's control socket [default: control.sock in $XDG_RUNTIME_DIR/headtime or
    /// /tmp/headtime-UID, else that of the only systemd service]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Seconds between two pictures
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    interval: f64,
    /// Print one picture as text, and exit: for a pipe, or a terminal that cannot be drawn on
    #[arg(long)]
    once: bool,
    /// The size of that picture in columns and lines
    #[arg(long, value_name = "COLUMNSxLINES", default_value = "80x24", value_parser = size, requires = "once")]
    size: (u16, u16),
    /// Draw that picture with its colours to this file instead
    #[arg(long, value_name = "FILE.svg", requires = "once")]
    svg: Option<PathBuf>,
}

const HELP: &str = "Keys:
  up, down    choose a task
  tab         choose a drive, for its budget
  s           suspend the chosen task, or resume it
  b           change the impact budget of the chosen drive: a number of per cent, then enter
  q           quit

Head time: F foreground, R real-time, f free reads in gaps, i idle and granted reads, c calibration,
x lost to wrong predictions, . unused. The strip is the last second of the drive's time.

Examples:
  headtime top
  headtime top --socket /run/headtime/sdb/control.sock
  headtime top --once --size 140x50
  headtime top --once --size 140x50 --svg top.svg";

/// What a service says of itself at one moment.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    pub(crate) status: Status,
    pub(crate) streams: Vec<Listed>,
    /// The slowest requests, the slowest first.
    pub(crate) slow: Vec<Slow>,
}

/// The number of slow requests that are asked for. A choice: more than a terminal has room for.
const SLOWEST: u32 = 16;

/// Shows the service until a key ends it.
///
/// # Errors
/// If no service answers at first, or the terminal cannot be drawn on.
pub fn run(arguments: &TopArgs) -> Result<(), Exit> {
    let socket = arguments.socket.clone().unwrap_or_else(default_socket);
    let picture = Picture::of(&socket)?;
    if arguments.once {
        let drawing = drawing(&picture, arguments.size)?;
        return match &arguments.svg {
            Some(file) => write_file(file, &svg::svg(&drawing)),
            None => print_answer(&as_text(&drawing)),
        };
    }
    if !io::stdout().is_terminal() {
        return Err(Exit::input(
            "standard output is no terminal: expected one, or --once for one picture as text; `headtime ctl status \
             --watch` prints again and again",
        ));
    }
    let mut terminal = ratatui::try_init().map_err(Exit::failed)?;
    let interval = Duration::from_secs_f64(arguments.interval);
    let ended = show(&mut terminal, &socket, picture, interval);
    ratatui::restore();
    ended.map_err(Exit::failed)
}

/// Draws and obeys keys until one ends it.
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    socket: &Path,
    mut picture: Picture,
    interval: Duration,
) -> io::Result<()> {
    let mut selection = Selection::default();
    let mut asked_at = Instant::now();
    loop {
        terminal.draw(|frame| draw(frame, &picture, &selection))?;
        let left = interval.saturating_sub(asked_at.elapsed());
        let order = match event::poll(left)? {
            true => match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    selection.pressed(key, &picture.status)
                }
                _ => None,
            },
            false => None,
        };
        match order {
            None => {}
            Some(Order::Quit) => return Ok(()),
            Some(Order::Ask { ask, said }) => {
                selection.message = match asked(socket, &ask) {
                    Ok(_) => said,
                    Err(exit) => exit.problem().to_owned(),
                };
            }
        }
        if asked_at.elapsed() >= interval {
            match Picture::of(socket) {
                Ok(newer) => picture = newer,
                Err(exit) => exit.problem().clone_into(&mut selection.message),
            }
            asked_at = Instant::now();
            selection.stay_within(&picture.status);
        }
    }
}

impl Picture {
    /// Asks a service for its status, streams and slow requests.
    fn of(socket: &Path) -> Result<Self, Exit> {
        let query = Query {
            slowest: Some(SLOWEST),
            ..Query::default()
        };
        Ok(Picture {
            status: understood(socket, asked(socket, &Ask::Status)?)?,
            streams: understood(socket, asked(socket, &Ask::Streams)?)?,
            // A service that has served nothing has no slow request.
            slow: match asked(socket, &Ask::Why(query)) {
                Ok(slow) => understood(socket, slow)?,
                Err(_) => Vec::new(),
            },
        })
    }
}

/// One picture.
fn drawing(picture: &Picture, (columns, lines): (u16, u16)) -> Result<Buffer, Exit> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).map_err(Exit::failed)?;
    let selection = Selection::default();
    terminal
        .draw(|frame| draw(frame, picture, &selection))
        .map_err(Exit::failed)?;
    Ok(terminal.backend().buffer().clone())
}

/// The characters of a drawing, without blanks at the ends of lines.
fn as_text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut text = String::new();
    for y in area.top()..area.bottom() {
        let cells = (area.left()..area.right()).map(|x| buffer[(x, y)].symbol());
        let line: String = cells.collect();
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The bounds of an interval in seconds. A choice: the service measures by the second.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

fn seconds(text: &str) -> Result<f64, String> {
    within(Unit::Seconds, INTERVALS)(text)
}

/// The bounds of a picture: below, nothing fits; above, no terminal is so large.
const SIZES: std::ops::RangeInclusive<u16> = 10..=1000;

fn size(text: &str) -> Result<(u16, u16), String> {
    let expected = || "expected a size such as 80x24, each number from 10 to 1000".to_owned();
    let (columns, lines) = text.split_once('x').ok_or_else(expected)?;
    let number = |text: &str| {
        let number: u16 = text.parse().ok()?;
        SIZES.contains(&number).then_some(number)
    };
    match (number(columns), number(lines)) {
        (Some(columns), Some(lines)) => Ok((columns, lines)),
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests;
