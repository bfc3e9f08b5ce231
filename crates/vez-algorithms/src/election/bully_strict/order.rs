//! Who is higher, who is told, and whose a term is.

use std::cmp::Ordering;

use vez_core::{Ctx, NodeSet, Term};

use super::{BullyStrict, Message};

pub(super) fn higher(ctx: &Ctx<'_, BullyStrict>) -> NodeSet {
    rivals(Ordering::Greater, ctx)
}

pub(super) fn lower(ctx: &Ctx<'_, BullyStrict>) -> NodeSet {
    rivals(Ordering::Less, ctx)
}

fn rivals(than: Ordering, ctx: &Ctx<'_, BullyStrict>) -> NodeSet {
    let (topology, rank) = (ctx.topology(), ctx.rank());
    ctx.peers().filter(|&peer| topology.rank(peer).cmp(&rank) == than).collect()
}

/// The first term from `least` on that is ours; term 0 is nobody's.
pub(super) fn own_term(least: Term, ctx: &Ctx<'_, BullyStrict>) -> Term {
    let (n, me) = (u64::from(ctx.topology().n()), u64::from(ctx.me().0) + 1);
    let least = least.max(1);
    least + (me + n - least % n) % n
}

pub(super) fn tell(peers: &NodeSet, message: &Message, ctx: &mut Ctx<'_, BullyStrict>) {
    for &peer in peers {
        ctx.send(peer, message.clone());
    }
}
