// Keeps the page current: the server says when it has changed, and the sections that differ are replaced. Without
// this script the page reloads itself.
'use strict';

const offline = document.getElementById('offline');

async function refresh() {
  const reply = await fetch(location.href, {headers: {Accept: 'text/html'}, cache: 'no-store'});
  if (!reply.ok) {
    throw new Error(reply.status);
  }
  const next = new DOMParser().parseFromString(await reply.text(), 'text/html');
  document.title = next.title;
  for (const section of next.querySelectorAll('[data-live]')) {
    const old = document.getElementById(section.id);
    if (!old || old.outerHTML === section.outerHTML) {
      continue;
    }
    if (section.id === 'verdict' && old.dataset.state === section.dataset.state) {
      old.querySelector('.since').textContent = section.querySelector('.since').textContent; // not worth reading aloud
      if (old.outerHTML === section.outerHTML) {
        continue;
      }
    }
    const focused = old.contains(document.activeElement) ? document.activeElement.id : '';
    old.replaceWith(section);
    if (focused) {
      document.getElementById(focused)?.focus();
    }
  }
}

function lost() {
  if (offline.hidden) {
    offline.textContent = 'No connection to the replicator since ' + new Date().toLocaleTimeString() +
      ': what is below is from before. Next: is it running?';
    offline.hidden = false;
  }
}

const events = new EventSource(document.body.dataset.events);
events.addEventListener('changed', () => refresh().then(() => { offline.hidden = true; }, lost));
events.addEventListener('error', () => {
  if (events.readyState === EventSource.CLOSED) { // too many pages are open
    setTimeout(() => location.reload(), 10000);
    return;
  }
  lost();
});
