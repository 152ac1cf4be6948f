//! What the keys of the configuration file expect that are no text, for whoever wrote something else there.

use crate::values::{AddressChoice, FtpUser, Offload};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A whole number that its type holds.
struct Number<T>(&'static str, PhantomData<T>);

impl<T: TryFrom<i64>> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

/// A text that its type reads.
struct Word<T>(&'static str, PhantomData<T>);

impl<T: FromStr> Visitor<'_> for Word<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text in quotes: {}", self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Several values.
struct List<T>(&'static str, PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list such as {}", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items))
    }
}

/// Readers of keys that hold a number.
macro_rules! numbers {
    ($($name:ident: $type:ty = $expected:literal;)*) => {$(
        #[doc = concat!("Reads ", $expected, ".")]
        pub fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$type>, D::Error> {
            from.deserialize_i64(Number($expected, PhantomData)).map(Some)
        }
    )*};
}

/// Readers of keys that hold a list.
macro_rules! lists {
    ($($name:ident: $type:ty = $example:literal;)*) => {$(
        #[doc = concat!("Reads a list such as ", $example, ".")]
        pub fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<$type>, D::Error> {
            from.deserialize_seq(List($example, PhantomData))
        }
    )*};
}

numbers! {
    port: u16 = "a port, 0 to 65535";
    mtu: u16 = "1280 to 9216 bytes";
    vlan: u16 = "1 to 4094";
    queues: u16 = "1 to 64";
    mss: u16 = "88 to 9176 bytes";
    segments: u8 = "1 to 255 segments";
    pending: u16 = "0 to 65535 connections";
    connections: usize = "64 to 1048576 connections";
    per_address: usize = "1 or more connections";
}

lists! {
    addresses: AddressChoice = "[\"192.168.1.4/24\"]";
    ftp_users: FtpUser = "[\"NAME:PASSWORD\"]";
}

/// An address that says what it is where it is none.
struct Ip(IpAddr);

impl<'de> Deserialize<'de> for Ip {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Word("an IP address", PhantomData)).map(Ip)
    }
}

/// Reads addresses of gateways.
pub fn gateways<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IpAddr>, D::Error> {
    let list: Vec<Ip> = from.deserialize_seq(List("[\"192.168.1.1\"]", PhantomData))?;
    Ok(list.into_iter().map(|ip| ip.0).collect())
}

/// Reads an IPv4 address.
pub fn address4<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Ipv4Addr>, D::Error> {
    from.deserialize_str(Word("an IPv4 address", PhantomData)).map(Some)
}

/// Reads names of files.
pub fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    from.deserialize_seq(List("[\"index.html\"]", PhantomData)).map(Some)
}

/// Names of offloads: in one text as a flag has them, or in a list.
struct Offloads;

impl<'de> Visitor<'de> for Offloads {
    type Value = Offload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes: all, none, or names with commas; or a list such as [\"tso\", \"gro\"]")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Offload, E> {
        text.parse().map_err(|error| E::custom(format_args!("invalid value {text:?}: {error}")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Offload, A::Error> {
        let names: Vec<String> = Vec::deserialize(SeqAccessDeserializer::new(items))?;
        self.visit_str(&names.join(","))
    }
}

/// Reads names of offloads.
pub fn offload<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Offload>, D::Error> {
    from.deserialize_any(Offloads).map(Some)
}

/// A number whose bounds are checked once its key is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_i64(Number("a whole number, 0 or more", PhantomData)).map(Count)
    }
}
