package archiving

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// at returns a time so many minutes and seconds after begin.
func at(minutes, seconds int) change.Millis {
	return begin + change.Millis(minutes)*minute + change.Millis(seconds)*1000
}

// TestEachDeletionOfAGapIsArchivedOnce: an export shows what the stream lost, and what it gave in
// the same time, in objects and still on its way. The owner ends in the middle, again and again.
func TestEachDeletionOfAGapIsArchivedOnce(t *testing.T) {
	w := newHealingWorld(t)
	w.chunk = 7
	l := w.start()
	l.given(transform.ClassTTL, "again", 1, at(-10, 0)) // and written again before the window
	l.given(transform.ClassTTL, "earlier", 2, at(80, 0))
	l.given(transform.ClassUser, "user", 3, at(120, 0)) // the host cuts its times to minutes
	l.given(transform.ClassTTL, "given", 4, at(130, 10))
	want := map[string]int{}
	for class, keys := range map[string][]string{"ttl ": {"again", "earlier", "given"}, "user ": {"user"}} {
		for _, key := range keys {
			want[class+keyOf(key)] = 1
		}
	}
	files := [][]string{{
		line("again", at(100, 0), at(90, 0), true, false),
		line("earlier", at(150, 0), at(90, 0), true, false),
		line("user", at(120, 42), at(90, 0), true, false),
		line("given", at(130, 10), at(90, 0), true, false),
		line("both", at(130, 0), at(90, 0), false, false),
		line("deleted", at(130, 0), at(900, 0), true, false),
		line("alive", at(130, 0), at(90, 0), true, true),
		line("before", at(30, 0), at(20, 0), true, false),
		line("skip", at(130, 0), at(90, 0), true, false),
	}, nil}
	want["healed "+keyOf("again")] = 1
	for i := range 40 {
		key := fmt.Sprint("lost", i)
		files[i%2] = append(files[i%2], line(key, at(62+i*2, i), at(60, 0), true, false))
		want["healed "+keyOf(key)] = 1
	}
	url := w.export("01-e", begin, begin+5*hour, nil, files...)
	for _, w.crashAt = range []int64{1, 20, 45, 60, 75, 88, 93} {
		w.calls.Store(0)
		if out, err := l.heal([]string{"a"}, url); err == nil {
			t.Fatalf("the healing ended with %+v before it was cut off at call %d", out, w.crashAt)
		}
		l.end()
		l = w.start()
	}
	w.crashAt, w.refuse = 0, 1
	if _, err := l.heal([]string{"a"}, url); err == nil || !strings.Contains(err.Error(), "the log is away") {
		t.Fatalf("the end of the gap was not stored, and the error is %v", err)
	}
	out, err := l.heal([]string{"a"}, url)
	if err != nil || out.Failed != "" {
		t.Fatal(out, err)
	}
	sum := &request.Healed{Events: 41, Known: 2, NoImage: 2, Alive: 1, Skipped: 1, Exports: []string{"01-e"}}
	if diff := cmp.Diff(sum, out.Healed); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(w.closed) != 1 || w.closed[0].Gaps[0] != "a" || w.closed[0].Exports[0] != "01-e" ||
		!strings.HasPrefix(w.closed[0].Sinks["archive"], "41 events from 01-e") {
		t.Errorf("the gap was closed by %+v", w.closed)
	}
	if diff := cmp.Diff(want, w.archived()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// Another gap of the same time, as another shard has it, and an export with another window.
	w.gaps = append(w.gaps, gapOf("b", begin+hour, begin+2*hour))
	other := w.export("02-e", begin+hour/2, begin+4*hour, nil, files...)
	if out, err = l.heal([]string{"b"}, other); err != nil || out.Failed != "" || out.Healed.Events != 0 {
		t.Errorf("healed once more: %+v, %v", out, err)
	}
	if diff := cmp.Diff(want, w.archived()); diff != "" {
		t.Errorf("events after another gap was healed (-want +got):\n%s", diff)
	}
	l.end()
	w.verified()
}

// TestOverlappingWindowsGiveADeletionOnce, and an image only where it is that of the deletion.
func TestOverlappingWindowsGiveADeletionOnce(t *testing.T) {
	w := newHealingWorld(t)
	l := w.start()
	first := w.export("01-e", begin, at(130, 0), nil, []string{
		line("twice", at(120, 0), at(90, 0), true, false), line("back", at(100, 0), at(90, 0), true, false),
	})
	second := w.export("02-e", at(90, 0), begin+5*hour, nil, []string{
		line("twice", at(120, 0), at(90, 0), true, false), line("back", at(170, 0), at(90, 0), true, false),
	})
	out, err := l.heal([]string{"a"}, second, first)
	if err != nil || out.Failed != "" || out.Healed.Events != 2 || out.Healed.Known != 1 || out.Healed.NoImage != 1 {
		t.Fatalf("%+v, %+v, %v", out, out.Healed, err)
	}
	want := map[string]int{"healed " + keyOf("twice"): 1, "healed " + keyOf("back"): 1}
	if diff := cmp.Diff(want, w.archived()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestWindowsThatCannotBeAskedAboutLeaveTheGap: what they show is archived, once; whether they show
// everything is not known, so the gap stays, with the exports that are in doubt. The same windows
// end it once DynamoDB answers.
func TestWindowsThatCannotBeAskedAboutLeaveTheGap(t *testing.T) {
	w := newHealingWorld(t)
	w.unasked = true
	l := w.start()
	url := w.export("01-e", begin, begin+5*hour, nil, []string{line("lost", at(100, 0), at(90, 0), true, false)})
	want := map[string]int{"healed " + keyOf("lost"): 1}
	for range 2 {
		out, err := l.heal([]string{"a"}, url)
		if err != nil || out.Failed != "" || out.Healed.Events != 1 || len(out.Healed.Unconfirmed) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		if u := out.Healed.Unconfirmed[0]; u.Export != "01-e" || u.Reason == "" {
			t.Errorf("%+v", u)
		}
		if len(w.closed) > 0 {
			t.Fatalf("the gap was closed by %+v", w.closed)
		}
	}
	w.unasked = false
	if out, err := l.heal([]string{"a"}, url); err != nil || len(out.Healed.Unconfirmed) > 0 || len(w.closed) != 1 {
		t.Fatalf("%+v, %v, closed %+v", out, err, w.closed)
	}
	if diff := cmp.Diff(want, w.archived()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestOrdersThatCannotHealAreRefused, with what to do.
func TestOrdersThatCannotHealAreRefused(t *testing.T) {
	w := newHealingWorld(t)
	l := w.start()
	good := w.export("01-e", begin, begin+5*hour, nil, []string{line("x", at(100, 0), at(90, 0), true, false)})
	with := func(id string, key string, value any) string {
		return w.export(id, begin, begin+5*hour, func(s map[string]any) { s[key] = value }, nil)
	}
	full := w.export("02-e", begin, begin+5*hour, func(s map[string]any) {
		s["exportType"], s["exportTime"] = export.Full, "2026-05-10T00:00:00Z"
	})
	short := w.export("03-e", begin+hour, begin+5*hour, nil)
	early := w.export("04-e", begin, begin+3*hour, nil)
	left, right := w.export("05-e", begin, begin+2*hour, nil), w.export("06-e", at(121, 0), begin+5*hour, nil)
	twice := w.export("07-e", begin, begin+5*hour, nil, []string{
		line("x", at(100, 0), at(90, 0), true, false), line("x", at(100, 0), at(90, 0), true, false),
	})
	gap := func(edit func(*Gap)) func() {
		return func() { edit(&w.gaps[0]) }
	}
	for _, c := range []struct {
		name string
		edit func()
		gaps []string
		urls []string
		want string
	}{
		{"full export", nil, nil, []string{full}, "is a full export"},
		{"another table", nil, nil, []string{with("10-e", "tableId", "another")}, "not of"},
		{"view without old images", nil, nil, []string{with("11-e", "outputView", "NEW_IMAGE")}, "old images are needed"},
		{"not finished", nil, nil, []string{with("12-e", "exportStatus", "IN_PROGRESS")}, "IN_PROGRESS"},
		{"begins without a margin", nil, nil, []string{short}, "do not span gap a"},
		{"ends without a margin", nil, nil, []string{early}, "do not span gap a"},
		{"a minute between two windows", nil, nil, []string{left, right}, "do not span gap a"},
		{"an item twice", nil, nil, []string{twice}, "names an item twice"},
		{"no export there", nil, nil, []string{good + "-away"}, "does not exist"},
		{"unknown gap", nil, []string{"z"}, []string{good}, `no gap "z"`},
		{"no gap", nil, []string{}, []string{good}, "names no gap"},
		{"open gap", gap(func(g *Gap) { g.Accepted = false }), nil, []string{good}, "is open"},
		{"waived gap", gap(func(g *Gap) { g.Differs = false }), nil, []string{good}, "lacks nothing"},
		{"letters", func() { w.letters = 2 }, nil, []string{good}, "2 dead letters"},
		{"no time to live", func() { l.TTLAttr = "" }, nil, []string{good}, "no time to live"},
		{"no archive", func() { l.Archive = nil }, nil, []string{good}, "no archive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, gaps := l.HealOptions, append([]Gap(nil), w.gaps...)
			defer func() { l.HealOptions, w.gaps, w.letters = was, gaps, 0 }()
			if c.edit != nil {
				c.edit()
			}
			if c.gaps == nil {
				c.gaps = []string{"a"}
			}
			out, err := l.heal(c.gaps, c.urls...)
			if err != nil || !strings.Contains(out.Failed, c.want) {
				t.Errorf("%+v, %v; want a refusal with %q", out, err, c.want)
			}
		})
	}
	if len(w.closed) > 0 {
		t.Errorf("a gap was closed: %+v", w.closed)
	}
	// What comes yet is no refusal.
	l.Archive.Passed(begin + 3*hour + minute)
	if out, err := l.heal([]string{"a"}, good); err == nil {
		t.Errorf("healed before the archive has what the stream gives: %+v", out)
	}
	l.Archive.Passed(begin + 10*hour)
	if out, err := l.heal([]string{"a"}, left, w.export("08-e", begin+2*hour, begin+5*hour, nil)); err != nil ||
		out.Failed != "" {
		t.Errorf("windows that touch: %+v, %v", out, err)
	}
	w.gaps[0].Differs, w.gaps[0].Healed = false, "from an export"
	if out, err := l.heal([]string{"a"}, good); err != nil || out.Failed != "" || out.Healed.Events != 0 ||
		errors.Is(err, errFull) {
		t.Errorf("an order whose end was stored: %+v, %v", out, err)
	}
}
