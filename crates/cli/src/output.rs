//! What `serve` prints on standard output: text for people, or one JSON object a line (`--log-format json`).

use serde_json::{Value, json};
use std::fmt::Display;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

static JSON: AtomicBool = AtomicBool::new(false);

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

/// Prints, on standard error, why the program ends.
pub fn failure(error: impl Display) {
    let mut stderr = std::io::stderr().lock();
    // Nobody is left to be told that this cannot be written.
    let _ = if is_json() {
        let fields =
            json!({ "level": "ERROR", "fields": { "message": error.to_string() }, "target": "linerate" });
        writeln!(stderr, "{fields}")
    } else {
        writeln!(stderr, "linerate: {error}")
    };
}

/// The object of an event as text, with its name in front, where people look for it.
fn object(name: &str, fields: &Value) -> String {
    let fields = fields.to_string();
    match fields.strip_prefix('{') {
        Some(rest) if rest != "}" => format!("{{\"event\":{},{rest}", Value::from(name)),
        _ => json!({ "event": name }).to_string(),
    }
}

fn line(text: &impl Display) {
    let mut stdout = std::io::stdout().lock();
    // Who closed standard output does not want to read it; serving goes on.
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
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
