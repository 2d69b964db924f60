// The status page; its tables are in panels.js. It asks /api/history and /api/status once, then listens to /api/events; with
// `?still` in the address it stays with the first picture. What the service says is only ever put in as text.
"use strict";

// Kinds of head time, and what they mean.
const KINDS = [
  ["foreground", "the drive works for clients without a guarantee"],
  ["real-time", "the drive works for guaranteed streams"],
  ["free", "background reads in rotational gaps of other requests: they cost nothing"],
  ["idle", "background reads while no client waits, and in time that was granted to them"],
  ["calibration", "reads that find out where the head is"],
  ["lost", "revolutions that were missed because a prediction was wrong"],
  ["unused", "the drive has nothing to do, or waits for the platter"],
];
// Words of the page that need an explanation.
const WORDS = {
  impact: "by how much background reads lengthen the requests of the foreground, on average",
  confidence: "the share of recent commands that ended when the profile of the drive predicts",
  p99: "one request of a hundred takes longer",
  modes: {
    learning: "until 48 of 64 commands have ended as the profile predicts, gaps stay unused",
    following: "commands end as the profile predicts: positions and gaps are used",
    safe: "the drive does not behave as its profile says: block order, and gaps stay unused",
    plain: "there is no profile of the drive, or its policy does not use one",
  },
};
// How long the page remembers, and how far its samples are apart, in milliseconds.
const REMEMBERED = 600000;
const BETWEEN = 1000;
// How often it asks what is wrong, in milliseconds.
const ASKING = 5000;
// How long it may be silent before the page says so, in milliseconds.
const SILENCE = 5000;
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const field = (root, name) => root.querySelector(`[data-field="${name}"]`);

