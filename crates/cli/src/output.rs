//! What `serve` prints on standard output: text for people, or one JSON object a line (`--log-format json`).

use crate::logging;
use crate::outlet::Outlet;
use linerate_linux::terminal;
use linerate_linux::unread::write_without_waiting;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::stdout;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static JSON: AtomicBool = AtomicBool::new(false);

static OUTLET: Mutex<Outlet> = Mutex::new(Outlet::new(|bytes| write_without_waiting(stdout(), bytes)));

/// Chooses JSON or text for all that is printed from now on.
pub fn set_json(on: bool) {
    JSON.store(on, Ordering::Relaxed);
}

/// Whether JSON was asked for.
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Prints what happened: `text` for people, or `fields` as an object whose first key, `event`, is `name`.
pub fn event(name: &str, text: impl Display, fields: Value) {
    if is_json() {
        line(&object(name, &fields));
    } else {
        line(&text);
    }
}

/// Prints a remark that is no figure.
pub fn note(message: impl Display) {
    event("note", &message, json!({ "message": message.to_string() }));
}

/// Columns of the terminal that standard output is; nothing where it is none.
pub fn width() -> Option<u16> {
    terminal::width(stdout())
}

/// Prints, on standard error, why the program ends.
pub fn failure(error: impl Display) {
    let line = if is_json() {
        json!({ "level": "ERROR", "fields": { "message": error.to_string() }, "target": "linerate" })
            .to_string()
    } else {
        format!("linerate: {error}")
    };
    logging::last_words(&line);
}

/// The object of an event as text, with its name in front, where people look for it.
fn object(name: &str, fields: &Value) -> String {
    let fields = fields.to_string();
    match fields.strip_prefix('{') {
        Some(rest) if rest != "}" => format!("{{\"event\":{},{rest}", Value::from(name)),
        _ => json!({ "event": name }).to_string(),
    }
}

/// Who closed standard output does not want to read it, and who does not read it is not waited for; serving goes on.
fn line(text: &impl Display) {
    let mut outlet = outlet();
    outlet.append(format!("{text}\n").as_bytes());
    outlet.write_out();
}

/// Writes what could not be written before; how many lines were dropped in the meantime, each told once.
pub fn settle() -> u64 {
    let mut outlet = outlet();
    outlet.write_out();
    outlet.take_dropped()
}

/// As [`settle`], and waits a little for whoever is to read it. To be called before the process ends.
pub fn finish(patience: Duration) {
    outlet().finish(patience);
}

fn outlet() -> MutexGuard<'static, Outlet> {
    OUTLET.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let text = object("note", &json!({ "message": "two\nlines" }));
        assert!(text.starts_with("{\"event\":\"note\",") && !text.contains('\n'), "{text}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&back["event"], &back["message"]), (&"note".into(), &"two\nlines".into()));
        assert_eq!(object("ended", &json!({})), "{\"event\":\"ended\"}");
    }
}
