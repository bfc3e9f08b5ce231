// @ts-check
// Moves the time while the run plays: a message takes about a second, and stretches in which
// nothing is under way are passed over quickly.

import { countUpTo } from "./sorted.js";

/** At speed 1 a typical message takes this long to arrive. */
const MESSAGE_MS = 900;
/** A quiet stretch lasts no longer than so many messages would take. */
const QUIET_MESSAGES = 1.2;
/** A longer gap between two frames is a pause of the browser's, not of ours. */
const FRAME_MAX_MS = 100;

/** @param {import("./state.js").Lab} lab */
export function startClock(lab) {
  let last = 0;
  /** @type {number[]} */
  const frames = [];
  /** @param {number} now */
  function frame(now) {
    if (!lab.playing) return;
    const passed = Math.min(now - last, FRAME_MAX_MS);
    if (frames.length < 100_000) frames.push(now - last);
    last = now;
    const next = lab.time + (passed / MESSAGE_MS) * lab.speed * pace(lab);
    lab.seek(next);
    if (lab.time >= lab.duration) lab.pause();
    else requestAnimationFrame(frame);
  }
  lab.on("play", () => {
    if (!lab.playing) return;
    frames.length = 0;
    requestAnimationFrame((now) => {
      last = now;
      requestAnimationFrame(frame);
    });
  });
  return { frames };
}

/** How much time passes while a message would arrive. @param {import("./state.js").Lab} lab */
function pace(lab) {
  let delay = Infinity;
  let from = 0;
  let to = lab.duration;
  let quiet = lab.skipQuiet;
  for (const { timeline, position } of lab.sides) {
    if (!timeline) continue;
    delay = Math.min(delay, timeline.messages.delay);
    if (timeline.flight.at(position).length > 0) quiet = false;
    const next = countUpTo(timeline.stepTime, lab.time);
    if (next > 0) from = Math.max(from, timeline.stepTime[next - 1]);
    if (next < timeline.steps) to = Math.min(to, timeline.stepTime[next]);
  }
  if (!Number.isFinite(delay)) return 1;
  return quiet ? Math.max(delay, (to - from) / QUIET_MESSAGES) : delay;
}
