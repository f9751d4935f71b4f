// The diagram: faults behind, messages between the lines, beads on the lines, bars under them.

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "panel", "ink", "soft", "line", "grid", "lane", "bad", "bad-paper", "rw", "ro", "abort", "open", "message", "mark", "mark-paper", "fault", "pick", "on-bar"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
const BEAD = 12; // The height of a bead in its stack.
const STACK = 6; // Beads in a stack at most.
const AXIS = 22;
const selected = { attempts: null, item: null, only: false };

/// A canvas that fits its box, cleared, in CSS pixels.
function prepare(canvas, width, height) {
  const dots = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
  }
  canvas.style.height = `${height}px`;
  const c = canvas.getContext("2d");
  c.setTransform(dots, 0, 0, dots, 0, 0);
  c.clearRect(0, 0, width, height);
  c.lineWidth = 1;
  c.setLineDash([]);
  c.globalAlpha = 1;
  c.textBaseline = "middle";
  return c;
}

/// Text cut to a width.
function fitText(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low < 3 ? "" : `${text.slice(0, low)}…`;
}

/// Draws the sign of a step. Shapes differ, so that colours need not be told apart.
function sign(c, kind, x, y, colour, size = 4) {
  c.fillStyle = c.strokeStyle = colour;
  c.lineWidth = 1.5;
  c.beginPath();
  switch (kind) {
    case "reads":
      c.arc(x, y, size - 0.8, 0, 7);
      c.fillStyle = colours.paper;
      c.fill();
      c.stroke();
      break;
    case "raises":
      c.moveTo(x, y - size);
      c.lineTo(x + size, y + size - 0.5);
      c.lineTo(x - size, y + size - 0.5);
      c.closePath();
      c.fill();
      break;
    case "locks":
    case "bounds":
      c.rect(x - size + 0.6, y - size + 0.6, 2 * size - 1.2, 2 * size - 1.2);
      c.fillStyle = colours.paper;
      c.fill();
      c.stroke();
      break;
    case "pins":
      c.moveTo(x, y - size);
      c.lineTo(x + size, y);
      c.lineTo(x, y + size);
      c.lineTo(x - size, y);
      c.closePath();
      c.fillStyle = colours.paper;
      c.fill();
      c.stroke();
      break;
    case "installs":
      c.arc(x, y, size, 0, 7);
      c.fill();
      break;
    case "unlocks":
      c.rect(x - size + 1, y - size + 1, 2 * size - 2, 2 * size - 2);
      c.setLineDash([2, 2]);
      c.stroke();
      c.setLineDash([]);
      break;
    case "waits":
      c.moveTo(x - size, y - size);
      c.lineTo(x + size, y - size);
      c.lineTo(x - size, y + size);
      c.lineTo(x + size, y + size);
      c.closePath();
      c.fill();
      break;
    default: // Refused.
      c.moveTo(x - size + 1, y - size + 1);
      c.lineTo(x + size - 1, y + size - 1);
      c.moveTo(x + size - 1, y - size + 1);
      c.lineTo(x - size + 1, y + size - 1);
      c.lineWidth = 2;
      c.stroke();
  }
  c.lineWidth = 1;
}

/// What a bead says beside itself.
function beadLabel(bead) {
  const step = bead.main;
  const name = world.items[bead.i].name;
  const read = bead.steps.find((s) => s.k === "reads");
  const seen = read === undefined ? "" : read.w === "absent" ? "absent" : label(read.v);
  const moves = step.m && world.marks ? (rank(step.m[0]) < rank(step.m[1]) ? `${label(step.m[0])} → ${label(step.m[1])}` : `mark ${label(step.m[1])}`) : "";
  switch (bead.k) {
    case "raises": return `${name}  ${[moves, seen ? `reads ${seen}` : ""].filter((part) => part).join(", ")}`;
    case "reads": return `${name}  reads ${seen}`;
    case "locks": return step.w === "shared" ? `${name}  shared lock` : world.marks ? `${name}  locks, mark ${label(step.v)}` : `${name}  locks`;
    case "bounds": return `${name}  mark ${label(step.v)}`;
    case "installs": return `${name}  ${step.w === "deleted" ? "deletes" : "installs"} ${label(step.v)}`;
    case "pins": return step.w === "changed" ? `${name}  has changed` : world.marks ? `${name}  pins ${moves}` : `${name}  still the same`;
    default: return `${name}  ${step.k}`;
  }
}

