// The page of the admin address. All text of others reaches the page by textContent, never as HTML.
"use strict";

// How often status, calls and processes are asked for, and the longest wait before a lost connection is tried again.
const AGAIN = 2000, LONGEST_WAIT = 30000, PATIENCE = 10000;
// The most of each list that is kept and shown.
const ALIKE = 10000, EVENTS = 250, ITEMS = 50, STORY = 32, LINE = 64 * 1024 * 8;
const KEY = "linetender-admin-token", DOOR = "(gateway)";

const VERDICTS = [
  ["answered", "answered", "good"], ["tool_error", "tool error", "busy"], ["refused", "refused", "blue"],
  ["not_executed", "not executed", "cyan"], ["unknown", "unknown", "bad"], ["cancelled", "cancelled", "quiet"],
];
// State: sign, tone, urgency, and how high it stands in a strip: seen without colours too.
const STATES = {
  "needs-auth": ["A", "key", 9, 0.75], parked: ["P", "bad", 8, 0.3], ending: ["×", "bad", 7, 1], waiting: ["…", "busy", 6, 0.45],
  dialing: ["↻", "busy", 5, 0.6], suspect: ["?", "busy", 4, 0.85], draining: ["↓", "busy", 3, 0.85], up: ["●", "good", 2, 1],
  idle: ["○", "quiet", 1, 0.15], closed: ["–", "quiet", 0, 0.15],
};
const OTHER = ["*", "blue", 7, 0.5];
const looks = (state) => (Object.hasOwn(STATES, state) ? STATES[state] : OTHER);
const urgent = (state) => state === "parked" || state === "needs-auth";

const $ = (id) => document.getElementById(id);
let token = null, servers = new Map(), before = new Map(), rows = new Map(), processes = [], calls = [];
let opened = null, atDoor = {}, story = [], events = [], waiting = [], generation = 0, firstLook = true;

// ---- text

function make(tag, classes, text) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text !== undefined) element.textContent = text;
  return element;
}
function put(element, text) { if (element.textContent !== text) element.textContent = text; }
function tone(element, name) { if (element.dataset.tone !== name) element.dataset.tone = name; }
// What cannot be seen, or changes how the rest is seen, is spelt out.
function plain(text, most = 2000) {
  const shown = String(text ?? "").slice(0, most);
  return shown.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (hidden) => "\\u{" + hidden.codePointAt(0).toString(16) + "}");
}
function count(number) {
  if (number < 10000) return String(number);
  return number < 1e6 ? Math.floor(number / 1000) + "k" : (number / 1e6).toFixed(1) + "M";
}
function took(micros) {
  if (micros === undefined || micros === null) return "–";
  if (micros < 1000) return micros + " µs";
  if (micros < 1e6) return (micros / 1000).toFixed(micros < 1e4 ? 1 : 0) + " ms";
  return micros < 6e7 ? (micros / 1e6).toFixed(1) + " s" : Math.floor(micros / 6e7) + " min";
}
function age(millis) {
  const seconds = Math.floor(millis / 1000), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (seconds < 60) return seconds + "s";
  if (minutes < 10) return minutes + "m " + (seconds % 60) + "s";
  if (hours < 1) return minutes + "m";
  return hours < 24 ? hours + "h " + (minutes % 60) + "m" : Math.floor(hours / 24) + "d " + (hours % 24) + "h";
}
function bytes(number) {
  if (number < 1 << 20) return Math.round(number / 1024) + " KiB";
  return number < 2 ** 30 ? Math.round(number / 2 ** 20) + " MiB" : (number / 2 ** 30).toFixed(1) + " GiB";
}
function rate(number) { return number === undefined ? "–" : number < 0.05 ? "0" : number < 10 ? number.toFixed(1) : count(Math.round(number)); }
function clock(at) {
  const time = new Date(at);
  return Number.isNaN(time.valueOf()) ? plain(at, 32) : time.toLocaleTimeString([], { hour12: false });
}
const total = (verdicts) => VERDICTS.reduce((sum, [key]) => sum + (verdicts[key] || 0), 0);
const tokens = (millis) => (millis % 1000 < 100 ? String(Math.floor(millis / 1000)) : (Math.floor(millis / 100) / 10).toFixed(1));

