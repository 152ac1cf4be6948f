//! What a test's thread logs, for tests that ask.

use log::{Level, LevelFilter, Log, Metadata, Record};
use std::cell::RefCell;
use std::string::{String, ToString as _};
use std::sync::Once;
use std::vec::Vec;

std::thread_local! {
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

struct Keeper;

impl Log for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Info && LINES.with_borrow(Option::is_some)
    }

    fn log(&self, record: &Record<'_>) {
        LINES.with_borrow_mut(|lines| {
            if let Some(lines) = lines
                && record.level() <= Level::Info
            {
                lines.push(record.args().to_string());
            }
        });
    }

    fn flush(&self) {}
}

/// Keeps from now on what this thread logs.
pub fn keep() {
    static START: Once = Once::new();
    START.call_once(|| {
        log::set_logger(&Keeper).expect("there is no other logger");
        log::set_max_level(LevelFilter::Info);
    });
    LINES.set(Some(Vec::new()));
}

/// What was logged since it was asked last.
pub fn take() -> Vec<String> {
    LINES.replace(Some(Vec::new())).unwrap_or_default()
}
