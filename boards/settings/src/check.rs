//! What is read and cannot work.

use crate::{
    Board, Interrupts, Limits, MOST_CORES, MOST_RING, MOST_TIMER_US, Memory, Mode, Network, RING, Servers,
};
use crate::{WATCHDOG, cidr};
use anyhow::{Result, bail, ensure};
use std::net::IpAddr;

/// Everything that stands in one `board.toml`.
pub(crate) fn board(board: &Board, limits: &Limits) -> Result<()> {
    let cores = board.cores;
    ensure!((1..=MOST_CORES).contains(&cores), "cores: {cores} given, 1 to {MOST_CORES} expected");
    network(&board.network)?;
    servers(&board.servers, cores)?;
    interrupts(&board.interrupts, limits)?;
    let seconds = board.watchdog.seconds;
    ensure!(
        seconds == 0 || WATCHDOG.contains(&seconds),
        "watchdog.seconds: {seconds} given, 0 for none, or {} to {} expected",
        WATCHDOG.start(),
        WATCHDOG.end()
    );
    memory(&board.memory)?;
    heap(&board.memory, cores, limits)
}

fn network(network: &Network) -> Result<()> {
    let addresses: Vec<_> = network.addresses.iter().map(|text| cidr(text)).collect::<Result<_>>()?;
    for (address, len) in &addresses {
        let IpAddr::V4(ip) = address else { continue };
        // A subnet of two addresses or of one has no others (RFC 3021).
        let Some(hosts) = u32::MAX.checked_shr((*len).into()).filter(|hosts| *hosts > 1) else { continue };
        let what = match ip.to_bits() & hosts {
            0 => "the network's own",
            bits if bits == hosts => "the broadcast",
            _ => continue,
        };
        bail!("network.addresses: {address}/{len} is {what} address of that subnet, a host's expected");
    }
    for gateway in &network.gateways {
        let mut family = addresses.iter().filter(|(ip, _)| ip.is_ipv4() == gateway.is_ipv4()).peekable();
        // Where there is none, a server or a router tells the subnet; and every link has the addresses of the link.
        let is_known = family.peek().is_some();
        let is_of_link = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        ensure!(
            !is_known || is_of_link || family.any(|(ip, len)| is_in_subnet(*gateway, *ip, *len)),
            "network.gateways: {gateway} is in no subnet of network.addresses ({})",
            network.addresses.join(", ")
        );
    }
    Ok(())
}

/// Whether two addresses of a family have the same first bits.
fn is_in_subnet(one: IpAddr, other: IpAddr, len: u8) -> bool {
    let differ = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()) << 96,
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
        _ => return false,
    };
    differ.leading_zeros() >= len.into()
}

fn servers(servers: &Servers, cores: usize) -> Result<()> {
    let all = [("http", &servers.http), ("iperf3", &servers.iperf3), ("ftp", &servers.ftp)];
    let mut taken: Vec<(u16, &str)> = Vec::new();
    for (name, ports) in all {
        ensure!(!ports.contains(&0), "servers.{name}: port 0 given, 1 to 65535 expected");
    }
    for (name, port) in all.iter().flat_map(|(name, ports)| ports.iter().map(move |port| (*name, *port))) {
        if let Some((_, other)) = taken.iter().find(|(other, _)| *other == port) {
            bail!(
                "servers.{name}: {port} given, which servers.{other} has already, a port of its own expected"
            );
        }
        taken.push((port, name));
    }
    if let Some(port) = servers.iperf3_by_core {
        let most = u16::MAX - (cores as u16 - 1);
        ensure!(
            (1..=most).contains(&port),
            "servers.iperf3_by_core: {port} given, 1 to {most} expected, as there is one more for each core"
        );
        let ports = port..=port + (cores as u16 - 1);
        ensure!(
            !taken.iter().any(|(other, _)| ports.contains(other)),
            "servers.iperf3_by_core: {port}, and one more for each core, are to be ports of their own"
        );
    }
    ensure!(servers.ftp_users.len() <= 8, "servers.ftp_users: 8 at most");
    Ok(())
}

fn interrupts(settings: &Interrupts, limits: &Limits) -> Result<()> {
    let Interrupts { mode, timer_us, threshold, reserve, .. } = *settings;
    ensure!(
        timer_us <= MOST_TIMER_US,
        "interrupts.timer_us: {timer_us} given, 0 to {MOST_TIMER_US} expected"
    );
    ensure!(
        (1..=limits.frames).contains(&threshold),
        "interrupts.threshold: {threshold} given, 1 to {} expected",
        limits.frames
    );
    ensure!(
        mode != Mode::None || threshold == 1,
        "interrupts.mode: \"none\" with interrupts.threshold {threshold} given, 1 expected: no timer ends the wait of fewer frames"
    );
    ensure!(reserve <= 90, "interrupts.reserve: {reserve} given, 0 to 90 expected");
    Ok(())
}

fn memory(memory: &Memory) -> Result<()> {
    ensure!((1..=4_096).contains(&memory.connections), "memory.connections: 1 to 4,096 expected");
    ensure!(memory.sockets >= 16 << 10, "memory.sockets: {} bytes, 16 KiB at least expected", memory.sockets);
    let half = memory.sockets / 2;
    for (name, buffer) in [("send_buffer", memory.send_buffer), ("receive_buffer", memory.receive_buffer)] {
        ensure!(
            (2_048..=half).contains(&buffer),
            "memory.{name}: {buffer} bytes, 2,048 to half of memory.sockets ({half}) expected"
        );
    }
    ensure!(
        (8..=4_096).contains(&memory.receive_buffers),
        "memory.receive_buffers: {} given, 8 to 4,096 expected",
        memory.receive_buffers
    );
    for (name, ring) in [("trace", memory.trace), ("capture", memory.capture)] {
        ensure!(
            ring == 0 || (RING..=MOST_RING).contains(&ring),
            "memory.{name}: {ring} bytes, 0 or 4 KiB to 64 MiB expected"
        );
    }
    Ok(())
}

/// What is taken from the heap at the start, whatever comes; stacks and tables are not counted.
fn heap(memory: &Memory, cores: usize, limits: &Limits) -> Result<()> {
    let Memory { ram_disk, sockets, trace, capture, receive_buffers: count, .. } = memory;
    let heap = limits.heap;
    let received = cores * count * limits.receive_buffer;
    ensure!(
        received < heap,
        "memory.receive_buffers: {count} given, which are {received} bytes, as much as this image's heap (HEAP, {heap} bytes) or more"
    );
    // The pages of sockets are half of what they may hold.
    let others = (sockets / 2).saturating_add(*trace).saturating_add(*capture).saturating_add(received);
    ensure!(
        others < heap,
        "memory.sockets: {sockets} bytes, of which half, memory.trace ({trace}), memory.capture ({capture}) and memory.receive_buffers \
         ({count}, {received} bytes) do not fit this image's heap (HEAP, {heap} bytes)"
    );
    let left = heap - others;
    ensure!(
        *ram_disk < left,
        "memory.ram_disk: {ram_disk} bytes, less than {left} expected, which half of memory.sockets ({sockets}), memory.trace ({trace}), \
         memory.capture ({capture}) and memory.receive_buffers ({count}, {received} bytes) leave of this image's heap (HEAP, {heap} bytes)"
    );
    Ok(())
}