// ---- asking

class Refused extends Error {}

async function ask(path, options = {}, patience = PATIENCE) {
  const response = await fetch(path, {
    ...options, cache: "no-store", credentials: "omit", redirect: "error", headers: { Authorization: "Bearer " + token },
    signal: AbortSignal.timeout(patience),
  });
  if (response.status === 401 || response.status === 403) throw new Refused();
  const document = await response.json();
  if (!response.ok) throw new Error(plain(document.detail || document.title || "status " + response.status, 300));
  return document;
}

function link(state, words) {
  $("link").dataset.link = state;
  put($("link"), words);
}

// One loop for what is asked each two seconds, one for what is told; both end when another token is used.
async function look(mine) {
  for (let failed = 0; mine === generation;) {
    try {
      if (!document.hidden || firstLook) {
        const [status, under, trees] = await Promise.all([ask("/api/v1/status"), ask("/api/v1/calls"), ask("/api/v1/processes")]);
        if (mine !== generation) return;
        (calls = under.calls), (processes = trees.trees);
        take(status);
        failed = 0;
        link("on", "live");
      }
      await pause(AGAIN);
    } catch (error) {
      if (mine !== generation) return;
      if (error instanceof Refused) return enter("The gateway refused this token.");
      failed = await wait(failed, mine);
    }
  }
}

async function watch(mine) {
  for (let failed = 0; mine === generation;) {
    try {
      const response = await fetch("/api/v1/events?calls=1", {
        cache: "no-store", credentials: "omit", redirect: "error", headers: { Authorization: "Bearer " + token, Accept: "text/event-stream" },
      });
      if (response.status === 401 || response.status === 403) return;
      if (!response.ok) throw new Error();
      failed = 0;
      await read(response.body.getReader(), mine);
      if (mine === generation) note("the connection to the gateway ended: events may be missing here");
    } catch {
      // The other loop says that the connection is lost.
    }
    await pause(Math.min(LONGEST_WAIT, 1000 * 2 ** Math.min(failed++, 5)));
  }
}

async function read(reader, mine) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (mine !== generation) return void reader.cancel();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.split(/\r?\n\r?\n/);
    text = parts.pop();
    parts.forEach(heard);
    // A piece that never ends is none of ours.
    if (text.length > LINE) return void reader.cancel();
  }
}

function heard(piece) {
  let name = "message", data = "";
  for (const line of piece.split(/\r?\n/)) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  if (!data) return;
  let value;
  try { value = JSON.parse(data); } catch { return; }
  if (name === "entry") entry(value);
  else if (name === "call") call(value);
  else if (name === "missed") note(value.missed + " events were missed: they came too fast");
}

const pause = (millis) => new Promise((done) => setTimeout(done, millis));

// Says that the connection is lost, counts down, and returns how often in a row that was.
async function wait(failed, mine) {
  const seconds = Math.ceil(Math.min(LONGEST_WAIT, 1000 * 2 ** Math.min(failed, 5)) * (0.75 + Math.random() / 2) / 1000);
  for (let left = seconds; left > 0 && mine === generation; left--) {
    link(failed ? "off" : "wait", "connection lost: next try in " + left + " s");
    await pause(1000);
  }
  return failed + 1;
}

// ---- taking in

