//! The algorithms, one file each with its rules in words beside it, and the one list that names
//! them all.
//!
//! **Invariant:** no file here knows whether it runs in a simulator, in the model checker or over
//! sockets.

pub mod detect;
pub mod election;
pub mod mutex;

use vez_core::Protocol;

/// Something to be done with every algorithm, whatever its type.
pub trait Visitor {
    fn visit<P: Protocol>(&mut self);
}

/// Shows every algorithm to `visitor`. A new algorithm is one new line here.
pub fn visit_all(visitor: &mut impl Visitor) {
    visitor.visit::<mutex::Coordinator>();
    visitor.visit::<mutex::TokenRing>();
    visitor.visit::<mutex::Quorum>();
    visitor.visit::<mutex::Lamport>();
    visitor.visit::<mutex::RicartAgrawala>();
    visitor.visit::<mutex::RicartAgrawalaTanenbaum>();
    visitor.visit::<mutex::Maekawa>();
    visitor.visit::<mutex::SuzukiKasami>();
    visitor.visit::<mutex::Raymond>();
    visitor.visit::<mutex::ElectedCoordinator<election::Bully>>();
    visitor.visit::<election::Bully>();
    visitor.visit::<election::BullyStrict>();
    visitor.visit::<election::AnonymousRing>();
    visitor.visit::<election::ItaiRodeh>();
    visitor.visit::<election::ListRing>();
    visitor.visit::<election::ChangRoberts>();
    visitor.visit::<election::Franklin>();
    visitor.visit::<election::Peterson>();
    visitor.visit::<election::HirschbergSinclair>();
    visitor.visit::<election::YoYo>();
    visitor.visit::<election::Wireless>();
    visitor.visit::<election::Probabilistic>();
    visitor.visit::<election::WeightedMajority>();
    visitor.visit::<election::Stable>();
    visitor.visit::<election::Monitored<election::Bully>>();
}
