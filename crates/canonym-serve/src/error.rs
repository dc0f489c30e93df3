//! Errors of the API: status, code, message and hint.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

/// The error code for a damaged SQLite file.
pub const DATABASE_DAMAGED: &str = "database_damaged";

/// The result of a request handler.
pub type ApiResult<T> = Result<T, ApiError>;

/// An error as the client sees it.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// A code for programs.
    pub code: &'static str,
    /// What went wrong, in lower case.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<u64>,
    /// A further field of the response, beside `error`.
    pub extra: Option<Box<(&'static str, Value)>>,
}

/// The error.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// A code for programs.
    code: String,
    /// What went wrong.
    message: String,
    /// How to fix it.
    hint: Option<String>,
}

/// The body of every error response.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorAnswer {
    error: ErrorBody,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, code, message: message.into(), hint: None, retry_after: None, extra: None }
    }

    /// 400: invalid request.
    pub fn bad(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 401: not signed in.
    pub fn unauthorized() -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "sign in first")
            .hint("use POST /api/v1/login, or send a token as `Authorization: Bearer …`")
    }

    /// 403: not allowed.
    pub fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: not found.
    pub fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 409: conflict with the current state.
    pub fn conflict(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 413: body too large.
    pub fn too_large(limit: usize) -> ApiError {
        let message = format!("request body exceeds {limit} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).hint("send it in smaller parts")
    }

    /// 422: nothing in the file can be imported.
    pub fn unprocessable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message)
    }

    /// 429: busy, retry later.
    pub fn busy(message: impl Into<String>, seconds: u64) -> ApiError {
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        ApiError { retry_after: Some(seconds), ..error }.hint(format!("try again in {seconds} s"))
    }

    /// 503: unavailable.
    pub fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// 500: internal error. The cause goes to the log, not to the client.
    pub fn internal(cause: &dyn std::fmt::Display) -> ApiError {
        tracing::error!("a request failed: {cause}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal server error")
            .hint("see the server log; nothing was changed")
    }

    /// 500: stored data cannot be read.
    pub fn damaged(what: &dyn std::fmt::Display) -> ApiError {
        tracing::error!("the stored data is damaged: {what}");
        let message = format!("the stored data is damaged: {what}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", message)
            .hint("nothing was changed; stop the server and run `canonym doctor --data FOLDER`")
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ApiError {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a field beside `error`.
    #[must_use]
    pub fn with_field(mut self, name: &'static str, value: Value) -> ApiError {
        self.extra = Some(Box::new((name, value)));
        self
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody { code: self.code.to_owned(), message: self.message, hint: self.hint };
        let mut answer = serde_json::to_value(ErrorAnswer { error: body }).unwrap_or_default();
        if let Some((name, value)) = self.extra.map(|extra| *extra) {
            answer[name] = value;
        }
        let mut response = (self.status, axum::Json(answer)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// 503: the request was aborted and rolled back.
pub fn aborted() -> ApiError {
    ApiError::unavailable("the request was aborted").hint("nothing was changed; send it again")
}

impl From<rusqlite::Error> for ApiError {
    fn from(error: rusqlite::Error) -> ApiError {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => aborted(),
            Some(ErrorCode::DiskFull) => {
                ApiError::unavailable("the disk is full").hint("free some space and try again; nothing was changed")
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                ApiError { code: DATABASE_DAMAGED, ..ApiError::damaged(&error) }
            }
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                tracing::error!("cannot use the database: {error}");
                ApiError::unavailable("cannot use the database").hint("see the server log")
            }
            _ => match error {
                rusqlite::Error::FromSqlConversionFailure(_, _, cause) => ApiError::damaged(&cause),
                error => ApiError::internal(&error),
            },
        }
    }
}

impl From<serde_json::Error> for ApiError {
    fn from(error: serde_json::Error) -> ApiError {
        ApiError::internal(&error)
    }
}

/// Errors of the library about input are the client's.
impl From<canonym_core::Error> for ApiError {
    fn from(error: canonym_core::Error) -> ApiError {
        let hint = error.hint().map(str::to_owned);
        match error.root() {
            canonym_core::Error::Io { .. } | canonym_core::Error::Artifact { .. } => ApiError::internal(&error),
            _ => ApiError { hint, ..ApiError::bad(error.with_causes()) },
        }
    }
}
