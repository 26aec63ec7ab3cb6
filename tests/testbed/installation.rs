//! Owns how the operator comes onto a testbed: its chart, the rights the chart gives, and the command that it would run.
//!
//! It must not wait for anything that the operator does; [`super::operator`] is the process. It waits for what the API
//! server makes of the chart: its admission policies hold a moment after they are installed.
//!
//! ```ignore
//! let installation = Installation::of_chart(&testbed, &[]).await?;
//! let operator = installation.operator(&testbed).flag("--max-workers", "4").ready().await?;
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Operator, Testbed};

/// Namespace that the chart is installed into; the settings live there, too.
pub const HOME: &str = "sluice-system";
const RELEASE: &str = "sluice";
const POLICIES: Duration = Duration::from_secs(30);

/// The chart in a cluster.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The rights of the operator's service account, and no others.
    pub kubeconfig: PathBuf,
    command: ContainerCommand,
}

/// What the container of the chart's Deployment is told.
#[derive(Clone, Debug)]
pub struct ContainerCommand {
    /// The first is the subcommand.
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// An operator about to be started: as the chart says, on the loopback address, looking at AWS more often.
pub struct OperatorBuilder<'a> {
    testbed: &'a Testbed,
    command: ContainerCommand,
    kubeconfig: PathBuf,
    port: u16,
}

impl Installation {
    /// Install or upgrade it, with these arguments to helm besides, such as `--set=maxWorkers=4`.
    pub async fn of_chart(testbed: &Testbed, more: &[&str]) -> Result<Self> {
        let chart = chart();
        let mut arguments = vec![
            "upgrade",
            "--install",
            RELEASE,
            &chart,
            "--namespace",
            HOME,
            "--create-namespace",
        ];
        arguments.extend(more);
        testbed.helm(&arguments).await?.success()?;
        policies_hold(testbed).await?;
        let installed = ["-n", HOME, "get", "deployment", RELEASE, "-o", "json"];
        let deployment = serde_json::from_str(&testbed.kubectl(&installed).await?.success()?)?;
        Ok(Self {
            kubeconfig: testbed.kubeconfig_for_service_account(HOME, RELEASE).await?,
            command: ContainerCommand::of_deployment(&deployment)?,
        })
    }

    /// The operator that this build made, under the chart's rights.
    pub fn operator<'a>(&self, testbed: &'a Testbed) -> Result<OperatorBuilder<'a>> {
        let port = Testbed::free_port()?;
        let builder = OperatorBuilder {
            testbed,
            command: self.command.clone(),
            kubeconfig: self.kubeconfig.clone(),
            port,
        };
        Ok(builder
            .flag("--metrics-addr", &format!("127.0.0.1:{port}"))
            .flag("--aws-poll-interval", "2s")
            .flag("--image-poll-interval", "1s"))
    }
}

/// Waits until the chart's policies on upgrade requests are acted on, if it brought them. The API server reads them a moment
/// later, and one that writes into a request answers 503 until it knows the schema of the definition.
async fn policies_hold(testbed: &Testbed) -> Result<()> {
    let installed = async |kind: &str, name: &str| {
        let found = testbed
            .kubectl(&["get", kind, name, "--ignore-not-found", "-o", "name"])
            .await?;
        // A server before 1.36 does not know the kind.
        anyhow::Ok(found.success().is_ok_and(|found| !found.trim().is_empty()))
    };
    let is_judged = installed("validatingadmissionpolicy", "sluice-requests").await?;
    if !is_judged || !installed("crd", "instancegroupupgraderequests.instancemgr.keikoproj.io").await? {
        return Ok(());
    }
    let stamps = installed("mutatingadmissionpolicy", "sluice-stamp").await?;
    let operator = format!("system:serviceaccount:{HOME}:{RELEASE}");
    let decided = |spec: Value| {
        let mut request = json!({
            "apiVersion": "instancemgr.keikoproj.io/v1alpha1", "kind": "InstanceGroupUpgradeRequest",
            "metadata": {"name": "probe", "namespace": HOME},
            "spec": {"instanceGroupRef": {"name": "probe", "uid": "probe"}, "reason": "ImageDrift",
                "target": {"fingerprint": "probe"}},
        });
        let fields = spec.as_object().into_iter().flatten();
        fields.for_each(|(field, value)| request["spec"][field] = value.clone());
        request.to_string()
    };
    let create = [
        "create",
        "--dry-run=server",
        "-f",
        "-",
        "-o",
        "jsonpath={.spec.approvedBy}",
    ];
    let as_operator = [&create[..], &["--as", &operator]].concat();
    testbed
        .until(POLICIES, "the policies on upgrade requests", async || {
            let refused = testbed.kubectl_stdin(&create, &decided(json!({}))).await?.failure()?;
            ensure!(refused.contains("only the operator"), "{refused}");
            if stamps {
                let answer = testbed
                    .kubectl_stdin(&as_operator, &decided(json!({"approved": true})))
                    .await?;
                // Without the auto-approver the operator may not decide; that is asked after the name was written.
                if answer.stderr.contains("lacks the verb approve") {
                    return Ok(Some(()));
                }
                let by = answer.success()?;
                ensure!(by == operator, "approvedBy is {by:?}");
            }
            Ok(Some(()))
        })
        .await
}

