//! Three members, asked by all kinds of clients, and on bad days.

mod at_random;
#[expect(dead_code, reason = "a simulation has time for more of them")]
#[path = "../../../vez-server/tests/sim/clients.rs"]
mod clients;
mod clocks;
mod disks;
mod faults;
mod history;
#[expect(dead_code, reason = "a simulation tells its story")]
#[path = "../../../vez-server/tests/sim/judge.rs"]
mod judge;
mod members;
mod net;
mod partitions;
mod rolling;
mod service;
mod tls;
mod told;
mod trio;
#[path = "../../../vez-server/tests/sim/watchers.rs"]
mod watchers;

#[path = "../serve/cold_disk.rs"]
mod cold_disk;

#[path = "../serve/wall_clock.rs"]
mod wall_clock;

#[expect(dead_code, reason = "more is done with one server than with three")]
#[path = "../serve/server.rs"]
mod server;
