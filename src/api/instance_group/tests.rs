//! Whole manifests and statuses, read and written again; the names on the wire.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kube::CustomResourceExt;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;

/// Every field of an Auto Scaling group, of its strategy and of the additions.
const EKS: &str = r#"
apiVersion: instancemgr.keikoproj.io/v1alpha1
kind: InstanceGroup
metadata:
  name: workers
  namespace: team-a
  annotations: {instancemgr.keikoproj.io/lock-upgrades: "true"}
spec:
  provisioner: eks
  strategy:
    type: rollingUpdate
    rollingUpdate:
      maxUnavailable: 25%
      drainTimeout: 20m
      readyTimeout: 1h30m
      deleteBarePods: true
      drainOnDelete: false
    crd:
      spec: "kind: RollingUpgrade"
      crdName: rollingupgrades
      concurrencyPolicy: forbid
      maxRetries: 2
      statusJSONPath: .status.currentStatus
      statusSuccessString: completed
      statusFailureString: error
  eks:
    minSize: 1
    maxSize: 6
    type: LaunchTemplate
    warmPool: {minSize: 0, maxSize: -1}
    configuration:
      clusterName: blue
      keyPairName: key
      image: ssm:///golden/image
      kubernetesVersion: "1.33"
      instanceType: m5.large
      securityGroups: [sg-1, nodes]
      subnets: [subnet-1, private-a]
      suspendProcesses: [AZRebalance]
      bootstrapArguments: --v=2
      bootstrapOptions: {maxPods: 58, containerRuntime: containerd}
      spotPrice: "0.4"
      tags: [{key: team, value: a}]
      tagSpecifications: [{resourceType: volume, tags: [{key: team, value: a}]}]
      labels: {tier: web}
      taints: [{key: dedicated, value: web, effect: NoSchedule}]
      userData: [{name: greet, stage: PreBootstrap, data: echo hi}]
      roleName: existing
      instanceProfileName: existing-profile
      managedPolicies: [CloudWatchAgentServerPolicy]
      metricsCollection: [all]
      licenseSpecifications: ["arn:aws:license-manager:us-west-2:1:license-configuration:x"]
      placement: {availabilityZone: us-west-2a, hostResourceGroupArn: "arn:aws:resource-groups:us-west-2:1:group/x", tenancy: host}
      metadataOptions: {httpEndpoint: enabled, httpTokens: required, httpPutHopLimit: 2}
      volumes:
      - name: /dev/xvda
        type: gp3
        size: 40
        iops: 3000
        throughput: 125
        deleteOnTermination: true
        encrypted: true
        mountOptions: {fileSystem: xfs, mount: /data, persistance: false}
      - {name: /dev/xvdb, type: gp2, size: 0, snapshotId: snap-1}
      lifecycleHooks:
      - name: drain
        lifecycle: Terminate
        defaultResult: CONTINUE
        heartbeatTimeout: 300
        notificationArn: arn:aws:sns:us-west-2:1:topic
        metadata: text
        roleArn: arn:aws:iam::1:role/notify
      mixedInstancesPolicy:
        strategy: LowestPrice
        spotPools: 2
        baseCapacity: 1
        spotRatio: 50
        instancePool: SubFamilyFlexible
        instanceTypes: [{type: m5.xlarge, weight: 2}]
"#;

/// Every field of a managed node group.
const MANAGED: &str = r"
apiVersion: instancemgr.keikoproj.io/v1alpha1
kind: InstanceGroup
metadata: {name: managed}
spec:
  provisioner: eks-managed
  strategy: {type: managed}
  eks-managed:
    minSize: 2
    maxSize: 4
    configuration:
      clusterName: blue
      volSize: 20
      instanceType: m5.large
      nodeLabels: {tier: web}
      nodeRole: arn:aws:iam::1:role/nodes
      securityGroups: [sg-1]
      keyPairName: key
      tags: [{key: team, value: a}]
      subnets: [subnet-1]
      amiType: AL2_x86_64
      releaseVersion: 1.33.0-20260101
      version: '1.33'
";

/// Every field of a Fargate profile.
const FARGATE: &str = r"
apiVersion: instancemgr.keikoproj.io/v1alpha1
kind: InstanceGroup
metadata: {name: fargate}
spec:
  provisioner: eks-fargate
  strategy: {type: managed}
  eks-fargate:
    clusterName: blue
    podExecutionRoleArn: arn:aws:iam::1:role/pods
    subnets: [subnet-1]
    selectors: [{namespace: default, labels: {tier: web}}]
    tags: [{team: a, cost: b}, {owner: c}]
";

