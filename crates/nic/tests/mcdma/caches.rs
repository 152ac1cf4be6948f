//! A platform that leaves out any one operation on the cache: found out. That is what shows that the model sees them all.

use super::*;
use crate::model::CacheOperation::{self, CleanHeader, CleanPayload, InvalidateAfter, InvalidateBefore};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Frames out and in, twice round the rings, with buffers written to in between.
fn exercise(left_out: Option<CacheOperation>) -> [u64; 4] {
    let mut bench = Bench::new(1);
    bench.board.with(|hardware| hardware.memory.leaves_out = left_out);
    for number in 1..=150 {
        bench.offer(number, 2, 300);
        bench.transmit();
        bench.arrive(frame(number, 300, MAC));
        bench.pass_us(50);
        let wire = bench.wire();
        assert_eq!(super::number(&wire[0], 300), number);
        let frames = bench.receive();
        assert_eq!(super::number(frames[0].data.bytes(), 300), number);
        for frame in frames {
            frame.data.try_into_buffer().expect("nobody else has it").bytes_mut().fill(0xEE);
        }
        assert_eq!(bench.completions(), [number]);
    }
    bench.board.with(|hardware| hardware.memory.operations)
}

#[test]
fn each_operation_is_needed() {
    let operations = exercise(None);
    assert!(operations.iter().all(|count| *count >= 150), "{operations:?}");
    for left_out in [CleanHeader, CleanPayload, InvalidateBefore, InvalidateAfter] {
        let result = catch_unwind(AssertUnwindSafe(|| exercise(Some(left_out))));
        let panic = result.expect_err("nobody noticed");
        let message = panic.downcast_ref::<String>().expect("a message");
        assert!(message.contains("damaged") || message.contains("assertion"), "{left_out:?}: {message}");
    }
}
