//! How a member is called and reached, as the log keeps it.

use std::fmt;

/// Kept in the place of a member's address: `NAME PEER_URLS CLIENT_URLS`, with commas between
/// URLs, and `-` for what is not known; after that `+`, if the member is to count as soon as it
/// has caught up. A cluster of one that nobody may join has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    pub name: String,
    pub peer_urls: Vec<String>,
    pub client_urls: Vec<String>,
    /// It votes when it has caught up, without being asked again.
    pub is_candidate: bool,
}

impl Card {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.split(' ').map(|part| if part == "-" { "" } else { part });
        let mut next = || parts.next().unwrap_or_default();
        let urls =
            |text: &str| text.split(',').filter(|url| !url.is_empty()).map(str::to_owned).collect();
        Self {
            name: next().to_owned(),
            peer_urls: urls(next()),
            client_urls: urls(next()),
            is_candidate: next() == "+",
        }
    }
}

impl fmt::Display for Card {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peers, clients) = (self.peer_urls.join(","), self.client_urls.join(","));
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        write!(out, "{} {} {}", or_dash(&self.name), or_dash(&peers), or_dash(&clients))?;
        if self.is_candidate { out.write_str(" +") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_on_a_card_is_read_from_it() {
        let urls = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>();
        let peer_urls = urls(&["http://10.0.0.1:2380", "http://[::1]:2380"]);
        for client_urls in [urls(&[]), urls(&["http://10.0.0.1:2379"])] {
            for (name, is_candidate) in [("", true), ("", false), ("alpha", true)] {
                let (peer_urls, client_urls) = (peer_urls.clone(), client_urls.clone());
                let card = Card { name: name.to_owned(), peer_urls, client_urls, is_candidate };
                assert_eq!(Card::parse(&card.to_string()), card);
            }
        }
        assert_eq!(Card::parse(""), Card::default());
    }
}
