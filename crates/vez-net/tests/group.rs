//! Processes of one group on loopback, in one operating-system process.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use vez_algorithms::election::{Bully, WeightedMajority};
use vez_algorithms::mutex::{Coordinator, RicartAgrawala};
use vez_core::{NodeId, Protocol, Time, Wish};
use vez_net::{Group, Member, Node, NodeError, Order, Process, Settings, Told};

struct Running {
    orders: mpsc::Sender<Order>,
    told: mpsc::UnboundedReceiver<Told>,
    life: JoinHandle<Result<(), NodeError>>,
}

/// Ports that were free a moment ago.
fn group(n: u64) -> Group {
    let held: Vec<TcpListener> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    let address = |held: &TcpListener| held.local_addr().expect("bound").to_string();
    let members: Vec<String> = held
        .iter()
        .enumerate()
        .map(|(index, held)| {
            format!("[[node]]\nid = {}\naddress = \"{}\"\n", index + 1, address(held))
        })
        .collect();
    Group::read(&members.concat()).expect("a sound group")
}

async fn start<P: Protocol>(group: &Group, id: u64) -> Running {
    start_with::<P>(group, id, P::Config::default()).await
}

/// One that waits long before it takes anybody for crashed: these machines may be busy, and a bully
/// whose timeout is over before an answer comes takes the lead from whoever would have it.
async fn start_bully(group: &Group, id: u64) -> Running {
    type Config = <Bully as Protocol>::Config;
    let config = Config {
        answer_within: Time::from_secs(5),
        victory_within: Time::from_secs(15),
        ..Default::default()
    };
    start_with::<Bully>(group, id, config).await
}

async fn start_with<P: Protocol>(group: &Group, id: u64, config: P::Config) -> Running {
    let topology = Arc::new(group.topology(P::META.layout).unwrap());
    let process = Process::<P>::new(group.node(id).unwrap(), topology, config, id);
    let settings = Settings {
        group: group.clone(),
        id,
        data: None,
        record: None,
        tls: None,
        insecure: false,
        seed: id,
    };
    let node = Node::open(Box::new(process), settings).await.unwrap();
    let (orders, taken) = mpsc::channel(16);
    let (say, told) = mpsc::unbounded_channel();
    Running { orders, told, life: tokio::spawn(node.run(taken, say)) }
}

impl Running {
    async fn order(&self, order: Order) {
        self.orders.send(order).await.unwrap();
    }

    async fn next(&mut self, wanted: impl Fn(&Told) -> bool) -> Told {
        let search = async {
            loop {
                let told = self.told.recv().await.expect("it lives");
                if wanted(&told) {
                    return told;
                }
            }
        };
        timeout(Duration::from_secs(20), search).await.expect("it is told in time")
    }

    async fn notice(&mut self) -> String {
        match self.next(|told| matches!(told, Told::Notice { .. })).await {
            Told::Notice { text, .. } => text,
            _ => unreachable!("it was looked for"),
        }
    }

