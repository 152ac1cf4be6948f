//! What every image has: memory, a device without any offload, a stack on it, and the loop.
//!
//! The images are linked for a bare processor and not run: they show that nothing below them needs an operating system,
//! and how much code each part is. The device hands every byte to the compiler as unknown, as registers would, so that
//! nothing is optimised away that hardware would need.
#![no_std]

extern crate alloc;

mod device;
mod machine;
#[cfg(feature = "servers")]
mod servers;

pub use machine::Machine;
#[cfg(feature = "servers")]
pub use servers::{run, NoFiles};

/// The heap: everything is taken from it at the start.
#[global_allocator]
static HEAP: emballoc::Allocator<{ 192 << 10 }> = emballoc::Allocator::new();

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
