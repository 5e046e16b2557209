//! The surroundings of the model in each mode: skills, instructions, subagents, MCP servers and settings. Read and checked here, hashed
//! for the manifest, looked for in every mode, and kept out of workspaces.

use super::{Loader, directory_of};
use crate::suite::ablation;
use crate::suite::agents::is_path;
use crate::suite::file::{Listed, ModeSpec, Modes, ProviderSpec, SuiteFile};
use crate::suite::file_error::{FileError, Place};
use crate::suite::scenario::LoadedScenario;
use assize_agents::capture::WatchedSkill;
use assize_agents::{Recipe, Skill, SkillError, Subagent, project_places};
use assize_contracts::{Collector, JsonMap};
use assize_engine::ProfileSuite;
use assize_measures::SkillsCollector;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The settings of a provider that hold a mode's surroundings.
const KEYS: [&str; 5] = [
    "skills",
    "instructions",
    "agents",
    "settings",
    "mcp_servers",
];

/// Providers whose sessions no agent has: nothing can leak into them.
const WITHOUT_AGENT: [&str; 2] = ["simulated", "replay"];

/// An instruction file larger than this is none.
const LONGEST_INSTRUCTIONS: u64 = 4 << 20;

/// The surroundings that a mode gives to its sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    skills: Vec<Skill>,
    neighbours: Vec<Skill>,
    instructions: Option<Instructions>,
    agents: Vec<Subagent>,
    settings: Option<JsonMap>,
    /// A real agent is given it.
    has_agent: bool,
}

#[derive(Debug, Clone)]
struct Instructions {
    path: String,
    text: String,
    hash: String,
}

impl Surroundings {
    fn is_empty(&self) -> bool {
        let Self {
            skills,
            neighbours,
            instructions,
            agents,
            settings,
            has_agent: _,
        } = self;
        skills.is_empty()
            && neighbours.is_empty()
            && instructions.is_none()
            && agents.is_empty()
            && settings.is_none()
    }

    fn all_skills(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().chain(&self.neighbours)
    }
}

