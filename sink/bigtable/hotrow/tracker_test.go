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

var began = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// watched is a Tracker with what it logged, and a clock that tests move.
type watched struct {
	*Tracker
	now      time.Time
	messages *observer.ObservedLogs
}

func newWatched(level zapcore.Level) *watched {
	core, messages := observer.New(level)
	return &watched{Tracker: New(zap.New(core), began), now: began, messages: messages}
}

func (w *watched) pass(d time.Duration) { w.now = w.now.Add(d) }

// hits notes a write of each row by an item that owns it.
func (w *watched) hits(keys ...[]byte) {
	for _, key := range keys {
		w.Wrote(w.now, &transform.Write{Rows: []transform.Row{{Key: key, Class: transform.ClassR}}}, anyChange, anyChange)
	}
}

var anyChange = &change.Change{Op: change.Modify}

// rows returns the row names of the warnings whose message contains a text.
func (w *watched) rows(what string) (names []string) {
	for _, e := range w.messages.FilterMessageSnippet(what).All() {
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

// load spreads 20,000 writes a second over the keys for some windows, and writes one more row at a
// rate of its own.
func (w *watched) load(spread [][]byte, key []byte, rate, windows int) {
	next := 0
	for range windows * 100 {
		for range 2000 { // a tenth of a second
			w.hits(spread[next%len(spread)])
			next += 7919 // prime: all of them, not in the order of the alphabet
		}
		for range rate / 10 {
			w.hits(key)
		}
		w.pass(100 * time.Millisecond)
	}
}

func TestEvenLoadRaisesNoAlarm(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	w.load(keys(200_000), nil, 0, 3)
	if w.messages.Len() > 0 {
		t.Errorf("20,000 writes a second over 200,000 rows: %v", w.messages.All())
	}
	if rate := w.Hottest(w.now); rate > 1 {
		t.Errorf("hottest row: %v writes a second, each was written once in ten seconds", rate)
	}
}

func TestRowThatIsWrittenAllTheTimeIsLogged(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	hot := []byte("sensor#memusage")
	w.load(keys(200_000), hot, 150, 3)
	messages := w.messages.All()
	if len(messages) != 3 {
		t.Fatalf("%d warnings in three windows: %v", len(messages), messages)
	}
	for _, e := range messages {
		rate := e.ContextMap()["writes_per_second"].(float64)
		if e.ContextMap()["row"] != nameOf(hot) || rate < 130 || rate > 150 {
			t.Errorf("logged %q of %v, want 150 a second less what shared its slot, of %s", e.Message, e.ContextMap(),
				nameOf(hot))
		}
	}
	if rate := w.Hottest(w.now); rate < 140 || rate > 150 {
		t.Errorf("hottest row: %v writes a second, want 150 less what shared its slot", rate)
	}
}

func TestWarmRowIsNotCalledHot(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	w.load(keys(200_000), []byte("warm"), 90, 3) // what shares its slot takes it above a hundred, or not
	if w.messages.Len() > 0 {
		t.Errorf("a row of 90 writes a second: %v", w.messages.All())
	}
}

func TestHotRowIsLoggedOncePerWindow(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	hot := []byte("hot")
	for range 2 {
		// The count wavers about the threshold: another row in the slot lowers it.
		for range 1500 {
			w.hits(hot)
		}
		w.withdraw(hot, 700)
		for range 1500 {
			w.hits(hot)
		}
		w.pass(windowLength)
	}
	if got := w.rows("hot row"); len(got) != 2 {
		t.Errorf("logged %d times in two windows", len(got))
	}
}

// withdraw writes another row of the key's slot, which lowers the count of the key.
func (w *watched) withdraw(key []byte, writes int) {
	rival := w.rival(key)
	for range writes {
		w.hits(rival)
	}
}

// rival returns a key in the same slot as another in this window.
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

func TestHotRowOfAnEarlierWindowHidesNone(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	hot := []byte("hot")
	now := w.window(w.now)
	past := w.inSlot(now, w.slot(now+1, hot))
	for range 5000 {
		w.hits(past)
	}
	w.pass(windowLength)
	for range 1100 {
		w.hits(hot)
	}
	if got := w.rows("hot row"); len(got) != 2 || got[1] != nameOf(hot) {
		t.Errorf("logged %v, want %s at last", got, nameOf(hot))
	}
}

func TestHotRowsThatHideEachOtherAreFoundAWindowLater(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	one := []byte("one")
	other := w.rival(one)
	for range 1500 {
		w.hits(one, other)
	}
	if w.messages.Len() > 0 {
		t.Fatalf("they are not in one slot: %v", w.messages.All())
	}
	for range 3 {
		w.pass(windowLength)
		for range 1500 {
			w.hits(one, other)
		}
	}
	named := strings.Join(w.rows("hot row"), " ")
	if !strings.Contains(named, nameOf(one)) || !strings.Contains(named, nameOf(other)) {
		t.Errorf("logged %q, want %s and %s", named, nameOf(one), nameOf(other))
	}
}

func TestHotRowsDoNotFloodTheLog(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for _, key := range keys(100) {
		for range 1200 {
			w.hits(key)
		}
	}
	if w.messages.Len() != maxLogged || cap(w.logged) > 2*maxLogged {
		t.Errorf("%d warnings in a window with a hundred hot rows, %d remembered", w.messages.Len(), cap(w.logged))
	}
}

func TestHottestRowCoolsWhenWritesEnd(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for _, c := range []struct {
		writes int
		want   float64
	}{{3000, 0}, {2000, 300}, {0, 200}, {0, 0}, {0, 0}} { // each shows the window before
		for range c.writes {
			w.hits([]byte("hot"))
		}
		if got := w.Hottest(w.now); got != c.want {
			t.Errorf("at %v: %v writes a second, want %v", w.now.Sub(began), got, c.want)
		}
		w.pass(windowLength)
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
	w.pass(windowLength)
	if got := w.Hottest(w.now); got != lanes*writes/10 {
		t.Errorf("%v writes a second, the lanes made %d", got, lanes*writes/10)
	}
	if got := w.rows("hot row"); len(got) != 1 || got[0] != nameOf(hot) {
		t.Errorf("logged %v, want %s once", got, nameOf(hot))
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
	warned, withKey := 0, 0
	for _, e := range w.messages.All() {
		text, err := json.Marshal(e.ContextMap())
		if err != nil {
			t.Fatal(err)
		}
		line := e.Message + string(text)
		if e.Level == zap.DebugLevel {
			if strings.Contains(line, string(key)) && strings.Contains(line, nameOf(key)) {
				withKey++
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
	if warned != 2 || withKey != 2 {
		t.Errorf("%d warnings, %d with their key at Debug; want 2 and 2", warned, withKey)
	}
}
