package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

func TestBigtableAwayThenPartialFailures(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 60, 100)
	r.settle()
	w.front.Faults.Outage(0)
	w.changeItems("Orders", 61, 200)
	r.until("reading goes on while Bigtable is away", func() bool { return r.table("Orders").Changes >= 250 })
	w.front.Faults.Recover()
	w.front.Faults.Random(bigtable.Odds{Refuse: 0.1, Ambiguous: 0.1, Late: 0.1})
	w.changeItems("Orders", 62, 300)
	r.settle()
	w.front.Faults.Calm()
	r.until("late writes have landed", func() bool { return w.front.Faults.LateWaiting() == 0 })
	r.equal()
}

func TestRefusedChangeBecomesALetterAndTheRestGoesOn(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "long", strings.Repeat("k", 1000), `"v":{"N":"1"}`)
	// "#" and "%" are three bytes each in the default row key: too long for Bigtable.
	w.put("Orders", strings.Repeat("#", 1400), "x", `"v":{"N":"1"}`)
	w.changeItems("Orders", 63, 100)
	r.settle()
	r.until("the letter is counted", func() bool { return r.table("Orders").DeadLetters == 1 })
	if ready, why := r.p.Ready(); ready {
		t.Errorf("ready with a dead letter: %v", why)
	}
	w.delete("Orders", strings.Repeat("#", 1400), "x") // it never was in Bigtable
	r.settle()
	r.equal()
}

func TestHaltedTableLeavesOthersRunning(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Users")
	w.reject = "halt"
	r := w.start("Orders", "Users")
	w.front.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, -1)
	w.put("Orders", "bad", "1", `"v":{"N":"1"}`)
	r.until("the table is halted", func() bool { return r.table("Orders").State == "halted" })
	w.changeItems("Users", 64, 100)
	w.changeItems("Orders", 65, 100)
	r.untilEqual("Users")
	w.front.Faults.Calm()
	r.until("the halt ends by itself", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	r.equal()
}

func TestMissingFamilyHaltsAndHeals(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	w.front.Faults.RefuseRow([]byte("f"), codes.NotFound, 2)
	w.put("Orders", "f", "1", `"v":{"N":"1"}`)
	r.until("it is applied in the end", func() bool { return len(r.stored("Orders")) == 1 })
	r.settle()
	r.equal()
}

func TestLargestItemsWithBothImages(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	noise := newNoise(66)
	for i := range 3 {
		w.put("Orders", "big", "1", fmt.Sprintf(`"n":{"N":"%d"},"blob":{"S":%q}`, i, noise.word(408_000)))
	}
	r.settle()
	r.equal()
}

func TestRowThatManyItemsShareShowsItsGrowth(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.mapping = "families: {d: {max_versions: 1}}\nrules:\n- name: all\n" +
		"  match: {pk: \"{p}\", sk: \"{s}\"}\n  row: \"{p}\"\n" +
		"  cells: [{attr: blob, to: \"d:{s}/once\"}, {attr: blob, to: \"d:{s}/twice\"}]\n"
	w.createTable("Orders")
	r := w.start("Orders")
	const items, size = 16, 400_000 // three of four would be sampled; one of the first ten will
	blob := strings.Repeat("b", size)
	for i := range items {
		w.put("Orders", "tenant", fmt.Sprint(i), `"blob":{"S":"`+blob+`"}`)
	}
	r.settle()
	r.equal()
	grown := func() float64 { return r.metric("tailrace_largest_row_growth_bytes") }
	r.until("the growth is shown", func() bool { return grown() > 2*(size+100) })
	if got := grown(); got > items*2*(size+100) {
		t.Errorf("the row grew by %.0f, %d items of twice %d bytes were written", got, items, size)
	}
}

func TestOddNamesValuesAndKeys(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a#b", "c", `"x":{"S":"1"}`)
	w.put("Orders", "a", "b#c", `"x":{"S":"2"}`)
	w.put("Orders", "%23", "#%", `"x":{"S":"3"}`)
	w.put("Orders", "names", "1",
		`"a\u0000b":{"S":"nul"},"a:b":{"S":"colon"},"a#b":{"S":"hash"},"\ud83d\ude00":{"S":"emoji"}," ":{"S":"space"}`)
	w.put("Orders", "empty", "1", `"s":{"S":""},"n":{"NULL":true},"b":{"B":""},"l":{"L":[]},"m":{"M":{}}`)
	w.put("Orders", "numbers", "1",
		`"a":{"N":"12345678901234567890123456789012345678"},"b":{"N":"-0.00000000000000000000000000000000000001"},`+
			`"c":{"N":"9.99E+125"},"d":{"N":"1E-130"},"e":{"N":"0012.500"}`)
	w.put("Orders", "sets", "1", `"ss":{"SS":["b","a"]},"ns":{"NS":["1.0","2"]},"bs":{"BS":["AA==","/w=="]}`)
	r.settle()
	r.equal()
	w.put("Orders", "empty", "1", `"only":{"S":"left"}`) // everything else is removed
	w.put("Orders", "names", "1", "")
	r.settle()
	r.equal()
}

func TestOrderPerItemUnderAllOfIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	w.createTable("Orders")
	w.front.Faults.Random(bigtable.Odds{Refuse: 0.05, Ambiguous: 0.05, Late: 0.05})
	r := w.start("Orders")
	for range 12 {
		w.changeItems("Orders", rnd.Uint64(), 120)
		switch rnd.IntN(4) {
		case 0:
			w.streams.Rotate("Orders")
		case 1:
			open := w.streams.OpenShards("Orders")
			if _, err := w.streams.Split(open[rnd.IntN(len(open))], 2); err != nil {
				t.Fatal(err)
			}
		case 2:
			w.front.Faults.Outage(time.Duration(1+rnd.IntN(200)) * time.Millisecond) // 0 would be without end
		case 3:
			w.clock.Advance(11 * time.Minute)
		}
	}
	r.settle()
	w.front.Faults.Calm()
	r.until("late writes have landed", func() bool { return w.front.Faults.LateWaiting() == 0 })
	r.equal()
}

// noise makes words that do not compress.
type noise struct{ rnd *rand.Rand }

func newNoise(seed uint64) noise { return noise{rand.New(rand.NewPCG(seed, 9))} }

func (n noise) word(length int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	b := make([]byte, length)
	for i := range b {
		b[i] = letters[n.rnd.IntN(len(letters))]
	}
	return string(b)
}