impl Loader<'_> {
    /// The suite with the modes that its `with` or `without` expands to.
    pub(super) fn with_ablation(&mut self, mut file: SuiteFile, directory: &Path) -> SuiteFile {
        if let Err(error) = ablation::expand(&mut file, directory) {
            self.add(FileError {
                hint: error.hint,
                ..self.document.error(&[error.key], error.message)
            });
        } else if matches!(&file.modes, Modes::Definitions(modes) if modes.is_empty()) {
            let missing = self.document.value().get("modes").is_none();
            let message = match missing {
                true => "missing key `modes`",
                false => "found no modes, expected at least one",
            };
            let keys: &[&str] = if missing { &[] } else { &["modes"] };
            let error = self.document.error(keys, message);
            self.add(error.hint("name what is compared: `modes: { plain: {}, careful: { system_instructions: … } }`"));
        }
        file
    }

    /// Reads what a mode gives to its sessions and puts it among the provider's settings, where the provider has use for it.
    pub(super) fn surround(
        &mut self,
        file: &SuiteFile,
        (mode, spec): (&str, &ModeSpec),
        provider: &ProviderSpec,
        settings: &mut JsonMap,
    ) {
        let found = self.read_surroundings(file, (mode, spec), provider, settings);
        self.servers(file, spec, provider, settings);
        if found.is_empty() {
            return;
        }
        let name = provider.uses.as_str();
        match name {
            // Nothing is installed for what was recorded.
            "replay" => {}
            "command" | "chat" => self.refuse_surroundings(mode, name, &found),
            _ => put_into(settings, &found),
        }
        self.surroundings.insert(mode.to_owned(), found);
    }

    /// Refuses skills that are on trial in one mode and neighbours in the others: all modes have them, and nothing is compared.
    pub(super) fn refuse_shared_skills(&mut self, modes: &[String]) {
        let has = |mode: &str, name: &str| {
            let found = self.surroundings.get(mode);
            found.is_some_and(|found| found.all_skills().any(|skill| skill.name == name))
        };
        let on_trial: BTreeSet<&str> = self
            .surroundings
            .values()
            .flat_map(|found| &found.skills)
            .map(|skill| skill.name.as_str())
            .collect();
        let mut neighbours = self
            .surroundings
            .values()
            .flat_map(|found| &found.neighbours);
        let shared = neighbours.find(|skill| {
            let name = skill.name.as_str();
            on_trial.contains(name) && modes.iter().all(|mode| has(mode, name))
        });
        if let Some(name) = shared.map(|skill| skill.name.clone()) {
            let message = format!(
                "the skill `{name}` is on trial and a neighbour, so that all modes have it"
            );
            let error = self.document.error(&["neighbours"], message);
            self.add(error.hint("neighbours are other skills than those on trial"));
        }
    }

    /// Files that other modes put on trial are kept away from the chosen ones, too.
    pub(super) fn surround_unchosen(&mut self, file: &SuiteFile, mode: &str, spec: &ModeSpec) {
        if let Some(provider) = spec.provider.as_ref().or(file.provider.as_ref()) {
            let mut settings = spec.provider_overrides.clone();
            self.surround(file, (mode, spec), provider, &mut settings);
        }
    }

    fn read_surroundings(
        &mut self,
        file: &SuiteFile,
        (mode, spec): (&str, &ModeSpec),
        provider: &ProviderSpec,
        settings: &JsonMap,
    ) -> Surroundings {
        let listed = |own: &Option<Listed>, of_suite: &Option<Listed>| {
            let listed = own.clone().or_else(|| of_suite.clone());
            listed.unwrap_or_default().0
        };
        let skills = listed(&spec.skills, &file.skills);
        let mut neighbours = listed(&spec.neighbours, &file.neighbours);
        // A skill that is on trial in this mode is not its own neighbour.
        neighbours.retain(|path| !skills.contains(path));
        let skills = self.skills((mode, "skills"), &skills);
        let found = Surroundings {
            neighbours: self.skills((mode, "neighbours"), &neighbours),
            instructions: self.instructions(mode, spec.instructions.as_ref(), file),
            agents: self.subagents(mode, &listed(&spec.agents, &file.agents)),
            settings: self.agent_settings(file, (mode, spec), provider, settings),
            has_agent: !WITHOUT_AGENT.contains(&provider.uses.as_str()),
            skills,
        };
        let mut names = BTreeSet::new();
        let twice = found.all_skills().find(|skill| !names.insert(&skill.name));
        if let Some(twice) = twice.map(|skill| skill.name.clone()) {
            let message = format!("two skills of mode `{mode}` are called `{twice}`");
            self.report_in_mode(mode, "skills", None, message);
        }
        found
    }

    fn skills(&mut self, (mode, key): (&str, &str), paths: &[String]) -> Vec<Skill> {
        let directory = directory_of(self.document.path());
        let mut skills = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            match Skill::read(&directory.join(path)) {
                Ok(skill) => skills.push(skill),
                Err(error) => self.refuse_file(mode, key, number, error),
            }
        }
        skills
    }

    fn subagents(&mut self, mode: &str, paths: &[String]) -> Vec<Subagent> {
        let directory = directory_of(self.document.path());
        let mut agents: Vec<Subagent> = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            match Subagent::read(&directory.join(path)) {
                Ok(agent) if agents.iter().any(|known| known.name == agent.name) => {
                    let message = format!("two subagents are called `{}`", agent.name);
                    self.report_in_mode(mode, "agents", Some(number), message);
                }
                Ok(agent) => agents.push(agent),
                Err(error) => self.refuse_file(mode, "agents", number, error),
            }
        }
        agents
    }

    /// An empty path takes away what the suite gives.
    fn instructions(
        &mut self,
        mode: &str,
        own: Option<&std::path::PathBuf>,
        file: &SuiteFile,
    ) -> Option<Instructions> {
        let path = own.or(file.instructions.as_ref())?;
        if path.as_os_str().is_empty() {
            return None;
        }
        let place = directory_of(self.document.path()).join(path);
        let is_long = std::fs::metadata(&place).is_ok_and(|data| data.len() > LONGEST_INSTRUCTIONS);
        let text = match is_long {
            true => Err("it is too long for an instruction file".to_owned()),
            false => std::fs::read_to_string(&place).map_err(|error| error.to_string()),
        };
        match text {
            Ok(text) => Some(Instructions {
                path: path.to_string_lossy().into_owned(),
                hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
                text,
            }),
            Err(reason) => {
                let message = format!("cannot read `{}`: {reason}", path.display());
                let hint =
                    "`instructions` names a file; a text for the agent is `system_instructions`";
                let place = self.place_of_surroundings(mode, "instructions");
                let error = self.document.error(&place, message).hint(hint);
                self.add(error);
                None
            }
        }
    }

    /// The settings for the mode's agent: the suite's with the mode's on top, key by key.
    fn agent_settings(
        &mut self,
        file: &SuiteFile,
        (mode, spec): (&str, &ModeSpec),
        provider: &ProviderSpec,
        own: &JsonMap,
    ) -> Option<JsonMap> {
        let agent = match provider.uses.as_str() {
            "acp" => own
                .get("agent")
                .or_else(|| provider.overrides.get("agent"))
                .and_then(Value::as_str)
                .unwrap_or("acp"),
            uses => uses,
        };
        let known: Vec<&str> = self
            .plugins
            .providers()
            .keys()
            .map(String::as_str)
            .collect();
        let all = spec.settings.keys().chain(file.settings.keys());
        let is_known = |name: &&String| known.contains(&name.as_str()) || is_path(name);
        if let Some(strange) = all.clone().find(|name| !is_known(name)).cloned() {
            let keys = match spec.settings.contains_key(&strange) {
                true => vec!["modes", mode, "settings"],
                false => vec!["settings"],
            };
            self.unknown(&keys, "agent", &strange, &known);
        }
        let mut settings = file.settings.get(agent).cloned();
        if let Some(own) = spec.settings.get(agent) {
            settings
                .get_or_insert_default()
                .extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        settings.filter(|settings| !settings.is_empty())
    }

    /// Servers of the provider, then of the suite, then of the mode. `null` takes one away.
    fn servers(
        &mut self,
        file: &SuiteFile,
        spec: &ModeSpec,
        provider: &ProviderSpec,
        settings: &mut JsonMap,
    ) {
        if file.mcp_servers.is_empty() && spec.mcp_servers.is_empty() {
            return;
        }
        let key = ["mcp_servers", "mcpServers"]
            .into_iter()
            .find(|key| settings.contains_key(*key) || provider.overrides.contains_key(*key))
            .unwrap_or("mcp_servers");
        let given = settings.get(key).or_else(|| provider.overrides.get(key));
        let mut servers = given
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        for (name, server) in file.mcp_servers.iter().chain(&spec.mcp_servers) {
            match server.is_null() {
                true => drop(servers.remove(name)),
                false => drop(servers.insert(name.clone(), server.clone())),
            }
        }
        if !servers.is_empty() || given.is_some() {
            settings.insert(key.to_owned(), Value::Object(servers));
        }
    }

    fn refuse_surroundings(&mut self, mode: &str, provider: &str, found: &Surroundings) {
        let wishes = [
            ("skills", !found.skills.is_empty()),
            ("neighbours", !found.neighbours.is_empty()),
            ("instructions", found.instructions.is_some()),
            ("agents", !found.agents.is_empty()),
            ("settings", found.settings.is_some()),
        ];
        let known: Vec<String> = Recipe::built_in()
            .iter()
            .map(|recipe| format!("`{}`", recipe.name))
            .collect();
        for (key, _) in wishes.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            let message = format!("the provider `{provider}` knows no place for `{key}`");
            let place = self.place_of_surroundings(mode, key);
            let error = self.document.error(&place, message).hint(format!(
                "agents with a recipe do: {}, or a recipe of your own",
                known.join(", ")
            ));
            self.add(error);
        }
    }

    /// The surrounding that a provider's complaint is about, if it is about one that the suite gives.
    pub(super) fn surrounding_in(&self, mode: &str, path: &[String]) -> Option<&'static str> {
        let key = KEYS
            .into_iter()
            .find(|key| path.first().is_some_and(|first| first == key))?;
        let is_given = self.has(&["modes", mode, key]) || self.has(&[key]);
        let is_read = key != "mcp_servers" && self.surroundings.contains_key(mode);
        (is_given || is_read).then_some(key)
    }

    /// Its place in the suite: in the mode, else for all modes.
    pub(super) fn place_of_surroundings<'k>(&self, mode: &'k str, key: &'k str) -> Vec<&'k str> {
        let own = vec!["modes", mode, key];
        match self.document.place(&own).is_some() && self.has(&own) {
            true => own,
            false if self.has(&[key]) => vec![key],
            false if self.has(&["with"]) => vec!["with"],
            false => vec!["modes", mode],
        }
    }

    fn has(&self, keys: &[&str]) -> bool {
        let found = keys
            .iter()
            .try_fold(self.document.value(), |value, key| value.get(key));
        found.is_some()
    }

    fn report_in_mode(&mut self, mode: &str, key: &str, number: Option<usize>, message: String) {
        let number = number.map(|number| number.to_string());
        let mut place = self.place_of_surroundings(mode, key);
        let is_list = |place: &[&str]| {
            let found = place
                .iter()
                .try_fold(self.document.value(), |value, key| value.get(key));
            found.is_some_and(Value::is_array)
        };
        if is_list(&place) {
            place.extend(number.as_deref());
        }
        let error = self.document.error(&place, message);
        self.add(error);
    }

    /// An error in a file that the suite names has its place in that file.
    fn refuse_file(&mut self, mode: &str, key: &str, number: usize, error: SkillError) {
        let SkillError {
            path,
            line,
            message,
            hint,
        } = error;
        if !path.exists() {
            let message = format!("{}: {message}", path.display());
            return self.report_in_mode(mode, key, Some(number), message);
        }
        let place = line.map(|line| Place {
            line: line as u64,
            column: 1,
        });
        let error = FileError::new(path, message).at(place);
        self.add(error.with_hint(hint));
    }

    /// Ends of paths that workspaces must not have: what is on trial, wherever an agent might find it.
    pub(super) fn hidden(&self) -> Vec<String> {
        let places = project_places();
        let mut hidden = BTreeSet::new();
        for mode in self.surroundings.values() {
            for skill in mode.all_skills() {
                let all = places.skills.iter();
                hidden.extend(all.map(|root| format!("{root}/{}", skill.name)));
            }
            for agent in &mode.agents {
                let all = places.agents.iter();
                let files = ["md", "toml"];
                hidden.extend(all.flat_map(|root| {
                    files.map(|ending| format!("{root}/{}.{ending}", agent.name))
                }));
            }
            if mode.instructions.is_some() {
                hidden.extend(places.instructions.iter().cloned());
            }
        }
        hidden.into_iter().collect()
    }

    /// Without a workspace an agent works in the suite's directory, where nothing can be hidden from it.
    pub(super) fn look_beside_workspaces(
        &mut self,
        scenarios: &[LoadedScenario],
        directory: &Path,
    ) {
        let hidden = self.hidden();
        let bare = scenarios
            .iter()
            .find(|loaded| loaded.scenario.workspace.is_none());
        let Some(bare) = bare.filter(|_| !hidden.is_empty()) else {
            return;
        };
        if !self.surroundings.values().any(|found| found.has_agent) {
            return;
        }
        let start = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
        let above = start
            .ancestors()
            .take_while(|place| home.as_deref() != Some(*place));
        for place in above {
            if let Some(found) = hidden
                .iter()
                .map(|end| place.join(end))
                .find(|path| path.exists())
            {
                let message = format!(
                    "scenario `{}` has no workspace, so its agent works in the suite's directory and finds `{}` in every mode",
                    bare.scenario.id,
                    found.display()
                );
                let error = bare.document.error(&["prompt"], message);
                let error = error.hint(
                    "add `workspace: {}` for an empty one, or `workspace: { from: DIRECTORY }`",
                );
                return self.add(error);
            }
            if place.join(".git").exists() {
                return;
            }
        }
    }

    /// Skills that are looked for on the wire, in every mode.
    pub(super) fn watched_skills(&self) -> Arc<[WatchedSkill]> {
        let mut known = BTreeMap::new();
        for skill in self
            .surroundings
            .values()
            .flat_map(Surroundings::all_skills)
        {
            let watched = WatchedSkill::new(&skill.name, &skill.description, &skill.body);
            known.entry(&skill.name).or_insert(watched);
        }
        known.into_values().collect()
    }

    /// Measures the use of skills. Absent where no mode has any.
    pub(super) fn skills_collector(
        &self,
        scenarios: &[LoadedScenario],
    ) -> Option<Arc<dyn Collector>> {
        let names = |skills: &[Skill]| skills.iter().map(|skill| skill.name.clone()).collect();
        let modes = self.surroundings.iter();
        let installed: BTreeMap<String, Vec<String>> = modes
            .map(|(mode, found)| (mode.clone(), names(&found.skills)))
            .collect();
        let on_trial: BTreeSet<&String> = installed.values().flatten().collect();
        if on_trial.is_empty() {
            return None;
        }
        let neighbours = self
            .surroundings
            .values()
            .flat_map(|found| &found.neighbours);
        let neighbours: BTreeSet<&String> = neighbours.map(|skill| &skill.name).collect();
        let should_trigger = scenarios.iter().filter_map(|loaded| {
            let scenario = &loaded.scenario;
            Some((scenario.id.clone(), scenario.should_trigger?))
        });
        Some(Arc::new(SkillsCollector {
            neighbours: neighbours
                .difference(&on_trial)
                .map(|name| (*name).clone())
                .collect(),
            on_trial: on_trial.into_iter().cloned().collect(),
            installed: installed.clone(),
            should_trigger: should_trigger.collect(),
        }))
    }

    /// Names and content hashes by mode, for the manifest. Absent where there is nothing, so that other suites keep their fingerprint.
    pub(super) fn described_surroundings(&self, profile: &ProfileSuite) -> Option<Value> {
        let skills = |skills: &[Skill]| -> Vec<Value> {
            let each = |skill: &Skill| json!({ "name": skill.name, "hash": skill.hash });
            skills.iter().map(each).collect()
        };
        let mode = |(name, found): (&String, &Surroundings)| {
            let agents = found.agents.iter();
            let agents = agents.map(|agent| json!({ "name": agent.name, "hash": agent.hash }));
            let instructions = found.instructions.as_ref();
            let mut described = json!({
                "skills": skills(&found.skills),
                "neighbours": skills(&found.neighbours),
                "agents": agents.collect::<Vec<_>>(),
                "instructions": instructions.map(|file| json!({ "path": file.path, "hash": file.hash })),
            });
            super::secrets::without_secrets(&mut described);
            (name.clone(), described)
        };
        let is_chosen = |name: &String| profile.modes.iter().any(|mode| mode.name == *name);
        let chosen = self.surroundings.iter().filter(|(name, _)| is_chosen(name));
        let described: JsonMap = chosen.map(mode).collect();
        (!described.is_empty()).then_some(Value::Object(described))
    }

    /// Remarks for the user before the first trial.
    pub(super) fn surroundings_remarks(&self, profile: &ProfileSuite) -> Vec<String> {
        if self.surroundings.is_empty() {
            return self.triggers_without_skills(profile).into_iter().collect();
        }
        let has_agent = self.surroundings.values().any(|found| found.has_agent);
        let mut remarks: Vec<String> = Vec::new();
        remarks.extend(has_agent.then(|| {
            "every session has a fresh home: your own skills, instruction files and settings reach no trial, and what modes put on trial is removed from workspaces".to_owned()
        }));
        remarks.extend(self.keys_left_out(profile));
        remarks.extend(self.checks_of_missing_skills(profile));
        remarks.extend(self.checks_of_unknown_skills(profile));
        remarks.extend(self.triggers_without_skills(profile));
        remarks
    }

    fn triggers_without_skills(&self, profile: &ProfileSuite) -> Option<String> {
        let mut skills = self.surroundings.values().flat_map(|found| &found.skills);
        let mut scenarios = profile.scenarios.iter();
        let scenario = scenarios.find(|scenario| scenario.should_trigger.is_some())?;
        skills.next().is_none().then(|| {
            format!(
                "scenario `{}` says `should_trigger`, and no mode has a skill: write `skills: [DIRECTORY]` or `with: DIRECTORY`",
                scenario.id
            )
        })
    }

    /// Keys of subagents that only Claude Code understands.
    fn keys_left_out(&self, profile: &ProfileSuite) -> Vec<String> {
        let mut remarks = BTreeSet::new();
        for (name, found) in &self.surroundings {
            let mode = profile.modes.iter().find(|mode| mode.name == *name);
            let Some(mode) = mode.filter(|mode| mode.provider != "claude-code") else {
                continue;
            };
            for agent in found
                .agents
                .iter()
                .filter(|agent| !agent.other_keys.is_empty())
            {
                remarks.insert(format!(
                    "subagent `{}` is given to `{}` by name, description and text; left out: {}",
                    agent.name,
                    mode.provider,
                    agent.other_keys.join(", ")
                ));
            }
        }
        remarks.into_iter().collect()
    }

    /// A check that a mode cannot pass makes its success a matter of the set-up.
    /// Checks that name a skill which no mode has: it may be a skill of the agent's own, or a mistake of writing.
    fn checks_of_unknown_skills(&self, profile: &ProfileSuite) -> Vec<String> {
        let known: BTreeSet<&str> = self
            .surroundings
            .values()
            .flat_map(Surroundings::all_skills)
            .map(|skill| skill.name.as_str())
            .collect();
        let mut remarks = BTreeSet::new();
        for scenario in &profile.scenarios {
            for check in &scenario.checks {
                let mut body = check;
                while let Some(inner) = body.get("not") {
                    body = inner;
                }
                let named = ["/skill/used", "/skill/unused"].into_iter();
                let named = named.filter_map(|place| body.pointer(place));
                let named = named.flat_map(|names| match names {
                    Value::Array(names) => names.as_slice(),
                    one => std::slice::from_ref(one),
                });
                let unknown = named.filter_map(Value::as_str);
                for name in unknown.filter(|name| !known.contains(name)) {
                    remarks.insert(format!(
                        "scenario `{}` checks the use of a skill `{name}`, which no mode has",
                        scenario.id
                    ));
                }
            }
        }
        remarks.into_iter().collect()
    }

    fn checks_of_missing_skills(&self, profile: &ProfileSuite) -> Vec<String> {
        let mut remarks = Vec::new();
        for scenario in &profile.scenarios {
            let required = |check: &&Value| check.get("required") != Some(&Value::Bool(false));
            let wanted = scenario.checks.iter().filter(required);
            let wanted = wanted.filter_map(|check| check.get("skill")?.get("used"));
            let wanted: Vec<&str> = wanted
                .flat_map(|used| match used {
                    Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect::<Vec<_>>(),
                })
                .collect();
            let lacks = |mode: &&assize_engine::Mode| {
                let found = self.surroundings.get(&mode.name);
                let has = |name: &str| {
                    let mut skills = found.iter().flat_map(|found| found.all_skills());
                    skills.any(|skill| skill.name == name)
                };
                wanted.iter().any(|name| !has(name))
            };
            if let Some(mode) = profile.modes.iter().find(lacks) {
                remarks.push(format!(
                    "scenario `{}` requires the use of a skill that mode `{}` does not have, so success there says nothing about the skill's worth; \
                     write `required: false` beside the check, or `should_trigger: true` instead of it",
                    scenario.id, mode.name
                ));
            }
        }
        remarks
    }
}

