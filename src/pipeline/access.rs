//! What a project reaches besides its own files: the hosts that get keys and transcripts, and the programs it starts.
//!
//! Whoever runs a project trusts its author with this access, so it is listed before anything is reached.

use std::collections::BTreeSet;

use serde::Serialize;

use super::model::Pipeline;
use crate::action::Digest;
use crate::compress::Strategy;
use models::ProviderSpec;

/// The hosts, programs and shared cache of a project; each host and program once, sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExternalAccess {
    /// Hosts that are sent requests.
    pub hosts: BTreeSet<HostAccess>,
    pub programs: BTreeSet<ProgramAccess>,
    /// The URL of the shared cache, if the file declares one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
}

/// A host that is sent requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostAccess {
    pub host: String,
    /// The variable whose value is sent as the key; `None` where no key is sent.
    pub key: Option<String>,
}

/// A program that is started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ProgramAccess {
    pub command: Vec<String>,
    /// The variables that it sees besides `PATH` and `HOME`.
    pub variables: Vec<String>,
}

impl ExternalAccess {
    /// What a run of this pipeline reaches. It asks no generator of probes.
    pub fn from_pipeline(pipeline: &Pipeline) -> ExternalAccess {
        let compressors = pipeline
            .methods
            .iter()
            .filter_map(|method| match &method.strategy {
                Strategy::Command(spec) => Some(spec),
                _ => None,
            });
        let programs = compressors.map(|spec| ProgramAccess {
            command: spec.argv.clone(),
            variables: spec.variables().map(str::to_owned).collect(),
        });
        ExternalAccess {
            hosts: pipeline
                .stage_models()
                .filter(|model| model.is_asked())
                .map(|model| HostAccess::from_provider(&model.provider))
                .collect(),
            programs: programs.collect(),
            remote: pipeline.remote.url.as_ref().map(ToString::to_string),
        }
    }

    /// With the host that is asked for probes.
    pub fn with_generator(mut self, pipeline: &Pipeline) -> ExternalAccess {
        let model = &pipeline.generator.model;
        if model.is_asked() {
            self.hosts
                .insert(HostAccess::from_provider(&model.provider));
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.programs.is_empty() && self.remote.is_none()
    }

    /// One line for each host and program, and one for the shared cache.
    pub fn lines(&self) -> Vec<String> {
        let hosts = self.hosts.iter().map(|HostAccess { host, key }| match key {
            Some(variable) => format!("sends transcripts to {host}, with the key in {variable}"),
            None => format!("sends transcripts to {host}, without a key"),
        });
        let programs = self
            .programs
            .iter()
            .map(|ProgramAccess { command, variables }| {
                let (command, names) = (command.join(" "), variables.join(", "));
                if variables.is_empty() {
                    format!("starts `{command}`")
                } else {
                    format!("starts `{command}` with {names}")
                }
            });
        let remote = self
            .remote
            .iter()
            .map(|url| format!("shares its cache at {url}"));
        hosts.chain(programs).chain(remote).collect()
    }

    pub fn digest(&self) -> Digest {
        Digest::of_json(&("external access", self))
    }
}

impl HostAccess {
    fn from_provider(provider: &ProviderSpec) -> HostAccess {
        let host =
            url::Url::parse(&provider.base_url).map(|url| url.origin().ascii_serialization());
        HostAccess {
            host: host.unwrap_or_else(|_| provider.base_url.clone()),
            key: provider
                .api_key
                .as_ref()
                .map(|variable| variable.0.to_string()),
        }
    }
}
