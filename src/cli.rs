//! The command line.
//!
//! Owns flags, their environment variables and defaults. Flags that the peer had keep their names. Must not act on them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::telemetry::{self, LogFormat};

/// An operator for EKS worker instance groups, with a gate on upgrades.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, about)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator.
    Run(Box<RunArguments>),
    /// Replay image releases through settings, offline: who would have been upgraded when, and why not sooner.
    Simulate(SimulateArguments),
    /// Print the custom resource definitions as YAML.
    Crds(CrdsArguments),
    /// Look at the fleet's settings.
    #[command(subcommand)]
    Settings(SettingsCommand),
}

/// What to do with settings.
#[derive(Debug, Subcommand)]
pub enum SettingsCommand {
    /// Say what a text of settings means, or what is wrong with it; exit code 1 if it would not be taken.
    Check(CheckSettingsArguments),
}

/// Arguments of `settings check`.
#[derive(Debug, Args)]
pub struct CheckSettingsArguments {
    /// A manifest of the config map, or the bare text of its key `upgrades`; `-` = standard input.
    pub file: String,
    /// Also say which groups of the cluster are concerned.
    #[arg(long)]
    pub live: bool,
    /// Path of a kubeconfig; absent = the usual rules (in the cluster, KUBECONFIG, ~/.kube/config).
    #[arg(long, requires = "live")]
    pub kubeconfig: Option<PathBuf>,
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    /// The settings: a manifest of the config map, or the bare text of its key `upgrades`.
    #[arg(long)]
    pub settings: PathBuf,
    /// The groups, with the labels of their namespaces.
    #[arg(long)]
    pub groups: PathBuf,
    /// The releases: when, which image, when withdrawn.
    #[arg(long)]
    pub releases: PathBuf,
    /// Show what was not done before this date or time; absent = the first release.
    #[arg(long)]
    pub from: Option<String>,
    /// Replay until this date or time; absent = a month after the last release.
    #[arg(long)]
    pub to: Option<String>,
    /// The fleet's cap where the settings name none.
    #[arg(long, default_value = "10", value_parser = slots)]
    pub max_concurrent_rollouts: usize,
    /// What to print.
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: SimulationFormat,
}

/// Forms of a simulation's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SimulationFormat {
    /// A line for each group and release.
    Text,
    /// For programs.
    Json,
    /// A timeline as a picture.
    Svg,
}

/// Arguments of `crds`.
#[derive(Debug, Args)]
pub struct CrdsArguments {
    /// Write one file for each definition into this folder instead of printing.
    #[arg(long)]
    pub directory: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Controllers to run, as `*` or names; a name with `-` in front is left out.
    #[arg(
        long,
        env = "SLUICE_CONTROLLERS",
        default_value = "*",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub controllers: Vec<String>,
    /// Namespace of the settings, a config map named `instance-manager`.
    #[arg(long, env = "SLUICE_CONFIG_NAMESPACE", default_value = "instance-manager")]
    pub config_namespace: String,
    /// How many groups are worked on at the same time.
    #[arg(long, env = "SLUICE_MAX_WORKERS", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_workers: u16,
    /// Attempts for one AWS call within its deadline, the first included.
    #[arg(long, env = "SLUICE_MAX_API_RETRIES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_api_retries: u32,
    /// Launch template versions kept even if nothing needs them; 0 means 2, as with the peer.
    #[arg(long, env = "SLUICE_CONFIG_RETENTION", default_value = "2", value_parser = retention)]
    pub config_retention: usize,
    /// How many groups are rolled out at the same time, over the whole fleet.
    #[arg(long, env = "SLUICE_MAX_CONCURRENT_ROLLOUTS", default_value = "10", value_parser = slots)]
    pub max_concurrent_rollouts: usize,
    /// Names of the admission policies by which the API server vouches for who decided.
    #[command(flatten)]
    pub policies: PolicyArguments,
    /// The operator's own user name, written with each automatic approval where the cluster's rules want approvers to name
    /// themselves; the chart sets it.
    #[arg(long, env = "SLUICE_APPROVED_BY", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub approved_by: Option<String>,
    /// Name of the node that the operator runs on, so that it goes last; the chart sets it.
    #[arg(long, env = "NODE_NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub node_name: Option<String>,
    /// Address for health and metrics.
    #[arg(long, env = "SLUICE_METRICS_ADDR", default_value = "0.0.0.0:8080", value_parser = address)]
    pub metrics_addr: SocketAddr,
    /// How often Auto Scaling groups and launch templates are read.
    #[arg(long, env = "SLUICE_AWS_POLL_INTERVAL", default_value = "60s", value_parser = interval)]
    pub aws_poll_interval: Duration,
    /// How often image parameters, images and clusters are read.
    #[arg(long, env = "SLUICE_IMAGE_POLL_INTERVAL", default_value = "5m", value_parser = interval)]
    pub image_poll_interval: Duration,
    /// AWS region; absent = AWS's own rules (environment, profile, instance metadata).
    #[arg(long, env = "AWS_REGION")]
    pub aws_region: Option<String>,
    /// Path of a kubeconfig; absent = the usual rules (in the cluster, KUBECONFIG, ~/.kube/config).
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// Who of several processes works.
    #[command(flatten)]
    pub election: ElectionArguments,
    /// How log lines look.
    #[arg(long, env = "SLUICE_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// What is logged, as `info` or `sluice=debug,info`.
    #[arg(long, env = "SLUICE_LOG_LEVEL", default_value = "info,kube_runtime=warn", value_parser = log_level)]
    pub log_level: String,
}

