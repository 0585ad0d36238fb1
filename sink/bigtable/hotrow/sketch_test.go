package hotrow

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

var dawn = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// watched is a heat with what it said, and a clock that tests move.
type watched struct {
	*Tracker
	now  time.Time
	said *observer.ObservedLogs
}

func newWatched(level zapcore.Level) *watched {
	core, said := observer.New(level)
	return &watched{Tracker: New(zap.New(core), dawn), now: dawn, said: said}
}

func (w *watched) pass(d time.Duration) { w.now = w.now.Add(d) }

// hits notes a write of each row by an item that owns it.
func (w *watched) hits(keys ...[]byte) {
	for _, key := range keys {
		w.Wrote(w.now, &transform.Write{Rows: []transform.Row{{Key: key, Class: transform.ClassR}}}, anyChange, anyChange)
	}
}

var anyChange = &change.Change{Op: change.Modify}

// rows are the names in the warnings that say so.
func (w *watched) rows(what string) (names []string) {
	for _, e := range w.said.FilterMessageSnippet(what).All() {
		names = append(names, e.ContextMap()["row"].(string))
	}
	return names
}

func nameOf(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])[:16]
}

func keys(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = fmt.Appendf(nil, "customer#%07d#order", i)
	}
	return all
}

// load spreads 20,000 writes a second over the keys for some windows, and with them goes one row at some rate.
func (w *watched) load(spread [][]byte, key []byte, rate, windows int) {
	next := 0
	for range windows * 100 {
		for range 2000 { // a tenth of a second
			w.hits(spread[next%len(spread)])
			next += 7919 // prime: all of them, in no order of the alphabet
		}
		for range rate / 10 {
			w.hits(key)
		}
		w.pass(100 * time.Millisecond)
	}
}

func TestSpreadLoadRaisesNoAlarm(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	w.load(keys(200_000), nil, 0, 3)
	if w.said.Len() > 0 {
		t.Errorf("20,000 writes a second over 200,000 rows: %v", w.said.All())
	}
	if rate := w.Hottest(w.now); rate > 1 {
		t.Errorf("hottest row: %v writes a second, each was written once in ten seconds", rate)
	}
}

func TestRowThatIsWrittenAllTheTimeIsNamed(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	hot := []byte("sensor#memusage")
	w.load(keys(200_000), hot, 150, 3)
	said := w.said.All()
	if len(said) != 3 {
		t.Fatalf("%d warnings in three windows: %v", len(said), said)
	}
	for _, e := range said {
		rate := e.ContextMap()["writes_per_second"].(float64)
		if e.ContextMap()["row"] != nameOf(hot) || rate < 130 || rate > 150 {
			t.Errorf("said %q of %v, want 150 a second less what shared its slot, of %s", e.Message, e.ContextMap(), nameOf(hot))
		}
	}
	if rate := w.Hottest(w.now); rate < 140 || rate > 150 {
		t.Errorf("hottest row: %v writes a second, want 150 less what shared its slot", rate)
	}
}

func TestWarmRowIsNotCalledHot(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	w.load(keys(200_000), []byte("warm"), 90, 3) // what shares its slot takes it above a hundred, or not
	if w.said.Len() > 0 {
		t.Errorf("a row of 90 writes a second: %v", w.said.All())
	}
}

func TestHotRowIsNamedOncePerWindow(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	hot := []byte("hot")
	for range 2 {
		// It wavers about the threshold: others in the slot take back what it gained.
		for range 1500 {
			w.hits(hot)
		}
		w.withdraw(hot, 700)
		for range 1500 {
			w.hits(hot)
		}
		w.pass(heatWindow)
	}
	if got := w.rows("hot row"); len(got) != 2 {
		t.Errorf("named %d times in two windows", len(got))
	}
}

// withdraw writes other rows of the key's slot.
func (w *watched) withdraw(key []byte, writes int) {
	rival := w.rival(key)
	for range writes {
		w.hits(rival)
	}
}

// rival finds a key in the same slot as another in this window.
func (w *watched) rival(key []byte) []byte {
	now := w.window(w.now)
	return w.inSlot(now, w.slot(now, key))
}

func (w *watched) slot(window uint64, key []byte) uint64 {
	return scatter(w.hash(key), window) >> (64 - slotBits)
}

