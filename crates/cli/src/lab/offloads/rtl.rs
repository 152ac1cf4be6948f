//! Two of our stacks on two interfaces in simulation, clock by clock, with a cable between them.

use linerate_lab::offloads::hardware::Cycles;
use linerate_lab::offloads::plan::{Direction, Protocol, Setting};
use linerate_nic::mcdma::{Control, Queue, Settings};
use linerate_nic::{Capabilities, Joined, MacAddr, Pool, Port, PortConfig};
use linerate_rtl_sim::Timing;
use linerate_rtl_sim::nic::{Board, CLOCK_PS, Simulation, open};
use linerate_stack::{Cidr, Node, NodeConfig, StackConfig, memory::StackPools};
use linerate_transport::{
    BufferSize, ConnId, Engine as _, ListenAddr, ListenOptions, ListenerId, Owner, Payload, SocketOptions,
    Transport as _, UdpId,
};
use linerate_wire::units::Instant;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const OWNER: Owner = Owner(1);
const PORT: u16 = 5_301;
/// Bytes of payload of a datagram.
const DATAGRAM: usize = linerate_lab::offloads::plan::DATAGRAM;
/// Clocks between two turns of the software: less than a frame of full length takes.
const TURN_CLOCKS: u64 = 150;
/// Descriptors of each ring, and buffers beyond those in the receive ring.
const RING: usize = 128;
const SPARE: usize = 512;
/// Bytes of a buffer, and of the cache lines that it is aligned to.
const BUFFER: usize = 2_048;
const LINE: usize = 64;
/// Clocks from an address to its data: what a memory controller takes.
const LATENCY: u64 = 20;
/// Clocks after which a transfer that has not ended never will, for each byte of it.
const PATIENCE: u64 = 64;
/// A pattern to send.
static PATTERN: [u8; 1 << 16] = [0x5a; 1 << 16];

type Hardware = Joined<Control<Board>, Queue<Board>>;

/// A stack on an interface.
struct Host {
    node: Node<Hardware>,
    board: Board,
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    socket: Option<UdpId>,
    received: u64,
    queued: u64,
}

/// Why there are no figures.
fn failed(what: impl std::fmt::Display) -> String {
    format!("the simulated interface: {what}")
}

