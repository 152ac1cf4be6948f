//! TOML documents, read into types, with the place of what is wrong.
//!
//! The parser is that of the crate `toml`; what leads from its tree to types is here. There, each type is compiled for a table,
//! for a value with its place and for a date, and a chip has hundreds of types. Here everything in a document is a `Node`, and
//! a type is compiled once.

use serde::de::{
    self, Deserialize, DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_spanned::de::{SpannedDeserializer, is_spanned};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeFloat, DeInteger, DeTable, DeValue};

/// What of a document could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    message: String,
    span: Option<Range<usize>>,
}

impl ReadError {
    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The bytes of the document that it is about; none at its end.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    fn new(message: impl Into<String>, span: &Range<usize>) -> Self {
        Self { message: message.into(), span: Some(span.clone()) }
    }

    /// The same, at this place if it has none.
    fn at(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None }
    }
}

/// Reads a document.
///
/// # Errors
/// The first mistake: what the syntax of TOML or the type forbids.
pub fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ReadError> {
    let root = DeTable::parse(text)
        .map_err(|error| ReadError { message: error.message().to_owned(), span: error.span() })?;
    let span = root.span();
    T::deserialize(Node::of(Spanned::new(span, DeValue::Table(root.into_inner()))))
}

/// Anything in a document.
struct Node<'de> {
    content: Content<'de>,
    span: Range<usize>,
}

enum Content<'de> {
    Value(DeValue<'de>),
    /// A bound of a place, which [`Spanned`] asks for.
    Bound(usize),
    /// A key, or the name of one of [`Spanned`]'s fields.
    Key(Cow<'de, str>),
}

/// What a visitor is shown.
enum Scalar<'de> {
    Text(Cow<'de, str>),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Boolean(bool),
}

/// What has parts.
enum Opened<'de> {
    Scalar(Scalar<'de>),
    Sequence(Parts<'de>),
    Map(Pairs<'de>),
}

impl<'de> Node<'de> {
    fn of(value: Spanned<DeValue<'de>>) -> Self {
        let span = value.span();
        Self { content: Content::Value(value.into_inner()), span }
    }

    fn key(key: Spanned<Cow<'de, str>>) -> Self {
        let span = key.span();
        Self { content: Content::Key(key.into_inner()), span }
    }

    fn open(self) -> Result<Opened<'de>, ReadError> {
        let span = self.span;
        let scalar = match self.content {
            Content::Bound(bound) => Scalar::Unsigned(u64::try_from(bound).unwrap_or(u64::MAX)),
            Content::Key(text) | Content::Value(DeValue::String(text)) => Scalar::Text(text),
            Content::Value(DeValue::Integer(number)) => integer(&number).map_err(|error| error.at(&span))?,
            Content::Value(DeValue::Float(number)) => float(&number).map_err(|error| error.at(&span))?,
            Content::Value(DeValue::Boolean(is)) => Scalar::Boolean(is),
            Content::Value(DeValue::Datetime(date)) => {
                return Err(ReadError::new(format!("the date {date}; expected another value"), &span));
            }
            Content::Value(DeValue::Array(array)) => return Ok(Opened::Sequence(Parts::of(array))),
            Content::Value(DeValue::Table(table)) => return Ok(Opened::Map(Pairs::of(table))),
        };
        Ok(Opened::Scalar(scalar))
    }

    fn into_variant(self) -> Result<Variant<'de>, ReadError> {
        let span = self.span;
        match self.content {
            Content::Key(text) | Content::Value(DeValue::String(text)) => {
                Ok(Variant { name: Node { content: Content::Key(text), span }, value: None })
            }
            Content::Value(DeValue::Table(table)) => {
                let count = table.len();
                let mut pairs = table.into_iter();
                match (pairs.next(), count) {
                    (Some((name, value)), 1) => {
                        Ok(Variant { name: Node::key(name), value: Some(Node::of(value)) })
                    }
                    _ => Err(ReadError::new(
                        format!("wanted exactly 1 element, found {count} elements"),
                        &span,
                    )),
                }
            }
            _ => Err(ReadError::new("wanted string or table", &span)),
        }
    }
}

fn integer<'de>(number: &DeInteger<'_>) -> Result<Scalar<'de>, ReadError> {
    let (text, radix) = (number.as_str(), number.radix());
    let signed = i64::from_str_radix(text, radix).map(Scalar::Signed);
    signed
        .or_else(|_| u64::from_str_radix(text, radix).map(Scalar::Unsigned))
        .map_err(|_| ReadError::custom("integer number overflowed"))
}

