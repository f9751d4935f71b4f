// What the mouse and the keyboard do.

const [diagram, overview, history, tip, scroll] = ["diagram", "overview", "history", "tip", "scroll"].map($);
let pointed = null; // A time that is pointed at in a story.
let due = false;

function redraw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    drawDiagram(diagram, scroll.clientHeight);
    drawOverview(overview);
    if (!$("record").hidden) {
      hits2 = [];
      drawHistory(history, selected.item);
    }
    if (pointed !== null) {
      const c = diagram.getContext("2d");
      c.strokeStyle = colours.ink;
      c.setLineDash([5, 4]);
      c.beginPath();
      c.moveTo(view.x(pointed), AXIS);
      c.lineTo(view.x(pointed), layout.height);
      c.stroke();
    }
  });
}

function point(t) {
  pointed = t;
  redraw();
}

/// Brings a transaction into sight, all of it if that is possible.
function reveal(from, to, most) {
  const [a, b] = [view.x(from), view.x(to)];
  if (a < GUTTER || b > view.width || b - a < 60) view.show(from, to, most);
}

function pick(x, move = false) {
  const kept = selected.only && selected.attempts.has(x);
  if (!kept) selected.attempts = new Set([x]);
  only(kept);
  const a = world.attempts[x];
  if (selected.item !== null && !a.beads.some((bead) => bead.i === selected.item)) close();
  tell(tellAttempt(x));
  $("help").setAttribute("aria-expanded", "false");
  const ends = [...a.steps.map((s) => s.t), a.begin, a.end];
  if (move || view.x(a.end) < GUTTER || view.x(a.begin) > view.width) reveal(Math.min(...ends), Math.max(...ends));
  const lane = layout.lanes[a.shard];
  if (lane && (lane.top < scroll.scrollTop || lane.bottom > scroll.scrollTop + scroll.clientHeight)) scroll.scrollTop = lane.top - 30;
  redraw();
}

/// Shows a record's history.
function open(i, move = false) {
  selected.item = i;
  const item = world.items[i];
  $("record").hidden = false;
  $("recordname").textContent = item.cover ? item.quoted : item.name;
  $("recordnote").textContent = world.marks ? "its mark over time: whoever writes it must be above the green line" : "its versions over time";
  tell(tellItem(i));
  const steps = item.steps;
  if (move && steps.length && !steps.some((s) => view.x(s.t) > GUTTER && view.x(s.t) < view.width)) view.show(steps[0].t, steps[Math.min(steps.length - 1, 8)].t);
  redraw();
}

function close() {
  selected.item = null;
  $("record").hidden = true;
}

function clear() {
  selected.attempts = null;
  only(false);
  close();
  $("filter").value = "";
  tell(tellWorld());
  redraw();
}

/// What a filter leaves: transactions by name, type, outcome, shard, or by the records they touch.
function filter(text) {
  const words = text.toLowerCase().replace(/shard\s+(\d+)/g, "shard_$1").split(/\s+/).filter((word) => word);
  const names = world.items.filter((item) => !item.cover && words.length > 1 && item.name.toLowerCase().includes(words.join(" ")));
  const matches = (a, word) =>
    a.id.toLowerCase() === word || !/^t\d+\.\d+$/.test(word) && `${a.label} ${outcome(a)} ${a.kind} shard_${a.shard} ${a.client === null ? "" : `client_${a.client}`}`.toLowerCase().includes(word) ||
    word.startsWith("shard_") && a.steps.some((s) => `shard_${s.s}` === word) ||
    a.beads.some((bead) => world.items[bead.i].name.toLowerCase().split(" ").includes(word));
  const touches = (a) => names.length > 0 && a.beads.some((bead) => names.includes(world.items[bead.i]));
  const attempts = world.attempts.flatMap((a, x) => (touches(a) || names.length === 0 && words.every((word) => matches(a, word)) ? [x] : []));
  const items = world.items.flatMap((item, i) => (!item.cover && item.steps.length && item.name.toLowerCase().includes(words.join(" ")) ? [i] : []));
  return { attempts, items };
}

