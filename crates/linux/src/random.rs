//! Random bytes from the kernel.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Fills `bytes` with numbers that nobody can guess.
pub fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(len) => bytes = &mut bytes[len..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_filled() {
        let (mut one, mut two) = ([0; 600], [0; 600]);
        fill(&mut one).unwrap();
        fill(&mut two).unwrap();
        assert!(one != two && one[584..] != [0; 16]);
    }
}