/// Every leaf and node of the spec's schema that the API had before this operator, below each
/// section's own name.
const OLD_NAMES: &str = "
provisioner strategy strategy.type strategy.rollingUpdate strategy.rollingUpdate.maxUnavailable
strategy.crd strategy.crd.spec strategy.crd.crdName strategy.crd.concurrencyPolicy strategy.crd.maxRetries
strategy.crd.statusJSONPath strategy.crd.statusSuccessString strategy.crd.statusFailureString
eks eks.minSize eks.maxSize eks.type eks.warmPool eks.warmPool.minSize eks.warmPool.maxSize eks.configuration
eks.configuration.{clusterName keyPairName image instanceType securityGroups volumes subnets suspendProcesses
bootstrapArguments bootstrapOptions bootstrapOptions.maxPods bootstrapOptions.containerRuntime spotPrice
tags tags.key tags.value tagSpecifications tagSpecifications.resourceType tagSpecifications.tags
tagSpecifications.tags.key tagSpecifications.tags.value labels taints taints.key taints.value taints.effect
taints.timeAdded userData userData.name userData.stage userData.data roleName instanceProfileName managedPolicies
metricsCollection lifecycleHooks lifecycleHooks.name lifecycleHooks.lifecycle lifecycleHooks.defaultResult
lifecycleHooks.heartbeatTimeout lifecycleHooks.notificationArn lifecycleHooks.roleArn lifecycleHooks.metadata
mixedInstancesPolicy mixedInstancesPolicy.strategy mixedInstancesPolicy.spotPools mixedInstancesPolicy.baseCapacity
mixedInstancesPolicy.spotRatio mixedInstancesPolicy.instancePool mixedInstancesPolicy.instanceTypes
mixedInstancesPolicy.instanceTypes.type mixedInstancesPolicy.instanceTypes.weight licenseSpecifications
placement placement.availabilityZone placement.hostResourceGroupArn placement.tenancy
metadataOptions metadataOptions.httpEndpoint metadataOptions.httpTokens metadataOptions.httpPutHopLimit
volumes.name volumes.type volumes.size volumes.iops volumes.throughput volumes.deleteOnTermination volumes.encrypted
volumes.snapshotId volumes.mountOptions volumes.mountOptions.fileSystem volumes.mountOptions.mount
volumes.mountOptions.persistance}
eks-managed eks-managed.minSize eks-managed.maxSize eks-managed.configuration
eks-managed.configuration.{clusterName volSize instanceType nodeLabels nodeRole securityGroups keyPairName
tags tags.key tags.value subnets amiType releaseVersion version}
eks-fargate eks-fargate.clusterName eks-fargate.podExecutionRoleArn eks-fargate.subnets eks-fargate.selectors
eks-fargate.selectors.namespace eks-fargate.selectors.labels eks-fargate.tags
";

/// What this operator adds to the spec.
const NEW_NAMES: [&str; 5] = [
    "eks.configuration.kubernetesVersion",
    "strategy.rollingUpdate.drainTimeout",
    "strategy.rollingUpdate.readyTimeout",
    "strategy.rollingUpdate.deleteBarePods",
    "strategy.rollingUpdate.drainOnDelete",
];

/// Resolves `prefix.{a b}` into `prefix.a` and `prefix.b`.
fn expand(names: &str) -> BTreeSet<String> {
    let mut prefix = String::new();
    let mut found = BTreeSet::new();
    for word in names.split_whitespace() {
        let (start, name) = word.split_once('{').unwrap_or(("", word));
        prefix = if start.is_empty() { prefix } else { start.to_owned() };
        found.insert(format!("{prefix}{}", name.trim_end_matches('}')));
        if name.ends_with('}') {
            prefix.clear();
        }
    }
    found
}

/// Paths of all properties below a schema; lists add nothing to a path.
fn collect(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let schema = schema.get("items").unwrap_or(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        collect(inner, &path, found);
        found.insert(path);
    }
}

/// The schema of one top-level field of the kind.
fn schema_of(field: &str) -> Value {
    let crd = serde_json::to_value(InstanceGroup::crd()).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][field].clone()
}

