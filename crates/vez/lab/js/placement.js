// @ts-check
// Where processes stand: a ring as a ring, a star as a star, any other graph so that neighbours
// are near. The same topology is always drawn the same.

/**
 * Places in a square from -1 to 1, and which way from each process there is room to write.
 * @typedef {{x: Float32Array, y: Float32Array, awayX: Float32Array, awayY: Float32Array, edges: [number, number][]}} Placement
 */

/**
 * @param {import("./types.js").Topology} topology
 * @param {Map<number, number>} indexOf
 * @returns {Placement}
 */
export function place(topology, indexOf) {
  const n = topology.nodes.length;
  const edges = /** @type {[number, number][]} */ (
    (topology.edges ?? []).map(([a, b]) => [indexOf.get(a) ?? 0, indexOf.get(b) ?? 0])
  );
  const x = new Float32Array(n);
  const y = new Float32Array(n);
  switch (topology.shape) {
    case "star":
      circle(x, y, 1);
      break;
    case "line":
      rows(x, y, n <= 8 ? n : Math.ceil(n / Math.ceil(n / 8)), true);
      break;
    case "grid":
      rows(x, y, Math.ceil(Math.sqrt(n)), false);
      break;
    case "graph":
    case "random":
      springs(x, y, edges);
      break;
    default:
      circle(x, y, 0);
  }
  return { x, y, edges, ...room(x, y, edges, topology.shape) };
}

/**
 * The first `inner` in the middle, the others round it.
 * @param {Float32Array} x
 * @param {Float32Array} y
 * @param {number} inner
 */
function circle(x, y, inner) {
  const around = x.length - inner;
  for (let i = inner; i < x.length; i++) {
    // Below the one in the middle there must be room to write.
    const turn = inner && around % 2 === 0 ? 0.5 : 0;
    const angle = (2 * Math.PI * (i - inner + turn)) / around - Math.PI / 2;
    // One alone beside the middle stands to its right.
    x[i] = around === 1 && inner ? 0.6 : Math.cos(angle);
    y[i] = around === 1 && inner ? 0 : Math.sin(angle);
  }
  if (around > 2) {
    stretch(x);
    stretch(y);
  }
}

/** @param {Float32Array} x @param {Float32Array} y @param {number} columns @param {boolean} snake */
function rows(x, y, columns, snake) {
  const count = Math.ceil(x.length / columns);
  for (let i = 0; i < x.length; i++) {
    const row = Math.floor(i / columns);
    const column = snake && row % 2 ? columns - 1 - (i % columns) : i % columns;
    x[i] = columns > 1 ? (2 * column) / (columns - 1) - 1 : 0;
    y[i] = count > 1 ? (2 * row) / (count - 1) - 1 : 0;
  }
}

/**
 * Links pull, processes push each other away.
 * @param {Float32Array} x
 * @param {Float32Array} y
 * @param {[number, number][]} edges
 */
function springs(x, y, edges) {
  const n = x.length;
  circle(x, y, 0);
  const rounds = n <= 40 ? 400 : n <= 150 ? 160 : 60;
  const ideal = 1.6 / Math.sqrt(n);
  for (let round = 0; round < rounds; round++) {
    const heat = 0.12 * (1 - round / rounds) + 0.002;
    const [fx, fy] = [new Float32Array(n), new Float32Array(n)];
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) {
        const dx = x[i] - x[j] || 0.001 * (i - j);
        const dy = y[i] - y[j] || 0.001;
        const force = (ideal * ideal) / (dx * dx + dy * dy);
        fx[i] += dx * force;
        fy[i] += dy * force;
        fx[j] -= dx * force;
        fy[j] -= dy * force;
      }
    }
    for (const [a, b] of edges) {
      const dx = x[a] - x[b];
      const dy = y[a] - y[b];
      const force = Math.hypot(dx, dy) / ideal;
      fx[a] -= dx * force;
      fy[a] -= dy * force;
      fx[b] += dx * force;
      fy[b] += dy * force;
    }
    for (let i = 0; i < n; i++) {
      const length = Math.hypot(fx[i], fy[i]) || 1;
      x[i] += (fx[i] / length) * Math.min(length, heat);
      y[i] += (fy[i] / length) * Math.min(length, heat);
    }
  }
  layDown(x, y);
  stretch(x);
  stretch(y);
}

/** Turns what is long so that it lies: the stage is wider than high. @param {Float32Array} x @param {Float32Array} y */
function layDown(x, y) {
  const mean = (/** @type {Float32Array} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [mx, my] = [mean(x), mean(y)];
  let [xx, xy, yy] = [0, 0, 0];
  for (let i = 0; i < x.length; i++) {
    xx += (x[i] - mx) ** 2;
    xy += (x[i] - mx) * (y[i] - my);
    yy += (y[i] - my) ** 2;
  }
  const angle = 0.5 * Math.atan2(2 * xy, xx - yy);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  for (let i = 0; i < x.length; i++) {
    const [dx, dy] = [x[i] - mx, y[i] - my];
    x[i] = dx * cos + dy * sin;
    y[i] = dy * cos - dx * sin;
  }
}

/** Uses the whole width. @param {Float32Array} values */
function stretch(values) {
  const low = values.reduce((least, value) => Math.min(least, value));
  const high = values.reduce((most, value) => Math.max(most, value));
  for (let i = 0; i < values.length; i++) values[i] = high > low ? (2 * (values[i] - low)) / (high - low) - 1 : 0;
}

/**
 * @param {Float32Array} x
 * @param {Float32Array} y
 * @param {[number, number][]} edges
 * @param {string} shape
 */
function room(x, y, edges, shape) {
  const awayX = Float32Array.from(x);
  const awayY = Float32Array.from(y);
  if (shape === "line" || shape === "grid") {
    awayX.fill(0);
    awayY.fill(1);
  } else if (shape === "graph" || shape === "random") {
    freest(x, y, edges, awayX, awayY);
  }
  for (let i = 0; i < x.length; i++) {
    const length = Math.hypot(awayX[i], awayY[i]);
    awayX[i] = length < 0.05 ? 0 : awayX[i] / length;
    awayY[i] = length < 0.05 ? 1 : awayY[i] / length;
  }
  return { awayX, awayY };
}

/**
 * Of the four ways to write, the one farthest from every link.
 * @param {Float32Array} x
 * @param {Float32Array} y
 * @param {[number, number][]} edges
 * @param {Float32Array} awayX
 * @param {Float32Array} awayY
 */
function freest(x, y, edges, awayX, awayY) {
  const ways = [
    [1, 0],
    [-1, 0],
    [0, 1],
    [0, -1],
  ];
  /** How much each way goes along with the link that is nearest to it. */
  const worst = Array.from(x, () => [-1, -1, -1, -1]);
  for (const [a, b] of edges) {
    const length = Math.hypot(x[b] - x[a], y[b] - y[a]) || 1;
    const [ux, uy] = [(x[b] - x[a]) / length, (y[b] - y[a]) / length];
    ways.forEach(([wx, wy], i) => {
      const along = ux * wx + uy * wy;
      worst[a][i] = Math.max(worst[a][i], along);
      worst[b][i] = Math.max(worst[b][i], -along);
    });
  }
  worst.forEach((row, node) => {
    // Outwards, if nothing else decides.
    const score = row.map((along, i) => along - 0.1 * (ways[i][0] * x[node] + ways[i][1] * y[node]));
    const [wx, wy] = ways[score.indexOf(Math.min(...score))];
    awayX[node] = wx;
    awayY[node] = wy;
  });
}