function take(status) {
  const holder = status.holder, counts = new Map(status.servers.map((server) => [server.server, server])), now = new Map();
  for (const line of status.lines) {
    const known = now.get(line.server);
    if (known) known.lines.push(line);
    else now.set(line.server, { name: line.server, lines: [line], counts: counts.get(line.server) || { tool_calls: {}, other_requests: {}, ends: {}, slowest: [] } });
  }
  // Calls that the gateway ended before a server was chosen.
  atDoor = (counts.get(DOOR) || { tool_calls: {} }).tool_calls;
  const fleet = status.fleet, placed = new Map(fleet ? fleet.servers.map((one) => [one.server, one]) : []);
  const changed = [];
  for (const server of now.values()) {
    server.placed = placed.get(server.name);
    server.lines.sort((one, other) => looks(other.state)[2] - looks(one.state)[2] || one.since_millis - other.since_millis);
    server.line = server.lines[0];
    server.state = server.line.state;
    const seen = before.get(server.name), calls = total(server.counts.tool_calls);
    if (seen && holder.began_millis > seen.at && calls >= seen.calls) server.rate = (calls - seen.calls) * 1000 / (holder.began_millis - seen.at);
    if (seen && seen.state !== server.state) changed.push(plain(server.name, 64) + " is " + plain(server.state, 32));
    before.set(server.name, { calls, at: holder.began_millis, state: server.state });
    const trees = processes.filter((tree) => tree.server === server.name);
    server.trees = trees;
    server.memory = trees.length ? trees.reduce((sum, tree) => sum + tree.memory_bytes, 0) : undefined;
  }
  for (const name of before.keys()) if (!now.has(name)) before.delete(name);
  servers = now;
  firstLook = false;
  put($("about"), "version " + plain(holder.version, 32) + ", process " + holder.pid + ", up " + age(holder.began_millis) + (fleet ? inFleet(fleet) : ""));
  if (changed.length) put($("heard"), changed.length > 3 ? changed.length + " servers changed their state" : changed.join(", "));
  draw();
  if (opened !== null) tell(opened);
}

function inFleet(fleet) {
  const many = fleet.nodes.length, leaving = fleet.nodes.filter((node) => node.leaves).length;
  return "; gateway " + plain(fleet.node, 64) + " of fleet " + plain(fleet.fleet, 64) + ", " + many + (many === 1 ? " gateway" : " gateways")
    + (leaving ? " (" + leaving + " leaving)" : "") + (fleet.connected ? "" : ", NATS is not connected");
}

// Which other gateway runs a server, if one does.
function elsewhere({ placed }) {
  if (!placed || placed.here) return "";
  return placed.runs_at ? " @" + plain(placed.runs_at, 64) : "";
}

function entry(value) {
  if (value.what === "state") {
    const calls = value.calls ? VERDICTS.slice(1, 5).filter(([key]) => value.calls[key]).map(([key, name]) => value.calls[key] + " " + name) : [];
    const words = [value.cause ? value.cause.text : "", value.next_try ? "next try " + value.next_try : "", calls.length ? "calls: " + calls.join(", ") : ""];
    const sign = looks(value.state);
    happened({ at: value.at, server: value.server, what: sign[0] + " " + value.state, tone: sign[1], text: words.filter(Boolean).join("; ") });
  } else if (value.what === "retry") {
    happened({ at: value.at, server: value.server, what: "sent again", tone: "busy", text: (value.tool || value.method) + " (attempt " + value.attempt + ", connection " + value.from + " to " + value.to + ": " + value.reason + ")" });
  } else if (value.what === "gap") note(value.entries + " entries are missing: " + value.why, value.at);
  else if (value.what === "end") note("linetender ended: " + value.why, value.at);
}

function call(value) {
  if (value.verdict === "answered" || value.verdict === "cancelled") return;
  const [, , name] = VERDICTS.find(([, verdict]) => verdict === value.verdict) || [null, null, "quiet"];
  const whom = value.principal ? " for " + value.principal : "";
  happened({ at: value.at, server: value.server, what: value.verdict, tone: name, call: true, shout: value.verdict === "unknown",
    text: (value.tool || value.method) + whom + (value.detail ? ": " + value.detail : "") });
}

function note(text, at) { happened({ at: at || new Date().toISOString(), server: "", what: "note", tone: "quiet", text }); }

