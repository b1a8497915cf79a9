//! One cluster, its configuration, and how long it runs.

use std::io;
use std::path::Path;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::draw::Draw;
use crate::yaml;

#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub family: &'static str,
    pub cluster: Cluster,
    pub config: Config,
    pub cycles: usize,
    /// Evicted pods come back as pending.
    pub recreate: bool,
}

impl Case {
    pub fn cluster_yaml(&self) -> String {
        self.documents().join("---\n")
    }

    /// The same objects in another order.
    pub fn shuffled_yaml(&self) -> String {
        let mut documents = self.documents();
        Draw::new(self.seed).shuffle(&mut documents);
        documents.join("---\n")
    }

    fn documents(&self) -> Vec<String> {
        self.cluster.manifests().iter().map(yaml::document).collect()
    }

    pub fn config_yaml(&self) -> String {
        yaml::document(&self.config.file())
    }

    pub fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["--now", crate::manifest::NOW, "-o", "json", "--cycles"].map(String::from).to_vec();
        arguments.push(self.cycles.to_string());
        arguments.extend((!self.recreate).then(|| "--no-recreate".to_owned()));
        arguments
    }

    /// Writes `cluster.yaml` and `config.yaml` into a folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("cluster.yaml"), self.cluster_yaml())?;
        std::fs::write(folder.join("config.yaml"), self.config_yaml())
    }
}
