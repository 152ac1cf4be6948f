//! An iperf3 client with one stream: what passes in a while, once it is under way.

use super::client::Client;
use super::measured::Measured;
use linerate_rtl_sim::softcore::CLOCK_NS;
use linerate_transport::{ConnId, ConnState, Transport as _};

const PORT: u16 = 5_201;
const COOKIE: &[u8] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";
/// Clocks that are not counted at the beginning, and that are: 100 ms each. Slow start is over after some tens of milliseconds, and
/// a turn of the board's loop may take eight.
const BEFORE: u64 = 10_000_000;
const COUNTED: u64 = 10_000_000;
/// Clocks within which something has to come.
const PATIENCE: u64 = 100_000_000;
/// States of the protocol, as the server tells them.
const PARAMETERS: u8 = 9;
const STREAMS: u8 = 10;
const START: u8 = 1;
const RUNNING: u8 = 2;

/// Bytes that have passed.
fn pump(client: &mut Client, stream: ConnId, reverse: bool) -> Result<u64, String> {
    const DATA: [u8; 16_384] = [7; 16_384];
    let stack = &mut client.node.stack;
    let mut moved = 0;
    while !reverse && stack.write(stream, &DATA).is_ok() {
        moved += DATA.len() as u64;
    }
    while reverse && stack.readable(stream) > 0 {
        let len = stack.peek(stream).len();
        stack.consume(stream, len);
        moved += len as u64;
    }
    if matches!(stack.state(stream), ConnState::Closed(_)) {
        return Err("the board closed the stream".to_owned());
    }
    Ok(moved)
}

/// Waits until a connection is open, and sends the cookie.
fn greet(client: &mut Client, conn: ConnId) -> Result<(), String> {
    let limit = client.core.clocks() + PATIENCE;
    while client.core.clocks() < limit {
        client.turn(Some(limit))?;
        if matches!(client.node.stack.state(conn), ConnState::Open { .. }) {
            return client.node.stack.write(conn, COOKIE).map_err(|error| format!("{error:?}"));
        }
    }
    Err("no connection".to_owned())
}

/// The next state that the server tells.
fn state(client: &mut Client, control: ConnId) -> Result<u8, String> {
    let limit = client.core.clocks() + PATIENCE;
    while client.core.clocks() < limit {
        if let Some(state) = client.node.stack.peek(control).first().copied() {
            client.node.stack.consume(control, 1);
            return Ok(state);
        }
        client.turn(Some(limit))?;
    }
    Err("the server says nothing".to_owned())
}

/// Bytes that the board has acknowledged: what was queued may wait in our send buffer, which grows.
fn acknowledged(client: &Client, stream: ConnId) -> u64 {
    client.node.stack.info(stream).map_or(0, |info| info.bytes_acked)
}

/// Megabits per second of payload that the board receives, or sends with `reverse`.
pub fn run(client: &mut Client, reverse: bool) -> Result<Measured, String> {
    let control = client.connect(PORT)?;
    greet(client, control)?;
    let mut stream = None;
    loop {
        match state(client, control)? {
            PARAMETERS => {
                let text = format!(
                    r#"{{"tcp":true,"omit":0,"time":10,"parallel":1,"reverse":{reverse},"len":131072}}"#
                );
                let message = [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
                client.node.stack.write(control, &message).map_err(|error| format!("{error:?}"))?;
            }
            STREAMS => {
                let conn = client.connect(PORT)?;
                greet(client, conn)?;
                stream = Some(conn);
            }
            START => {}
            RUNNING => break,
            other => return Err(format!("the server says {}", other.cast_signed())),
        }
    }
    let stream = stream.ok_or("no stream")?;
    let first = client.core.clocks() + BEFORE;
    while client.core.clocks() < first {
        pump(client, stream, reverse)?;
        client.turn(Some(first))?;
    }
    let (began, before, nic) = (client.core.clocks(), client.core.counters(), client.core.nic_clocks());
    let mut moved = 0;
    let acknowledged_before = acknowledged(client, stream);
    client.frames = (0, 0);
    client.core.start_profile();
    while client.core.clocks() < began + COUNTED {
        moved += pump(client, stream, reverse)?;
        client.turn(Some(began + COUNTED))?;
    }
    if !reverse {
        moved = acknowledged(client, stream) - acknowledged_before;
    }
    let clocks = client.core.clocks() - began;
    let [executed, fetched, loaded, stored] = {
        let after = client.core.counters();
        std::array::from_fn(|at| after[at] - before[at])
    };
    let megabits = moved as f64 * 8.0 * 1_000.0 / (clocks * CLOCK_NS) as f64;
    let sent = &client.node.stack.counters();
    let segments = moved as f64 / 1_460.0;
    let figure = format!(
        "{megabits:.1} Mb/s ({moved} bytes in {clocks} clocks; of each segment {:.0} clocks, {:.0} instructions, {:.1} lines of instructions, \
         {:.1} of data, {:.0} stores; interface clocked {:.0} %; {:.2} frames in and {:.2} out; client: {} segments sent again)",
        clocks as f64 / segments,
        executed as f64 / segments,
        fetched as f64 / segments,
        loaded as f64 / segments,
        stored as f64 / segments,
        100.0 * (client.core.nic_clocks() - nic) as f64 / clocks as f64,
        client.frames.0 as f64 / segments,
        client.frames.1 as f64 / segments,
        sent.tcp_retransmits,
    );
    Ok(Measured { figure, units: segments, profile: client.core.take_profile() })
}
