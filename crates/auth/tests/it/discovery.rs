//! From a server's address to its authorization server, where either says something odd.

use std::path::PathBuf;

use linetender_auth::{Client, Error, ErrorKind, Login, Prepared, Secret, Store};
use serde_json::{Value, json};

use crate::browser::BACK;
use crate::provider::asker;
use crate::scripted::Scripted;

const PRM: &str = "GET /.well-known/oauth-protected-resource";

struct World {
    web: Scripted,
    folder: PathBuf,
}

impl World {
    async fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("linetender-auth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let world = Self { web: Scripted::start().await, folder };
        world.web.put("POST /mcp", 401, "www-authenticate: Bearer\r\n", &json!({}));
        world
    }

    /// Metadata as it should be, with these changes.
    fn issuer(&self, path: &str, changes: &Value) -> Value {
        let origin = &self.web.origin;
        let mut metadata = json!({
            "issuer": format!("{origin}{path}"),
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "code_challenge_methods_supported": ["S256"],
        });
        for (name, value) in changes.as_object().unwrap() {
            metadata[name] = value.clone();
        }
        metadata
    }

    fn resource(&self, path: &str, issuers: &Value) -> Value {
        json!({ "resource": format!("{}{path}", self.web.origin), "authorization_servers": issuers })
    }

    async fn prepare(&self, client: Client) -> Result<Prepared, Error> {
        let store = Store::open(&self.folder).unwrap();
        let login = Login::new(&store, &format!("{}/mcp", self.web.origin), client).unwrap();
        login.through(asker()).prepare(None).await
    }

    async fn fails(&self) -> (ErrorKind, String) {
        let error = self.prepare(Client::default()).await.unwrap_err();
        (error.kind(), error.to_string())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn metadata_is_asked_for_in_order_and_no_further_than_needed() {
    let world = World::new("order").await;
    let issuer = format!("{}/tenant", world.web.origin);
    world.web.put(PRM, 200, "", &world.resource("", &json!([issuer])));
    let last = "GET /tenant/.well-known/openid-configuration";
    world.web.put(last, 200, "", &world.issuer("/tenant", &json!({})));
    let prepared = world.prepare(Client::default()).await.unwrap();
    assert_eq!(prepared.issuer(), issuer);
    assert_eq!(
        world.web.asked(),
        [
            "POST /mcp",
            "GET /.well-known/oauth-protected-resource/mcp",
            PRM,
            "GET /.well-known/oauth-authorization-server/tenant",
            "GET /.well-known/openid-configuration/tenant",
            last,
        ]
    );
    // A challenge that says where it is spares the rest.
    let own = format!("www-authenticate: Bearer resource_metadata=\"{}/own\"\r\n", world.web.origin);
    world.web.put("POST /mcp", 401, &own, &json!({}));
    world.web.put("GET /own", 200, "", &world.resource("/mcp", &json!([issuer])));
    world.prepare(Client::default()).await.unwrap();
    assert_eq!(world.web.asked()[1], "GET /own");
}

#[tokio::test]
async fn a_resource_or_issuer_that_is_somebody_elses_is_refused() {
    let world = World::new("other").await;
    let origin = world.web.origin.clone();
    let place = "GET /.well-known/oauth-authorization-server";
    world.web.put(place, 200, "", &world.issuer("", &json!({})));
    for resource in ["https://evil.example.com/mcp", &format!("{origin}/mc"), &format!("{origin}/mcp/deeper")]
    {
        world.web.put(PRM, 200, "", &json!({ "resource": resource, "authorization_servers": [origin] }));
        let (kind, words) = world.fails().await;
        assert!(kind == ErrorKind::Metadata && words.contains("another resource"), "{resource}: {words}");
    }
    world.web.put(PRM, 200, "", &world.resource("/mcp", &json!([origin])));
    world.prepare(Client::default()).await.unwrap();
    for issuer in [
        format!("{origin}/"),
        "https://evil.example.com".to_owned(),
        origin.replace("127.0.0.1", "localhost"),
    ] {
        world.web.put(place, 200, "", &world.issuer("", &json!({ "issuer": issuer })));
        let (kind, words) = world.fails().await;
        assert!(
            kind == ErrorKind::Metadata && words.contains("another authorization server"),
            "{issuer}: {words}"
        );
    }
    assert!(!world.web.asked().iter().any(|asked| asked.contains("register")), "nothing was said to it");
}

#[tokio::test]
async fn what_rules_a_login_out_is_said() {
    let world = World::new("rules-out").await;
    let origin = world.web.origin.clone();
    let place = "GET /.well-known/oauth-authorization-server";
    world.web.put(PRM, 200, "", &world.resource("/mcp", &json!([origin])));
    for (changes, said) in [
        (json!({ "code_challenge_methods_supported": null }), "S256"),
        (json!({ "code_challenge_methods_supported": ["plain"] }), "S256"),
        (json!({ "issuer": 5 }), "cannot be read"),
    ] {
        world.web.put(place, 200, "", &world.issuer("", &changes));
        let (kind, words) = world.fails().await;
        assert!(kind == ErrorKind::Metadata && words.contains(said), "{changes}: {words}");
    }
    // Nobody registers itself there: the person is told what to do.
    world.web.put(place, 200, "", &world.issuer("", &json!({ "registration_endpoint": null })));
    let error = world.prepare(Client::default()).await.unwrap().start(BACK).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Client && error.to_string().contains("client_id"), "{error}");
    // With no authorization server, or one that is not https.
    for (issuers, kind) in
        [(json!([]), ErrorKind::Metadata), (json!(["http://as.example.com"]), ErrorKind::Address)]
    {
        world.web.put(PRM, 200, "", &world.resource("/mcp", &issuers));
        assert_eq!(world.fails().await.0, kind, "{issuers}");
    }
    // Trouble is no answer: the server may have metadata after all.
    world.web.put(PRM, 503, "retry-after: 9\r\n", &json!({}));
    let error = world.prepare(Client::default()).await.unwrap_err();
    assert!(error.is_passing() && error.retry_after().unwrap().as_secs() == 9, "{error}");
    let long = "x".repeat(2 * 1024 * 1024);
    world.web.put(PRM, 200, "", &json!(long));
    assert!(world.fails().await.1.contains("longer than"), "an endless answer is not read");
}

#[tokio::test]
async fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let world = World::new("old").await;
    let origin = world.web.origin.clone();
    world.web.put(
        "POST /register",
        201,
        "",
        &json!({ "client_id": "c", "client_secret": "a-secret-of-a-client" }),
    );
    let pending = world.prepare(Client::default()).await.unwrap().start(BACK).await.unwrap();
    assert!(
        pending.url().starts_with(&format!("{origin}/authorize?response_type=code&client_id=c&")),
        "{}",
        pending.url()
    );
    let published = world.issuer("", &json!({ "authorization_endpoint": format!("{origin}/oauth/go?x=y") }));
    world.web.put("GET /.well-known/oauth-authorization-server", 200, "", &published);
    let pending = world.prepare(Client::default()).await.unwrap().start(BACK).await.unwrap();
    assert!(
        pending.url().starts_with(&format!("{origin}/oauth/go?x=y&response_type=code")),
        "{}",
        pending.url()
    );
}

