//! A user who tries everything that the server offers, all at once: what belongs to one call must not show in another.

use linetender::{Kind, Line, Tool};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::Outcome;
use super::answers::filled;
use super::rounds;
use super::task::Task;

/// A request to make.
type Wish = (&'static str, Value);

/// Uses the line as the scenario wants it, or else in every way there is.
pub(super) async fn run(line: &Line, task: &Task) -> Outcome<()> {
    let tools = read(line.list_tools().await?.iter().map(Tool::raw))?;
    let wishes = match &*task.scenario {
        // Its server can do nothing but list.
        "json-schema-ref-no-deref" => Vec::new(),
        "json-schema-2020-12-preservation" => vec![echo_of_schema(&tools)?],
        _ if task.context["toolCalls"].is_array() => called_for(&task.context),
        _ => everything(line, &tools).await?,
    };
    let mut requests = JoinSet::new();
    for (method, params) in wishes {
        let Value::Object(params) = params else { return Err(format!("{params} is no object").into()) };
        let line = line.clone();
        requests.spawn(async move { rounds::request(&line, method, params).await });
    }
    while let Some(made) = requests.join_next().await {
        println!("{}", made??);
    }
    Ok(())
}

async fn everything(line: &Line, tools: &[Value]) -> Outcome<Vec<Wish>> {
    let catalogue = line.catalogue().await?;
    let call = |tool: &Value| {
        ("tools/call", json!({ "name": tool["name"], "arguments": filled(&tool["inputSchema"]) }))
    };
    let read_it = |resource: &Value| ("resources/read", json!({ "uri": resource["uri"] }));
    let get = |prompt: &Value| {
        let named = prompt["arguments"].as_array().into_iter().flatten();
        let arguments: Map<_, _> = named
            .filter_map(|argument| Some((argument["name"].as_str()?.to_owned(), json!("something"))))
            .collect();
        ("prompts/get", json!({ "name": prompt["name"], "arguments": arguments }))
    };
    let mut wishes: Vec<Wish> = tools.iter().map(call).collect();
    wishes.extend(read(catalogue.list(Kind::Resources))?.iter().map(read_it));
    wishes.extend(read(catalogue.list(Kind::Prompts))?.iter().map(get));
    Ok(wishes)
}

/// The calls that the suite wants made, with its own values.
fn called_for(context: &Value) -> Vec<Wish> {
    let calls = context["toolCalls"].as_array().into_iter().flatten();
    calls
        .map(|call| ("tools/call", json!({ "name": call["name"], "arguments": call["arguments"] })))
        .collect()
}

/// One tool's schema goes back to the server as the argument of another, to show that nothing of it was lost.
fn echo_of_schema(tools: &[Value]) -> Outcome<Wish> {
    let focal = tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool");
    let schema = &focal.ok_or("the tool whose schema matters is not listed")?["inputSchema"];
    Ok(("tools/call", json!({ "name": "json_schema_echo", "arguments": { "schema": schema } })))
}

fn read(list: impl Iterator<Item = impl AsRef<str>>) -> Outcome<Vec<Value>> {
    Ok(list.map(|entry| serde_json::from_str(entry.as_ref())).collect::<Result<_, _>>()?)
}
