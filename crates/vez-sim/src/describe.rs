//! Values as people read them: any serializable value becomes a [`Picture`], with processes by
//! name. Traces, diagrams and the lab are made of these.

use std::fmt::{self, Write as _};

use serde::ser::{self, Serialize};
use serde_json::Value;
use vez_core::{NodeId, Topology};

/// A value taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    Nothing,
    /// A number, truth value or word.
    Word(Value),
    Node(NodeId),
    List(Vec<Picture>),
    /// Named parts, in order.
    Parts(Vec<(String, Picture)>),
    /// A variant of an enum, with what it holds.
    Variant(&'static str, Box<Picture>),
}

/// Takes `value` apart.
pub fn describe<T: Serialize + ?Sized>(value: &T) -> Picture {
    value.serialize(Painter).unwrap_or(Picture::Nothing)
}

impl Picture {
    /// As one short line: `Ok(request=1, fence=2)`, `{P1, P3}`.
    pub fn text(&self, topology: &Topology) -> String {
        let mut text = String::new();
        self.write(topology, &mut text);
        text
    }

    fn write(&self, topology: &Topology, out: &mut String) {
        match self {
            Self::Nothing => out.push('–'),
            Self::Word(Value::String(word)) => out.push_str(word),
            Self::Word(value) => write!(out, "{value}").expect("strings take anything"),
            Self::Node(node) => out.push_str(&topology.name(*node)),
            Self::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    item.write_inner(topology, out);
                }
                out.push(']');
            }
            Self::Parts(parts) => out.push_str(&words(parts, topology)),
            Self::Variant(name, inner) if **inner == Self::Nothing => out.push_str(name),
            Self::Variant(_, inner) if matches!(**inner, Self::Variant(..)) => {
                inner.write(topology, out);
            }
            Self::Variant(name, inner) => match inner.text(topology).as_str() {
                "" => out.push_str(name),
                inner => write!(out, "{name}({inner})").expect("strings take anything"),
            },
        }
    }

    /// Parts within parts are set in brackets.
    fn write_inner(&self, topology: &Topology, out: &mut String) {
        let is_one = |parts: &[(String, Self)]| {
            parts.len() == 1 || parts.first().is_some_and(|(name, _)| name == "node")
        };
        let brackets = matches!(self, Self::Parts(parts) if !is_one(parts));
        out.push_str(if brackets { "(" } else { "" });
        self.write(topology, out);
        out.push_str(if brackets { ")" } else { "" });
    }

    /// As JSON, processes by uid.
    pub fn json(&self, topology: &Topology) -> Value {
        match self {
            Self::Nothing => Value::Null,
            Self::Word(value) => value.clone(),
            Self::Node(node) => topology.uid(*node).into(),
            Self::List(items) => items.iter().map(|item| item.json(topology)).collect(),
            Self::Parts(parts) => {
                Value::Object(parts.iter().map(|(k, v)| (k.clone(), v.json(topology))).collect())
            }
            Self::Variant(name, inner) if **inner == Self::Nothing => Value::from(*name),
            Self::Variant(name, inner) => {
                Value::Object([((*name).to_owned(), inner.json(topology))].into_iter().collect())
            }
        }
    }

    /// The parts of `self` that `before` had otherwise, as `name: value`.
    pub fn changes(&self, before: Option<&Self>, topology: &Topology) -> Vec<String> {
        let Self::Parts(parts) = self else {
            return if before == Some(self) { Vec::new() } else { vec![self.text(topology)] };
        };
        let was = |index: usize| match before {
            Some(Self::Parts(parts)) => parts.get(index),
            _ => None,
        };
        let changed = parts.iter().enumerate().filter(|&(i, part)| was(i) != Some(part));
        changed.map(|(_, (name, part))| format!("{name}: {}", part.text(topology))).collect()
    }
}

