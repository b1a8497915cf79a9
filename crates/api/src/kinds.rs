//! The one table of kinds: every kind of object that Muster reads, with its name in the API. The
//! type of a kind and the meaning of its fields are in a file of its own below this folder; all
//! other lists of kinds are derived from this table.

use std::fmt;

use muster_yaml::{Yaml, YamlError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;
use crate::anonymise::Walk;
use crate::core::Meta;
use crate::validate::Problem;
use kubernetes::*;
use volcano::*;

/// Kinds that are part of Kubernetes.
pub(crate) mod kubernetes {
    mod budget;
    mod claim;
    mod namespace;
    mod node;
    mod pod;
    mod priority_class;
    mod quota;
    mod volume;

    pub use budget::*;
    pub use claim::*;
    pub use namespace::*;
    pub use node::*;
    pub use pod::*;
    pub use priority_class::*;
    pub use quota::*;
    pub use volume::*;
}

/// Volcano's kinds.
pub(crate) mod volcano {
    mod command;
    mod cron_job;
    mod hypernode;
    mod job;
    mod job_defaults;
    mod job_flow;
    mod podgroup;
    mod queue;

    pub use command::*;
    pub use cron_job::*;
    pub use hypernode::*;
    pub use job::*;
    pub use job_flow::*;
    pub use podgroup::*;
    pub use queue::*;
}

/// What differs from kind to kind. Each kind implements it in its own file.
pub(crate) trait Contents {
    /// What must be changed before the object can be used.
    fn problems(&self) -> Vec<Problem>;

    /// What is allowed but probably not intended, and what can't be read and is ignored.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Passes every name in the object to the walk, and removes free text.
    fn visit_names(&mut self, walk: &mut Walk<'_>);

    /// Removes fields that are only true while a controller updates them.
    fn forget_controllers(&mut self) {}
}

/// A type whose objects are of one kind.
pub trait Resource:
    Clone + DeserializeOwned + Into<Object> + Send + Serialize + Sync + 'static
{
    const KIND: Kind;

    fn meta(&self) -> &Meta;
}

/// An operation on the type of a kind that is only known at run time.
pub trait WithType {
    type Output;

    fn call<T: Resource>(self) -> Self::Output;
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// Which API servers have a kind.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// All of them.
    Always,
    /// Those that have its definition. The scheduler waits until it is there.
    Installed,
    /// Those that have its definition. A server without it has no such objects.
    Optional,
    /// The same, and only controllers read it: the scheduler does not watch it.
    Controllers,
}

/// A row of the table.
struct Row {
    name: &'static str,
    api_version: &'static str,
    plural: &'static str,
    scope: Scope,
    presence: Presence,
}

macro_rules! kinds {
    ($($kind:ident $api_version:literal $plural:literal $scope:ident $presence:ident;)*) => {
        /// A kind of object. A kind comes after the kinds that its objects refer to.
        #[derive(
            Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[non_exhaustive]
        pub enum Kind {
            $($kind,)*
        }

        /// An object of one of the kinds.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[non_exhaustive]
        pub enum Object {
            $($kind(Box<$kind>),)*
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: &[Kind] = &[$(Kind::$kind),*];

            fn row(self) -> &'static Row {
                match self {
                    $(Kind::$kind => &Row {
                        name: stringify!($kind),
                        api_version: $api_version,
                        plural: $plural,
                        scope: Scope::$scope,
                        presence: Presence::$presence,
                    },)*
                }
            }

            pub fn with_type<F: WithType>(self, call: F) -> F::Output {
                match self {
                    $(Kind::$kind => call.call::<$kind>(),)*
                }
            }
        }

        impl Object {
            pub fn kind(&self) -> Kind {
                match self {
                    $(Object::$kind(_) => Kind::$kind,)*
                }
            }

            pub fn meta(&self) -> &Meta {
                match self {
                    $(Object::$kind(object) => &object.metadata,)*
                }
            }

            pub fn meta_mut(&mut self) -> &mut Meta {
                match self {
                    $(Object::$kind(object) => &mut object.metadata,)*
                }
            }

            /// The fields of the object, without its kind.
            pub fn fields(&self) -> serde_json::Result<Value> {
                match self {
                    $(Object::$kind(object) => serde_json::to_value(object),)*
                }
            }

            fn contents(&self) -> &dyn Contents {
                match self {
                    $(Object::$kind(object) => &**object,)*
                }
            }

            fn contents_mut(&mut self) -> &mut dyn Contents {
                match self {
                    $(Object::$kind(object) => &mut **object,)*
                }
            }
        }

        $(
            impl Resource for $kind {
                const KIND: Kind = Kind::$kind;

                fn meta(&self) -> &Meta {
                    &self.metadata
                }
            }

            impl From<$kind> for Object {
                fn from(object: $kind) -> Object {
                    Object::$kind(Box::new(object))
                }
            }
        )*
    };
}

kinds! {
    PriorityClass "scheduling.k8s.io/v1" "priorityclasses" Cluster Always;
    Namespace "v1" "namespaces" Cluster Always;
    ResourceQuota "v1" "resourcequotas" Namespaced Always;
    PersistentVolume "v1" "persistentvolumes" Cluster Always;
    PersistentVolumeClaim "v1" "persistentvolumeclaims" Namespaced Always;
    PodDisruptionBudget "policy/v1" "poddisruptionbudgets" Namespaced Always;
    Queue "scheduling.volcano.sh/v1beta1" "queues" Cluster Installed;
    HyperNode "topology.volcano.sh/v1alpha1" "hypernodes" Cluster Optional;
    Node "v1" "nodes" Cluster Always;
    PodGroup "scheduling.volcano.sh/v1beta1" "podgroups" Namespaced Installed;
    Pod "v1" "pods" Namespaced Always;
    Job "batch.volcano.sh/v1alpha1" "jobs" Namespaced Controllers;
    CronJob "batch.volcano.sh/v1alpha1" "cronjobs" Namespaced Controllers;
    Command "bus.volcano.sh/v1alpha1" "commands" Namespaced Controllers;
    JobTemplate "flow.volcano.sh/v1alpha1" "jobtemplates" Namespaced Controllers;
    JobFlow "flow.volcano.sh/v1alpha1" "jobflows" Namespaced Controllers;
}

impl Kind {
    /// What the scheduler reads.
    pub fn of_scheduler() -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(|kind| kind.presence() != Presence::Controllers)
    }

    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Group and version, as manifests write it.
    pub fn api_version(self) -> &'static str {
        self.row().api_version
    }

    /// Empty for the core kinds of Kubernetes.
    pub fn group(self) -> &'static str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The plural, as in paths.
    pub fn plural(self) -> &'static str {
        self.row().plural
    }

    pub fn scope(self) -> Scope {
        self.row().scope
    }

    pub fn presence(self) -> Presence {
        self.row().presence
    }

    /// Where an API server lists all objects of the kind, in all namespaces.
    pub fn path(self) -> String {
        let root = if self.group().is_empty() { "api" } else { "apis" };
        format!("/{root}/{}/{}", self.api_version(), self.plural())
    }

    /// The kind as access rules name it, for example `podgroups.scheduling.volcano.sh`.
    pub fn resource(self) -> String {
        match self.group() {
            "" => self.plural().to_owned(),
            group => format!("{}.{group}", self.plural()),
        }
    }

    /// Decodes an object and gives it a namespace if its kind has one.
    pub(crate) fn decode(self, tree: &Yaml) -> Result<Object, YamlError> {
        let mut object = self.with_type(Decode(tree))?;
        // As with kubectl, an object of a namespaced kind without a namespace is in "default". The
        // namespace of an object of any other kind is ignored.
        let namespace = &mut object.meta_mut().namespace;
        match self.scope() {
            Scope::Cluster => namespace.clear(),
            Scope::Namespaced if namespace.is_empty() => "default".clone_into(namespace),
            Scope::Namespaced => {}
        }
        Ok(object)
    }
}

