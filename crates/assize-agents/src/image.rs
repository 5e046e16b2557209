//! Agents in images: a layer on top of any image, built once and found again by its name.
//!
//! A recipe says how its agent is installed: a package of npm or pip inside the image, or a statically linked program that is
//! fetched here and copied in.

use crate::recipe::Recipe;
use assize_process::container::{Build, Engine, Linkage, linkage_of};
use assize_process::{Command, Error};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time limit for building a layer.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);

/// The time limit for fetching a program.
const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// The way an agent gets into an image: one of these.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Installation {
    /// A package that npm installs in the image.
    #[serde(default)]
    npm: Option<String>,
    /// Packages that pip installs in the image, the agent's own first.
    #[serde(default)]
    pip: Vec<String>,
    /// A statically linked program.
    #[serde(default)]
    binary: Option<BinarySource>,
}

/// A program inside a package of npm, for images that have neither node nor npm.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct BinarySource {
    /// `{version}`, `{arch}` (`x64`, `arm64`) and `{machine}` (`x86_64`, `aarch64`) are replaced.
    package: String,
    /// Its place in the package.
    file: String,
    /// It is dynamically linked and runs only in images with glibc.
    #[serde(default)]
    needs_glibc: bool,
}

/// An image with an agent on top of another image.
#[derive(Debug, Clone)]
pub struct AgentLayer<'a> {
    /// The agent.
    pub recipe: &'a Recipe,
    /// Another version than the one that is known to work.
    pub version: Option<String>,
    /// The image below.
    pub from: String,
    /// The name of the image. Absent: one that follows from everything else.
    pub tag: Option<String>,
    /// Variables for the installation, such as the address of a registry.
    pub environment: Vec<(String, String)>,
    /// The installation uses the network of this machine as it is.
    pub uses_host_network: bool,
}

/// An image that has the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentImage {
    pub name: String,
    /// It was there already.
    pub is_cached: bool,
}

/// Adds a recipe's agent to an image, unless it is there.
pub(crate) async fn provide_agent(
    engine: &Engine,
    image: &str,
    recipe: &Recipe,
) -> Result<String, Error> {
    if engine.has_program(image, recipe.program()).await {
        return Ok(image.to_owned());
    }
    let layer = AgentLayer {
        recipe,
        version: None,
        from: image.to_owned(),
        tag: None,
        environment: Vec::new(),
        uses_host_network: false,
    };
    // Sessions that start at once want the same layer; one builds it.
    static BUILDING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = BUILDING.lock().await;
    Ok(layer.build(engine).await?.name)
}