/// Parts by name, as short as can be: what is absent or not set goes without saying, and what
/// belongs to a process has the process first, `P2(request=1)`.
fn words(parts: &[(String, Picture)], topology: &Topology) -> String {
    match parts {
        [] => return "[]".to_owned(),
        [(_, only)] => return only.text(topology),
        _ => (),
    }
    if let [(name, Picture::Node(node)), rest @ ..] = parts
        && name == "node"
    {
        let rest = rest.iter().filter_map(|part| named(part, topology)).collect::<Vec<_>>();
        return format!("{}({})", topology.name(*node), rest.join(", "));
    }
    let said: Vec<String> = parts.iter().filter_map(|part| named(part, topology)).collect();
    match (said.as_slice(), parts.first()) {
        // A value needs no name if it comes first and is all there is; a switch is its name.
        ([only], Some(first))
            if named(first, topology).as_ref() == Some(only)
                && first.1 != Picture::Word(Value::Bool(true)) =>
        {
            first.1.text(topology)
        }
        _ => said.join(", "),
    }
}

/// `name=value`; just the name of a switch that is on.
fn named((name, part): &(String, Picture), topology: &Topology) -> Option<String> {
    match part {
        Picture::Nothing | Picture::Word(Value::Bool(false)) => None,
        Picture::Word(Value::Bool(true)) => Some(name.clone()),
        _ => {
            let mut value = String::new();
            part.write_inner(topology, &mut value);
            Some(format!("{name}={value}"))
        }
    }
}

struct Painter;

/// serde wants an error type. Nothing here fails but a `Serialize` that refuses itself.
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value refuses to be serialized")
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Painted = Result<Picture, Refused>;

macro_rules! words {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Painted { Ok(Picture::Word(value.into())) })*
    };
}

impl ser::Serializer for Painter {
    type Ok = Picture;
    type Error = Refused;
    type SerializeSeq = Several;
    type SerializeTuple = Several;
    type SerializeTupleStruct = Several;
    type SerializeTupleVariant = Several;
    type SerializeMap = Several;
    type SerializeStruct = Several;
    type SerializeStructVariant = Several;

