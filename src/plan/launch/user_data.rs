//! User data of Amazon Linux 2023: a MIME document that cloud-init and nodeadm read.
//!
//! Owns the text. Values reach it as JSON, never by pasting into a shell line, so nothing in a label can run.
//! Must not log or shorten it: user data may hold secrets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::instance_group::UserDataStage;
use crate::plan::facts::Cluster;

/// What the node's own configuration is made from.
#[derive(Clone, Copy, Debug)]
pub struct NodeConfig<'a> {
    /// The cluster to join.
    pub cluster: &'a Cluster,
    /// Labels to register with.
    pub labels: &'a BTreeMap<String, String>,
    /// Taints to register with.
    pub taints: &'a [Taint],
    /// Most pods on the node; absent = what nodeadm computes.
    pub max_pods: Option<i64>,
}

/// A part of the MIME document.
struct Part {
    content_type: &'static str,
    body: String,
}

const SHELL: &str = "text/x-shellscript; charset=\"us-ascii\"";
const NODE_CONFIG: &str = "application/node.eks.aws";

/// Renders the document: scripts before, our node configuration, the manifest's own (nodeadm merges them in
/// order, so the manifest's wins), scripts after.
///
/// On this family cloud-init runs every script before nodeadm joins the node; a `PostBootstrap` stage still comes
/// last among them.
#[must_use]
pub fn amazon_linux_2023(config: &NodeConfig<'_>, stages: &[UserDataStage]) -> String {
    let of = |name: &'static str, content_type: &'static str| {
        stages
            .iter()
            .filter(move |stage| stage.stage.eq_ignore_ascii_case(name))
            .map(move |stage| Part {
                content_type,
                body: stage_text(&stage.data),
            })
    };
    let mut parts: Vec<Part> = of("PreBootstrap", SHELL).collect();
    parts.push(Part {
        content_type: NODE_CONFIG,
        body: format!("{:#}\n", node_config(config)),
    });
    parts.extend(of("NodeConfigYaml", NODE_CONFIG));
    parts.extend(of("PostBootstrap", SHELL));
    mime(&parts)
}

/// nodeadm's configuration, API `node.eks.aws/v1alpha1`.
fn node_config(config: &NodeConfig<'_>) -> Value {
    let labels: Vec<String> = config
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let mut flags = vec![format!("--node-labels={}", labels.join(","))];
    if !config.taints.is_empty() {
        let mut taints: Vec<String> = config.taints.iter().map(taint).collect();
        taints.sort();
        flags.push(format!("--register-with-taints={}", taints.join(",")));
    }
    let mut kubelet = json!({ "flags": flags });
    if let Some(max_pods) = config.max_pods.filter(|pods| *pods > 0) {
        kubelet["config"] = json!({ "maxPods": max_pods });
    }
    json!({
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": config.cluster.name,
                "apiServerEndpoint": config.cluster.endpoint,
                "certificateAuthority": config.cluster.certificate_authority,
                "cidr": config.cluster.service_cidr,
            },
            "kubelet": kubelet,
        },
    })
}

/// A taint in the kubelet's own form.
fn taint(taint: &Taint) -> String {
    format!(
        "{}={}:{}",
        taint.key,
        taint.value.as_deref().unwrap_or_default(),
        taint.effect
    )
}

