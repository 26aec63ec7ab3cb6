//! The `sluice` binary: parses the command line and dispatches. Must not hold anything else.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use sluice::cli::{Cli, Command, SettingsCommand};
use sluice::{api, clock, manager, settings_command, simulate, telemetry};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the last words of a command-line program")]
            {
                eprintln!("sluice: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Run(arguments) => {
            telemetry::install(arguments.log_format, &arguments.log_level)?;
            install_tls()?;
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let ended = runtime.block_on(manager::run(*arguments));
            // Whoever lost the Lease must be gone soon: a look-up of a name that hangs is not waited for.
            runtime.shutdown_timeout(Duration::from_secs(1));
            ended.map(|()| ExitCode::SUCCESS)
        }
        Command::Settings(SettingsCommand::Check(arguments)) => {
            install_tls()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let check = settings_command::check_file(&arguments, clock::now(), std::io::stdout());
            let taken = runtime.block_on(check)?;
            Ok(if taken { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Simulate(arguments) => {
            simulate::run(&arguments, &mut std::io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Crds(arguments) => {
            crds(arguments.directory.as_deref())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn install_tls() -> anyhow::Result<()> {
    let installed = rustls::crypto::ring::default_provider().install_default();
    installed.map_err(|_| anyhow::anyhow!("TLS is set up already"))
}

/// Prints the custom resource definitions, or writes one file each.
fn crds(directory: Option<&std::path::Path>) -> anyhow::Result<()> {
    for definition in api::crds::all() {
        let text = api::crds::to_yaml(&definition)?;
        if let Some(directory) = directory {
            let name = definition.metadata.name.clone().unwrap_or_default();
            let path = directory.join(format!("{name}.yaml"));
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        } else {
            use std::io::Write as _;
            write!(std::io::stdout(), "---\n{text}")?;
        }
    }
    Ok(())
}