/// The violations: one in words, the others a click away.
function showViolations() {
  const box = $("violations");
  box.hidden = world.violations.length === 0;
  if (box.hidden) return;
  const body = element("div", { className: "body" });
  const buttons = world.violations.map((violation, n) => element("button", { textContent: violation.kind, onclick: () => show(n) }));
  const show = (n) => {
    const violation = world.violations[n];
    buttons.forEach((button, m) => button.setAttribute("aria-pressed", String(m === n)));
    const steps = violation.detail.split("; ").map((part) => element("li", {}, ...sentence(capital(parse(part)))));
    body.replaceChildren(steps.length > 1 ? element("ol", {}, ...steps) : element("p", {}, ...sentence(parse(violation.detail))));
    close();
    // Who is stuck has no name there.
    const stuck = violation.kind === "stuck" ? world.attempts.flatMap((a, x) => (a.outcome === "open" ? [x] : [])) : [];
    const xs = violation.attempts.length ? violation.attempts : stuck;
    if (xs.length === 0) return clear();
    selected.attempts = new Set(xs);
    only(true);
    const all = xs.map((x) => world.attempts[x]);
    view.show(Math.min(...all.map((a) => a.begin)), Math.max(...all.map((a) => a.end)));
    const items = [...new Set(all.flatMap((a) => a.beads.map((b) => b.i)))].filter((i) => violation.detail.includes(world.items[i].quoted));
    tell([element("h2", { textContent: violation.kind }), ...tellWorld({ attempts: xs, items })]);
    redraw();
  };
  const count = world.violations.length;
  box.append(element("div", { className: "head" }, element("h2", { textContent: `✗ ${count === 1 ? "A violation" : `${count} violations`}` }), ...buttons), body);
  const told = (violation) => violation.detail.includes("comes before");
  return show(Math.max(0, world.violations.findIndex(told)));
}

/// Leaves out all others, or shows them again.
function only(on) {
  selected.only = on && selected.attempts !== null;
  $("only").setAttribute("aria-pressed", String(selected.only));
  $("only").disabled = selected.attempts === null;
  const wish = view.scale === scales.linear ? scales.linear : selected.only ? foldTo(selected.attempts) : scales.folded;
  if (wish !== view.scale) view.use(wish);
}

function foldTo(xs) {
  const times = new Set();
  const attempts = [...xs].map((x) => world.attempts[x]);
  momentsOf(times, attempts.flatMap((a) => a.steps), attempts.flatMap((a) => a.batches), attempts);
  return times.size < 2 ? scales.folded : fold(times);
}

/// The next writer that a mark has pushed up.
let shownExample = -1;
function nextExample() {
  shownExample = (shownExample + 1) % examples.length;
  const { x, because, by } = examples[shownExample];
  const install = world.attempts[x].steps.find((s) => s.k === "installs" && s.i === because.item) ?? world.attempts[x].steps.at(-1);
  const raise = by === undefined ? undefined : world.items[because.item].steps.filter((s) => s.x === by && s.m).at(-1);
  open(because.item);
  selected.attempts = new Set(by === undefined ? [x] : [x, by]);
  only(true);
  const from = Math.min(install.t, raise?.t ?? install.t, ...world.attempts[x].steps.map((s) => s.t));
  view.show(from, install.t);
  const whose = by === undefined ? [] : ["Before that, ", { x: by }, world.attempts[by].snapshot ? ` had read it at the snapshot ${stamp(world.attempts[by].stamp)}` : ` had read or written it at ${stamp(world.attempts[by].stamp)}`, ", and left that as its mark. "];
  tell([
    element("h2", { textContent: "A mark at work" }),
    element("p", {}, ...sentence([{ x }, " writes ", { i: because.item }, `. The clock of its shard shows ${stamp(because.clock)}. `, ...whose, `So its timestamp is ${stamp(world.attempts[x].stamp)}: one more than the mark. `])),
    element("p", { textContent: by !== undefined && world.attempts[by].snapshot ? "The snapshot did not see this version, and never will: the version comes after it, although the writer's clock was behind." : "Whoever has read the record before keeps what was read: the new version comes after." }),
    element("p", { className: "soft", textContent: `Example ${shownExample + 1} of ${examples.length}. Below the picture: the mark of the record over time.` }),
    ...tellItem(because.item).filter((node) => node instanceof HTMLOListElement),
  ]);
  redraw();
}

