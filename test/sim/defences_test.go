package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// defence is a defence in the code of the daemon, and an edit that takes it away.
type defence struct {
	name, file string // below the root of the module
	old, new   string
	rare       bool // five times as many histories are needed
}

// defences are those whose loss the simulation must find.
var defences = []defence{
	{"an owner writes only while no other may have claimed", "protocol/claim.go",
		"return now.Since(sent) < min(ttl/4*3, ttl/3+2*time.Second)",
		"return now.Since(sent) < 1000*ttl || time.Second == 0", false},
	{"a suspended machine ages what it has read", "protocol/clock.go",
		"return max(i.Wall.Sub(earlier.Wall), i.Mono-earlier.Mono)", "return i.Mono - earlier.Mono", false},
	{"a proof has a listing", "protocol/proof.go",
		"case s.Listed >= p.Through && read >= p.Through:", "case read >= p.Through:", false},
	{"what was read becomes unread", "protocol/proof.go",
		"if missing := p.unread(s); missing != MissingNothing {",
		"if missing := p.unread(s); missing != MissingNothing && !p.read {", false},
	{"a reading is not older than two minutes", "protocol/reading.go",
		"return now.Since(r.At) < ReadingAge && r.Requested > gapsUntil", "return r.Requested > gapsUntil", false},
	{"a reading is not from before a gap", "protocol/reading.go",
		"return now.Since(r.At) < ReadingAge && r.Requested > gapsUntil", "return now.Since(r.At) < ReadingAge", false},
	{"repairs are above lost versions", "protocol/reading.go",
		"from = max(from, change.Millis(p.Above)+ReadingMargin)", "from = max(from, ReadingMargin)", false},
	{"late writes of earlier owners are outwaited", "protocol/reading.go",
		"f.OrderClosed) + lateWrites", "f.OrderClosed) + 0*lateWrites", true},
	{"a copy's mark ends at the first page that is not durable", "protocol/parts.go",
		"for n < len(x.pages) && x.pages[n].done {", "for n < len(x.pages) {", false},
	{"a page behind one that is read again is dropped", "protocol/parts.go",
		"if x.rewinds != rewinds {", "if x.rewinds > rewinds+1000 {", false},
	{"a page that is too old is read again", "protocol/parts.go",
		"x.next, x.ended = pg.From, false", "x.rewinds += 0", false},
	{"marks do not go back", "checkpoint/check.go",
		"ok && mark.Seq < old.Seq {", "ok && mark.Seq < old.Seq && seq == 0 {", false},
	{"marks of a copy do not go back", "checkpoint/copy.go",
		"if m.Items < old.Items || old.Done && !m.Done {", "if m.Items < 0 || old.Items < 0 {", false},
	{"an accepted mapping cancels the copy before", "checkpoint/copy.go",
		"if c := s.CopyRunning(); c != nil { // the copy that follows",
		"if c := s.CopyRunning(); c != nil && seq == 0 { //", false},
	{"a copy that is cancelled leaves a gap", "checkpoint/copy.go",
		"c.Canceled = true\n\ts.Gaps = append", "if c.Canceled = true; at > 0 {\n\t\treturn\n\t}\n\ts.Gaps = append", false},
	{"only its own resync is healed", "checkpoint/resync.go",
		"if !ofExports && (s.Resync == nil || s.Resync.ID != b.ID) {", "if !ofExports && s.Resync == nil {", false},
	{"orders behind a fence are ignored", "checkpoint/apply.go",
		"if s.Fence == nil {\n\t\ts.applyOrders", "if s.Fence == nil || seq > 0 {\n\t\ts.applyOrders", false},
	{"a pass stands at a fence", "protocol/pass.go",
		"if p.Fence.Stops(seq) {", "if p.Fence.Stops(seq) && seq == 0 {", false},
	{"an old snapshot is not one of the log", "checkpoint/chain.go",
		"chain != nil && chain.isNext(e, msg)", "chain != nil && seq == 0 && chain.isNext(e, msg)", false},
	{"only what is lost before the start is excused", "checkpoint/gaps.go",
		"case g.Ends && s.LostBeforeStart(sh, g.Found):", "case g.Ends:", false},
	{"the next stream waits for the one before", "protocol/streamend.go",
		"case !applied:", "case !applied && !disabled:", false},
	{"a new life has the floor of its log", "protocol/start.go",
		"Mode: mode, Floor: floor, Recover: true", "Mode: mode, Floor: 0 * floor, Recover: true", false},
	{"a floor is above what was given out", "protocol/start.go",
		"(time.Second+maxSkew+lead).Milliseconds()", "(time.Second+maxSkew+0*lead).Milliseconds()", false},
}

// root is the directory of the module.
const root = "../.."

// TestDefencesAreInTheCode: each edit finds its defence, once.
func TestDefencesAreInTheCode(t *testing.T) {
	for _, d := range defences {
		text, err := os.ReadFile(filepath.Join(root, d.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), d.old); n != 1 {
			t.Errorf("%s: %s holds %q %d times", d.name, d.file, d.old, n)
		}
	}
}

// TestDefencesOfTheCode takes one defence after the other out of the code of the daemon: an
// invariant must break in -sim.mutants histories.
func TestDefencesOfTheCode(t *testing.T) {
	if *mutantSeeds == 0 {
		t.Skip("make mutants")
	}
	found := regexp.MustCompile(`seed (\d+): ([^:]+):`)
	for i := range defences {
		d := &defences[i]
		out, err := d.without(t)
		seed := found.FindStringSubmatch(out)
		switch {
		case err == nil:
			t.Errorf("%-56s nothing breaks", d.name)
		case seed == nil:
			t.Errorf("%-56s %v\n%s", d.name, err, out)
		default:
			t.Logf("%-56s %5s  %s", d.name, seed[1], seed[2])
		}
	}
}

// without simulates histories of the code without the defence, and returns what the test prints.
func (d *defence) without(t *testing.T) (string, error) {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join(root, d.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := filepath.Join(dir, "edited.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: edited}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		edited: []byte(strings.Replace(string(text), d.old, d.new, 1)), filepath.Join(dir, "overlay.json"): overlay,
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seeds := *mutantSeeds
	if d.rare {
		seeds *= 5
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-trimpath", "-ldflags=-w", "-count=1",
		"-overlay", filepath.Join(dir, "overlay.json"), "-run", "TestHistories", ".", "-args", "-sim.brief",
		"-sim.seeds="+strconv.FormatUint(seeds, 10))
	out, err := test.CombinedOutput()
	return string(out), err
}