/// A stage's text: plain, or base64 as the peer's users may write it. What only looks like base64 (`shutdown` has
/// the shape) is kept as it is: decoded text has to be printable.
fn stage_text(data: &str) -> String {
    let compact: String = data.split_ascii_whitespace().collect();
    let decoded = (compact.len() >= 16).then(|| STANDARD.decode(&compact).ok()).flatten();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| {
        text.chars()
            .all(|character| !character.is_control() || character.is_ascii_whitespace())
    });
    let mut text = text.unwrap_or_else(|| data.to_owned());
    // Two stages must not run into one line.
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Joins parts with a boundary that is made from their content, so that equal content gives equal bytes and
/// no part can hold it.
fn mime(parts: &[Part]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.body.as_bytes());
        hash.update([0]);
    }
    let digest = hex::encode(hash.finalize());
    let boundary = format!("sluice-{}", &digest[..24]);
    let mut text = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n");
    for part in parts {
        let _ = write!(
            text,
            "--{boundary}\nContent-Type: {}\n\n{}",
            part.content_type, part.body
        );
    }
    let _ = writeln!(text, "--{boundary}--");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn cluster() -> Cluster {
        Cluster {
            name: "demo".to_owned(),
            kubernetes_version: "1.33".to_owned(),
            endpoint: "https://api.example".to_owned(),
            certificate_authority: "Q0E=".to_owned(),
            service_cidr: "10.100.0.0/16".to_owned(),
            vpc_id: "vpc-1".to_owned(),
        }
    }

    fn stage(name: &str, data: &str) -> UserDataStage {
        UserDataStage {
            name: None,
            stage: name.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn the_whole_document() {
        let labels = BTreeMap::from([
            ("a".to_owned(), "'; reboot #".to_owned()),
            ("b".to_owned(), String::new()),
        ]);
        let taints = [
            Taint {
                key: "z".to_owned(),
                value: Some("1".to_owned()),
                effect: "NoSchedule".to_owned(),
                time_added: None,
            },
            Taint {
                key: "k".to_owned(),
                value: None,
                effect: "NoExecute".to_owned(),
                time_added: None,
            },
        ];
        let text = amazon_linux_2023(
            &NodeConfig {
                cluster: &cluster(),
                labels: &labels,
                taints: &taints,
                max_pods: Some(29),
            },
            &[
                stage("postbootstrap", "echo after"),
                stage("PreBootstrap", "echo one"),
                stage("PreBootstrap", "echo two"),
                stage("NodeConfigYaml", "kind: NodeConfig\n"),
            ],
        );
        let boundary = text.split('"').nth(1).unwrap().to_owned();
        assert_eq!(
            text.replace(&boundary, "BOUNDARY"),
            r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"

echo one
--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"

echo two
--BOUNDARY
Content-Type: application/node.eks.aws

{
  "apiVersion": "node.eks.aws/v1alpha1",
  "kind": "NodeConfig",
  "spec": {
    "cluster": {
      "apiServerEndpoint": "https://api.example",
      "certificateAuthority": "Q0E=",
      "cidr": "10.100.0.0/16",
      "name": "demo"
    },
    "kubelet": {
      "config": {
        "maxPods": 29
      },
      "flags": [
        "--node-labels=a='; reboot #,b=",
        "--register-with-taints=k=:NoExecute,z=1:NoSchedule"
      ]
    }
  }
}
--BOUNDARY
Content-Type: application/node.eks.aws

kind: NodeConfig
--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"

echo after
--BOUNDARY--
"#
        );
    }

    #[test]
    fn base64_is_decoded_only_where_it_is_text() {
        assert_eq!(stage_text("shutdown"), "shutdown\n");
        assert_eq!(stage_text("shutdownshutdown"), "shutdownshutdown\n");
        assert_eq!(stage_text(&STANDARD.encode("echo hello there")), "echo hello there\n");
        assert_eq!(
            stage_text(&STANDARD.encode("echo hi")),
            format!("{}\n", STANDARD.encode("echo hi"))
        );
        assert_eq!(stage_text("echo a\n"), "echo a\n");
    }

    #[test]
    fn no_taints_and_no_limit_leave_no_trace() {
        let labels = BTreeMap::new();
        for max_pods in [None, Some(0)] {
            let text = amazon_linux_2023(
                &NodeConfig {
                    cluster: &cluster(),
                    labels: &labels,
                    taints: &[],
                    max_pods,
                },
                &[],
            );
            assert!(!text.contains("taints") && !text.contains("maxPods"), "{text}");
        }
    }
}
