//! Draws the boxes: domains with a bar of the gangs in them, nodes with their units.

use std::collections::BTreeMap;
use std::fmt::Write;

use muster_engine::explain::counted;
use muster_engine::ids::{DomainId, GangId, NodeId};
use muster_engine::model::domains::ROOT;

use super::layout::{Frame, SMALL_NODE, Scale, UNIT, What};
use super::{Detail, OTHERS, Picture, TINTS};
use crate::render::map::Holder;
use crate::render::svg::{INK, LINE, MUTED, escaped, text_width};
use crate::render::text::cut_middle;
use crate::render::topology::Chart;

impl Chart<'_> {
    /// In a large picture, words that are the same everywhere are left out.
    pub(super) fn tier_short(&self, domain: DomainId, detail: Detail) -> String {
        if detail == Detail::Named { self.tier_words(domain) } else { self.tier(domain) }
    }

    pub(super) fn room_short(&self, nodes: &[NodeId], detail: Detail) -> String {
        let text = self.in_use(self.room(nodes));
        match detail {
            Detail::Named => text,
            _ => text.split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl Picture<'_, '_> {
    pub(super) fn frame(&mut self, x: i32, y: i32, frame: &Frame) -> std::fmt::Result {
        match frame.what {
            What::Domain(domain) => self.domain(x, y, frame, domain)?,
            What::Loose(domain) => self.loose(x, y, frame, domain)?,
            What::Node(node) => self.node(x, y, frame, node)?,
            What::Plain => {}
        }
        frame.parts.iter().try_for_each(|(left, top, part)| self.frame(x + left, y + top, part))
    }

    fn domain(&mut self, x: i32, y: i32, frame: &Frame, domain: DomainId) -> std::fmt::Result {
        let chart = self.chart;
        let nodes = chart.nodes(domain);
        let room = chart.room(nodes);
        let tint = TINTS[room.step(TINTS.len())];
        let (name, tier) = (chart.name(domain), chart.tier_words(domain));
        let look = format!("rx=\"6\" fill=\"{tint}\" stroke=\"{LINE}\"");
        self.tip(&format!(
            "{name}, {tier}: {}, {}",
            counted(nodes.len() as u64, "node"),
            chart.in_use(room)
        ))?;
        self.rect(x, y, frame.width, frame.height, &look)?;
        if frame.parts.is_empty() && self.detail == Detail::Dense {
            self.text((x + 6, y + 14), 9, INK, "font-weight=\"bold\"", &cut_middle(name, 12))?;
            self.bar(x + 6, y + 20, frame.width - 12, 8, nodes)?;
        } else {
            let tier = chart.tier_short(domain, self.detail);
            self.head(x, y, frame.width, (name, &tier), nodes)?;
            self.marks(x, y, frame.width, chart.gangs(domain))?;
        }
        writeln!(self.out, "</g>")
    }

    fn loose(&mut self, x: i32, y: i32, frame: &Frame, domain: DomainId) -> std::fmt::Result {
        let nodes = self.chart.own_nodes(domain);
        let name = if domain == ROOT { "in no HyperNode" } else { "in none below" };
        self.tip(&format!("{name}: {}", counted(nodes.len() as u64, "node")))?;
        let look = format!("rx=\"6\" fill=\"#ffffff\" stroke=\"{LINE}\" stroke-dasharray=\"4 3\"");
        self.rect(x, y, frame.width, frame.height, &look)?;
        if frame.parts.is_empty() {
            self.text((x + 6, y + 14), 8, MUTED, "", name)?;
            self.bar(x + 6, y + 20, frame.width - 12, 8, nodes)?;
        } else {
            self.head(x, y, frame.width, (name, ""), nodes)?;
        }
        writeln!(self.out, "</g>")
    }

    /// Details, shown when the pointer rests on it; opens a group.
    fn tip(&mut self, text: &str) -> std::fmt::Result {
        writeln!(self.out, "<g><title>{}</title>", escaped(text))
    }

    /// Name, tier and room, with a bar under them.
    fn head(
        &mut self,
        x: i32,
        y: i32,
        wide: i32,
        title: (&str, &str),
        nodes: &[NodeId],
    ) -> std::fmt::Result {
        let Scale { pad, font, bar, .. } = self.scale;
        let ((name, tier), line) = (title, y + font + 5);
        self.text((x + pad, line), font, INK, "font-weight=\"bold\"", name)?;
        let after = x + pad + text_width(name, font) + 8;
        self.text((after, line), font - 2, MUTED, "", tier)?;
        let room = self.chart.room_short(nodes, self.detail);
        self.text((x + wide - pad, line), font - 2, INK, "text-anchor=\"end\"", &room)?;
        self.bar(x + pad, line + 5, wide - 2 * pad, bar, nodes)
    }

    /// How much of the room of these nodes each holder uses.
    fn bar(&mut self, x: i32, y: i32, wide: i32, high: i32, nodes: &[NodeId]) -> std::fmt::Result {
        self.rect(
            x,
            y,
            wide,
            high,
            &format!("fill=\"#ffffff\" stroke=\"{LINE}\" stroke-width=\"0.5\""),
        )?;
        let size = i128::from(self.chart.room(nodes).size.max(1));
        let mut sum = 0;
        let mut from = 0;
        for (fill, amount) in self.shares(nodes) {
            sum += i128::from(amount);
            let upto = (sum * i128::from(wide) / size).min(i128::from(wide)) as i32;
            if upto > from {
                self.rect(x + from, y, upto - from, high, &format!("fill=\"{fill}\""))?;
            }
            from = upto;
        }
        Ok(())
    }

    /// The colours of those holders, in the order of the legend, with how much each uses.
    fn shares(&self, nodes: &[NodeId]) -> Vec<(String, i64)> {
        let cluster = self.chart.cluster;
        let mut shares: BTreeMap<(usize, String), i64> = BTreeMap::new();
        for &pod in nodes.iter().flat_map(|&node| &cluster.nodes.pods_on[node]) {
            let amount = cluster.shapes[cluster.pods.shape[pod]].request.get(self.chart.resource);
            let Some(amount) = amount.filter(|_| cluster.pods.state[pod].occupies()) else {
                continue;
            };
            let place = cluster.pods.gang[pod].and_then(|gang| {
                let place = self.map.legend.gangs.iter().position(|(known, _)| *known == gang)?;
                Some((place, self.map.legend.hex(gang)?))
            });
            *shares.entry(place.unwrap_or((usize::MAX, OTHERS.to_owned()))).or_default() += amount;
        }
        shares.into_iter().map(|((_, fill), amount)| (fill, amount)).collect()
    }

    /// A mark for each gang whose smallest domain this is.
    fn marks(&mut self, x: i32, y: i32, wide: i32, gangs: &[GangId]) -> std::fmt::Result {
        let Scale { pad, head, marks, mark_font: font, .. } = self.scale;
        let end = x + wide - pad;
        let mut left = x + pad;
        // Gangs without a letter would all look the same: they are counted.
        let known = |gang: &GangId| self.map.legend.hex(*gang).is_some();
        let (shown, rest): (Vec<GangId>, Vec<GangId>) = gangs.iter().partition(|gang| known(gang));
        for (at, &gang) in shown.iter().enumerate() {
            let (letter, _) = self.map.legend.of(gang);
            let text = match self.detail {
                Detail::Named => cut_middle(self.chart.gang_name(gang), 24),
                _ => letter.to_string(),
            };
            let long = text_width(&text, font) + 8;
            let more = format!("+{}", gangs.len() - at);
            if left + long + 4 + text_width(&more, font) > end {
                return self.text((left, y + head + marks - 13), font, MUTED, "", &more);
            }
            let fill = self.map.legend.hex(gang).unwrap_or_else(|| OTHERS.to_owned());
            self.rect(left, y + head - 3, long, marks - 6, &format!("rx=\"4\" fill=\"{fill}\""))?;
            let middle = (left + long / 2, y + head + marks - 13);
            self.text(middle, font, INK, "text-anchor=\"middle\"", &text)?;
            left += long + 4;
        }
        match rest.len() {
            0 => Ok(()),
            more => self.text((left, y + head + marks - 13), font, MUTED, "", &format!("+{more}")),
        }
    }

    fn node(&mut self, x: i32, y: i32, frame: &Frame, node: NodeId) -> std::fmt::Result {
        let chart = self.chart;
        let name = &chart.cluster.nodes.name[node];
        let pods = chart.pods_on(node);
        let pods = pods.iter().map(|(key, pods)| format!("; {} ×{pods}", chart.names.short(key)));
        self.tip(&format!(
            "{name}: {}{}",
            chart.in_use(chart.room(&[node])),
            pods.collect::<String>()
        ))?;
        let cells = self.map.cells(node);
        if self.detail == Detail::Named {
            let look = format!("rx=\"4\" fill=\"#ffffff\" stroke=\"{LINE}\"");
            self.rect(x, y, frame.width, frame.height, &look)?;
            self.text((x + 6, y + 15), 11, INK, "", name)?;
            for (at, &cell) in (0..).zip(&cells) {
                self.unit(x + 6 + at * UNIT, y + 22, cell)?;
            }
        } else {
            self.small_node(x, y, node, &cells)?;
        }
        writeln!(self.out, "</g>")
    }

    fn unit(&mut self, x: i32, y: i32, holder: Holder) -> std::fmt::Result {
        let look = format!(
            "rx=\"2\" fill=\"{}\" stroke=\"{LINE}\" stroke-width=\"0.6\"",
            self.fill(holder)
        );
        self.rect(x, y, UNIT - 2, UNIT - 2, &look)?;
        if holder == Holder::Free {
            return Ok(());
        }
        let letter = self.map.mark(holder).0.to_string();
        self.text((x + UNIT / 2 - 1, y + 9), 9, INK, "text-anchor=\"middle\"", &letter)
    }

    fn small_node(&mut self, x: i32, y: i32, node: NodeId, cells: &[Holder]) -> std::fmt::Result {
        let (wide, high) = SMALL_NODE;
        let mut from = 0;
        for run in cells.chunk_by(|a, b| a == b) {
            let upto = from + run.len() as i32;
            let (left, right) =
                (from * wide / cells.len() as i32, upto * wide / cells.len() as i32);
            self.rect(x + left, y, right - left, high, &format!("fill=\"{}\"", self.fill(run[0])))?;
            from = upto;
        }
        self.rect(
            x,
            y,
            wide,
            high,
            &format!("fill=\"none\" stroke=\"{LINE}\" stroke-width=\"0.6\""),
        )?;
        let (letter, _) = self.map.whole_mark(node);
        if !matches!(letter, '.' | ':' | '*') {
            self.text(
                (x + wide / 2, y + 10),
                9,
                INK,
                "text-anchor=\"middle\"",
                &letter.to_string(),
            )?;
        }
        Ok(())
    }

    pub(super) fn fill(&self, holder: Holder) -> String {
        match holder {
            Holder::Gang(_, gang) => self.map.legend.hex(gang).unwrap_or_else(|| OTHERS.to_owned()),
            Holder::Foreign => OTHERS.to_owned(),
            Holder::Leaving => "#fee2e2".to_owned(),
            Holder::Nominated => "#fef3c7".to_owned(),
            Holder::Free => "#ffffff".to_owned(),
            Holder::Closed => "#e2e8f0".to_owned(),
        }
    }
}
