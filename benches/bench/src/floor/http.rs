//! Every request gets the same prepared response. No state: what a segment says is enough to answer it.

use super::frame::{ACK, FIN, PSH, RST, Reply, SYN, Segment};
use super::{Link, Payload, Responder};

/// Our first sequence number.
const FIRST: u32 = 1_000;

/// Answers requests.
#[derive(Debug)]
pub struct Http {
    response: Vec<u8>,
    closing: bool,
}

impl Http {
    /// `body` bytes with the status `status`; with `closing`, each connection ends after its response.
    pub fn new(status: u16, body: usize, closing: bool) -> Http {
        let reason = if status == 200 { "OK" } else { "Not Found" };
        let connection = if closing { "Connection: close\r\n" } else { "" };
        let mut response = format!(
            "HTTP/1.1 {status} {reason}\r\nServer: floor\r\nDate: Mon, 02 Nov 2026 10:00:00 GMT\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {body}\r\nAccept-Ranges: bytes\r\n\
             Last-Modified: Mon, 02 Nov 2026 09:00:00 GMT\r\nETag: \"0123456789abcdef\"\r\n{connection}\r\n"
        )
        .into_bytes();
        response.resize(response.len() + body, b'x');
        Http { response, closing }
    }
}

impl Responder for Http {
    fn handle(&mut self, segment: &Segment<'_>, link: &mut dyn Link) {
        let flags = segment.flags;
        if flags & RST != 0 {
            return;
        }
        // A frame that finds no room is lost; the client sends again.
        if flags & SYN != 0 {
            link.send(&Reply { seq: FIRST, ..Reply::to(segment, SYN | ACK) }, Payload::Constant(0));
        } else if segment.payload.ends_with(b"\r\n\r\n") {
            let end = if self.closing { FIN } else { 0 };
            let mut reply = Reply::to(segment, ACK);
            let largest = link.largest();
            for (at, piece) in self.response.chunks(largest).enumerate() {
                if (at + 1) * largest >= self.response.len() {
                    reply.flags = ACK | PSH | end;
                }
                link.send(&reply, Payload::Own(piece));
                reply.seq = reply.seq.wrapping_add(piece.len() as u32);
            }
        } else if flags & FIN != 0 {
            // Where we close, our own end went out with the response.
            let end = if self.closing { 0 } else { FIN };
            link.send(&Reply::to(segment, ACK | end), Payload::Constant(0));
        }
    }

    fn poll(&mut self, _link: &mut dyn Link) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::tests::Sent;
    use super::*;

    fn segment<'a>(seq: u32, ack: u32, flags: u8, payload: &'a [u8]) -> Segment<'a> {
        Segment {
            mac: [2; 6],
            ip: [192, 168, 1, 1],
            port: 4_000,
            our_port: 80,
            seq,
            ack,
            flags,
            window: 500,
            shift: 7,
            payload,
        }
    }

    #[test]
    fn a_closing_exchange() {
        let mut http = Http::new(200, 3_000, true);
        let mut link = Sent::default();
        http.handle(&segment(10, 0, SYN, b""), &mut link);
        http.handle(&segment(11, FIRST + 1, ACK, b""), &mut link);
        http.handle(&segment(11, FIRST + 1, ACK | PSH, b"GET / HTTP/1.1\r\n\r\n"), &mut link);
        http.handle(&segment(29, FIRST + 5_000, ACK | FIN, b""), &mut link);
        let flags: Vec<u8> = link.0.iter().map(|(reply, _)| reply.flags).collect();
        assert_eq!(flags, [SYN | ACK, ACK, ACK, ACK | PSH | FIN, ACK]);
        assert_eq!((link.0[0].0.seq, link.0[0].0.ack), (FIRST, 11));
        assert_eq!((link.0[1].0.seq, link.0[1].0.ack), (FIRST + 1, 29));
        assert_eq!(link.0[2].0.seq, FIRST + 1 + 1_460);
        assert_eq!((link.0[4].0.seq, link.0[4].0.ack), (FIRST + 5_000, 30));
    }

    #[test]
    fn a_kept_connection_ends_when_the_client_ends_it() {
        let mut http = Http::new(404, 100, false);
        let mut link = Sent::default();
        http.handle(&segment(11, 1_001, ACK | PSH, b"GET /none HTTP/1.1\r\n\r\n"), &mut link);
        http.handle(&segment(40, 1_300, ACK | FIN, b""), &mut link);
        http.handle(&segment(40, 1_300, RST, b""), &mut link);
        let flags: Vec<u8> = link.0.iter().map(|(reply, _)| reply.flags).collect();
        assert_eq!(flags, [ACK | PSH, ACK | FIN]);
    }
}