function step(by) {
  const order = world.attempts.map((_, x) => x).sort((a, b) => world.attempts[a].begin - world.attempts[b].begin);
  const now = selected.attempts?.size === 1 ? order.indexOf([...selected.attempts][0]) : -1;
  const from = now >= 0 ? now + by : firstFrom(order, view.time(GUTTER), (x) => world.attempts[x].begin);
  if (order[from] !== undefined) pick(order[from], true);
}

function thingAt(list, x, y, near = 5) {
  let best = null;
  for (let n = list.length - 1; n >= 0; n--) {
    const { thing, ...box } = list[n];
    if (thing.batch === undefined) {
      if (x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h) return thing;
      continue;
    }
    const { x0, y0, x1, y1 } = thing;
    const share = Math.max(0, Math.min(1, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2 || 1)));
    const distance = Math.hypot(x - x0 - share * (x1 - x0), y - y0 - share * (y1 - y0));
    if (distance < near && (best === null || distance < best.distance)) best = { thing, distance };
  }
  return best?.thing ?? null;
}

function describe(thing) {
  if (thing.x !== undefined) {
    const a = world.attempts[thing.x];
    const reason = a.stamp === null ? "" : `\n${a.snapshot ? "Snapshot" : "Timestamp"} ${stamp(a.stamp)}. ${plain(because(a))}`;
    return `${title(a)}: ${outcome(a)}\n${ms(a.begin)} to ${ms(a.end)} ms${reason}`;
  }
  if (thing.bead) return thing.bead.steps.map((s) => `${world.attempts[s.x].id} ${plain(say(s))}.`).join("\n");
  if (thing.beads) return thing.beads.slice(0, 8).map((b) => `${world.attempts[b.x].id} ${beadLabel(b)}`).join("\n") + (thing.beads.length > 8 ? `\nand ${thing.beads.length - 8} more` : "");
  if (thing.step) return `${world.attempts[thing.step.x].id} ${plain(say(thing.step))}.`;
  if (thing.batch) return tipOfBatch(thing.batch);
  return `${thing.fault.words}\n${ms(thing.fault.from)} to ${ms(thing.fault.to)} ms; fault ${thing.fault.index}`;
}

