//! Sign-in, accounts and tokens.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{Bounds, Json, PathParam, bytes, json};
use crate::auth::{
    LoginSource, MAX_NAME, MAX_PASSWORD, checked_name, checked_password, hash, key_hash, lookalike_key, new_key, verify,
};
use crate::error::{ApiError, ApiResult};
use crate::guard::{Admin, COOKIE, Client, cookie};
use crate::state::App;
use crate::store::people::{self, NewKey, PersonChange};
use crate::wire::{
    LOCAL, LoggedIn, Login, NewPassword, NewPerson, NewToken, People, Person, PersonPatch, Role, Token, Tokens,
};

/// The lifetime of a token, in days.
const DAYS: Bounds = Bounds { min: 1, default: 3650, max: 3650 };

/// The maximum number of tokens per account.
const MAX_TOKENS: usize = 100;

/// The lifetime of a session, in seconds.
const SESSION: i64 = 7 * 24 * 3600;

/// The cookie of a known browser; it grants no access.
const DEVICE: &str = "canonym_device";

/// The lifetime of that cookie, in seconds, and the maximum number of known browsers per account.
const DEVICE_SECONDS: i64 = 180 * 24 * 3600;
const MAX_DEVICES: usize = 20;

/// The maximum body size of a sign-in, in bytes.
const MAX_LOGIN: usize = 8 << 10;

/// `POST /login`: signs in and sets the session cookie.
pub async fn login(
    State(app): State<Arc<App>>,
    axum::Extension(client): axum::Extension<Client>,
    headers: HeaderMap,
    request: Request,
) -> ApiResult<Response> {
    let login: Login = json(&bytes(request, MAX_LOGIN).await?)?;
    let name = login.name.trim().to_owned();
    if name.len() > MAX_NAME || login.password.len() > MAX_PASSWORD {
        return Err(ApiError::bad(format!("a name may have at most {MAX_NAME} bytes, a password {MAX_PASSWORD}")));
    }
    let device = cookie(&headers, DEVICE).map(key_hash);
    let login_name = name.clone();
    let (known, attempt, is_known_device) = app
        .blocking(move |app| {
            let now = app.now();
            let (known, owner) = app.store.read(|connection| {
                let owner = match &device {
                    Some(device) => people::by_key(connection, device, "device", now)?,
                    None => None,
                };
                Ok((people::by_name(connection, &name)?, owner))
            })?;
            let own = device.filter(|_| owner.is_some_and(|owner| owner.name == name));
            let visitor = own.as_deref().map_or(LoginSource::Unknown(client.0), LoginSource::Known);
            Ok((known, app.limiter.attempt(&name, visitor, now)?, own.is_some()))
        })
        .await?;
    let _permit = app.hash_permits.acquire().await.map_err(|error| ApiError::internal(&error))?;
    let (person, key, device) = app
        .blocking(move |app| {
            let now = app.now();
            let is_right = verify(&login.password, known.as_ref().and_then(|(_, hash)| hash.as_deref()));
            let Some((person, _)) = known.filter(|(person, _)| is_right && person.is_active) else {
                app.audit.record(now, &login_name, Some(client.0), "login refused", "");
                return Err(ApiError { message: "wrong name or password".to_owned(), ..ApiError::unauthorized() }
                    .hint("try again; after five failures you have to wait some seconds"));
            };
            app.limiter.succeeded(attempt);
            let (key, key_hash) = new_key()?;
            let (device, device_hash) = new_key()?;
            app.store.write(|transaction| {
                people::remove_key(transaction, "", now)?;
                let until = now + SESSION * 1000;
                let session = NewKey { hash: &key_hash, kind: "session", name: "", expires: Some(until) };
                people::add_key(transaction, person.id, &session, now)?;
                if !is_known_device {
                    let until = now + DEVICE_SECONDS * 1000;
                    let device = NewKey { hash: &device_hash, kind: "device", name: "", expires: Some(until) };
                    people::add_key(transaction, person.id, &device, now)?;
                    people::keep_last_devices(transaction, person.id, MAX_DEVICES)?;
                }
                Ok(())
            })?;
            app.audit.record(now, &person.name, Some(client.0), "login", "");
            Ok((person, key, device))
        })
        .await?;
    let session = set_cookie(&app, COOKIE, &key, "/", SESSION)?;
    let mut response = ([(header::SET_COOKIE, session)], axum::Json(LoggedIn { user: person })).into_response();
    if !is_known_device {
        let device = set_cookie(&app, DEVICE, &device, "/api/v1/login", DEVICE_SECONDS)?;
        response.headers_mut().append(header::SET_COOKIE, device);
    }
    Ok(response)
}

