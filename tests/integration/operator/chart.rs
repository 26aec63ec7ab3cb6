//! What the chart tells the operator's container, against what the command line takes.
//!
//! Owns the rendered Deployment only. Whether the operator does as told is shown elsewhere: every operator here is
//! started with the chart's arguments.

use anyhow::{Context, Result, ensure};
use clap::{CommandFactory, Parser};
use serde_json::Value;
use sluice::cli::{Cli, Command};

use crate::testbed::installation::{ContainerCommand, HOME, chart};
use crate::testbed::{Testbed, shared};

#[tokio::test(flavor = "multi_thread")]
async fn the_chart_says_nothing_that_the_command_line_does_not_know() -> Result<()> {
    let testbed = shared().await?;
    let told = rendered(testbed, &[]).await?;
    let Command::Run(defaults) = parsed(&told)? else {
        anyhow::bail!("the container does not run the operator: {told:?}");
    };
    let namespace = ("POD_NAMESPACE".to_owned(), HOME.to_owned());
    assert_eq!(told.environment, [namespace]);
    assert_eq!((defaults.max_workers, defaults.config_namespace.as_str()), (32, "team"));

    let values = [
        "--set=maxWorkers=4",
        "--set=configRetention=5",
        "--set=controllers={instance-group,-auto-approver}",
        "--set=configNamespace=settings",
        "--set=log.format=text",
        "--set=log.level=sluice=debug\\,warn",
        "--set=aws.region=eu-central-1",
        "--set=admin.address=[::]",
        "--set-json=extraEnv=[{\"name\":\"SLUICE_MAX_API_RETRIES\",\"value\":\"7\"}]",
    ];
    let told = rendered(testbed, &values).await?;
    let Command::Run(set) = parsed(&told)? else {
        anyhow::bail!("the container does not run the operator: {told:?}");
    };
    assert_eq!((set.max_workers, set.config_namespace.as_str()), (4, "settings"));
    assert_eq!(set.controllers, ["instance-group", "-auto-approver"]);
    let variables: Vec<_> = told.environment.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(variables, ["POD_NAMESPACE", "AWS_REGION", "SLUICE_MAX_API_RETRIES"]);
    let known = Cli::command();
    let run = known.find_subcommand("run").context("no subcommand run")?;
    for variable in variables {
        let read = run
            .get_arguments()
            .any(|argument| argument.get_env() == Some(variable.as_ref()));
        // Where the Lease lives is looked up by hand: the flag, this, and the service account's file.
        let read = read || variable == "POD_NAMESPACE";
        ensure!(read, "nothing reads {variable}");
    }
    Ok(())
}

/// The Deployment as a release into namespace `team` would make it.
async fn rendered(testbed: &Testbed, values: &[&str]) -> Result<ContainerCommand> {
    let chart = chart();
    let mut arguments = vec![
        "template",
        "sluice",
        &chart,
        "--namespace",
        "team",
        // helm asks no cluster here: the oldest that the chart is for.
        "--kube-version=1.33.0",
        "--show-only",
        "templates/deployment.yaml",
    ];
    arguments.extend(values);
    let text = testbed.helm(&arguments).await?.success()?;
    let deployment: Value = serde_saphyr::from_str(&text)?;
    ContainerCommand::of_deployment(&deployment)
}

fn parsed(told: &ContainerCommand) -> Result<Command> {
    let line = std::iter::once("sluice").chain(told.arguments.iter().map(String::as_str));
    Ok(Cli::try_parse_from(line)?.command)
}
