// @ts-check
// Taking a lock away, after saying who will be hurt.

import { el, setText, showDialog, toast } from "../../js/dom.js";
import * as api from "./api.js";
import { lapse, t, whoIs } from "./words.js";

let allowed = false;

/** Whether the server takes this page's token. @param {boolean} may */
export function setAllowed(may) {
  allowed = may;
}

/** @param {"locks"|"elections"} kind @param {import("./types.js").Line} line As it was when it was clicked. */
export function openRelease(kind, line) {
  if (!allowed) return askForToken(kind, line);
  const { first, waiting } = line;
  const next = waiting[0];
  const title = kind === "locks" ? t().dialogTitle(line.name) : t().deposeTitle(line.name);
  const confirm = el(
    "button",
    { class: "danger", type: "button", "data-testid": "release-confirm" },
    kind === "locks" ? t().confirm : t().confirmDepose,
  );
  const cancel = el("button", { class: "secondary", type: "button", "data-testid": "release-cancel" }, t().cancel);
  const dialog = showDialog(
    "release-dialog",
    title,
    t().close,
    el("p", { "data-testid": "release-hurt" }, t().hurtHolder(whoIs(first), lapse(first.since))),
    el("p", {}, next ? t().hurtNext(whoIs(next)) : t().hurtNobody),
    el("p", { class: "muted" }, t().hurtFence(first.fence)),
    el("div", { class: "dialog-actions" }, cancel, confirm),
  );
  cancel.addEventListener("click", () => dialog.close());
  cancel.focus();
  confirm.addEventListener("click", async () => {
    confirm.disabled = true;
    const { status, error } = await api
      .release(first.id ?? "", first.fence)
      .catch((failure) => ({ status: 0, error: String(failure) }));
    dialog.close();
    if (status === 200) toast(t().released(line.name));
    else toast(status === 409 ? t().gone : status === 403 ? t().wrongToken : t().failed(error), "error");
  });
}

/** @param {"locks"|"elections"} kind @param {import("./types.js").Line} line */
function askForToken(kind, line) {
  const input = el("input", { type: "password", autocomplete: "off", "data-testid": "token", "aria-label": t().token });
  const use = el("button", { class: "primary", type: "submit", "data-testid": "token-use" }, t().useToken);
  const wrong = el("p", { class: "wrong", role: "alert", "data-testid": "token-wrong" });
  const form = el("form", { class: "token-form" }, input, use);
  const dialog = showDialog(
    "token-dialog",
    t().needToken,
    t().close,
    el("p", {}, t().whereToken),
    form,
    wrong,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    api.setToken(input.value.trim().replace(/^.*#token=/, ""));
    const { may_release: may } = await api.look({ search: "", order: "name", locks: 0, elections: 0, after: 0 });
    setAllowed(may);
    if (!may) return setText(wrong, t().wrongToken);
    dialog.close();
    openRelease(kind, line);
  });
}
