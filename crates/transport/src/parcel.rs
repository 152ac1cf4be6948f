//! Received bytes on their way to a file, wherever a transport keeps them.

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

/// Bytes that [`Transport::take`](crate::Transport::take) took from a connection, for
/// [`FileOp::WriteParcel`](crate::FileOp::WriteParcel). What they lie in is between the transport and the files; dropped, they are
/// lost.
pub struct Parcel {
    len: usize,
    content: Box<dyn Any + Send>,
}

impl Parcel {
    /// `len` bytes that lie in `content`.
    pub fn new(len: usize, content: impl Any + Send) -> Parcel {
        Parcel { len, content: Box::new(content) }
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What they lie in; `None` if it is something else.
    pub fn into_content<T: Any>(self) -> Option<T> {
        self.content.downcast().ok().map(|content| *content)
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parcel({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::Parcel;

    #[test]
    fn who_knows_what_it_is_gets_it_back() {
        let parcel = Parcel::new(3, [1u8, 2, 3]);
        assert_eq!((parcel.len(), parcel.is_empty()), (3, false));
        assert_eq!(parcel.into_content::<[u8; 3]>(), Some([1, 2, 3]));
        assert_eq!(Parcel::new(3, [1u8, 2, 3]).into_content::<u32>(), None);
    }
}