function showTip(text, event) {
  tip.hidden = text === null;
  if (text === null) return;
  tip.textContent = text;
  const { offsetWidth: w, offsetHeight: h } = tip;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 8))}px`;
  tip.style.top = `${event.clientY + 18 + h > innerHeight ? Math.max(4, event.clientY - h - 12) : event.clientY + 18}px`;
}

let drag = null;
diagram.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, moved: 0 };
  diagram.setPointerCapture(event.pointerId);
});
diagram.addEventListener("pointermove", (event) => {
  if (drag !== null) {
    const by = event.clientX - drag.x;
    drag.moved += Math.abs(by);
    drag.x = event.clientX;
    if (drag.moved > 3) {
      diagram.classList.add("moving");
      showTip(null);
      view.pan(-by);
      redraw();
    }
    return;
  }
  const thing = thingAt(hits, event.offsetX, event.offsetY);
  diagram.classList.toggle("over", thing !== null);
  showTip(thing === null ? null : describe(thing), event);
});
diagram.addEventListener("pointerup", (event) => {
  const clicked = drag !== null && drag.moved <= 3;
  showTip(null);
  drag = null;
  diagram.classList.remove("moving");
  if (!clicked) return;
  const thing = thingAt(hits, event.offsetX, event.offsetY);
  if (thing === null) return selected.attempts === null && selected.item === null ? undefined : clear();
  if (thing.x !== undefined) pick(thing.x);
  else if (thing.bead) {
    // The transaction, and what it did here.
    pick(thing.bead.x);
    open(thing.bead.i);
  } else if (thing.beads) {
    if (view.zoom < 12) view.by(12 / view.zoom, event.offsetX);
    pick(thing.beads[0].x);
  } else if (thing.batch) {
    const x = thing.batch.has.find((m) => m.x !== undefined)?.x;
    if (x !== undefined) pick(x);
  } else {
    view.show(thing.fault.from, thing.fault.to);
    redraw();
  }
});
for (const canvas of [diagram, history]) canvas.addEventListener("pointerleave", () => showTip(null));
const wheel = (event) => {
  if (event.shiftKey) return;
  event.preventDefault();
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.pan(event.deltaX);
  else view.by(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), event.offsetX);
  redraw();
};
diagram.addEventListener("wheel", wheel, { passive: false });
history.addEventListener("wheel", wheel, { passive: false });
history.addEventListener("pointermove", (event) => {
  const thing = thingAt(hits2, event.offsetX, event.offsetY);
  showTip(thing === null ? null : describe(thing), event);
});
history.addEventListener("click", (event) => {
  const thing = thingAt(hits2, event.offsetX, event.offsetY);
  if (thing !== null) pick(thing.step.x);
});

const jump = (event) => {
  if (event.buttons === 0) return;
  const share = (event.offsetX - GUTTER) / (overview.clientWidth - GUTTER - 8);
  view.from = share * view.scale.end - view.room() / view.zoom / 2;
  view.keep();
  redraw();
};
overview.addEventListener("pointerdown", (event) => {
  overview.setPointerCapture(event.pointerId);
  jump(event);
});
overview.addEventListener("pointermove", jump);

diagram.addEventListener("keydown", (event) => {
  const keys = {
    ArrowLeft: () => view.pan(-120), ArrowRight: () => view.pan(120), "+": () => view.by(1.5), "=": () => view.by(1.5), "-": () => view.by(1 / 1.5),
    Home: () => view.show(0, world.done), n: () => step(1), p: () => step(-1),
  };
  if (keys[event.key] === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
  redraw();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") clear();
  if (event.target instanceof HTMLInputElement) return;
  if (event.key === "/") {
    event.preventDefault();
    $("filter").focus();
  }
  if (event.key === "?") $("help").click();
});

$("filter").addEventListener("input", () => {
  const text = $("filter").value.trim();
  if (text === "") return clear();
  const found = filter(text);
  close();
  selected.attempts = new Set(found.attempts);
  only(selected.only);
  tell(tellWorld(found));
  redraw();
});
$("filter").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || selected.attempts === null || selected.attempts.size === 0) return;
  const all = [...selected.attempts].map((x) => world.attempts[x]);
  view.show(Math.min(...all.map((a) => a.begin)), Math.max(...all.map((a) => a.end)));
  redraw();
});
function scaleTo(linear) {
  view.use(linear ? scales.linear : selected.only ? foldTo(selected.attempts) : scales.folded);
  $("even").setAttribute("aria-pressed", String(!linear));
  $("linear").setAttribute("aria-pressed", String(linear));
  redraw();
}
$("even").onclick = () => scaleTo(false);
$("linear").onclick = () => scaleTo(true);
$("only").onclick = () => {
  only(!selected.only);
  redraw();
};
for (const [id, act] of [["in", () => view.by(1.6)], ["out", () => view.by(1 / 1.6)], ["fit", () => view.show(0, world.done)]]) {
  $(id).onclick = () => {
    act();
    redraw();
  };
}
$("help").onclick = () => {
  $("help").setAttribute("aria-expanded", "true");
  tell(tellHelp());
};
$("recordclose").onclick = () => {
  close();
  redraw();
};
$("example").onclick = nextExample;

$("verdict").textContent = [world.planted === null ? null : `Planted: ${world.planted}`, ...world.outcome.split("\n").filter((line) => /^ {2}(outcome|✓)/.test(line)).map((line) => line.trim().replace(/^outcome +/, "").replace(/; hash .*/, ""))].filter((line) => line !== null).join(" · ");
$("cut").hidden = world.cut === null;
$("cut").textContent = world.cut ?? "";
$("example").hidden = examples.length === 0;
$("example").textContent = `See a mark at work (${examples.length})`;
readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  redraw();
});
new ResizeObserver(redraw).observe(scroll);
view.width = scroll.clientWidth;
view.zoom = 14;
view.from = -1;
tell(tellWorld());
showViolations();
redraw();