function element(name, text, classes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

// A word that is explained to the mouse and to the keyboard.
function explain(node, meaning) {
  node.title = meaning;
  node.tabIndex = 0;
}

// Draws, and leaves the focus where it is: what is drawn anew loses it.
function keepingFocus(drawing) {
  const focusable = () => [...document.querySelectorAll("[tabindex]")];
  const place = focusable().indexOf(document.activeElement);
  drawing();
  if (place >= 0) focusable()[place]?.focus({ preventScroll: true });
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const whole = (number) => Math.round(number).toLocaleString("en-US");
const decimals = (number, most) => number.toLocaleString("en-US", { minimumFractionDigits: most, maximumFractionDigits: most });

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${unit === 0 || count >= 100 ? whole(count) : decimals(count, 1)} ${units[unit]}`;
}

function time(us) {
  if (us < 1000) return `${whole(us)} µs`;
  if (us < 1e6) return `${decimals(us / 1000, us < 1e5 ? 1 : 0)} ms`;
  return `${decimals(us / 1e6, 1)} s`;
}

function span(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

function facts(list, pairs) {
  list.replaceChildren(...pairs.filter(([, value]) => value !== null).map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
}

// A cell of a table, with the name of its column for narrow windows.
function cell(label, text, classes) {
  const made = element("td", text, classes);
  made.dataset.label = label;
  return made;
}

function pill(where, text, kind) {
  where.textContent = text;
  where.className = kind ? `pill ${kind}` : "pill";
}

// The head is on a circle around the pivot of the arm and on its cylinder's circle.
//
//        platter (0, 0)      pivot (104, 96)
//           o----- r ----* head
//                         \ arm
//                          o
function drawHead(root, head) {
  const svg = root.querySelector(".platter svg");
  svg.classList.toggle("unknown", !head);
  const caption = field(root, "head");
  if (!head) {
    caption.textContent = "where the head is: unknown";
    return;
  }
  caption.textContent = `cylinder ${whole(head.cylinder)} of ${whole(head.cylinders)}`;
  const share = head.cylinders > 1 ? head.cylinder / (head.cylinders - 1) : 0;
  const radius = 96 - share * 62;
  const [px, py, arm] = [104, 96, 116];
  const distance = Math.hypot(px, py);
  const along = (radius ** 2 - arm ** 2 + distance ** 2) / (2 * distance);
  const aside = Math.sqrt(Math.max(0, radius ** 2 - along ** 2));
  const x = (along * px + aside * py) / distance;
  const y = (along * py - aside * px) / distance;
  svg.querySelector(".track").setAttribute("r", radius.toFixed(1));
  svg.querySelector(".lever").setAttribute("d", `M${px} ${py}L${x.toFixed(1)} ${y.toFixed(1)}`);
  const dot = svg.querySelector(".head");
  dot.setAttribute("cx", x.toFixed(1));
  dot.setAttribute("cy", y.toFixed(1));
}

function drawTimeline(root, time) {
  const svg = root.querySelector(".timeline");
  const slices = time.timeline;
  const width = slices.length ? 1000 / slices.length : 0;
  const runs = [];
  slices.forEach((kind, index) => {
    const last = runs[runs.length - 1];
    if (last && last.kind === kind) last.slices += 1;
    else runs.push({ kind, from: index, slices: 1 });
  });
  svg.replaceChildren(...runs.filter((run) => run.kind !== "unused").map((run) => shape("rect", {
    class: run.kind, x: (run.from * width).toFixed(2), y: 0, width: (run.slices * width).toFixed(2), height: 56,
  })));
  const sum = KINDS.reduce((all, [kind]) => all + time.second_us[kind], 0);
  field(root, "kinds").replaceChildren(...KINDS.map(([kind, meaning]) => {
    const us = time.second_us[kind];
    const item = element("li", undefined, us === 0 ? "none" : "");
    item.dataset.kind = kind;
    const share = sum ? `${decimals((us / sum) * 100, 1)} %` : "–";
    const name = element("span", kind);
    explain(name, meaning);
    item.append(element("i", undefined, kind), name, element("b", share));
    return item;
  }));
}

// Samples of each drive in the last ten minutes: what the service remembers, then what the page has seen.
const history = new Map();

const LINES = [
  ["latency of the foreground (p99)", WORDS.p99, (drive) => {
    const foreground = drive.traffic.find((of) => of.class === "foreground");
    return foreground && foreground.latency ? foreground.latency.p99_us : null;
  }, time],
  ["impact of the background", WORDS.impact, (drive) => drive.impact.measured_percent, (value) => `${decimals(value, 2)} %`],
  ["background reads", "the rate of all scans, scrubs and other tasks", (drive) => drive.tasks.reduce((all, task) => all + task.mb_per_s, 0),
    (value) => `${decimals(value, 1)} MB/s`],
];

// Takes what the service remembers; its values are in the order of LINES.
function recall(samples) {
  const now = Date.now();
  for (const { ago_ms: ago, drives } of samples) {
    for (const { drive, p99_us: latency, impact_percent: impact, task_mb_per_s: rate } of drives) {
      if (!history.has(drive)) history.set(drive, []);
      history.get(drive).push({ at: now - ago, values: [latency, impact, rate] });
    }
  }
}

function remember(drive) {
  const now = Date.now();
  const samples = history.get(drive.name) ?? [];
  history.set(drive.name, samples);
  if (samples.length && now - samples[samples.length - 1].at < BETWEEN) return samples;
  samples.push({ at: now, values: LINES.map(([, , value]) => value(drive)) });
  while (now - samples[0].at > REMEMBERED) samples.shift();
  return samples;
}

function drawHistory(root, drive) {
  const samples = remember(drive);
  const now = samples[samples.length - 1].at;
  field(root, "history").replaceChildren(...LINES.map(([name, meaning, , shown], line) => {
    const values = samples.map((sample) => sample.values[line]);
    const known = values.filter((value) => value !== null);
    const most = Math.max(...known, 0);
    let path = "";
    samples.forEach((sample, index) => {
      const value = values[index];
      if (value === null) return;
      const x = 1000 - ((now - sample.at) / REMEMBERED) * 1000;
      const y = 46 - (most > 0 ? (value / most) * 44 : 0);
      const begins = path === "" || values[index - 1] === null;
      path += `${begins ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    });
    const figure = element("figure");
    const svg = shape("svg", { viewBox: "0 0 1000 48", preserveAspectRatio: "none", role: "img", "aria-label": `${name}, ten minutes` });
    svg.append(shape("path", { d: path }));
    const caption = element("figcaption");
    const title = element("span", name);
    explain(title, meaning);
    const last = values[values.length - 1];
    caption.append(title, element("b", last === null ? "–" : shown(last)));
    const axis = element("figcaption");
    axis.append(element("span", "10 min ago"), element("span", known.length ? `at most ${shown(most)}` : ""));
    figure.append(caption, svg, axis);
    return figure;
  }));
}

function drawMeters(root, drive) {
  const impact = field(root, "impact");
  explain(impact.querySelector("h3"), WORDS.impact);
  explain(field(root, "confidence").querySelector("h3"), WORDS.confidence);
  const { measured_percent: measured, budget_percent: budget } = drive.impact;
  const scale = Math.max(budget * 2, measured ?? 0, 0.1);
  impact.classList.toggle("over", measured !== null && measured > budget);
  impact.querySelector(".fill").style.width = `${(Math.max(0, measured ?? 0) / scale) * 100}%`;
  impact.querySelector(".budget").style.left = `${(budget / scale) * 100}%`;
  const found = measured === null ? "not measured yet" : `${decimals(measured, 2)} %`;
  impact.querySelector("p").textContent = `${found}, of ${decimals(budget, 2)} % that are granted`;

  const confidence = field(root, "confidence");
  confidence.hidden = drive.confidence === null;
  if (drive.confidence !== null) {
    confidence.querySelector(".fill").style.width = `${drive.confidence * 100}%`;
    confidence.querySelector("p").textContent = `${decimals(drive.confidence * 100, 1)} % of commands end when they should`;
  }
}

