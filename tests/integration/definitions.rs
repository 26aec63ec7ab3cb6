//! Owns installing the definitions of `crds/` into a testbed. It must not change what they say.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;

use crate::testbed::Testbed;

const SOON: Duration = Duration::from_secs(30);

/// Who installs; the same for every call, so that what a later call leaves out goes away.
const MANAGER: &str = "sluice-tests";

/// The definitions as they stand in `crds/`, read at run time: a test sees them as a cluster would get them.
pub fn manifests() -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    let listed = folder
        .read_dir()
        .with_context(|| format!("listing {}", folder.display()))?;
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    ensure!(!paths.is_empty(), "{} is empty", folder.display());
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path)?;
        anyhow::Ok(serde_saphyr::from_str(&text)?)
    };
    paths
        .iter()
        .map(|path| read(path).with_context(|| format!("reading {}", path.display())))
        .collect()
}

/// Both kinds are served by this testbed. Any test may call it at any time: a second call changes nothing.
pub async fn installed(testbed: &Testbed) -> Result<()> {
    install(testbed, &manifests()?).await
}

/// Applies definitions, other ones than those of `crds/` too, and waits until they are served.
pub async fn install(testbed: &Testbed, definitions: &[Value]) -> Result<()> {
    let client = testbed.admin();
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let name = text(definition, "/metadata/name")?;
        api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(definition))
            .await
            .with_context(|| format!("installing {name}"))?;
    }
    for definition in definitions {
        let name = text(definition, "/metadata/name")?;
        testbed
            .until(SOON, &format!("{name} to be established"), async || {
                Ok(is_established(&api.get(name).await?).then_some(()))
            })
            .await?;
        let (group, plural) = (
            text(definition, "/spec/group")?,
            text(definition, "/spec/names/plural")?,
        );
        testbed
            .until(SOON, &format!("{name} to be discovered"), async || {
                Ok(is_discovered(&client, group, plural).await?.then_some(()))
            })
            .await?;
    }
    Ok(())
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.with_context(|| format!("no text at {pointer}"))
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref());
    let holds = |name: &str| {
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == name && condition.status == "True")
    };
    holds("Established") && holds("NamesAccepted")
}

/// What kubectl goes by: it comes after the definition counts as established.
async fn is_discovered(client: &Client, group: &str, plural: &str) -> Result<bool> {
    let groups = client.list_api_groups_aggregated().await?.items;
    Ok(groups
        .iter()
        .filter(|found| found.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()) == Some(group))
        .flat_map(|found| &found.versions)
        .flat_map(|version| &version.resources)
        .any(|resource| resource.resource.as_deref() == Some(plural)))
}
