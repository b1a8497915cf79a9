//! HyperNodes as YAML with one line per member, so that a new member is a new line and changes no
//! other.

use std::io::{self, Write};

use muster_api::{HyperNode, Member, MemberKind};

/// Words that YAML, in one version or another, does not read as text.
const NOT_TEXT: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

pub fn write(object: &HyperNode, out: &mut impl Write) -> io::Result<()> {
    let name = scalar(&object.metadata.name);
    writeln!(
        out,
        "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n  name: {name}"
    )?;
    writeln!(out, "  labels:")?;
    for (key, value) in &object.metadata.labels {
        writeln!(out, "    {}: {}", scalar(key), scalar(value))?;
    }
    let (tier, tier_name) = (object.spec.tier, scalar(&object.spec.tier_name));
    writeln!(out, "spec:\n  tier: {tier}\n  tierName: {tier_name}\n  members:")?;
    object.spec.members.iter().try_for_each(|member| writeln!(out, "  - {}", line(member)))
}

fn line(member: &Member) -> String {
    let kind = match member.kind {
        MemberKind::Node => "Node",
        MemberKind::HyperNode => "HyperNode",
    };
    let name = member.selector.exact_match.as_ref().map_or("", |exact| exact.name.as_str());
    format!("{{type: {kind}, selector: {{exactMatch: {{name: {}}}}}}}", scalar(name))
}

/// Plain words stay as they are, everything else is quoted: a node may be called 12, 1e3 or no.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '.', '/', '_'].contains(&c);
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    match word && !NOT_TEXT.contains(&text.to_lowercase().as_str()) {
        true => text.to_owned(),
        // A string of JSON is a string of YAML.
        false => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_not_quoted() {
        for word in ["rack-r07", "app.kubernetes.io/managed-by", "a", "nodes"] {
            assert_eq!(scalar(word), word);
        }
        for other in ["12", "1e3", "0x1f", "no", "Null", "", "a: b", "row 7", "#1", "é\n"] {
            let tree = muster_yaml::parse(&scalar(other)).expect("it is YAML");
            assert_eq!(tree.as_str(), Some(other));
        }
    }
}