// What a task was to the foreground.
function beside(impact) {
  if (!impact.beside) return "";
  const told = (of) => `mean ${time(of.mean_us)}, p99 ${time(of.p99_us)}, ${whole(of.requests)} requests`;
  const parts = [`Foreground beside it: ${told(impact.beside)}`];
  if (impact.alone) parts.push(`before it: ${told(impact.alone)}`);
  if (impact.measured_percent !== null) parts.push(`${decimals(impact.measured_percent, 2)} % of its time owed to it`);
  return parts.join(" · ");
}

function drawTasks(root, tasks) {
  field(root, "background").hidden = !tasks.length;
  root.querySelector(".tasks").replaceChildren(...tasks.map((task) => {
    const item = byId("task").content.cloneNode(true).firstElementChild;
    item.dataset.task = task.id;
    const share = (part) => (task.asked_bytes ? (part / task.asked_bytes) * 100 : 0);
    field(item, "name").textContent = task.name;
    const kinds = { active: "good", suspended: "careful", aborted: "bad" };
    pill(field(item, "state"), task.state, kinds[task.state]);
    field(item, "far").textContent = `${decimals(share(task.done_bytes), 1)} %`;
    const bar = item.querySelector(".bar");
    bar.setAttribute("aria-valuenow", share(task.done_bytes).toFixed(1));
    bar.querySelector(".free").style.width = `${share(task.free_bytes)}%`;
    bar.querySelector(".idle").style.width = `${share(task.idle_bytes)}%`;
    bar.querySelector(".paid").style.width = `${share(task.paid_bytes)}%`;
    const numbers = [
      `${bytes(task.done_bytes)} of ${bytes(task.asked_bytes)}`,
      `${bytes(task.free_bytes)} free, ${bytes(task.idle_bytes)} idle, ${bytes(task.paid_bytes)} paid`,
      `${decimals(task.mb_per_s, 1)} MB/s`,
    ];
    if (task.eta_s !== null) numbers.push(`${span(task.eta_s)} left`);
    if (task.resumed_bytes) numbers.push(`${bytes(task.resumed_bytes)} before it was gone on with`);
    if (task.failed_bytes) numbers.push(`${bytes(task.failed_bytes)} could not be read`);
    field(item, "numbers").textContent = numbers.join(" · ");
    field(item, "beside").textContent = beside(task.impact);
    field(item, "outcome").textContent = task.problem ?? task.outcome ?? "";
    field(item, "outcome").classList.toggle("wrong", task.problem !== null);
    return item;
  }));
}

function headsFact(heads) {
  if (!heads || !heads.compared_total) return null;
  const slow = heads.slow.map((head) => `head ${head.head} reads ${decimals(head.slower_percent, 0)} % slower`);
  return [`${whole(heads.late_total)} of ${whole(heads.compared_total)} compared reads late`, ...slow].join(" · ");
}

function mirrorFacts(mirror) {
  if (!mirror) return [];
  const found = mirror.legs.map((leg, number) => [`leg ${number}`, `${leg.state}: ${leg.path}`]);
  if (mirror.to_copy_bytes) found.push(["to copy", `${bytes(mirror.to_copy_bytes)} of ${bytes(mirror.data_bytes)}`]);
  const rebuild = mirror.rebuild;
  if (!rebuild) return found;
  const means = { gaps: "in gaps", share: "in a share of the time", deadline: "in gaps and a paid share of the time" };
  const said = [
    `${means[rebuild.means]}, ${decimals(rebuild.mb_per_s, 1)} MB/s`,
    `${bytes(rebuild.gap_bytes)} from gaps`,
    `${bytes(rebuild.paid_bytes)} in ${decimals(rebuild.paid_percent, 1)} % of the time`,
  ];
  if (rebuild.eta_s !== null) said.push(`${span(rebuild.eta_s)} left`);
  if (rebuild.deadline_s !== null) said.push(rebuild.deadline_s ? `deadline in ${span(rebuild.deadline_s)}` : "deadline has passed");
  return [...found, ["rebuild", said.join(" · ")]];
}