fn float<'de>(number: &DeFloat<'_>) -> Result<Scalar<'de>, ReadError> {
    let text = number.as_str();
    let value: Option<f64> = text.parse().ok();
    // What is written as infinite may be; what only became so is too large.
    let value = value.filter(|value| !value.is_infinite() || text.contains("inf"));
    value.map(Scalar::Float).ok_or_else(|| ReadError::custom("floating-point number overflowed"))
}

impl<'de> Scalar<'de> {
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Scalar::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Scalar::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Scalar::Signed(number) => visitor.visit_i64(number),
            Scalar::Unsigned(number) => visitor.visit_u64(number),
            Scalar::Float(number) => visitor.visit_f64(number),
            Scalar::Boolean(is) => visitor.visit_bool(is),
        }
    }
}

impl<'de> de::Deserializer<'de> for Node<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let span = self.span.clone();
        let read = match self.open()? {
            Opened::Scalar(scalar) => scalar.visit(visitor),
            Opened::Sequence(parts) => visitor.visit_seq(parts),
            Opened::Map(pairs) => visitor.visit_map(pairs),
        };
        read.map_err(|error| error.at(&span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if is_spanned(name) {
            return visitor.visit_map(Pairs::with_place(self));
        }
        self.deserialize_map(visitor)
    }

    /// What has fields is not read from a list, and not compiled for one.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let span = self.span.clone();
        let read = match self.open()? {
            Opened::Scalar(scalar) => scalar.visit(visitor),
            Opened::Sequence(_) => Err(ReadError::invalid_type(Unexpected::Seq, &visitor)),
            Opened::Map(pairs) => visitor.visit_map(pairs),
        };
        read.map_err(|error| error.at(&span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let span = self.span.clone();
        visitor.visit_enum(self.into_variant()?).map_err(|error| error.at(&span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string identifier
        bytes byte_buf unit ignored_any unit_struct seq tuple_struct tuple
    }
}

/// The parts of an array.
struct Parts<'de>(<DeArray<'de> as IntoIterator>::IntoIter);

impl<'de> Parts<'de> {
    fn of(array: DeArray<'de>) -> Self {
        Self(array.into_iter())
    }
}

impl<'de> SeqAccess<'de> for Parts<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        self.0.next().map(|value| seed.deserialize(Node::of(value))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The keys of a table with their values.
struct Pairs<'de> {
    rest: Rest<'de>,
    value: Option<Node<'de>>,
}

enum Rest<'de> {
    Table(<DeTable<'de> as IntoIterator>::IntoIter),
    /// What [`Spanned`] asks for, from behind.
    Place(Vec<(&'static str, Node<'de>)>),
}

impl<'de> Pairs<'de> {
    fn of(table: DeTable<'de>) -> Self {
        Self { rest: Rest::Table(table.into_iter()), value: None }
    }

    fn with_place(node: Node<'de>) -> Self {
        let span = node.span.clone();
        let bound = |bound| Node { content: Content::Bound(bound), span: span.clone() };
        let (start, end) = (bound(span.start), bound(span.end));
        let [start_name, end_name, value_name] = names_of_place();
        Self {
            rest: Rest::Place(vec![(value_name, node), (end_name, end), (start_name, start)]),
            value: None,
        }
    }

    fn next_key(&mut self) -> Option<Node<'de>> {
        let (key, value) = match &mut self.rest {
            Rest::Table(pairs) => {
                let (key, value) = pairs.next()?;
                (Node::key(key), Node::of(value))
            }
            Rest::Place(fields) => {
                let (name, value) = fields.pop()?;
                (Node { content: Content::Key(Cow::Borrowed(name)), span: value.span.clone() }, value)
            }
        };
        self.value = Some(value);
        Some(key)
    }
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.next_key().map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        match self.value.take() {
            Some(value) => {
                let span = value.span.clone();
                seed.deserialize(value).map_err(|error| error.at(&span))
            }
            None => Err(ReadError::custom("a value was asked for before its key")),
        }
    }
}

