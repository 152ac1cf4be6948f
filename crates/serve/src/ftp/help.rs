//! What the server tells of itself: FEAT, HELP and STAT.

use super::command::{VERBS, Verb};
use super::hash::HashAlgorithm;
use super::hub::Turn;
use super::reply::shortened;
use super::session::{Job, Session};
use alloc::string::String;

/// Verbs in a line of HELP.
const HELP_COLUMNS: usize = 8;

impl Session {
    /// FEAT (RFC 2389 section 3).
    pub(super) fn feat(&mut self) {
        let (facts, hash) = (self.facts.feature(), self.hash);
        let replies = self.replies();
        replies.first(211, "Features:");
        for feature in ["CLNT", "EPRT", "EPSV"] {
            replies.middle(feature);
        }
        replies.middle(format_args!("HASH {}", HashAlgorithm::feature(hash)));
        for feature in ["HOST", "LANG EN*", "MDTM", "MFMT"] {
            replies.middle(feature);
        }
        replies.middle(format_args!("MLST {facts}"));
        for feature in ["PASV", "REST STREAM", "SIZE", "TVFS", "UTF8"] {
            replies.middle(feature);
        }
        replies.line(211, "End");
    }

    /// HELP (RFC 959 section 4.1.3).
    pub(super) fn help(&mut self, arg: &str) {
        if let Some(verb) = Verb::by_name(arg) {
            return self.reply(214, format_args!("Syntax: {verb} {}", verb.spec().syntax));
        }
        if !arg.is_empty() {
            return self.reply(502, format_args!("There is no command {}", shortened(arg, 16)));
        }
        let replies = self.replies();
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
    }

    /// STAT without a path: how the session stands, also during a transfer (RFC 959 section 4.1.3).
    pub(super) fn stat_server(&mut self, turn: &mut Turn<'_, '_>) {
        let (peer, name) = (self.peer, String::from(self.user_name()));
        let kind = if self.ascii { "A" } else { "I" };
        let transfer = match &self.job {
            Job::Transfer(transfer) => Some(transfer.status(turn, self.channel)),
            _ => None,
        };
        let replies = self.replies();
        replies.first(211, "Status:");
        replies.middle(format_args!("Connected from {peer}, user {name}"));
        replies.middle(format_args!("TYPE {kind}, STRU F, MODE S"));
        if let Some(transfer) = transfer {
            replies.middle(transfer);
        }
        replies.line(211, "End");
    }
}
