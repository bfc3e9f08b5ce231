//! The names of an enum's variants, and of those nested one deep: the kinds a trace can speak of.

use std::cell::RefCell;
use std::fmt;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer as _, VariantAccess,
    Visitor,
};

/// Every kind that `kind_of` can find in a `T`.
pub(crate) fn names_of<T: DeserializeOwned>() -> Vec<&'static str> {
    let found = RefCell::new(Vec::new());
    let mut index = 0;
    loop {
        let picked = Picked { index: Some(index), found: &found };
        // It never succeeds in a way that matters; what counts is what it has seen.
        match T::deserialize(picked) {
            Err(Seen::Enough) => break,
            _ => index += 1,
        }
    }
    found.into_inner()
}

/// Pretends to hold the variant of this number, and notes the names it is shown.
struct Picked<'a> {
    index: Option<u32>,
    found: &'a RefCell<Vec<&'static str>>,
}

#[derive(Debug)]
enum Seen {
    /// There is no such variant.
    Enough,
    Other,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Seen {}

impl de::Error for Seen {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }
}

impl<'de> de::Deserializer<'de> for Picked<'_> {
    type Error = Seen;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Seen> {
        Err(if self.index.is_some() { Seen::Enough } else { Seen::Other })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Seen> {
        for &name in variants {
            if !self.found.borrow().contains(&name) {
                self.found.borrow_mut().push(name);
            }
        }
        match self.index {
            Some(index) if variants.len() <= index as usize => Err(Seen::Enough),
            Some(_) => visitor.visit_enum(self),
            None => Err(Seen::Other),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Picked<'_> {
    type Error = Seen;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Seen> {
        let index = self.index.unwrap_or_default();
        Ok((seed.deserialize(index.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for Picked<'_> {
    type Error = Seen;

    fn unit_variant(self) -> Result<(), Seen> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Seen> {
        seed.deserialize(Picked { index: None, found: self.found })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Seen> {
        Err(Seen::Other)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Seen> {
        Err(Seen::Other)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::names_of;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names matter")]
    enum Inner {
        Ping,
        Pong(u8, u8),
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names matter")]
    enum Outer {
        Ok { fence: u64 },
        Number(u64),
        Nested(Inner),
        Last,
    }

    #[test]
    fn names_are_those_outside_and_those_within() {
        let names = ["Ok", "Number", "Nested", "Last", "Ping", "Pong"];
        assert_eq!(names_of::<Outer>(), names);
        assert_eq!(names_of::<u32>(), [""; 0]);
        assert_eq!(names_of::<vez_core::Never>(), [""; 0]);
    }
}
