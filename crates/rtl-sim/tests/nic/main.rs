//! The driver, the port and the stack on the interface's RTL.

mod transfer;

use linerate_nic::mcdma::{Control, Queue, Settings, self_test};
use linerate_nic::{Capabilities, Device as _, Joined, MacAddr, Pool, QueuePair as _, RxBatch};
use linerate_rtl_sim::Timing;
use linerate_rtl_sim::nic::{Board, CLOCK_PS, Simulation, open};
use linerate_wire::units::Instant;

type Device = Joined<Control<Board>, Queue<Board>>;

/// Hardware and its driver, or `None`, said aloud, where there is no Verilator.
fn device(last: u8, timing: Timing) -> Option<(Board, Device)> {
    if !linerate_rtl_sim::is_available() {
        eprintln!("skipped: {}", linerate_rtl_sim::Unavailable::NoVerilator);
        return None;
    }
    let board = Board::new(Simulation::new(timing, u64::from(last)).expect("the block is compiled in"));
    let memory = |count: usize| vec![0u8; count * 2_048 + 64].leak();
    let receive = Pool::over(memory(300), 2_048, 64).expect("a pool");
    let transmit = Pool::over(memory(100), 2_048, 64).expect("a pool");
    let settings =
        Settings { transmit_ring: 64, receive_ring: 64, ..Settings::new(MacAddr([2, 0, 0, 0, 0, last])) };
    let device = open(&board, &settings, receive, transmit).expect("opens");
    Some((board, device))
}

/// The time that the hardware's clock says.
fn now(board: &Board) -> Instant {
    Instant::from_nanos(board.hardware().cycles() * CLOCK_PS / 1_000)
}

#[test]
fn every_offload_of_the_hardware_passes_the_self_test() {
    let Some((board, mut device)) = device(1, Timing::steady(20)) else { return };
    assert!(device.capabilities().tso4 && device.capabilities().rx_coalescing);
    let report = self_test(&mut device, 50, || {
        board.hardware_mut().settle(5_000, 50_000);
        now(&board)
    })
    .expect("runs");
    assert_eq!(report.failed(), Capabilities::NONE, "{report:?}");
    board.hardware().check().expect("no rule of a bus is broken");
}

#[test]
fn an_idle_queue_has_not_stalled() {
    let Some((board, mut device)) = device(1, Timing::steady(20)) else { return };
    // Time enough for the descriptors that are read ahead.
    board.hardware_mut().settle(5_000, 50_000);
    for second in 1..=12 {
        assert!(!device.queue.arm(Instant::from_millis(1_000 * second)));
    }
    assert_eq!(device.queue.stats().stalls, 0);
    board.hardware().check().expect("no rule of a bus is broken");
}

/// More of them than descriptors are read ahead, each in less time than it takes to read one.
#[test]
fn a_burst_of_short_frames_waits_for_descriptors() {
    let Some((board, mut device)) = device(1, Timing::steady(200)) else { return };
    board.hardware_mut().settle(5_000, 50_000);
    let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5][..], &[7; 46]].concat();
    (0..48).for_each(|_| board.hardware_mut().receive(frame.clone(), false));
    board.hardware_mut().settle(5_000, 50_000);
    let mut batch = RxBatch::with_limit(64);
    assert_eq!(device.receive(now(&board), &mut batch), Ok(48));
    board.hardware().check().expect("no rule of a bus is broken");
}
