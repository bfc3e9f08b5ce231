//! placeholder until the bench branch lands
pub(crate) fn bench(_args: &[String]) -> anyhow::Result<()> {
    anyhow::bail!("no benches yet")
}
