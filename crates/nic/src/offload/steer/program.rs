//! The settings as writes to the hardware's write port (`rss_lookup.sv`).
//!
//! An entry that is changed while frames come in is switched off first (`cfg_rule_enable`, `cfg_port_enable`), then
//! written, and switched on again; a rule only when the port says that it is not busy any more.

use super::{Action, INDIRECTION_LEN, MAX_PORTS, MAX_RULES, Rule};

/// One write: address and data.
pub type Write = (u16, u32);

/// The table of queues: eight values of the hash's low bits in a word, the first lowest.
const INDIRECTION: u16 = 0x000;
/// The map of ports: queue above port.
const PORTS: u16 = 0x080;
/// What is done with frames that fit a rule: queue, and bit 4 to drop.
const ACTIONS: u16 = 0x0a0;
/// Fills the tables of the rules anew.
const COMMIT: u16 = 0x0c0;
/// Words of rules: 32 of each, four of each step.
const RULES: u16 = 0x400;

/// The whole table of queues, eight to a word.
pub fn writes_of_indirection(table: &[u8; INDIRECTION_LEN]) -> impl Iterator<Item = Write> {
    let word =
        |channels: &[u8]| channels.iter().rev().fold(0, |word, channel| word << 4 | u32::from(channel & 15));
    table.chunks(8).zip(INDIRECTION..).map(move |(channels, at)| (at, word(channels)))
}

/// Entry `index` of the map of ports.
pub fn write_of_port(index: usize, port: u16, channel: u8) -> Option<Write> {
    (index < MAX_PORTS).then_some((PORTS + index as u16, u32::from(channel) << 16 | u32::from(port)))
}

/// Rule `index`, and the order to bring it into force; `None` if there is no such rule or no packet can fit it.
pub fn writes_of_rule(index: usize, rule: &Rule) -> Option<impl Iterator<Item = Write>> {
    if index >= MAX_RULES {
        return None;
    }
    let action = match rule.action {
        Action::Queue(channel) => u32::from(channel & 15),
        Action::Drop => 1 << 4,
    };
    let words = rule.words()?.into_iter().enumerate().flat_map(move |(step, word)| {
        let at = RULES + (index * 32 + step * 4) as u16;
        let top = (word.care >> 32 & 0xff) << 8 | word.value >> 32 & 0xff;
        [(at, word.value as u32), (at + 1, word.care as u32), (at + 2, top as u32)]
    });
    Some(words.chain([(ACTIONS + index as u16, action), (COMMIT, 0)]))
}
