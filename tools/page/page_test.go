package page

import (
	"strings"
	"syscall"
	"testing"
)

// TestSevenTabsFollow: a browser opens six connections to a host, for all of its tabs.
func TestSevenTabsFollow(t *testing.T) {
	s := newStage(t)
	chromium := browser(t)
	s.until("the replicator is healthy", func() bool { return s.answers("/readyz") })
	var tabs []*tab
	for range 7 {
		tabs = append(tabs, s.open(chromium, "/"))
	}
	s.command("pause", "--table", "Orders")
	for _, p := range tabs {
		s.until("each tab shows the pause", func() bool { return strings.HasPrefix(p.title(), "Paused") })
	}
}

// TestPageThatNobodyAnswersForHasNoColour: a frozen process, one that was killed, and a laptop that
// slept.
func TestPageThatNobodyAnswersForHasNoColour(t *testing.T) {
	s := newStage(t)
	chromium := browser(t)
	s.until("the replicator is healthy", func() bool { return s.answers("/readyz") })
	for _, path := range []string{"/", "/table/Orders"} {
		p := s.open(chromium, path)
		green := p.colour()
		fresh := func() bool { return strings.HasPrefix(p.title(), "Healthy") && p.colour() == green && !p.stale() }
		s.until("the page is fresh", fresh)

		s.signal(syscall.SIGSTOP)
		s.until("the page of a frozen process is grey", p.stale)
		p.mustBeGrey(green)
		s.signal(syscall.SIGCONT)
		s.until("the page follows again", fresh)

		// The laptop sleeps for an hour: what was fresh before is an hour old when its timers run
		// again.
		p.text(`(() => {
			const real = Date.now;
			Date.now = () => real() + 3600e3;
			window.seen = [];
			new MutationObserver(() => seen.push(document.title)).observe(document.querySelector('title'), {childList: true});
		})()`)
		s.until("the page was grey until the answer came", func() bool {
			return strings.Contains(p.text("seen"), "No answer since") && fresh()
		})
	}

	front, table := s.open(chromium, "/"), s.open(chromium, "/table/Orders")
	green := front.colour()
	s.signal(syscall.SIGKILL)
	for _, p := range []*tab{front, table} {
		s.until("the page of a dead process is grey", p.stale)
		p.mustBeGrey(green)
	}
	_ = s.daemon.Wait()
	login := s.serveLogin()
	for _, p := range []*tab{front, table} {
		s.until("the login of a proxy is no answer", func() bool {
			return p.stale() && strings.Contains(p.text("document.getElementById('offline').textContent"), "with another page")
		})
	}
	_ = login.Close()
	s.daemon = s.start("run")
	for _, p := range []*tab{front, table} {
		s.until("the page follows the next process without a reload", func() bool {
			return strings.HasPrefix(p.title(), "Healthy") && !p.stale()
		})
	}
}

func (p *tab) stale() bool { return strings.HasPrefix(p.title(), "No answer since ") }

func (p *tab) colour() string {
	return p.text("getComputedStyle(document.getElementById('verdict')).backgroundColor")
}

// mustBeGrey checks that the banner stands above all else, and that the verdict has lost its
// colour.
func (p *tab) mustBeGrey(green string) {
	p.s.t.Helper()
	if colour := p.colour(); colour == green {
		p.s.t.Errorf("the panel is still %s", colour)
	}
	const above = `document.getElementById('offline').getBoundingClientRect().bottom <=
		document.getElementById('verdict').getBoundingClientRect().top`
	if p.text("document.getElementById('offline').hidden") != "false" || p.text(above) != "true" {
		p.s.t.Error("the banner does not stand above the verdict")
	}
	if text := p.text("document.getElementById('offline').textContent"); !strings.Contains(text, "Next: ") {
		p.s.t.Errorf("the banner says %q", text)
	}
}
