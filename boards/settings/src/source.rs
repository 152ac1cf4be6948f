//! The Rust that is written.

use crate::files::File;
use crate::{Board, Interrupts, cidr, ethernet, hash};
use anyhow::Result;
use std::fmt::Write;
use std::net::IpAddr;

/// The source text of `SETTINGS`, `FILES` and `BUILT_NS`.
pub(crate) fn of(board: &Board, files: &[File], built_ns: i64) -> Result<String> {
    let (network, servers, memory) = (&board.network, &board.servers, &board.memory);
    let addresses: Vec<_> = network.addresses.iter().map(|text| cidr(text)).collect::<Result<_>>()?;
    let addresses: Vec<_> =
        addresses.iter().map(|(address, len)| format!("({}, {len})", literal(*address))).collect();
    let gateways: Vec<_> = network.gateways.iter().map(|address| literal(*address)).collect();
    let users: Vec<_> = servers
        .ftp_users
        .iter()
        .map(|user| Ok(format!("({:?}, {:?})", user.name, hash(user)?)))
        .collect::<Result<_>>()?;
    let mut out = String::from("// Made from board.toml when the image is built.\n");
    writeln!(out, "pub const SETTINGS: linerate_firmware::Settings = linerate_firmware::Settings {{")?;
    writeln!(out, "    name: {:?},", board.name)?;
    writeln!(out, "    cores: {},", board.cores)?;
    writeln!(out, "    mac: {:?},", ethernet(&network.ethernet)?)?;
    writeln!(out, "    addresses: &[{}],", addresses.join(", "))?;
    writeln!(out, "    gateways: &[{}],", gateways.join(", "))?;
    writeln!(out, "    ipv6: {},", network.ipv6)?;
    writeln!(out, "    offloads: {},", network.offloads)?;
    writeln!(out, "    interrupts: {},", interrupts(&board.interrupts))?;
    writeln!(out, "    watchdog: {},", board.watchdog.seconds)?;
    writeln!(out, "    http: &{:?},", servers.http)?;
    writeln!(out, "    iperf3: &{:?},", servers.iperf3)?;
    writeln!(out, "    iperf3_by_core: {:?},", servers.iperf3_by_core)?;
    writeln!(out, "    ftp: &{:?},", servers.ftp)?;
    writeln!(out, "    ftp_users: &[{}],", users.join(", "))?;
    writeln!(out, "    ftp_anonymous: {},", servers.ftp_anonymous)?;
    writeln!(out, "    connections: {},", memory.connections)?;
    writeln!(out, "    socket_memory: {},", memory.sockets)?;
    writeln!(out, "    send_buffer: {},", memory.send_buffer)?;
    writeln!(out, "    receive_buffer: {},", memory.receive_buffer)?;
    writeln!(out, "    receive_buffers: {},", memory.receive_buffers)?;
    writeln!(out, "    ram_disk: {},", memory.ram_disk)?;
    writeln!(out, "    trace: {},", memory.trace)?;
    writeln!(out, "    capture: {},", memory.capture)?;
    writeln!(out, "}};")?;
    writeln!(out, "pub static FILES: &[linerate_firmware::disk::FlashFile] = &[")?;
    for file in files {
        let (path, source) = (&file.path, file.source.display().to_string());
        writeln!(
            out,
            "    linerate_firmware::disk::FlashFile {{ path: {path:?}, bytes: include_bytes!({source:?}) }},"
        )?;
    }
    writeln!(out, "];")?;
    writeln!(out, "pub const BUILT_NS: i64 = {built_ns};")?;
    Ok(out)
}

/// The timer in eighths, which is what an adaptive one changes by.
fn interrupts(settings: &Interrupts) -> String {
    let Interrupts { mode, timer_us, threshold, adaptive, reserve } = settings;
    let (ticks, tick_ns) = if *timer_us == 0 { (0, 1_000) } else { (8, timer_us * 125) };
    format!(
        "linerate_firmware::Interrupts {{ pacing: linerate_firmware::PacingConfig {{ \
         mode: linerate_firmware::PacingMode::{mode:?}, timer_ticks: {ticks}, tick_ns: {tick_ns}, threshold: {threshold} }}, \
         adaptive: {adaptive}, reserve: {reserve} }}"
    )
}

/// An address as Rust writes it.
fn literal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("core::net::IpAddr::V4(core::net::Ipv4Addr::new({a}, {b}, {c}, {d}))")
        }
        IpAddr::V6(ip) => {
            format!("core::net::IpAddr::V6(core::net::Ipv6Addr::from_bits({:#x}))", ip.to_bits())
        }
    }
}
