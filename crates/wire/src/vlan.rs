//! VLAN tags (IEEE 802.1Q), alone or in pairs (802.1ad).

use crate::ethernet::EtherType;

/// Bytes of one tag.
pub const TAG_LEN: usize = 4;

/// Most tags of one frame.
pub const MAX_TAGS: usize = 2;

/// One tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tag {
    /// [`EtherType::VLAN`] or [`EtherType::SERVICE_VLAN`].
    pub protocol: EtherType,
    /// Priority code point, 0 to 7; higher bits are not written.
    pub priority: u8,
    /// Whether it goes first when a queue is full.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 (priority only) to 4,094; higher bits are not written.
    pub id: u16,
}

impl Tag {
    /// The tag with this control field.
    pub const fn from_control(protocol: EtherType, control: u16) -> Tag {
        Tag {
            protocol,
            priority: (control >> 13) as u8,
            drop_eligible: control & 0x1000 != 0,
            id: control & 0x0fff,
        }
    }

    /// The control field.
    pub const fn control(self) -> u16 {
        (self.priority as u16 & 7) << 13 | (self.drop_eligible as u16) << 12 | self.id & 0x0fff
    }
}

/// Up to two tags, the outer one first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tags {
    tags: [Tag; MAX_TAGS],
    len: u8,
}

impl Tags {
    /// No tag.
    pub const NONE: Tags = Tags {
        tags: [Tag { protocol: EtherType(0), priority: 0, drop_eligible: false, id: 0 }; MAX_TAGS],
        len: 0,
    };

    /// Exactly `tag`.
    pub const fn one(tag: Tag) -> Tags {
        let mut tags = Tags::NONE;
        tags.tags[0] = tag;
        tags.len = 1;
        tags
    }

    /// Adds `tag` inside the others; `false` if there are two already.
    pub fn push(&mut self, tag: Tag) -> bool {
        match self.tags.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = tag;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// The tags, the outer one first.
    pub fn as_slice(&self) -> &[Tag] {
        self.tags.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is no room for another.
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == MAX_TAGS
    }

    /// Bytes that they take in a frame: 0, 4 or 8.
    pub fn emitted_len(&self) -> usize {
        usize::from(self.len) * TAG_LEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_tags_and_no_more() {
        let tag = Tag { protocol: EtherType::VLAN, priority: 3, drop_eligible: false, id: 7 };
        let mut tags = Tags::one(tag);
        assert!(!tags.is_full() && !tags.is_empty());
        assert!(tags.push(tag) && tags.is_full());
        assert!(!tags.push(tag));
        assert_eq!((tags.as_slice().len(), tags.emitted_len()), (2, 8));
    }

    proptest! {
        #[test]
        fn control_fields_come_back(control: u16) {
            prop_assert_eq!(Tag::from_control(EtherType::VLAN, control).control(), control);
        }
    }
}