/// What [`Spanned`] calls the start of its place, the end, and its value.
fn names_of_place() -> [&'static str; 3] {
    let mut fields = SpannedDeserializer::<u64, ReadError>::new(0, 0..0);
    [(); 3].map(|()| {
        let name = fields.next_key().ok().flatten().unwrap_or("");
        let _ignored: Result<u64, _> = fields.next_value();
        name
    })
}

/// The name of an enum's variant, and what it has.
struct Variant<'de> {
    name: Node<'de>,
    value: Option<Node<'de>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = ReadError;
    type Variant = Held<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Held<'de>), ReadError> {
        Ok((seed.deserialize(self.name)?, Held(self.value)))
    }
}

/// What a variant has.
struct Held<'de>(Option<Node<'de>>);

impl<'de> Held<'de> {
    fn value(self, expected: &'static str) -> Result<Node<'de>, ReadError> {
        self.0.ok_or_else(|| ReadError::invalid_type(Unexpected::UnitVariant, &expected))
    }
}

impl<'de> VariantAccess<'de> for Held<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.0 {
            None => Ok(()),
            Some(Node { content: Content::Value(DeValue::Table(table)), .. }) if table.is_empty() => Ok(()),
            Some(node) => Err(ReadError::new("expected empty table", &node.span)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self.value("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ReadError> {
        de::Deserializer::deserialize_seq(self.value("tuple variant")?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let node = self.value("struct variant")?;
        // Also where the type itself would pass over them.
        if let Content::Value(DeValue::Table(table)) = &node.content
            && let Some(key) = table.keys().find(|key| !fields.contains(&key.get_ref().as_ref()))
        {
            return Err(ReadError::unknown_field(key.get_ref(), fields).at(&key.span()));
        }
        de::Deserializer::deserialize_map(node, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct All {
        number: u32,
        wide: u64,
        negative: i8,
        rate: f64,
        letter: char,
        is: bool,
        text: String,
        tuple: (u8, String),
        list: Vec<Spanned<Kind>>,
        place: Option<Spanned<Inner>>,
        missing: Option<String>,
        tables: BTreeMap<String, Inner>,
        any: toml::Value,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    enum Kind {
        Unit,
        OtherUnit,
        Newtype(u16),
        Tuple(u8, u8),
        Struct { first: u8 },
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(default)]
        value: f32,
    }

    const TEXT: &str = r#"
number = 0x10
wide = 18_446_744_073_709_551_615
negative = -3
rate = 2
letter = "x"
is = true
text = """two
lines"""
tuple = [1, "one"]
list = ["unit", { newtype = 3 }, { other-unit = {} }, { tuple = [4, 5] }, { struct = { first = 6 } }]
any = { list = [1, 2.5, "three", false], inner.deep = "x" }

[place]
value = 1.5

[tables.one]
[tables.two]
value = inf
"#;

    /// Both readings of a text agree: in the value, or in what is wrong and where.
    fn compare<T: PartialEq + Debug + for<'de> serde::Deserialize<'de>>(text: &str) {
        match (read::<T>(text), toml::from_str::<T>(text)) {
            (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{text}"),
            (Err(ours), Err(theirs)) => {
                assert_eq!(ours.span(), theirs.span(), "{text}: {ours} against {theirs}");
                assert_eq!(ours.message(), theirs.message(), "{text}");
            }
            (ours, theirs) => panic!("{text}: {ours:?} against {theirs:?}"),
        }
    }

    #[test]
    fn all_that_a_document_has_is_read_as_by_the_crate() {
        compare::<All>(TEXT);
        let all: All = read(TEXT).unwrap();
        assert_eq!(all.number, 16);
        assert_eq!(
            all.place.as_ref().map(|place| place.span()),
            toml::from_str::<All>(TEXT).unwrap().place.map(|place| place.span())
        );
        let spans: Vec<_> = all.list.iter().map(|kind| &TEXT[kind.span()]).collect();
        assert_eq!(spans[..2], ["\"unit\"", "{ newtype = 3 }"]);
    }

    #[test]
    fn mistakes_have_their_place() {
        let changes = [
            ("number = 0x10", "number = -1"),
            ("number = 0x10", "number = \"ten\""),
            ("number = 0x10", "number = [1]"),
            ("number = 0x10", "number = { a = 1 }"),
            ("number = 0x10", "number = 4294967296"),
            ("number = 0x10", ""),
            ("number = 0x10", "nubmer = 16"),
            ("number = 0x10", "number = "),
            ("number = 0x10", "number = 1\nnumber = 2"),
            ("rate = 2", "rate = 1e999"),
            ("rate = 2", "rate = \"fast\""),
            ("letter = \"x\"", "letter = \"xy\""),
            ("is = true", "is = 1"),
            ("tuple = [1, \"one\"]", "tuple = [1]"),
            ("tuple = [1, \"one\"]", "tuple = [1, 2]"),
            ("tuple = [1, \"one\"]", "tuple = 1"),
            ("{ newtype = 3 }", "{ newtype = \"x\" }"),
            ("{ newtype = 3 }", "\"newtype\""),
            ("{ newtype = 3 }", "\"other\""),
            ("{ newtype = 3 }", "3"),
            ("value = 1.5", "value = false"),
            ("value = 1.5", "valve = 1.5"),
        ];
        for (right, wrong) in changes {
            assert!(TEXT.contains(right), "{right}");
            let text = TEXT.replacen(right, wrong, 1);
            assert!(read::<All>(&text).is_err(), "{wrong}");
            compare::<All>(&text);
        }
    }

    #[test]
    fn a_variant_has_no_other_fields() {
        #[derive(Debug, serde::Deserialize)]
        enum Lenient {
            Struct { first: u8 },
        }
        let text = "kind = { Struct = { second = 6 } }";
        let error = read::<BTreeMap<String, Lenient>>(text).unwrap_err();
        assert_eq!(
            (error.message(), error.span()),
            ("unknown field `second`, expected `first`", Some(20..26))
        );
        let kinds: BTreeMap<String, Lenient> = read("kind = { Struct = { first = 6 } }").unwrap();
        assert!(matches!(kinds["kind"], Lenient::Struct { first: 6 }));
    }

    #[test]
    fn a_variant_that_has_nothing_is_written_without() {
        let text = "kind = { unit = 1 }";
        let error = read::<BTreeMap<String, Kind>>(text).unwrap_err();
        assert_eq!((error.message(), error.span()), ("expected empty table", Some(16..17)));
    }

    #[test]
    fn what_has_fields_is_no_list() {
        let error = read::<BTreeMap<String, Inner>>("[[one]]").unwrap_err();
        assert_eq!(
            (error.message(), error.span()),
            ("invalid type: sequence, expected struct Inner", Some(0..7))
        );
    }

    #[test]
    fn a_date_is_no_value_of_ours() {
        let error = read::<BTreeMap<String, String>>("day = 2026-11-27").unwrap_err();
        assert_eq!(
            (error.message(), error.span()),
            ("the date 2026-11-27; expected another value", Some(6..16))
        );
    }
}
