//! The server's side of iperf3's control connection, for one stream: what the floor and the peers without an iperf3 server
//! of their own speak, so that the client of a row is the same program for all.

use serde_json::json;
use std::time::Instant;

/// Bytes by which a client names its test, first on each of its connections.
pub const COOKIE: usize = 37;

const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Cookie,
    Parameters,
    Streams,
    Running,
    Results,
    Over,
}

/// One test of iperf3.
#[derive(Debug)]
pub struct Control {
    step: Step,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    reverse: bool,
    began: Instant,
    seconds: f64,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            step: Step::Cookie,
            inbox: Vec::new(),
            outbox: Vec::new(),
            reverse: false,
            began: Instant::now(),
            seconds: 0.0,
        }
    }
}

impl Control {
    /// Takes what came on the control connection; `moved` are the bytes of the stream so far.
    pub fn handle(&mut self, bytes: &[u8], moved: u64) {
        self.inbox.extend_from_slice(bytes);
        while self.advance(moved) {}
    }

    /// The stream has said its cookie.
    pub fn stream_opened(&mut self) {
        if self.step == Step::Streams {
            self.outbox.extend_from_slice(&[TEST_START, TEST_RUNNING]);
            self.step = Step::Running;
            self.began = Instant::now();
        }
    }

    /// What is to be sent on the control connection.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outbox)
    }

    /// Whether the server is to send on the stream now.
    pub fn sends(&self) -> bool {
        self.reverse && self.step == Step::Running
    }

    /// Whether the server has sent, and is to end its stream now: a client that receives waits for that.
    pub fn ends(&self) -> bool {
        self.reverse && matches!(self.step, Step::Results | Step::Over)
    }

    fn advance(&mut self, moved: u64) -> bool {
        match self.step {
            Step::Cookie if self.inbox.len() >= COOKIE => {
                self.inbox.drain(..COOKIE);
                self.outbox.push(PARAM_EXCHANGE);
                self.step = Step::Parameters;
                true
            }
            Step::Parameters => {
                let Some(text) = self.message() else { return false };
                let parameters: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
                self.reverse = parameters["reverse"].as_bool().unwrap_or(false);
                self.outbox.push(CREATE_STREAMS);
                self.step = Step::Streams;
                true
            }
            Step::Running if self.inbox.first() == Some(&TEST_END) => {
                self.inbox.remove(0);
                self.seconds = self.began.elapsed().as_secs_f64();
                self.outbox.push(EXCHANGE_RESULTS);
                self.step = Step::Results;
                true
            }
            Step::Results => {
                let Some(_theirs) = self.message() else { return false };
                self.report(moved);
                self.step = Step::Over;
                true
            }
            _ => false,
        }
    }

    /// A text with its length in front, once it is whole.
    fn message(&mut self) -> Option<Vec<u8>> {
        let head: [u8; 4] = self.inbox.get(..4)?.try_into().ok()?;
        let len = u32::from_be_bytes(head) as usize;
        let text = self.inbox.get(4..4 + len)?.to_vec();
        self.inbox.drain(..4 + len);
        Some(text)
    }

    fn report(&mut self, moved: u64) {
        let text = json!({
            "cpu_util_total": 0.0, "cpu_util_user": 0.0, "cpu_util_system": 0.0,
            "sender_has_retransmits": if self.reverse { 0 } else { -1 },
            "streams": [{
                "id": 1, "bytes": moved, "retransmits": -1, "jitter": 0.0, "errors": 0, "packets": 0,
                "start_time": 0.0, "end_time": self.seconds,
            }],
        })
        .to_string();
        self.outbox.extend_from_slice(&(text.len() as u32).to_be_bytes());
        self.outbox.extend_from_slice(text.as_bytes());
        self.outbox.push(DISPLAY_RESULTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_length(text: &str) -> Vec<u8> {
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    #[test]
    fn a_reverse_test_in_pieces() {
        let mut control = Control::default();
        control.handle(&[b'c'; 30], 0);
        assert!(control.take_output().is_empty());
        control.handle(&[b'c'; 7], 0);
        assert_eq!(control.take_output(), [PARAM_EXCHANGE]);
        for byte in with_length(r#"{"tcp":true,"reverse":true}"#) {
            control.handle(&[byte], 0);
        }
        assert_eq!(control.take_output(), [CREATE_STREAMS]);
        assert!(!control.sends());
        control.stream_opened();
        assert_eq!(control.take_output(), [TEST_START, TEST_RUNNING]);
        assert!(control.sends());
        control.handle(&[TEST_END], 5);
        assert!(!control.sends());
        control.handle(&with_length("{}"), 1_234);
        let output = control.take_output();
        assert_eq!((output[0], output[output.len() - 1]), (EXCHANGE_RESULTS, DISPLAY_RESULTS));
        let report: serde_json::Value = serde_json::from_slice(&output[5..output.len() - 1]).unwrap();
        assert_eq!(report["streams"][0]["bytes"], 1_234);
    }

    #[test]
    fn a_forward_test_never_sends() {
        let mut control = Control::default();
        control.handle(&[b'c'; COOKIE], 0);
        control.handle(&with_length(r#"{"tcp":true}"#), 0);
        control.stream_opened();
        assert!(!control.sends());
    }
}
