//! The admin address, as the config names it.

use std::path::Path;
use std::sync::Arc;

use linetender_admin::{Admin, Options, Secret};
use linetender_gateway::config::{AdminToken, Settings};
use linetender_gateway::front::Doors;
use linetender_holder::Holder;
use tokio::task::JoinSet;

/// Opens it, if it is set. `config` is the file that the settings stand in.
pub(super) async fn open(settings: &Settings, config: &Path) -> Result<Option<Admin>, String> {
    let (Some(listen), Some(token)) = (settings.admin.listen, secret(settings, config)) else {
        return Ok(None);
    };
    let certificate = Doors::certificate(settings).map_err(|why| why.to_string())?;
    let hosts = settings.admin.allowed_hosts.clone();
    let certificate = certificate.map(|certificate| -> linetender_admin::Certificate {
        Arc::new(move || {
            let certificate = certificate.clone();
            Box::pin(async move { certificate.config().await })
        })
    });
    Admin::open(Options { listen, token, hosts, certificate }).await.map(Some)
}

/// Tries what can be tried without listening.
pub(super) fn check(settings: &Settings, config: &Path) -> Result<(), String> {
    match secret(settings, config) {
        Some(token) if settings.admin.listen.is_some() => Admin::check_token(token),
        _ => Ok(()),
    }
}

/// Serves it for as long as what is returned lives.
pub(super) fn serve(admin: Admin, holder: &Holder) -> JoinSet<()> {
    tracing::info!(address = %admin.url(), "serving the admin address");
    let mut task = JoinSet::new();
    task.spawn(admin.serve(holder.clone()));
    task
}

fn secret(settings: &Settings, config: &Path) -> Option<Secret> {
    let folder = config.parent().unwrap_or(Path::new(""));
    settings.admin.token.as_ref().map(|token| match token {
        AdminToken::Text(text) => Secret::Text(text.clone()),
        AdminToken::File(path) => Secret::File(folder.join(path)),
    })
}