// Events are drawn together, once per frame, and only so many are kept. Calls that end alike within seconds are one row with a number:
// a server that is out of service refuses hundreds. Calls that may have been executed stay apart.
function happened(event) {
  event.came = performance.now();
  event.times = 1;
  if (event.call && !event.shout) {
    const alike = (other) => other.call && other.server === event.server && other.what === event.what && event.came - other.came < ALIKE;
    const same = waiting.findLast(alike) || events.slice(0, ITEMS).find(alike);
    if (same) {
      same.times++;
      if (same.element) put(same.element.children[2], words(same));
      return;
    }
  }
  waiting.push(event);
  if (waiting.length > EVENTS) waiting.shift();
  if (waiting.length === 1) requestAnimationFrame(drawEvents);
}

// ---- drawing

function shown() {
  const words = $("filter").value.trim().toLowerCase(), by = $("sort").value;
  const list = [...servers.values()].filter((server) => !words || server.name.toLowerCase().includes(words) || server.state.includes(words));
  const most = { rate: (server) => server.rate || 0, p99: (server) => server.counts.p99_micros || 0, unknown: (server) => server.counts.tool_calls.unknown || 0,
    memory: (server) => server.memory || 0, trouble: (server) => Math.max(2, looks(server.state)[2]), name: () => 0 }[by];
  return list.sort((one, other) => most(other) - most(one) || (one.name < other.name ? -1 : 1));
}

function draw() {
  drawTotals();
  const list = shown(), names = new Set(list.map((server) => server.name)), parent = $("list");
  for (const [name, row] of rows) if (!names.has(name)) { row.element.remove(); rows.delete(name); }
  list.forEach((server, at) => {
    let row = rows.get(server.name);
    if (!row) rows.set(server.name, (row = newRow(server.name)));
    // A row is moved only if it stands elsewhere: focus stays where it is.
    if (parent.children[at] !== row.element) parent.insertBefore(row.element, parent.children[at] || null);
    drawRow(row, server);
  });
  // All strips have one size, asked for once and after everything else is written: each question makes the browser lay out the page.
  const size = list.length ? sizeOf(rows.get(list[0].name).strip) : [0, 0];
  for (const server of list) strip(rows.get(server.name).strip, server.line, size);
  const none = servers.size ? "No server matches the filter." : "This gateway has no server yet.";
  put($("none"), none);
  $("none").hidden = list.length > 0;
  $("heads").hidden = parent.hidden = list.length === 0;
}

function drawTotals() {
  const all = [...servers.values()], trouble = all.filter((server) => !["up", "idle", "closed"].includes(server.state)).length;
  const sum = (key) => all.reduce((sum, server) => sum + (server.counts.tool_calls[key] || 0), atDoor[key] || 0);
  const rates = all.reduce((sum, server) => sum + (server.rate || 0), 0);
  const tiles = [["servers", trouble ? all.length + " (" + trouble + " down)" : String(all.length), trouble ? "bad" : "good"], ["calls/s", rate(rates), "quiet"],
    ...VERDICTS.map(([key, name, tone]) => [name, count(sum(key)), tone])];
  const parent = $("totals");
  while (parent.children.length < tiles.length) {
    const tile = make("div");
    tile.append(make("dt"), make("dd"));
    parent.append(tile);
  }
  tiles.forEach(([name, number, which], at) => {
    const tile = parent.children[at];
    tone(tile, which);
    tile.classList.toggle("shout", name === "unknown" && number !== "0");
    put(tile.children[0], name);
    put(tile.children[1], number);
  });
}

const NUMBERS = [["calls/s", (server) => rate(server.rate)], ["p50", (server) => took(server.counts.p50_micros)], ["p99", (server) => took(server.counts.p99_micros)]];
const MORE = [["busy", (server) => count(server.counts.under_way || 0)], ["restarts", (server) => restarts(server.line)],
  ["memory", (server) => (server.memory === undefined ? "–" : bytes(server.memory))]];

