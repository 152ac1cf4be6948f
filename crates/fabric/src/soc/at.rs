//! A value that remembers where in its file it stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::ops::{Deref, Range};
use toml::Spanned;

/// A value with its place in the file, for errors that are found after reading.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
#[serde(bound(deserialize = "T: serde::de::Deserialize<'de>"))]
pub struct At<T>(Spanned<T>);

/// The name of another item of the file.
pub type Name = At<String>;

impl<T> At<T> {
    /// A value that stands in no file.
    pub fn new(value: T) -> Self {
        Self(Spanned::new(0..0, value))
    }

    /// The bytes of the file that it was read from.
    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }

    /// For changing the value in place.
    pub fn value_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T> Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.get_ref()
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}
