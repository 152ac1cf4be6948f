//! The serial line: USART3, which the programmer on the board shows as a port of the computer (115,200 baud).
//!
//! Answers wait in a queue, and the line interrupts when it has room: a page of statistics takes a third of a second to send.

use alloc::collections::VecDeque;
use core::cell::RefCell;
use core::fmt;
use critical_section::Mutex;
use embassy_stm32::Peri;
use embassy_stm32::pac;
use embassy_stm32::peripherals::{PD8, PD9, USART3};
use embassy_stm32::usart::{Config, Uart};

/// Bytes that wait at most; what an answer has beyond is waited for.
const WAITING: usize = 8 << 10;

static OUT: Mutex<RefCell<VecDeque<u8>>> = Mutex::new(RefCell::new(VecDeque::new()));

/// Switches the line on.
pub fn start(usart: Peri<'static, USART3>, tx: Peri<'static, PD8>, rx: Peri<'static, PD9>) {
    let line = Uart::new_blocking(usart, rx, tx, Config::default());
    // The settings are wanted of it; it would switch the line off when it goes.
    core::mem::forget(line.expect("115,200 baud of 100 MHz"));
    pac::USART3.cr1().modify(|w| w.set_rxneie(true));
}

/// Keeps the line from interrupting until [`pump`].
pub fn quiet() {
    pac::USART3.cr1().modify(|w| {
        w.set_rxneie(false);
        w.set_txeie(false);
    });
}

/// A byte that has come.
pub fn take() -> Option<u8> {
    let status = pac::USART3.isr().read();
    if status.ore() {
        pac::USART3.icr().write(|w| w.set_ore(true));
    }
    status.rxne().then(|| pac::USART3.rdr().read().0 as u8)
}

fn put(byte: u8) -> bool {
    let has_room = pac::USART3.isr().read().txe();
    if has_room {
        pac::USART3.tdr().write(|w| w.0 = u32::from(byte) as _);
    }
    has_room
}

/// Sends as much of what waits as there is room for, and has the line interrupt for the rest and for what comes.
pub fn pump() {
    let waits = critical_section::with(|cs| {
        let out = &mut *OUT.borrow_ref_mut(cs);
        while out.front().is_some_and(|byte| put(*byte)) {
            out.pop_front();
        }
        !out.is_empty()
    });
    critical_section::with(|_| {
        pac::USART3.cr1().modify(|w| {
            w.set_rxneie(true);
            w.set_txeie(waits);
        });
    });
}

/// Sends text, later if need be.
pub fn print(text: &str) {
    let with_returns = text.bytes().flat_map(|byte| [(byte == b'\n').then_some(b'\r'), Some(byte)]).flatten();
    for byte in with_returns {
        while critical_section::with(|cs| {
            let out = &mut *OUT.borrow_ref_mut(cs);
            let is_full = out.len() >= WAITING;
            if !is_full {
                out.push_back(byte);
            }
            is_full
        }) {
            pump();
        }
    }
    pump();
}

/// The line for the last report, without queue or heap.
pub struct Out;

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                while !put(b'\r') {}
            }
            while !put(byte) {}
        }
        Ok(())
    }
}
