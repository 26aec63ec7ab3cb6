//! Generated files are what the code generates. `UPDATE=1 cargo test --test repository` rewrites them.

use std::fs;
use std::path::PathBuf;

use pretty_assertions::assert_eq;
use sluice::api::crds;

/// The definitions stand beside the code and in the chart, byte for byte the same.
#[test]
fn custom_resource_definitions_are_current() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for definition in crds::all() {
        let wanted = crds::to_yaml(&definition).unwrap();
        let name = format!("{}.yaml", definition.metadata.name.unwrap());
        for folder in ["crds", "charts/sluice/crds"] {
            let path = root.join(folder).join(&name);
            if std::env::var_os("UPDATE").is_some() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &wanted).unwrap();
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(
                found,
                wanted,
                "{} is out of date: UPDATE=1 cargo test --test repository",
                path.display()
            );
        }
    }
    for folder in ["crds", "charts/sluice/crds"] {
        let count = fs::read_dir(root.join(folder)).unwrap().count();
        assert_eq!(count, crds::all().len(), "{folder} holds something else too");
    }
}

/// The subcommand prints what the files hold.
#[test]
fn the_command_prints_them() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sluice"))
        .arg("crds")
        .output()
        .unwrap();
    assert!(output.status.success());
    let texts: Vec<String> = crds::all()
        .iter()
        .map(|definition| crds::to_yaml(definition).unwrap())
        .collect();
    let wanted = format!(
        "---
{}",
        texts.join(
            "---
"
        )
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted);
}
