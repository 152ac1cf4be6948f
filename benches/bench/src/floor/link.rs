//! The device below: one `read` or `writev` for each frame, with the virtio-net header that TAP and packet sockets have.

use super::frame::{HEADERS, MSS, Reply, Seen, Us, fold, read, sum};
use super::{Link, Payload, Responder};
use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::io::IoSlice;

/// The longest virtio-net header.
const VNET: usize = 12;
/// Frames that are read before what is due is sent.
const BATCH: usize = 64;
/// Payload of a super-segment: as many full segments as an IPv4 packet holds.
const SUPER: usize = 44 * MSS;

/// A device that frames leave by.
pub struct Device<F> {
    fd: F,
    header_len: usize,
    offload: bool,
    us: Us,
    constant: Vec<u8>,
    /// The sum of the constant's first bytes, for every length of a segment.
    sums: Vec<u64>,
    full: bool,
}

impl<F: AsFd> Device<F> {
    /// Over an open descriptor, whose frames have a virtio-net header of `header_len` bytes. With `offload`, checksums and
    /// segmentation are left to it.
    pub fn new(fd: F, header_len: usize, offload: bool, us: Us) -> Device<F> {
        let constant: Vec<u8> = (0..SUPER).map(|at| (at % 251) as u8).collect();
        let sums = (0..=MSS).map(|len| sum(&constant[..len])).collect();
        Device { fd, header_len, offload, us, constant, sums, full: false }
    }

    /// Answers until the device is gone.
    pub fn serve(&mut self, responder: &mut dyn Responder) -> Result<()> {
        let mut frame = vec![0; VNET + 14 + 65_536];
        loop {
            let mut read_any = false;
            for _ in 0..BATCH {
                match rustix::io::read(&self.fd, &mut frame) {
                    Ok(len) => {
                        read_any = true;
                        self.receive(&frame[self.header_len.min(len)..len], responder)?;
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            self.full = false;
            let more = responder.poll(self);
            if !read_any && (!more || self.full) {
                let room = if self.full { PollFlags::OUT } else { PollFlags::empty() };
                let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
                match poll(&mut [PollFd::new(&self.fd, PollFlags::IN | room)], Some(&pause)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn receive(&mut self, frame: &[u8], responder: &mut dyn Responder) -> Result<()> {
        match read(frame, self.us) {
            Seen::Tcp(segment) => responder.handle(&segment, self),
            Seen::Arp(answer) => {
                let header = [0; VNET];
                let pieces = [IoSlice::new(&header[..self.header_len]), IoSlice::new(&answer)];
                rustix::io::writev(&self.fd, &pieces)?;
            }
            Seen::Other => {}
        }
        Ok(())
    }
}

/// The virtio-net header of a segment whose checksum, and division if it is long, are left to the device.
fn virtio(headers: usize, payload: usize) -> [u8; VNET] {
    let mut out = [0; VNET];
    out[0] = 1;
    if payload > MSS {
        out[1] = 1;
        out[2..4].copy_from_slice(&(headers as u16).to_ne_bytes());
        out[4..6].copy_from_slice(&(MSS as u16).to_ne_bytes());
    }
    out[6..8].copy_from_slice(&34u16.to_ne_bytes());
    out[8..10].copy_from_slice(&16u16.to_ne_bytes());
    out
}

impl<F: AsFd> Link for Device<F> {
    fn send(&mut self, reply: &Reply, payload: Payload<'_>) -> bool {
        let mut head = [0; HEADERS + 8];
        let len = reply.write(self.us, payload.len(), &mut head);
        let (bytes, known) = match payload {
            Payload::Constant(len) => (&self.constant[..len], self.sums.get(len).copied()),
            Payload::Own(bytes) => (bytes, None),
        };
        let header = if self.offload {
            virtio(len, bytes.len())
        } else {
            // The checksum's place has the pseudo-header's sum.
            let whole = sum(&head[34..len]) + known.unwrap_or_else(|| sum(bytes));
            head[50..52].copy_from_slice(&(!fold(whole)).to_be_bytes());
            [0; VNET]
        };
        let pieces =
            [IoSlice::new(&header[..self.header_len]), IoSlice::new(&head[..len]), IoSlice::new(bytes)];
        loop {
            match rustix::io::writev(&self.fd, &pieces) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    self.full = true;
                    return false;
                }
                // Any other refusal is a lost frame.
                Ok(_) | Err(_) => return true,
            }
        }
    }

    fn largest(&self) -> usize {
        if self.offload { SUPER } else { MSS }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::frame::{ACK, tests as samples};
    use super::*;

    /// Keeps what was sent: headers, and the length of the payload.
    #[derive(Default)]
    pub(crate) struct Sent(pub(crate) Vec<(Reply, usize)>);

    impl Link for Sent {
        fn send(&mut self, reply: &Reply, payload: Payload<'_>) -> bool {
            self.0.push((*reply, payload.len()));
            true
        }

        fn largest(&self) -> usize {
            MSS
        }
    }

    #[test]
    fn a_frame_without_offloads_has_a_whole_checksum() {
        let (here, there) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let mut device = Device::new(here, VNET, false, samples::US);
        let peer = samples::PEER;
        let reply = Reply { mac: peer.mac, ip: peer.ip, port: 1, our_port: 2, seq: 3, ack: 4, flags: ACK };
        for payload in [Payload::Constant(1_001), Payload::Own(b"abc")] {
            assert!(device.send(&reply, payload));
            let mut frame = [0; 2_000];
            let len = there.recv(&mut frame).unwrap();
            let frame = &frame[VNET..len];
            let pseudo = sum(&frame[26..34]) + 6 + (frame.len() - 34) as u64;
            assert_eq!(fold(sum(&frame[34..]) + pseudo), 0xffff);
        }
    }

    #[test]
    fn a_super_segment_says_how_it_is_cut() {
        assert_eq!(&virtio(54, 3_000)[..2], [1, 1]);
        assert_eq!(virtio(54, 3_000)[4..6], 1_460u16.to_ne_bytes());
        assert_eq!(&virtio(54, 1_460)[..6], [1, 0, 0, 0, 0, 0]);
    }
}
