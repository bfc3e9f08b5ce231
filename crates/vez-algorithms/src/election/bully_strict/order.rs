//! Who is higher, and whose a term is.

use std::cmp::Ordering;

use vez_core::{Ctx, NodeSet, Term};

use super::BullyStrict;

/// The processes that rank higher, or lower.
pub(super) fn rivals(than: Ordering, ctx: &Ctx<'_, BullyStrict>) -> NodeSet {
    let (topology, rank) = (ctx.topology(), ctx.rank());
    ctx.peers().filter(|&peer| topology.rank(peer).cmp(&rank) == than).collect()
}

/// The first term from `least` on that is ours; term 0 is nobody's.
pub(super) fn own_term(least: Term, ctx: &Ctx<'_, BullyStrict>) -> Term {
    let (n, me) = (u64::from(ctx.topology().n()), u64::from(ctx.me().0) + 1);
    (least.max(1)..).find(|term| term % n == me % n).expect("one of any n is ours")
}
