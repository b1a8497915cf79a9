//! The network for Graphviz: `dot -Tpdf`.

use std::fmt::Write;

use muster_engine::explain::counted;
use muster_engine::ids::DomainId;
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;

use super::svg::TINTS;
use super::{Chart, Room};
use crate::render::map::NAMED_NODES;

pub fn dot(cluster: &Cluster) -> String {
    let chart = Chart::new(cluster);
    let mut text = String::from(
        "digraph topology {\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", color=\"#64748b\"];\n  edge [arrowhead=none, color=\"#64748b\"];\n",
    );
    chart.write(chart.top(), &mut text).expect("writing to a string can't fail");
    for (name, reason) in chart.left() {
        let label = escaped(&format!("{name}\nnot in the tree: {reason}"));
        let style = "style=\"rounded,dashed\", fontcolor=\"#b91c1c\"";
        writeln!(text, "  \"left {}\" [label=\"{label}\", {style}];", escaped(name))
            .expect("writing to a string can't fail");
    }
    text + "}\n"
}

impl Chart<'_> {
    fn write(&self, domain: DomainId, out: &mut String) -> std::fmt::Result {
        let (name, nodes) = (self.name(domain), self.nodes(domain));
        let mut lines = vec![name.to_owned()];
        lines.extend(Some(self.tier_words(domain)).filter(|words| !words.is_empty()));
        lines.push(counted(nodes.len() as u64, "node"));
        lines.push(self.in_use(self.room(nodes)));
        let gangs: Vec<&str> =
            self.gangs(domain).iter().map(|&gang| self.gang_name(gang)).collect();
        lines.extend(gangs.chunks(4).map(|names| names.join(", ")));
        let id = format!("domain {name}");
        write_box(out, &id, &lines, self.room(nodes))?;
        for child in self.cluster.domains.children(domain) {
            self.write(child, out)?;
            writeln!(out, "  \"{}\" -> \"domain {}\";", escaped(&id), escaped(self.name(child)))?;
        }
        // A picture of a thousand boxes side by side is unreadable.
        if self.nodes(ROOT).len() > NAMED_NODES {
            return Ok(());
        }
        for &node in self.own_nodes(domain) {
            let name = &self.cluster.nodes.name[node];
            let mut lines = vec![name.to_string(), self.in_use(self.room(&[node]))];
            let pods = self.pods_on(node);
            lines.extend(
                pods.iter().map(|(key, pods)| format!("{} ×{pods}", self.names.short(key))),
            );
            let own = format!("node {name}");
            write_box(out, &own, &lines, self.room(&[node]))?;
            writeln!(out, "  \"{}\" -> \"{}\";", escaped(&id), escaped(&own))?;
        }
        Ok(())
    }
}

fn write_box(out: &mut String, id: &str, lines: &[String], room: Room) -> std::fmt::Result {
    let tint = TINTS[room.step(TINTS.len())];
    let label = escaped(&lines.join("\n"));
    writeln!(out, "  \"{}\" [label=\"{label}\", fillcolor=\"{tint}\"];", escaped(id))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
