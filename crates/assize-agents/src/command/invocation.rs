//! From settings, session and prompt to the program that is started.

use super::settings::CommandSettings;
use crate::container::{self, Lodging, Resident, Wanted};
use crate::recipe::Recipe;
use crate::wall::{Wall, session_directory};
use assize_contracts::{
    ContainerHandle, CreateSessionParams, ProviderError, Sandbox, fill_template,
};
use assize_process::container::{Container, ContainerUse, Mount, Within};
use assize_process::workspace::Scratch;
use assize_process::{Bound, Command, Stdin};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Bytes kept from the end of the output, beyond `max_output` from its beginning.
const TEXT_TAIL: u64 = 64 << 10;

/// Programs report their usage at the very end.
const EVENTS_TAIL: u64 = 1 << 20;

/// The data from which a session starts its program.
pub(crate) struct Invocation {
    pub(super) settings: CommandSettings,
    params: CreateSessionParams,
    /// The suite's directory; a program given by a relative path is looked for here.
    directory: PathBuf,
    plan: Plan,
    wall: Wall,
    /// The container that the program runs in, if it does.
    lodging: Option<Lodging>,
}

/// Linux takes no longer single argument.
const LONGEST_ARGUMENT: usize = 100_000;

/// Variables of this machine that mean the same inside a container.
const SHARED_VARIABLES: [&str; 4] = ["LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// The parts of a recipe beyond settings. Empty for a plain command.
#[derive(Default)]
pub(crate) struct Plan {
    /// Run once before the first prompt.
    pub(crate) setup: Vec<String>,
    /// The command that continues a session of the program's own.
    pub(crate) continuation: Option<Vec<String>>,
    /// Instructions are given elsewhere than in the command.
    pub(crate) instructions_have_place: bool,
    /// They are in a file that the program reads.
    pub(crate) writes_instructions: bool,
    /// Placeholders with their braces, and their values.
    pub(crate) values: Vec<(String, String)>,
    /// Texts of the settings by which files of the suite may be named, besides the commands.
    pub(crate) named: Vec<String>,
    /// Files that the program may change besides the workspace and the scratch directory.
    pub(crate) own: Vec<PathBuf>,
    /// The session signs in with a subscription.
    pub(crate) is_subscription: bool,
    /// Holds prompt files, and the home if there is one; made when it is needed.
    pub(crate) scratch: Option<Scratch>,
}

impl Invocation {
    #[cfg(test)]
    pub(super) fn new(
        settings: CommandSettings,
        params: &CreateSessionParams,
        directory: &Path,
    ) -> Self {
        Self::planned(settings, params, directory, Plan::default())
    }

    pub(crate) fn planned(
        settings: CommandSettings,
        params: &CreateSessionParams,
        directory: &Path,
        mut plan: Plan,
    ) -> Self {
        let mut params = params.clone();
        params.workdir = absolute(&params.workdir);
        let directory = absolute(directory);
        let mut wall = Wall::of(&params);
        if wall.is_guard() && plan.scratch.is_none() {
            // Without it the program has no place for temporary files, and reports that itself.
            plan.scratch = session_directory().ok();
        }
        if let Some(scratch) = plan.scratch.as_mut().filter(|_| wall.is_guard()) {
            scratch.allow_reuse();
        }
        wall.own.extend(plan.own.iter().cloned());
        wall.own
            .extend(plan.scratch.iter().map(|scratch| scratch.path().to_owned()));
        let mut invocation = Self {
            settings,
            params,
            directory,
            plan,
            wall,
            lodging: None,
        };
        invocation.name_files();
        invocation
    }

    /// Shows the program the files of the suite that its commands name.
    fn name_files(&mut self) {
        let suite = self.directory.to_string_lossy().into_owned();
        let (plan, settings) = (&self.plan, &self.settings);
        let templates = [&settings.command, &plan.setup];
        let templates = templates.into_iter().chain(&plan.continuation);
        let mut texts = plan.named.clone();
        for template in templates {
            texts.extend(template.iter().map(|word| word.replace("{suite}", &suite)));
            let program = template.first().filter(|program| program.contains('/'));
            let program = program.map(|program| self.directory.join(program));
            texts.extend(program.map(|program| program.to_string_lossy().into_owned()));
        }
        let texts = texts.iter().map(String::as_str);
        self.wall.name_files(texts, &self.params.workdir);
    }

    /// Shows the program the files of the suite that these texts name.
    pub(crate) fn also_names(&mut self, texts: &[String]) {
        let texts = texts.iter().map(String::as_str);
        self.wall.name_files(texts, &self.params.workdir);
    }

    /// Starts the container of the session, if the suite asks for one. Everything is run in there from then on.
    pub(crate) async fn move_in(&mut self, agent: Option<&Recipe>) -> Result<(), ProviderError> {
        let sandbox = self.params.sandbox.clone();
        let Sandbox::Container(settings) = &*sandbox.sandbox else {
            return Ok(());
        };
        let no_scratch = |error: io::Error| {
            ProviderError::service(format!("cannot make a directory for the session: {error}"))
        };
        if self.plan.scratch.is_none() {
            self.plan.scratch = Some(session_directory().map_err(no_scratch)?);
        }
        let has_workspace = !sandbox.places.suite.starts_with(&self.params.workdir);
        let mut mounts: Vec<Mount> = self.named_files();
        let scratch = self.plan.scratch.as_ref().map(Scratch::path);
        mounts.extend(scratch.map(Mount::same));
        if has_workspace {
            mounts.push(Mount::same(&self.params.workdir));
        }
        let wanted = Wanted {
            settings,
            sandbox: &sandbox,
            trial: self.trial(),
            mounts,
            agent,
            resident: Resident::Agent,
        };
        let container = container::start(wanted).await;
        let container = container.map_err(container::not_housed)?;
        if let Some(skills) = &settings.skills_dir {
            let home = scratch.map(Path::to_owned).unwrap_or_default();
            let found = container::give_skills(&container, skills, &home, agent).await;
            found.map_err(container::not_housed)?;
        }
        self.lodging = Some(Lodging {
            container: Arc::new(container),
            workdir: has_workspace.then(|| self.params.workdir.clone()),
        });
        if !has_workspace {
            self.params.workdir = settings.workdir.as_deref().unwrap_or(".").into();
        }
        Ok(())
    }

    /// The container of the session, if it has one.
    pub(crate) fn container(&self) -> Option<Arc<Container>> {
        let lodging = self.lodging.as_ref()?;
        Some(Arc::clone(&lodging.container))
    }

    /// The engine's name for the container.
    pub(crate) fn container_handle(&self) -> Option<ContainerHandle> {
        let container = &self.lodging.as_ref()?.container;
        Some(ContainerHandle {
            engine: container.engine().kind().to_string(),
            name: container.name().to_owned(),
        })
    }

    /// The resources that the container has used until now.
    pub(crate) fn container_use(&self) -> Option<ContainerUse> {
        let lodging = self.lodging.as_ref();
        lodging.map(|lodging| lodging.container.usage())
    }

    fn trial(&self) -> String {
        let CreateSessionParams {
            scenario_id,
            mode,
            model,
            iteration,
            attempt,
            ..
        } = &self.params;
        format!("{scenario_id} {mode} {model} {iteration}.{attempt}")
    }

    /// Files of the suite that the session's settings name, read-only.
    fn named_files(&self) -> Vec<Mount> {
        let mount = |path: PathBuf| Mount {
            is_writable: false,
            ..Mount::same(path)
        };
        self.wall.shown_files().into_iter().map(mount).collect()
    }

    /// The file of events, if they are not written to stdout.
    pub(super) fn events_file(&self) -> Option<PathBuf> {
        let file = self.settings.events_file.as_deref()?;
        let workspace = self.params.workdir.to_string_lossy();
        Some(
            self.params
                .workdir
                .join(file.replace("{workspace}", &workspace)),
        )
    }

    /// The command to run before the first prompt, if any.
    pub(super) fn setup(&self, timeout: Duration) -> Option<Command> {
        let template = &self.plan.setup;
        let is_asked_for = !template.is_empty();
        is_asked_for.then(|| self.ready(self.argv(template, "", ""), Stdin::Closed, timeout))
    }

    /// The program as a server that is talked to. It lives as long as its session.
    pub(crate) fn server(&self) -> Command {
        let argv = self.argv(&self.settings.command, "", "");
        let mut command = self.ready(argv, Stdin::Piped, Duration::MAX);
        command.timeout = None;
        // Its output is read at once, so there is no need to keep it.
        command.stdout.head = u64::MAX;
        command
    }

    /// The directory of the session's own files.
    #[cfg(test)]
    pub(crate) fn home(&self) -> Option<&Path> {
        self.plan.scratch.as_ref().map(Scratch::path)
    }

    /// True when tokens are part of a subscription.
    pub(super) fn is_subscription(&self) -> bool {
        self.plan.is_subscription
    }

    pub(crate) fn writes_instructions(&self) -> bool {
        self.plan.writes_instructions
    }

    /// The program for one prompt, ready to start. `session` is the program's name for the session to continue.
    pub(super) fn command(
        &mut self,
        prompt: &str,
        session: Option<&str>,
        timeout: Duration,
    ) -> io::Result<Command> {
        let mut template = self.settings.command.clone();
        if let Some((session, continuation)) = session.zip(self.plan.continuation.as_ref()) {
            let go_on = |part: &String| part.replace("{session}", session);
            template = continuation.iter().map(go_on).collect();
        }
        let uses = |name: &str| {
            let placeholder = format!("{{{name}}}");
            template.iter().any(|part| part.contains(&placeholder))
        };
        let instructions = &self.params.system_instructions;
        let have_place = self.plan.instructions_have_place || uses("system_instructions");
        // Every prompt is a program of its own, so instructions that have no place elsewhere go with each.
        let prompt = match instructions.is_empty() || have_place {
            true => Cow::Borrowed(prompt),
            false => Cow::Owned(format!("{instructions}\n\n{prompt}")),
        };
        let prompt_file = match uses("prompt_file") {
            true => self.write_prompt(&prompt)?,
            false => String::new(),
        };
        let stdin = match uses("prompt") || uses("prompt_file") {
            true => Stdin::Closed,
            false => Stdin::Bytes(prompt.clone().into_owned().into_bytes()),
        };
        let argv = self.argv(&template, &prompt, &prompt_file);
        Ok(self.ready(argv, stdin, timeout))
    }

    fn argv(&self, template: &[String], prompt: &str, prompt_file: &str) -> Vec<String> {
        let workspace = self.params.workdir.to_string_lossy();
        let suite = self.directory.to_string_lossy();
        let usual = [
            ("{prompt}", prompt),
            ("{prompt_file}", prompt_file),
            ("{workspace}", &workspace),
            ("{system_instructions}", &self.params.system_instructions),
            ("{model}", &self.params.model),
            ("{suite}", &suite),
        ];
        let usual = usual.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let values = [self.plan.values.as_slice(), &usual].concat();
        let mut argv: Vec<String> = template.iter().map(|part| fill_in(part, &values)).collect();
        if let Some(program) = argv.first_mut().filter(|program| program.contains('/')) {
            *program = self
                .directory
                .join(&*program)
                .to_string_lossy()
                .into_owned();
        }
        argv
    }

    fn ready(&self, argv: Vec<String>, stdin: Stdin, timeout: Duration) -> Command {
        let (argv, stdin) = match &self.lodging {
            Some(lodging) => self.fed_by_file(argv, stdin, lodging),
            None => (argv, stdin),
        };
        let command = Command::from_argv(argv, &self.params.workdir);
        let command = self.bounded(command, timeout).stdin(stdin);
        match &self.lodging {
            Some(lodging) => {
                let within = Within {
                    workdir: lodging.workdir.clone(),
                    user: None,
                };
                lodging.container.exec(command, &within)
            }
            None => command,
        }
    }

    /// The same command with its stdin in a file that the container shares. Podman loses the output of programs that do not
    /// read all of a stdin that its client passes on.
    fn fed_by_file(
        &self,
        argv: Vec<String>,
        stdin: Stdin,
        lodging: &Lodging,
    ) -> (Vec<String>, Stdin) {
        let Stdin::Bytes(bytes) = &stdin else {
            return (argv, stdin);
        };
        let scratch = self.plan.scratch.as_ref().map(Scratch::path);
        let file = scratch.map(|scratch| scratch.join("stdin"));
        let is_shared = !lodging.container.engine().is_remote();
        match file.filter(|file| is_shared && std::fs::write(file, bytes).is_ok()) {
            Some(file) => {
                let script = "f=$0; exec \"$@\" <\"$f\"";
                let mut fed = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
                fed.push(file.to_string_lossy().into_owned());
                fed.extend(argv);
                (fed, Stdin::Closed)
            }
            None => match std::str::from_utf8(bytes) {
                Ok(text)
                    if !is_shared && bytes.len() <= LONGEST_ARGUMENT && !bytes.contains(&0) =>
                {
                    // Elsewhere no file is shared; the text is an argument of a shell that passes it on.
                    let script = "t=$0; printf %s \"$t\" | \"$@\"";
                    let fed = ["sh", "-c", script, text].map(str::to_owned);
                    let argv = fed.into_iter().chain(argv).collect();
                    (argv, Stdin::Closed)
                }
                _ => (argv, stdin),
            },
        }
    }

    /// The environment before what the suite adds: that of this machine, or that of a container.
    fn surrounded(&self, command: Command) -> Command {
        if self.lodging.is_none() {
            return self.with_own_places(command.pass_usual_env());
        }
        let shared = SHARED_VARIABLES.into_iter();
        let shared = shared.fold(command, |command, name| command.pass_env(name));
        shared.env("TERM", "dumb")
    }

    fn bounded(&self, command: Command, timeout: Duration) -> Command {
        let settings = &self.settings;
        let usual = self.surrounded(command);
        let passed = settings
            .pass_env
            .iter()
            .fold(usual, |command, name| command.pass_env(name));
        let mut command = self
            .params
            .environment
            .iter()
            .fold(passed, |command, (name, value)| command.env(name, value))
            .timeout(timeout)
            .polite(settings.polite_signal.into(), settings.grace());
        command.stdout = Bound {
            head: settings.max_output,
            tail: match settings.output.has_events() {
                true => EVENTS_TAIL,
                false => TEXT_TAIL,
            },
        };
        command.stderr = Bound {
            head: TEXT_TAIL,
            tail: TEXT_TAIL,
        };
        self.wall.around(command)
    }

    /// Behind a wall the usual places for temporary and cached files are closed.
    fn with_own_places(&self, command: Command) -> Command {
        match &self.plan.scratch {
            Some(scratch) if self.wall.is_guard() => command
                .env("TMPDIR", scratch.path())
                .env("XDG_CACHE_HOME", scratch.path().join(".cache")),
            _ => command,
        }
    }

    /// Outside the workspace, where it would count as a change.
    fn write_prompt(&mut self, prompt: &str) -> io::Result<String> {
        let scratch = match &self.plan.scratch {
            Some(scratch) => scratch,
            None => self.plan.scratch.insert(session_directory()?),
        };
        let file = scratch.path().join("prompt.txt");
        std::fs::write(&file, prompt)?;
        Ok(file.to_string_lossy().into_owned())
    }
}

/// Replaces placeholders. The names of the values include their braces.
pub(crate) fn fill_in(template: &str, values: &[(String, String)]) -> String {
    fill_template(template, |name| {
        let is_named = |known: &String| {
            let inside = known.strip_prefix('{');
            inside.and_then(|inside| inside.strip_suffix('}')) == Some(name)
        };
        let found = values.iter().find(|(known, _)| is_named(known));
        found.map(|(_, value)| Cow::Borrowed(value.as_str()))
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn command(argv: Value, instructions: &str) -> Command {
        let overrides = json!({"command": argv});
        let settings = CommandSettings::checked(overrides.as_object().unwrap()).unwrap();
        let params = CreateSessionParams {
            system_instructions: instructions.to_owned(),
            model: "m-1".to_owned(),
            workdir: "/ws".into(),
            ..CreateSessionParams::default()
        };
        let mut invocation = Invocation::new(settings, &params, Path::new("/suite"));
        let mut command = invocation
            .command("say {model}", None, Duration::from_secs(1))
            .unwrap();
        // The prompt file is gone with the invocation.
        for part in &mut command.argv {
            if let Ok(text) = std::fs::read_to_string(&*part) {
                *part = format!("file: {text}").into();
            }
        }
        command
    }

    fn check(argv: Value, expected: &[&str], stdin: Stdin) {
        let command = command(argv, "");
        assert_eq!(
            (command.argv, command.stdin),
            (expected.iter().map(Into::into).collect(), stdin)
        );
    }

    #[test]
    fn placeholders_are_filled_once() {
        check(
            json!([
                "a",
                "--p={prompt}",
                "{workspace}/{model}",
                "{other} {",
                "{suite}"
            ]),
            &["a", "--p=say {model}", "/ws/m-1", "{other} {", "/suite"],
            Stdin::Closed,
        );
    }

    #[test]
    fn a_prompt_without_a_place_goes_to_stdin() {
        check(
            json!(["a", "-"]),
            &["a", "-"],
            Stdin::Bytes(b"say {model}".to_vec()),
        );
    }

    #[test]
    fn a_prompt_file_holds_the_prompt() {
        check(
            json!(["a", "{prompt_file}"]),
            &["a", "file: say {model}"],
            Stdin::Closed,
        );
    }

    #[test]
    fn a_relative_program_lies_in_the_suite() {
        check(
            json!(["./a", "./b {prompt}"]),
            &["/suite/./a", "./b say {model}"],
            Stdin::Closed,
        );
    }

    #[test]
    fn instructions_without_a_place_go_before_the_prompt() {
        assert_eq!(
            command(json!(["a", "{prompt}"]), "Be brief.").argv[1],
            "Be brief.\n\nsay {model}"
        );
        let argv = json!(["a", "{system_instructions}", "{prompt}"]);
        assert_eq!(
            command(argv, "Be brief.").argv[1..],
            ["Be brief.", "say {model}"]
        );
    }

    #[test]
    fn only_what_is_harmless_is_passed_on() {
        let names: Vec<_> = command(json!(["a"]), "")
            .env
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let usual = |name: &std::ffi::OsString| {
            name == "TERM"
                || assize_process::USUAL_ENVIRONMENT
                    .iter()
                    .any(|usual| name == usual)
        };
        assert!(names.iter().all(usual), "{names:?}");
    }
}
