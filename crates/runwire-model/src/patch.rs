//! JSON Patch (RFC 6902) for states.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{Json, Object, Tree};
use crate::limits;

/// The operations that the standard defines.
const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

/// Applies a patch. Returns `None` for one that does not apply, or would make the state too large or too deep. An
/// operation that the standard does not define is ignored and the others apply: the official AG-UI client does the
/// same, so the state here is the one that it shows. Numbers that no operation touches keep their digits.
pub(crate) fn apply(state: &Json, patch: &Json) -> Option<Json> {
    let mut document = Tree::of(state)?;
    let Tree::Array(operations) = Tree::of(patch)? else { return None };
    // A few copies of the whole into itself would double it each time.
    let mut budget = limits::THREAD_MEMORY_BYTES.checked_sub(state.text().len())?;
    for operation in &operations {
        apply_one(&mut document, operation, &mut budget)?;
    }
    Some(document.to_json())
}

/// Returns the patch without operations that the standard does not define; `None` if it has none of them.
pub(crate) fn defined(patch: &Json) -> Option<Json> {
    let operations: Vec<&RawValue> = serde_json::from_str(patch.text()).ok()?;
    let name = |operation: &RawValue| Object::of(operation)?.get_str("op").map(Cow::into_owned);
    let is_defined =
        |operation: &&&RawValue| name(operation).is_none_or(|name| OPERATIONS.contains(&name.as_str()));
    let kept: Vec<&str> = operations.iter().filter(is_defined).map(|operation| operation.get()).collect();
    (kept.len() < operations.len()).then(|| Json::parse(&format!("[{}]", kept.join(","))).ok()).flatten()
}

fn apply_one<'a>(document: &mut Tree<'a>, operation: &Tree<'a>, budget: &mut usize) -> Option<()> {
    let name = operation.get("op")?.as_str()?;
    if !OPERATIONS.contains(&&*name) {
        return Some(());
    }
    let path = operation.get("path")?.as_str()?;
    match &*name {
        "add" => add(document, &path, operation.get("value")?.clone(), budget),
        "remove" => remove(document, &path).map(|_| ()),
        "replace" => {
            let value = operation.get("value")?;
            take_budget(&path, value, budget)?;
            *find_mut(document, &path)? = value.clone();
            Some(())
        }
        "move" => {
            let from = operation.get("from")?.as_str()?;
            // A value cannot move into itself.
            if path.strip_prefix(&*from).is_some_and(|rest| rest.starts_with('/')) {
                return None;
            }
            let value = remove(document, &from)?;
            add(document, &path, value, budget)
        }
        "copy" => {
            let value = find_mut(document, &operation.get("from")?.as_str()?)?;
            take_budget(&path, value, budget)?;
            let value = value.clone();
            add(document, &path, value, budget)
        }
        "test" => find_mut(document, &path)?.is_same(operation.get("value")?).then_some(()),
        _ => None,
    }
}

/// Returns the value at a JSON pointer.
fn find_mut<'t, 'a>(document: &'t mut Tree<'a>, path: &str) -> Option<&'t mut Tree<'a>> {
    let Some(path) = path.strip_prefix('/') else { return path.is_empty().then_some(document) };
    path.split('/').try_fold(document, |value, key| match value {
        Tree::Object(members) => members.get_mut(&unescaped(key)),
        Tree::Array(items) => items.get_mut(index(key)?),
        Tree::Leaf(_) => None,
    })
}

/// Subtracts the size of a value from the remaining budget; fails if it does not fit.
fn take_budget(path: &str, value: &Tree<'_>, budget: &mut usize) -> Option<()> {
    let (bytes, depth) = measure(value);
    *budget = budget.checked_sub(bytes + path.len())?;
    (path.matches('/').count() + depth < limits::JSON_DEPTH).then_some(())
}

/// Estimates the bytes of a value as text, and returns how deep it is nested.
fn measure(value: &Tree<'_>) -> (usize, usize) {
    let join = |(bytes, depth): (usize, usize), (more, deep): (usize, usize)| {
        (bytes + more + 1, depth.max(deep + 1))
    };
    match value {
        Tree::Array(items) => items.iter().map(measure).fold((2, 1), join),
        Tree::Object(members) => {
            let fields = members.iter().map(|(key, value)| {
                let (bytes, depth) = measure(value);
                (bytes + key.len() + 3, depth)
            });
            fields.fold((2, 1), join)
        }
        Tree::Leaf(text) => (text.len(), 0),
    }
}

fn add<'a>(document: &mut Tree<'a>, path: &str, value: Tree<'a>, budget: &mut usize) -> Option<()> {
    take_budget(path, &value, budget)?;
    let Some((parent, key)) = split(path)? else {
        *document = value;
        return Some(());
    };
    match find_mut(document, parent)? {
        Tree::Object(members) => members.insert(key.into(), value),
        Tree::Array(items) if key == "-" => items.push(value),
        Tree::Array(items) => {
            let at = index(&key).filter(|at| *at <= items.len())?;
            items.insert(at, value);
        }
        Tree::Leaf(_) => return None,
    }
    Some(())
}

fn remove<'a>(document: &mut Tree<'a>, path: &str) -> Option<Tree<'a>> {
    let Some((parent, key)) = split(path)? else {
        return Some(std::mem::replace(document, Tree::Leaf("null")));
    };
    match find_mut(document, parent)? {
        Tree::Object(members) => members.remove(&key),
        Tree::Array(items) => {
            let at = index(&key).filter(|at| *at < items.len())?;
            Some(items.remove(at))
        }
        Tree::Leaf(_) => None,
    }
}

