//! The README and the guides show what really comes out: every command in them is run and compared.

use std::fs;
use std::process::Command;

use vez::registry;

use crate::root;

/// The commands of a page's console blocks, each with the lines that follow it.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (line, line.strip_prefix("$ ")) {
            ("```console", _) => inside = true,
            ("```", _) => inside = false,
            (_, Some(command)) if inside => commands.push((command.to_owned(), String::new())),
            (line, None) if inside => {
                let (_, output) = commands.last_mut().expect("a block begins with a command");
                output.push_str(line);
                output.push('\n');
            }
            _ => (),
        }
    }
    commands
}

#[test]
fn every_command_in_the_readme_prints_what_the_readme_shows() {
    assert!(verified("README.md") >= 5);
}

#[test]
fn every_command_in_the_docs_prints_what_the_docs_show() {
    let pages = [
        ("docs/check.md", 1),
        ("docs/quorum.md", 3),
        ("docs/timeout.md", 3),
        ("docs/sweep.md", 2),
        ("docs/worst.md", 2),
    ];
    for (page, least) in pages {
        assert!(verified(page) >= least, "{page}");
    }
}

/// Runs every command of a page; how many there were.
fn verified(page: &str) -> usize {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let commands = commands(&text);
    let count = commands.len();
    let mut last = 0;
    for (command, expected) in commands {
        if command == "echo $?" {
            assert_eq!(format!("{last}\n"), expected);
            continue;
        }
        let words = command.strip_prefix("vez ").unwrap_or_else(|| panic!("not ours: {command}"));
        let output = Command::new(env!("CARGO_BIN_EXE_vez"))
            .current_dir(root())
            .args(words.split(' '))
            .output()
            .unwrap();
        // How long something took is told beside the result, and differs every time.
        let printed = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        assert_eq!(String::from_utf8(printed).unwrap(), expected, "{page}: $ {command}");
        last = output.status.code().unwrap();
    }
    count
}

#[test]
fn the_readme_counts_right() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let words = [(25, "Twenty-five")];
    let count = registry::all().len();
    let word = words.iter().find(|(number, _)| *number == count);
    let (_, word) = word.unwrap_or_else(|| panic!("{count} algorithms, says the list"));
    assert!(text.contains(&format!("{word} algorithms")));
    let stories = fs::read_dir(root().join("scenarios")).unwrap().count();
    assert!(stories > 70 && text.contains("more than seventy stories"), "{stories}");
}
