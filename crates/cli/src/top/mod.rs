//! `linerate top`: a running server on the terminal, from its status.

pub mod args;
pub mod columns;
pub mod fetch;
pub mod plain;
pub mod view;
pub mod watch;

use crate::status::address::StatusAddress;
use args::Top;
use fetch::{FetchError, fetch};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use watch::Watch;

/// How often keys and new reports are looked for.
const TICK: Duration = Duration::from_millis(50);
/// Rows that a page key moves.
const PAGE: isize = 10;
/// Least time between two looks: more often tells nothing new.
const LEAST_INTERVAL: Duration = Duration::from_millis(200);

/// Why `top` ended.
#[derive(Debug)]
pub enum TopError {
    /// No report.
    Fetch(FetchError),
    /// The terminal, or standard output.
    Output(io::Error),
}

impl TopError {
    /// 1: nothing of it is a mistake in the arguments.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::FAILURE
    }
}

impl fmt::Display for TopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopError::Fetch(error) => error.fmt(f),
            TopError::Output(error) => write!(f, "the terminal: {error}"),
        }
    }
}

impl std::error::Error for TopError {}

/// Runs the command.
pub fn run(args: &Top) -> Result<(), TopError> {
    let address = args.address.unwrap_or(StatusAddress::DEFAULT);
    let interval = args.interval.0.max(LEAST_INTERVAL);
    // The first look is outside of the view, so that a mistake is said on the screen that stays.
    let first = fetch(address, args.limit).map_err(TopError::Fetch)?;
    let mut watch = Watch::new(address.to_string());
    watch.update(Ok(first));
    if !args.json && !args.once && io::stdout().is_terminal() {
        return interactive(watch, address, interval, args.limit).map_err(TopError::Output);
    }
    thread::sleep(interval);
    let second = fetch(address, args.limit).map_err(TopError::Fetch)?;
    let json = if args.json { Some(serde_json::to_string_pretty(&second)) } else { None };
    watch.update(Ok(second));
    let text = match json {
        Some(json) => json.map(|json| json + "\n").map_err(|error| TopError::Output(error.into()))?,
        None => plain::text(&watch),
    };
    match io::stdout().write_all(text.as_bytes()) {
        // Who reads only the beginning has what it wants.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(TopError::Output),
    }
}

fn interactive(mut watch: Watch, address: StatusAddress, interval: Duration, limit: u16) -> io::Result<()> {
    let (sender, reports) = mpsc::sync_channel(1);
    // A server that is slow to answer must not make keys wait. The thread ends with the view, at its next report.
    thread::Builder::new().name("fetch".to_owned()).spawn(move || {
        loop {
            thread::sleep(interval);
            if sender.send(fetch(address, limit).map_err(|error| error.to_string())).is_err() {
                break;
            }
        }
    })?;
    let mut terminal = ratatui::try_init()?;
    let result = show(&mut terminal, &mut watch, &reports);
    ratatui::restore();
    result
}

type Reports = mpsc::Receiver<Result<crate::status::report::Report, String>>;

fn show(terminal: &mut DefaultTerminal, watch: &mut Watch, reports: &Reports) -> io::Result<()> {
    let mut is_stale = true;
    loop {
        while let Ok(report) = reports.try_recv() {
            watch.update(report);
            is_stale = true;
        }
        if is_stale {
            terminal.draw(|frame| view::draw(frame, watch))?;
            is_stale = false;
        }
        if event::poll(TICK)? {
            is_stale = true;
            if let Event::Key(key) = event::read()?
                && press(watch, key)
            {
                return Ok(());
            }
        }
    }
}

/// Acts on a key; whether it ends the view.
fn press(watch: &mut Watch, key: KeyEvent) -> bool {
    if key.kind == KeyEventKind::Release {
        return false;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Down | KeyCode::Char('j') => watch.select(1),
        KeyCode::Up | KeyCode::Char('k') => watch.select(-1),
        KeyCode::PageDown => watch.select(PAGE),
        KeyCode::PageUp => watch.select(-PAGE),
        KeyCode::Home => watch.select(isize::MIN),
        KeyCode::End => watch.select(isize::MAX),
        KeyCode::Char('s') => watch.order = watch.order.next(),
        KeyCode::Char('p' | ' ') => watch.is_paused = !watch.is_paused,
        _ => {}
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use watch::Order;

    #[test]
    fn keys_do_what_the_last_line_says() {
        let mut watch = view::tests::busy();
        let mut press = |code| press(&mut watch, KeyEvent::new(code, KeyModifiers::NONE));
        assert!(press(KeyCode::Char('q')) && press(KeyCode::Esc) && !press(KeyCode::Char('x')));
        assert!(!press(KeyCode::Down) && !press(KeyCode::Char('s')) && !press(KeyCode::Char('p')));
        // Both were sent as much again, so that they stand as in the report: the second by rate is the first there.
        assert_eq!((watch.selected(), watch.order, watch.is_paused), (Some(0), Order::Again, true));
        let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(super::press(&mut watch, end));
    }
}
