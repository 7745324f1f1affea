//! The codes of errors that are linetender's own: one table for the library, its sessions and the gateway.

/// A code for a JSON-RPC error. All lie outside -32768..-32000, so that nobody takes our word for the server's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
#[repr(i32)]
pub enum Code {
    /// The server takes no calls now.
    Refused = 7001,
    /// Too much is under way or waits already.
    Overloaded = 7002,
    /// The server did not come up in time.
    HeldTooLong = 7003,
    /// The call's own time was up.
    TimedOut = 7004,
    /// The connection ended under the call.
    Lost = 7005,
    /// The server's answer cannot be passed on.
    BadAnswer = 7006,
    /// The server refuses what it offered when the session began.
    Vanished = 7007,
    /// What was asked cannot be sent: it is no JSON, too large, or too deep.
    Unreadable = 7008,
    /// There is no server, tool, prompt or resource of this name here.
    NotHere = 7009,
    /// The server answered with a JSON-RPC error. Sessions pass that on as it is; only programs see this.
    ErrorAnswer = 7010,
    /// The call could not be written to the audit file.
    NotRecorded = 7011,
    /// The server, or a proxy before it, refused the call.
    ServerRefused = 7012,
}

impl Code {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Refused,
        Self::Overloaded,
        Self::HeldTooLong,
        Self::TimedOut,
        Self::Lost,
        Self::BadAnswer,
        Self::Vanished,
        Self::Unreadable,
        Self::NotHere,
        Self::ErrorAnswer,
        Self::NotRecorded,
        Self::ServerRefused,
    ];

    /// As a number.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// An error, as JSON, that says no more than this.
    pub fn error(self, message: &str) -> String {
        let message = format!("linetender: {message}");
        serde_json::json!({ "code": self.number(), "message": message, "data": { "source": "linetender" } })
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn the_page_of_errors_has_each_code_once() {
        let page = include_str!("../../../../docs/errors.md");
        let (_, table) = page.split_once("| code |").expect("a table of codes");
        let (table, _) = table.split_once("\n\n").expect("its end");
        for code in Code::ALL {
            assert_eq!(table.matches(&format!("\n| {} |", code.number())).count(), 1, "{code:?}");
        }
        assert_eq!(table.matches("\n| 7").count(), Code::ALL.len());
    }
}
