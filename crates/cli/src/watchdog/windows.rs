//! By the states of a Windows service, if the service manager started us (`serve --service`). It looks at the process alone, not at
//! whether a runtime is frozen.

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};
use windows_service::service_dispatcher;

use crate::{log, stop};

/// How long starting and stopping may take before the manager thinks that it hangs: servers have ten seconds to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is done as a service, until the manager has asked for it.
static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// Where the manager is told how we are.
static MANAGER: OnceLock<ServiceStatusHandle> = OnceLock::new();

type Work = Box<dyn FnOnce() -> ExitCode + Send>;

/// Tells that it serves. Never ends.
pub(crate) async fn run() -> Infallible {
    tell(ServiceState::Running, 0);
    std::future::pending().await
}

/// Tells that it is about to end.
pub(crate) fn ends() {
    tell(ServiceState::StopPending, 0);
}

/// Does this as the service that the manager started this process for. The manager hears of its end, and so may start it again.
pub(crate) fn as_service(work: impl FnOnce() -> ExitCode + Send + 'static) -> ExitCode {
    *WORK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(work));
    // The name counts only where several services share a process.
    match service_dispatcher::start("linetender", begun) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::say(format_args!(
                "linetender: --service is for the service manager (sc.exe create linetender binPath= …), which did not start this process: {}",
                cause(&error)
            ));
            ExitCode::FAILURE
        }
    }
}

/// The error of the system beneath one of the library's.
fn cause(error: &windows_service::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Called by the system, on a thread of its own.
extern "system" fn begun(_: u32, _: *mut *mut u16) {
    let Some(work) = WORK.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    log::without_stderr();
    match service_control_handler::register(OsString::from("linetender"), told) {
        Ok(manager) => drop(MANAGER.set(manager)),
        Err(error) => {
            log::say(format_args!("linetender: the service manager refuses this process: {}", cause(&error)));
            log::flush();
            #[expect(
                clippy::disallowed_methods,
                reason = "a manager that cannot be told anything sees that the process ends, and may start it again; it has no children yet"
            )]
            std::process::exit(1);
        }
    }
    tell(ServiceState::StartPending, 0);
    // Unwinding must not reach the system, and a manager that hears of a failure can start it again.
    let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(ExitCode::FAILURE);
    log::flush();
    tell(ServiceState::Stopped, u32::from(code != ExitCode::SUCCESS));
}

fn told(control: ServiceControl) -> ServiceControlHandlerResult {
    match control {
        ServiceControl::Stop | ServiceControl::Shutdown => stop::by_manager(),
        ServiceControl::ParamChange => {
            let _ = stop::reload();
        }
        ServiceControl::Interrogate => {}
        _ => return ServiceControlHandlerResult::NotImplemented,
    }
    ServiceControlHandlerResult::NoError
}

fn tell(state: ServiceState, failure: u32) {
    let Some(manager) = MANAGER.get() else { return };
    let runs = state == ServiceState::Running;
    let waits = matches!(state, ServiceState::StartPending | ServiceState::StopPending);
    let accepted =
        ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN | ServiceControlAccept::PARAM_CHANGE;
    // Nobody may be there to hear it.
    let _ = manager.set_service_status(ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: state,
        controls_accepted: if runs { accepted } else { ServiceControlAccept::empty() },
        exit_code: if failure == 0 {
            ServiceExitCode::NO_ERROR
        } else {
            ServiceExitCode::ServiceSpecific(failure)
        },
        checkpoint: 0,
        wait_hint: if waits { PATIENCE } else { Duration::ZERO },
        process_id: None,
    });
}
