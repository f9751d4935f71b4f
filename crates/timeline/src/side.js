// The stories at the side: of a transaction, of a record, of the whole world, and how to read all this.

const side = document.getElementById("side");
const $ = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const many = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

/// A sentence, its transactions and records as buttons.
const sentence = (parts) =>
  parts.map((part) =>
    typeof part === "string"
      ? part
      : part.x !== undefined
        ? element("button", { className: "link", textContent: world.attempts[part.x].id, onclick: () => pick(part.x) })
        : element("button", { className: "link item", textContent: world.items[part.i].name, onclick: () => open(part.i) }));

const tag = (a) => element("span", { className: `tag ${a.kind}`, textContent: { abort: "aborted", open: "unfinished", ro: "read-only", rw: "read-write" }[a.kind] });

const capital = (parts) => (typeof parts[0] === "string" ? [parts[0].charAt(0).toUpperCase() + parts[0].slice(1), ...parts.slice(1)] : parts);

function entry(t, parts, className = "") {
  return element("li", { className, onmouseenter: () => point(t), onmouseleave: () => point(null) }, element("time", { textContent: ms(t) }), ...sentence(capital(parts)));
}

/// The story of an attempt: its steps and its messages.
function tellAttempt(x) {
  const a = world.attempts[x];
  const entries = a.steps.map((step) => ({ t: step.t, order: step.n + 1, node: () => entry(step.t, say(step), tone(step, a)) }));
  for (const batch of a.batches) {
    for (const m of batch.has.filter((m) => m.x === x)) {
      const told = fate(batch);
      const took = batch.got === null ? "it never arrives" : `under way for ${span(batch.got - batch.sent)}`;
      const parts = [`${m.a === undefined ? m.k : `answer to ${m.k}: ${m.a}`}, ${world.shards[batch.from].name} → ${world.shards[batch.to].name}, ${took}${told.length ? ` (${told.join(", ")})` : ""}`];
      entries.push({ t: batch.sent, order: Infinity, node: () => entry(batch.sent, parts, told.length ? "message bad" : "message") });
    }
  }
  if (a.outcome === "committed") entries.push({ t: a.end, order: Infinity, node: () => entry(a.end, ["its client is answered"]) });
  entries.sort((p, q) => p.t - q.t || p.order - q.order);
  const others = world.attempts.map((b, y) => ({ b, y })).filter(({ b }) => a.client !== null && b.client === a.client && b.shard === a.shard);
  const place = others.findIndex(({ y }) => y === x);
  const near = (n, text) => (others[n] === undefined ? null : element("button", { textContent: text, onclick: () => pick(others[n].y, true) }));
  const MOST = 600;
  return [
    element("h2", {}, title(a), tag(a)),
    element("p", { className: "soft", textContent: `${outcome(a)}; coordinated by shard ${a.shard}${a.client === null ? "" : `, client ${a.client}`}${a.nth > 1 ? `, attempt ${a.nth}` : ""}; ${span(a.end - a.begin)}` }),
    a.stamp === null ? null : element("p", {}, element("strong", { textContent: `${a.snapshot ? "Snapshot" : "Timestamp"} ${stamp(a.stamp)}. ` }), ...sentence(because(a))),
    element("p", {}, near(place - 1, "← before it"), " ", near(place + 1, "after it →")),
    element("ol", { className: "story" }, ...entries.slice(0, MOST).map((e) => e.node())),
    entries.length > MOST ? element("p", { className: "soft", textContent: `and ${entries.length - MOST} more steps` }) : null,
  ];
}

function tone(step, attempt) {
  if (missed(step) || step.k === "refused" || step.k === "aborts" || step.w === "changed") return "bad";
  if (step.k === "stamps" || step.k === "raises" && rank(step.m[0]) < rank(step.m[1])) return "key";
  return "";
}

/// The history of a record.
function tellItem(i) {
  const item = world.items[i];
  const MOST = 400;
  const all = item.steps.filter((step) => step.k !== "bounds");
  // Those in sight, and some around them.
  const here = firstFrom(all, view.time(GUTTER), (step) => step.t);
  const first = Math.max(0, Math.min(here - MOST / 4, all.length - MOST));
  const steps = all.slice(first, first + MOST);
  const nodes = steps.map((step) => entry(step.t, [{ x: step.x }, " ", ...say(step)], tone(step, world.attempts[step.x])));
  const back = selected.attempts?.size === 1 ? [...selected.attempts][0] : null;
  return [
    back === null ? null : element("p", {}, element("button", { textContent: `← ${world.attempts[back].id}`, onclick: () => pick(back) })),
    element("h2", {}, item.name),
    element("p", { className: "soft", textContent: item.cover ? "It stands for the keys that are not there: who finds nothing leaves a mark as well." : world.marks ? "Everything that touched it, in the order of time. Its mark never falls." : "Everything that touched it, in the order of time." }),
    element("ol", { className: "story" }, ...nodes),
    all.length > steps.length ? element("p", { className: "soft", textContent: `${all.length - steps.length} more steps lie before and after` }) : null,
    { scrollTo: nodes[here - first] },
  ];
}

