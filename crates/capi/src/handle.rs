//! The opaque `lr_stack`, and what every call that takes one does first and last.

use crate::errno::{Errno, Result};
use crate::host::{Host, NULL};
use core::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A TCP/IP stack with its device and its sockets. Made by `lr_stack_new`, ended by `lr_stack_free`.
///
/// A stack is used by one call at a time: calls from several threads must be ordered by a lock of the program. Stacks
/// share nothing with each other.
pub struct lr_stack {
    /// A call is under way; one from within it (out of a callback) is refused.
    busy: Cell<bool>,
    /// A call panicked: what the stack holds can no longer be trusted.
    broken: Cell<bool>,
    host: UnsafeCell<Host>,
}

/// Ends the call, however it ends.
struct Busy<'a>(&'a Cell<bool>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// A number that a C function can return beside negative `errno`s.
pub(crate) trait Code {
    /// The number for an error.
    fn failed(error: Errno) -> Self;
}

impl Code for i32 {
    fn failed(error: Errno) -> Self {
        -error.0
    }
}

impl Code for isize {
    fn failed(error: Errno) -> Self {
        -(error.0 as isize)
    }
}

/// Runs `work` so that no panic crosses into C: it becomes -ENOTRECOVERABLE.
pub(crate) fn guarded<C: Code>(work: impl FnOnce() -> Result<C>) -> C {
    // Whatever `work` left half done is never looked at again: `enter` marks the stack, other callers only had locals.
    let result = catch_unwind(AssertUnwindSafe(work));
    result.unwrap_or(Err(Errno(libc::ENOTRECOVERABLE))).unwrap_or_else(C::failed)
}

/// Runs `work` on the stack behind `stack`.
///
/// # Safety
///
/// `stack` is null or came from `lr_stack_new` and was not freed; no other thread uses it meanwhile.
pub(crate) unsafe fn enter<C: Code>(stack: *const lr_stack, work: impl FnOnce(&mut Host) -> Result<C>) -> C {
    guarded(|| {
        // SAFETY: null, or a live object (the caller's contract); only shared references to it are ever made.
        let stack = unsafe { stack.as_ref() }.ok_or(NULL)?;
        if stack.busy.replace(true) {
            return Err(Errno(libc::EBUSY));
        }
        let _busy = Busy(&stack.busy);
        if stack.broken.replace(true) {
            return Err(Errno(libc::ENOTRECOVERABLE));
        }
        // SAFETY: `busy` was false, so no other call holds this reference: not one of this thread, as `busy` is true
        // from taking the reference until it is gone, and no other thread is here (the caller's contract).
        let host = unsafe { &mut *stack.host.get() };
        let result = work(host);
        // Not reached after a panic: then the stack stays broken.
        stack.broken.set(false);
        result
    })
}

/// Makes a handle.
pub(crate) fn new(host: Host) -> *mut lr_stack {
    Box::into_raw(Box::new(lr_stack {
        busy: Cell::new(false),
        broken: Cell::new(false),
        host: UnsafeCell::new(host),
    }))
}

/// Ends a handle; refused while a call is under way.
///
/// # Safety
///
/// As [`enter`]; the handle is not used again if the result is 0.
pub(crate) unsafe fn free(stack: *mut lr_stack) -> i32 {
    guarded(|| {
        // SAFETY: as in `enter`.
        match unsafe { stack.as_ref() } {
            None => return Ok(0),
            Some(stack) if stack.busy.get() => return Err(Errno(libc::EBUSY)),
            Some(_) => {}
        }
        // SAFETY: it came from `Box::into_raw` in `new` and was not freed (the caller's contract), and no call holds a
        // reference into it, as it is not busy.
        drop(unsafe { Box::from_raw(stack) });
        Ok(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let code: i32 = guarded(|| panic!("on purpose"));
        std::panic::set_hook(hook);
        assert_eq!(code, -libc::ENOTRECOVERABLE);
    }

    #[test]
    fn null_is_an_error() {
        // SAFETY: null is allowed.
        let code: i32 = unsafe { enter(core::ptr::null(), |_| Ok(0)) };
        assert_eq!(code, -libc::EFAULT);
        // SAFETY: as above.
        assert_eq!(unsafe { free(core::ptr::null_mut()) }, 0);
    }
}
