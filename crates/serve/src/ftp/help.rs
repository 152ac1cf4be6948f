//! What the server tells of itself: FEAT, HELP and STAT.

use super::command::{VERBS, Verb};
use super::hash::HashAlgorithm;
use super::reply::{Replies, reply, shortened};
use super::settings::Settings;
use alloc::string::String;
use core::net::SocketAddr;

/// Verbs in a line of HELP.
const HELP_COLUMNS: usize = 8;

/// FEAT (RFC 2389 section 3).
pub(super) fn feat(settings: &Settings) -> Replies {
    let mut replies = Replies::default();
    replies.first(211, "Features:");
    for feature in ["CLNT", "EPRT", "EPSV"] {
        replies.middle(feature);
    }
    replies.middle(format_args!("HASH {}", HashAlgorithm::feature(settings.hash)));
    for feature in ["HOST", "LANG EN*", "MDTM", "MFMT"] {
        replies.middle(feature);
    }
    replies.middle(format_args!("MLST {}", settings.facts.feature()));
    for feature in ["PASV", "REST STREAM", "SIZE", "TVFS", "UTF8"] {
        replies.middle(feature);
    }
    replies.line(211, "End");
    replies
}

/// HELP (RFC 959 section 4.1.3).
pub(super) fn help(arg: &str) -> Replies {
    if let Some(verb) = Verb::by_name(arg) {
        return reply(214, format_args!("Syntax: {verb} {}", verb.spec().syntax));
    }
    if !arg.is_empty() {
        return reply(502, format_args!("There is no command {}", shortened(arg, 16)));
    }
    let mut replies = Replies::default();
    replies.first(214, "Commands:");
    for row in VERBS.chunks(HELP_COLUMNS) {
        let mut line = String::new();
        for spec in row {
            line.push_str(spec.name);
            line.push(' ');
        }
        replies.middle(line.trim_end_matches(' '));
    }
    replies.line(214, "HELP <command> tells more");
    replies
}

/// STAT without a path: how the session stands, also during a transfer (RFC 959 section 4.1.3).
pub(super) fn status(peer: SocketAddr, user: &str, settings: &Settings, transfer: Option<String>) -> Replies {
    let kind = if settings.ascii { "A" } else { "I" };
    let mut replies = Replies::default();
    replies.first(211, "Status:");
    replies.middle(format_args!("Connected from {peer}, user {user}"));
    replies.middle(format_args!("TYPE {kind}, STRU F, MODE S"));
    if let Some(transfer) = transfer {
        replies.middle(transfer);
    }
    replies.line(211, "End");
    replies
}
