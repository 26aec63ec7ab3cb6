//! Tests of references, with answers as EC2 gives them.

use pretty_assertions::assert_eq;

use super::*;

fn found(id: &str, name: Option<&str>) -> Match<String> {
    Match {
        id: id.into(),
        name: name.map(Into::into),
        value: id.into(),
    }
}

fn references(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn answered(asked: &[&str], matches: &[(&str, Option<&str>)]) -> BTreeMap<String, Fact<String>> {
    let mut facts = BTreeMap::new();
    for question in Question::split("vpc-1", &references(asked), "sg-", "group-id") {
        let matches = matches.iter().map(|(id, name)| found(id, *name)).collect();
        question.answer(&Ok(matches), "DescribeSecurityGroups", "security groups", &mut facts);
    }
    facts
}

#[test]
fn ids_and_names_are_asked_for_apart() {
    let asked = references(&["sg-1", "web", "db*"]);
    let questions = Question::split("vpc-1", &asked, "sg-", "group-id");
    assert_eq!(questions.len(), 2);
    assert_eq!(questions[0].filters()[1].name(), Some("group-id"));
    assert_eq!(questions[1].filters()[1].name(), Some("tag:Name"));
    assert_eq!(questions[1].filters()[1].values(), [r"db\*", "web"]);
    assert_eq!(questions[1].filters()[0].values(), ["vpc-1"]);
}

#[test]
fn each_reference_has_an_answer() {
    let facts = answered(
        &["sg-1", "sg-2", "web", "none"],
        &[("sg-1", Some("other")), ("sg-3", Some("web"))],
    );
    assert_eq!(facts["sg-1"], Fact::Found("sg-1".into()));
    assert_eq!(facts["sg-2"], Fact::NotFound);
    assert_eq!(facts["web"], Fact::Found("sg-3".into()));
    assert_eq!(facts["none"], Fact::NotFound);
}

#[test]
fn an_ambiguous_name_is_invalid_and_names_both() {
    let facts = answered(&["web"], &[("sg-2", Some("web")), ("sg-1", Some("web"))]);
    let Fact::Unknown(failure) = &facts["web"] else {
        panic!("{facts:?}")
    };
    assert_eq!(failure.class, FailureClass::Invalid);
    assert_eq!(
        failure.message,
        r#"2 security groups of the VPC are named "web": sg-1, sg-2"#
    );
}

#[test]
fn a_failed_call_is_unknown_for_all_its_references() {
    let mut facts = BTreeMap::<String, Fact<String>>::new();
    let failed = failure(Service::Ec2, "DescribeSubnets", FailureClass::Throttled, None, "");
    for question in Question::split("vpc-1", &references(&["a", "b"]), "subnet-", "subnet-id") {
        question.answer(&Err(failed.clone()), "DescribeSubnets", "subnets", &mut facts);
    }
    assert_eq!(
        facts.into_values().collect::<Vec<_>>(),
        [Fact::Unknown(failed.clone()), Fact::Unknown(failed)]
    );
}
