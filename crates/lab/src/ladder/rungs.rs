//! The rungs: each is a state that another one leads to by one change, with the cause that the change removes.

use super::state::{Direction, Interrupts, State};
use linerate_sim::PacingMode;

/// What limits a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The interface, or the link behind it.
    Interface,
    /// The server's processor.
    Processor,
    /// The server's send buffer.
    SendBuffer,
    /// The receiver's window.
    ReceiveBuffer,
    /// The server's memory for sockets.
    Memory,
}

impl Limit {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Interface => "the interface",
            Limit::Processor => "the processor",
            Limit::SendBuffer => "the send buffer",
            Limit::ReceiveBuffer => "the receive buffer",
            Limit::Memory => "memory",
        }
    }
}

/// What a rung takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A limit that was in force before.
    Limit(Limit),
    /// Work of this kind, as the simulator's processor counts it: `packets`, `calls`, ...
    Work(&'static str),
    /// Work of every kind.
    AllWork,
    /// Nothing: the rung puts a cause in, which the next takes away.
    Injects(Limit),
    /// Nothing: it is where the ladder stands.
    Ground,
}

/// One rung.
#[derive(Clone, Debug)]
pub struct Rung {
    /// Its name.
    pub name: &'static str,
    /// What is changed, in words.
    pub title: &'static str,
    /// The rung that it is changed from.
    pub from: Option<&'static str>,
    /// What the change takes away.
    pub cause: Cause,
    /// The state after it.
    pub state: State,
    /// The tuning under which the document prints figures of it, where it does.
    pub published: Option<&'static str>,
    /// The description of that system in `boards/socs/k2h.toml`, where there is one.
    pub described: Option<&'static str>,
}

/// Builds the table: each rung copies the state of the one before and changes it.
#[derive(Default)]
struct Table(Vec<Rung>);

impl Table {
    fn add(
        &mut self,
        name: &'static str,
        title: &'static str,
        from: Option<&'static str>,
        cause: Cause,
        change: impl FnOnce(&mut State),
    ) -> &mut Rung {
        let before = from.and_then(|from| self.0.iter().find(|rung| rung.name == from));
        let mut state =
            before.map_or_else(|| State::as_ported(Direction::Sending), |rung| rung.state.clone());
        change(&mut state);
        self.0.push(Rung { name, title, from, cause, state, published: None, described: None });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}

impl Rung {
    fn published(&mut self, tuning: &'static str) -> &mut Rung {
        self.published = Some(tuning);
        self
    }

