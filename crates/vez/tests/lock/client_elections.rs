//! Elections as programs use them, through the client crate, with every server there is.

use std::time::Duration;

use tokio::time::timeout;
use vez_client::{Client, Error, Leader, Lost, Options};

use crate::server::{Server, with_each};

const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);

fn play(name: &str, story: impl AsyncFn(&mut Server, Client) + Copy) {
    with_each(&format!("client-{name}"), |server| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let endpoint = server.endpoint();
            let client = Client::connect([endpoint], Options::default()).await.unwrap();
            timeout(PATIENCE, story(server, client)).await.expect("it ends");
        });
    });
}

fn value(leader: Option<Leader>) -> Option<String> {
    leader.map(|leader| String::from_utf8(leader.value.to_vec()).unwrap())
}

#[test]
fn observers_hear_of_every_leader_and_of_none() {
    play("observe", async |server, client| {
        let mut observer = client.observe("chair");
        assert_eq!(observer.next().await.unwrap(), None);
        assert_eq!(client.leader("chair").await.unwrap(), None);
        let anna = client.session(TTL).await.unwrap();
        let leadership = anna.campaign("chair", "anna").await.unwrap();
        let leader = observer.next().await.unwrap().unwrap();
        assert_eq!((leader.fence, leader.lease), (leadership.fence(), anna.lease()));
        assert_eq!(client.leader("chair").await.unwrap(), Some(leader));

        let bert = client.session(TTL).await.unwrap();
        let standing = tokio::spawn(bert.campaign("chair", "bert").into_future());
        leadership.proclaim("anna, again").await.unwrap();
        assert_eq!(value(observer.next().await.unwrap()).as_deref(), Some("anna, again"));
        while server.keys().len() < 2 {}
        leadership.resign().await.unwrap();
        assert_eq!(value(observer.next().await.unwrap()).as_deref(), Some("bert"));
        let leadership = standing.await.unwrap().unwrap();
        bert.close().await.unwrap();
        assert_eq!(leadership.lost().await, Lost::Closed);
        assert_eq!(observer.next().await.unwrap(), None);
    });
}

#[test]
fn who_does_not_lead_any_more_cannot_proclaim_or_unseat_anybody() {
    play("deposed", async |server, client| {
        let anna = client.session(TTL).await.unwrap();
        let bert = client.session(TTL).await.unwrap();
        let deposed = anna.campaign("chair", "anna").await.unwrap();
        let key = String::from_utf8(deposed.key().to_vec()).unwrap();
        server.etcdctl_output(&["del", &key]);
        let leadership = bert.campaign("chair", "bert").await.unwrap();
        assert!(leadership.fence() > deposed.fence());
        let refused = deposed.proclaim("anna, still").await;
        assert!(matches!(refused, Err(Error::Lost(Lost::Deleted))), "{refused:?}");
        assert!(matches!(deposed.resign().await, Err(Error::Lost(Lost::Deleted))));
        assert_eq!(value(client.leader("chair").await.unwrap()).as_deref(), Some("bert"));
    });
}

#[test]
fn a_campaign_given_up_leaves_no_candidate() {
    play("given-up", async |server, client| {
        let anna = client.session(TTL).await.unwrap();
        let bert = client.session(TTL).await.unwrap();
        let leadership = anna.campaign("chair", "anna").await.unwrap();
        let standing = bert.campaign("chair", "bert").within(Duration::from_millis(100)).await;
        assert!(matches!(standing, Err(Error::TooLong(_))));
        while server.keys().len() > 1 {}
        leadership.resign().await.unwrap();
        assert_eq!(client.leader("chair").await.unwrap(), None);
    });
}

#[test]
fn an_observer_goes_on_when_the_server_crashed() {
    play("observe-crash", async |server, client| {
        let mut observer = client.observe("chair");
        let anna = client.session(TTL).await.unwrap();
        let leadership = anna.campaign("chair", "anna").await.unwrap();
        assert_eq!(value(observer.next().await.unwrap()).as_deref(), Some("anna"));
        server.crash_and_restart();
        leadership.proclaim("anna, again").await.unwrap();
        assert_eq!(value(observer.next().await.unwrap()).as_deref(), Some("anna, again"));
    });
}
