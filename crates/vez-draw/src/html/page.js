"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const picture = document.querySelector(".picture");
  const svg = picture.querySelector("svg");
  const detail = document.querySelector(".detail");
  const story = document.querySelector(".story");
  const lines = [...story.children];

  // Marks and lines by step, so that each finds the other.
  const markOf = new Map();
  const lanes = data.names.map(() => []);
  for (const mark of svg.querySelectorAll(".step")) {
    const steps = mark.dataset.steps.split(" ").map(Number);
    for (const step of steps) markOf.set(step, mark);
    lanes[mark.dataset.lane].push({ y: Number(mark.dataset.y), step: steps[steps.length - 1] });
  }
  for (const lane of lanes) lane.sort((a, b) => a.y - b.y);
  const lineOf = new Map();
  lines.forEach((line, index) => {
    const step = Number(line.dataset.step);
    if (!lineOf.has(step)) lineOf.set(step, index);
  });
  const arrowsOf = new Map();
  for (const arrow of svg.querySelectorAll(".m[data-id]")) {
    for (const step of [arrow.dataset.sent, arrow.dataset.step]) {
      if (step === undefined) continue;
      if (!arrowsOf.has(Number(step))) arrowsOf.set(Number(step), []);
      arrowsOf.get(Number(step)).push(arrow);
    }
  }
  const stepsOf = new Map(data.names.map((name) => [name, []]));
  data.steps.forEach((step, index) => {
    if (step.who && step.changed) stepsOf.get(step.who).push(index);
  });

  const make = (tag, text, parent, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    if (parent) parent.append(element);
    return element;
  };

  // The state of a process right after a step: what it booted with, and every change since.
  const stateAt = (who, step) => {
    const state = new Map(data.first[who] || []);
    for (const index of stepsOf.get(who) || []) {
      if (index > step) break;
      for (const change of data.steps[index].changed) {
        const at = change.indexOf(": ");
        const [name, value] = at < 0 ? ["state", change] : [change.slice(0, at), change.slice(at + 2)];
        for (const known of [...state.keys()]) if (known.startsWith(name + ".")) state.delete(known);
        if (name.includes(".")) state.delete(name.split(".")[0]);
        state.set(name, value);
      }
    }
    return state;
  };

  const showState = (who, step) => {
    const changed = (data.steps[step].who === who && data.steps[step].changed) || [];
    const fresh = new Set(changed.map((change) => change.split(": ")[0]));
    const table = make("table", undefined, detail);
    for (const [name, value] of stateAt(who, step)) {
      const row = make("tr", undefined, table, fresh.has(name) ? "new" : "");
      make("th", name, row).scope = "row";
      make("td", value, row);
    }
  };

  const showStep = (step) => {
    const { time, who, words } = data.steps[step];
    detail.replaceChildren();
    make("h3", time + " · " + (words || who || ""), detail);
    if (who) {
      make("p", who + " after this", detail, "hint");
      showState(who, step);
    }
  };

  const showMessage = (id) => {
    const { kind, journey, message } = data.messages[id];
    detail.replaceChildren();
    make("h3", journey, detail);
    let fields = message && typeof message === "object" && kind in message ? message[kind] : message;
    if (fields === null || typeof fields !== "object") fields = { [kind]: fields };
    const table = make("table", undefined, detail);
    for (const [name, value] of Object.entries(fields)) {
      const row = make("tr", undefined, table);
      make("th", name, row).scope = "row";
      make("td", typeof value === "string" ? value : JSON.stringify(value), row);
    }
  };

  const showMoment = (lane, y) => {
    const before = lanes[lane].filter((mark) => mark.y <= y).pop();
    const name = data.names[lane];
    detail.replaceChildren();
    if (!before) {
      make("h3", name + ", before its first step", detail);
      const table = make("table", undefined, detail);
      for (const [field, value] of data.first[name] || []) {
        const row = make("tr", undefined, table);
        make("th", field, row).scope = "row";
        make("td", value, row);
      }
      return;
    }
    make("h3", name + ", since " + data.steps[before.step].time, detail);
    showState(name, before.step);
  };

  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  ring.setAttribute("class", "ring");
  ring.setAttribute("r", "10");
  ring.setAttribute("visibility", "hidden");
  svg.append(ring);

  let picked = -1;
  let marked = [];
  const pick = (index, { scrollPicture = true } = {}) => {
    if (index < 0 || lines.length <= index) return;
    if (0 <= picked) lines[picked].removeAttribute("aria-selected");
    for (const arrow of marked) arrow.classList.remove("picked");
    picked = index;
    const line = lines[index];
    const step = Number(line.dataset.step);
    line.setAttribute("aria-selected", "true");
    if (!line.id) line.id = "line" + index;
    story.setAttribute("aria-activedescendant", line.id);
    line.scrollIntoView({ block: "nearest" });
    marked = arrowsOf.get(step) || [];
    for (const arrow of marked) arrow.classList.add("picked");
    const mark = markOf.get(step);
    ring.setAttribute("visibility", mark ? "visible" : "hidden");
    if (mark) {
      const shape = mark.querySelector("circle, path");
      const box = shape.getBBox();
      ring.setAttribute("cx", box.x + box.width / 2);
      ring.setAttribute("cy", box.y + box.height / 2);
      if (scrollPicture) ring.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    showStep(step);
  };

  const target = (event) => event.target.closest && event.target.closest(".m[data-id], .step");
  const heads = [...svg.querySelectorAll(".head.top text")].map((head) => Number(head.getAttribute("x")));
  const top = Number(svg.querySelector(".head.top text").getAttribute("y"));
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (y < top || heads.length === 0) return null;
    let best = 0;
    heads.forEach((at, lane) => { if (Math.abs(at - x) < Math.abs(heads[best] - x)) best = lane; });
    return Math.abs(heads[best] - x) <= 14 ? { lane: best, y } : null;
  };
  svg.addEventListener("pointermove", (event) => {
    const over = target(event);
    if (over && over.classList.contains("m")) return showMessage(over.dataset.id);
    if (over) return showStep(Number(over.dataset.steps.split(" ").pop()));
    const near = nearest(event);
    if (near) showMoment(near.lane, near.y);
  });
  svg.addEventListener("pointerleave", () => { if (0 <= picked) showStep(Number(lines[picked].dataset.step)); });
  svg.addEventListener("click", (event) => {
    const over = target(event);
    if (!over) return;
    const steps = over.dataset.steps ? over.dataset.steps.split(" ") : [over.dataset.step, over.dataset.sent];
    const step = steps.filter((one) => one !== undefined).map(Number).find((one) => lineOf.has(one));
    if (step !== undefined) pick(lineOf.get(step), { scrollPicture: false });
  });
  story.addEventListener("click", (event) => {
    const line = event.target.closest("li");
    if (line) pick(lines.indexOf(line));
  });
  story.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: picked + 1, ArrowUp: Math.max(picked - 1, 0), Home: 0,
      End: lines.length - 1, PageDown: Math.min(picked + 10, lines.length - 1),
      PageUp: Math.max(picked - 10, 0) };
    if (!(event.key in moves)) return;
    event.preventDefault();
    pick(moves[event.key]);
  });

  // The names stay in sight while the picture scrolls.
  const head = svg.querySelector(".head.top");
  const strip = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  strip.setAttribute("class", "strip");
  strip.setAttribute("width", svg.getAttribute("width"));
  strip.setAttribute("height", "30");
  strip.setAttribute("y", top - 20);
  head.prepend(strip);
  svg.append(head);
  const above = top - 20;
  picture.addEventListener("scroll", () => {
    head.setAttribute("transform", "translate(0 " + Math.max(0, picture.scrollTop - above) + ")");
  }, { passive: true });
})();