const layout = { lanes: [], height: 0, faults: 0 };

function arrange(least) {
  const strip = [];
  for (const fault of world.faults) {
    const end = (f) => f.to;
    let row = strip.findIndex((faults) => end(faults.at(-1)) < fault.from);
    if (row < 0) row = strip.length < 4 ? strip.push([]) - 1 : 3;
    strip[row].push(fault);
    fault.row = row;
  }
  layout.faults = strip.length * 17 + (strip.length ? 5 : 0);
  const count = world.shards.length;
  const rows = world.shards.reduce((sum, line) => sum + line.rows, 0);
  const fixed = AXIS + layout.faults + count * (STACK * BEAD + 34);
  layout.bar = Math.max(14, Math.min(18, Math.floor((least - fixed) / Math.max(rows, 1))));
  const spare = Math.max(0, (least - fixed - rows * layout.bar) / Math.max(count, 1));
  let y = AXIS + layout.faults;
  layout.lanes = world.shards.map((line) => {
    const top = y;
    const above = line.oracle ? 34 : STACK * BEAD + 14;
    y = top + above + 8 + line.rows * layout.bar + 12 + Math.min(spare, 150);
    return { top, line: top + above, bars: top + above + 8, under: top + above + 10 + line.rows * layout.bar, bottom: y };
  });
  layout.height = Math.max(y, least);
}

let hits = [];
const hit = (x, y, w, h, thing) => hits.push({ x, y, w, h, thing });

/// Whether all others are left out.
const leftOut = (xs) => selected.only && dimmed(xs);
const dimmed = (xs) => selected.attempts !== null && !xs.some((x) => selected.attempts.has(x));
const beadDimmed = (bead) => (selected.item !== null ? bead.i !== selected.item && (selected.attempts === null || !selected.attempts.has(bead.x)) : dimmed([bead.x]));

function drawDiagram(canvas, least) {
  const width = canvas.clientWidth;
  view.width = width;
  view.keep();
  arrange(least);
  const c = prepare(canvas, width, layout.height);
  hits = [];
  const [from, to] = [view.time(GUTTER - 40), view.time(width + 40)];
  c.save();
  c.beginPath();
  c.rect(GUTTER, 0, width - GUTTER, layout.height);
  c.clip();
  drawLanes(c, width, from, to);
  drawFaults(c, from, to);
  stack(from, to);
  drawBatches(c, from, to);
  drawBars(c, width, from, to);
  drawBeads(c);
  c.restore();
  drawGutter(c);
}

function drawLanes(c, width, from, to) {
  layout.lanes.forEach((lane, s) => {
    c.fillStyle = s % 2 ? colours.paper : colours.lane;
    c.fillRect(GUTTER, lane.top, width, lane.bottom - lane.top);
  });
  c.font = `11px ${FONT}`;
  c.textAlign = "left";
  const digits = view.scale !== scales.linear || to - from < 2e6 ? 3 : to - from < 2e8 ? 1 : 0;
  for (const t of ticks(from, to)) {
    const x = view.x(t);
    c.strokeStyle = colours.grid;
    c.beginPath();
    c.moveTo(x, AXIS - 4);
    c.lineTo(x, layout.height);
    c.stroke();
    c.fillStyle = colours.soft;
    c.fillText(`${ms(t, digits)} ms`, x + 3, AXIS / 2);
  }
  for (const lane of layout.lanes) {
    c.strokeStyle = colours.soft;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(GUTTER, lane.line);
    c.lineTo(width, lane.line);
    c.stroke();
    c.lineWidth = 1;
  }
}

function drawGutter(c) {
  c.textAlign = "left";
  c.strokeStyle = colours.line;
  c.beginPath();
  c.moveTo(GUTTER - 0.5, 0);
  c.lineTo(GUTTER - 0.5, layout.height);
  c.stroke();
  layout.lanes.forEach((lane, s) => {
    c.fillStyle = colours.ink;
    c.font = `600 13px ${FONT}`;
    c.fillText(world.shards[s].name, 10, lane.line);
    c.fillStyle = colours.soft;
    c.font = `11px ${FONT}`;
    c.fillText(`machine ${world.shards[s].machine}`, 10, lane.line + 15);
  });
  if (layout.faults) c.fillText("faults", 10, AXIS + 9);
}