impl AgentLayer<'_> {
    /// Builds the layer, unless an equal one is there.
    pub async fn build(&self, engine: &Engine) -> Result<AgentImage, Error> {
        let below = engine.provide_image(&self.from).await?;
        let steps = self.steps()?;
        let user = engine.image_user(&self.from).await?;
        let name = match &self.tag {
            Some(tag) => tag.clone(),
            None => self.name(&below, &steps),
        };
        if self.tag.is_none() && engine.image_id(&name).await.is_some() {
            return Ok(AgentImage {
                name,
                is_cached: true,
            });
        }
        let context = assize_secrets::private_directory("assize-image-")
            .map_err(|source| self.unprepared(source))?;
        if let Steps::Binary(binary) = &steps {
            self.fetch(binary, context.path()).await?;
        }
        let dockerfile = self.dockerfile(&steps, &user);
        let file = context.path().join("Dockerfile");
        std::fs::write(&file, dockerfile).map_err(|source| self.unprepared(source))?;
        let build = Build {
            context: context.path().to_owned(),
            file,
            tag: name,
            arguments: self.environment.clone(),
            uses_host_network: self.uses_host_network,
            timeout: BUILD_LIMIT,
        };
        let name = engine.build(&build).await?;
        Ok(AgentImage {
            name,
            is_cached: false,
        })
    }

    fn version(&self) -> &str {
        let tested = self.recipe.tested.as_deref();
        self.version.as_deref().or(tested).unwrap_or("latest")
    }

    fn steps(&self) -> Result<Steps, Error> {
        let Some(installation) = &self.recipe.image else {
            return Err(Error::Installation {
                agent: self.recipe.name.clone(),
                message:
                    "its recipe does not say how it is installed in an image (`image: { npm: … }`)"
                        .to_owned(),
            });
        };
        let version = self.version();
        if let Some(binary) = &installation.binary {
            return Ok(Steps::Binary(BinarySource {
                package: self.filled(&binary.package),
                file: self.filled(&binary.file),
                needs_glibc: binary.needs_glibc,
            }));
        }
        if let Some(package) = &installation.npm {
            return Ok(Steps::Run(npm(&format!("{package}@{version}"))));
        }
        let pinned = match version {
            "latest" => String::new(),
            version => format!("=={version}"),
        };
        match installation.pip.split_first() {
            Some((own, others)) => {
                let packages = format!("{own}{pinned} {}", others.join(" "));
                Ok(Steps::Run(pip(
                    &self.recipe.name,
                    packages.trim(),
                    self.recipe.program(),
                )))
            }
            None => Err(Error::Installation {
                agent: self.recipe.name.clone(),
                message: "its recipe names no package".to_owned(),
            }),
        }
    }

    fn filled(&self, text: &str) -> String {
        let (arch, machine) = match std::env::consts::ARCH {
            "aarch64" => ("arm64", "aarch64"),
            _ => ("x64", "x86_64"),
        };
        text.replace("{version}", self.version())
            .replace("{arch}", arch)
            .replace("{machine}", machine)
    }

    /// The same for the same image, agent and steps.
    fn name(&self, below: &str, steps: &Steps) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [below, &steps.as_text()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let hash = hasher.finalize().to_hex();
        let Recipe { name, .. } = self.recipe;
        format!(
            "localhost/assize-agent:{name}-{}-{}",
            self.version(),
            &hash[..12]
        )
    }

    fn dockerfile(&self, steps: &Steps, user: &str) -> String {
        let mut lines = vec![format!("FROM {}", self.from), "USER root".to_owned()];
        for (name, _) in &self.environment {
            lines.push(format!("ARG {name}"));
        }
        lines.push(match steps {
            Steps::Run(script) => format!("RUN {script}"),
            Steps::Binary(_) => format!("COPY agent /usr/local/bin/{}", self.recipe.program()),
        });
        if let Steps::Binary(BinarySource {
            needs_glibc: true, ..
        }) = steps
        {
            // Fails here rather than in every trial, where the image has another C library.
            lines.push(format!("RUN {} --version", self.recipe.program()));
        }
        if !user.is_empty() {
            lines.push(format!("USER {user}"));
        }
        lines.join("\n") + "\n"
    }

    /// Fetches a package with npm and puts its program into the build context, as `agent`.
    async fn fetch(&self, binary: &BinarySource, context: &Path) -> Result<(), Error> {
        let BinarySource { package, file, .. } = binary;
        let refused = |message: String| Error::Installation {
            agent: self.recipe.name.clone(),
            message,
        };
        let run = async |argv: Vec<String>| {
            let command = Command::from_argv(argv, context).pass_usual_env();
            let command = [
                "HTTP_PROXY",
                "HTTPS_PROXY",
                "NO_PROXY",
                "NODE_EXTRA_CA_CERTS",
            ]
            .into_iter()
            .fold(command, |command, name| command.pass_env(name));
            let command = self
                .environment
                .iter()
                .fold(command, |command, (name, value)| command.env(name, value));
            let output = command.timeout(FETCH_LIMIT).run_to_end().await?;
            match output.exit.is_success() {
                true => Ok(output.stdout.text().trim().to_owned()),
                false => Err(refused(output.stderr.last_words(500))),
            }
        };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let packed = run(words(&["npm", "pack", "--silent", package])).await?;
        let archive = packed.lines().last().unwrap_or_default();
        run(words(&["tar", "-xzf", archive])).await?;
        let program: PathBuf = context.join("package").join(file);
        let linkage = linkage_of(&program)
            .map_err(|error| refused(format!("`{file}` is not in `{package}`: {error}")))?;
        if linkage == Linkage::Foreign || (linkage == Linkage::Dynamic && !binary.needs_glibc) {
            return Err(refused(format!(
                "`{file}` of `{package}` is not statically linked and would not run in every image"
            )));
        }
        std::fs::rename(&program, context.join("agent"))
            .map_err(|source| self.unprepared(source))?;
        for rest in ["package", archive] {
            let rest = context.join(rest);
            let _ = match rest.is_dir() {
                true => std::fs::remove_dir_all(&rest),
                false => std::fs::remove_file(&rest),
            };
        }
        Ok(())
    }

    fn unprepared(&self, source: std::io::Error) -> Error {
        Error::Installation {
            agent: self.recipe.name.clone(),
            message: format!("the build cannot be prepared: {source}"),
        }
    }
}

