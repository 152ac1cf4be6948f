//! What can be seen of client, server and kernel while a level runs.

use super::level::{Cpu, Network, Seen};
use crate::load::Tally;
use crate::measure::counters::Tcp;
use crate::measure::{cpu, listener};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Where it is looked.
#[derive(Clone, PartialEq, Debug)]
pub struct Watch {
    server: Option<u32>,
    link_bps: Option<f64>,
}

/// Counters before a level.
#[derive(Debug)]
pub struct Before {
    server: Option<f64>,
    threads: BTreeMap<u32, f64>,
    interrupts: f64,
    busy: f64,
    stolen: f64,
    own: Option<Tcp>,
    servers: Option<Tcp>,
}

impl Watch {
    /// Looks for the server at an address, unless its process is given. One within this very process is not seen.
    pub fn new(address: SocketAddr, pid: Option<u32>) -> Watch {
        let server = pid.or_else(|| listener::of(address)).filter(|pid| *pid != std::process::id());
        let link_bps = listener::device(address.ip()).and_then(|device| listener::link_bps(&device));
        Watch { server, link_bps }
    }

    /// The server's process, where it is seen.
    pub fn server(&self) -> Option<u32> {
        self.server
    }

    /// Takes the counters.
    pub fn before(&self) -> Before {
        let (busy, stolen) = sum(&cpu::cores());
        Before {
            server: self.server.map(cpu::of_tree),
            threads: self.server.map(cpu::threads_of_tree).unwrap_or_default(),
            interrupts: cpu::interrupts(),
            busy,
            stolen,
            own: Tcp::now(None),
            servers: self.server.and_then(|pid| Tcp::now(Some(pid))),
        }
    }

    /// What has been seen since.
    pub fn since(&self, before: &Before, tally: &Tally) -> Seen {
        let seconds = tally.elapsed.as_secs_f64().max(1e-3);
        let (busy, stolen) = sum(&cpu::cores());
        let client: Vec<f64> = tally.thread_cpu.iter().map(|time| time.as_secs_f64() / seconds).collect();
        // A server that has ended leaves no figure.
        let server = self.server.filter(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists());
        let threads = server.map(cpu::threads_of_tree).unwrap_or_default();
        let busiest = threads.iter().map(|(thread, now)| now - before.threads.get(thread).unwrap_or(&0.0));
        let tcp = Tcp::now(None).zip(before.own).map(|(now, before)| now.since(before)).unwrap_or_default();
        let servers = server.and_then(|pid| Tcp::now(Some(pid)));
        Seen {
            cpu: Cpu {
                client: client.iter().sum(),
                client_thread: client.iter().copied().fold(0.0, f64::max),
                server: server
                    .map(cpu::of_tree)
                    .zip(before.server)
                    .map(|(now, before)| (now - before).max(0.0) / seconds),
                server_thread: server.map(|_| busiest.fold(0.0, f64::max) / seconds),
                interrupts: (cpu::interrupts() - before.interrupts) / seconds,
                busy: (busy - before.busy) / seconds,
                stolen: (stolen - before.stolen) / seconds,
                cores: crate::measure::machine::cores() as f64,
            },
            network: Network {
                sent: tcp.sent,
                retransmitted: tcp.retransmitted,
                syn_retransmitted: tcp.syn_retransmitted,
                listen_drops: servers.zip(before.servers).map(|(now, before)| now.since(before).listen_drops),
                link_bps: self.link_bps,
            },
        }
    }
}

fn sum(cores: &[(f64, f64)]) -> (f64, f64) {
    cores.iter().fold((0.0, 0.0), |(busy, stolen), core| (busy + core.0, stolen + core.1))
}
