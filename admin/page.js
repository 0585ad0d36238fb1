// Keeps the page current: it is read again every two seconds, and the sections that differ are
// replaced. Short requests, because a browser opens six connections to a host for all of its tabs.
// Without this script the page reloads itself.
'use strict';

const EVERY = 2000; // ms between the end of a reading and the next
const PATIENCE = 10000; // ms after which an unanswered page counts as old

const offline = document.getElementById('offline');
const clock = (ms) => new Date(ms).toISOString().slice(11, 19) + 'Z';

let answered = Date.now(); // when the server answered last, by the clock of this browser
let timer = 0;
let reading = false;

// poll reads the page, shows what has changed, and comes back after a while.
async function poll() {
  clearTimeout(timer);
  if (reading) {
    return;
  }
  reading = true;
  try {
    const reply = await fetch(location.href, {
      headers: {Accept: 'text/html'}, cache: 'no-store', signal: AbortSignal.timeout(PATIENCE),
    });
    if (!reply.ok) {
      throw new Error('HTTP ' + reply.status + ' ' + reply.statusText);
    }
    const next = new DOMParser().parseFromString(await reply.text(), 'text/html');
    if (!next.getElementById('verdict')) { // the login of a proxy: its status says nothing about the replicator
      throw new Error('HTTP ' + reply.status + ' with another page');
    }
    show(next);
    answered = Date.now();
    offline.hidden = true;
    document.body.classList.remove('stale');
  } catch (e) {
    lost(e);
  }
  reading = false;
  timer = setTimeout(poll, EVERY);
}

// served is the HTML of each section as the server sent it, without what this script adds.
const served = new Map();
for (const section of document.querySelectorAll('[data-live]')) {
  served.set(section.id, textOf(section));
}

// textOf returns the HTML of a section. How long a state lasts is not worth reading it aloud again.
function textOf(section) {
  const since = section.querySelector('.since');
  const text = since?.textContent;
  if (since) {
    since.textContent = '';
  }
  const html = section.outerHTML;
  if (since) {
    since.textContent = text;
  }
  return html;
}

// show replaces the sections that differ, and keeps what a reader has opened, scrolled or focused.
function show(next) {
  document.title = next.title;
  for (const section of next.querySelectorAll('[data-live]')) {
    const old = document.getElementById(section.id);
    if (!old || selected(old)) {
      continue;
    }
    const html = textOf(section);
    if (served.get(section.id) === html) {
      if (section.id === 'verdict') {
        old.querySelector('.since').textContent = section.querySelector('.since').textContent;
      }
      continue;
    }
    served.set(section.id, html);
    const before = [...old.querySelectorAll('details, .scroll')];
    [...section.querySelectorAll('details, .scroll')].forEach((part, i) => {
      if (part.localName === 'details' && before[i]?.open) {
        part.open = true;
      }
    });
    const focused = old.contains(document.activeElement) ? document.activeElement.id : '';
    old.replaceWith(section);
    [...section.querySelectorAll('details, .scroll')].forEach((part, i) => {
      part.scrollLeft = before[i]?.scrollLeft ?? 0;
    });
    decorate(section);
    if (focused) {
      document.getElementById(focused)?.focus({preventScroll: true});
    }
  }
}

// decorate adds what needs a script: buttons that copy commands, and the chosen order of the tables.
function decorate(section) {
  for (const code of section.querySelectorAll('.next code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', 'Copy the command ' + code.textContent);
    button.addEventListener('click', async () => {
      await navigator.clipboard?.writeText(code.textContent);
      button.textContent = navigator.clipboard ? 'Copied' : 'No clipboard here';
    });
    code.after(button);
  }
  if (section.id === 'tables') {
    arrange();
  }
}

// arrange sorts and filters the tables as the controls say.
function arrange() {
  const rows = [...document.querySelectorAll('#tables tbody tr')];
  const by = document.getElementById('order').value;
  const name = document.getElementById('filter').value.trim().toLowerCase();
  const trouble = document.getElementById('trouble').checked;
  rows.sort((a, b) => by === 'name' ? a.dataset.name.localeCompare(b.dataset.name) :
    by === 'order' ? a.dataset.order - b.dataset.order : b.dataset[by] - a.dataset[by]);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !row.dataset.name.toLowerCase().includes(name) || trouble && row.dataset.order > 1;
    shown += !row.hidden;
    row.parentNode.append(row);
  }
  const all = shown === rows.length;
  document.getElementById('shown').textContent = all ? '' : shown + ' of ' + rows.length + ' tables';
}

// selected reports whether a reader has marked text in an element, as to copy it.
function selected(element) {
  const marked = document.getSelection();
  return marked && !marked.isCollapsed && marked.containsNode(element, true);
}

// lost takes the colour from a page that nobody answers for.
function lost(error) {
  const since = 'No answer since ' + clock(answered);
  document.title = since;
  document.body.classList.add('stale');
  offline.textContent = since + (/^HTTP/.test(error?.message) ? ' but ' + error.message : '') +
    ': what is below is from before. Next: is the replicator running, and the way to it open?';
  offline.hidden = false;
}

// A process that is frozen, a tunnel that is cut and a laptop that slept give no error at all.
setInterval(() => {
  const now = Date.now();
  answered = Math.min(answered, now); // the clock may have been set back
  if (now - answered > PATIENCE) {
    if (offline.hidden) { // else the banner says more
      lost();
    }
    poll();
  }
}, 1000);

// A browser slows the timers of a tab in the background down to one a minute.
document.addEventListener('visibilitychange', () => document.hidden || poll());
addEventListener('online', poll);
timer = setTimeout(poll, EVERY);

const tools = document.getElementById('tools');
if (tools) {
  tools.hidden = false;
  tools.addEventListener('submit', (e) => e.preventDefault());
  tools.addEventListener('input', arrange);
}
document.querySelectorAll('[data-live]').forEach(decorate);
