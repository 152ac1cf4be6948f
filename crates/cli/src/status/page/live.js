"use strict";
// Keeps the page up to date: asks for the report once a second while somebody looks, fills the slots and draws the
// courses. Everything goes in as text or as a number.

const INTERVAL_MS = 1000;
const PATIENCE_MS = 5000;
const LONGEST_WAIT_MS = 15000;
const HISTORY_S = 300;
// Two looks farther apart than this have nothing known between them.
const GAP_S = 5;

// Figures as the server writes them.

function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  // Half-way between two, where toFixed takes the larger: the server takes the even one.
  const exact = value.toFixed(decimals + 40);
  const even = (value * 10 ** decimals - 0.5) % 2 === 0;
  return even && /50{39}$/.test(exact) ? ((value * 10 ** decimals - 0.5) / 10 ** decimals).toFixed(decimals) : text;
}

function digits(value) {
  const text = fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function scaled(value, units) {
  const [least, unit] = units.find(([least]) => value >= least) || units[units.length - 1];
  return `${digits(value / least)} ${unit}`;
}

function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

// The server knows whole nanoseconds.
function wholeNanoseconds(seconds) {
  const whole = Math.trunc(seconds);
  return whole + Math.round((seconds - whole) * 1e9) / 1e9;
}

function span(seconds) {
  const time = wholeNanoseconds(seconds);
  if (time >= 1) return `${digits(time)} s`;
  return time >= 1e-3 ? `${digits(time * 1e3)} ms` : `${digits(time * 1e6)} us`;
}

function age(seconds) {
  const s = Math.trunc(wholeNanoseconds(seconds));
  const whole = (unit) => Math.trunc(s / unit);
  if (s >= 86400) return `${whole(86400)} d ${whole(3600) % 24} h`;
  if (s >= 3600) return `${whole(3600)} h ${whole(60) % 60} min`;
  return s >= 60 ? `${whole(60)} min ${s % 60} s` : `${s} s`;
}

const FORMATS = {
  text: (value) => String(value),
  rate: (bps) => scaled(bps, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]),
  bytes: (size) => scaled(size, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]),
  count: count,
  per_second: (rate) => `${rate < 100 ? digits(rate) : count(fixed(rate, 0))}/s`,
  span: span,
  age: age,
  share: (part) => `${digits(part * 100)} %`,
};

function written(value, how) {
  if (value === undefined) return "";
  const isKnown = how === "text" ? typeof value === "string" : typeof value === "number" && value >= 0;
  return isKnown ? FORMATS[how](value) : "–";
}

// Slots and lists.

function at(data, path) {
  return path.split(".").reduce((value, key) => (value === null || value === undefined ? undefined : value[key]), data);
}

function isSomething(value) {
  return typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function fillMeter(meter, data) {
  meter.max = Math.max(1, at(data, meter.dataset.max) || 0);
  meter.value = at(data, meter.dataset.of) || 0;
}

function fillBar(bar, shares) {
  let left = 0;
  for (const part of bar.children) {
    const width = (shares && shares[part.dataset.name] || 0) * 100;
    part.setAttribute("x", `${fixed(left, 2)}%`);
    part.setAttribute("width", `${fixed(width, 2)}%`);
    left += width;
  }
}

function fill(slots, data) {
  for (const slot of slots) {
    const { of, as } = slot.dataset;
    if (as === "meter") fillMeter(slot, data);
    else if (as === "bar") fillBar(slot, at(data, of));
    else setText(slot, written(at(data, of), as));
  }
}

function slotsIn(root) {
  const slots = [...root.querySelectorAll("[data-of]")];
  return root.dataset && root.dataset.of !== undefined ? [root, ...slots] : slots;
}

function entries(list) {
  if (Array.isArray(list)) return list;
  const entries = Object.keys(list || {}).sort().map((name) => ({ name, value: list[name] }));
  return entries.sort((a, b) => b.value - a.value);
}

function fillRows(list, data) {
  const template = list.querySelector("template").content.firstElementChild;
  const shown = [...list.children].filter((element) => element.dataset.row !== undefined);
  for (const [index, value] of data.entries()) {
    const row = shown[index] || list.appendChild(template.cloneNode(true));
    fill(slotsIn(row), value);
  }
  for (const row of shown.slice(data.length)) row.remove();
}

const slots = slotsIn(document).filter((slot) => !slot.closest("[data-rows]"));
const lists = [...document.querySelectorAll("[data-rows]")];

function show(report) {
  fill(slots, report);
  for (const list of lists) fillRows(list, entries(at(report, list.dataset.rows)));
  for (const element of document.querySelectorAll("[data-some]"))
    element.hidden = !isSomething(at(report, element.dataset.some));
  for (const element of document.querySelectorAll("[data-none]"))
    element.hidden = isSomething(at(report, element.dataset.none));
}

// Courses: what was seen in the last minutes, forgotten when it is older.

const courses = [...document.querySelectorAll("figure.course")].map((figure) => ({
  how: figure.dataset.as,
  top: figure.querySelector(".top"),
  picture: figure.querySelector("svg"),
  lines: [...figure.querySelectorAll("[data-series]")],
}));
let past = [];

function remember(report, now_s) {
  const values = {};
  for (const { lines } of courses)
    for (const { dataset } of lines) values[dataset.series] = Number(at(report, dataset.series)) || 0;
  past = past.filter((look) => look.now_s > now_s - HISTORY_S);
  past.push({ now_s, values });
}

// The least of 1, 2 and 5 times a power of ten that is not below.
function roundedUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value * 0.999999);
}

