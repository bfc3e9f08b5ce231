//! The names of things: which variant of an enum a value is, and which variants there are.
//!
//! Message kinds are counted, traced, explained and matched with the clauses of an algorithm's
//! rules. serde already knows every name, so nobody has to write a table that could go stale.

use std::fmt;

use serde::de::{self, DeserializeOwned, Visitor};
use serde::ser::{self, Impossible, Serialize};

/// Which variant a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Dense, so that counters can be an array.
    pub index: u32,
    pub name: &'static str,
}

/// The variant `value` is. A variant that wraps another enum (a protocol nested in a protocol)
/// is of the inner value's kind.
pub fn kind_of<T: Serialize>(value: &T) -> Kind {
    match value.serialize(Namer) {
        Err(Found::Kind(kind)) => kind,
        _ => Kind { index: 0, name: "Message" },
    }
}

/// The variants an enum has; none if `T` is not an enum.
pub fn variants_of<T: DeserializeOwned>() -> &'static [&'static str] {
    match T::deserialize(Lister) {
        Err(Listed(Some(variants))) => variants,
        _ => &[],
    }
}

/// How many variants of an outer enum may each wrap an inner one of this many.
const INNER_MAX: u32 = 64;

/// Stops at the first variant it is shown; nothing is ever serialized.
struct Namer;

/// The "error" that carries the answer out.
#[derive(Debug)]
enum Found {
    Kind(Kind),
    NotAnEnum,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::NotAnEnum
    }
}

type Answer = Result<(), Found>;
type No = Result<Impossible<(), Found>, Found>;

macro_rules! not_an_enum {
    ($($method:ident: $type:ty),*) => {
        $(#[inline] fn $method(self, _: $type) -> Answer { Err(Found::NotAnEnum) })*
    };
}

impl ser::Serializer for Namer {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Impossible<(), Found>;
    type SerializeTuple = Impossible<(), Found>;
    type SerializeTupleStruct = Impossible<(), Found>;
    type SerializeTupleVariant = Impossible<(), Found>;
    type SerializeMap = Impossible<(), Found>;
    type SerializeStruct = Impossible<(), Found>;
    type SerializeStructVariant = Impossible<(), Found>;

    not_an_enum!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_f32: f32, serialize_f64: f64, serialize_char: char,
        serialize_str: &str, serialize_bytes: &[u8], serialize_unit_struct: &'static str
    );

    #[inline]
    fn serialize_none(self) -> Answer {
        Err(Found::NotAnEnum)
    }

    #[inline]
    fn serialize_some<T: ?Sized + Serialize>(self, _: &T) -> Answer {
        Err(Found::NotAnEnum)
    }

    #[inline]
    fn serialize_unit(self) -> Answer {
        Err(Found::NotAnEnum)
    }

    #[inline]
    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, _: &T) -> Answer {
        Err(Found::NotAnEnum)
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, index: u32, name: &'static str) -> Answer {
        Err(Found::Kind(Kind { index, name }))
    }

    #[inline]
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        index: u32,
        name: &'static str,
        value: &T,
    ) -> Answer {
        Err(Found::Kind(match value.serialize(Namer) {
            Err(Found::Kind(inner)) => {
                Kind { index: (index + 1) * INNER_MAX + inner.index, name: inner.name }
            }
            _ => Kind { index, name },
        }))
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        name: &'static str,
        _: usize,
    ) -> No {
        Err(Found::Kind(Kind { index, name }))
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        name: &'static str,
        _: usize,
    ) -> No {
        Err(Found::Kind(Kind { index, name }))
    }

    fn serialize_seq(self, _: Option<usize>) -> No {
        Err(Found::NotAnEnum)
    }

    fn serialize_tuple(self, _: usize) -> No {
        Err(Found::NotAnEnum)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> No {
        Err(Found::NotAnEnum)
    }

    fn serialize_map(self, _: Option<usize>) -> No {
        Err(Found::NotAnEnum)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> No {
        Err(Found::NotAnEnum)
    }
}

/// Asked to deserialize an enum, it notes the variants and gives up.
struct Lister;

#[derive(Debug)]
struct Listed(Option<&'static [&'static str]>);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Listed {}

impl de::Error for Listed {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> de::Deserializer<'de> for Lister {
    type Error = Listed;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Listed> {
        Err(Listed(None))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Listed> {
        Err(Listed(Some(variants)))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::{Kind, kind_of, variants_of};

    #[derive(Serialize, Deserialize)]
    enum Inner {
        Ping,
        Pong(u8, u8),
    }

    #[derive(Serialize, Deserialize)]
    enum Outer {
        Ok { fence: u64 },
        Number(u64),
        Nested(Inner),
    }

    #[test]
    fn a_kind_is_the_variant_and_of_a_nested_protocol_the_inner_one() {
        assert_eq!(kind_of(&Outer::Ok { fence: 3 }), Kind { index: 0, name: "Ok" });
        assert_eq!(kind_of(&Outer::Number(3)), Kind { index: 1, name: "Number" });
        assert_eq!(kind_of(&Outer::Nested(Inner::Ping)).name, "Ping");
        let pong = kind_of(&Outer::Nested(Inner::Pong(1, 2)));
        assert_eq!(pong.name, "Pong");
        assert_ne!(pong.index, kind_of(&Outer::Number(1)).index);
        assert_eq!(kind_of(&7_u32).name, "Message");
    }

    #[test]
    fn variants_are_listed_in_order() {
        assert_eq!(variants_of::<Outer>(), ["Ok", "Number", "Nested"]);
        assert_eq!(variants_of::<crate::Never>(), [""; 0]);
        assert_eq!(variants_of::<u32>(), [""; 0]);
    }
}
