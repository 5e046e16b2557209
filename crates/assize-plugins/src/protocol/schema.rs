//! The JSON Schema of the protocol, for the checked-in file and the kits' types.

use super::*;
use assize_contracts::{AnalysisResult, CustomMetric, ModeConfig, ScoreRecord, ScorerResult};
use schemars::SchemaGenerator;
use serde_json::json;

/// A method and the schemas of what it takes and gives.
pub struct Method {
    /// Its name on the wire.
    pub name: &'static str,
    params: fn(&mut SchemaGenerator) -> schemars::Schema,
    result: Option<fn(&mut SchemaGenerator) -> schemars::Schema>,
}

macro_rules! methods {
    ($($name:literal: $params:ty $(=> $result:ty)?;)*) => {
        /// Every method of the protocol. Those without a result are notifications.
        pub const METHODS: &[Method] = &[$(Method {
            name: $name,
            params: |generator| generator.subschema_for::<$params>(),
            result: methods!(@result $($result)?),
        }),*];
    };
    (@result $result:ty) => { Some(|generator| generator.subschema_for::<$result>()) };
    (@result) => { None };
}

methods! {
    "initialize": InitializeParams => InitializeResult;
    "provider/init": ProviderInitParams<'static> => ();
    "provider/createSession": ProviderCreateSessionParams<'static> => SessionHandle;
    "provider/prompt": ProviderPromptParams<'static> => PromptResult;
    "provider/exportSession": ProviderSessionParams<'static> => SessionTrace;
    "provider/destroySession": ProviderSessionParams<'static> => ();
    "provider/shutdown": ProviderShutdownParams<'static> => ();
    "scorer/evaluate": ScorerEvaluateParams<'static> => ScorerResult;
    "collector/collect": CollectorCollectParams<'static> => Vec<CustomMetric>;
    "analyzer/analyze": AnalyzerAnalyzeParams<'static> => AnalysisResult;
    "modeResolver/resolve": ModeParams<'static> => ModeConfig;
    "hooks/beforeRun": RunParams<'static> => ();
    "hooks/beforeMode": ModeParams<'static> => ();
    "hooks/beforeScenario": BeforeScenarioParams<'static> => Option<BaseScenario>;
    "hooks/afterScenario": AfterScenarioParams<'static> => ();
    "hooks/afterMode": ModeParams<'static> => ();
    "hooks/afterRun": RunParams<'static> => ();
    "runner/execute": RunnerExecuteParams<'static> => RunRecord;
    "evaluator/evaluate": EvaluatorEvaluateParams<'static> => Vec<ScoreRecord>;
    "evaluator/evaluateScenario": EvaluatorEvaluateScenarioParams<'static> => Vec<ScoreRecord>;
    "$/cancel": CancelParams;
    "$/log": LogParams;
    "$/progress": ProgressParams;
}

/// The JSON Schema of every message. `x-methods` lists what each method takes and gives.
pub fn schema() -> schemars::Schema {
    let mut generator = SchemaGenerator::default();
    let error = generator.subschema_for::<RpcError>();
    generator.subschema_for::<FailureData>();
    let (mut listed, mut messages) = (JsonMap::new(), Vec::new());
    for Method {
        name,
        params,
        result,
    } in METHODS
    {
        let params = params(&mut generator);
        let mut properties = json!({
            "jsonrpc": { "const": "2.0" }, "method": { "const": name }, "params": params,
        });
        let mut entry = json!({ "params": params });
        let mut required = vec!["jsonrpc", "method", "params"];
        if let Some(result) = result {
            entry["result"] = json!(result(&mut generator));
            properties["id"] = json!({ "type": ["integer", "string"] });
            required.push("id");
        }
        messages.push(json!({ "type": "object", "title": name, "properties": properties, "required": required }));
        listed.insert((*name).to_owned(), entry);
    }
    messages.push(json!({
        "type": "object",
        "title": "answer",
        "properties": {
            "jsonrpc": { "const": "2.0" }, "id": { "type": ["integer", "string", "null"] }, "result": {}, "error": error,
        },
        "required": ["jsonrpc", "id"],
        "oneOf": [{ "required": ["result"] }, { "required": ["error"] }],
    }));
    let definitions: JsonMap = generator.take_definitions(true);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "PluginProtocol",
        "description": "One line of the plugin protocol, version 1.",
        "anyOf": messages,
        "x-methods": listed,
        "$defs": definitions,
    });
    schemars::Schema::try_from(schema).expect("an object is a schema")
}