function restarts(line) {
  const fresh = [line.budget_millis, line.budget_most_millis], useful = [line.useful_millis, line.useful_most_millis];
  const share = ([left, most]) => left / Math.max(1, most);
  const [left, most] = useful[1] > 0 && share(useful) < share(fresh) ? useful : fresh;
  return tokens(left) + "/" + tokens(most);
}

function newRow(name) {
  const element = make("li", "server"), open = make("button", "open"), state = make("span", "state"), strip = make("canvas");
  open.type = "button";
  open.addEventListener("click", () => show(name));
  strip.setAttribute("role", "img");
  const number = ([label]) => {
    const cell = make("span", "number");
    cell.append(make("span", "label", label), make("span"));
    return cell;
  };
  const numbers = NUMBERS.map(number), more = MORE.map(number), verdicts = make("div", "verdicts"), six = make("div", "six"), stack = make("div", "stack");
  for (const [, verdict, which] of VERDICTS) {
    const cell = make("span"), part = make("i");
    cell.append(make("span", "label", verdict), make("b"));
    cell.title = verdict;
    tone(cell, which);
    tone(part, which);
    six.append(cell);
    stack.append(part);
  }
  stack.setAttribute("aria-hidden", "true");
  verdicts.append(six, stack);
  const stateName = make("span"), since = make("small"), words = make("p", "words");
  state.append(stateName, " ", since);
  element.append(open, state, strip, ...numbers, verdicts, ...more, words);
  return { element, open, state, stateName, since, strip, numbers, more, six, stack, words };
}

function drawRow(row, server) {
  const line = server.line, [sign, which] = looks(server.state), verdicts = server.counts.tool_calls, all = Math.max(1, total(verdicts));
  put(row.open, plain(server.name, 128) + (server.lines.length > 1 ? " ×" + server.lines.length : elsewhere(server)));
  put(row.stateName, sign + " " + plain(server.state, 32));
  put(row.since, age(line.since_millis));
  tone(row.state, which);
  row.element.classList.toggle("urgent", urgent(server.state));
  NUMBERS.forEach(([, of], at) => put(row.numbers[at].lastChild, of(server)));
  MORE.forEach(([, of], at) => put(row.more[at].lastChild, of(server)));
  VERDICTS.forEach(([key], at) => {
    const number = verdicts[key] || 0, cell = row.six.children[at];
    put(cell.lastChild, count(number));
    cell.classList.toggle("zero", number === 0);
    cell.classList.toggle("shout", key === "unknown" && number > 0);
    // One that there is, is seen.
    row.stack.children[at].style.flex = number ? "0 0 max(3px, " + (number / all * 100).toFixed(2) + "%)" : "0 0 0";
  });
  put(row.words, why(server));
}

function why(server) {
  const line = server.line, cause = line.cause ? line.cause.text : "";
  if (line.health) return plain(line.health, 300);
  if (["up", "idle", "closed"].includes(line.state)) return cause && line.ended_millis < 900000 ? "last failure " + age(line.ended_millis) + " ago: " + plain(cause, 300) : "";
  return plain([line.next_try ? "next try " + line.next_try : "", cause].filter(Boolean).join(": "), 300);
}

let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["good", "busy", "bad", "key", "blue", "quiet", "soft"]) colours[name] = style.getPropertyValue("--" + name).trim();
}

const pixels = () => Math.min(3, devicePixelRatio || 1);
const sizeOf = (canvas) => [canvas.clientWidth, canvas.clientHeight].map((length) => Math.round(length * pixels()));