fn set_cookie(app: &App, name: &str, value: &str, path: &str, seconds: i64) -> ApiResult<HeaderValue> {
    let secure = if app.config.is_https() { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Strict; Path={path}; Max-Age={seconds}{secure}");
    HeaderValue::try_from(cookie).map_err(|error| ApiError::internal(&error))
}

/// `POST /logout`: ends the session.
pub async fn logout(State(app): State<Arc<App>>, headers: HeaderMap) -> ApiResult<Response> {
    if let Some(key) = cookie(&headers, COOKIE) {
        let hash = key_hash(key);
        app.blocking(move |app| app.store.write(|transaction| people::remove_key(transaction, &hash, app.now())))
            .await?;
        app.permissions_changed();
    }
    let gone = set_cookie(&app, COOKIE, "", "/", 0)?;
    Ok((StatusCode::OK, [(header::SET_COOKIE, gone)], axum::Json(serde_json::json!({}))).into_response())
}

/// `GET /people`: all accounts.
pub async fn all(State(app): State<Arc<App>>, _: Person) -> ApiResult<axum::Json<People>> {
    let people = app.blocking(|app| app.store.read(people::all)).await?;
    Ok(axum::Json(People { people }))
}

/// `POST /people`: adds an account. Once there is one, everyone must sign in, so the first must be an admin.
pub async fn add(
    State(app): State<Arc<App>>,
    admin: Admin,
    axum::Extension(client): axum::Extension<Client>,
    Json(new): Json<NewPerson>,
) -> ApiResult<(StatusCode, axum::Json<Person>)> {
    let person = app.blocking(move |app| {
        let name = checked_name(&new.name)?;
        let hash = hash(checked_password(&new.password, name)?)?;
        let now = app.now();
        let person = app.store.write(|transaction| {
            if people::by_name(transaction, name)?.is_some() {
                return Err(ApiError::conflict(format!("the name “{name}” is taken")).hint("choose another name"));
            }
            let seen = lookalike_key(name);
            if let Some(other) = people::all(transaction)?.into_iter().find(|other| lookalike_key(&other.name) == seen)
            {
                return Err(
                    ApiError::conflict(format!("the name looks like “{}”", other.name)).hint("choose another name")
                );
            }
            if new.role != Role::Admin && !people::has_admin(transaction)? {
                return Err(ApiError::conflict("the first account must be an admin")
                    .hint("add an admin first; from then on everyone must sign in"));
            }
            people::put(transaction, name, new.role, &hash, now)
        })?;
        app.accounts_exist();
        let what = format!("{} as {}", person.name, person.role.name());
        app.audit.record(now, &admin.0.name, Some(client.0), "person added", &what);
        Ok(person)
    });
    Ok((StatusCode::CREATED, axum::Json(person.await?)))
}

/// `PATCH /people/{id}`: changes the role or password, or deactivates an account. Its annotations stay.
pub async fn change(
    State(app): State<Arc<App>>,
    admin: Admin,
    axum::Extension(client): axum::Extension<Client>,
    PathParam(id): PathParam<i64>,
    Json(patch): Json<PersonPatch>,
) -> ApiResult<axum::Json<Person>> {
    let _permit = app.hash_permits.acquire().await.map_err(|error| ApiError::internal(&error))?;
    let person = app.blocking(move |app| {
        let of = app.store.read(|connection| people::get(connection, id))?;
        let password =
            patch.password.as_deref().map(|password| hash(checked_password(password, &of.name)?)).transpose()?;
        let what = format!(
            "{}: role {}, {}{}",
            of.name,
            patch.role.map_or("as before", Role::name),
            match patch.is_active {
                Some(true) => "active",
                Some(false) => "not active",
                None => "active as before",
            },
            if password.is_some() { ", new password" } else { "" }
        );
        let person = app.store.write(|transaction| {
            let before = people::get(transaction, id)?;
            if before.name == LOCAL {
                return Err(ApiError::bad("“local” is the user of a server without accounts")
                    .hint("add an account for each person"));
            }
            if admin.0.id == id && patch.is_active == Some(false) {
                return Err(ApiError::conflict("you cannot deactivate your own account").hint("ask another admin"));
            }
            let change = PersonChange { role: patch.role, password, is_active: patch.is_active };
            people::change(transaction, id, &change)?;
            if !people::has_admin(transaction)? {
                return Err(ApiError::conflict("this is the last active admin")
                    .hint("make another account an admin first; nothing was changed"));
            }
            if change.password.is_some() || patch.is_active == Some(false) {
                people::remove_keys(transaction, id, "")?;
            }
            people::get(transaction, id)
        })?;
        app.audit.record(app.now(), &admin.0.name, Some(client.0), "person changed", &what);
        Ok(person)
    });
    let person = person.await?;
    app.permissions_changed();
    Ok(axum::Json(person))
}

/// `POST /password`: changes the user's own password; ends other sessions and revokes all tokens.
pub async fn password(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(client): axum::Extension<Client>,
    headers: HeaderMap,
    Json(new): Json<NewPassword>,
) -> ApiResult<axum::Json<serde_json::Value>> {
    let _permit = app.hash_permits.acquire().await.map_err(|error| ApiError::internal(&error))?;
    let this = cookie(&headers, COOKIE).map(key_hash).unwrap_or_default();
    app.blocking(move |app| {
        if !app.has_accounts() {
            return Err(ApiError::conflict("this server has no accounts")
                .hint("add an admin first; from then on everyone must sign in"));
        }
        let attempt =
            app.limiter.attempt(&person.name, LoginSource::Known(&format!("person {}", person.id)), app.now())?;
        let known = app.store.read(|connection| people::by_name(connection, &person.name))?;
        if !verify(&new.old, known.as_ref().and_then(|(_, hash)| hash.as_deref())) {
            return Err(ApiError::bad("the current password is wrong").hint("try again; nothing was changed"));
        }
        app.limiter.succeeded(attempt);
        let change = PersonChange {
            password: Some(hash(checked_password(&new.new, &person.name)?)?),
            ..PersonChange::default()
        };
        app.store.write(|transaction| {
            people::change(transaction, person.id, &change)?;
            people::remove_keys(transaction, person.id, &this)
        })?;
        app.audit.record(app.now(), &person.name, Some(client.0), "password changed", &person.name);
        Ok(())
    })
    .await?;
    app.permissions_changed();
    Ok(axum::Json(serde_json::json!({})))
}

/// `GET /tokens`: the user's tokens, without their secrets.
pub async fn tokens(State(app): State<Arc<App>>, person: Person) -> ApiResult<axum::Json<Tokens>> {
    let tokens = app.blocking(move |app| {
        let now = app.now();
        app.store.read(|connection| people::tokens(connection, person.id, now))
    });
    Ok(axum::Json(Tokens { tokens: tokens.await? }))
}

/// `DELETE /tokens/{t}`: revokes one of the user's tokens.
pub async fn revoke(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(client): axum::Extension<Client>,
    PathParam(id): PathParam<String>,
) -> ApiResult<axum::Json<serde_json::Value>> {
    app.blocking(move |app| {
        match app.store.write(|transaction| people::remove_token(transaction, person.id, &id))? {
            true => {
                app.audit.record(app.now(), &person.name, Some(client.0), "token revoked", &id);
                Ok(())
            }
            false => Err(ApiError::not_found("token not found").hint("GET /api/v1/tokens lists them")),
        }
    })
    .await?;
    app.permissions_changed();
    Ok(axum::Json(serde_json::json!({})))
}

/// `POST /tokens`: creates a token for programs that act for the user.
pub async fn token(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(client): axum::Extension<Client>,
    Json(new): Json<NewToken>,
) -> ApiResult<(StatusCode, axum::Json<Token>)> {
    let token = app.blocking(move |app| {
        let name = checked_name(&new.name)?.to_owned();
        let days = new.days.map(|days| DAYS.check(Some(days), "days")).transpose()?;
        let (token, hash) = new_key()?;
        let now = app.now();
        let end = days.map(|days| now + days as i64 * 24 * 3_600_000);
        app.store.write(|transaction| {
            if people::tokens(transaction, person.id, now)?.len() >= MAX_TOKENS {
                return Err(ApiError::conflict(format!("at most {MAX_TOKENS} tokens"))
                    .hint("revoke unused tokens; GET /api/v1/tokens lists them"));
            }
            let token = NewKey { hash: &hash, kind: "token", name: &name, expires: end };
            people::add_key(transaction, person.id, &token, now)
        })?;
        app.audit.record(now, &person.name, Some(client.0), "token made", &name);
        Ok(Token { name, token })
    });
    Ok((StatusCode::CREATED, axum::Json(token.await?)))
}
