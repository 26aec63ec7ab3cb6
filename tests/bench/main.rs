//! `make bench`: figures that the project promises, measured on a real control plane and the simulated AWS.
//!
//! Owns what is measured and the limits. Every figure comes with the machine and with what it is compared to in the same
//! run. Exit code 0 only if each limit holds.

#[path = "../testbed/mod.rs"]
mod testbed;

mod pace;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    println!("machine: {}", machine());
    match pace::measure().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: FAILED: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Processor and how many of it.
fn machine() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{count} x {model}")
}
