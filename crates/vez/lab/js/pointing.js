// @ts-check
// The pointer and the keyboard on the stage: a process, a link, a message, or a line that parts
// the network.

import { linkMenu, messageActions, messageMenu, partitionMenu, processMenu } from "./actions.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { messageAt } from "./painter.js";

/** How near is meant, in pixels. */
const MESSAGE_REACH = 14;
const LINK_REACH = 8;
/** A shorter movement is a click. */
const DRAG_MIN = 6;
/** A line that ends this near to its start, compared with its length, goes round something. */
const CLOSED = 0.28;

/** @typedef {{x: number, y: number}} Point */

/** @param {import("./stage.js").Stage} stage */
export function handleStage(stage) {
  const { lab, canvas, root, buttons } = stage;
  /** @type {{start: Point, message: number|null, bins: HTMLElement|null}|null} */
  let drag = null;

  const activate = () => lab.activate(lab.sides.indexOf(stage.side));
  /** @param {PointerEvent} event @returns {Point} */
  const local = (event) => {
    const box = root.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  buttons.addEventListener("click", (event) => {
    const button = /** @type {HTMLElement} */ (event.target);
    if (button.dataset.index === undefined) return;
    activate();
    lab.pause();
    const index = Number(button.dataset.index);
    lab.select(index);
    const box = button.getBoundingClientRect();
    processMenu(lab, index, { x: box.right + 4, y: box.top });
  });
  buttons.addEventListener("keydown", (event) => moveFocus(event, buttons));

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !stage.timeline) return;
    activate();
    const start = local(event);
    const message = messageNear(stage, start);
    if (message !== null) lab.pause();
    drag = { start, message, bins: null };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const point = local(event);
    if (!drag) {
      canvas.style.cursor =
        messageNear(stage, point) !== null ? "grab" : linkNear(stage, point) ? "pointer" : "crosshair";
      return;
    }
    const far = Math.hypot(point.x - drag.start.x, point.y - drag.start.y) >= DRAG_MIN;
    if (drag.message !== null && (far || drag.bins)) {
      drag.bins ??= showBins(stage);
      stage.overlay.dragged = { message: drag.message, ...point };
      for (const bin of drag.bins.children) bin.classList.toggle("over", isOver(bin, event));
    } else if (drag.message === null && (far || stage.overlay.stroke)) {
      stage.overlay.stroke ??= [drag.start];
      stage.overlay.stroke.push(point);
    }
    stage.invalidate();
  });
  canvas.addEventListener("pointerup", (event) => {
    const done = drag;
    const stroke = stage.overlay.stroke;
    end();
    if (!done) return;
    const place = { x: event.clientX + 6, y: event.clientY + 6 };
    if (done.bins && done.message !== null) dropInto(stage, done.message, done.bins, event, place);
    else if (stroke) partitionMenu(lab, enclosed(stroke, stage.points), place);
    else if (done.message !== null) messageMenu(lab, done.message, place);
    else {
      const link = linkNear(stage, done.start);
      if (link) linkMenu(lab, link[0], link[1], place);
      else lab.select(-1);
    }
    done.bins?.remove();
  });
  canvas.addEventListener("pointercancel", () => {
    drag?.bins?.remove();
    end();
  });

  function end() {
    drag = null;
    stage.overlay.stroke = null;
    stage.overlay.dragged = null;
    stage.invalidate();
  }
}

/** @param {Element} bin @param {PointerEvent} event */
function isOver(bin, event) {
  const box = bin.getBoundingClientRect();
  return (
    event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom
  );
}

/** Where a dragged message can be dropped. @param {import("./stage.js").Stage} stage */
function showBins(stage) {
  const words = t().stage;
  const bins = el(
    "div",
    { class: "bins", "aria-label": words.dropHere },
    ...["drop", "twice", "hold"].map((id) =>
      el(
        "div",
        { class: "bin", "data-bin": id, "data-testid": `bin-${id}` },
        words[/** @type {"drop"|"twice"|"hold"} */ (id)],
      ),
    ),
  );
  stage.root.append(bins);
  return bins;
}