#[tokio::test]
async fn a_client_is_presented_in_the_order_of_the_specification() {
    let world = World::new("presented").await;
    let origin = world.web.origin.clone();
    let place = "GET /.well-known/oauth-authorization-server";
    world.web.put(PRM, 200, "", &world.resource("/mcp", &json!([origin])));
    let supports = json!({ "client_id_metadata_document_supported": true, "scopes_supported": ["a"] });
    world.web.put(place, 200, "", &world.issuer("", &supports));
    world.web.put("POST /register", 201, "", &json!({ "client_id": "registered" }));
    let document = Some("https://example.com/client.json".to_owned());
    let by_hand = Client {
        id: Some("by-hand".to_owned()),
        secret: Some(Secret::from("the-secret-by-hand")),
        metadata_url: document.clone(),
        issuer: Some(origin.clone()),
        ..Client::default()
    };
    let with_document = Client { metadata_url: document, ..Client::default() };
    let presented = async |client: &Client| {
        let pending = world.prepare(client.clone()).await.unwrap().start(BACK).await.unwrap();
        let (_, rest) = pending.url().split_once("client_id=").unwrap();
        assert!(!format!("{pending:?}").contains("state="));
        rest.split('&').next().unwrap().to_owned()
    };
    assert_eq!(presented(&by_hand).await, "by-hand");
    assert_eq!(presented(&with_document).await, "https%3A%2F%2Fexample.com%2Fclient.json");
    assert_eq!(presented(&Client::default()).await, "registered");
    world.web.put(place, 200, "", &world.issuer("", &json!({})));
    assert_eq!(presented(&with_document).await, "registered");
    // A secret is presented to nobody but the issuer that is configured beside it.
    let anywhere = Client { issuer: None, ..by_hand.clone() };
    let error = world.prepare(anywhere).await.unwrap().start(BACK).await.unwrap_err();
    let advice = format!("put issuer = \"{origin}\"");
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains(&advice), "{error}");
    // A client that was registered elsewhere is not shown here.
    let elsewhere = Client { issuer: Some("https://as.example.com".to_owned()), ..by_hand };
    let error = world.prepare(elsewhere).await.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Metadata && error.to_string().contains("https://as.example.com"),
        "{error}"
    );
}

#[tokio::test]
async fn a_redirect_leads_nowhere_else() {
    let world = World::new("redirect").await;
    let other = Scripted::start().await;
    let away = format!("location: {}/metadata\r\n", other.origin);
    for status in [301, 302, 307, 308] {
        world.web.put(&format!("{PRM}/mcp"), status, &away, &json!({}));
        let origin = world.web.origin.clone();
        world.web.put(PRM, 200, "", &world.resource("/mcp", &json!([origin])));
        world.web.put("GET /.well-known/oauth-authorization-server", 200, "", &world.issuer("", &json!({})));
        world.prepare(Client::default()).await.unwrap();
    }
    assert!(other.asked().is_empty());
}
