//! From a path to the file in which the thing that it names is defined, through all re-exports.

use std::collections::BTreeSet;

use crate::source::{Module, ModulePath, Source, TOP};

/// What a path can name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Module(ModulePath),
    /// An item, by the module that declares it.
    Item(ModulePath),
    /// Something of another crate.
    Foreign,
}

impl Source {
    /// The files in which what a path names is defined: more than one if several things have the
    /// name, none if the path leads out of the crate. Nothing if it leads nowhere.
    pub fn files(&self, from: &ModulePath, names: &[String]) -> Option<BTreeSet<&str>> {
        let found = self.follow(from, names, &mut BTreeSet::new());
        let file = |named: &Named| match named {
            Named::Module(path) | Named::Item(path) => Some(self.modules[path].file.as_str()),
            Named::Foreign => None,
        };
        (!found.is_empty()).then(|| found.iter().filter_map(file).collect())
    }

    fn follow(&self, from: &ModulePath, names: &[String], seen: &mut Seen) -> BTreeSet<Named> {
        let Some((first, rest)) = names.split_first() else { return BTreeSet::new() };
        let mut found = match first.as_str() {
            name if TOP.contains(&name) => BTreeSet::from([Named::Module(Vec::new())]),
            _ => self.find(from, first, seen),
        };
        if found.is_empty() {
            return BTreeSet::from([Named::Foreign]);
        }
        for name in rest {
            let step = |named: &Named| match named {
                Named::Module(module) => self.find(module, name, seen),
                // A variant, or an associated item.
                Named::Item(_) | Named::Foreign => BTreeSet::from([named.clone()]),
            };
            found = found.iter().flat_map(step).collect();
        }
        found
    }

    /// What a name stands for in a module.
    fn find(&self, at: &ModulePath, name: &str, seen: &mut Seen) -> BTreeSet<Named> {
        if name == "self" {
            return BTreeSet::from([Named::Module(at.clone())]);
        }
        if name == "super" {
            let parent = at[..at.len() - 1].to_vec();
            return BTreeSet::from([Named::Module(parent)]);
        }
        if !seen.insert((at.clone(), name.to_owned())) {
            return BTreeSet::new();
        }
        let module = &self.modules[at];
        let mut found = self.declared(at, module, name);
        for import in module.uses.iter().filter(|import| import.name.as_deref() == Some(name)) {
            found.extend(self.follow(at, &import.path.names, seen));
        }
        if found.is_empty() {
            for import in module.uses.iter().filter(|import| import.name.is_none()) {
                for named in self.follow(at, &import.path.names, seen) {
                    if let Named::Module(glob) = named {
                        found.extend(self.find(&glob, name, seen));
                    }
                }
            }
        }
        if found.is_empty() && module.made_by_macros.contains(name) {
            found.insert(Named::Item(at.clone()));
        }
        found
    }

    fn declared(&self, at: &ModulePath, module: &Module, name: &str) -> BTreeSet<Named> {
        let mut child = at.clone();
        child.push(name.to_owned());
        let child = self.modules.contains_key(&child).then_some(Named::Module(child));
        let item = module.items.contains(name).then(|| Named::Item(at.clone()));
        let exported = self.macros.get(name).filter(|_| at.is_empty());
        let exported = exported.map(|module| Named::Item(module.clone()));
        [child, item, exported].into_iter().flatten().collect()
    }
}

/// Names that are being looked up, and where, so that imports in a circle come to an end.
type Seen = BTreeSet<(ModulePath, String)>;