function drawDrive(root, drive) {
  field(root, "name").textContent = drive.name;
  const modes = {
    learning: ["learning", ""], following: ["following", "good"], safe: ["safe mode", "careful"], plain: ["plain", ""],
  };
  pill(field(root, "mode"), ...modes[drive.mode]);
  explain(field(root, "mode"), [WORDS.modes[drive.mode], drive.mode_reason].filter(Boolean).join(": "));
  const errors = drive.errors.reads_total + drive.errors.writes_total + drive.errors.flushes_total;
  const late = drive.lateness;
  facts(field(root, "facts"), [
    ["back end", drive.model ? `${drive.back_end}, ${drive.model}` : drive.back_end],
    ["time scale", drive.time_scale === null ? null : `× ${drive.time_scale}`],
    ["capacity", bytes(drive.capacity_bytes)],
    ["policy", drive.policy],
    ["queue", `${whole(drive.queue.waiting)} waiting, ${whole(drive.queue.at_drive)} at the drive`],
    ["late", late ? `p50 ${time(late.p50_us)}, p99 ${time(late.p99_us)}, at most ${time(late.max_us)}` : null],
    ["errors", errors ? whole(errors) : null],
    ["heads", headsFact(drive.heads)],
    ...mirrorFacts(drive.mirror),
  ]);
  drawHead(root, drive.head);
  drawTimeline(root, drive.head_time);
  drawMeters(root, drive);
  drawHistory(root, drive);
  drawTraffic(root, drive.traffic);
  drawStreams(root, drive.streams);
  drawCaches(root, drive.caches);
  drawTasks(root, drive.tasks);
}

function newDrive() {
  const root = byId("drive").content.cloneNode(true).firstElementChild;
  const grooves = root.querySelector(".grooves");
  for (let radius = 34; radius < 98; radius += 8) grooves.append(shape("circle", { r: radius }));
  return root;
}

function draw(status) {
  const states = { serving: "good", draining: "careful", stopping: "bad" };
  pill(byId("state"), status.state, states[status.state]);
  facts(byId("service"), [
    ["version", status.version],
    ["up", span(status.uptime_s)],
    ["connections", whole(status.connections.length)],
  ]);
  const main = byId("drives");
  while (main.children.length > status.drives.length) main.lastElementChild.remove();
  while (main.children.length < status.drives.length) main.append(newDrive());
  status.drives.forEach((drive, index) => drawDrive(main.children[index], drive));
  drawScrubs(status.scrubs);
  drawConnections(status.connections);
  notice(status.drives.length ? "" : "The service has no drives yet.");
}

// What is wrong, before anything else; then what works less well than it could.
function answer(findings) {
  const wrong = findings.filter((finding) => finding.severity === "wrong");
  const notices = findings.length - wrong.length;
  const box = byId("answer");
  box.hidden = false;
  box.className = wrong.length ? "answer bad" : "answer";
  const more = notices ? `; ${notices} ${notices === 1 ? "notice" : "notices"}` : "";
  const count = wrong.length === 1 ? "1 thing is wrong" : `${wrong.length} things are wrong`;
  box.querySelector(".word").textContent = wrong.length ? `✕ ${count}${more}` : `✓ OK: nothing is wrong${more}`;
  box.querySelector("ul").replaceChildren(...findings.map((finding) => {
    const item = element("li", `${finding.about}: ${finding.what}`);
    item.dataset.finding = finding.id;
    item.append(element("span", `To do: ${finding.action}`));
    explain(item.firstElementChild, finding.why);
    return item;
  }));
}

async function ask() {
  const response = await fetch("api/findings");
  if (!response.ok) throw new Error(`status ${response.status}`);
  const findings = await response.json();
  keepingFocus(() => answer(findings));
}

function notice(text) {
  byId("notice").hidden = text === "";
  byId("notice").textContent = text;
}

function gone() {
  byId("answer").hidden = true;
  pill(byId("state"), "not reachable", "bad");
  notice("The service does not answer. The page goes on by itself when it is back.");
}

async function first() {
  const past = await fetch("api/history");
  if (past.ok) recall(await past.json());
  const response = await fetch("api/status");
  if (!response.ok) throw new Error(`status ${response.status}`);
  draw(await response.json());
  await ask();
}

function follow() {
  // A service that does not answer is told by the events.
  setInterval(() => ask().catch(() => {}), ASKING);
  let silent;
  const heard = () => {
    clearTimeout(silent);
    silent = setTimeout(gone, SILENCE);
  };
  const events = new EventSource("api/events");
  events.addEventListener("status", (event) => {
    heard();
    keepingFocus(() => draw(JSON.parse(event.data)));
  });
  events.addEventListener("error", gone);
}

first().catch(gone).finally(() => {
  if (!new URLSearchParams(location.search).has("still")) follow();
});