impl Host {
    fn new(last: u8, allowed: Capabilities) -> Result<Host, String> {
        let board = Board::new(Simulation::new(Timing::steady(LATENCY), u64::from(last)).map_err(failed)?);
        let settings = Settings {
            transmit_ring: RING,
            receive_ring: RING,
            ..Settings::new(MacAddr([2, 0, 0, 0, 0, last]))
        };
        let pool = |count: usize| {
            // For the life of the process, as a DMA region is.
            let memory = vec![0; count * BUFFER + LINE].leak();
            Pool::over(memory, BUFFER, LINE).unwrap_or_else(|_| Pool::new(0, BUFFER))
        };
        let device = open(&board, &settings, pool(RING + SPARE), pool(RING)).map_err(failed)?;
        let mut port = Port::new(device, PortConfig::default()).map_err(failed)?;
        port.set_offloads(allowed).map_err(failed)?;
        let address = Cidr::new(ip(last), 24);
        let config = StackConfig {
            addresses: address.into_iter().collect(),
            dad_transmits: 0,
            ..StackConfig::default()
        };
        let pools = StackPools::for_memory(config.memory).with_receive(Pool::new(RING + SPARE, BUFFER));
        let node = Node::new(port, config, [last; 32], pools, NodeConfig::default());
        let (listener, conn, socket, received, queued) = (None, None, None, 0, 0);
        Ok(Host { node, board, listener, conn, socket, received, queued })
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.board.hardware().cycles() * CLOCK_PS / 1_000)
    }

    /// One turn of the software; `to_send` is what it still has to send, to this address.
    fn turn(&mut self, to: SocketAddr, to_send: u64) -> Result<(), String> {
        let now = self.now();
        self.node.input(now).map_err(failed)?;
        let stack = &mut self.node.stack;
        while stack.poll_event().is_some() {}
        if let (Some(listener), None) = (self.listener, self.conn) {
            self.conn = stack.accept(listener);
        }
        if let Some(conn) = self.conn {
            let readable = stack.readable(conn);
            stack.consume(conn, readable);
            self.received += readable as u64;
            while self.queued < to_send && stack.sendable(conn) > 0 {
                let len = (to_send - self.queued).min(PATTERN.len() as u64) as usize;
                if stack.send(conn, Payload::Static(&PATTERN[..len])).is_err() {
                    break;
                }
                self.queued += len as u64;
            }
        }
        if let Some(socket) = self.socket {
            while let Some(datagram) = stack.udp_peek(socket) {
                self.received += datagram.data.len() as u64;
                stack.udp_consume(socket);
            }
            while self.queued < to_send {
                if stack.udp_send(socket, None, to, &PATTERN[..DATAGRAM]).is_err() {
                    break;
                }
                self.queued += DATAGRAM as u64;
            }
        }
        self.node.output(now).map_err(failed)?;
        Ok(())
    }

    /// Frames handed to the driver or taken from it, and those that software summed or checked.
    fn work(&self) -> (u64, u64) {
        let stats = self.node.port.stats();
        let sums = stats.tx.software_checksums + stats.rx.software_good + stats.rx.software_bad;
        (stats.tx.packets + stats.rx.frames, sums)
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

/// What the interface is let do with a setting.
fn allowed(setting: Setting) -> Result<Capabilities, String> {
    let offload: crate::values::Offload = setting.offload().parse().map_err(failed)?;
    Ok(offload.0)
}

/// One transfer of about `len` bytes.
pub fn transfer(
    protocol: Protocol,
    direction: Direction,
    setting: Setting,
    len: u64,
) -> Result<Cycles, String> {
    // The first has the setting; the other one all that the interface can do, so that it is not the limit.
    let mut hosts = [Host::new(1, allowed(setting)?)?, Host::new(2, Capabilities::ALL)?];
    let (from, to) = if direction == Direction::Tx { (0, 1) } else { (1, 0) };
    let target = SocketAddr::new(ip(to as u8 + 1), PORT);
    prepare(&mut hosts, protocol, (from, to), target)?;
    // Neighbours are found, and the handshake made, before the clock counts.
    run(&mut hosts, (from, to), target, DATAGRAM as u64, len)?;
    let began = hosts[0].board.hardware().cycles();
    let traffic = hosts[0].board.hardware().traffic();
    let (frames, sums) = hosts[0].work();
    let before = hosts[to].received;
    run(&mut hosts, (from, to), target, before + len, len)?;
    let hardware = hosts[0].board.hardware();
    let moved: Vec<u64> = hardware.traffic().iter().zip(traffic).map(|(now, then)| now - then).collect();
    let (frames_now, sums_now) = hosts[0].work();
    Ok(Cycles {
        protocol,
        direction,
        setting,
        bytes: hosts[to].received - before,
        clocks: hardware.cycles() - began,
        clock_ps: CLOCK_PS,
        frames: frames_now - frames,
        software_sums: sums_now - sums,
        data_beats: moved[0] + moved[1],
        descriptor_beats: moved[2] + moved[3],
    })
}

fn prepare(
    hosts: &mut [Host; 2],
    protocol: Protocol,
    (from, to): (usize, usize),
    target: SocketAddr,
) -> Result<(), String> {
    let any = |port| ListenAddr { ip: None, port };
    if protocol == Protocol::Udp {
        for (host, port) in [(from, 0), (to, PORT)] {
            let socket = hosts[host].node.stack.udp_bind(OWNER, any(port), 1 << 20).map_err(failed)?;
            hosts[host].socket = Some(socket);
        }
        return Ok(());
    }
    let buffer = BufferSize::Fixed(1 << 18);
    let socket = SocketOptions { send_buffer: buffer, receive_buffer: buffer, ..SocketOptions::default() };
    let options = ListenOptions { socket: socket.clone(), ..ListenOptions::default() };
    hosts[to].listener = Some(hosts[to].node.stack.listen(OWNER, any(PORT), &options).map_err(failed)?);
    let conn = hosts[from].node.stack.connect(OWNER, None, target, &socket);
    hosts[from].conn = Some(conn.map_err(|why| failed(format!("{why:?}")))?);
    Ok(())
}

/// Clocks both until so much has been received.
fn run(
    hosts: &mut [Host; 2],
    (from, to): (usize, usize),
    target: SocketAddr,
    wanted: u64,
    len: u64,
) -> Result<(), String> {
    let until = hosts[0].board.hardware().cycles() + 200_000 + len * PATIENCE;
    while hosts[to].received < wanted {
        if hosts[0].board.hardware().cycles() > until {
            return Err(failed(format!("{} of {wanted} bytes came", hosts[to].received)));
        }
        for _ in 0..TURN_CLOCKS {
            for index in 0..2 {
                hosts[index].board.hardware_mut().clock();
                let sent = hosts[index].board.hardware_mut().sent();
                if let Some(frame) = sent {
                    hosts[1 - index].board.hardware_mut().receive(frame, false);
                }
            }
        }
        hosts[from].turn(target, wanted)?;
        hosts[to].turn(target, 0)?;
    }
    for host in hosts {
        host.board.hardware().check().map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_takes_work_from_the_software() {
        if !linerate_rtl_sim::is_available() {
            eprintln!("skipped: {}", linerate_rtl_sim::Unavailable::NoVerilator);
            return;
        }
        let of = |direction, setting| transfer(Protocol::Tcp, direction, setting, 100_000).unwrap();
        let (off, sums) = (of(Direction::Tx, Setting::Off), of(Direction::Tx, Setting::Checksum));
        assert!(off.software_sums > 60 && sums.software_sums == 0, "{off:?} {sums:?}");
        let cut = of(Direction::Tx, Setting::Segmentation);
        assert!(cut.frames < off.frames, "{cut:?} {off:?}");
        let joined = of(Direction::Rx, Setting::Coalescing);
        assert!(joined.frames < of(Direction::Rx, Setting::Off).frames, "{joined:?}");
    }
}