// States over time: colour and height. A state of a moment is two pixels wide at least, the most urgent on top.
function strip(canvas, line, [width, height] = sizeOf(canvas)) {
  const ratio = pixels();
  const span = Number($("span").value) * 1000, history = line.history || [];
  const parts = history.map((moment, at) => ({ state: moment.state, from: Math.min(span, moment.ago_millis), to: at + 1 < history.length ? history[at + 1].ago_millis : 0 }))
    .filter((part) => part.to < span);
  const ends = parts.filter((part) => part.state === "ending").length;
  const words = "last " + $("span").selectedOptions[0].textContent + ": " + (ends ? ends + " ends, " : "no end, ") + "now " + plain(line.state, 32);
  if (canvas.getAttribute("aria-label") !== words) canvas.setAttribute("aria-label", words);
  if (!width || !height) return;
  if (canvas.width !== width || canvas.height !== height) (canvas.width = width), (canvas.height = height);
  const paint = canvas.getContext("2d");
  paint.fillStyle = colours.soft;
  paint.fillRect(0, 0, width, height);
  parts.sort((one, other) => looks(one.state)[2] - looks(other.state)[2]);
  for (const { state, from, to } of parts) {
    const [, which, , high] = looks(state), left = Math.floor((span - from) / span * width);
    const wide = Math.max(2 * ratio, Math.ceil((from - to) / span * width));
    const x = Math.min(left, width - wide), top = Math.round(height * (1 - high));
    paint.clearRect(x, 0, wide, height);
    paint.fillStyle = colours.soft;
    paint.fillRect(x, 0, wide, height);
    paint.fillStyle = colours[which];
    paint.fillRect(x, top, wide, height - top);
  }
}

function words(event) { return plain(event.what, 40) + (event.times > 1 ? " ×" + count(event.times) : ""); }

function eventItem(event) {
  const item = make("li"), time = make("time", "", clock(event.at)), what = make("span", "tone" + (event.shout ? " shout" : ""), words(event));
  time.dateTime = plain(event.at, 40);
  tone(what, event.tone);
  item.append(time, make("b", "", plain(event.server, 128)), what, make("span", "text", plain(event.text, 400)));
  event.element = item;
  return item;
}

function drawEvents() {
  const fresh = waiting;
  waiting = [];
  events = [...fresh.reverse(), ...events].slice(0, EVENTS);
  const list = $("events"), wanted = fresh.filter((event) => !event.call || $("calls").checked);
  list.prepend(...wanted.map(eventItem));
  while (list.children.length > EVENTS) list.lastChild.remove();
  $("no-events").hidden = list.children.length > 0;
}

function redrawEvents() {
  $("events").replaceChildren(...events.filter((event) => !event.call || $("calls").checked).map(eventItem));
  $("no-events").hidden = $("events").children.length > 0;
}

// ---- one server

function show(name) {
  opened = name;
  story = [];
  put($("one-done"), "");
  drawOne();
  $("one").showModal();
  $("one-name").focus();
  drawOne();
  tell(name);
}

async function tell(name) {
  try {
    const { entries, story: sentences } = await ask("/api/v1/servers/" + encodeURIComponent(name) + "/why");
    if (opened !== name) return;
    story = entries;
    put($("one-told"), plain(sentences.join("\n"), 16000));
  } catch {
    // The next look says what is wrong.
  }
  if (opened === name) drawOne();
}

function fill(list, items) {
  list.replaceChildren(...(items.length ? items.slice(0, ITEMS) : [make("li", "none", "none")]));
}

function three(one, two, last, which) {
  const item = make("li"), end = make("span", which ? "tone" : "quiet", last);
  if (which) tone(end, which);
  item.append(make("b", "", one), make("span", "", two), end);
  return item;
}

