// Plain sentences. A sentence is a list of parts: text, { x } for a transaction, { i } for a record.

const epoch = BigInt(world.epoch);

/// A time of the world, in milliseconds with as many digits as there are.
function ms(ns, digits = 3) {
  const [whole, part] = (Math.abs(ns) / 1e6).toFixed(digits).split(".");
  return (ns < 0 ? "−" : "") + whole + (part === undefined ? "" : "." + part.replace(/(\d{3})(?=\d)/g, "$1\u2009"));
}

function span(ns) {
  return ns < 1e3 ? `${ns} ns` : ns < 1e6 ? `${(ns / 1e3).toFixed(ns < 1e4 ? 1 : 0)} µs` : `${(ns / 1e6).toFixed(ns < 1e7 ? 2 : 1)} ms`;
}

/// A timestamp, short enough for a label.
function label(v) {
  if (v === null || v === undefined) return "initial";
  if (v === "never") return "∞";
  if (world.times) return ms(v, 6);
  return world.scheme === "vts" ? `${Math.floor(v / 2 ** 48)}:${v % 2 ** 48}` : String(v);
}
/// The same in a sentence.
const stamp = (v) => (v === null || v === undefined ? "0 (initial)" : world.times && v !== "never" ? `${label(v)} ms` : label(v));
const rank = (v) => (v === null || v === undefined ? -Infinity : v === "never" ? Infinity : v);
const at = (step) => `shard ${step.s}`;

/// Why a timestamp is what it is.
function because(attempt) {
  const b = attempt.because;
  if (b === null) return [];
  const clock = `The clock of its shard showed ${stamp(b.clock)}.`;
  const whose = b.by === undefined ? [] : world.attempts[b.by].snapshot ? ["the snapshot of ", { x: b.by }] : [{ x: b.by }];
  switch (b.kind) {
    case "clock":
      return attempt.snapshot ? ["It is what the clock of its shard shows."] : ["It is what the clock of its shard shows; everything it has read or overwrites is older."];
    case "version":
      return ["It is one more than the version of ", { i: b.item }, " that it has read", ...(b.by === undefined ? [] : [", written by ", { x: b.by }]), `. ${clock}`];
    case "bound":
      return ["It is one more than the mark of ", ...(b.item === undefined ? ["what it overwrites"] : [{ i: b.item }]), ...(whose.length ? [", which ", ...whose, " had raised"] : []), `: below it, somebody has already read. ${clock}`];
    case "ahead":
      return attempt.snapshot
        ? ["Its shard has already given out that time", ...(b.by === undefined ? [] : [", to ", { x: b.by }]), `, ahead of its clock. ${clock}`]
        : ["It is the last time that its shard has given out or been told", ...(b.by === undefined ? [] : [" (", ...whose, ")"]), `, which is ahead of its clock. ${clock}`];
    case "asked":
      return [`It is one more than the latest time that its shard knew of when it asked for votes. Now: ${clock}`];
    case "session":
      if (!attempt.snapshot) return ["It is one more than what its client has seen last, from ", { x: b.by }, `: a session never goes back. ${clock}`];
      return [rank(attempt.stamp) < rank(b.clock) ? "It may be stale, but not older than what its client has seen last" : "It is what its client has seen last", ...(b.by === undefined ? [] : [", from ", { x: b.by }]), `: a session never goes back. ${clock}`];
    case "stale":
      return [`It is the clock of its shard, ${stamp(b.clock)}, less the staleness it allows.`];
    case "oracle":
      return attempt.snapshot ? ["It is the newest number below which everything is installed, as the oracle says."] : ["It is the next number of the oracle, asked for while every lock is held."];
    default:
      if (attempt.snapshot) return [];
      if (world.scheme === "vts") return ["It is the next number of its slot of the vector."];
      return [world.times ? "It is what its shard's clock shows, or one more than the newest version it has seen." : "It is one more than every version it has seen. Nobody compares it with the numbers of other records."];
  }
}

/// A snapshot read that leaves the mark below the snapshot, which no correct protocol does.
const missed = (step) => step.k === "raises" && world.marks && rank(step.m[1]) < rank(world.attempts[step.x].steps.find((s) => s.k === "snapshot")?.v);

/// The words of a step, what differs filled in.
function fill(step) {
  const fills = {
    i: () => [{ i: step.i }, ` on ${at(step)}`],
    o: () => [{ x: step.o }],
    v: () => [stamp(step.v)],
    before: () => [stamp(step.m[0])],
    after: () => [stamp(step.m[1])],
  };
  return world.phrases[step.p].split(/\{(\w+)\}/).flatMap((part, n) => (n % 2 ? fills[part]() : part === "" ? [] : [part]));
}