fn read(yaml: &str) -> InstanceGroup {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn full_manifests_survive_a_round_trip() {
    for yaml in [EKS, MANAGED, FARGATE] {
        let text: Value = serde_saphyr::from_str(yaml).unwrap();
        let written = serde_json::to_value(read(yaml)).unwrap();
        assert_eq!(written, text);
        assert_eq!(serde_json::from_value::<InstanceGroup>(written).unwrap(), read(yaml));
    }
}

#[test]
fn the_spec_has_the_names_of_the_api_and_the_additions_and_no_other() {
    let mut found = BTreeSet::new();
    collect(&schema_of("spec"), "", &mut found);
    let mut wanted = expand(OLD_NAMES);
    wanted.extend(NEW_NAMES.map(str::to_owned));
    assert_eq!(found, wanted);
}

#[test]
fn the_full_manifests_use_every_name_but_the_time_of_a_taint() {
    let mut used = BTreeSet::new();
    for yaml in [EKS, MANAGED, FARGATE] {
        uses(&serde_saphyr::from_str::<Value>(yaml).unwrap()["spec"], "", &mut used);
    }
    let mut wanted = expand(OLD_NAMES);
    wanted.extend(NEW_NAMES.map(str::to_owned));
    let missing: Vec<_> = wanted.difference(&used).collect();
    assert_eq!(missing, ["eks.configuration.taints.timeAdded"]);
}

/// Paths of all values below a value; lists add nothing to a path.
fn uses(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| uses(item, path, found)),
        Value::Object(fields) => {
            for (name, inner) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                uses(inner, &path, found);
                found.insert(path);
            }
        }
        _ => {}
    }
}

#[test]
fn what_the_schema_demands_is_what_it_always_demanded() {
    let spec = schema_of("spec");
    let at = |path: &str| spec.pointer(path).cloned().unwrap_or(Value::Null);
    assert_eq!(at("/required"), Value::Null);
    assert_eq!(at("/properties/eks/required"), json!(["configuration"]));
    assert_eq!(at("/properties/eks/properties/configuration/required"), Value::Null);
    assert_eq!(at("/properties/strategy/required"), Value::Null);
    let configuration = "/properties/eks/properties/configuration/properties";
    let list = |name: &str| at(&format!("{configuration}/{name}/items/required"));
    assert_eq!(list("volumes"), json!(["name", "size", "type"]));
    assert_eq!(list("userData"), json!(["data", "stage"]));
    assert_eq!(list("taints"), json!(["effect", "key"]));
    assert_eq!(list("lifecycleHooks"), json!(["lifecycle", "name"]));
    assert_eq!(list("tagSpecifications"), json!(["resourceType"]));
    assert_eq!(list("tags"), Value::Null);
    assert_eq!(
        at("/properties/eks-managed/required"),
        json!(["configuration", "maxSize", "minSize"])
    );
    assert_eq!(
        at("/properties/eks-fargate/required"),
        json!(["clusterName", "selectors"])
    );
}

#[test]
fn a_group_that_leaves_most_to_the_settings_is_read() {
    let group = read(
        "{apiVersion: instancemgr.keikoproj.io/v1alpha1, kind: InstanceGroup, metadata: {name: a}, spec: {eks: {minSize: 2, configuration: {instanceType: t2.small}}}}",
    );
    let eks = group.spec.eks.unwrap();
    assert_eq!((eks.effective_min(), eks.effective_max()), (2, 0));
    assert_eq!(eks.configuration.cluster_name, None);
    assert!(eks.configuration.subnets.is_empty());
}

#[test]
fn empty_texts_are_absent() {
    let configuration: EksConfiguration =
        serde_json::from_value(json!({"keyPairName": "", "image": null, "clusterName": "c"})).unwrap();
    assert_eq!(configuration.key_pair_name, None);
    assert_eq!(configuration.image, None);
    assert_eq!(configuration.cluster_name.as_deref(), Some("c"));
}

#[test]
fn a_status_of_the_old_operator_is_read() {
    let status: InstanceGroupStatus = serde_json::from_value(json!({
        "currentState": "ReconcileModified", "currentMin": 1, "currentMax": 6,
        "activeLaunchTemplateName": "lt", "activeLaunchConfigurationName": "lc", "latestTemplateVersion": "12",
        "activeScalingGroupName": "asg", "nodesInstanceRoleArn": "arn:aws:iam::1:role/x",
        "strategyResourceName": "n", "strategyResourceNamespace": "ns", "strategyRetryCount": 2,
        "usingSpotRecommendation": true, "lifecycle": "mixed", "configMD5": "d41d8cd9",
        "conditions": [{"type": "NodesReady", "status": "True"}],
        "provisioner": "eks", "strategy": "rollingUpdate",
    }))
    .unwrap();
    let [condition] = status.conditions.as_slice() else {
        panic!("one condition")
    };
    assert_eq!(
        (condition.type_.as_str(), condition.status.as_str()),
        ("NodesReady", "True")
    );
    assert_eq!(condition.last_transition_time.0, Timestamp::UNIX_EPOCH);
    assert_eq!(status.config_md5.as_deref(), Some("d41d8cd9"));
    assert_eq!(
        status.current_state.as_deref().unwrap().parse(),
        Ok(CurrentState::ReconcileModified)
    );
    let written = serde_json::to_value(&status).unwrap();
    assert_eq!(
        serde_json::from_value::<InstanceGroupStatus>(written.clone()).unwrap(),
        status
    );
    for name in [
        "configMD5",
        "nodesInstanceRoleArn",
        "usingSpotRecommendation",
        "strategyRetryCount",
    ] {
        assert!(written.get(name).is_some(), "{name}");
    }
}

