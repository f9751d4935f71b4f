// The data, and how they hang together.

const world = JSON.parse(document.getElementById("world").textContent);

// What happens to one item in one step of one transaction is one bead: a snapshot read raises a mark and reads.
world.beads = [];
for (const attempt of world.attempts) Object.assign(attempt, { steps: [], beads: [], batches: [] });
for (const item of world.items) Object.assign(item, { steps: [], beads: [] });

const BEADS = new Set(["raises", "reads", "locks", "bounds", "pins", "installs", "waits", "refused", "unlocks"]);

(() => {
  let open = new Map(); // Beads of the present instant and shard, by transaction, item and shape.
  let now = null;
  for (const [n, step] of world.steps.entries()) {
    step.n = n;
    world.attempts[step.x].steps.push(step);
    if (step.i !== undefined) world.items[step.i].steps.push(step);
    if (!BEADS.has(step.k)) continue;
    if (now === null || now.t !== step.t || now.s !== step.s) {
      open = new Map();
      now = step;
    }
    const shape = step.k === "raises" || step.k === "reads" ? "reads" : step.k === "unlocks" ? "installs" : step.k;
    const key = `${step.x} ${step.i} ${shape}`;
    let bead = open.get(key);
    if (bead === undefined) {
      bead = { t: step.t, s: step.s, x: step.x, i: step.i, steps: [] };
      open.set(key, bead);
      world.beads.push(bead);
      world.attempts[step.x].beads.push(bead);
      world.items[step.i].beads.push(bead);
    }
    bead.steps.push(step);
    const strongest = bead.steps.find((s) => s.k !== "unlocks") ?? bead.steps[0];
    bead.k = bead.steps.some((s) => s.k === "raises") ? "raises" : strongest.k;
    bead.main = bead.steps.find((s) => s.k === bead.k);
  }
})();

for (const batch of world.batches) {
  for (const x of new Set(batch.has.map((m) => m.x).filter((x) => x !== undefined))) world.attempts[x].batches.push(batch);
  batch.end = batch.got ?? Math.max(batch.sent, ...batch.tries.flat(2));
}

for (const batch of world.batches) {
  batch.lost = batch.tries.length > 0 && batch.tries[0][1].length === 0;
  batch.again = batch.tries.length > 1;
  batch.twice = batch.tries.some(([, copies]) => copies.length > 1);
}

// Rows of bars under each shard's line: one per client, others where there is room.
for (const [s, line] of world.shards.entries()) {
  line.name = line.oracle ? "oracle" : `shard ${s}`;
  const here = world.attempts.filter((a) => a.shard === s);
  const clients = [...new Set(here.map((a) => a.client).filter((c) => c !== null))].sort((a, b) => a - b);
  const free = clients.map(() => -1);
  for (const attempt of [...here].sort((a, b) => a.begin - b.begin)) {
    let row = clients.indexOf(attempt.client);
    if (row < 0) {
      row = free.findIndex((until, r) => r >= clients.length && until < attempt.begin);
      if (row < 0) row = free.length;
    }
    free[row] = Math.max(free[row] ?? -1, attempt.end);
    attempt.row = row;
  }
  line.rows = free.length;
}

const kindOf = (a) => (a.outcome === "committed" ? (a.snapshot ? "ro" : "rw") : a.outcome === "open" ? "open" : "abort");
for (const attempt of world.attempts) attempt.kind = kindOf(attempt);

/// Who committed above what a mark demanded: first those whom somebody's snapshot kept out.
const examples = world.attempts
  .map((attempt, x) => ({ x, because: attempt.because }))
  .filter(({ x, because }) => because?.kind === "bound" && because.item !== undefined && world.attempts[x].outcome === "committed")
  .map((e) => {
    const by = e.because.by;
    const raised = by !== undefined && world.items[e.because.item].steps.some((step) => step.x === by && step.m);
    return { ...e, by, worth: (by !== undefined && world.attempts[by].snapshot ? 2 : 0) + (raised ? 1 : 0) + (by !== undefined && world.attempts[by].kind === "ro" ? 4 : 0) };
  })
  .sort((a, b) => b.worth - a.worth);

const named = new Map(world.attempts.map((a, x) => [a.id, x]));