/// Splits a pointer into its parent and its last key; the whole document has neither.
fn split(path: &str) -> Option<Option<(&str, String)>> {
    if path.is_empty() {
        return Some(None);
    }
    let (parent, key) = path.rsplit_once('/')?;
    Some(Some((parent, unescaped(key))))
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

fn index(key: &str) -> Option<usize> {
    (key == "0" || key.starts_with(|first| matches!(first, '1'..='9'))).then(|| key.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(state: &str, patch: &str) -> Option<String> {
        apply(&Json::parse(state).unwrap(), &Json::parse(patch).unwrap()).map(|json| json.text().to_owned())
    }

    #[test]
    fn each_operation_does_what_the_standard_says() {
        for (state, patch, wanted) in [
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":[1]}]"#, r#"{"a":1,"b":[1]}"#),
            (r#"{"a":[1,3]}"#, r#"[{"op":"add","path":"/a/1","value":2}]"#, r#"{"a":[1,2,3]}"#),
            (r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/-","value":null}]"#, r#"{"a":[1,null]}"#),
            (r#"{"a":1,"b":2}"#, r#"[{"op":"remove","path":"/a"}]"#, r#"{"b":2}"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"/a","value":{"x":1}}]"#, r#"{"a":{"x":1}}"#),
            (
                r#"{"a":{"b":1},"c":{}}"#,
                r#"[{"op":"move","from":"/a/b","path":"/c/d"}]"#,
                r#"{"a":{},"c":{"d":1}}"#,
            ),
            (r#"{"a":1}"#, r#"[{"op":"copy","from":"/a","path":"/b"}]"#, r#"{"a":1,"b":1}"#),
            (r#"{"a/b":1}"#, r#"[{"op":"replace","path":"/a~1b","value":2}]"#, r#"{"a/b":2}"#),
            (r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":1}]"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":[]}]"#, r#"[]"#),
        ] {
            assert_eq!(applied(state, patch).as_deref(), Some(wanted), "{patch}");
        }
    }

    #[test]
    fn numbers_keep_their_digits_whatever_their_size() {
        let state = r#"{"far":1e999,"price":1.10,"id":12345678901234567890123,"a":1}"#;
        for (patch, wanted) in [
            (r#"[{"op":"replace","path":"/a","value":2}]"#, state.replace(r#""a":1"#, r#""a":2"#)),
            (r#"[{"op":"replace","path":"/a","value":-1e999}]"#, state.replace(r#""a":1"#, r#""a":-1e999"#)),
            (r#"[{"op":"test","path":"/far","value":1e999}]"#, state.to_owned()),
            (
                r#"[{"op":"copy","from":"/id","path":"/b"}]"#,
                state.replace(r#""a":1"#, r#""a":1,"b":12345678901234567890123"#),
            ),
        ] {
            assert_eq!(applied(state, patch).as_deref(), Some(&*wanted), "{patch}");
        }
        assert_eq!(applied(state, r#"[{"op":"test","path":"/far","value":1e998}]"#), None);
    }

    #[test]
    fn an_operation_that_the_standard_does_not_define_is_left_out_and_the_others_apply() {
        let patch = r#"[{"op":"add","path":"/b","value":1},{"op":"odd","path":"/a"},{"op":"increment"},{"op":"remove","path":"/a"}]"#;
        assert_eq!(applied(r#"{"a":[1]}"#, patch).as_deref(), Some(r#"{"b":1}"#));
        let defined = defined(&Json::parse(patch).unwrap()).unwrap();
        assert_eq!(defined.text(), r#"[{"op":"add","path":"/b","value":1},{"op":"remove","path":"/a"}]"#);
        assert_eq!(super::defined(&defined), None);
    }

    #[test]
    fn a_patch_that_doubles_the_state_again_and_again_is_refused() {
        let copies: Vec<String> =
            (0..40).map(|n| format!(r#"{{"op":"copy","from":"","path":"/b{n}"}}"#)).collect();
        assert_eq!(applied(r#"{"a":"0123456789"}"#, &format!("[{}]", copies.join(","))), None);
    }

    #[test]
    fn a_patch_that_nests_the_state_too_deep_is_refused() {
        let deeper: Vec<String> = (1..=limits::JSON_DEPTH + 1)
            .map(|depth| format!(r#"{{"op":"add","path":"{}","value":{{}}}}"#, "/a".repeat(depth)))
            .collect();
        assert_eq!(applied("{}", &format!("[{}]", deeper.join(","))), None);
    }

    #[test]
    fn a_patch_that_does_not_fit_gives_nothing() {
        for patch in [
            r#"[{"op":"remove","path":"/x"}]"#,
            r#"[{"op":"add","path":"/x/y","value":1}]"#,
            r#"[{"op":"add","path":"/a/01","value":1}]"#,
            r#"[{"op":"test","path":"/a","value":1}]"#,
            r#"[{"op":"move","from":"/a","path":"/a/0"}]"#,
            r#"[{"path":"/a"}]"#,
            r#"[{"op":1,"path":"/a"}]"#,
            r#"{"op":"remove","path":"/a"}"#,
        ] {
            assert_eq!(applied(r#"{"a":[1]}"#, patch), None, "{patch}");
        }
    }
}