impl ContainerCommand {
    pub fn of_deployment(deployment: &Value) -> Result<Self> {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let arguments = container["args"].as_array().context("a container without arguments")?;
        let arguments: Option<Vec<_>> = arguments.iter().map(text).collect();
        let variables = container["env"].as_array().into_iter().flatten();
        // What the kubelet would fill in. The operator runs beside the cluster, on none of its nodes.
        let downward = |variable: &Value| match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some("metadata.namespace") => Some(HOME.to_owned()),
            _ => None,
        };
        let on_a_node = |variable: &&Value| variable["valueFrom"]["fieldRef"]["fieldPath"] != "spec.nodeName";
        let environment: Option<Vec<_>> = variables
            .filter(on_a_node)
            .map(|variable| {
                let value = text(&variable["value"]).or_else(|| downward(variable));
                Some((text(&variable["name"])?, value?))
            })
            .collect();
        let arguments = arguments.context("an argument that is no text")?;
        ensure!(
            arguments
                .iter()
                .skip(1)
                .all(|argument| argument.starts_with("--") && argument.contains('=')),
            "an argument is no --flag=value: {arguments:?}"
        );
        Ok(Self {
            arguments,
            environment: environment.context("a variable that neither the chart nor the kubelet fills in")?,
        })
    }

    fn set(&mut self, name: &str, value: &str) {
        self.arguments
            .retain(|argument| argument.split_once('=').is_none_or(|(known, _)| known != name));
        self.arguments.push(format!("{name}={value}"));
    }
}

impl OperatorBuilder<'_> {
    /// `--name` with a value, in place of what the chart says.
    #[must_use]
    pub fn flag(mut self, name: &str, value: &str) -> Self {
        self.command.set(name, value);
        self
    }

    /// Several of them.
    #[must_use]
    pub fn flags(self, flags: &[(&str, &str)]) -> Self {
        flags
            .iter()
            .fold(self, |builder, (name, value)| builder.flag(name, value))
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Another way to the API server, or other rights.
    #[must_use]
    pub fn kubeconfig(mut self, kubeconfig: &Path) -> Self {
        kubeconfig.clone_into(&mut self.kubeconfig);
        self
    }

    /// Start it; it answers `/healthz`, but need not be ready.
    pub async fn up(self) -> Result<Operator> {
        let (mut operator, port) = (self.spawn()?, self.port);
        operator.up(port).await?;
        Ok(operator)
    }

    /// Start it and wait until it is ready.
    pub async fn ready(self) -> Result<Operator> {
        let (mut operator, port) = (self.spawn()?, self.port);
        operator.ready(port).await?;
        Ok(operator)
    }

    fn spawn(&self) -> Result<Operator> {
        let arguments: Vec<_> = self.command.arguments.iter().map(String::as_str).collect();
        let environment = self.command.environment.iter();
        let environment: Vec<_> = environment
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Operator::start(self.testbed, binary(), &arguments, &environment, &self.kubeconfig)
    }
}

/// The folder of the chart.
pub fn chart() -> String {
    format!("{}/charts/sluice", env!("CARGO_MANIFEST_DIR"))
}

/// The operator's program.
pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sluice"))
}
