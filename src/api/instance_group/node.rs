//! The inside of a node: its block devices, its bootstrap and its user data.
//!
//! Owns the wire shape only. It must not decode user data or assemble it.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::schema::filled;

/// One block device of a node.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.iops) || self.iops == 0 || self.type.lowerAscii() in ['io1', 'io2', 'gp3']",
    "iops of a volume needs type io1, io2 or gp3",
))]
#[x_kube(validation = (
    "!has(self.iops) || self.iops == 0 || self.iops >= 100",
    "iops of a volume must be at least 100",
))]
#[x_kube(validation = (
    "!has(self.throughput) || self.throughput == 0 || self.type.lowerAscii() == 'gp3'",
    "throughput of a volume needs type gp3",
))]
#[x_kube(validation = (
    "!has(self.snapshotId) || self.snapshotId == '' || self.size == 0",
    "size of a volume must be 0 when snapshotId is set",
))]
pub struct NodeVolume {
    /// Device name, such as `/dev/xvda`.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// EBS volume type, in any case.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self.lowerAscii() in ['gp2', 'gp3', 'io1', 'io2', 'sc1', 'st1', 'standard']",
        "the type of a volume must be gp2, gp3, io1, io2, sc1, st1 or standard",
    ))]
    #[serde(rename = "type")]
    pub type_: String,
    /// Size in GiB; 0 leaves it to the snapshot or the image.
    #[schemars(range(min = 0, max = 65536))]
    pub size: i64,
    /// Provisioned operations a second.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// Provisioned throughput in MiB a second.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// Whether the volume goes with the instance; absent means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted; absent leaves it to the account's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Snapshot that the volume starts from.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub snapshot_id: Option<String>,
    /// Where the bootstrap mounts the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_options: Option<VolumeMountOptions>,
}

/// Where and how the bootstrap mounts a volume.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMountOptions {
    /// `xfs` or `ext4`, in any case; with another word the volume is not mounted.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub file_system: Option<String>,
    /// Absolute path of the mount point; with another path the volume is not mounted.
    #[schemars(length(max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub mount: Option<String>,
    /// Whether the mount survives a reboot; absent means yes. The spelling is part of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistance: Option<bool>,
}

/// Settings of the node's bootstrap.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapOptions {
    /// Most pods on a node; absent or 0 leaves it to the operator.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<i64>,
    /// `containerd` or `dockerd`.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self in ['', 'containerd', 'dockerd']",
        "bootstrapOptions.containerRuntime must be containerd or dockerd",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub container_runtime: Option<String>,
}

/// A script or a document added to the user data.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct UserDataStage {
    /// A name for the reader; it has no effect.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub name: Option<String>,
    /// `PreBootstrap`, `PostBootstrap` or `NodeConfigYaml`, in any case; others are dropped.
    #[schemars(length(max = 255))]
    pub stage: String,
    /// The text, plain or in base64.
    #[schemars(length(max = 24576))]
    pub data: String,
}