/// The content that a layer adds.
enum Steps {
    /// A line for the shell.
    Run(String),
    /// A program to copy in.
    Binary(BinarySource),
}

impl Steps {
    fn as_text(&self) -> String {
        match self {
            Self::Run(script) => script.clone(),
            Self::Binary(BinarySource { package, file, .. }) => format!("{package} {file}"),
        }
    }
}

/// Installs node where it is missing, by whatever package manager the image has.
fn npm(package: &str) -> String {
    format!(
        "{}npm install -g --no-audit --no-fund --loglevel=error '{package}'",
        needing("npm", "nodejs npm", "nodejs npm")
    )
}

fn pip(name: &str, packages: &str, program: &str) -> String {
    format!(
        "{}python3 -m venv /opt/assize/{name} && /opt/assize/{name}/bin/pip install --quiet --disable-pip-version-check {packages} \
         && ln -sf /opt/assize/{name}/bin/{program} /usr/local/bin/{program}",
        needing("python3", "python3 python3-venv", "python3 py3-pip")
    )
}

fn needing(program: &str, debian: &str, alpine: &str) -> String {
    format!(
        "set -e; command -v {program} >/dev/null 2>&1 || {{ \
         if command -v apt-get >/dev/null 2>&1; then apt-get update && apt-get install -y --no-install-recommends {debian} ca-certificates; \
         elif command -v apk >/dev/null 2>&1; then apk add --no-cache {alpine}; \
         elif command -v dnf >/dev/null 2>&1; then dnf install -y {alpine}; \
         else echo 'the image has no {program} and no package manager that is known' >&2; exit 1; fi; }}; "
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(agent: &str) -> AgentLayer<'static> {
        let mut recipes = Recipe::built_in().iter();
        AgentLayer {
            recipe: recipes.find(|recipe| recipe.name == agent).unwrap(),
            version: None,
            from: "debian:12".to_owned(),
            tag: None,
            environment: vec![("NPM_CONFIG_REGISTRY".to_owned(), "http://x".to_owned())],
            uses_host_network: false,
        }
    }

    #[test]
    fn every_agent_has_a_way_into_images() {
        for recipe in Recipe::built_in() {
            let steps = layer(&recipe.name).steps();
            assert!(steps.is_ok(), "{}", recipe.name);
        }
    }

    #[test]
    fn a_layer_installs_the_tested_version_and_keeps_the_user() {
        let layer = layer("claude-code");
        let file = layer.dockerfile(&layer.steps().unwrap(), "app");
        let version = layer.recipe.tested.clone().unwrap();
        assert!(file.starts_with("FROM debian:12\nUSER root\nARG NPM_CONFIG_REGISTRY\nRUN "));
        assert!(
            file.contains(&format!("'@anthropic-ai/claude-code@{version}'")),
            "{file}"
        );
        assert!(file.ends_with("\nUSER app\n"));
    }

    #[test]
    fn another_image_or_version_is_another_layer() {
        let layer = layer("codex");
        let steps = layer.steps().unwrap();
        let other = AgentLayer {
            version: Some("1.0.0".to_owned()),
            ..layer.clone()
        };
        assert_eq!(layer.name("a", &steps), layer.name("a", &steps));
        assert_ne!(layer.name("a", &steps), layer.name("b", &steps));
        assert_ne!(
            layer.name("a", &steps),
            other.name("a", &other.steps().unwrap())
        );
    }
}