/// Arguments of `run` about admission policies; the chart sets them. Each binding has the name of its policy. Without both
/// names no decision counts as verified.
#[derive(Debug, Args)]
pub struct PolicyArguments {
    /// Name of the `ValidatingAdmissionPolicy` of upgrade requests.
    #[arg(long, env = "SLUICE_REQUEST_POLICY_NAME", requires = "stamping_policy_name", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub request_policy_name: Option<String>,
    /// Name of the `MutatingAdmissionPolicy` that writes who decided.
    #[arg(long, env = "SLUICE_STAMPING_POLICY_NAME", requires = "request_policy_name", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub stamping_policy_name: Option<String>,
}

/// Arguments of `run` about leader election, in the words of kube-controller-manager.
#[derive(Debug, Args)]
pub struct ElectionArguments {
    /// Work only while holding a Lease, so that several processes can stand by for each other.
    #[arg(
        long,
        // The peer's name.
        alias = "enable-leader-election",
        env = "SLUICE_LEADER_ELECT",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub leader_elect: bool,
    /// How long others let the leader's Lease stand still before they take it.
    #[arg(long, env = "SLUICE_LEADER_ELECT_LEASE_DURATION", default_value = "15s", value_parser = interval)]
    pub leader_elect_lease_duration: Duration,
    /// How long a leader works without a renewal of its Lease before it ends; shorter than the lease duration.
    #[arg(long, env = "SLUICE_LEADER_ELECT_RENEW_DEADLINE", default_value = "10s", value_parser = interval)]
    pub leader_elect_renew_deadline: Duration,
    /// Pause between two looks at the Lease, or renewals of it; shorter than the renew deadline.
    #[arg(long, env = "SLUICE_LEADER_ELECT_RETRY_PERIOD", default_value = "2s", value_parser = interval)]
    pub leader_elect_retry_period: Duration,
    /// Namespace of the Lease; absent = that of the pod, by `POD_NAMESPACE` or its mounted token.
    #[arg(long, env = "SLUICE_LEADER_ELECT_RESOURCE_NAMESPACE")]
    pub leader_elect_resource_namespace: Option<String>,
    /// Name of the Lease.
    #[arg(long, env = "SLUICE_LEADER_ELECT_RESOURCE_NAME", default_value = "sluice")]
    pub leader_elect_resource_name: String,
}

/// An address; the peer's `:8080` means all interfaces.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    full.parse()
        .map_err(|error| format!("{error}; write it as 127.0.0.1:8080 or :8080"))
}

/// A number of versions; the peer reads 0 as 2.
fn retention(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| "write a number".to_owned())?;
    Ok(if number == 0 { 2 } else { number })
}

/// A number of rollouts, at least one.
fn slots(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a number from 1".to_owned())
}

/// A pause between polls, in the words of the settings: 30s, 5m, 1h30m.
fn interval(text: &str) -> Result<Duration, String> {
    crate::api::duration::parse_duration(text)
        .filter(|duration| *duration >= Duration::from_secs(1))
        .ok_or_else(|| "write it as 30s, 5m or 1h30m, at least 1s".to_owned())
}

/// A filter of log lines that can be understood.
fn log_level(text: &str) -> Result<String, String> {
    telemetry::check(text).map_err(|error| format!("{error}; write it as info or sluice=debug,info"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn leader_election_is_switched_as_with_the_peer() {
        for (arguments, on) in [
            (&[][..], true),
            (&["--leader-elect"][..], true),
            (&["--leader-elect=false"][..], false),
            (&["--enable-leader-election=false"][..], false),
            (&["--enable-leader-election", "--max-workers", "1"][..], true),
        ] {
            let line = ["sluice", "run"].iter().chain(arguments);
            let Command::Run(run) = Cli::try_parse_from(line).unwrap().command else {
                panic!("not run");
            };
            assert_eq!(run.election.leader_elect, on, "{arguments:?}");
        }
    }

    #[test]
    fn words_of_the_peer_are_understood() {
        assert_eq!(address(":8080").unwrap().to_string(), "0.0.0.0:8080");
        assert_eq!(address("127.0.0.1:0").unwrap().to_string(), "127.0.0.1:0");
        assert!(address("8080").is_err());
        assert_eq!((retention("0"), retention("5")), (Ok(2), Ok(5)));
        assert!(retention("-1").is_err());
        assert_eq!(interval("1m30s"), Ok(Duration::from_secs(90)));
        assert!(interval("0s").is_err() && interval("10").is_err());
        assert!(log_level("sluice=debug,info").is_ok() && log_level("sluice=loud").is_err());
    }
}
