// Where a time is on the screen.
//
// Two scales. In *true time* distances are durations. In *folded time* every moment at which something happens gets
// room, a little more after a longer pause: messages of microseconds and pauses of milliseconds can then be seen
// together. Both map a time to a position; the view maps positions to pixels.

const scales = (() => {
  const everything = new Set([0]);
  momentsOf(everything, world.steps, world.batches, world.attempts);
  for (const fault of world.faults) everything.add(fault.from).add(fault.to);
  const folded = fold(everything);
  const last = folded.moments.at(-1);
  const linear = { of: (time) => time / 1e3, time: (position) => position * 1e3, end: Math.max(1, last / 1e3), moments: folded.moments };
  return { folded, linear };
})();

function momentsOf(times, steps, batches, attempts) {
  for (const step of steps) times.add(step.t);
  for (const batch of batches) {
    times.add(batch.sent);
    if (batch.got !== null) times.add(batch.got);
    for (const [sent, copies] of batch.tries) [sent, ...copies].forEach((t) => times.add(t));
  }
  for (const attempt of attempts) times.add(attempt.begin).add(attempt.end);
}

/// A scale that gives each of these moments room.
function fold(times) {
  const t = Float64Array.from(times).sort();
  const x = new Float64Array(t.length);
  for (let n = 1; n < t.length; n++) x[n] = x[n - 1] + 1 + 0.6 * Math.log10(1 + (t[n] - t[n - 1]) / 2000);
  const last = t.length - 1;
  const between = (from, to, value) => {
    if (last === 0) return to[0] + (value - from[0]);
    let low = 0;
    let high = last - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (from[middle] <= value) low = middle;
      else high = middle - 1;
    }
    const share = (value - from[low]) / (from[low + 1] - from[low]);
    return to[low] + share * (to[low + 1] - to[low]);
  };
  // What lies outside comes close behind: it is of no interest.
  const beyond = (time) => (time < t[0] ? x[0] - Math.min(3, (t[0] - time) / 1e6) : time > t[last] ? x[last] + Math.min(3, (time - t[last]) / 1e6) : between(t, x, time));
  return { of: beyond, time: (position) => between(x, t, position), end: Math.max(1, x[last]), moments: t };
}

const GUTTER = 76;

const view = {
  scale: scales.folded,
  from: 0, // The position at the left edge.
  zoom: 10, // Pixels per unit of position.
  width: 800,
  x(time) {
    return GUTTER + (this.scale.of(time) - this.from) * this.zoom;
  },
  time(x) {
    return this.scale.time(this.from + (x - GUTTER) / this.zoom);
  },
  room() {
    return Math.max(50, this.width - GUTTER);
  },
  keep() {
    const least = this.room() / (this.scale.end * 1.04);
    this.zoom = Math.min(Math.max(this.zoom, least), this.scale === scales.linear ? 400 : 260);
    const spare = 0.02 * this.scale.end + 24 / this.zoom;
    this.from = Math.max(-spare, Math.min(this.from, this.scale.end + spare - this.room() / this.zoom));
  },
  by(factor, x = GUTTER + this.room() / 2) {
    const held = this.from + (x - GUTTER) / this.zoom;
    this.zoom *= factor;
    this.keep();
    this.from = held - (x - GUTTER) / this.zoom;
    this.keep();
  },
  pan(pixels) {
    this.from += pixels / this.zoom;
    this.keep();
  },
  /// Shows a stretch of time, with a margin; `most` pixels per unit at most.
  show(from, to, most = 40) {
    const [a, b] = [this.scale.of(from), this.scale.of(to)];
    this.zoom = Math.min(most, (this.room() * 0.86) / Math.max(b - a, 1e-3));
    this.keep();
    this.from = (a + b) / 2 - this.room() / 2 / this.zoom;
    this.keep();
  },
  /// Keeps the stretch in sight over a change of scale.
  use(scale) {
    const middle = this.time(GUTTER + this.room() / 2);
    const share = this.room() / this.zoom / this.scale.end;
    this.scale = scale;
    this.zoom = this.room() / (share * scale.end);
    this.keep();
    this.from = scale.of(middle) - this.room() / 2 / this.zoom;
    this.keep();
  },
};

/// The first position in a list, ordered by `of`, that is not below `value`.
function firstFrom(list, value, of) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(list[middle]) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/// Times for the axis: round ones in true time, in folded time those of moments far enough apart.
function* ticks(from, to) {
  if (view.scale === scales.linear) {
    const wish = (to - from) / (view.room() / 110);
    const power = 10 ** Math.floor(Math.log10(wish));
    const every = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wish);
    for (let t = Math.max(0, Math.ceil(from / every)) * every; t <= to; t += every) yield t;
    return;
  }
  const { moments } = view.scale;
  let last = -Infinity;
  for (let n = firstFrom(moments, from, (t) => t); n < moments.length && moments[n] <= to; n++) {
    const x = view.x(moments[n]);
    if (x - last >= 92) {
      yield moments[n];
      last = x;
    }
    if (view.zoom < 1) n += Math.floor(20 / view.zoom / 2);
  }
}