function drawFaults(c, from, to) {
  c.font = `11px ${FONT}`;
  for (const fault of world.faults) {
    if (fault.to < from || fault.from > to) continue;
    const [x0, x1] = [view.x(fault.from), view.x(fault.to)];
    const y = AXIS + 2 + fault.row * 17;
    const wide = Math.max(3, x1 - x0);
    c.globalAlpha = fault.from === fault.to ? 0.9 : 0.13;
    c.fillStyle = c.strokeStyle = colours.fault;
    layout.lanes.forEach((lane, s) => {
      if (!fault.machines.includes(world.shards[s].machine)) return;
      if (fault.from === fault.to) {
        c.setLineDash([4, 3]);
        c.beginPath();
        c.moveTo(x0, lane.top);
        c.lineTo(x0, lane.bottom);
        c.stroke();
        c.setLineDash([]);
      } else {
        c.fillRect(x0, lane.top, wide, lane.bottom - lane.top);
      }
    });
    c.globalAlpha = 0.3;
    c.fillRect(x0, y, wide, 15);
    c.globalAlpha = 1;
    c.fillRect(x0, y, 3, 15);
    const left = Math.max(x0, GUTTER) + 7;
    const next = world.faults.filter((f) => f.row === fault.row && f.from > fault.from).map((f) => view.x(f.from));
    const text = fitText(c, fault.words, Math.min(fault.from === fault.to ? 260 : x1 - left, ...next.map((x) => x - left - 4)));
    c.fillStyle = colours.ink;
    c.fillText(text, left, y + 8);
    hit(x0, y, Math.max(wide, c.measureText(text).width + 8), 15, { fault });
  }
}

function arrow(c, x0, y0, x1, y1, head = 5) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
  if (head === 0) return;
  const way = Math.atan2(y1 - y0, x1 - x0);
  c.setLineDash([]);
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x1 - head * 1.6 * Math.cos(way - 0.4), y1 - head * 1.6 * Math.sin(way - 0.4));
  c.lineTo(x1 - head * 1.6 * Math.cos(way + 0.4), y1 - head * 1.6 * Math.sin(way + 0.4));
  c.fill();
}

const longest = world.batches.reduce((most, batch) => Math.max(most, batch.end - batch.sent), 0);

function drawBatches(c, from, to) {
  const labels = [];
  const shown = [];
  for (let n = firstFrom(world.batches, from - longest, (b) => b.sent); n < world.batches.length && world.batches[n].sent <= to; n++) {
    const batch = world.batches[n];
    if (batch.end >= from && !leftOut(batch.has.map((m) => m.x))) shown.push(batch);
  }
  // The more there are, the paler they are; those of a few that are picked stand out.
  const pale = Math.min(1, 250 / shown.length);
  const few = selected.attempts !== null && selected.attempts.size <= 8;
  for (const batch of shown) {
    const faint = dimmed(batch.has.map((m) => m.x)) || selected.item !== null && !batch.has.some((m) => m.i?.includes(selected.item) || selected.attempts?.has(m.x));
    const [y0, y1] = [layout.lanes[batch.from].line, layout.lanes[batch.to].line];
    const odd = batch.lost || batch.late;
    c.globalAlpha = faint ? 0.1 * pale : few ? 0.9 : Math.max(0.08, 0.85 * pale);
    c.strokeStyle = c.fillStyle = odd ? colours.bad : colours.message;
    if (!faint && few) c.strokeStyle = c.fillStyle = odd ? colours.bad : colours.ink;
    c.lineWidth = !faint && few ? 1.4 : 1;
    for (const [sent, copies] of batch.tries) {
      const x = view.x(sent);
      if (copies.length === 0) {
        const [xl, yl] = [x + Math.min(26, 2 * view.zoom), y0 + 0.4 * (y1 - y0)];
        c.setLineDash([3, 3]);
        arrow(c, x, y0, xl, yl, 0);
        c.setLineDash([]);
        sign(c, "refused", xl, yl, colours.bad, 4);
        c.strokeStyle = c.fillStyle = odd ? colours.bad : colours.message;
      }
      c.globalAlpha *= 0.5;
      for (const time of copies.slice(1).concat(sent === batch.sent ? [] : copies.slice(0, 1))) {
        c.setLineDash([2, 3]);
        arrow(c, x, y0, view.x(time), y1, 0);
        c.setLineDash([]);
      }
      c.globalAlpha *= 2;
    }
    if (batch.got !== null) {
      const [x0, x1] = [view.x(batch.sent), view.x(batch.got)];
      arrow(c, x0, y0, x1, y1, view.zoom < 2 ? 0 : 4);
      const [dx, dy] = [x1 - x0, y1 - y0];
      hit(Math.min(x0, x1), Math.min(y0, y1), Math.abs(dx), Math.abs(dy), { batch, x0, y0, x1, y1 });
      if (!faint && view.zoom >= 4.5) labels.push({ text: brief(batch, selected.only ? selected.attempts : undefined) + (batch.late ? " (late)" : ""), colour: odd ? colours.bad : colours.soft, batch, x0, y0, dx, dy });
    }
  }
  c.globalAlpha = 1;
  c.lineWidth = 1;
  labelBatches(c, labels);
}

