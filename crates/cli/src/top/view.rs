//! The picture of a server on a terminal.

use super::columns::{Column, shown};
use super::watch::{Drops, Watch};
use crate::status::report::{Conn, Report};
use linerate_lab::quantity::{bytes, count, rate, share, span};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};
use std::time::Duration;

/// Rows for drops at most.
const DROP_ROWS: usize = 6;
/// From this width on memory and drops stand side by side: a drop with its growth takes half of it.
const WIDE: u16 = 120;
/// A bar that is fuller than this stands out.
const TIGHT: f64 = 0.75;
/// Characters of a bar.
const BAR: usize = 20;

const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);
const QUIET: Style = Style::new().fg(Color::DarkGray);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const WARM: Style = Style::new().fg(Color::Yellow);

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, watch: &Watch) {
    let area = frame.area();
    let head = head(watch, area.width);
    let memory = watch.report().map(memory).unwrap_or_default();
    let drops = drops(&watch.drops());
    let is_wide = area.width >= WIDE;
    let middle = if is_wide {
        memory.lines.len().max(drops.lines.len())
    } else {
        memory.lines.len() + drops.lines.len()
    };
    let detail = if area.height >= 24 { 7 } else { 4 };
    let rows = Layout::vertical([
        Constraint::Length(head.lines.len() as u16),
        Constraint::Length(middle as u16 + 1),
        Constraint::Min(3),
        Constraint::Length(detail),
        Constraint::Length(1),
    ]);
    let [top, middle, table, bottom, keys] = rows.areas(area);
    frame.render_widget(Paragraph::new(head), top);
    if is_wide {
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(middle);
        frame.render_widget(Paragraph::new(memory), left);
        frame.render_widget(Paragraph::new(drops), right);
    } else {
        let both: Vec<Line<'_>> = memory.lines.into_iter().chain(drops.lines).collect();
        frame.render_widget(Paragraph::new(both), middle);
    }
    connections(frame, table, watch);
    let rows = watch.rows();
    if let Some(conn) = watch.selected().and_then(|at| rows.get(at)) {
        frame.render_widget(Paragraph::new(about(conn)).wrap(Wrap { trim: true }), bottom);
    }
    let order = format!("q quit  arrows select  s sort ({})  p pause", watch.order.name());
    frame.render_widget(Paragraph::new(Line::styled(order, QUIET)), keys);
}

fn seconds(seconds: f64) -> String {
    span(Duration::from_secs(Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs()))
}

fn head(watch: &Watch, width: u16) -> Text<'static> {
    let mut title = vec![Span::styled("linerate top  ", TITLE)];
    let Some(report) = watch.report() else {
        let what = watch.error.clone().unwrap_or_else(|| format!("asking {}", watch.address));
        return Text::from(vec![Line::from(title), Line::styled(what, ALARM)]);
    };
    title.push(Span::raw(format!("{}  up {}", watch.address, seconds(report.uptime))));
    if watch.is_paused {
        title.push(Span::styled("  paused", ALARM));
    }
    let mut lines = vec![Line::from(title), Line::styled(report.device.clone(), QUIET)];
    if let Some(error) = &watch.error {
        lines.push(Line::styled(error.clone(), ALARM));
    }
    lines.extend(filled(rates(watch, report), width));
    Text::from(lines)
}

fn rates(watch: &Watch, report: &Report) -> Vec<Span<'static>> {
    let connections = format!("connections {}", count(report.connections.total));
    let Some(totals) = watch.totals() else {
        return vec![Span::raw(connections)];
    };
    let per_second = |number: f64| count(number.round() as u64);
    let traffic = [("in", totals.receive_rate), ("out", totals.send_rate)];
    let mut spans = traffic.map(|(way, bits)| Span::raw(format!("{way} {}", rate(bits)))).to_vec();
    spans.push(Span::raw(connections));
    if report.transport == "own" {
        let style = if totals.retransmits > 0.0 { WARM } else { Style::new() };
        spans.push(Span::styled(format!("again {}/s", per_second(totals.retransmits)), style));
    }
    let style = if totals.drops > 0.0 { ALARM } else { Style::new() };
    spans.push(Span::styled(format!("drops {}/s", per_second(totals.drops)), style));
    spans.push(Span::raw(format!("cpu {:.0} %", totals.cpu * 100.0)));
    if let Some(resident) = report.process.resident {
        spans.push(Span::raw(format!("resident {}", bytes(resident))));
    }
    spans
}

