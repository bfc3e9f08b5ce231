//! The generated code in the tree is what `proto/` says; `UPDATE=1` writes it anew.

use std::{env, fs, path::Path};

#[test]
fn the_generated_code_is_that_of_the_protocol_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["rpc.proto", "lock.proto", "election.proto", "command.proto", "peer.proto"];
    let described = protox::compile(files, [root.join("proto")]).expect("the .proto files compile");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    fs::create_dir_all(&made).expect("a directory to write to");
    tonic_prost_build::configure()
        .bytes(".")
        .out_dir(&made)
        .compile_fds(described)
        .expect("code can be made of them");
    let kept = root.join("src/generated");
    for module in ["mvccpb", "etcdserverpb", "v3lockpb", "v3electionpb", "vez", "vezpeer"] {
        let name = format!("{module}.rs");
        let code = fs::read_to_string(made.join(&name)).expect("one file a package");
        if env::var_os("UPDATE").is_some() {
            fs::write(kept.join(&name), &code).expect("the tree can be written");
        }
        let found = fs::read_to_string(kept.join(&name)).unwrap_or_default();
        assert!(found == code, "{name} is stale: run UPDATE=1 cargo test -p vez-api");
    }
}