function drawOne() {
  const server = servers.get(opened);
  put($("one-name"), plain(opened, 128));
  for (const button of document.querySelectorAll("[data-order]")) button.disabled = !server || $("one").dataset.busy === "yes";
  if (!server) return put($("one-why"), "This server is gone: it was removed from the configuration, or its session ended.");
  const line = server.line, [sign, which] = looks(server.state), counts = server.counts;
  $("one-state").className = "state";
  tone($("one-state"), which);
  put($("one-state"), sign + " " + plain(server.state, 32) + " for " + age(line.since_millis));
  put($("one-why"), why(server));
  $("one-why").className = urgent(server.state) ? "urgent" : "quiet";
  strip($("one-strip"), line);
  const ends = Object.entries(counts.ends || {}).slice(0, 8).map(([cause, number]) => plain(cause, 32) + " " + number).join(", ");
  const facts = [["connection", "#" + line.generation], ["restarts left", restarts(line)], ["calls/s", rate(server.rate)], ["p50", took(counts.p50_micros)],
    ["p99", took(counts.p99_micros)], ["memory", server.memory === undefined ? "–" : bytes(server.memory)], ["sent again", Object.entries(counts.retries || {}).map(([reason, number]) => plain(reason, 32) + " " + number).join(", ") || "0"],
    ["failures", ends || "none"], ["planned ends", count(counts.planned_ends || 0)]];
  $("one-facts").replaceChildren(...facts.map(([name, value]) => {
    const fact = make("div");
    fact.append(make("dt", "", name), make("dd", "", value));
    return fact;
  }));
  const most = Math.max(1, ...VERDICTS.map(([key]) => counts.tool_calls[key] || 0));
  $("one-verdicts").tBodies[0].replaceChildren(...VERDICTS.map(([key, name, which]) => {
    const number = counts.tool_calls[key] || 0, row = make("tr", key === "unknown" && number ? "shout" : ""), head = make("th", "", name), cell = make("td"), bar = make("div", "meter");
    head.scope = "row";
    tone(bar, which);
    bar.style.width = number ? "max(3px, " + (number / most * 100).toFixed(1) + "%)" : "0";
    cell.append(bar);
    row.append(head, make("td", "number", count(number)), make("td", "number quiet", count(counts.other_requests[key] || 0)), cell);
    return row;
  }));
  drawStory(line);
  fill($("one-calls"), calls.filter((call) => call.server === opened).sort((one, other) => other.millis - one.millis)
    .map((call) => three(took(call.millis * 1000), plain(call.tool || call.method, 128) + (call.principal ? " for " + plain(call.principal, 64) : ""), plain(call.stage, 40))));
  fill($("one-slow"), (counts.slowest || []).map((slow) => {
    const known = VERDICTS.find(([, name]) => name === slow.verdict);
    return three(took(slow.millis * 1000), plain(slow.what, 128), plain(slow.verdict, 32) + ", " + age(slow.ended_millis) + " ago", known && known[2] !== "good" ? known[2] : "");
  }));
  fill($("one-processes"), server.trees.flatMap((tree) => tree.processes).map((process) => three(bytes(process.memory_bytes), plain(process.name, 64), "pid " + process.pid)));
}

function drawStory(line) {
  const told = story.filter((entry) => entry.what === "state").slice(-STORY).reverse();
  $("one-story").replaceChildren(...told.map((entry) => {
    const [sign, which] = looks(entry.state), item = make("li"), state = make("span", "tone", sign + " " + plain(entry.state, 32)), time = make("time", "", clock(entry.at));
    tone(state, which);
    const text = entry.state === "up" ? "connection #" + entry.generation : [entry.cause ? entry.cause.text : "", entry.next_try ? "next try " + entry.next_try : ""].filter(Boolean).join("; ");
    item.append(time, state, make("span", "text", plain(text, 400)));
    const lost = entry.calls ? VERDICTS.filter(([key]) => entry.calls[key]) : [];
    if (lost.length) {
      const words = make("span", "calls tone", "calls: " + lost.map(([key, name]) => entry.calls[key] + " " + name).join(", "));
      tone(words, entry.calls.unknown ? "bad" : "quiet");
      item.append(words);
    }
    return item;
  }));
  if (!told.length) $("one-story").replaceChildren(make("li", "none", "nothing yet"));
  const last = told.find((entry) => entry.cause && entry.cause.stderr), stderr = (line.cause && line.cause.stderr) || (last && last.cause.stderr) || "";
  $("one-stderr-box").hidden = !stderr;
  put($("one-stderr"), plain(stderr.slice(-8000), 8000));
}

