//! Whatever clients send and do, nothing panics, grows or is left behind.

use super::super::command::VERBS;
use super::*;
use proptest::prelude::*;

/// What a client may do next.
#[derive(Clone, Debug)]
enum Act {
    /// Bytes on the control connection.
    Control(Vec<u8>),
    /// A connection to a passive port, if there is one.
    DataConnect,
    /// The active open is accepted or refused.
    DataAnswer(bool),
    Data(Vec<u8>),
    DataFinish,
    DataReset,
    /// The data connection takes nothing, or takes it again.
    DataStall(bool),
    ControlFinish,
    /// The disk is slow, or no longer.
    Hold(bool),
    /// The disk fails, or no longer.
    Fail(bool),
    Advance(u64),
}

fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("a.txt".into()),
        Just("sub".into()),
        Just("memory/1M".into()),
        Just("memory/null".into()),
        Just("new".into()),
        Just("../x".into()),
        Just("A".into()),
        Just("I".into()),
        Just("anna".into()),
        Just("secret".into()),
        Just("anonymous".into()),
        Just("10,0,0,9,19,137".into()),
        Just("|1|10.0.0.9|5001|".into()),
        Just("7".into()),
        ".{0,12}",
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let command = (0..VERBS.len(), argument())
        .prop_map(|(verb, arg)| Act::Control(format!("{} {arg}\r\n", VERBS[verb].name).into_bytes()));
    let login = Just(Act::Control(b"USER anna\r\nPASS secret\r\nTYPE I\r\n".to_vec()));
    let transfer = prop_oneof![
        Just("EPSV\r\nRETR b.bin\r\n"),
        Just("EPSV\r\nSTOR new\r\n"),
        Just("PORT 10,0,0,9,19,137\r\nRETR a.txt\r\n"),
        Just("EPSV\r\nLIST\r\n"),
        Just("ABOR\r\n"),
    ];
    prop_oneof![
        4 => command,
        2 => login,
        4 => transfer.prop_map(|text| Act::Control(text.as_bytes().to_vec())),
        1 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(Act::Control),
        4 => Just(Act::DataConnect),
        2 => any::<bool>().prop_map(Act::DataAnswer),
        2 => proptest::collection::vec(any::<u8>(), 0..2_000).prop_map(Act::Data),
        2 => Just(Act::DataFinish),
        1 => Just(Act::DataReset),
        1 => any::<bool>().prop_map(Act::DataStall),
        1 => Just(Act::ControlFinish),
        1 => any::<bool>().prop_map(Act::Hold),
        1 => any::<bool>().prop_map(Act::Fail),
        1 => (0u64..100).prop_map(Act::Advance),
    ]
}

/// The port of the last passive reply.
fn passive_port(replies: &str) -> Option<u16> {
    replies.lines().rfind(|line| line.starts_with("229"))?.split('|').nth(3)?.parse().ok()
}

/// What came, without refusals of Telnet options (IAC WONT or DONT and any byte).
fn without_refusals(mut bytes: Vec<u8>) -> Vec<u8> {
    while let Some(at) = bytes.windows(2).position(|pair| pair[0] == 255 && pair[1] >= 252) {
        bytes.drain(at..(at + 3).min(bytes.len()));
    }
    bytes
}

fn step(ftp: &mut Ftp, act: &Act, replies: &mut String, data: &mut Option<ConnId>) {
    match act {
        Act::Control(bytes) => ftp.world.client_send(ftp.control, bytes),
        Act::DataConnect => {
            if let Some(port) = passive_port(replies).filter(|port| ftp.world.net.listens(*port)) {
                *data = Some(ftp.world.connect(at_port(PEER, 5001), port));
            }
        }
        Act::DataAnswer(accept) => {
            if let Some((conn, _)) = ftp.world.net.connecting.last().copied() {
                if *accept {
                    ftp.world.net.client_accept(conn);
                    *data = Some(conn);
                } else {
                    ftp.world.net.client_refuse(conn);
                }
            }
        }
        Act::ControlFinish => ftp.world.net.client_finish(ftp.control),
        Act::Hold(hold) => ftp.world.files.hold = *hold,
        Act::Fail(fail) => ftp.world.files.fail = fail.then_some(linerate_transport::FileError::Io),
        Act::Advance(seconds) => ftp.advance(Duration::from_secs(*seconds)),
        Act::Data(_) | Act::DataFinish | Act::DataReset | Act::DataStall(_) => {
            let Some(conn) = *data else { return };
            match act {
                Act::Data(bytes) => ftp.world.client_send(conn, bytes),
                Act::DataFinish => ftp.world.net.client_finish(conn),
                Act::DataStall(stall) => ftp.world.net.client_stall(conn, *stall),
                _ => ftp.world.net.client_reset(conn),
            }
        }
    }
    ftp.run();
    let bytes = without_refusals(ftp.world.received(ftp.control));
    replies.push_str(&String::from_utf8_lossy(&bytes));
}

impl Ftp {
    /// The client is gone. Who gave a wrong password counts against his address until the answer would have come,
    /// at most 16 s after it.
    #[track_caller]
    fn leave(&mut self) {
        self.world.net.client_reset(self.control);
        self.run();
        assert_eq!(self.server.sessions(), 0);
        self.advance(Duration::from_secs(16));
        self.assert_released();
    }
}

#[test]
fn a_guesser_who_leaves_is_forgotten() {
    let mut ftp = Ftp::new();
    let (mut replies, mut data) = (String::new(), None);
    step(&mut ftp, &Act::Control(b"USER anna\r\nPASS wrong\r\n".to_vec()), &mut replies, &mut data);
    ftp.world.net.client_reset(ftp.control);
    ftp.run();
    assert!(ftp.server.poll_timeout().is_some(), "the address counts until the answer was due");
    ftp.leave();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn nothing_that_a_client_does_breaks_the_server(
        acts in proptest::collection::vec(act(), 1..40),
        parcels: bool,
    ) {
        let mut ftp = Ftp::new();
        ftp.world.net.parcels = parcels.then_some(0);
        let (mut replies, mut data) = (String::new(), None);
        for act in &acts {
            step(&mut ftp, act, &mut replies, &mut data);
            prop_assert!(ftp.server.held_len() < 30_000);
            prop_assert!(ftp.server.sessions() <= 1);
        }
        for line in replies.lines() {
            prop_assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
        }
        ftp.world.files.hold = false;
        ftp.leave();
    }

    #[test]
    fn random_bytes_are_answered_or_refused(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..30)
    ) {
        let mut ftp = Ftp::anna();
        for piece in &pieces {
            ftp.world.client_send(ftp.control, piece);
            ftp.run();
            prop_assert!(ftp.server.held_len() < 30_000);
        }
        ftp.leave();
    }
}
