//! The parameters of an operation, from a query or a Parameters resource.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{ApiError, ApiResult};

/// The parameters of an operation by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// From the pairs of a query.
    pub fn from_query(pairs: Vec<(String, String)>) -> Parameters {
        Parameters(pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
    }

    /// Adds those of a Parameters resource.
    pub fn add_resource(&mut self, resource: &Value) -> ApiResult<()> {
        let wrong = |message: &str| {
            ApiError::bad(message)
                .hint(r#"send {"resourceType": "Parameters", "parameter": [{"name": "code", "valueCode": "…"}]}"#)
        };
        if resource["resourceType"] != "Parameters" {
            return Err(wrong("the request body is not a Parameters resource"));
        }
        let empty = Vec::new();
        let list = match &resource["parameter"] {
            Value::Null => &empty,
            Value::Array(list) => list,
            _ => return Err(wrong("`parameter` must be a list")),
        };
        for parameter in list {
            let name = parameter["name"].as_str().ok_or_else(|| wrong("a parameter has no `name`"))?;
            let fields = parameter.as_object().into_iter().flatten();
            let value = fields.filter(|(field, _)| field.starts_with("value")).map(|(_, value)| value.clone()).next();
            let value = value.ok_or_else(|| wrong(&format!("the parameter `{}` has no value", shown(name))))?;
            self.0.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// A text, if it is given.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    /// The version of the code system: a parameter, or that of `coding`.
    pub fn version(&self) -> Option<String> {
        let of_coding = self.0.get("coding").and_then(|coding| coding["version"].as_str()).map(str::to_owned);
        self.text("version").or(of_coding).filter(|version| !version.is_empty())
    }

    /// A text that has to be given.
    pub fn required(&self, name: &str) -> ApiResult<String> {
        match self.0.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
            None | Some(Value::String(_)) => Err(ApiError::bad(format!("the parameter `{name}` is missing"))),
            Some(_) => Err(ApiError::bad(format!("the parameter `{name}` must be a string"))),
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value == true || value == "true")
    }

    /// A number from 0, if it is given.
    pub fn number(&self, name: &str) -> ApiResult<Option<usize>> {
        let wrong = || ApiError::bad(format!("the parameter `{name}` must be an integer from 0"));
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => text.parse().map(Some).map_err(|_| wrong()),
            Some(value) => value.as_u64().map(|number| Some(number as usize)).ok_or_else(wrong),
        }
    }

    /// System and code: two parameters, or one `coding`.
    pub fn coding(&self, system: &str, code: &str) -> ApiResult<(String, String)> {
        match self.0.get("coding") {
            Some(coding) if coding.is_object() => {
                let part = |name: &str| {
                    let text = coding[name].as_str().filter(|text| !text.is_empty());
                    text.map(str::to_owned).ok_or_else(|| ApiError::bad(format!("`coding` has no `{name}`")))
                };
                Ok((part("system")?, part("code")?))
            }
            _ => Ok((self.required(system)?, self.required(code)?)),
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