/// What a step means, after its words.
function meaning(step) {
  const attempt = world.attempts[step.x];
  const rises = step.m !== undefined && rank(step.m[0]) < rank(step.m[1]);
  const why = () => (because(attempt).length ? [". ", ...because(attempt)] : []);
  switch (step.k) {
    case "begins":
      return [` on shard ${attempt.shard}${attempt.nth > 1 ? `, attempt ${attempt.nth}` : ""}`];
    case "snapshot":
      return attempt.snapshot ? why() : [];
    case "stamps":
      return why();
    case "raises":
      return rises && !missed(step) ? [": whoever writes it from now on must be later"] : [];
    case "reads":
      return step.w === "absent" || attempt.snapshot || !world.times ? [] : [", so its timestamp must be above that"];
    case "locks":
      if (step.w === "shared") return [];
      return step.lb === "never" ? [": it shall stay as it is until the end"] : world.marks ? [", so the timestamp must be above it"] : [];
    case "waits":
      return attempt.snapshot && world.marks ? [", who may still commit within the snapshot"] : [];
    case "pins":
      if (step.w === "changed") return [". What it has read does not hold any more"];
      return world.marks && rises ? [", so whoever overwrites what it has read comes later"] : [];
    case "aborts":
      return attempt.next === undefined ? [] : [", and goes on as ", { x: attempt.next }];
    default:
      return [];
  }
}

/// What a step does, in words.
const say = (step) => [...fill(step), ...meaning(step)];

const what = (m) => (m.a === undefined ? m.k : `${m.a} (${m.k})`);

/// What a message says, for a label.
function brief(batch, only) {
  const has = only === undefined ? batch.has : batch.has.filter((m) => only.has(m.x));
  const one = (m) => (m.a ?? m.k) + (m.x === undefined || only?.size === 1 ? "" : ` ${world.attempts[m.x].id}`);
  return has.slice(0, 2).map(one).join(", ") + (has.length > 2 ? ` +${has.length - 2}` : "");
}

function fate(batch) {
  const told = [];
  if (batch.lost) told.push("lost");
  if (batch.again) told.push(`sent ${batch.tries.length} times`);
  if (batch.twice) told.push("arrived twice");
  if (batch.got === null) told.push("never delivered");
  else if (batch.late) told.push("late");
  return told;
}

function tipOfBatch(batch) {
  const lines = batch.has.map((m) => {
    const records = m.i?.length ? `: ${m.i.slice(0, 4).map((i) => world.items[i].name).join(", ")}${m.i.length > 4 ? ` and ${m.i.length - 4} more` : ""}` : "";
    return `${what(m)}${m.x === undefined ? "" : ` of ${world.attempts[m.x].id}`}${records}`;
  });
  const way = `${world.shards[batch.from].name} → ${world.shards[batch.to].name}`;
  const took = batch.got === null ? "" : `, under way for ${span(batch.got - batch.sent)}`;
  return [`${way}, sent at ${ms(batch.sent)} ms${took}`, ...fate(batch), "", ...lines.slice(0, 12), ...(lines.length > 12 ? [`and ${lines.length - 12} more`] : [])].join("\n");
}

const plain = (parts) => parts.map((p) => (typeof p === "string" ? p : p.x !== undefined ? world.attempts[p.x].id : world.items[p.i].name)).join("");
const title = (a) => `${a.id}${a.label ? ` ${a.label}` : ""}`;
const outcome = (a) => (a.outcome === "committed" ? (a.snapshot ? "read-only, committed" : "committed") : a.outcome === "aborted" ? `aborted: ${a.why.replace("_", " ")}` : "not over when the world ended");

/// The text of a violation with its transactions and records as parts; whole stamps as times of this world.
function parse(text) {
  const records = new Map(world.items.map((item, i) => [item.quoted, i]).filter(([, i]) => !world.items[i].cover));
  const names = [...records.keys()].sort((a, b) => b.length - a.length).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(T\\d+\\.\\d+)${names.length ? `|(${names.join("|")})` : ""}`);
  return text
    .replace(/\bat @0\b/g, "in its initial version")
    .replace(/@(\d{18,})/g, (_, digits) => stamp(Number(BigInt(digits) - epoch)))
    .split(pattern)
    .filter((part) => part)
    .map((part) => (named.has(part) ? { x: named.get(part) } : records.has(part) ? { i: records.get(part) } : part));
}