#[test]
fn the_status_has_the_names_of_the_design() {
    let mut found = BTreeSet::new();
    collect(&schema_of("status"), "", &mut found);
    let wanted = expand(
        "currentState currentMin currentMax activeLaunchConfigurationName activeLaunchTemplateName latestTemplateVersion
         activeScalingGroupName nodesInstanceRoleArn strategyResourceName strategyResourceNamespace strategyRetryCount
         usingSpotRecommendation lifecycle configMD5 provisioner strategy observedGeneration message upgradeRequest tagKeys
         conditions conditions.{type status reason message lastTransitionTime observedGeneration}
         image image.{current currentSince previous kubernetesVersion pending nodesOnCurrent nodesOnOther}
         launchTemplate launchTemplate.{id name approvedVersion previousVersion}
         fingerprint fingerprint.{approved desired renderVersion}
         lock lock.{locked source reason until}
         blockedTargets blockedTargets.{fingerprint reason at by lifted}
         rollout rollout.{request fingerprint removedSubnets launchTemplateVersion imageId startedAt progress joining presentAtStart
         shortSince suspendedProcesses ending} rollout.joining.{instanceId since}
         rollout.ending.{result reason message instanceId clearedAt}
         history history.{from to fromImage toImage by when result request message}",
    );
    assert_eq!(found, wanted);
}

#[test]
fn annotations_and_words_are_understood_in_any_case() {
    let mut group = read(EKS);
    assert!(group.is_locked_by_annotation());
    for (value, locks) in [("false", false), ("FALSE", false), ("yes", true), ("", true)] {
        group
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(crate::api::annotation::LOCK_UPGRADES.into(), value.into());
        assert_eq!(group.is_locked_by_annotation(), locks, "{value}");
    }
    group.metadata.annotations = None;
    assert!(!group.is_locked_by_annotation());
    for (word, kind) in [
        ("EKS", Provisioner::Eks),
        ("eks-Managed", Provisioner::EksManaged),
        ("eks-fargate", Provisioner::EksFargate),
    ] {
        group.spec.provisioner = Some(word.into());
        assert_eq!(group.spec.provisioner_kind(), Some(kind));
    }
    for (word, kind) in [
        ("rollingupdate", Some(StrategyKind::RollingUpdate)),
        ("CRD", Some(StrategyKind::Crd)),
        ("Managed", Some(StrategyKind::Managed)),
        ("x", None),
    ] {
        group.spec.strategy = Some(UpgradeStrategy {
            type_: Some(word.into()),
            ..UpgradeStrategy::default()
        });
        assert_eq!(group.spec.strategy_kind(), kind, "{word}");
    }
    group.spec.strategy = None;
    assert_eq!(group.spec.strategy_kind(), Some(StrategyKind::RollingUpdate));
}

#[test]
fn words_are_written_as_the_api_writes_them() {
    assert_eq!(Provisioner::EksManaged.to_string(), "eks-managed");
    assert_eq!(StrategyKind::RollingUpdate.to_string(), "rollingUpdate");
    assert_eq!(CurrentState::Failed.to_string(), "Error");
    assert_eq!(LockSource::Settings.to_string(), "Settings");
}

#[test]
fn images_are_told_apart() {
    for (text, meaning) in [
        ("ami-1", ImageReference::Id("ami-1")),
        ("Latest", ImageReference::Latest),
        ("ssm://recommended", ImageReference::SsmRelease("recommended")),
        ("ssm:///golden/image", ImageReference::SsmParameter("/golden/image")),
        (
            "resolve:ssm:/golden",
            ImageReference::ResolvedByEc2("resolve:ssm:/golden"),
        ),
        ("SSM://x", ImageReference::Id("SSM://x")),
    ] {
        assert_eq!(ImageReference::parse(text), meaning, "{text}");
    }
    assert!(ImageReference::Latest.is_moving());
    assert!(!ImageReference::Id("ami-1").is_moving());
}

#[test]
fn time_limits_have_defaults() {
    let rolling = read(EKS).spec.strategy.unwrap().rolling_update.unwrap();
    assert_eq!(rolling.effective_drain_timeout(), Duration::from_mins(20));
    assert_eq!(rolling.effective_ready_timeout(), Duration::from_mins(90));
    assert!(rolling.may_delete_bare_pods());
    assert!(!rolling.drains_on_delete());
    let silent = RollingUpdate::default();
    assert_eq!(silent.effective_drain_timeout(), Duration::from_mins(15));
    assert!(!silent.may_delete_bare_pods());
    assert!(silent.drains_on_delete());
}