func (w *watched) inSlot(window, slot uint64) []byte {
	for i := 0; ; i++ {
		if k := fmt.Appendf(nil, "rival%d", i); w.slot(window, k) == slot {
			return k
		}
	}
}

func TestHotRowOfThePastHidesNone(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	hot := []byte("hot")
	now := w.window(w.now)
	past := w.inSlot(now, w.slot(now+1, hot))
	for range 5000 {
		w.hits(past)
	}
	w.pass(heatWindow)
	for range 1100 {
		w.hits(hot)
	}
	if got := w.rows("hot row"); len(got) != 2 || got[1] != nameOf(hot) {
		t.Errorf("named %v, want %s at last", got, nameOf(hot))
	}
}

func TestHotRowsThatHideEachOtherAreFoundAWindowLater(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	one := []byte("one")
	other := w.rival(one)
	for range 1500 {
		w.hits(one, other)
	}
	if w.said.Len() > 0 {
		t.Fatalf("they are not in one slot: %v", w.said.All())
	}
	for range 3 {
		w.pass(heatWindow)
		for range 1500 {
			w.hits(one, other)
		}
	}
	named := strings.Join(w.rows("hot row"), " ")
	if !strings.Contains(named, nameOf(one)) || !strings.Contains(named, nameOf(other)) {
		t.Errorf("named %q, want %s and %s", named, nameOf(one), nameOf(other))
	}
}

func TestHotRowsDoNotFloodTheLog(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for _, key := range keys(100) {
		for range 1200 {
			w.hits(key)
		}
	}
	if w.said.Len() != namedRows || cap(w.named) > 2*namedRows {
		t.Errorf("%d warnings in a window with a hundred hot rows, %d remembered", w.said.Len(), cap(w.named))
	}
}

func TestHeatGoesAwayWithTheWrites(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for _, c := range []struct {
		writes int
		want   float64
	}{{3000, 0}, {2000, 300}, {0, 200}, {0, 0}, {0, 0}} { // each shows the window before
		for range c.writes {
			w.hits([]byte("hot"))
		}
		if got := w.Hottest(w.now); got != c.want {
			t.Errorf("at %v: %v writes a second, want %v", w.now.Sub(dawn), got, c.want)
		}
		w.pass(heatWindow)
	}
}

func TestLanesThatWriteOneRowLoseNoCount(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	hot := []byte("hot")
	var g sync.WaitGroup
	const lanes, writes = 16, 20_000
	for range lanes {
		g.Go(func() {
			for range writes {
				w.hits(hot)
			}
		})
	}
	g.Wait()
	w.pass(heatWindow)
	if got := w.Hottest(w.now); got != lanes*writes/10 {
		t.Errorf("%v writes a second, the lanes made %d", got, lanes*writes/10)
	}
	if got := w.rows("hot row"); len(got) != 1 || got[0] != nameOf(hot) {
		t.Errorf("named %v, want %s once", got, nameOf(hot))
	}
}

func TestRowKeysAreLoggedAtDebugOnly(t *testing.T) {
	w := newWatched(zap.DebugLevel)
	key := []byte("patient#anna.svensson@example.org")
	for range hotWrites {
		w.hits(key)
	}
	w.put(key, 1<<20, 300<<20)
	secrets := []string{string(key), "anna", hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key)}
	warned, told := 0, 0
	for _, e := range w.said.All() {
		text, err := json.Marshal(e.ContextMap())
		if err != nil {
			t.Fatal(err)
		}
		line := e.Message + string(text)
		if e.Level == zap.DebugLevel {
			if strings.Contains(line, string(key)) && strings.Contains(line, nameOf(key)) {
				told++
			}
			continue
		}
		warned++
		for _, secret := range secrets {
			if strings.Contains(line, secret) {
				t.Errorf("a key above Debug: %s", line)
			}
		}
		if e.ContextMap()["row"] != nameOf(key) {
			t.Errorf("row %v, want %s", e.ContextMap()["row"], nameOf(key))
		}
	}
	if warned != 2 || told != 2 {
		t.Errorf("%d warnings, %d with their key at Debug; want 2 and 2", warned, told)
	}
}
