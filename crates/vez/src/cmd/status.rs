//! `vez status`: who holds what, who waits, who serves.

use serde_json::{Value, json};
use vez_client::{Client, Entry, LeaseInfo, MemberInfo, Queue};

use super::{Outcome, output};
use crate::hold::{Endpoints, Format, Holder, age};

/// Show locks and who waits for them, elections, leases and members.
///
/// Works with vez and with etcd: a key whose last part is its own lease stands in a queue. A lock
/// is what vez lock or etcdctl lock holds; what has any other value is an election.
///
/// Examples:
///   vez status
///   vez status deploy/ --format json
///   vez status --endpoints 10.0.0.1:2379,10.0.0.2:2379
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Status {
    /// Only names that begin so.
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    endpoints: Endpoints,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// All of it.
struct Seen {
    version: String,
    members: Vec<MemberInfo>,
    locks: Vec<Queue>,
    elections: Vec<Queue>,
    leases_total: usize,
    leases: Vec<LeaseInfo>,
}

/// Each lease is asked for by itself.
const LEASES_MAX: usize = 100;

impl Status {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let seen = runtime.block_on(async {
            let client = self.endpoints.connect().await?;
            look(&client, &self.prefix).await
        })?;
        let text = match self.format {
            Format::Text => seen.text(),
            Format::Json => serde_json::to_string_pretty(&seen.json())?,
        };
        output::write(None, &text)?;
        Ok(Outcome::Kept)
    }
}

async fn look(client: &Client, prefix: &str) -> anyhow::Result<Seen> {
    let (version, members) = client.members().await?;
    let queues = client.queues(prefix).await?;
    let (leases_total, leases) = client.leases(LEASES_MAX).await?;
    let (locks, elections) = queues.into_iter().partition(is_lock);
    Ok(Seen { version, members, locks, elections, leases_total, leases })
}

fn is_lock(queue: &Queue) -> bool {
    let by_a_lock = |entry: &Entry| entry.value.is_empty() || Holder::parse(&entry.value).is_some();
    queue.entries.first().is_some_and(by_a_lock)
}

/// Who it is, as far as it says, and for how long.
fn described(entry: &Entry) -> (String, String) {
    match Holder::parse(&entry.value) {
        Some(holder) => (holder.who.clone(), holder.age().map(age).unwrap_or_default()),
        None => (entry.to_string(), "-".to_owned()),
    }
}

impl Seen {
    fn text(&self) -> String {
        let mut tables = Vec::new();
        let locks = self.locks.iter().map(|queue| {
            let (who, since) = described(&queue.entries[0]);
            let waiting = (queue.entries.len() - 1).to_string();
            let fence = queue.entries[0].fence.to_string();
            vec![queue.name.clone(), who, since, fence, waiting]
        });
        tables.push(table(&["LOCK", "HELD BY", "FOR", "FENCE", "WAITING"], locks.collect()));
        let elections = self.elections.iter().map(|queue| {
            let leader = &queue.entries[0];
            let standing = (queue.entries.len() - 1).to_string();
            vec![queue.name.clone(), leader.to_string(), leader.fence.to_string(), standing]
        });
        tables.push(table(&["ELECTION", "LED BY", "FENCE", "WAITING"], elections.collect()));
        let leases = self.leases.iter().map(|lease| {
            let keys = lease.keys.iter().map(|key| String::from_utf8_lossy(key));
            let keys = keys.collect::<Vec<_>>().join(", ");
            vec![format!("{:x}", lease.id), age(lease.granted), age(lease.left), keys]
        });
        let mut leases = table(&["LEASE", "TTL", "LEFT", "KEYS"], leases.collect());
        let more = self.leases_total.saturating_sub(LEASES_MAX);
        if more > 0 {
            leases.push_str(&format!("and {more} more\n"));
        }
        tables.push(leases);
        let members = self.members.iter().map(|member| {
            let role = match (member.is_leader, member.is_learner) {
                (true, _) => "leader",
                (_, true) => "learner",
                _ => "follower",
            };
            let urls = member.client_urls.join(", ");
            vec![member.name.clone(), format!("{:x}", member.id), role.to_owned(), urls]
        });
        tables.push(table(&["MEMBER", "ID", "ROLE", "CLIENTS AT"], members.collect()));
        tables.retain(|table| !table.is_empty());
        format!("{}\nversion {}\n", tables.join("\n"), self.version)
    }

    fn json(&self) -> Value {
        let lock = |queue: &Queue| {
            let entries: Vec<_> = queue.entries.iter().map(entry).collect();
            json!({ "name": queue.name, "holder": entries[0], "waiting": entries[1..] })
        };
        let election = |queue: &Queue| {
            let entries: Vec<_> = queue.entries.iter().map(entry).collect();
            json!({ "name": queue.name, "leader": entries[0], "waiting": entries[1..] })
        };
        let lease = |lease: &LeaseInfo| {
            let keys: Vec<_> =
                lease.keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
            json!({
                "id": format!("{:x}", lease.id),
                "ttl_seconds": lease.granted.as_secs(),
                "left_seconds": lease.left.as_secs(),
                "keys": keys,
            })
        };
        let member = |member: &MemberInfo| {
            json!({
                "name": member.name,
                "id": format!("{:x}", member.id),
                "leader": member.is_leader,
                "learner": member.is_learner,
                "client_urls": member.client_urls,
                "peer_urls": member.peer_urls,
            })
        };
        json!({
            "version": self.version,
            "locks": self.locks.iter().map(lock).collect::<Vec<_>>(),
            "elections": self.elections.iter().map(election).collect::<Vec<_>>(),
            "leases_total": self.leases_total,
            "leases": self.leases.iter().map(lease).collect::<Vec<_>>(),
            "members": self.members.iter().map(member).collect::<Vec<_>>(),
        })
    }
}

fn entry(entry: &Entry) -> Value {
    let holder = Holder::parse(&entry.value);
    json!({
        "who": holder.as_ref().map(|holder| &holder.who),
        "since": holder.as_ref().map(|holder| &holder.since),
        "age_seconds": holder.as_ref().and_then(Holder::age).map(|age| age.as_secs()),
        "value": String::from_utf8_lossy(&entry.value),
        "fence": entry.fence,
        "lease": format!("{:x}", entry.lease),
        "key": String::from_utf8_lossy(&entry.key),
    })
}

/// Columns as wide as they need to be; nothing if there is nothing to show.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = head.iter().map(|&word| word.to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
