// The history of one record: its mark as a staircase that only rises, versions on it, snapshots that push it up.
//
// Time goes from left to right, in step with the diagram above. Timestamps go upwards, and every one that occurs gets
// the same room: a timestamp that is larger by one nanosecond is seen as larger.

const MARGIN = 14;

/// What there is to draw for an item: points in the order of time, and its mark after each.
function story(i) {
  const points = [];
  for (const step of world.items[i].steps) {
    const attempt = world.attempts[step.x];
    const point = { t: step.t, step, x: step.x };
    if (step.m) [point.before, point.after] = step.m;
    if (step.k === "locks" || step.k === "bounds") point.before = point.after = step.v;
    if (step.k === "raises") point.v = attempt.steps.find((s) => s.k === "snapshot")?.v ?? attempt.stamp;
    else if (step.k === "pins") point.v = attempt.steps.find((s) => s.k === "stamps")?.v ?? attempt.stamp;
    else if (step.k === "installs" || step.k === "reads") point.v = step.v;
    points.push(point);
  }
  return points;
}

function drawHistory(canvas, i) {
  const box = canvas.parentElement.getBoundingClientRect();
  const top = canvas.getBoundingClientRect().top - box.top;
  const [width, height] = [canvas.clientWidth, Math.max(60, Math.floor(box.height - top))];
  const c = prepare(canvas, width, height);
  const [from, to] = [view.time(GUTTER - 60), view.time(width + 60)];
  const all = story(i);
  const first = Math.max(0, firstFrom(all, from, (p) => p.t) - 1);
  const shown = all.slice(first).filter((p) => p.t <= to);
  const waits = shown.filter((p) => p.step.k === "installs" && pushed(p, i));
  const values = new Set();
  const add = (v) => v !== undefined && v !== "never" && values.add(v);
  if (world.marks) for (const p of shown) [p.before, p.after].forEach(add);
  for (const p of shown) if (p.step.w !== "absent") add(p.v);
  for (const p of waits) add(world.attempts[p.x].because.clock);
  const sorted = [...values].sort((a, b) => rank(a) - rank(b));
  const place = new Map(sorted.map((v, n) => [v, n]));
  const pitch = (height - 2 * MARGIN) / Math.max(1, sorted.length - 1);
  const y = (v) => height - MARGIN - (sorted.length === 1 ? (height - 2 * MARGIN) / 2 : place.get(v) * pitch);
  c.font = `10.5px ${FONT}`;
  c.save();
  c.beginPath();
  c.rect(GUTTER, 0, width - GUTTER, height);
  c.clip();
  for (const v of sorted) {
    c.strokeStyle = colours.grid;
    c.beginPath();
    c.moveTo(GUTTER, y(v));
    c.lineTo(width, y(v));
    c.stroke();
  }
  if (world.marks) staircase(c, shown, y, width, height, last(all));
  const labels = [];
  for (const p of shown) {
    const x = view.x(p.t);
    const attempt = world.attempts[p.x];
    c.globalAlpha = selected.attempts !== null && !selected.attempts.has(p.x) ? 0.45 : 1;
    const colour = colours[attempt.kind];
    if (p.step.k === "installs" && pushed(p, i)) push(c, x, y, p, labels);
    const value = p.v ?? (p.step.k === "locks" ? p.before : undefined);
    if (value === undefined || !place.has(value)) {
      if (p.step.k === "reads" && p.step.w === "absent") sign(c, "reads", x, height - MARGIN, colour, 4);
      continue;
    }
    sign(c, p.step.k, x, y(value), colour, 5);
    hits2.push({ x: x - 7, y: y(value) - 7, w: 14, h: 14, thing: { step: p.step } });
    if (p.step.k !== "reads") labels.push({ x: x + 9, y: y(value) - 1, text: attempt.id, colour });
  }
  c.globalAlpha = 1;
  // Labels where there is room.
  const taken = [];
  for (const text of labels.filter((a, n) => !labels.slice(0, n).some((b) => b.text === a.text && b.y === a.y && Math.abs(b.x - a.x) < 60))) {
    const w = c.measureText(text.text).width;
    const free = (dy) => !taken.some((b) => text.x < b.x + b.w + 3 && text.x + w + 3 > b.x && Math.abs(text.y + dy - b.y) < 11);
    const dy = [0, -11, 11].find((dy) => free(dy) && text.y + dy > 5 && text.y + dy < height - 5);
    if (dy === undefined || text.x + w > width) continue;
    taken.push({ x: text.x, y: text.y + dy, w });
    c.fillStyle = text.colour;
    c.fillText(text.text, text.x, text.y + dy);
  }
  c.restore();
  // The timestamps themselves.
  c.fillStyle = colours.soft;
  c.font = `10px ${FONT}`;
  c.textAlign = "right";
  let free = Infinity;
  for (const v of sorted) {
    if (free - y(v) < 11) continue;
    c.fillText(label(v), GUTTER - 5, y(v));
    free = y(v);
  }
  c.textAlign = "left";
  c.strokeStyle = colours.line;
  c.beginPath();
  c.moveTo(GUTTER - 0.5, 0);
  c.lineTo(GUTTER - 0.5, height);
  c.stroke();
}

const last = (list) => list[list.length - 1];
let hits2 = [];

/// Whether this version would have got an earlier timestamp but for the mark of this record.
function pushed(p, i) {
  const because = world.attempts[p.x].because;
  return because?.kind === "bound" && because.item === i;
}

/// The mark over time, and the forbidden ground under it.
function staircase(c, points, y, width, height, end) {
  const corners = [];
  for (const p of points) {
    if (p.before !== undefined) corners.push([p.t, p.before]);
    if (p.after !== undefined) corners.push([p.t, p.after]);
  }
  if (corners.length === 0) return;
  const path = () => {
    c.beginPath();
    c.moveTo(Math.min(GUTTER, view.x(corners[0][0])), y(corners[0][1]));
    let before = corners[0][1];
    for (const [t, v] of corners) {
      c.lineTo(view.x(t), y(before));
      c.lineTo(view.x(t), y(v));
      before = v;
    }
    c.lineTo(width, y(before));
  };
  path();
  c.lineTo(width, height);
  c.lineTo(Math.min(GUTTER, view.x(corners[0][0])), height);
  c.closePath();
  c.fillStyle = colours["mark-paper"];
  c.globalAlpha = 0.75;
  c.fill();
  c.globalAlpha = 1;
  path();
  c.strokeStyle = colours.mark;
  c.lineWidth = 2;
  c.stroke();
  c.lineWidth = 1;
}

/// A writer whose clock was below the mark, and where it had to go.
function push(c, x, y, p, labels) {
  const clock = world.attempts[p.x].because.clock;
  c.strokeStyle = c.fillStyle = colours.rw;
  c.setLineDash([3, 2]);
  arrow(c, x, y(clock), x, y(p.v) + 7, 4);
  c.setLineDash([]);
  c.beginPath();
  c.arc(x, y(clock), 3.5, 0, 7);
  c.fillStyle = colours.paper;
  c.fill();
  c.stroke();
  labels.push({ x: x + 9, y: y(clock), text: "its clock", colour: colours.soft });
}