/**
 * @param {import("./stage.js").Stage} stage
 * @param {number} message
 * @param {HTMLElement} bins
 * @param {PointerEvent} event
 * @param {Point} place
 */
function dropInto(stage, message, bins, event, place) {
  const bin = /** @type {HTMLElement|undefined} */ ([...bins.children].find((child) => isOver(child, event)));
  const actions = messageActions(stage.lab, message);
  if (!bin || !actions.possible) return messageMenu(stage.lab, message, place);
  if (bin.dataset.bin === "drop") actions.drop();
  if (bin.dataset.bin === "twice") actions.duplicate();
  if (bin.dataset.bin === "hold") actions.holdIt();
}

/** @param {import("./stage.js").Stage} stage @param {Point} point */
function messageNear(stage, point) {
  const { timeline, placement } = stage;
  if (!timeline || !placement) return null;
  const scene = /** @type {import("./painter.js").Scene} */ (
    /** @type {unknown} */ ({ timeline, points: stage.points, radius: stage.radius, time: stage.visualTime })
  );
  let best = null;
  let reach = MESSAGE_REACH;
  for (const message of timeline.flight.at(stage.position())) {
    const { x, y } = messageAt(scene, message);
    const distance = Math.hypot(point.x - x, point.y - y);
    if (distance < reach) [best, reach] = [message, distance];
  }
  return best;
}

/** @param {import("./stage.js").Stage} stage @param {Point} point @returns {[number, number]|null} */
function linkNear({ placement, points }, point) {
  /** @type {[number, number]|null} */
  let best = null;
  let reach = LINK_REACH;
  for (const [a, b] of placement?.edges ?? []) {
    const [from, to] = [points[a], points[b]];
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const share = ((point.x - from.x) * dx + (point.y - from.y) * dy) / (dx * dx + dy * dy || 1);
    if (share < 0 || share > 1) continue;
    const distance = Math.hypot(point.x - from.x - share * dx, point.y - from.y - share * dy);
    if (distance < reach) [best, reach] = [[a, b], distance];
  }
  return best;
}

/** Those inside a closed line, or on one side of an open one. @param {Point[]} stroke @param {Point[]} points */
export function enclosed(stroke, points) {
  const [first, last] = [stroke[0], stroke[stroke.length - 1]];
  const gap = Math.hypot(last.x - first.x, last.y - first.y);
  let length = 0;
  for (let i = 1; i < stroke.length; i++)
    length += Math.hypot(stroke[i].x - stroke[i - 1].x, stroke[i].y - stroke[i - 1].y);
  const isIn =
    gap < length * CLOSED
      ? (/** @type {Point} */ point) => inPolygon(point, stroke)
      : (/** @type {Point} */ point) =>
          (last.x - first.x) * (point.y - first.y) - (last.y - first.y) * (point.x - first.x) > 0;
  return points.map((_, i) => i).filter((i) => isIn(points[i]));
}

/** @param {Point} point @param {Point[]} polygon */
function inPolygon(point, polygon) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [a, b] = [polygon[i], polygon[j]];
    if (a.y > point.y !== b.y > point.y && point.x < ((b.x - a.x) * (point.y - a.y)) / (b.y - a.y) + a.x)
      inside = !inside;
  }
  return inside;
}

/**
 * Arrows go from process to process while Alt is held, or where not all are tab stops.
 * @param {KeyboardEvent} event
 * @param {HTMLElement} buttons
 */
function moveFocus(event, buttons) {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const all = /** @type {HTMLElement[]} */ ([...buttons.children]);
  const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (!way || at < 0) return;
  event.preventDefault();
  event.stopPropagation();
  all[(at + way + all.length) % all.length].focus();
}