    async fn stop(self) {
        self.order(Order::Stop).await;
        self.life.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_coordinator_lets_them_in_one_after_the_other() {
    let group = group(3);
    let mut nodes = Vec::new();
    for id in 1..=3 {
        nodes.push(start::<Coordinator>(&group, id).await);
    }
    nodes[1].order(Order::Visit(Time::from_millis(5))).await;
    nodes[2].order(Order::Visit(Time::from_millis(5))).await;
    let mut entered = [nodes[1].notice().await, nodes[2].notice().await];
    entered.sort();
    assert_eq!(entered, ["Entered(1)", "Entered(2)"]);
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test]
async fn who_asks_out_of_turn_is_refused() {
    let group = group(2);
    let (one, mut two) =
        (start::<RicartAgrawala>(&group, 1).await, start::<RicartAgrawala>(&group, 2).await);
    two.order(Order::Wish(Wish::Release)).await;
    let refused = two.next(|told| matches!(told, Told::Refused(_))).await;
    assert!(matches!(refused, Told::Refused(why) if why.starts_with("not now")));
    two.order(Order::Wish(Wish::Start)).await;
    let refused = two.next(|told| matches!(told, Told::Refused(_))).await;
    assert!(matches!(refused, Told::Refused(why) if why.contains("cannot be asked")));
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn an_election_over_links_and_one_through_the_air_both_find_a_leader() {
    let bullies = group(3);
    let mut nodes = Vec::new();
    for id in 1..=3 {
        nodes.push(start_bully(&bullies, id).await);
    }
    nodes[0].order(Order::Wish(Wish::Start)).await;
    for node in &mut nodes {
        assert!(node.notice().await.contains("P3"));
    }
    let voters = group(3);
    let mut leaders = Vec::new();
    let mut all = Vec::new();
    for id in 1..=3 {
        all.push(start::<WeightedMajority>(&voters, id).await);
    }
    all[1].order(Order::Wish(Wish::Start)).await;
    for node in &mut all {
        let leads = node.next(|told| matches!(told, Told::Notice { kind: "Leader", .. })).await;
        leaders.push(leads);
    }
    assert_eq!(leaders.len(), 3);
}

#[tokio::test]
async fn a_second_process_with_an_id_that_lives_is_refused() {
    let group = group(3);
    let (mut one, mut two) = (start_bully(&group, 1).await, start_bully(&group, 2).await);
    let three = start_bully(&group, 3).await;
    // Elsewhere, but by the same name.
    let mut elsewhere = self::group(3);
    elsewhere.members[0] = group.members[0].clone();
    elsewhere.members[1] = group.members[1].clone();
    three.order(Order::Wish(Wish::Start)).await;
    // Both have heard the first, and so have an open connection of its.
    assert!(one.notice().await.contains("P3") && two.notice().await.contains("P3"));
    let impostor = start_bully(&elsewhere, 3).await;
    let ended = timeout(Duration::from_secs(20), impostor.life).await.expect("it ends").unwrap();
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("the id is taken by a process that is alive"), "{error}");
    assert!(!three.life.is_finished());
}

/// One of the group that is elsewhere than the others think.
fn elsewhere(group: &Group, id: u64) -> Group {
    let mut other = self::group(group.members.len() as u64);
    for (mine, theirs) in other.members.iter_mut().zip(&group.members) {
        if theirs.id != id {
            *mine = theirs.clone();
        }
    }
    other
}

async fn ended(running: Running) -> String {
    let ended = timeout(Duration::from_secs(20), running.life).await.expect("it ends").unwrap();
    ended.unwrap_err().to_string()
}

#[tokio::test]
async fn a_second_process_with_an_id_that_lives_is_refused_through_the_air_too() {
    let group = group(3);
    let mut nodes = Vec::new();
    for id in 1..=3 {
        nodes.push(start::<WeightedMajority>(&group, id).await);
    }
    nodes[2].order(Order::Wish(Wish::Start)).await;
    for node in &mut nodes {
        node.next(|told| matches!(told, Told::Notice { kind: "Leader", .. })).await;
    }
    let impostor = start::<WeightedMajority>(&elsewhere(&group, 3), 3).await;
    let error = ended(impostor).await;
    assert!(error.contains("the id is taken by a process that is alive"), "{error}");
    assert!(nodes.iter().all(|node| !node.life.is_finished()));
}

#[test]
fn a_group_that_makes_no_sense_says_why() {
    let member = |id, port: u16| format!("[[node]]\nid = {id}\naddress = \"127.0.0.1:{port}\"\n");
    let wrong = |text: &str| Group::read(text).unwrap_err().to_string();
    assert!(wrong("").contains("node"));
    assert_eq!(wrong(&(member(1, 1) + &member(1, 2))), "the id 1 is listed twice");
    assert_eq!(wrong(&(member(1, 1) + &member(2, 1))), "the address 127.0.0.1:1 is listed twice");
    assert!(wrong("[[node]]\nid = 1\naddress = \"here\"\n").contains("not HOST:PORT"));
    assert!(wrong("[[node]]\nid = 1\nadress = \"x:1\"\n").starts_with("line "));
}

#[test]
fn members_are_added_at_the_end_and_with_a_new_epoch() {
    let old = group(3);
    let mut new = old.clone();
    assert!(new.may_replace(&old).is_ok());
    let last = Member { id: 9, address: "127.0.0.1:9".to_owned(), ..old.members[0].clone() };
    new.members.push(last);
    assert!(new.may_replace(&old).unwrap_err().to_string().contains("expected more than 0"));
    new.epoch = 1;
    assert!(new.may_replace(&old).is_ok());
    new.members.remove(0);
    assert!(new.may_replace(&old).unwrap_err().to_string().contains("left = true"));
    assert_eq!(old.node(2).unwrap(), NodeId(1));
}
