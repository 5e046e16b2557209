//! Usage: `assize-kubernetes-manifests FILE…`. Every file must be a Job as the API knows it: each key, each type, nothing besides.

use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut all_good = true;
    for file in std::env::args().skip(1) {
        match check(&file) {
            Ok(job) => println!("{file}: a Job of {} indexes", job),
            Err(error) => {
                eprintln!("{file}: {error}");
                all_good = false;
            }
        }
    }
    if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(file: &str) -> Result<i32, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let written: Value = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
    let job: Job = serde_json::from_value(written.clone()).map_err(|error| error.to_string())?;
    // Unknown keys are ignored when a type is read, and would be missing here.
    let read = serde_json::to_value(&job).map_err(|error| error.to_string())?;
    let mut lost = Vec::new();
    compare("", &written, &read, &mut lost);
    if !lost.is_empty() {
        return Err(format!("the API does not know: {}", lost.join(", ")));
    }
    let spec = job.spec.ok_or("it has no spec")?;
    if spec.completion_mode.as_deref() != Some("Indexed") {
        return Err("it is not Indexed".to_owned());
    }
    let pod = spec.template.spec.ok_or("its template has no spec")?;
    let container = pod.containers.first().ok_or("it has no container")?;
    for variable in container.env.iter().flatten() {
        // Values of secrets come by reference only.
        if variable.name != "HOME" && variable.value.is_some() {
            return Err(format!("the value of `{}` stands in the manifest", variable.name));
        }
    }
    spec.completions.ok_or_else(|| "it has no completions".to_owned())
}

fn compare(path: &str, written: &Value, read: &Value, lost: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                match read.get(key) {
                    Some(known) => compare(&format!("{path}.{key}"), value, known, lost),
                    // Empty lists are the same as none.
                    None if value.as_array().is_some_and(Vec::is_empty) => {}
                    None => lost.push(format!("{path}.{key}")),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) if written.len() == read.len() => {
            for (number, (written, read)) in written.iter().zip(read).enumerate() {
                compare(&format!("{path}[{number}]"), written, read, lost);
            }
        }
        _ if written == read => {}
        _ => lost.push(path.to_owned()),
    }
}
