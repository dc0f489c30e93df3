//! What a request is answered with when it cannot be done: a status, a phrase, and what to do about it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

/// The code of an error of SQLite that finds its file damaged.
pub const DATABASE_DAMAGED: &str = "database_damaged";

/// The result of what answers a request.
pub type ApiResult<T> = Result<T, ApiError>;

/// An error as a client sees it.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// A word that programs compare.
    pub code: &'static str,
    /// What is wrong, in lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
    /// What else stands in the answer, beside `error`.
    pub beside: Option<Box<(&'static str, Value)>>,
}

/// What stands under `error`.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// A word that programs compare.
    code: String,
    /// What is wrong.
    message: String,
    /// What to do about it.
    hint: Option<String>,
}

/// The body of every answer that is no success.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorAnswer {
    error: ErrorBody,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, code, message: message.into(), hint: None, retry_after: None, beside: None }
    }

    /// 400: the request makes no sense.
    pub fn bad(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 401: nobody is logged in.
    pub fn no_login() -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "a login is needed")
            .hint("log in with POST /api/v1/login, or send a token as `Authorization: Bearer …`")
    }

    /// 403: it is not allowed.
    pub fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: there is no such thing.
    pub fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 409: it does not fit what is there.
    pub fn conflict(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 413: the body is too long.
    pub fn too_large(limit: usize) -> ApiError {
        let message = format!("the body may have {limit} bytes, this one has more");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).hint("send it in smaller parts")
    }

    /// 422: a file of which nothing can be taken.
    pub fn refused(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message)
    }

    /// 429: try again later.
    pub fn busy(message: impl Into<String>, seconds: u64) -> ApiError {
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        ApiError { retry_after: Some(seconds), ..error }.hint(format!("try again in {seconds} s"))
    }

    /// 503: not now.
    pub fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// 500: our fault. What happened is told in the log, not to the client.
    pub fn internal(cause: &dyn std::fmt::Display) -> ApiError {
        tracing::error!("a request failed: {cause}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed on this request")
            .hint("the log of the server says why; nothing was changed")
    }

    /// 500: what is stored cannot be read.
    pub fn damaged(what: &dyn std::fmt::Display) -> ApiError {
        tracing::error!("the data are damaged: {what}");
        let message = format!("the stored data are damaged: {what}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", message)
            .hint("nothing was changed; stop the server and look with `canonym doctor --data FOLDER`")
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ApiError {
        self.hint = Some(hint.into());
        self
    }

    /// The same with something beside the error.
    #[must_use]
    pub fn beside(mut self, name: &'static str, value: Value) -> ApiError {
        self.beside = Some(Box::new((name, value)));
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
        if let Some((name, value)) = self.beside.map(|beside| *beside) {
            answer[name] = value;
        }
        let mut response = (self.status, axum::Json(answer)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// 503: nobody waits for the answer any more, so that nothing was done.
pub fn abandoned() -> ApiError {
    ApiError::unavailable("the request was given up").hint("nothing was changed; send it again")
}

impl From<rusqlite::Error> for ApiError {
    fn from(error: rusqlite::Error) -> ApiError {
        use rusqlite::ErrorCode;
        let again = "nothing was changed; try again when there is";
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => abandoned(),
            Some(ErrorCode::DiskFull) => ApiError::unavailable("the disk is full").hint(format!("{again} room")),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                ApiError { code: DATABASE_DAMAGED, ..ApiError::damaged(&error) }
            }
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                tracing::error!("the database cannot be used: {error}");
                ApiError::unavailable("the database cannot be used").hint("the log of the server says why")
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

/// What the library says of input is the fault of the input.
impl From<canonym_core::Error> for ApiError {
    fn from(error: canonym_core::Error) -> ApiError {
        let hint = error.hint().map(str::to_owned);
        match &error {
            canonym_core::Error::Io { .. } | canonym_core::Error::Artifact { .. } => ApiError::internal(&error),
            canonym_core::Error::Context { .. } => ApiError { hint, ..ApiError::bad(error.with_causes()) },
            canonym_core::Error::Limit { .. } => ApiError::bad(error.to_string()).hint(hint.unwrap_or_default()),
            canonym_core::Error::Parse { .. }
            | canonym_core::Error::Usage { .. }
            | canonym_core::Error::Invalid { .. } => ApiError { hint, ..ApiError::bad(error.to_string()) },
        }
    }
}