const ORDERS = {
  redial: ["Restart", "Restarting…", (busy) => busy + "They end with an error that says whether they may have been executed."],
  park: ["Park", "Parking…", (busy) => busy + "linetender lets them end. Then calls are refused until somebody wakes the server."],
};

async function order(name) {
  const server = opened, busy = (servers.get(server) || { counts: {} }).counts.under_way || 0;
  if (ORDERS[name]) {
    const [verb, , text] = ORDERS[name];
    put($("sure-head"), verb + " " + plain(server, 128) + "?");
    put($("sure-text"), busy ? text((busy === 1 ? "1 call is" : busy + " calls are") + " in progress. ")
      : "No call is in progress." + (name === "park" ? " Calls are refused until somebody wakes the server." : ""));
    put($("sure-yes"), verb);
    if (!(await sure())) return;
  }
  $("one").dataset.busy = "yes";
  put($("one-done"), ORDERS[name] ? ORDERS[name][1] : "Waking…");
  drawOne();
  let words;
  try {
    words = (await ask("/api/v1/servers/" + encodeURIComponent(server) + "/" + name, { method: "POST" }, 130000)).done;
  } catch (error) {
    words = "Not done: " + (error instanceof Refused ? "the gateway refused this token" : error.message);
  }
  delete $("one").dataset.busy;
  if (opened === server) {
    put($("one-done"), plain(words, 300));
    drawOne();
  }
}

function sure() {
  const dialog = $("sure");
  dialog.returnValue = "";
  dialog.showModal();
  $("sure-no").focus();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

// ---- beginning

function enter(words) {
  generation++;
  token = null;
  sessionStorage.removeItem(KEY);
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  put($("wrong"), words);
  put($("about"), "");
  link("off", "not connected");
  $("live").hidden = $("forget").hidden = true;
  $("enter").hidden = false;
  $("token").focus();
}

function begin(with_) {
  token = with_;
  sessionStorage.setItem(KEY, token);
  $("enter").hidden = true;
  $("live").hidden = $("forget").hidden = false;
  link("wait", "connecting…");
  const mine = ++generation;
  firstLook = true;
  look(mine);
  watch(mine);
}

function start() {
  readColours();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });
  $("heads").append(...["server", "state", "over time"].map((text) => make("span", "", text)), ...NUMBERS.map(([text]) => make("span", "number", text)));
  const six = make("div", "six");
  six.append(...["answered", "tool err", "refused", "not exec", "unknown", "cancelled"].map((text) => make("span", "", text)));
  $("heads").append(six, ...MORE.map(([text]) => make("span", "number", text)));
  $("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = $("token").value.trim();
    $("token").value = "";
    // A header takes nothing else, and fetch would throw.
    if (!/^[\x21-\x7e]+$/.test(typed)) return put($("wrong"), "A token has no spaces and no letters beyond ASCII.");
    begin(typed);
  });
  $("forget").addEventListener("click", () => enter(""));
  for (const id of ["filter", "sort", "span"]) $(id).addEventListener("input", () => { draw(); if (opened !== null) drawOne(); });
  $("calls").addEventListener("change", redrawEvents);
  $("one-close").addEventListener("click", () => $("one").close());
  $("one").addEventListener("close", () => { opened = null; });
  for (const button of document.querySelectorAll("[data-order]")) button.addEventListener("click", () => order(button.dataset.order));
  $("sure-yes").addEventListener("click", () => $("sure").close("yes"));
  $("sure-no").addEventListener("click", () => $("sure").close(""));
  addEventListener("resize", () => requestAnimationFrame(draw));
  const kept = sessionStorage.getItem(KEY);
  if (kept) begin(kept);
  else enter("");
}

start();