/// Says what the messages are, beside the arrows, in the space between bars and beads where there is some.
function labelBatches(c, labels) {
  c.font = `10.5px ${FONT}`;
  c.textAlign = "left";
  const taken = layout.lanes.map(() => []);
  const gaps = layout.lanes.slice(1).map((lane, n) => ({ n, from: layout.lanes[n].under + 7, to: lane.line - stackHeight(n + 1) - 8 }));
  for (const { text, colour, batch, x0, y0, dx, dy } of labels) {
    const [high, low] = batch.from < batch.to ? [batch.from, batch.to] : [batch.to, batch.from];
    const between = gaps.slice(high, low);
    if (batch.from > batch.to) between.reverse();
    const w = c.measureText(text).width;
    place: for (const gap of between) {
      const rows = Math.floor((gap.to - gap.from) / 13) + 1;
      for (let row = 0; row < rows; row++) {
        const y = batch.from < batch.to ? gap.from + 13 * row : gap.to - 13 * row;
        const x = x0 + ((y - y0) / dy) * dx + 4;
        if (x < GUTTER + 2 || taken[gap.n].some((b) => Math.abs(b.y - y) < 12 && x < b.x + b.w + 6 && x + w + 6 > b.x)) continue;
        taken[gap.n].push({ x, y, w });
        halo(c, text, x, y, colour);
        break place;
      }
    }
  }
}

/// The height of the highest stack on a line that is in sight.
function stackHeight(s) {
  return layout.stacks === undefined ? STACK * BEAD : Math.min(STACK, Math.max(0, ...layout.stacks[s].map((stack) => stack.beads.length))) * BEAD + 4;
}

/// Text that stays readable over lines.
function halo(c, text, x, y, colour) {
  c.lineJoin = "round";
  c.lineWidth = 3;
  c.strokeStyle = colours.lane;
  c.strokeText(text, x, y);
  c.lineWidth = 1;
  c.fillStyle = colour;
  c.fillText(text, x, y);
}

