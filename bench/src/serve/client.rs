//! One client of a server, with a connection of its own and one lock.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, LeaseRevokeResponse,
};
use vez_api::v3lockpb::{LockRequest, LockResponse, UnlockRequest, UnlockResponse};
use zookeeper_client::{Acls, Client as Session, CreateMode, WatchedEvent};

use super::servers::{Kind, Server};
use super::wire::Wire;

/// Long enough that nothing is kept alive while cycles are counted.
const TTL_SECONDS: i64 = 600;

/// How long a server may take to let a client in.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) enum Client {
    /// vez and etcd: the same requests, byte for byte.
    Grpc(Grpc),
    ZooKeeper(ZooKeeper),
    Redis(Redis),
}

impl Client {
    /// A client that takes the lock `name`; `id` is nobody else's.
    pub(crate) async fn connect(server: &Server, name: &str, id: usize) -> anyhow::Result<Self> {
        let connected = timeout(PATIENCE, Self::try_connect(server, name, id)).await;
        connected.with_context(|| format!("{} does not let us in", server.kind.name()))?
    }

    async fn try_connect(server: &Server, name: &str, id: usize) -> anyhow::Result<Self> {
        let address = server.address();
        Ok(match server.kind {
            Kind::Vez | Kind::Etcd => Self::Grpc(Grpc::connect(&address, name).await?),
            Kind::ZooKeeper => Self::ZooKeeper(ZooKeeper::connect(&address, name).await?),
            Kind::Redis => Self::Redis(Redis::connect(&address, name, id).await?),
        })
    }

    pub(crate) async fn lock(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Grpc(client) => client.lock().await,
            Self::ZooKeeper(client) => client.lock().await,
            Self::Redis(client) => client.lock().await,
        }
    }

    pub(crate) async fn unlock(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Grpc(client) => client.unlock().await,
            Self::ZooKeeper(client) => client.unlock().await,
            Self::Redis(client) => client.unlock().await,
        }
    }

    /// Hangs up, and leaves nothing behind.
    pub(crate) async fn leave(self) -> anyhow::Result<()> {
        match self {
            Self::Grpc(client) => client.leave().await,
            // Whoever hangs up has left.
            Self::ZooKeeper(_) | Self::Redis(_) => Ok(()),
        }
    }
}

pub(crate) async fn channel(address: &str) -> anyhow::Result<Channel> {
    Ok(Endpoint::new(format!("http://{address}"))?.tcp_nodelay(true).connect().await?)
}

pub(crate) struct Grpc {
    wire: Wire,
    request: LockRequest,
    key: bytes::Bytes,
}

impl Grpc {
    async fn connect(address: &str, name: &str) -> anyhow::Result<Self> {
        let mut wire = Wire::connect(address).await?;
        let request = LeaseGrantRequest { ttl: TTL_SECONDS, id: 0 };
        let granted: LeaseGrantResponse =
            wire.call("/etcdserverpb.Lease/LeaseGrant", &request).await?;
        let request = LockRequest { name: name.to_owned().into(), lease: granted.id };
        Ok(Self { wire, request, key: bytes::Bytes::new() })
    }

    async fn lock(&mut self) -> anyhow::Result<()> {
        let locked: LockResponse = self.wire.call("/v3lockpb.Lock/Lock", &self.request).await?;
        self.key = locked.key;
        Ok(())
    }

    async fn unlock(&mut self) -> anyhow::Result<()> {
        let request = UnlockRequest { key: std::mem::take(&mut self.key) };
        let _: UnlockResponse = self.wire.call("/v3lockpb.Lock/Unlock", &request).await?;
        Ok(())
    }

    async fn leave(mut self) -> anyhow::Result<()> {
        let request = LeaseRevokeRequest { id: self.request.lease };
        let _: LeaseRevokeResponse =
            self.wire.call("/etcdserverpb.Lease/LeaseRevoke", &request).await?;
        Ok(())
    }
}

/// ZooKeeper's recipe: an ephemeral node in sequence, and a watch on the one before.
pub(crate) struct ZooKeeper {
    session: Session,
    folder: String,
    own: String,
}

impl ZooKeeper {
    async fn connect(address: &str, name: &str) -> anyhow::Result<Self> {
        let session = Session::connect(address).await?;
        let folder = format!("/{name}");
        let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
        match session.create(&folder, b"", &lasting).await {
            Ok(_) | Err(zookeeper_client::Error::NodeExists) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { session, folder, own: String::new() })
    }

    async fn lock(&mut self) -> anyhow::Result<()> {
        let place = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let (_, sequence) =
            self.session.create(&format!("{}/n-", self.folder), b"", &place).await?;
        let own = format!("n-{sequence}");
        self.own = format!("{}/{own}", self.folder);
        loop {
            let mut queue = self.session.list_children(&self.folder).await?;
            queue.sort_unstable();
            let place = queue.iter().position(|node| *node == own).context("our place is gone")?;
            let Some(before) = place.checked_sub(1) else { return Ok(()) };
            let before = format!("{}/{}", self.folder, queue[before]);
            let (there, watcher) = self.session.check_and_watch_stat(&before).await?;
            if there.is_some() {
                let _: WatchedEvent = watcher.changed().await;
            }
        }
    }

    async fn unlock(&mut self) -> anyhow::Result<()> {
        Ok(self.session.delete(&self.own, None).await?)
    }
}

/// The lock of Redis' documentation: SET if not there, and a script that deletes only one's own.
pub(crate) struct Redis {
    stream: TcpStream,
    lock: Vec<u8>,
    unlock: Vec<u8>,
}

const DELETE_OWN: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

impl Redis {
    async fn connect(address: &str, name: &str, id: usize) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let own = id.to_string();
        let lock = command(&["SET", name, &own, "NX", "PX", "600000"]);
        let mut client = Self { stream, lock, unlock: Vec::new() };
        client.stream.write_all(&command(&["SCRIPT", "LOAD", DELETE_OWN])).await?;
        let answer = client.answer().await?;
        let digest = answer.lines().nth(1).context("expected the script's digest")?;
        client.unlock = command(&["EVALSHA", digest, "1", name, &own]);
        Ok(client)
    }

    async fn lock(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.lock).await?;
        let answer = self.answer().await?;
        ensure!(answer == "+OK\r\n", "not locked: {answer}");
        Ok(())
    }

    async fn unlock(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.unlock).await?;
        let answer = self.answer().await?;
        ensure!(answer == ":1\r\n", "not unlocked: {answer}");
        Ok(())
    }

    /// All its answers to us are short and come in one piece.
    async fn answer(&mut self) -> anyhow::Result<String> {
        let mut buffer = [0; 256];
        let length = self.stream.read(&mut buffer).await?;
        ensure!(length > 0, "Redis hung up");
        Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let words: Vec<String> = words.collect();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}