struct Decode<'t>(&'t Yaml);

impl WithType for Decode<'_> {
    type Output = Result<Object, YamlError>;

    fn call<T: Resource>(self) -> Self::Output {
        T::deserialize(self.0).map(Into::into)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Object {
    /// `namespace/name`, or the bare name of an object without a namespace.
    pub fn key(&self) -> String {
        self.meta().key()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.get(key).map(String::as_str)
    }

    /// Sets the creation time if it is missing.
    pub fn date(&mut self, created: Time) {
        self.meta_mut().creation_timestamp.get_or_insert(created);
    }

    /// What must be changed before the object can be used.
    pub fn problems(&self) -> Vec<Problem> {
        self.contents().problems()
    }

    /// What is allowed but probably not intended, and what can't be read and is ignored.
    pub fn remarks(&self) -> Vec<String> {
        self.contents().remarks()
    }

    pub(crate) fn visit_names(&mut self, walk: &mut Walk<'_>) {
        self.contents_mut().visit_names(walk);
    }

    /// Removes fields that are only true while a controller updates them.
    pub fn forget_controllers(&mut self) {
        self.contents_mut().forget_controllers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_decodes_to_itself_even_if_empty() {
        for &kind in Kind::ALL {
            let is_namespaced = kind.scope() == Scope::Namespaced;
            for (metadata, key) in [
                ("{name: a, namespace: b}", if is_namespaced { "b/a" } else { "a" }),
                ("{name: a}", if is_namespaced { "default/a" } else { "a" }),
            ] {
                let tree = muster_yaml::parse(&format!("metadata: {metadata}\n")).unwrap();
                let object = kind.decode(&tree).unwrap();
                assert_eq!((object.kind(), &*object.key()), (kind, key));
            }
        }
    }

    #[test]
    fn paths_are_those_of_the_api_server() {
        assert_eq!(Pod::KIND.path(), "/api/v1/pods");
        assert_eq!(PodGroup::KIND.path(), "/apis/scheduling.volcano.sh/v1beta1/podgroups");
    }

    #[test]
    fn access_rules_name_the_group() {
        assert_eq!(Pod::KIND.resource(), "pods");
        assert_eq!(PodGroup::KIND.resource(), "podgroups.scheduling.volcano.sh");
    }
}