    words!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_f32: f32, serialize_f64: f64, serialize_str: &str
    );

    fn serialize_char(self, value: char) -> Painted {
        Ok(Picture::Word(value.to_string().into()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Painted {
        Ok(Picture::List(value.iter().map(|&byte| Picture::Word(byte.into())).collect()))
    }

    fn serialize_none(self) -> Painted {
        Ok(Picture::Nothing)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Painted {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Painted {
        Ok(Picture::Nothing)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Painted {
        Ok(Picture::Nothing)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Painted {
        Ok(Picture::Variant(name, Box::new(Picture::Nothing)))
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        value: &T,
    ) -> Painted {
        let inner = value.serialize(self)?;
        Ok(match (name, &inner) {
            ("NodeId", Picture::Word(Value::Number(index))) => {
                Picture::Node(NodeId(index.as_u64().unwrap_or_default() as u32))
            }
            _ => inner,
        })
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Painted {
        Ok(Picture::Variant(name, Box::new(value.serialize(self)?)))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Several, Refused> {
        Ok(Several::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<Several, Refused> {
        Ok(Several::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Several, Refused> {
        Ok(Several::default())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Several, Refused> {
        Ok(Several { variant: Some(name), ..Several::default() })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Several, Refused> {
        Ok(Several { named: true, ..Several::default() })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Several, Refused> {
        Ok(Several { named: true, ..Several::default() })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Several, Refused> {
        Ok(Several { variant: Some(name), named: true, ..Several::default() })
    }
}

/// A list, a struct, a map or a variant with fields, while its parts come in.
#[derive(Default)]
struct Several {
    variant: Option<&'static str>,
    named: bool,
    items: Vec<Picture>,
    parts: Vec<(String, Picture)>,
    /// The key of a map whose value is still to come, as read.
    key: Option<Picture>,
}

impl Several {
    fn item<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Refused> {
        self.items.push(value.serialize(Painter)?);
        Ok(())
    }

    fn part<T: ?Sized + Serialize>(&mut self, name: &str, value: &T) -> Result<(), Refused> {
        self.parts.push((name.to_owned(), value.serialize(Painter)?));
        Ok(())
    }

    fn done(self) -> Picture {
        let inner = if self.named { Picture::Parts(self.parts) } else { Picture::List(self.items) };
        match self.variant {
            Some(name) => Picture::Variant(name, Box::new(inner)),
            None => inner,
        }
    }
}

impl ser::SerializeSeq for Several {
    type Ok = Picture;
    type Error = Refused;
    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Refused> {
        self.item(value)
    }
    fn end(self) -> Painted {
        Ok(self.done())
    }
}

impl ser::SerializeTuple for Several {
    type Ok = Picture;
    type Error = Refused;
    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Refused> {
        self.item(value)
    }
    fn end(self) -> Painted {
        Ok(self.done())
    }
}

impl ser::SerializeTupleStruct for Several {
    type Ok = Picture;
    type Error = Refused;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Refused> {
        self.item(value)
    }
    fn end(self) -> Painted {
        Ok(self.done())
    }
}

impl ser::SerializeTupleVariant for Several {
    type Ok = Picture;
    type Error = Refused;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Refused> {
        self.item(value)
    }
    fn end(self) -> Painted {
        Ok(self.done())
    }
}

impl ser::SerializeMap for Several {
    type Ok = Picture;
    type Error = Refused;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Refused> {
        self.key = Some(key.serialize(Painter)?);
        Ok(())
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Refused> {
        // A key that names a process is kept as its address; text() and json() show pairs as they
        // are, so such maps read as lists of pairs.
        match self.key.take() {
            Some(Picture::Word(Value::String(name))) => self.part(&name, value),
            Some(key) => {
                self.named = false;
                self.items.push(Picture::List(vec![key, value.serialize(Painter)?]));
                Ok(())
            }
            None => Err(Refused),
        }
    }
    fn end(self) -> Painted {
        Ok(self.done())
    }
}

impl ser::SerializeStruct for Several {
    type Ok = Picture;
    type Error = Refused;
    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        self.part(name, value)
    }
    fn end(self) -> Painted {
        Ok(self.done())
    }
}

impl ser::SerializeStructVariant for Several {
    type Ok = Picture;
    type Error = Refused;
    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        self.part(name, value)
    }
    fn end(self) -> Painted {
        Ok(self.done())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde::Serialize;
    use vez_core::{Fence, Layout, NodeId, Topology};

    use super::describe;

    #[derive(Serialize)]
    enum Message {
        Election { uid: u64 },
        Ok { request: u64, fence: Fence },
        Token(BTreeSet<NodeId>),
        Ping,
        Nested(Inner),
        Ask { number: u64, again: bool, fence: Option<u64> },
    }

    #[derive(Serialize)]
    enum Inner {
        Vote { term: u64 },
    }

    #[derive(Serialize)]
    struct State {
        holder: Option<NodeId>,
        queue: Vec<NodeId>,
        votes: BTreeMap<NodeId, bool>,
    }

    #[test]
    fn messages_read_like_the_books() {
        let topology = Topology::of(Layout::Ring, 3).unwrap().with_uids(vec![7, 8, 9]);
        let text = |message: &Message| describe(message).text(&topology);
        assert_eq!(text(&Message::Election { uid: 7 }), "Election(7)");
        let ok = Message::Ok { request: 1, fence: Fence { term: 2, count: 3 } };
        assert_eq!(text(&ok), "Ok(request=1, fence=2.3)");
        assert_eq!(text(&Message::Token([NodeId(2), NodeId(0)].into())), "Token([P7, P9])");
        assert_eq!(text(&Message::Ping), "Ping");
        assert_eq!(text(&Message::Ask { number: 4, again: false, fence: None }), "Ask(4)");
        assert_eq!(
            text(&Message::Ask { number: 4, again: true, fence: None }),
            "Ask(number=4, again)"
        );
        assert_eq!(text(&Message::Nested(Inner::Vote { term: 4 })), "Vote(4)");
        assert_eq!(
            describe(&ok).json(&topology).to_string(),
            r#"{"Ok":{"fence":"2.3","request":1}}"#
        );
    }

    #[test]
    fn of_a_state_only_what_changed_is_said() {
        let topology = Topology::of(Layout::Ring, 3).unwrap();
        let before = State { holder: None, queue: vec![], votes: BTreeMap::new() };
        let votes = BTreeMap::from([(NodeId(1), true)]);
        let after = State { holder: Some(NodeId(1)), queue: vec![], votes };
        let (before, after) = (describe(&before), describe(&after));
        assert_eq!(after.changes(Some(&before), &topology), ["holder: P2", "votes: [[P2, true]]"]);
        assert_eq!(before.changes(Some(&before), &topology), [""; 0]);
        assert_eq!(before.changes(None, &topology).len(), 3);
    }
}