    fn described(&mut self, server: &'static str) -> &mut Rung {
        self.described = Some(server);
        self
    }
}

/// All rungs, in the order of the document: first what it did, then what it names for the future.
pub fn all() -> Vec<Rung> {
    let mut table = Table::default();
    sending(&mut table);
    with_a_busy_processor(&mut table);
    after_the_document(&mut table);
    receiving(&mut table);
    table.0
}

fn sending(table: &mut Table) {
    table
        .add(
            "as-ported",
            "512-byte writes, a yield after each, -Og, 8 KiB buffers",
            None,
            Cause::Ground,
            |_| {},
        )
        .published("as ported")
        .described("ftp_send_1_default");
    table.add(
        "mss-writes",
        "a full segment with each write",
        Some("as-ported"),
        Cause::Work("packets"),
        |state| {
            state.write = 0;
        },
    );
    table.add("no-yield", "no yield", Some("mss-writes"), Cause::Work("giving way"), |state| {
        state.gives_way = false;
    });
    table
        .add("optimized", "compiled for speed", Some("no-yield"), Cause::AllWork, |state| {
            state.optimized = true;
        })
        .published("code check and -O3")
        .described("ftp_send_2_application");
    table
        .add(
            "buffers-64k",
            "64 KiB buffers, enough memory",
            Some("optimized"),
            Cause::Limit(Limit::SendBuffer),
            |state| {
                state.buffer = 64 << 10;
            },
        )
        .published("64 KiB buffers")
        .described("ftp_send_3_buffers");
    table
        .add("final", "all changes of the document", Some("buffers-64k"), work("packets"), |state| {
            state.ack_every = 10;
            state.driver_improved = true;
            state.interrupts = Interrupts::paced(PacingMode::FirstNewPacket);
        })
        .published("all changes")
        .described("ftp_send_4_driver");
}

const fn work(part: &'static str) -> Cause {
    Cause::Work(part)
}

/// What only a processor that is the limit shows in the rate: each change alone, from software that is compiled for a debugger
/// still.
fn with_a_busy_processor(table: &mut Table) {
    let from = Some("busy");
    table.add("busy", "64 KiB buffers, but still -Og", Some("no-yield"), Cause::Ground, |state| {
        state.buffer = 64 << 10;
    });
    table
        .add("ack-every-10", "the peer acknowledges every 10 segments", from, work("packets"), |state| {
            state.ack_every = 10;
        })
        .published("ACK every 10 packets");
    table
        .add("driver", "the driver's send path improved", from, work("packets"), |state| {
            state.driver_improved = true;
        })
        .published("driver after optimization");
    table.add("owned-payload", "payload handed over, not copied", from, work("copies"), |state| {
        state.copies = false;
    });
    table.add("checksum-offload", "checksums by the interface", from, work("checksums"), |state| {
        state.offload = true;
    });
}

fn after_the_document(table: &mut Table) {
    let from = Some("offloaded");
    table.add(
        "offloaded",
        "payload handed over, checksums by the interface",
        Some("buffers-64k"),
        work("checksums"),
        |state| {
            state.copies = false;
            state.offload = true;
        },
    );
    paced(table, ["pacing-0", "pacing-1", "pacing-2", "pacing-3"], "offloaded", "interrupts");
    table.add("jumbo", "MTU 9000", from, Cause::Limit(Limit::Interface), |state| {
        state.mtu = 9_000;
    });
    table.add(
        "far",
        "round trip 0.6 ms, the peer's window 64 KiB",
        from,
        Cause::Injects(Limit::ReceiveBuffer),
        |state| {
            state.is_far = true;
            state.buffer = 128 << 10;
        },
    );
    table.add(
        "window-scaling",
        "the same with a window of 1 MiB",
        Some("far"),
        Cause::Limit(Limit::ReceiveBuffer),
        |state| {
            state.peer_window = 1 << 20;
        },
    );
}

/// The four modes of interrupts, each from the one that interrupts for every frame; `saves` is the work that they save most of.
fn paced(table: &mut Table, names: [&'static str; 4], from: &'static str, saves: &'static str) {
    let [none, last, first, newest] = names;
    table.add(none, "interrupts in mode 0, threshold 1", Some(from), Cause::Ground, |state| {
        state.interrupts = Interrupts { mode: PacingMode::None, threshold: 1, ..Interrupts::EACH };
    });
    for (name, title, mode) in [
        (last, "mode 1: 50 us since the last interrupt, or 16", PacingMode::LastInterrupt),
        (first, "mode 2: 50 us since the first new packet, or 16", PacingMode::FirstNewPacket),
        (newest, "mode 3: 50 us since the newest packet, or 16", PacingMode::LastNewPacket),
    ] {
        table.add(name, title, Some(none), work(saves), |state| {
            state.interrupts = Interrupts::paced(mode);
        });
    }
}

fn receiving(table: &mut Table) {
    table.add("rx-copying", "as ported, but payload is copied", None, Cause::Ground, |state| {
        *state = State { write: 0, gives_way: false, ..State::as_ported(Direction::Receiving) };
    });
    table
        .add("rx-as-ported", "as ported: payload handed over", Some("rx-copying"), work("copies"), |state| {
            state.copies = false;
        })
        .published("as ported")
        .described("ftp_receive_1_default");
    table
        .add("rx-optimized", "compiled for speed", Some("rx-as-ported"), Cause::AllWork, |state| {
            state.optimized = true;
        })
        .published("code check and -O3");
    table.add(
        "rx-small-heap",
        "64 KiB buffers, 16 KiB of memory for sockets",
        Some("rx-optimized"),
        Cause::Injects(Limit::Memory),
        |state| {
            state.buffer = 64 << 10;
            state.heap = Some(16 << 10);
        },
    );
    table
        .add(
            "rx-buffers-64k",
            "64 KiB buffers, enough memory",
            Some("rx-small-heap"),
            Cause::Limit(Limit::Memory),
            |state| {
                state.heap = None;
            },
        )
        .published("64 KiB buffers")
        .described("ftp_receive_3_buffers");
    table
        .add("rx-final", "all changes of the document", Some("rx-buffers-64k"), work("packets"), |state| {
            state.driver_improved = true;
            state.interrupts = Interrupts::paced(PacingMode::FirstNewPacket);
        })
        .published("all changes")
        .described("ftp_receive_4_driver");
    table.add("rx-busy", "64 KiB buffers, but still -Og", Some("rx-as-ported"), Cause::Ground, |state| {
        state.buffer = 64 << 10;
    });
    table.add(
        "rx-checksum-offload",
        "checksums by the interface",
        Some("rx-busy"),
        work("checksums"),
        |state| {
            state.offload = true;
        },
    );
    table.add(
        "rx-offloaded",
        "the same, compiled for speed",
        Some("rx-checksum-offload"),
        Cause::AllWork,
        |state| {
            state.optimized = true;
        },
    );
    // What comes together is acknowledged together: fewer interrupts are fewer packets too, which are dearer.
    let modes = ["rx-pacing-0", "rx-pacing-1", "rx-pacing-2", "rx-pacing-3"];
    paced(table, modes, "rx-offloaded", "packets");
    table.add("rx-jumbo", "MTU 9000", Some("rx-offloaded"), Cause::Limit(Limit::Interface), |state| {
        state.mtu = 9_000;
    });
}

/// The rung that another one is changed from.
pub fn before<'a>(rungs: &'a [Rung], rung: &Rung) -> Option<&'a Rung> {
    rungs.iter().find(|other| Some(other.name) == rung.from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rung_has_a_name_of_its_own_and_follows_one_that_is_there() {
        let rungs = all();
        let mut seen = BTreeSet::new();
        for rung in &rungs {
            assert!(rung.from.is_none_or(|from| seen.contains(from)), "{} follows nothing", rung.name);
            assert!(seen.insert(rung.name), "twice: {}", rung.name);
            let changed = before(&rungs, rung).is_none_or(|before| before.state != rung.state);
            assert!(changed, "{} changes nothing", rung.name);
        }
    }
}
