//! How a request says which keys it means.

use bytes::Bytes;

/// The range end of all keys that begin with this: the first that does not. A zero byte, which
/// means no end, if there is no such key.
pub fn end_of_prefix(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end.into();
        }
    }
    Bytes::from_static(&[0])
}

#[cfg(test)]
mod tests {
    use super::end_of_prefix;

    #[test]
    fn a_prefix_ends_where_the_next_begins() {
        for (prefix, end) in [("lock/", "lock0"), ("a", "b")] {
            assert_eq!(end_of_prefix(prefix.as_bytes()), end);
        }
        assert_eq!(&end_of_prefix(&[1, 255, 255])[..], [2]);
        assert_eq!(&end_of_prefix(&[255])[..], [0]);
        assert_eq!(&end_of_prefix(&[])[..], [0]);
    }
}