function drawBars(c, width, from, to) {
  c.textAlign = "left";
  c.font = `${Math.min(11, layout.bar - 4)}px ${FONT}`;
  for (const [x, attempt] of world.attempts.entries()) {
    if (attempt.end < from || attempt.begin > to || leftOut([x])) continue;
    const lane = layout.lanes[attempt.shard];
    const [x0, x1] = [view.x(attempt.begin), view.x(attempt.end)];
    const [y, h] = [lane.bars + attempt.row * layout.bar, layout.bar - 2];
    const wide = Math.max(x1 - x0, 2.5);
    c.globalAlpha = dimmed([x]) ? 0.16 : 1;
    const picked = selected.attempts?.has(x);
    c.fillStyle = c.strokeStyle = colours[attempt.kind];
    if (attempt.kind === "abort" || attempt.kind === "open") {
      c.fillStyle = colours.paper;
      c.fillRect(x0, y, wide, h);
      c.globalAlpha *= 0.22;
      c.fillStyle = colours[attempt.kind];
      c.fillRect(x0, y, wide, h);
      c.globalAlpha = dimmed([x]) ? 0.16 : 1;
      if (wide > 3) c.strokeRect(x0 + 0.5, y + 0.5, wide - 1, h - 1);
    } else {
      c.beginPath();
      c.roundRect(x0, y, wide, h, Math.min(3, wide / 2));
      c.fill();
    }
    if (picked && selected.attempts.size < 6) {
      c.strokeStyle = colours.ink;
      c.lineWidth = 2;
      c.strokeRect(x0 - 1, y - 1, wide + 2, h + 2);
      c.lineWidth = 1;
    }
    const left = Math.max(x0, GUTTER) + 4;
    const room = Math.min(x1, width) - left - 4;
    if (room > 24 && h >= 8) {
      const why = attempt.outcome === "aborted" ? ` ✕ ${attempt.why.replace("_", " ")}` : "";
      const when = attempt.stamp === null || !why === false ? "" : `  @ ${label(attempt.stamp)}`;
      const reason = attempt.because?.kind === "bound" || attempt.because?.kind === "version" ? ` (${attempt.because.kind === "bound" ? "mark" : "version"} + 1)` : "";
      c.fillStyle = why || attempt.kind === "open" ? colours.ink : colours["on-bar"];
      c.fillText(fitText(c, `${title(attempt)}${why}${when}${when && reason}`, room), left, y + h / 2 + 0.5);
    }
    hit(x0 - 2, y - 1, wide + 4, h + 2, { x });
  }
  c.globalAlpha = 1;
}

/// The stacks in sight: the beads of one shard and moment. Where there are more than have room, only how many there are.
function stack(from, to) {
  const beads = [];
  for (let n = firstFrom(world.beads, from, (b) => b.t); n < world.beads.length && world.beads[n].t <= to; n++) {
    if (!leftOut([world.beads[n].x])) beads.push(world.beads[n]);
  }
  const gather = (gap) => {
    const stacks = world.shards.map(() => []);
    for (const bead of beads) {
      const x = view.x(bead.t);
      const last = stacks[bead.s].at(-1);
      if (last !== undefined && x - last.x < gap) last.beads.push(bead);
      else stacks[bead.s].push({ x, beads: [bead] });
    }
    return stacks;
  };
  layout.stacks = gather(7);
  layout.dense = layout.stacks.some((list) => list.length * 14 > view.room());
  if (layout.dense) layout.stacks = gather(2);
}

