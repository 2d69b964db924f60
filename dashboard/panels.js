// The tables of the status page. page.js has what they are made of, and calls them.
"use strict";

function drawTraffic(root, traffic) {
  const rows = traffic.map((of) => {
    const row = element("tr");
    row.dataset.class = of.class;
    row.append(cell("class", of.class));
    for (const [name, flow] of [["reads", of.read], ["writes", of.write]]) {
      row.append(cell(`${name}, MB/s`, decimals(flow.mb_per_s, 1), "number"));
      row.append(cell(`${name} a second`, whole(flow.requests_per_s), "number"));
    }
    for (const [name, key] of [["p50", "p50_us"], ["p95", "p95_us"], ["p99", "p99_us"], ["p99.9", "p999_us"]]) {
      row.append(of.latency ? cell(name, time(of.latency[key]), "number") : cell(name, "–", "number none"));
    }
    return row;
  });
  if (!rows.length) {
    const cell = element("td", "no requests yet", "none");
    cell.colSpan = 9;
    rows.push(element("tr"));
    rows[0].append(cell);
  }
  root.querySelector(".traffic tbody").replaceChildren(...rows);
}

// What the caches of a drive hold, and how much of what is asked they have.
function drawCaches(root, caches) {
  const panel = field(root, "caches");
  panel.hidden = !caches.length;
  panel.querySelector("tbody").replaceChildren(...caches.map((cache) => {
    const share = (part) => (cache.asked_bytes_total ? `${decimals((100 * part) / cache.asked_bytes_total, 1)} %` : "–");
    const row = element("tr");
    row.dataset.cache = cache.volume;
    row.append(cell("volume", cache.volume));
    row.append(cell("held", `${bytes(cache.used_bytes)} of ${bytes(cache.size_bytes)}`, "number"));
    row.append(cell("asked", bytes(cache.asked_bytes_total), "number"));
    row.append(cell("hits", share(cache.hit_bytes_total), "number"));
    row.append(cell("on the way", share(cache.late_bytes_total), "number"));
    row.append(cell("not yet written", cache.unwritten_bytes ? bytes(cache.unwritten_bytes) : "–", "number"));
    row.append(cell("replacement, prefetcher, coordinator", `${cache.replacement}, ${cache.prefetch}, ${cache.coordinator}`));
    return row;
  }));
}

// How many streams a drive guarantees, and how it keeps them. The page has no users, and does not list them.
function drawStreams(root, streams) {
  const panel = field(root, "streams");
  panel.hidden = !streams.now && !streams.granted_total && !streams.refused_total;
  const cells = [
    ["now", whole(streams.now)],
    ["memory", bytes(streams.memory_bytes)],
    ["granted", whole(streams.granted_total)],
    ["refused", whole(streams.refused_total)],
    ["batches late", whole(streams.late_total)],
    ["lapsed", whole(streams.lapsed_total)],
  ];
  const row = element("tr");
  for (const [name, text] of cells) row.append(cell(name, text, "number"));
  row.append(cell("new ones", streams.strained ? "none: the drive has become slower" : "as admission allows"));
  panel.querySelector("tbody").replaceChildren(row);
}

function drawConnections(connections) {
  byId("clients").hidden = !connections.length;
  byId("clients").querySelector("tbody").replaceChildren(...connections.map((client) => {
    const row = element("tr");
    row.dataset.connection = client.id;
    const through = client.tls ? `${client.front} with TLS` : client.front;
    const words = [["export", client.export], ["class", client.class], ["through", through], ["from", client.peer]];
    for (const [name, text] of words) row.append(cell(name, text));
    const numbers = [
      ["in flight", whole(client.in_flight)],
      ["requests", whole(client.requests_total)],
      ["bytes", bytes(client.bytes_total)],
      ["connected", span(client.connected_s)],
    ];
    for (const [name, text] of numbers) row.append(cell(name, text, "number"));
    return row;
  }));
}

// Whether the volumes are sound, then how far their scrubs are.
function drawScrubs(scrubs) {
  byId("scrubs").hidden = !scrubs.length;
  byId("scrubs").querySelector("tbody").replaceChildren(...scrubs.map((scrub) => {
    const row = element("tr");
    row.dataset.scrub = scrub.volume;
    const damage = [
      scrub.changed ? `${whole(scrub.changed)} places changed` : "",
      scrub.unreadable ? `${whole(scrub.unreadable)} places unreadable` : "",
    ].filter(Boolean).join(", ");
    const age = scrub.oldest_age_s === null ? "not yet all" : `${span(scrub.oldest_age_s)} ago`;
    const every = scrub.every_s === null ? "none" : `every ${span(scrub.every_s)}`;
    const late = scrub.late_by_s ? `, late by ${span(scrub.late_by_s)}` : "";
    const share = scrub.asked_bytes ? (scrub.verified_bytes / scrub.asked_bytes) * 100 : 0;
    const remarks = [
      scrub.skipped_bytes ? `${bytes(scrub.skipped_bytes)} skipped` : "",
      scrub.adopted_bytes ? `${bytes(scrub.adopted_bytes)} adopted` : "",
      scrub.problem ?? "",
    ].filter(Boolean).join(" · ");
    const cells = [["volume", scrub.volume], ["damage", damage || "none"], ["oldest verification", age], ["schedule", every + late]];
    for (const [name, text] of cells) row.append(cell(name, text));
    row.append(cell("scrub", scrub.state === "idle" ? "–" : `${scrub.state}, ${decimals(share, 1)} %`, "number"));
    row.append(cell("remarks", remarks));
    return row;
  }));
}
