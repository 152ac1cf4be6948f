//! The board at the end of a TAP. It runs as fast as it can; its time has nothing to do with ours.

use linerate_linux::RxPools;
use linerate_linux::tap::{TapOptions, TapQueue};
use linerate_nic::{Bytes, Capabilities, Chunk, QueuePair as _, RxBatch, TxMeta, TxQueue};
use linerate_rtl_sim::softcore::{CLOCK_NS, Softcore};
use linerate_wire::units::Instant;
use std::io::{Read as _, Write as _};
use std::sync::mpsc;

/// Clocks between two looks at the cable and the keys.
const LOOK: u32 = 2_000;
/// Frames between cable and board at once.
const BATCH: usize = 64;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Runs until standard input ends.
pub fn run(mut core: Softcore, name: &str) -> Result<(), String> {
    let options = TapOptions { name: name.to_owned(), mtu: None, mac: None, frames: BATCH, queues: 1 };
    let queue = TapQueue::open_all(&options).map_err(|error| error.to_string())?.pop().ok_or("no queue")?;
    let mut tap =
        queue.into_device(Capabilities::NONE, RxPools::new(2, 1_024)).map_err(|error| error.to_string())?;
    let keys = keys();
    let (mut incoming, mut outgoing) = (RxBatch::with_limit(BATCH), TxQueue::with_capacity(BATCH));
    loop {
        (0..LOOK).for_each(|_| core.clock());
        match keys.try_recv() {
            Ok(text) => core.type_text(&text),
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => return Ok(()),
        }
        let said = core.console();
        if !said.is_empty() {
            let mut out = std::io::stdout();
            out.write_all(&said).and_then(|()| out.flush()).map_err(|error| error.to_string())?;
        }
        let now = Instant::from_nanos(core.clocks() * CLOCK_NS);
        if core.on_the_way() < BATCH {
            tap.receive(now, &mut incoming).map_err(|error| error.to_string())?;
        }
        while let Some(frame) = incoming.pop() {
            let mut bytes = frame.data.bytes().to_vec();
            frame.more.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
            core.send(bytes);
        }
        while outgoing.room() > 0
            && let Some(frame) = core.receive()
        {
            if let Some(packet) = outgoing.vacant() {
                let head = frame.len().min(ETHERNET);
                packet.header_mut(head).copy_from_slice(&frame[..head]);
                let rest = Chunk::Shared(Bytes::from(frame).slice(head..));
                packet.push_chunk(rest).map_err(|_| "a packet that is vacant has room")?;
                packet.meta = TxMeta { header_len: head as u16, ..TxMeta::default() };
                outgoing.commit();
            }
        }
        tap.transmit(now, &mut outgoing).map_err(|error| error.to_string())?;
        while tap.poll_completion().is_some() {}
    }
}

/// What is typed, by a thread that waits for it.
fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 256];
        while let Ok(count @ 1..) = std::io::stdin().read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}