/// In the form in which recipes read it.
fn put_into(settings: &mut JsonMap, found: &Surroundings) {
    let skill = |skill: &Skill| {
        let path = std::path::absolute(&skill.directory);
        let path = path.unwrap_or_else(|_| skill.directory.clone());
        json!({ "name": skill.name, "path": path, "hash": skill.hash })
    };
    // A stand-in for an agent uses none of them by itself.
    let neighbour = |found: &Skill| {
        let mut written = skill(found);
        written["neighbour"] = true.into();
        written
    };
    let skills = found.skills.iter().map(skill);
    let skills: Vec<Value> = skills
        .chain(found.neighbours.iter().map(neighbour))
        .collect();
    let agents: Vec<Value> = found
        .agents
        .iter()
        .map(|agent| {
            json!({ "name": agent.name, "description": agent.description, "body": agent.body, "text": agent.text })
        })
        .collect();
    if !skills.is_empty() {
        settings.insert("skills".to_owned(), skills.into());
    }
    if !agents.is_empty() {
        settings.insert("agents".to_owned(), agents.into());
    }
    if let Some(file) = &found.instructions {
        settings.insert("instructions".to_owned(), json!({ "text": file.text }));
    }
    if let Some(own) = &found.settings {
        settings.insert("settings".to_owned(), Value::Object(own.clone()));
    }
}
