//! The script of `failing`: works a little, then fails with an error that says what to do.

use runwire_model::Json;
use runwire_model::event::ErrorInfo;
use serde_json::json;

use super::script_writer::ScriptWriter;
use super::tool_call::ScriptToolCall;
use super::{ScriptEnding, Transition};

/// The pages that an export may have.
const PAGES_ALLOWED: i64 = 40;

pub(super) fn opening(t: &mut ScriptWriter) -> Transition {
    let pages = t.rng.between(42, 96);
    t.begin();
    collect(t, pages);
    t.begin_step("export");
    let said = t.words(
        format!("The report is complete: **{pages} pages**. Exporting it now …"),
        format!("报告已汇总完成，共 **{pages} 页**，正在导出 PDF……"),
    );
    t.say(&said);
    let purpose = t.words("Exports the report as one file", "把报告导出为一个文件");
    let export = ScriptToolCall::call(t, "export_report", &json!({"format": "pdf", "pages": pages}), purpose);
    export.start(t);
    for percent in [20, 55, 80] {
        t.pause(500);
        let page = pages * percent / 100;
        let message = t.words(format!("page {page} of {pages}"), format!("第 {page} / {pages} 页"));
        export.progress(t, percent, message);
    }
    t.pause(600);
    let error = too_long(t, pages);
    export.fail(t, error.clone(), 2100);
    t.usage();
    Transition::End(ScriptEnding::Failed(error))
}

fn collect(t: &mut ScriptWriter, pages: i64) {
    t.begin_step("collect");
    let asked = t.quoted_message();
    let thought = t.words(
        format!("The request is “{asked}”. I collect the report first, then export it as one file."),
        format!("请求是“{asked}”。先汇总 report，再导出为一个文件。"),
    );
    t.think("planning", &thought);
    let purpose = t.words("Collects the parts of the report", "汇总报告的各个部分");
    let call = ScriptToolCall::call(t, "collect_report", &json!({"format": "markdown"}), purpose);
    call.start(t);
    let (summary, figures) = (pages / 8, pages / 3);
    for (file, pages) in
        [("summary.md", summary), ("figures.md", figures), ("appendix.md", pages - summary - figures)]
    {
        t.pause(350);
        call.print(t, format!("{file}  {pages} pages\n"));
    }
    call.succeed(t, &json!({"pages": pages, "files": 3}), 1050);
    t.usage();
    t.end_step();
}

fn too_long(t: &ScriptWriter, pages: i64) -> ErrorInfo {
    ErrorInfo {
        code: Some("export_quota_exceeded".into()),
        kind: Some("execution".into()),
        domain: Some("business".into()),
        message: t.words(
            format!(
                "The report has {pages} pages, and this workspace may export {PAGES_ALLOWED} at a time. Leave \
                 out the appendix or ask an administrator for a larger quota, then retry the run."
            ),
            format!(
                "报告共 {pages} 页，而当前 workspace 每次最多导出 {PAGES_ALLOWED} 页。请去掉附录，或向管理员申请\
                 更大的 quota，然后重试（retry）。"
            ),
        ),
        retryable: Some(true),
        details: Some(Json::from_value(&json!({"pages": pages, "allowed": PAGES_ALLOWED}))),
        ..Default::default()
    }
}