/// Everything there is, or what a filter leaves of it.
function tellWorld(found = null) {
  const MOST = 400;
  const xs = found?.attempts ?? world.attempts.map((_, x) => x);
  const items = found?.items ?? world.items.map((_, i) => i).filter((i) => !world.items[i].cover && world.items[i].steps.length).sort((a, b) => world.items[b].steps.length - world.items[a].steps.length);
  const line = (x) => {
    const a = world.attempts[x];
    return element("li", {}, tag(a), element("button", { className: "link", textContent: title(a), onclick: () => pick(x, true) }), element("span", { className: "when", textContent: `${ms(a.begin)} ms` }));
  };
  const record = (i) => element("li", {}, element("button", { className: "link item", textContent: world.items[i].name, onclick: () => open(i, true) }), element("span", { className: "when", textContent: `${world.items[i].steps.length} steps` }));
  const count = (test) => world.attempts.filter(test).length;
  const committed = count((a) => a.outcome === "committed");
  // What clients were told; whoever went on under another number was one attempt to them.
  const told = (a) => a.client !== null && a.next === undefined && a.outcome === "aborted";
  const aborted = count((a) => told(a) && a.why !== "user") + world.unnumbered;
  const declined = count((a) => told(a) && a.why === "user");
  const others = [[count((a) => a.label === "in doubt"), "of the committed for clients that were gone"], [world.unnumbered, "of the aborted had no number yet"], [count((a) => a.next !== undefined), "went on under another number"], [count((a) => a.outcome === "open"), "were not over"], [count((a) => a.client === null && a.next === undefined && a.outcome === "aborted"), "of which nobody was told"]].filter(([n]) => n > 0).map(([n, text]) => `; ${n} ${text}`).join("");
  return [
    found === null
      ? element("p", {}, `${many(committed, "transaction")} committed, ${many(aborted, "attempt")} aborted, ${declined} gave up of their own accord${others}. Click a transaction or a record, here or in the picture.`)
      : element("p", {}, `${many(xs.length, "transaction")} and ${many(items.length, "record")} found.`),
    element("h3", { textContent: "Records" }),
    element("ul", { className: "list" }, ...items.slice(0, found === null ? 8 : 60).map(record)),
    items.length > (found === null ? 8 : 60) ? element("p", { className: "soft", textContent: `and ${(items.length - (found === null ? 8 : 60)).toLocaleString("en")} more; filter by name to find one` }) : null,
    element("h3", { textContent: "Transactions" }),
    element("ul", { className: "list" }, ...xs.slice(0, MOST).map(line)),
    xs.length > MOST ? element("p", { className: "soft", textContent: `and ${(xs.length - MOST).toLocaleString("en")} more` }) : null,
    element("h3", { textContent: "This world again" }),
    element("p", {}, element("code", { textContent: world.again })),
  ];
}

function tellHelp() {
  const row = (kind, colour, text) => {
    const canvas = element("canvas", {});
    requestAnimationFrame(() => {
      const c = prepare(canvas, 34, 20);
      if (kind === "bar") {
        c.fillStyle = colours[colour];
        c.globalAlpha = colour === "abort" || colour === "open" ? 0.35 : 1;
        c.fillRect(2, 5, 30, 11);
      } else if (kind === "arrow") {
        c.strokeStyle = c.fillStyle = colours[colour];
        arrow(c, 4, 3, 29, 17, 4);
      } else sign(c, kind, 17, 10, colours[colour], 5);
    });
    return [canvas, element("span", { textContent: text })];
  };
  const legend = (...rows) => element("div", { className: "legend" }, ...rows.flat());
  const p = (text) => element("p", { textContent: text });
  return [
    element("h2", { textContent: "How to read this" }),
    p("Each line is a shard, time goes from left to right. Under the line are the transactions that the shard coordinates, a row per client. On the line is what transactions do to the shard's records, those of one moment in a stack. Arrows are messages."),
    legend(row("bar", "rw", "committed, read-write"), row("bar", "ro", "committed, read-only at a snapshot"), row("bar", "abort", "an attempt that aborted, and why"), row("bar", "open", "not over when the world ended"), row("arrow", "message", "messages from shard to shard"), row("arrow", "bad", "late, lost (✕) or sent again (dashed)")),
    legend(
      row("reads", "rw", "reads the newest version"),
      ...(world.marks ? [row("raises", "ro", "reads at a snapshot, and raises the mark")] : []),
      row("locks", "rw", "locks"),
      row("pins", "rw", world.marks ? "pins what it has read: raises its mark to the own timestamp" : "looks whether what it has read is still so"),
      row("installs", "rw", "installs a version"),
      row("waits", "ro", "waits for the owner of a lock"),
      row("refused", "bad", "is refused, or finds what it has read changed"),
      row("unlocks", "abort", "unlocks without having written"),
    ),
    ...(world.marks
      ? [
          element("h3", { textContent: "Timestamps and marks" }),
          p("There is no oracle. Every record carries a mark: nobody who has read or written it has a later timestamp than that. A read-only transaction takes its shard's clock as its snapshot, and raises the marks of what it reads to it. A writer locks, looks at the mark, and takes a timestamp above it. So it comes after the snapshot that did not see it, whatever its clock says."),
          p("Click a record to see its mark over time: a staircase that only rises. A filled circle is a version, a triangle a snapshot that was read. A dashed arrow shows where a writer's clock alone would have put its version, and where the mark has pushed it."),
        ]
      : [element("h3", { textContent: "Timestamps" }), p(`This world ran under ${world.scheme}, which has no marks: records show versions only.`)]),
    element("h3", { textContent: "Moving about" }),
    element("p", {}, "Drag to move, turn the wheel to zoom. ", ...["← →", "+ −", "Home", "n p", "Esc", "/"].flatMap((k, n) => [element("kbd", { textContent: k }), [" move, ", " zoom, ", " shows everything, ", " next and previous transaction, ", " clears, ", " filters."][n]])),
    p("Folded time gives every moment room and folds the pauses in between; in true time distances are durations."),
  ];
}

function tell(nodes) {
  side.replaceChildren(...nodes.filter((node) => node instanceof Node));
  const to = nodes.find((node) => node?.scrollTo && !(node instanceof Node))?.scrollTo;
  side.scrollTop = to === undefined ? 0 : to.offsetTop - side.offsetTop - 90;
}