function drawBeads(c) {
  c.textAlign = "left";
  c.font = `10.5px ${FONT}`;
  layout.stacks.forEach((list, s) => {
    const lane = layout.lanes[s];
    const labels = Array.from({ length: STACK }, () => null);
    const plus = [-99, -99]; // Where the last "+3" stands, in two rows.
    for (const stack of list) {
      // Where moments are closer than beads are wide, only how many there are.
      if (layout.dense) {
        const strong = stack.beads.filter((bead) => !beadDimmed(bead));
        const bar = (beads, alpha) => {
          c.globalAlpha = alpha;
          c.fillStyle = beads.length ? colours[world.attempts[beads[0].x].kind] : colours.soft;
          const h = Math.min(STACK * BEAD, 3 + 4 * beads.length);
          c.fillRect(stack.x - 1, lane.line - 2 - h, 2, h);
        };
        bar(stack.beads, strong.length < stack.beads.length ? 0.15 : 0.7);
        if (strong.length && strong.length < stack.beads.length) bar(strong, 1);
        hit(stack.x - 2, lane.top + 10, 4, lane.line - lane.top - 10, { beads: stack.beads });
        continue;
      }
      // Those that are looked at stand lowest.
      const order = selected.attempts === null && selected.item === null ? stack.beads : [...stack.beads].sort((a, b) => beadDimmed(a) - beadDimmed(b));
      const shown = order.length > STACK ? order.slice(0, STACK - 1) : order;
      c.globalAlpha = 0.35;
      c.strokeStyle = colours.soft;
      c.beginPath();
      c.moveTo(stack.x, lane.line);
      c.lineTo(stack.x, lane.line - shown.length * BEAD + 2);
      c.stroke();
      shown.forEach((bead, row) => {
        const y = lane.line - 3 - BEAD / 2 - row * BEAD + 1;
        const faint = beadDimmed(bead);
        c.globalAlpha = faint ? 0.16 : 1;
        if (selected.item === bead.i) {
          c.fillStyle = colours.pick;
          c.fillRect(stack.x - 6, y - 6, 12, 12);
        }
        const bad = bead.k === "refused" || bead.main.w === "changed";
        sign(c, bead.k, stack.x, y, bad ? colours.bad : colours[world.attempts[bead.x].kind]);
        if (labels[row] !== null) drawLabel(c, labels[row], stack.x - 8);
        labels[row] = { x: stack.x + 7, y, bead, faint };
        hit(stack.x - 6, y - 6, 12, 12, { bead });
      });
      for (let row = shown.length; row < STACK; row++) {
        if (labels[row] !== null) drawLabel(c, labels[row], stack.x - 8);
        labels[row] = null;
      }
      c.globalAlpha = 1;
      if (order.length > shown.length) {
        const row = plus.findIndex((x) => stack.x - x >= 28);
        const y = lane.line - 3 - BEAD / 2 - shown.length * BEAD + 1 - (row === 1 ? 10 : 0);
        if (row >= 0) {
          plus[row] = stack.x;
          c.fillStyle = colours.soft;
          c.textAlign = "center";
          c.fillText(`+${order.length - shown.length}`, stack.x, y);
          c.textAlign = "left";
        }
        hit(stack.x - 9, y - 6, 18, 12, { beads: order.slice(shown.length) });
      }
    }
    for (const left of labels) if (left !== null) drawLabel(c, left, view.width);
  });
  c.globalAlpha = 1;
}

function drawLabel(c, { x, y, bead, faint }, end) {
  if (faint || end - x < 46) return;
  const alpha = c.globalAlpha;
  c.globalAlpha = 1;
  c.fillStyle = bead.k === "refused" || bead.main.w === "changed" ? colours.bad : colours.ink;
  const text = fitText(c, beadLabel(bead), end - x);
  if (text.length > 4) halo(c, text, x, y, c.fillStyle);
  c.globalAlpha = alpha;
}

/// The whole world in a strip, and where the view is.
function drawOverview(canvas) {
  const width = canvas.clientWidth;
  const c = prepare(canvas, width, 30);
  const all = view.scale.end;
  const x = (time) => GUTTER + (view.scale.of(time) / all) * (width - GUTTER - 8);
  for (const fault of world.faults) {
    const [a, b] = [Math.max(GUTTER, x(fault.from)), x(fault.to)];
    c.fillStyle = colours.fault;
    c.globalAlpha = 0.25;
    if (b >= GUTTER) c.fillRect(a, 0, Math.max(2, b - a), 30);
  }
  const columns = new Float32Array(Math.ceil(width));
  const picked = new Float32Array(Math.ceil(width));
  for (const bead of world.beads) {
    const column = Math.floor(x(bead.t));
    if (leftOut([bead.x]) || column < GUTTER) continue;
    columns[column] += 1;
    if ((selected.attempts !== null || selected.item !== null) && !beadDimmed(bead)) picked[column] += 1;
  }
  const most = Math.max(1, ...columns);
  c.globalAlpha = 1;
  for (let n = 0; n < columns.length; n++) {
    c.fillStyle = colours.message;
    const h = columns[n] ? 2 + 22 * Math.sqrt(columns[n] / most) : 0;
    c.fillRect(n, 27 - h, 1, h);
    if (picked[n]) {
      c.fillStyle = colours.rw;
      c.fillRect(n, 27 - h, 1.5, h);
    }
  }
  const [a, b] = [view.from / all, (view.from + view.room() / view.zoom) / all].map((share) => GUTTER + Math.min(1, Math.max(0, share)) * (width - GUTTER - 8));
  c.strokeStyle = colours.ink;
  c.lineWidth = 1.5;
  c.strokeRect(a, 1.5, Math.max(4, b - a), 26);
  c.fillStyle = colours.soft;
  c.font = `11px ${FONT}`;
  c.fillText("all of it", 10, 15);
}