function path(series, top, now_s) {
  let text = "";
  let before = -Infinity;
  for (const look of past) {
    const x = (HISTORY_S - (now_s - look.now_s)).toFixed(1);
    const y = (99 - (look.values[series] / top) * 98).toFixed(1);
    text += look.now_s - before > GAP_S ? `M${x} ${y}h0` : `L${x} ${y}`;
    before = look.now_s;
  }
  return text;
}

function draw(now_s) {
  for (const { how, top, picture, lines } of courses) {
    const most = (series) => past.reduce((most, look) => Math.max(most, look.values[series]), 0);
    const highest = Math.max(...lines.map((line) => most(line.dataset.series)));
    const scale = highest > 0 ? roundedUp(how === "count" ? Math.max(highest, 2) : highest) : 1;
    setText(top, highest > 0 ? written(scale, how) : "");
    for (const line of lines) line.setAttribute("d", path(line.dataset.series, scale, now_s));
    const said = lines.map(({ dataset }) => {
      const now = past[past.length - 1].values[dataset.series];
      return `${dataset.name}: now ${written(now, how)}, at most ${written(most(dataset.series), how)}`;
    });
    picture.setAttribute("aria-label", `The last five minutes. ${said.join("; ")}.`);
  }
}

// Looking: once a second, less and less often while nobody answers, and not at all while nobody looks.

const state = document.getElementById("state");
const button = document.getElementById("pause");
let isPaused = false;
let failures = 0;
let timer = 0;
let look = 0;
let answered = new Date();

// Set only when it changes, so that it is read out once.
function say(text, isGone) {
  setText(state, text);
  document.body.classList.toggle("gone", isGone);
  document.title = isGone ? "gone - linerate status" : "linerate status";
}

function failed(error) {
  failures += 1;
  const since = answered.toTimeString().slice(0, 8);
  const why = error instanceof SyntaxError ? "it answers something else" : error.message;
  say(`The server is gone since ${since}. It is asked again. (${why})`, true);
}

async function update() {
  clearTimeout(timer);
  if (isPaused || document.hidden) return;
  const mine = ++look;
  const begun = performance.now();
  const { limit, sort } = document.body.dataset;
  try {
    const options = { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) };
    const answer = await fetch(`/status.json?limit=${limit}&sort=${sort}`, options);
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    const report = await answer.json();
    if (mine !== look) return;
    failures = 0;
    answered = new Date();
    show(report);
    remember(report, begun / 1000);
    draw(begun / 1000);
    say("Live, every second.", false);
  } catch (error) {
    if (mine !== look) return;
    failed(error);
  }
  const wait = Math.min(INTERVAL_MS * 2 ** failures, LONGEST_WAIT_MS);
  timer = setTimeout(update, Math.max(INTERVAL_MS / 10, wait - (performance.now() - begun)));
}

// An answer that is under way is not waited for any more.
function stop() {
  look += 1;
  clearTimeout(timer);
}

button.addEventListener("click", () => {
  isPaused = !isPaused;
  setText(button, isPaused ? "Resume" : "Pause");
  if (isPaused) {
    stop();
    say(`Paused at ${answered.toTimeString().slice(0, 8)}.`, false);
  } else update();
});

document.addEventListener("visibilitychange", () => (document.hidden ? stop() : update()));

for (const link of document.querySelectorAll("a[data-sort]"))
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.body.dataset.sort = link.dataset.sort;
    history.replaceState(null, "", link.href);
    for (const other of document.querySelectorAll("a[data-sort]")) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    update();
  });

for (const element of document.querySelectorAll("[data-live]")) element.hidden = false;
button.hidden = false;
update();
