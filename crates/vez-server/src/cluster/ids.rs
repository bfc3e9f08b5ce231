//! Who is who: numbers that every member works out for itself, from what all were told.

use ring::digest::{Context, SHA256};

/// A member's number comes of where it is and which cluster it is for, as in etcd.
pub fn member_id(peer_urls: &[String], token: &str) -> u64 {
    let mut urls: Vec<_> = peer_urls.iter().map(String::as_str).collect();
    urls.sort_unstable();
    number(urls.into_iter().map(str::as_bytes).chain([token.as_bytes()]))
}

/// A cluster's number comes of its first members.
pub fn cluster_id(members: impl IntoIterator<Item = u64>) -> u64 {
    let mut members: Vec<_> = members.into_iter().map(u64::to_be_bytes).collect();
    members.sort_unstable();
    number(members.iter().map(<[u8; 8]>::as_slice))
}

fn number<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut context = Context::new(&SHA256);
    for part in parts {
        // With its length: what is beside each other must not run together.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let digest = context.finish();
    let first = digest.as_ref().first_chunk().expect("it has 32 bytes");
    // 0 is nobody.
    u64::from_be_bytes(*first).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_every_address_and_the_token_and_on_no_order() {
        let urls = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>();
        let (one, two) = (urls(&["http://a:1"]), urls(&["http://b:1", "http://a:1"]));
        let turned = urls(&["http://a:1", "http://b:1"]);
        assert_eq!(member_id(&two, "t"), member_id(&turned, "t"));
        assert_ne!(member_id(&one, "t"), member_id(&two, "t"));
        assert_ne!(member_id(&one, "t"), member_id(&one, "u"));
        assert_eq!(cluster_id([1, 2, 3]), cluster_id([3, 1, 2]));
        assert_ne!(cluster_id([1, 2, 3]), cluster_id([1, 2]));
    }
}
