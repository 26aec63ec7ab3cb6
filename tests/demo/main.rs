//! `make demo`: the main job of the product, played on a real control plane with the real kubectl.
//!
//! Owns the story and its verdicts. Each step prints the command and its answer; what decides is the API server's audit log
//! and the counted AWS calls, not what the product says. Exit code 0 only if every step was seen.

#[path = "../testbed/mod.rs"]
mod testbed;

mod bad_image;
mod stage;
mod story;
mod tiers;

use std::process::ExitCode;

use stage::Stage;

#[tokio::main]
async fn main() -> ExitCode {
    let mut stage = match Stage::set().await {
        Ok(stage) => stage,
        Err(error) => {
            eprintln!("demo: FAILED while the stage was set: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let played = story::play(&mut stage).await;
    let step = stage.step().to_owned();
    if played.is_err() {
        eprintln!("\nthe operator's last words:\n{}", stage.last_words());
    }
    let stopped = stage.stop().await;
    match played.and(stopped) {
        Ok(()) => {
            println!("\ndemo: every step was seen; everything it started is stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("\ndemo: FAILED at step \"{step}\": {error:#}");
            ExitCode::FAILURE
        }
    }
}
