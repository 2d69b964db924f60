//! Draws a picture of a service.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use server::diagnosis::{Severity, of_status};
use server::status::{ServiceState, Status};

use super::Picture;
use super::keys::Selection;
use super::rows::shared;
use super::sections::{Section, all, cut};

/// Draws a picture into a frame. The last line has the keys.
pub(super) fn draw(frame: &mut Frame<'_>, picture: &Picture, selection: &Selection) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = vec![heading(&picture.status), verdict(&picture.status, width)];
    let sections = all(picture, selection, width);
    // The heading, the verdict, the keys, and a title for each section.
    let room = height.saturating_sub(lines.len() + 1 + sections.len());
    let wanted: Vec<usize> = sections.iter().map(|section| section.rows.len()).collect();
    for (section, rows) in sections.into_iter().zip(shared(room, &wanted)) {
        lines.extend(of_section(section, rows, width));
    }
    lines.truncate(height.saturating_sub(1));
    for (y, line) in lines.into_iter().enumerate() {
        let place = Rect::new(area.x, area.y + y as u16, area.width, 1);
        frame.render_widget(line, place);
    }
    if let Some(last) = area.bottom().checked_sub(1) {
        frame.render_widget(
            keys(selection, &picture.status),
            Rect::new(area.x, last, area.width, 1),
        );
    }
}

fn of_section(section: Section, rows: usize, width: usize) -> Vec<Line<'static>> {
    let hidden = section.rows.len() - rows;
    let more = match hidden {
        0 => String::new(),
        _ => format!(" (+{hidden})"),
    };
    let title = format!(
        "{:<width$}",
        cut(&with(&section.title, &more, width), width)
    );
    let style = Style::new().add_modifier(Modifier::REVERSED);
    let mut lines = vec![Line::styled(title, style)];
    lines.extend(section.rows.into_iter().take(rows));
    lines
}

/// A title with a mark: in the first gap that has room for it, else at the end of the line.
fn with(title: &str, mark: &str, width: usize) -> String {
    let gap = " ".repeat(mark.len() + 1);
    let first = title.find(|c: char| c != ' ').unwrap_or(0);
    match title[first..].find(&gap) {
        Some(at) => {
            let at = first + at;
            format!("{}{mark}{}", &title[..at], &title[at + mark.len()..])
        }
        None => {
            let room = width.saturating_sub(mark.len());
            format!("{:<room$}{mark}", cut(title, room))
        }
    }
}

fn heading(status: &Status) -> Line<'static> {
    let state = match status.state {
        ServiceState::Starting => "starting",
        ServiceState::Serving => "serving",
        ServiceState::Draining => "draining",
        ServiceState::Stopping => "stopping",
    };
    Line::raw(format!(
        "headtime {}, {state} for {}, {}, {} connected",
        status.version,
        crate::output::time_left(status.uptime_s),
        match status.drives.len() {
            1 => "1 drive".to_owned(),
            count => format!("{count} drives"),
        },
        status.connections.len()
    ))
}

/// "OK", or what is wrong: the first finding of `headtime doctor`, and how many there are.
fn verdict(status: &Status, width: usize) -> Line<'static> {
    let mut findings = of_status(status);
    findings.sort_by_key(|finding| finding.severity);
    let Some(first) = findings.first() else {
        return Line::styled("OK", Style::new().fg(Color::Green));
    };
    let colour = match first.severity {
        Severity::Wrong => Color::Red,
        Severity::Notice => Color::Yellow,
    };
    let more = match findings.len() {
        1 => String::new(),
        count => format!(" (and {} more: headtime doctor)", count - 1),
    };
    let room = width.saturating_sub(more.chars().count());
    let text = format!("{}: {}: {}", first.severity, first.about, first.what);
    Line::styled(
        format!("{}{more}", cut(&text, room)),
        Style::new().fg(colour),
    )
}

fn keys(selection: &Selection, status: &Status) -> Line<'static> {
    let drive = status.drives.get(selection.drive);
    let drive = drive.map_or("", |drive| drive.name.as_str());
    if let Some(digits) = &selection.budget {
        return Line::raw(format!(
            "impact budget of {drive} in per cent: {digits}_   enter sets it, esc leaves it"
        ));
    }
    let keys = Span::raw("q quit  up/down task  s suspend or resume  tab drive  b budget");
    let message = match selection.message.is_empty() {
        true => String::new(),
        false => format!("   {}", selection.message),
    };
    Line::from(vec![
        keys,
        Span::styled(message, Style::new().fg(Color::Yellow)),
    ])
}