/// Lines of at most this width, two blanks between what stands on one: a figure that is cut off reads as another one.
fn filled(spans: Vec<Span<'static>>, width: u16) -> Vec<Line<'static>> {
    const BETWEEN: &str = "  ";
    let mut lines: Vec<Line<'static>> = Vec::new();
    for span in spans {
        match lines.last_mut() {
            Some(line) if line.width() + BETWEEN.len() + span.width() <= usize::from(width) => {
                line.push_span(BETWEEN);
                line.push_span(span);
            }
            _ => lines.push(Line::from(span)),
        }
    }
    lines
}

/// A bar of how full something is.
fn bar(name: &str, used: u64, total: u64, text: String) -> Line<'static> {
    let part = if total == 0 { 0.0 } else { used as f64 / total as f64 };
    let full = ((part * BAR as f64).round() as usize).clamp(usize::from(used > 0), BAR);
    let style = if part > TIGHT { ALARM } else { Style::new().fg(Color::Green) };
    Line::from(vec![
        Span::raw(format!("{name:<21} [")),
        Span::styled("|".repeat(full), style),
        Span::raw(format!("{}] {text}", " ".repeat(BAR - full))),
    ])
}

fn memory(report: &Report) -> Text<'static> {
    let memory = &report.memory;
    let mut lines = vec![Line::styled("Memory", TITLE)];
    let text = format!("{} of {}", bytes(memory.used), bytes(memory.limit));
    lines.push(bar("sockets", memory.used, memory.limit, text));
    for pool in &report.pools {
        let used = pool.total.saturating_sub(pool.free);
        lines.push(bar(&pool.name, used, pool.total, format!("{} of {}", count(used), count(pool.total))));
    }
    Text::from(lines)
}

fn drops(drops: &[Drops]) -> Text<'static> {
    let mut lines = vec![Line::styled("Dropped, refused or given up", TITLE)];
    if drops.is_empty() {
        lines.push(Line::styled("nothing", QUIET));
    }
    for drop in drops.iter().take(DROP_ROWS) {
        let text = format!("{:<32} {:>12}", drop.reason, count(drop.total));
        lines.push(match drop.growth > 0.0 {
            true => Line::styled(format!("{text}  +{}/s", count(drop.growth.ceil() as u64)), ALARM),
            false => Line::from(text),
        });
    }
    if drops.len() > DROP_ROWS {
        lines.push(Line::styled(format!("and {} more", drops.len() - DROP_ROWS), QUIET));
    }
    Text::from(lines)
}

fn connections(frame: &mut Frame<'_>, area: Rect, watch: &Watch) {
    let columns: Vec<&Column> = shown(area.width).collect();
    let cell = |column: &Column, text: String| {
        let alignment = if column.is_number { Alignment::Right } else { Alignment::Left };
        Cell::from(Text::from(text).alignment(alignment))
    };
    let rows = watch.rows().into_iter().map(|conn| {
        let cells = columns.iter().map(|column| cell(column, (column.value)(conn)));
        let row = Row::new(cells);
        if conn.send_rate + conn.receive_rate > 0.0 { row } else { row.style(QUIET) }
    });
    let last = columns.len() - 1;
    let widths = columns.iter().enumerate().map(|(at, column)| match at == last {
        true => Constraint::Fill(1),
        false => Constraint::Length(column.width),
    });
    let titles = columns.iter().map(|column| cell(column, column.title.to_owned()));
    let table = Table::new(rows, widths)
        .header(Row::new(titles).style(TITLE))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(watch.selected());
    frame.render_stateful_widget(table, area, &mut state);
}

/// What is to be said of one connection.
fn about(conn: &Conn) -> Text<'static> {
    let mut shares: Vec<(&String, &f64)> = conn.shares.iter().filter(|(_, part)| **part >= 0.005).collect();
    shares.sort_by(|a, b| b.1.total_cmp(a.1));
    let shares: Vec<String> =
        shares.iter().map(|(cause, part)| format!("{cause} {}", share(**part))).collect();
    Text::from(vec![
        Line::styled(format!("{} -> {}  {}", conn.remote, conn.local, conn.state), TITLE),
        Line::from(format!("{}: {}", conn.bottleneck, conn.because)),
        Line::from(vec![Span::styled("advice  ", QUIET), Span::raw(conn.advice.clone())]),
        Line::from(vec![Span::styled("limited by  ", QUIET), Span::raw(shares.join(", "))]),
        Line::styled(
            format!(
                "cwnd {}  its window {}  our window {}  in flight {}  queued {}  unread {}  mss {}",
                bytes(u64::from(conn.cwnd)),
                bytes(u64::from(conn.send_window)),
                bytes(u64::from(conn.receive_window)),
                bytes(u64::from(conn.in_flight)),
                bytes(conn.queued),
                bytes(conn.unread),
                conn.mss
            ),
            QUIET,
        ),
    ])
}

#[cfg(test)]
pub(super) mod tests;
